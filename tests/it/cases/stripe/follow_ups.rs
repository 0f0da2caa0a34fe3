//! Captures, voids and refunds of payments at Stripe.

use crate::shop::{assert_is, usd};
use crate::wired::{Wired, card_charge, of, policy};
use payonce::gateway::stripe::StripeOptions;
use payonce::operation::{GatewayRef, Operation, OperationKind, Target};
use payonce::outcome::{ConflictKind, FailureCategory, Outcome};
use payonce::testing::server::{FakeStripe, LoggedRequest, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan};

const CAPTURE: &str = "POST /v1/payment_intents/*/capture";
const CANCEL: &str = "POST /v1/payment_intents/*/cancel";

fn pi_1() -> Target {
    Target::Gateway(GatewayRef::new("pi_1"))
}

fn capture() -> Operation {
    Operation::capture("order-7001", usd("20.00"), pi_1()).unwrap()
}

fn void() -> Operation {
    Operation::void("order-7001", pi_1()).unwrap()
}

/// Stripe's refusal of a step for which pi_1 is in the wrong state.
fn unexpected_state(intent: &str) -> Reply {
    Reply::new(400).json(format!(
        r#"{{"error":{{"type":"invalid_request_error","code":"payment_intent_unexpected_state","payment_intent":{{"id":"pi_1",{intent}}}}}}}"#
    ))
}

fn key_of(request: &LoggedRequest) -> Option<&str> {
    request.header("Idempotency-Key")
}

/// A server at which the first capture is executed and lost, and the second finds so many cents received. The error
/// of the case shows no currency; that of Stripe itself does.
fn captured(cents: &'static str, currency: &str) -> ScriptedServer {
    let server = ScriptedServer::start();
    let intent = format!(r#""status":"succeeded","amount_received":{cents}{currency}"#);
    server
        .reply(CAPTURE, Reply::new(200).fault(Fault::CloseAfterEffect))
        .reply(CAPTURE, unexpected_state(&intent))
        .always("GET /v1/payment_intents/pi_1", move |_| {
            Reply::new(200).json(format!(
                r#"{{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"succeeded","amount_received":{cents}}}"#
            ))
        })
        .always("GET /v1/events", |_| Reply::new(200).json(crate::wired::EMPTY));
    server
}

#[tokio::test]
async fn c60_a_capture_that_was_answered_and_lost_is_no_failure() {
    for currency in ["", r#","currency":"usd""#] {
        let server = captured("2000", currency);
        let shop = Wired::stripe(server.url());
        let Outcome::Succeeded(succeeded) = shop.pay(&capture()).await else {
            panic!("not succeeded")
        };
        assert_eq!(succeeded.amount, Some(usd("20.00")));
        let posts = of(server.requests(), CAPTURE);
        assert_eq!(posts.len(), 2);
        assert_eq!(key_of(&posts[0]), key_of(&posts[1]));
        assert_eq!(posts[0].body, posts[1].body);
        assert_eq!(server.unexpected(), [""; 0]);
    }
}

#[tokio::test]
async fn c60_a_capture_of_less_by_somebody_else_is_a_conflict() {
    for currency in ["", r#","currency":"usd""#] {
        let server = captured("1500", currency);
        let shop = Wired::stripe(server.url());
        let Outcome::Conflict(conflict) = shop.pay(&capture()).await else {
            panic!("not a conflict")
        };
        assert_eq!(conflict.kind, ConflictKind::Amount);
        assert_eq!(
            (conflict.expected, conflict.reported),
            (Some(usd("20.00")), Some(usd("15.00")))
        );
        assert_eq!(server.count(CAPTURE), 2);
    }
}

#[tokio::test]
async fn c64_a_captured_payment_is_not_cancelled_and_nothing_else_is_sent() {
    let server = ScriptedServer::start();
    server.always(CANCEL, |_| {
        unexpected_state(r#""status":"succeeded","amount_received":2000"#)
    });
    let shop = Wired::stripe(server.url());
    for _ in 0..2 {
        let Outcome::Failed(failed) = shop.pay(&void()).await else {
            panic!("not failed")
        };
        assert_eq!(failed.category, FailureCategory::Settled);
        assert_eq!(failed.gateway_ref.as_ref().unwrap().as_str(), "pi_1");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn c64_a_cancellation_that_was_lost_is_found_by_its_effect() {
    let server = ScriptedServer::start();
    server
        .reply(CANCEL, Reply::new(200).fault(Fault::CloseAfterEffect))
        .reply(CANCEL, unexpected_state(r#""status":"canceled""#));
    let shop = Wired::stripe(server.url());
    assert_is(&shop.pay(&void()).await, "succeeded");
    let posts = of(server.requests(), CANCEL);
    assert_eq!(posts.len(), 2);
    assert_eq!(key_of(&posts[0]), key_of(&posts[1]));
    assert_eq!(server.requests().len(), 2);
}

fn authorize(reference: &str) -> Operation {
    Operation::authorize(reference, usd("20.00"))
        .unwrap()
        .with(StripeOptions::payment_method("pm_card_visa"))
}

struct Counter {
    stripe: FakeStripe,
    shop: Wired,
}

impl Counter {
    fn new() -> Self {
        let stripe = FakeStripe::start(Bank::new());
        let shop = Wired::stripe(stripe.base_url());
        stripe.set_clock(std::sync::Arc::clone(&shop.clock) as _);
        Self { stripe, shop }
    }

    fn bank(&self) -> Bank {
        self.stripe.bank()
    }

    /// What a follow-up of `operation` acts on.
    fn on(&self, operation: &Operation) -> Target {
        Target::Operation(self.shop.payments.key(operation))
    }
}

#[tokio::test]
async fn authorized_captured_and_given_back_once_each_over_a_network_that_loses_answers() {
    for lost in [
        Fault::CloseAfterEffect,
        Fault::ResetAfterEffect,
        Fault::HalfBodyAfterEffect,
        Fault::HtmlAfterEffect,
        Fault::ErrorAfterEffect,
    ] {
        let counter = Counter::new();
        let faults = [Some(lost), None].into_iter().cycle().take(6);
        // A stored 500 is replayed for ever, so that nothing is sent after it: the second step meets no entry `None`.
        let stored = lost == Fault::ErrorAfterEffect;
        counter
            .stripe
            .set_faults(FaultPlan::script(faults.filter(|fault| !stored || fault.is_some())));
        let authorization = authorize("order-1");
        let capture = Operation::capture("order-1", usd("15.00"), counter.on(&authorization)).unwrap();
        let refund = Operation::refund("refund-1", usd("5.00"), counter.on(&authorization)).unwrap();
        for step in [&authorization, &capture, &refund] {
            let outcome = counter.shop.pay(step).await;
            assert_is(&outcome, "succeeded");
            assert_eq!(counter.shop.pay(step).await.gateway_ref(), outcome.gateway_ref());
        }
        let bank = counter.bank();
        assert_eq!(
            (bank.authorized("order-1"), bank.captured("order-1")),
            (1, 1),
            "{lost:?}"
        );
        assert_eq!(bank.total(OperationKind::Capture, "order-1"), 1500);
        assert_eq!(bank.refunded("refund-1"), 1, "{lost:?}");
        assert_eq!(bank.total(OperationKind::Refund, "refund-1"), 500);
        assert!(bank.moved_twice().is_empty(), "{bank:?}");
    }
}

#[tokio::test]
async fn c60_after_a_lost_answer_a_capture_is_found_in_the_payment_itself() {
    let counter = Counter::new();
    let authorization = authorize("order-1");
    assert_is(&counter.shop.pay(&authorization).await, "succeeded");
    let capture = Operation::capture("order-1", usd("20.00"), counter.on(&authorization)).unwrap();
    counter.stripe.set_faults(
        FaultPlan::none()
            .on(CAPTURE, Fault::CloseAfterEffect)
            .on("GET /v1/payment_intents/*", Fault::HtmlBeforeEffect),
    );
    let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
    assert_is(&once.pay(&capture).await, "unknown");
    let Outcome::Succeeded(succeeded) = once.pay(&capture).await else {
        panic!("not found")
    };
    assert_eq!(succeeded.amount, Some(usd("20.00")));
    assert!(
        succeeded.notes.is_empty(),
        "its own mark is on it: {:?}",
        succeeded.notes
    );
    assert_eq!(counter.stripe.count(CAPTURE), 1);
    assert_eq!(counter.bank().captured("order-1"), 1);
}

#[tokio::test]
async fn an_authorization_is_voided_once_and_is_then_no_longer_to_be_had() {
    let counter = Counter::new();
    let authorization = authorize("order-1");
    assert_is(&counter.shop.pay(&authorization).await, "succeeded");
    counter
        .stripe
        .set_faults(FaultPlan::none().on(CANCEL, Fault::ResetAfterEffect));
    let void = Operation::void("order-1", counter.on(&authorization)).unwrap();
    for _ in 0..2 {
        assert_is(&counter.shop.pay(&void).await, "succeeded");
    }
    let capture = Operation::capture("order-1", usd("20.00"), counter.on(&authorization)).unwrap();
    let Outcome::Failed(failed) = counter.shop.pay(&capture).await else {
        panic!("captured after the void")
    };
    assert_eq!(failed.category, FailureCategory::Cancelled);
    let bank = counter.bank();
    assert_eq!((bank.voided("order-1"), bank.captured("order-1")), (1, 0));
}

#[tokio::test]
async fn c64_what_was_paid_is_given_back_and_not_voided() {
    let counter = Counter::new();
    let charge = card_charge("order-1");
    assert_is(&counter.shop.pay(&charge).await, "succeeded");
    let void = Operation::void("order-1", counter.on(&charge)).unwrap();
    let Outcome::Failed(failed) = counter.shop.pay(&void).await else {
        panic!("voided")
    };
    assert_eq!(failed.category, FailureCategory::Settled);
    assert_eq!(failed.settled, Some(usd("20.00")));
    let refund = Operation::refund("refund-1", usd("20.00"), counter.on(&charge)).unwrap();
    assert_is(&counter.shop.pay(&refund).await, "succeeded");
    let bank = counter.bank();
    assert_eq!((bank.voided("order-1"), bank.refunded("refund-1")), (0, 1));
}

#[tokio::test]
async fn c55_more_than_is_left_is_refused_and_what_went_before_is_shown() {
    let counter = Counter::new();
    let charge = card_charge("order-1");
    assert_is(&counter.shop.pay(&charge).await, "succeeded");
    // Somebody gives 6.00 back in the dashboard.
    let elsewhere = Wired::stripe(counter.stripe.base_url());
    let id = GatewayRef::new(counter.stripe.payment_intents()[0].as_str());
    let theirs = Operation::refund("dashboard-1", usd("6.00"), Target::Gateway(id)).unwrap();
    assert_is(&elsewhere.pay(&theirs).await, "succeeded");

    let refund = Operation::refund("refund-9", usd("16.00"), counter.on(&charge)).unwrap();
    let Outcome::Failed(failed) = counter.shop.pay(&refund).await else {
        panic!("not refused")
    };
    assert_eq!(failed.category, FailureCategory::Invalid);
    assert_eq!(failed.evidence.details.get("amount_refunded"), Some("600"));
    let bank = counter.bank();
    assert_eq!((bank.refunded("refund-9"), bank.refunded("dashboard-1")), (0, 1));
    assert_eq!(
        counter.stripe.count("POST /v1/refunds"),
        2,
        "neither repeated nor reduced"
    );
}
