//! [`Journal::claim_due`].

use super::{SHOP, assert_same, lines, loaded, replaced, reserved};
use crate::clock::Timestamp;
use crate::journal::{Journal, Replaced};
use crate::operation::OperationKey;
use crate::record::{Lease, Record};
use crate::testing::conformance::sample::{LEASE, NOW, Sample, answered, lost, outcomes, released};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

async fn claimed(journal: &Arc<dyn Journal>, now: Timestamp, limit: usize) -> Vec<Record> {
    let lease = Lease::new("worker/1", now.after(LEASE));
    journal.claim_due(SHOP, now, &lease, limit).await.unwrap()
}

pub(super) async fn takes_what_is_due_longest_due_first(journal: Arc<dyn Journal>) {
    let mut records = Vec::new();
    for (reference, seconds) in [("order-1", 30), ("order-2", 10), ("order-3", 20), ("order-4", 40)] {
        records.push(reserved(&journal, &Sample::charge(SHOP, reference).at(after(seconds))).await);
    }
    let due = |seconds| after(seconds).after(LEASE);
    assert!(
        claimed(&journal, due(10).before(Duration::from_millis(1)), 9)
            .await
            .is_empty()
    );
    assert!(claimed(&journal, due(40), 0).await.is_empty());
    let taken = claimed(&journal, due(30), 2).await;
    let expected = [&records[1], &records[2]];
    assert_eq!(taken.len(), 2);
    for (taken, record) in taken.iter().zip(expected) {
        let lease = Lease::new("worker/1", due(30).after(LEASE));
        assert_same(taken, &record.clone().leased(lease));
        assert_same(&loaded(&journal, record.key()).await, taken);
        assert_eq!(lines(&journal, record.key()).await, 1);
    }
    let rest: Vec<_> = claimed(&journal, due(40), 9).await.iter().map(Record::key).collect();
    assert_eq!(rest, [records[0].key(), records[3].key()]);
}

pub(super) async fn takes_only_what_is_open_and_in_the_namespace(journal: Arc<dyn Journal>) {
    reserved(&journal, &Sample::charge("other/test", "order-1")).await;
    let record = reserved(&journal, &Sample::charge(SHOP, "order-0")).await;
    replaced(&journal, &record, released(&record)).await;
    let mut open = BTreeSet::new();
    for (number, outcome) in outcomes().into_iter().enumerate() {
        let record = reserved(&journal, &Sample::charge(SHOP, &format!("order-{}", number + 1))).await;
        let settled = outcome.is_settled();
        let record = replaced(&journal, &record, answered(&record, outcome)).await;
        if !settled {
            open.insert(record.key());
        }
    }
    let taken = claimed(&journal, after(86_400), 100).await;
    assert_eq!(taken.iter().map(Record::key).collect::<BTreeSet<_>>(), open);
}

pub(super) async fn fences_whoever_read_before(journal: Arc<dyn Journal>) {
    let before = reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let taken = claimed(&journal, after(60), 1).await.remove(0);
    let (next, line) = lost(&before);
    let answer = journal.replace(before.version(), &next, &line, None).await.unwrap();
    let Replaced::Stale(current) = answer else {
        panic!("{answer:?}");
    };
    assert_same(&current, &taken);
    replaced(&journal, &taken, answered(&taken, outcomes().remove(0))).await;
}

pub(super) async fn hands_out_again_when_the_lease_has_ended(journal: Arc<dyn Journal>) {
    reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let first = claimed(&journal, after(60), 9).await;
    assert_eq!(first.len(), 1);
    assert!(claimed(&journal, after(119), 9).await.is_empty());
    let second = claimed(&journal, after(120), 9).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].version(), first[0].version() + 1);
    let (late, line) = lost(&first[0]);
    let replaced = journal.replace(first[0].version(), &late, &line, None).await;
    assert!(
        matches!(replaced.unwrap(), Replaced::Stale(_)),
        "the first worker came too late"
    );
}

pub(super) async fn hands_out_to_one_of_many(journal: Arc<dyn Journal>) {
    let mut all = BTreeSet::new();
    for number in 0..40 {
        all.insert(
            reserved(&journal, &Sample::charge(SHOP, &format!("order-{number}")))
                .await
                .key(),
        );
    }
    let mut workers = JoinSet::new();
    for number in 0..8 {
        let journal = Arc::clone(&journal);
        workers.spawn(async move {
            let lease = Lease::new(format!("worker/{number}"), after(999));
            let mut mine: Vec<OperationKey> = Vec::new();
            for _ in 0..40 {
                let claimed = journal.claim_due(SHOP, after(60), &lease, 3).await.unwrap();
                if claimed.is_empty() {
                    break;
                }
                mine.extend(claimed.iter().map(Record::key));
            }
            mine
        });
    }
    let taken = workers.join_all().await.concat();
    assert_eq!(taken.len(), all.len());
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), all);
}
