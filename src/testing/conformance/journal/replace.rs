//! [`Journal::replace`].

use super::{SHOP, assert_same, lines, loaded, replaced, reserved};
use crate::journal::{Journal, Replaced};
use crate::testing::conformance::sample::{Sample, answered, lost, outcomes};
use std::sync::Arc;
use tokio::task::JoinSet;

pub(super) async fn stores_when_the_version_is_the_expected_one(journal: Arc<dyn Journal>) {
    let sample = Sample::charge(SHOP, "order-1");
    let first = reserved(&journal, &sample).await;
    let (second, second_line) = lost(&first);
    let (third, third_line) = answered(&second, outcomes().remove(0));
    replaced(&journal, &first, (second.clone(), second_line.clone())).await;
    assert_same(&loaded(&journal, first.key()).await, &second);
    replaced(&journal, &second, (third.clone(), third_line.clone())).await;
    assert_same(&loaded(&journal, first.key()).await, &third);
    let history = journal.history(first.key()).await.unwrap();
    assert_eq!(history, [sample.line(), second_line, third_line]);
}

pub(super) async fn returns_what_is_stored_when_stale(journal: Arc<dyn Journal>) {
    let first = reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let current = replaced(&journal, &first, lost(&first)).await;
    let (next, line) = answered(&first, outcomes().remove(0));
    for wrong in [first.version(), current.version() + 1, 0, u64::MAX] {
        let answer = journal.replace(wrong, &next, &line, Some("evt_1")).await.unwrap();
        let Replaced::Stale(stored) = answer else {
            panic!("{answer:?}");
        };
        assert_same(&stored, &current);
    }
    assert_same(&loaded(&journal, first.key()).await, &current);
    assert_eq!(lines(&journal, first.key()).await, 2);
    // Nor does the event count as seen.
    let (next, line) = answered(&current, outcomes().remove(0));
    let again = journal.replace(current.version(), &next, &line, Some("evt_1")).await;
    assert!(matches!(again.unwrap(), Replaced::Stored));
}

pub(super) async fn sees_an_event_once_and_in_one_step_with_the_state(journal: Arc<dyn Journal>) {
    let first = reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let (next, line) = answered(&first, outcomes().remove(0));
    let stored = journal.replace(first.version(), &next, &line, Some("evt_1")).await;
    assert!(matches!(stored.unwrap(), Replaced::Stored));
    assert_same(&loaded(&journal, first.key()).await, &next);
    // Delivered again: with a stale copy, with a fresh one, and for another operation.
    let other = reserved(&journal, &Sample::charge(SHOP, "order-2")).await;
    for from in [&first, &next, &other] {
        let (again, line) = lost(from);
        let seen = journal.replace(from.version(), &again, &line, Some("evt_1")).await;
        assert!(matches!(seen.unwrap(), Replaced::Seen));
    }
    assert_same(&loaded(&journal, first.key()).await, &next);
    assert_same(&loaded(&journal, other.key()).await, &other);
    assert_eq!(lines(&journal, first.key()).await, 2);
}

pub(super) async fn knows_events_by_namespace_and_gateway(journal: Arc<dyn Journal>) {
    for sample in [
        Sample::charge(SHOP, "order-1"),
        Sample::charge("other/test", "order-1"),
        Sample::charge(SHOP, "order-2").gateway("other"),
    ] {
        let record = reserved(&journal, &sample).await;
        let (next, line) = lost(&record);
        let stored = journal.replace(record.version(), &next, &line, Some("evt_1")).await;
        assert!(matches!(stored.unwrap(), Replaced::Stored));
    }
}

pub(super) async fn refuses_an_operation_that_was_never_reserved(journal: Arc<dyn Journal>) {
    let sample = Sample::charge(SHOP, "order-1");
    let (next, line) = lost(&sample.record());
    for expected in [0, 1, next.version()] {
        let error = journal
            .replace(expected, &next, &line, Some("evt_1"))
            .await
            .unwrap_err();
        assert!(!error.is_transient());
    }
    assert!(journal.load(sample.key()).await.unwrap().is_none());
    assert!(journal.history(sample.key()).await.unwrap().is_empty());
    let other = reserved(&journal, &Sample::charge(SHOP, "order-2")).await;
    let (next, line) = lost(&other);
    let stored = journal.replace(other.version(), &next, &line, Some("evt_1")).await;
    assert!(matches!(stored.unwrap(), Replaced::Stored), "the event was not seen");
}

pub(super) async fn has_one_winner(journal: Arc<dyn Journal>) {
    let first = reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let (journal, first) = (Arc::clone(&journal), first.clone());
        tasks.spawn(async move {
            let (next, mut line) = lost(&first);
            line.note = format!("writer {number}").into();
            (
                number,
                journal.replace(first.version(), &next, &line, None).await.unwrap(),
            )
        });
    }
    let mut winners = Vec::new();
    for (number, replaced) in tasks.join_all().await {
        match replaced {
            Replaced::Stored => winners.push(format!("writer {number}")),
            Replaced::Stale(current) => assert_eq!(current.version(), first.version() + 1),
            Replaced::Seen => panic!("there was no event"),
        }
    }
    let history = journal.history(first.key()).await.unwrap();
    let notes: Vec<_> = history.iter().skip(1).map(|line| line.note.to_string()).collect();
    assert_eq!((winners.len(), notes), (1, winners));
}

pub(super) async fn gives_an_event_to_one_of_many(journal: Arc<dyn Journal>) {
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let record = reserved(&journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        let journal = Arc::clone(&journal);
        tasks.spawn(async move {
            let (next, line) = lost(&record);
            let replaced = journal.replace(record.version(), &next, &line, Some("evt_1")).await;
            (record, next, replaced.unwrap())
        });
    }
    let mut stored = 0;
    for (before, after, replaced) in tasks.join_all().await {
        let now = loaded(&journal, before.key()).await;
        match replaced {
            Replaced::Stored => {
                stored += 1;
                assert_same(&now, &after);
            }
            Replaced::Seen => assert_same(&now, &before),
            Replaced::Stale(current) => panic!("{current:?}"),
        }
    }
    assert_eq!(stored, 1);
}
