//! Payments at Stripe in which the payer, or a bank, takes time.

use crate::shop::{assert_is, usd};
use crate::wired::{INTENTS, Wired, card_charge, op_a, pi_1, policy};
use payonce::gateway::stripe::StripeOptions;
use payonce::operation::{Operation, Target};
use payonce::outcome::{FailureCategory, NextStep, Outcome, Pending};
use payonce::reconcile::Reconciler;
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const SESSIONS: &str = "POST /v1/checkout/sessions";

struct Counter {
    stripe: FakeStripe,
    shop: Wired,
}

impl Counter {
    fn new() -> Self {
        let stripe = FakeStripe::start(Bank::new());
        let shop = Wired::stripe(stripe.base_url());
        stripe.set_clock(Arc::clone(&shop.clock) as _);
        Self { stripe, shop }
    }

    /// The only intent there is.
    fn intent(&self) -> String {
        let intents = self.stripe.payment_intents();
        assert_eq!(intents.len(), 1, "{intents:?}");
        intents[0].clone()
    }

    fn session(&self) -> String {
        let sessions = self.stripe.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0].clone()
    }
}

#[track_caller]
fn pending(outcome: Outcome) -> Pending {
    let Outcome::Pending(pending) = outcome else {
        panic!("{outcome:?}")
    };
    pending
}

#[track_caller]
fn failed_as(outcome: &Outcome, category: FailureCategory) {
    let Outcome::Failed(failed) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failed.category, category, "{outcome:?}");
}

fn second(operation: &Operation) -> Operation {
    operation.clone().attempt(NonZeroU32::new(2).unwrap())
}

fn on_a_page(reference: &str) -> Operation {
    Operation::charge(reference, usd("20.00"))
        .unwrap()
        .with(StripeOptions::hosted_page("https://shop.example/thanks"))
}

fn in_the_browser(reference: &str) -> Operation {
    Operation::charge(reference, usd("20.00")).unwrap()
}

fn with_card(reference: &str, card: &str) -> Operation {
    card_charge(reference).with(StripeOptions::payment_method(card))
}

#[tokio::test]
async fn a_hosted_page_is_opened_once_though_its_address_was_lost() {
    let counter = Counter::new();
    counter.stripe.set_faults(
        FaultPlan::none()
            .on(SESSIONS, Fault::CloseAfterEffect)
            .on("GET /v1/checkout/sessions", Fault::HtmlBeforeEffect),
    );
    let once = counter.shop.another_process(|builder| builder.policy(policy(1)));
    let order = on_a_page("order-1");
    assert_is(&once.pay(&order).await, "unknown");
    // Found by what was sent, and with its address: the payer can go on.
    let waiting = pending(once.pay(&order).await);
    let session = counter.session();
    let NextStep::Redirect { url } = &waiting.next else {
        panic!("{waiting:?}")
    };
    assert!(url.expose().ends_with(&session), "the payer's page");
    assert!(waiting.expires_at.is_some());
    // A crash later the link is still to be had.
    let restarted = counter.shop.another_process(|builder| builder);
    let again = pending(restarted.look_up(&order).await.unwrap());
    assert!(matches!(&again.next, NextStep::Redirect { url: kept } if kept.expose() == url.expose()));

    assert!(counter.stripe.pay_session(&session));
    let outcome = restarted.pay(&order).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), counter.intent());
    assert_eq!(
        (counter.stripe.count(SESSIONS), counter.stripe.bank().charged("order-1")),
        (1, 1)
    );
}

#[tokio::test]
async fn a_page_that_closed_unpaid_makes_room_for_another_attempt() {
    let counter = Counter::new();
    let order = on_a_page("order-1");
    pending(counter.shop.pay(&order).await);
    let early = counter.shop.try_pay(&second(&order)).await.unwrap_err();
    assert!(early.to_string().contains("attempt 1"), "{early}");
    counter.shop.clock.advance(Duration::from_secs(25 * 3600));
    failed_as(&counter.shop.pay(&order).await, FailureCategory::Expired);
    assert!(!counter.stripe.pay_session(&counter.session()));
    pending(counter.shop.pay(&second(&order)).await);
    assert!(counter.stripe.pay_session(&counter.stripe.sessions()[1]));
    assert_is(&counter.shop.pay(&second(&order)).await, "succeeded");
    assert_eq!(counter.stripe.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn a_page_that_is_voided_can_no_longer_be_paid() {
    let counter = Counter::new();
    let order = on_a_page("order-1");
    pending(counter.shop.pay(&order).await);
    let target = Target::Operation(counter.shop.payments.key(&order));
    assert_is(
        &counter.shop.pay(&Operation::void("order-1", target).unwrap()).await,
        "succeeded",
    );
    assert!(!counter.stripe.pay_session(&counter.session()));
    failed_as(&counter.shop.resolve(&order).await, FailureCategory::Expired);
    assert_eq!(counter.stripe.bank().charged("order-1"), 0);
}

#[tokio::test]
async fn a_browser_may_try_another_card_until_one_pays() {
    let counter = Counter::new();
    let order = in_the_browser("order-1");
    let waiting = pending(counter.shop.pay(&order).await);
    let NextStep::Confirm { client_secret } = &waiting.next else {
        panic!("{waiting:?}")
    };
    let intent = counter.intent();
    assert!(client_secret.expose().starts_with(&intent));
    // A process that did not see the answer gets the secret from Stripe, not from the journal.
    let restarted = counter.shop.another_process(|builder| builder);
    let again = pending(restarted.pay(&order).await);
    assert!(
        matches!(&again.next, NextStep::Confirm { client_secret: same } if same.expose() == client_secret.expose())
    );

    let declined = counter.stripe.confirm_client_side(&intent, "pm_card_chargeDeclined");
    assert_eq!(declined, "requires_payment_method");
    pending(restarted.pay(&order).await);
    let early = restarted.try_pay(&second(&order)).await.unwrap_err();
    assert!(early.to_string().contains("attempt 1"), "{early}");
    assert_eq!(counter.stripe.confirm_client_side(&intent, "pm_card_visa"), "succeeded");
    assert_is(&restarted.resolve(&order).await, "succeeded");
    assert_eq!(
        (counter.stripe.count(INTENTS), counter.stripe.bank().charged("order-1")),
        (1, 1)
    );
}

#[tokio::test]
async fn what_a_browser_has_not_confirmed_is_voided_before_another_attempt() {
    let counter = Counter::new();
    let order = in_the_browser("order-1");
    pending(counter.shop.pay(&order).await);
    let target = Target::Operation(counter.shop.payments.key(&order));
    let void = Operation::void("order-1", target).unwrap();
    assert_is(&counter.shop.pay(&void).await, "succeeded");
    failed_as(&counter.shop.pay(&order).await, FailureCategory::Cancelled);
    let intent = counter.intent();
    assert_eq!(counter.stripe.confirm_client_side(&intent, "pm_card_visa"), "canceled");
    assert_is(
        &counter.shop.pay(&second(&with_card("order-1", "pm_card_visa"))).await,
        "succeeded",
    );
    assert_eq!(counter.stripe.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn authentication_is_waited_for_and_then_decides() {
    for passes in [true, false] {
        let counter = Counter::new();
        let order = with_card("order-1", "pm_card_authenticationRequired");
        let waiting = pending(counter.shop.pay(&order).await);
        assert!(matches!(waiting.next, NextStep::Redirect { .. }), "{waiting:?}");
        assert_eq!(counter.stripe.bank().charged("order-1"), 0);
        let intent = counter.intent();
        if passes {
            assert!(counter.stripe.authenticate(&intent));
            assert_is(&counter.shop.resolve(&order).await, "succeeded");
        } else {
            assert!(counter.stripe.fail_authentication(&intent));
            failed_as(&counter.shop.resolve(&order).await, FailureCategory::Declined);
            assert_is(
                &counter.shop.pay(&second(&with_card("order-1", "pm_card_visa"))).await,
                "succeeded",
            );
        }
        assert_eq!(counter.stripe.bank().charged("order-1"), 1);
        assert_eq!(counter.stripe.unexpected(), [""; 0]);
    }
}

#[tokio::test]
async fn a_bank_that_takes_days_is_waited_for_by_the_reconciler() {
    for well in [true, false] {
        let counter = Counter::new();
        let order = with_card("order-1", "pm_card_processing");
        let waiting = pending(counter.shop.pay(&order).await);
        assert!(matches!(waiting.next, NextStep::Wait));
        let reconciler = Reconciler::new(counter.shop.another_process(|builder| builder).payments);
        for _ in 0..3 {
            counter.shop.clock.advance(Duration::from_secs(6 * 3600));
            let round = reconciler.run_once().await.unwrap();
            assert_eq!((round.looked_at, round.settled), (1, 0));
        }
        let intent = counter.intent();
        let finished = if well {
            counter.stripe.finish_processing(&intent)
        } else {
            counter.stripe.fail_processing(&intent)
        };
        assert!(finished);
        counter.shop.clock.advance(Duration::from_secs(24 * 3600));
        assert_eq!(reconciler.run_once().await.unwrap().settled, 1);
        let outcome = counter.shop.look_up(&order).await.unwrap();
        assert_is(&outcome, if well { "succeeded" } else { "failed" });
        assert_eq!(counter.stripe.bank().charged("order-1"), usize::from(well));
        assert_eq!(counter.stripe.count(INTENTS), 1);
    }
}

#[tokio::test]
async fn c51_a_payment_method_of_next_year_is_no_obstacle() {
    let server = ScriptedServer::start();
    server
        .reply(INTENTS, Reply::new(200).json(pi_1("processing")))
        .reply(
            "GET /v1/payment_intents/pi_1",
            Reply::new(200).json(r#"{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"succeeded","payment_method_types":["card","brand_new_pay"],"latest_charge":{"id":"ch_1","object":"charge","payment_method_details":{"type":"brand_new_pay","brand_new_pay":{"x":1}}}}"#),
        );
    let shop = Wired::stripe(server.url());
    pending(shop.pay(&op_a()).await);
    let Outcome::Succeeded(succeeded) = shop.resolve(&op_a()).await else {
        panic!("not read")
    };
    assert_eq!(succeeded.amount, Some(usd("20.00")));
    let details = &succeeded.evidence.details;
    assert_eq!(details.get("payment_method_types"), Some("card,brand_new_pay"));
    assert_eq!(details.get("payment_method_type"), Some("brand_new_pay"));
    // And it is in the journal.
    let kept = shop.look_up(&op_a()).await.unwrap();
    assert_eq!(kept.evidence().unwrap().details, *details);
}
