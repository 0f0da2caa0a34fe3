//! One order and two gateways: while the first may have taken money, the second does not get it.

use crate::shop::{assert_is, usd};
use crate::wired::{INTENTS, MERCHANT, MERCHANT_SECRET, Site, TOKEN, Wired, bounded, policy};
use payonce::error::Error;
use payonce::gateway::stripe::StripeOptions;
use payonce::operation::{Operation, Target};
use payonce::outcome::{FailureCategory, Outcome};
use payonce::testing::server::{FakeStripe, FakeTwoC2p};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

struct Counter {
    stripe: FakeStripe,
    twoc2p: FakeTwoC2p,
    bank: Bank,
    shop: Wired,
}

impl Counter {
    fn new() -> Self {
        let bank = Bank::new();
        let stripe = FakeStripe::start(bank.clone());
        let twoc2p = FakeTwoC2p::start(bank.clone(), MERCHANT, MERCHANT_SECRET);
        let shop = Wired::new(Site {
            stripe: Some(stripe.base_url()),
            twoc2p: Some(twoc2p.base_url()),
            ..Site::default()
        });
        stripe.set_clock(Arc::clone(&shop.clock) as _);
        twoc2p.set_clock(Arc::clone(&shop.clock) as _);
        Self {
            stripe,
            twoc2p,
            bank,
            shop,
        }
    }

    /// The charges of one order, at whichever gateway.
    fn charges(&self) -> usize {
        self.bank.movements().len()
    }
}

/// The order, with what Stripe needs to know; 2C2P needs nothing.
fn order(card: &str) -> Operation {
    Operation::charge("order-1", usd("20.00"))
        .unwrap()
        .with(StripeOptions::payment_method(card))
}

fn at_stripe() -> Operation {
    order("pm_card_visa").through("stripe")
}

fn at_2c2p() -> Operation {
    order("pm_card_visa").through("2c2p")
}

fn second(operation: &Operation) -> Operation {
    operation.clone().attempt(NonZeroU32::new(2).unwrap())
}

#[track_caller]
fn kept_at(gateway: &str, result: Result<Outcome, Error>) {
    match result {
        Err(Error::OtherGateway { gateway: kept, .. }) => assert_eq!(kept, gateway),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn waits_for_the_first(result: Result<Outcome, Error>) {
    assert!(
        matches!(result, Err(Error::AttemptOpen { attempt: 1, .. })),
        "{result:?}"
    );
}

#[tokio::test]
async fn what_is_unknown_at_stripe_is_refused_at_2c2p() {
    for (lost, charged) in [(Fault::CloseAfterEffect, 1), (Fault::CloseAfterReading, 0)] {
        let counter = Counter::new();
        counter.stripe.set_faults(
            FaultPlan::none()
                .on(INTENTS, lost)
                .on("GET /v1/payment_intents", Fault::HtmlBeforeEffect),
        );
        let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
        assert_is(&once.pay(&at_stripe()).await, "unknown");
        kept_at("stripe", counter.shop.try_pay(&at_2c2p()).await);
        waits_for_the_first(counter.shop.try_pay(&second(&at_2c2p())).await);
        assert!(counter.twoc2p.requests().is_empty());
        assert_eq!(counter.charges(), charged, "{lost:?}");

        assert_is(&counter.shop.pay(&at_stripe()).await, "succeeded");
        // Known by now, from whichever side it is looked at, and not paid again.
        assert_is(&counter.shop.pay(&at_2c2p()).await, "succeeded");
        assert!(counter.twoc2p.requests().is_empty());
        assert_eq!(counter.charges(), 1);
    }
}

#[tokio::test]
async fn what_is_unknown_or_open_at_2c2p_is_refused_at_stripe() {
    for lost in [true, false] {
        let counter = Counter::new();
        if lost {
            let faults = [Fault::CloseAfterEffect, Fault::HtmlBeforeEffect];
            counter.twoc2p.set_faults(FaultPlan::script(faults).inquiries_too());
        }
        let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
        assert_is(&once.pay(&at_2c2p()).await, if lost { "unknown" } else { "pending" });
        kept_at("2c2p", counter.shop.try_pay(&at_stripe()).await);
        waits_for_the_first(counter.shop.try_pay(&second(&at_stripe())).await);
        assert!(counter.stripe.requests().is_empty());
        assert!(counter.twoc2p.pay(&counter.twoc2p.invoices()[0]));
        assert_is(&counter.shop.pay(&at_2c2p()).await, "succeeded");
        assert_eq!(counter.charges(), 1);
    }
}

#[tokio::test]
async fn while_a_request_is_on_its_way_to_stripe_2c2p_does_not_get_it() {
    let counter = Counter::new();
    let held = counter.stripe.hold(INTENTS);
    let shop = counter.shop.clone();
    let under_way = tokio::spawn(async move { shop.pay(&at_stripe()).await });
    bounded(held.reached(1)).await;
    let other = counter.shop.another_process(|builder| builder);
    kept_at("stripe", other.try_pay(&at_2c2p()).await);
    held.release();
    assert_is(&under_way.await.unwrap(), "succeeded");
    assert!(counter.twoc2p.requests().is_empty());
    assert_eq!(counter.charges(), 1);
}

#[tokio::test]
async fn after_a_decline_the_second_attempt_may_go_through_the_other_gateway() {
    let counter = Counter::new();
    let declined = order("pm_card_chargeDeclined");
    let Outcome::Failed(failed) = counter.shop.pay(&declined).await else {
        panic!("not declined")
    };
    assert_eq!(failed.category, FailureCategory::Declined);
    // The same attempt through the other gateway is the same attempt.
    assert_is(&counter.shop.pay(&declined.clone().through("2c2p")).await, "failed");
    assert!(counter.twoc2p.requests().is_empty());

    let second = second(&at_2c2p());
    assert_is(&counter.shop.pay(&second).await, "pending");
    kept_at("2c2p", counter.shop.try_pay(&second.clone().through("stripe")).await);
    assert!(counter.twoc2p.pay(&counter.twoc2p.invoices()[0]));
    assert_is(&counter.shop.pay(&second).await, "succeeded");
    assert_eq!(counter.charges(), 1);
    assert_eq!(counter.bank.charged(&counter.shop.key(&second)), 1);
}

#[tokio::test]
async fn a_gateway_that_was_never_reached_hands_the_attempt_over() {
    let counter = Counter::new();
    counter.stripe.stop_listening().await;
    let error = counter.shop.try_pay(&at_stripe()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { attempts: 3, .. }), "{error:?}");
    assert_is(&counter.shop.pay(&at_2c2p()).await, "pending");
    assert_eq!(counter.shop.key(&at_stripe()), counter.shop.key(&at_2c2p()));

    counter.stripe.listen_again().await.unwrap();
    kept_at("2c2p", counter.shop.try_pay(&at_stripe()).await);
    assert!(counter.stripe.requests().is_empty());
    assert!(counter.twoc2p.pay(&counter.twoc2p.invoices()[0]));
    assert_is(&counter.shop.pay(&at_2c2p()).await, "succeeded");
    assert_eq!((counter.charges(), counter.twoc2p.count(TOKEN)), (1, 1));
}

#[tokio::test]
async fn what_provably_never_was_at_stripe_may_go_through_2c2p() {
    let counter = Counter::new();
    counter
        .stripe
        .set_faults(FaultPlan::none().on(INTENTS, Fault::CloseAfterReading));
    let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
    assert_is(&once.pay(&at_stripe()).await, "unknown");
    kept_at("stripe", once.try_pay(&at_2c2p()).await);
    // Missing once, and late enough, is no proof; missing twice is.
    for expected in ["unknown", "failed"] {
        counter.shop.clock.advance(Duration::from_secs(660));
        assert_is(&once.resolve(&at_stripe()).await, expected);
    }
    let Some(Outcome::Failed(failed)) = once.look_up(&at_stripe()).await else {
        panic!("not released")
    };
    assert_eq!(failed.category, FailureCategory::NotExecuted);
    assert_is(&counter.shop.pay(&at_2c2p()).await, "pending");
    assert!(counter.twoc2p.pay(&counter.twoc2p.invoices()[0]));
    assert_is(&counter.shop.pay(&at_2c2p()).await, "succeeded");
    assert_eq!((counter.charges(), counter.stripe.count(INTENTS)), (1, 1));
}

#[tokio::test]
async fn a_lost_answer_before_the_outage_keeps_the_attempt_where_it_is() {
    let counter = Counter::new();
    counter
        .stripe
        .set_faults(FaultPlan::none().on(INTENTS, Fault::CloseAfterEffect));
    counter.stripe.set_clock(Arc::clone(&counter.shop.clock) as _);
    let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
    // The first answer is lost, and then nobody listens any more.
    let held = counter.stripe.hold("GET /v1/payment_intents");
    let call = tokio::spawn({
        let once = once.clone();
        async move { once.pay(&at_stripe()).await }
    });
    bounded(held.reached(1)).await;
    counter.stripe.stop_listening().await;
    held.release();
    assert_is(&call.await.unwrap(), "unknown");
    assert_is(&counter.shop.pay(&at_stripe()).await, "unknown");
    kept_at("stripe", counter.shop.try_pay(&at_2c2p()).await);
    counter.stripe.listen_again().await.unwrap();
    assert_is(&counter.shop.pay(&at_stripe()).await, "succeeded");
    assert_eq!(counter.charges(), 1);
}

#[tokio::test]
async fn a_payment_is_given_back_where_it_was_made() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&at_stripe()).await, "succeeded");
    let target = Target::Operation(counter.shop.payments.key(&at_stripe()));
    let refund = Operation::refund("refund-1", usd("20.00"), target).unwrap();
    let elsewhere = counter.shop.try_pay(&refund.clone().through("2c2p")).await.unwrap_err();
    assert_eq!(elsewhere.invalid_field(), Some("gateway"), "{elsewhere:?}");
    // Without a word about the gateway the journal knows.
    assert_is(&counter.shop.pay(&refund).await, "succeeded");
    assert_eq!(counter.bank.refunded("refund-1"), 1);
    assert!(counter.twoc2p.requests().is_empty());
}
