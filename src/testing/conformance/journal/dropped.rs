//! A caller who goes away in the middle of a step.

use super::{SHOP, assert_same, lines, loaded, reserved};
use crate::journal::{Journal, Reservation};
use crate::record::Record;
use crate::testing::conformance::sample::{Sample, answered, lost, outcomes};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Polls a step so many times and lets it go.
async fn let_go_after<T>(polls: usize, step: impl Future<Output = T>) {
    let mut step = pin!(step);
    for _ in 0..polls {
        let over = poll_fn(|context| Poll::Ready(step.as_mut().poll(context).is_ready())).await;
        if over {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// What is stored once nobody works at it any more: a step that was begun may end without its caller.
async fn settled(journal: &Arc<dyn Journal>, record: &Record) -> Record {
    let mut last = loaded(journal, record.key()).await;
    let mut quiet = 0;
    while quiet < 40 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let now = loaded(journal, record.key()).await;
        quiet = if now.version() == last.version() { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

pub(super) async fn leaves_the_old_or_the_new(journal: Arc<dyn Journal>) {
    for polls in 0..6 {
        let sample = Sample::charge(SHOP, &format!("order-{polls}"));
        let first = reserved(&journal, &sample).await;
        let (next, line) = answered(&first, outcomes().remove(0));
        let_go_after(
            polls,
            journal.replace(first.version(), &next, &line, Some(&format!("dropped-{polls}"))),
        )
        .await;
        let stored = settled(&journal, &first).await;
        let new = stored.version() == next.version();
        assert_same(&stored, if new { &next } else { &first });
        // State, line and event belong together.
        assert_eq!(lines(&journal, first.key()).await, if new { 2 } else { 1 });
        let other = reserved(&journal, &Sample::charge(SHOP, &format!("other-{polls}"))).await;
        let (next, line) = lost(&other);
        let event = format!("evt-{polls}");
        let answer = journal
            .replace(other.version(), &next, &line, Some(&event))
            .await
            .unwrap();
        assert!(
            matches!(answer, crate::journal::Replaced::Stored),
            "the journal goes on"
        );
    }
}

pub(super) async fn reserves_whole_or_not_at_all(journal: Arc<dyn Journal>) {
    for polls in 0..6 {
        let sample = Sample::charge(SHOP, &format!("order-{polls}"));
        let (record, line) = (sample.record(), sample.line());
        let_go_after(polls, journal.reserve(&record, &line)).await;
        // Whoever comes next is the first, or finds the whole of it.
        match journal.reserve(&record, &line).await.unwrap() {
            Reservation::New(stored) | Reservation::Existing(stored) => assert_same(&stored, &record),
            other @ (Reservation::Blocked(_) | Reservation::IdentityTaken(_)) => panic!("{other:?}"),
        }
        assert_same(&loaded(&journal, record.key()).await, &record);
        assert_eq!(lines(&journal, record.key()).await, 1);
    }
}
