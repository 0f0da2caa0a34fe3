//! The worker that finishes what was left open, and never sends anything but inquiries.

use crate::scripted::Scripted;
use crate::shop::{NOW, Shop, assert_is, charge};
use payonce::engine::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::Inquiry;
use payonce::journal::MemoryJournal;
use payonce::outcome::{Outcome, Succeeded};
use payonce::reconcile::Reconciler;
use payonce::retry::RetryPolicy;
use payonce::testing::ManualClock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

fn one_attempt() -> RetryPolicy {
    RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    }
}

#[tokio::test]
async fn what_is_unknown_is_resolved_within_seconds_and_by_reading_only() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    for number in 0..10 {
        shop.gateway.answer_lost_after_effect(&format!("order-{number}"));
    }
    shop.gateway.inquiries_fail(10);
    for number in 0..10 {
        assert_is(
            &shop
                .payments
                .execute(&charge(&format!("order-{number}")))
                .await
                .unwrap(),
            "unknown",
        );
    }
    let worker = Reconciler::new(shop.payments.clone());
    assert_eq!(worker.run_once().await.unwrap().looked_at, 0, "nothing is due yet");
    // Each failed once already, so the second look is at most 6 seconds off.
    shop.clock.advance(Duration::from_secs(6));
    let round = worker.run_once().await.unwrap();
    assert_eq!((round.looked_at, round.settled), (10, 10));
    assert!(shop.payments.unresolved(10).await.unwrap().is_empty());
    assert_eq!(shop.gateway.sends().len(), 10);
}

#[tokio::test]
async fn what_a_dead_process_was_sending_is_found_after_its_lease() {
    let shop = Shop::new();
    let _held = shop.gateway.slow("order-1");
    let payments = shop.payments.clone();
    let dead = tokio::spawn(async move { payments.execute(&charge("order-1")).await });
    while shop.gateway.sends().is_empty() {
        tokio::task::yield_now().await;
    }
    let other = shop.another_process();
    let worker = Reconciler::new(other.payments.clone());
    assert_eq!(worker.run_once().await.unwrap().looked_at, 0, "the lease is alive");
    shop.clock.advance(Duration::from_secs(120));
    assert_eq!(worker.run_once().await.unwrap().looked_at, 1);
    let key = shop.payments.key(&charge("order-1"));
    assert_is(&other.payments.look_up(key).await.unwrap().unwrap(), "unknown");
    assert_eq!(shop.gateway.sends().len(), 1);
    dead.abort();
}

#[tokio::test]
async fn two_workers_do_not_look_at_the_same_operation() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.answer_lost_before_effect("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    shop.clock.advance(Duration::from_secs(30));
    let before = shop.gateway.inquiries().len();
    let one = Reconciler::new(shop.payments.clone());
    let two = Reconciler::new(shop.another_process().payments);
    let (one, two) = tokio::join!(one.run_once(), two.run_once());
    assert_eq!(one.unwrap().looked_at + two.unwrap().looked_at, 1);
    assert_eq!(shop.gateway.inquiries().len(), before + 1);
}

#[tokio::test]
async fn run_until_stops_when_told() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.answer_lost_after_effect("order-1").inquiries_fail(1);
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Reconciler::new(shop.payments.clone());
    let running = tokio::spawn(async move {
        worker.run_until(async move { stopped.await.unwrap_or_default() }).await;
    });
    for _ in 0..1_000 {
        if shop.payments.unresolved(1).await.unwrap().is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    running.await.unwrap();
    let key = shop.payments.key(&charge("order-1"));
    assert_is(&shop.payments.look_up(key).await.unwrap().unwrap(), "succeeded");
}

#[tokio::test]
async fn c70_an_outage_makes_no_storm_and_nobody_is_given_up() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    for number in 0..200 {
        shop.gateway.answer_lost_after_effect(&format!("order-{number}"));
    }
    shop.gateway.inquiries_fail_always(true);
    for number in 0..200 {
        assert_is(
            &shop
                .payments
                .execute(&charge(&format!("order-{number}")))
                .await
                .unwrap(),
            "unknown",
        );
    }
    let already = shop.gateway.inquiries().len();
    let workers: Vec<_> = (0..4)
        .map(|_| Reconciler::new(shop.another_process().payments))
        .collect();
    let mut by_minute = Vec::new();
    for _minute in 0..10 {
        let before = shop.gateway.inquiries().len();
        for _half in 0..2 {
            for worker in &workers {
                while worker.run_once().await.unwrap().looked_at > 0 {}
            }
            shop.clock.advance(Duration::from_secs(30));
        }
        by_minute.push(shop.gateway.inquiries().len() - before);
    }
    let mut by_operation: HashMap<_, usize> = HashMap::new();
    for asked in shop.gateway.inquiries().split_off(already) {
        *by_operation.entry(asked.reference).or_default() += 1;
    }
    assert!(by_operation.values().all(|looks| *looks < 10), "{by_operation:?}");
    assert!(by_minute.iter().all(|looks| *looks <= 400), "{by_minute:?}");
    assert!(by_minute[8] < by_minute[0], "{by_minute:?}");

    shop.gateway.inquiries_fail_always(false);
    for _ in 0..60 {
        for worker in &workers {
            while worker.run_once().await.unwrap().looked_at > 0 {}
        }
        shop.clock.advance(Duration::from_secs(60));
    }
    for number in 0..200 {
        let key = shop.payments.key(&charge(&format!("order-{number}")));
        assert_is(&shop.payments.look_up(key).await.unwrap().unwrap(), "succeeded");
    }
    assert_eq!(
        shop.gateway.sends().len(),
        200,
        "the workers sent nothing but inquiries"
    );
}

#[tokio::test]
async fn an_inquiry_that_fails_is_no_look_and_one_that_finds_nothing_is() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()).inquiries(100_000, 100_000));
    let key = shop.payments.key(&charge("order-1"));
    shop.gateway.answer_lost_before_effect("order-1").inquiries_fail(30);
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    let worker = Reconciler::new(shop.payments.clone());
    let record = || async { shop.payments.unresolved(9).await.unwrap().pop().unwrap() };
    // A gateway that is down for a week: nobody's turn yet, and no storm.
    let asked = shop.gateway.inquiries().len();
    for _ in 0..7 * 24 {
        shop.clock.advance(Duration::from_secs(3600));
        worker.run_once().await.unwrap();
    }
    assert!(shop.gateway.inquiries().len() - asked <= 60);
    let open = record().await;
    assert!(open.failed_looks() < 31 && !open.needs_review(), "{open:?}");
    assert_eq!(open.key(), key);
}

#[tokio::test]
async fn what_days_of_looks_do_not_find_waits_for_a_person_and_is_looked_at_once_a_day() {
    let gateway = Arc::new(Scripted::new(
        |_| Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        |_| Ok(Inquiry::Absent { consistent: false }),
    ));
    let clock = Arc::new(ManualClock::at(NOW));
    let payments = Payments::builder()
        .namespace("shop/test")
        .gateway(Arc::<Scripted>::clone(&gateway))
        .journal(Arc::new(MemoryJournal::new()))
        .clock(Arc::clone(&clock) as _)
        .policy(one_attempt())
        .build()
        .unwrap();
    let key = payments.key(&charge("order-1"));
    assert_is(&payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    let worker = Reconciler::new(payments.clone());
    let mut hours = 0;
    while payments.review_queue(9).await.unwrap().is_empty() {
        clock.advance(Duration::from_secs(3600));
        worker.run_once().await.unwrap();
        hours += 1;
        assert!(hours < 24 * 14, "never");
    }
    assert!(hours > 24 * 2, "after {hours} hours");
    let waiting = payments.review_queue(9).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].key()), (1, key));
    let before = waiting[0].looks();
    for _ in 0..24 * 10 {
        clock.advance(Duration::from_secs(3600));
        worker.run_once().await.unwrap();
    }
    let heartbeats = payments.review_queue(9).await.unwrap()[0].looks() - before;
    assert!((10..=21).contains(&heartbeats), "{heartbeats}");
    assert_eq!(gateway.sent().len(), 1, "the worker never sends");
}

#[tokio::test]
async fn an_adapter_that_panics_ends_its_own_look_and_no_other() {
    let gateway = Arc::new(Scripted::new(
        |_| Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        |record| match record.reference().as_str() {
            "order-1" => panic!("on purpose"),
            _ => Ok(Inquiry::Found(Outcome::Succeeded(Succeeded::new(record.amount())))),
        },
    ));
    let clock = Arc::new(ManualClock::at(NOW));
    let shop = |clock: &Arc<ManualClock>| {
        Payments::builder()
            .namespace("shop/test")
            .gateway(Arc::<Scripted>::clone(&gateway))
            .clock(Arc::clone(clock) as _)
            .policy(one_attempt())
    };
    let journal = Arc::new(MemoryJournal::new());
    let payments = shop(&clock).journal(Arc::clone(&journal) as _).build().unwrap();
    for reference in ["order-1", "order-2"] {
        // The panic of its own inquiry ends the call as in flight.
        let _ = payments.execute(&charge(reference)).await.unwrap();
    }
    clock.advance(Duration::from_secs(300));
    let worker = Reconciler::new(payments.clone());
    for _ in 0..2 {
        worker.run_once().await.unwrap();
        clock.advance(Duration::from_secs(300));
    }
    assert_is(
        &payments
            .look_up(payments.key(&charge("order-2")))
            .await
            .unwrap()
            .unwrap(),
        "succeeded",
    );
    assert_is(
        &payments
            .look_up(payments.key(&charge("order-1")))
            .await
            .unwrap()
            .unwrap(),
        "unknown",
    );
}
