//! [`Journal::find`].

use super::{SHOP, keys, replaced, reserved};
use crate::journal::{Journal, Wanted};
use crate::operation::{GatewayRef, OperationKey, OperationKind};
use crate::outcome::{FailureCategory, Outcome, Succeeded};
use crate::record::Record;
use crate::testing::conformance::sample::{NOW, Sample, answered, looked, lost, outcomes, released};
use std::sync::Arc;
use std::time::Duration;

/// Reserved `age` seconds before the samples' present, so that the order is not that of insertion.
async fn older(journal: &Arc<dyn Journal>, sample: Sample, age: u64) -> Record {
    reserved(journal, &sample.at(NOW.before(Duration::from_secs(age)))).await
}

async fn assert_found(journal: &Arc<dyn Journal>, wanted: Wanted, expected: &[OperationKey]) {
    assert_eq!(keys(journal, wanted.clone(), 100).await, expected);
    assert_eq!(keys(journal, wanted.clone(), expected.len()).await, expected);
    assert_eq!(
        keys(journal, wanted.clone(), 1).await,
        expected[..expected.len().min(1)]
    );
    assert!(keys(journal, wanted, 0).await.is_empty());
}

pub(super) async fn finds_by_gateway_ref(journal: Arc<dyn Journal>) {
    let wanted = |namespace: &str, gateway: &str, id: &str| Wanted::GatewayRef {
        namespace: namespace.to_owned(),
        gateway: gateway.to_owned(),
        id: GatewayRef::new(id),
    };
    let mut found = Vec::new();
    for (sample, id, age) in [
        (Sample::charge(SHOP, "order-1"), "pi_1", 1),
        (Sample::charge(SHOP, "order-2"), "pi_1", 3),
        (Sample::charge(SHOP, "order-3"), "pi_2", 2),
        (Sample::charge("other/test", "order-1"), "pi_1", 4),
        (Sample::charge(SHOP, "order-4").gateway("other"), "pi_1", 5),
    ] {
        let record = older(&journal, sample, age).await;
        let mut paid = Succeeded::new(record.amount());
        paid.gateway_ref = Some(GatewayRef::new(id));
        found.push(
            replaced(&journal, &record, answered(&record, Outcome::Succeeded(paid)))
                .await
                .key(),
        );
    }
    older(&journal, Sample::charge(SHOP, "order-9"), 9).await;
    assert_found(&journal, wanted(SHOP, "sample", "pi_1"), &[found[1], found[0]]).await;
    assert_found(&journal, wanted(SHOP, "sample", "pi_2"), &[found[2]]).await;
    assert_found(&journal, wanted(SHOP, "sample", "PI_1"), &[]).await;
    assert_found(&journal, wanted("other/test", "sample", "pi_1"), &[found[3]]).await;
    assert_found(&journal, wanted(SHOP, "other", "pi_1"), &[found[4]]).await;
}

pub(super) async fn finds_by_wire_identity(journal: Arc<dyn Journal>) {
    let wanted = |namespace: &str, gateway: &str, identity: &str| Wanted::WireIdentity {
        namespace: namespace.to_owned(),
        gateway: gateway.to_owned(),
        identity: identity.to_owned(),
    };
    let first = reserved(&journal, &Sample::charge(SHOP, "order-1").identity("INV1")).await;
    let other = reserved(&journal, &Sample::charge("other/test", "order-1").identity("INV1")).await;
    let third = reserved(
        &journal,
        &Sample::charge(SHOP, "order-3").gateway("other").identity("INV1"),
    )
    .await;
    assert_found(&journal, wanted(SHOP, "sample", "INV1"), &[first.key()]).await;
    assert_found(&journal, wanted("other/test", "sample", "INV1"), &[other.key()]).await;
    assert_found(&journal, wanted(SHOP, "other", "INV1"), &[third.key()]).await;
    assert_found(&journal, wanted(SHOP, "sample", "inv1"), &[]).await;
    // Taken over with another identity: the old one leads nowhere.
    replaced(&journal, &first, released(&first)).await;
    let taken = reserved(&journal, &Sample::charge(SHOP, "order-1").identity("INV2")).await;
    assert_found(&journal, wanted(SHOP, "sample", "INV1"), &[]).await;
    assert_found(&journal, wanted(SHOP, "sample", "INV2"), &[taken.key()]).await;
}

pub(super) async fn finds_the_attempts_of_an_operation(journal: Arc<dyn Journal>) {
    let wanted = |namespace: &str, kind, reference: &str| Wanted::Attempts {
        namespace: namespace.to_owned(),
        kind,
        reference: reference.to_owned(),
    };
    let mut attempts = Vec::new();
    for (attempt, age) in [(1, 1), (2, 3), (3, 2)] {
        let record = older(&journal, Sample::charge(SHOP, "order-1").attempt(attempt), age).await;
        let mut declined = crate::outcome::Failed::new(FailureCategory::Declined);
        declined.gateway_ref = Some(GatewayRef::new("pi_1"));
        attempts.push(
            replaced(&journal, &record, answered(&record, Outcome::Failed(declined)))
                .await
                .key(),
        );
    }
    let refund = older(&journal, Sample::refund(SHOP, "order-1"), 9).await;
    let other = older(&journal, Sample::charge("other/test", "order-1"), 9).await;
    older(&journal, Sample::charge(SHOP, "order-10"), 9).await;
    let by_age = [attempts[1], attempts[2], attempts[0]];
    assert_found(&journal, wanted(SHOP, OperationKind::Charge, "order-1"), &by_age).await;
    assert_found(
        &journal,
        wanted(SHOP, OperationKind::Refund, "order-1"),
        &[refund.key()],
    )
    .await;
    assert_found(
        &journal,
        wanted("other/test", OperationKind::Charge, "order-1"),
        &[other.key()],
    )
    .await;
    assert_found(&journal, wanted(SHOP, OperationKind::Void, "order-1"), &[]).await;
}

pub(super) async fn finds_what_waits_for_a_person(journal: Arc<dyn Journal>) {
    let wanted = |namespace: &str| Wanted::InReview {
        namespace: namespace.to_owned(),
    };
    let mut waiting = Vec::new();
    for (reference, age) in [("order-a", 1), ("order-b", 3)] {
        let record = older(&journal, Sample::charge(SHOP, reference), age).await;
        let (mut record, mut lines) = (replaced(&journal, &record, lost(&record)).await, 0);
        // Looked at until somebody else has to.
        while !record.needs_review() {
            assert!(lines < 1000, "no number of looks brings it to a person");
            record = replaced(&journal, &record, looked(&record)).await;
            lines += 1;
        }
        waiting.push(record.key());
    }
    let unknown = older(&journal, Sample::charge(SHOP, "order-c"), 2).await;
    replaced(&journal, &unknown, lost(&unknown)).await;
    let conflict = older(&journal, Sample::charge(SHOP, "order-d"), 2).await;
    let conflict = replaced(&journal, &conflict, answered(&conflict, outcomes().remove(4))).await;
    assert_found(&journal, wanted(SHOP), &[waiting[1], conflict.key(), waiting[0]]).await;
    // Resolved after all.
    let record = journal.load(waiting[1]).await.unwrap().unwrap();
    replaced(&journal, &record, answered(&record, outcomes().remove(0))).await;
    assert_found(&journal, wanted(SHOP), &[conflict.key(), waiting[0]]).await;
    assert_found(&journal, wanted("nobody"), &[]).await;
}

pub(super) async fn finds_what_is_open(journal: Arc<dyn Journal>) {
    let wanted = |namespace: &str| Wanted::Open {
        namespace: namespace.to_owned(),
    };
    let sending = older(&journal, Sample::charge(SHOP, "order-a"), 1).await;
    let unknown = older(&journal, Sample::charge(SHOP, "order-b"), 3).await;
    let unknown = replaced(&journal, &unknown, lost(&unknown)).await;
    let pending = older(&journal, Sample::charge(SHOP, "order-c"), 2).await;
    let pending = replaced(&journal, &pending, answered(&pending, outcomes().remove(1))).await;
    for (reference, index) in [("order-d", 0), ("order-e", 2), ("order-f", 4)] {
        let record = older(&journal, Sample::charge(SHOP, reference), 9).await;
        replaced(&journal, &record, answered(&record, outcomes().remove(index))).await;
    }
    let record = older(&journal, Sample::charge(SHOP, "order-g"), 9).await;
    replaced(&journal, &record, released(&record)).await;
    let other = older(&journal, Sample::charge("other/test", "order-a"), 9).await;
    assert_found(&journal, wanted(SHOP), &[unknown.key(), pending.key(), sending.key()]).await;
    assert_found(&journal, wanted("other/test"), &[other.key()]).await;
    assert_found(&journal, wanted("nobody"), &[]).await;
}
