//! [`Journal::prune`].

use super::{SHOP, lines, loaded, replaced, reserved};
use crate::journal::{Journal, Pruned, Replaced, Reservation};
use crate::record::Record;
use crate::testing::conformance::sample::{NOW, Sample, answered, lost, outcomes, released};
use std::sync::Arc;
use std::time::Duration;

/// Paid `age` seconds before the samples' present, with an event.
async fn paid(journal: &Arc<dyn Journal>, reference: &str, age: u64) -> Record {
    let sample = Sample::charge(SHOP, reference).at(NOW.before(Duration::from_secs(age)));
    let record = reserved(journal, &sample).await;
    let (next, line) = answered(&record, outcomes().remove(0));
    let event = format!("evt-{reference}");
    let stored = journal.replace(record.version(), &next, &line, Some(&event)).await;
    assert!(matches!(stored.unwrap(), Replaced::Stored));
    next
}

pub(super) async fn forgets_what_is_over_and_old_in_small_steps(journal: Arc<dyn Journal>) {
    let mut old = Vec::new();
    for number in 0..5 {
        old.push(paid(&journal, &format!("old-{number}"), 1_000 + number).await);
    }
    let young = paid(&journal, "young", 10).await;
    let before = NOW.before(Duration::from_secs(500));
    assert_eq!(journal.prune(SHOP, before, 2).await.unwrap(), Pruned::new(2, 2));
    // The longest unchanged first.
    assert!(journal.load(old[4].key()).await.unwrap().is_none());
    assert!(journal.load(old[3].key()).await.unwrap().is_none());
    assert_eq!(lines(&journal, old[0].key()).await, 2);
    assert_eq!(journal.prune(SHOP, before, 100).await.unwrap(), Pruned::new(3, 3));
    assert_eq!(journal.prune(SHOP, before, 100).await.unwrap(), Pruned::new(0, 0));
    for record in &old {
        assert!(journal.load(record.key()).await.unwrap().is_none());
        assert_eq!(
            lines(&journal, record.key()).await,
            0,
            "no history without its operation"
        );
    }
    assert_eq!(loaded(&journal, young.key()).await.version(), young.version());
    assert_eq!(journal.prune("other/test", NOW, 100).await.unwrap(), Pruned::default());
    // What was forgotten may begin anew: reference, identity and event are free again.
    let sample = Sample::charge(SHOP, "old-0");
    let again = journal.reserve(&sample.record(), &sample.line()).await.unwrap();
    let Reservation::New(again) = again else {
        panic!("{again:?}")
    };
    let (next, line) = answered(&again, outcomes().remove(0));
    let stored = journal.replace(again.version(), &next, &line, Some("evt-old-0")).await;
    assert!(matches!(stored.unwrap(), Replaced::Stored));
}

pub(super) async fn keeps_what_is_open_or_waits_for_a_person(journal: Arc<dyn Journal>) {
    let sample = |reference: &str| Sample::charge(SHOP, reference).at(NOW.before(Duration::from_secs(100_000)));
    let sending = reserved(&journal, &sample("sending")).await;
    let unknown = reserved(&journal, &sample("unknown")).await;
    let unknown = replaced(&journal, &unknown, lost(&unknown)).await;
    let mut kept = vec![sending.key(), unknown.key()];
    // Pending, and a conflict.
    for (reference, index) in [("pending", 1), ("conflict", 4)] {
        let record = reserved(&journal, &sample(reference)).await;
        kept.push(
            replaced(&journal, &record, answered(&record, outcomes().remove(index)))
                .await
                .key(),
        );
    }
    let free = reserved(&journal, &sample("released")).await;
    let free = replaced(&journal, &free, released(&free)).await;
    assert_eq!(journal.prune(SHOP, NOW, 100).await.unwrap(), Pruned::new(1, 0));
    assert!(journal.load(free.key()).await.unwrap().is_none());
    for key in kept {
        assert!(journal.load(key).await.unwrap().is_some());
    }
}
