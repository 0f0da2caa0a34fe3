//! [`Journal::reserve`].

use super::{SHOP, assert_same, keys, lines, loaded, replaced, reserved};
use crate::journal::{Journal, Reservation, Wanted};
use crate::record::Record;
use crate::testing::conformance::sample::{NOW, Sample, answered, outcomes, released};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

pub(super) async fn stores_a_new_operation_and_its_first_line(journal: Arc<dyn Journal>) {
    let sample = Sample::refund(SHOP, "refund-1");
    assert!(journal.load(sample.key()).await.unwrap().is_none());
    assert!(journal.history(sample.key()).await.unwrap().is_empty());
    let record = reserved(&journal, &sample).await;
    assert_same(&record, &sample.record());
    assert_same(&loaded(&journal, sample.key()).await, &record);
    assert_eq!(journal.history(sample.key()).await.unwrap(), [sample.line()]);
}

pub(super) async fn returns_an_operation_that_exists(journal: Arc<dyn Journal>) {
    let mut stored = vec![reserved(&journal, &Sample::charge(SHOP, "order-0")).await];
    for (number, outcome) in outcomes().into_iter().enumerate() {
        let record = reserved(&journal, &Sample::charge(SHOP, &format!("order-{}", number + 1))).await;
        stored.push(replaced(&journal, &record, answered(&record, outcome)).await);
    }
    for stored in stored {
        let before = lines(&journal, stored.key()).await;
        let again = Sample::charge(SHOP, stored.reference().as_str()).description("other content");
        let answer = journal.reserve(&again.record(), &again.line()).await.unwrap();
        let Reservation::Existing(existing) = answer else {
            panic!("{answer:?}");
        };
        assert_same(&existing, &stored);
        assert_same(&loaded(&journal, stored.key()).await, &stored);
        assert_eq!(lines(&journal, stored.key()).await, before);
    }
}

/// The stored key counts. A later version may derive another one for the same attempt.
pub(super) async fn goes_by_the_attempt_and_not_by_the_key(journal: Arc<dyn Journal>) {
    let old = Sample::charge(SHOP, "order-1").under_key_of(&Sample::charge("older", "order-1"));
    let stored = reserved(&journal, &old).await;
    let new = Sample::charge(SHOP, "order-1");
    let answer = journal.reserve(&new.record(), &new.line()).await.unwrap();
    let Reservation::Existing(existing) = answer else {
        panic!("{answer:?}");
    };
    assert_same(&existing, &stored);
    let released = replaced(&journal, &stored, released(&stored)).await;
    let taken = reserved(&journal, &new).await;
    assert_eq!((taken.key(), taken.version()), (stored.key(), released.version() + 1));
    assert!(journal.load(new.key()).await.unwrap().is_none());
    assert_same(&loaded(&journal, stored.key()).await, &taken);
}

pub(super) async fn takes_the_place_of_a_released_one(journal: Arc<dyn Journal>) {
    let record = reserved(&journal, &Sample::charge(SHOP, "order-1")).await;
    let free = replaced(&journal, &record, released(&record)).await;
    let later = Sample::charge(SHOP, "order-1")
        .description("other content")
        .at(NOW.after(Duration::from_secs(600)));
    let taken = reserved(&journal, &later).await;
    assert_same(&taken, &later.record().in_place_of(&free));
    assert_eq!(taken.created_at(), NOW);
    assert_same(&loaded(&journal, record.key()).await, &taken);
    assert_eq!(lines(&journal, record.key()).await, 3);
}

pub(super) async fn is_blocked_by_an_attempt_that_may_have_taken_money(journal: Arc<dyn Journal>) {
    let mut others = vec![("order-a".to_owned(), None)];
    others.extend(
        (0..)
            .map(|number| format!("order-{number}"))
            .zip(outcomes().into_iter().map(Some)),
    );
    for (reference, outcome) in others {
        let mut other = reserved(&journal, &Sample::charge(SHOP, &reference).attempt(2)).await;
        if let Some(outcome) = outcome {
            other = replaced(&journal, &other, answered(&other, outcome)).await;
        }
        // Neither the attempt after it nor the one before it.
        for attempt in [1, 3] {
            let offered = Sample::charge(SHOP, &reference).attempt(attempt);
            let answer = journal.reserve(&offered.record(), &offered.line()).await.unwrap();
            if other.blocks_other_attempts() {
                let Reservation::Blocked(by) = answer else {
                    panic!("beside {}: {answer:?}", other.state_word());
                };
                assert_same(&by, &other);
                assert_not_stored(&journal, &offered).await;
            } else {
                let Reservation::New(record) = answer else {
                    panic!("beside {}: {answer:?}", other.state_word());
                };
                replaced(&journal, &record, released(&record)).await;
            }
        }
    }
    // Other operations are not concerned.
    reserved(&journal, &Sample::charge("other/test", "order-a")).await;
    reserved(&journal, &Sample::refund(SHOP, "order-a")).await;
}

pub(super) async fn refuses_an_identity_that_is_taken(journal: Arc<dyn Journal>) {
    let holder = reserved(&journal, &Sample::charge(SHOP, "order-1").identity("INV1")).await;
    // For ever, also after a failure: the gateway has seen it.
    let holder = replaced(&journal, &holder, answered(&holder, outcomes().remove(2))).await;
    for offered in [
        Sample::charge(SHOP, "order-2").identity("INV1"),
        Sample::charge(SHOP, "order-1").attempt(2).identity("INV1"),
        Sample::refund(SHOP, "order-1").identity("INV1"),
    ] {
        let answer = journal.reserve(&offered.record(), &offered.line()).await.unwrap();
        let Reservation::IdentityTaken(other) = answer else {
            panic!("{answer:?}");
        };
        assert_same(&other, &holder);
        assert_not_stored(&journal, &offered).await;
    }
    reserved(&journal, &Sample::charge("other/test", "order-1").identity("INV1")).await;
    reserved(
        &journal,
        &Sample::charge(SHOP, "order-3").identity("INV1").gateway("other"),
    )
    .await;
    reserved(&journal, &Sample::charge(SHOP, "order-4").identity("inv1")).await;
}

pub(super) async fn frees_the_identity_of_a_released_one(journal: Arc<dyn Journal>) {
    let record = reserved(&journal, &Sample::charge(SHOP, "order-1").identity("INV1")).await;
    replaced(&journal, &record, released(&record)).await;
    reserved(
        &journal,
        &Sample::charge(SHOP, "order-1").identity("pi").gateway("other"),
    )
    .await;
    reserved(&journal, &Sample::charge(SHOP, "order-2").identity("INV1")).await;
}

pub(super) async fn looks_for_the_same_attempt_first_and_the_identity_last(journal: Arc<dyn Journal>) {
    let first = reserved(&journal, &Sample::charge(SHOP, "order-1").identity("INV1")).await;
    let first = replaced(&journal, &first, answered(&first, outcomes().remove(2))).await;
    let second = reserved(&journal, &Sample::charge(SHOP, "order-1").attempt(2).identity("INV2")).await;
    reserved(&journal, &Sample::charge(SHOP, "order-9").identity("INV9")).await;
    let again = Sample::charge(SHOP, "order-1").identity("INV9");
    let answer = journal.reserve(&again.record(), &again.line()).await.unwrap();
    let Reservation::Existing(existing) = answer else {
        panic!("{answer:?}");
    };
    assert_same(&existing, &first);
    let third = Sample::charge(SHOP, "order-1").attempt(3).identity("INV9");
    let answer = journal.reserve(&third.record(), &third.line()).await.unwrap();
    let Reservation::Blocked(by) = answer else {
        panic!("{answer:?}");
    };
    assert_same(&by, &second);
}

pub(super) async fn has_one_winner(journal: Arc<dyn Journal>) {
    let sample = Sample::charge(SHOP, "order-1");
    let (new, existing) = race(&journal, vec![sample.clone(); 64]).await;
    assert_eq!((new.len(), existing.len()), (1, 63));
    for reservation in existing {
        let answer = reservation;
        let Reservation::Existing(record) = answer else {
            panic!("{answer:?}");
        };
        assert_same(&record, &new[0]);
    }
    assert_eq!(lines(&journal, sample.key()).await, 1);
}

pub(super) async fn has_one_winner_among_attempts_and_identities(journal: Arc<dyn Journal>) {
    let attempts = (1..=32)
        .map(|attempt| Sample::charge(SHOP, "order-1").attempt(attempt))
        .collect();
    let (new, losers) = race(&journal, attempts).await;
    assert_eq!(new.len(), 1);
    assert!(
        losers
            .iter()
            .all(|it| matches!(it, Reservation::Blocked(by) if by.key() == new[0].key()))
    );

    let sharers = (1..=32).map(|number| Sample::charge(SHOP, &format!("shared-{number}")).identity("INV1"));
    let (new, losers) = race(&journal, sharers.collect()).await;
    assert_eq!(new.len(), 1);
    assert!(
        losers
            .iter()
            .all(|it| matches!(it, Reservation::IdentityTaken(by) if by.key() == new[0].key()))
    );
    let open = Wanted::Open {
        namespace: SHOP.to_owned(),
    };
    assert_eq!(keys(&journal, open, 100).await.len(), 2);
}

/// All at a time; who got it, and what the others were told.
async fn race(journal: &Arc<dyn Journal>, samples: Vec<Sample>) -> (Vec<Record>, Vec<Reservation>) {
    let mut tasks = JoinSet::new();
    for sample in samples {
        let journal = Arc::clone(journal);
        tasks.spawn(async move { journal.reserve(&sample.record(), &sample.line()).await.unwrap() });
    }
    let (mut new, mut losers) = (Vec::new(), Vec::new());
    for reservation in tasks.join_all().await {
        match reservation {
            Reservation::New(record) => new.push(record),
            other @ (Reservation::Existing(_) | Reservation::Blocked(_) | Reservation::IdentityTaken(_)) => {
                losers.push(other);
            }
        }
    }
    (new, losers)
}

async fn assert_not_stored(journal: &Arc<dyn Journal>, sample: &Sample) {
    assert!(journal.load(sample.key()).await.unwrap().is_none());
    assert!(journal.history(sample.key()).await.unwrap().is_empty());
}
