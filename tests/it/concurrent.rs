//! Many callers, one payment.

use crate::shop::{Shop, assert_is, charge};
use payonce::error::Error;
use payonce::outcome::Outcome;
use payonce::testing::MockGateway;
use std::time::Duration;
use tokio::task::JoinSet;

/// Lets everything that can run, run.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

async fn sent(gateway: &MockGateway, times: usize) {
    for _ in 0..1_000 {
        if gateway.sends().len() >= times {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not sent");
}

#[tokio::test]
async fn a_double_click_is_one_payment_and_both_see_it() {
    let shop = Shop::new();
    let release = shop.gateway.slow("order-1");
    let mut callers = JoinSet::new();
    for _ in 0..32 {
        let payments = shop.payments.clone();
        callers.spawn(async move { payments.execute(&charge("order-1")).await.unwrap() });
    }
    sent(&shop.gateway, 1).await;
    settle().await;
    release.release();
    while let Some(outcome) = callers.join_next().await {
        assert_is(&outcome.unwrap(), "succeeded");
    }
    assert_eq!(shop.gateway.sends().len(), 1);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn a_double_click_in_two_processes_is_one_payment() {
    let shop = Shop::new();
    let other = shop.another_process();
    let release = shop.gateway.slow("order-1");
    let first = tokio::spawn({
        let payments = shop.payments.clone();
        async move { payments.execute(&charge("order-1")).await.unwrap() }
    });
    sent(&shop.gateway, 1).await;
    let second = tokio::spawn(async move { other.payments.execute(&charge("order-1")).await.unwrap() });
    settle().await;
    release.release();
    assert_is(&first.await.unwrap(), "succeeded");
    // The second waited for the first in simulated time: it has the same outcome, or knows that it is under way.
    let second = second.await.unwrap();
    assert!(
        matches!(second, Outcome::Succeeded(_) | Outcome::Unknown(_)),
        "{second:?}"
    );
    assert_eq!(shop.gateway.sends().len(), 1);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn the_same_key_with_other_content_is_refused_while_the_first_runs() {
    let shop = Shop::new();
    let release = shop.gateway.slow("order-1");
    let first = tokio::spawn({
        let payments = shop.payments.clone();
        async move { payments.execute(&charge("order-1")).await.unwrap() }
    });
    sent(&shop.gateway, 1).await;
    let other_content = charge("order-1").description("other");
    for payments in [&shop.payments, &shop.another_process().payments] {
        let error = payments.execute(&other_content).await.unwrap_err();
        assert!(matches!(error, Error::KeyReused { .. }), "{error:?}");
    }
    release.release();
    assert_is(&first.await.unwrap(), "succeeded");
}

#[tokio::test]
async fn dropping_the_callers_future_does_not_cancel_the_payment() {
    let shop = Shop::new();
    let release = shop.gateway.slow("order-1");
    let payments = shop.payments.clone();
    let caller = tokio::spawn(async move { payments.execute(&charge("order-1")).await });
    sent(&shop.gateway, 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    release.release();
    shop.payments.shutdown().await;
    let key = shop.payments.key(&charge("order-1"));
    assert_is(&shop.payments.look_up(key).await.unwrap().unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn a_shutdown_waits_for_what_is_under_way_and_takes_nothing_new() {
    let shop = Shop::new();
    let release = shop.gateway.slow("order-1");
    let payments = shop.payments.clone();
    let caller = tokio::spawn(async move { payments.execute(&charge("order-1")).await.unwrap() });
    sent(&shop.gateway, 1).await;
    let payments = shop.payments.clone();
    let shutdown = tokio::spawn(async move { payments.shutdown().await });
    settle().await;
    assert!(!shutdown.is_finished());
    let error = shop.payments.execute(&charge("order-2")).await.unwrap_err();
    assert!(matches!(error, Error::ShuttingDown));
    release.release();
    shutdown.await.unwrap();
    assert_is(&caller.await.unwrap(), "succeeded");
    assert_eq!(shop.gateway.sends().len(), 1);
}

#[tokio::test]
async fn a_call_that_panics_leaves_nobody_waiting_and_the_row_as_it_was() {
    let shop = Shop::new();
    // Nothing is scripted: the gateway panics, on the task of the call.
    let outcome = shop.payments.execute(&charge("order-1")).await.unwrap();
    assert_is(&outcome, "unknown");
    shop.gateway.succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn a_dead_process_leaves_a_lease_that_ends() {
    let shop = Shop::new();
    let release = shop.gateway.slow("order-1");
    let (payments, _keep) = (shop.payments.clone(), release);
    let dead = tokio::spawn(async move { payments.execute(&charge("order-1")).await });
    sent(&shop.gateway, 1).await;
    let other = shop.another_process();
    assert_is(&other.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    assert_eq!(shop.gateway.sends().len(), 1, "the lease is alive: nobody else sends");
    shop.clock.advance(Duration::from_secs(120));
    shop.gateway.succeeds("order-1");
    assert_is(&other.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
    dead.abort();
}
