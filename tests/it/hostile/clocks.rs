//! Clocks that were wrong when a request was sent, and have been set right since.

use crate::shop::{NOW, assert_is, charge};
use payonce::clock::Clock;
use payonce::engine::Payments;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::journal::MemoryJournal;
use payonce::operation::Operation;
use payonce::reconcile::Reconciler;
use payonce::retry::RetryPolicy;
use payonce::testing::server::FakeStripe;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

fn attempt(number: u32) -> Operation {
    charge("order-1")
        .with(StripeOptions::payment_method("pm_card_visa"))
        .attempt(NonZeroU32::new(number).unwrap())
}

/// The money moves and the answer is lost while our clock shows `ours`; then it is set right, and the search lags.
async fn sent_at(ours: Arc<ManualClock>) {
    let theirs = Arc::new(ManualClock::at(NOW));
    let bank = Bank::new();
    let fake = FakeStripe::start(bank.clone());
    fake.set_clock(Arc::clone(&theirs) as Arc<dyn Clock>);
    fake.set_search_lag(HOUR * 10);
    fake.set_faults(FaultPlan::script([Fault::CloseAfterEffect]));
    let gateway = Stripe::builder("sk_test_TESTONLYcases0001")
        .base_url(fake.base_url())
        .clock(Arc::clone(&ours) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let payments = Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(gateway))
        .journal(Arc::new(MemoryJournal::new()))
        .clock(Arc::clone(&ours) as Arc<dyn Clock>)
        .policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
        .build()
        .unwrap();
    let _unknown_or_found = payments.execute(&attempt(1)).await.unwrap();
    ours.set(theirs.now());
    for _ in 0..30 {
        for clock in [&ours, &theirs] {
            clock.advance(Duration::from_secs(150));
        }
        Reconciler::new(payments.clone()).run_once().await.unwrap();
    }
    let key = payments.key(&attempt(1));
    assert_is(&payments.look_up(key).await.unwrap().unwrap(), "succeeded");
    payments.execute(&attempt(2)).await.unwrap_err();
    assert_eq!(bank.charged("order-1"), 1);
}

#[tokio::test]
async fn a_payment_sent_by_a_clock_hours_behind_is_found() {
    sent_at(Arc::new(ManualClock::at(NOW.before(HOUR * 2)))).await;
}

#[tokio::test]
async fn a_payment_sent_by_a_clock_half_an_hour_ahead_is_found() {
    sent_at(Arc::new(ManualClock::at(NOW.after(HOUR / 2)))).await;
}
