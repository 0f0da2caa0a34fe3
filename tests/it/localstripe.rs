//! Against localstripe, a Stripe server written by others: what it keeps is the judge.
//!
//! It ignores `Idempotency-Key`, so that nothing here may be sent twice: a lost answer is found by inquiry alone. It
//! refuses descriptions, reasons and the metadata of captures, and takes no filter on its list of payments.

use crate::shop::{assert_is, usd};
use async_trait::async_trait;
use payonce::engine::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::journal::MemoryJournal;
use payonce::operation::{Operation, Target};
use payonce::outcome::{FailureCategory, NextStep, Outcome};
use payonce::retry::RetryPolicy;
use payonce::transport::{Http, Method, Request, Response, Transport};
use serde_json::Value;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

const KEY: &str = "sk_test_TESTONLYpeer0001";

/// Makes every exchange, and says of the next so many that can do something that their answer was lost.
#[derive(Debug)]
struct Deaf {
    http: Http,
    answers_to_lose: AtomicU32,
    sent: AtomicUsize,
}

#[async_trait]
impl Transport for Deaf {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let does = request.method != Method::Get;
        let response = self.http.exchange(request).await?;
        let one_less = |left: u32| left.checked_sub(1);
        if does {
            self.sent.fetch_add(1, Ordering::SeqCst);
            if self
                .answers_to_lose
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less)
                .is_ok()
            {
                return Err(Failure::maybe_executed(FailureKind::Broken, "the answer was lost"));
            }
        }
        Ok(response)
    }
}

struct Peer {
    url: String,
    transport: Arc<Deaf>,
    payments: Payments,
    client: reqwest::Client,
}

impl Peer {
    /// `None` where no peer runs.
    ///
    /// # Panics
    /// When none runs although it should.
    fn find() -> Option<Self> {
        static SHOPS: AtomicU32 = AtomicU32::new(0);
        let Ok(url) = std::env::var("PAYONCE_LOCALSTRIPE_URL") else {
            assert!(std::env::var_os("CI").is_none(), "PAYONCE_LOCALSTRIPE_URL is not set");
            return None;
        };
        let transport = Arc::new(Deaf {
            http: Http::new().unwrap(),
            answers_to_lose: AtomicU32::new(0),
            sent: AtomicUsize::new(0),
        });
        let stripe = Stripe::builder(KEY)
            .base_url(&url)
            .transport(Arc::<Deaf>::clone(&transport))
            .build()
            .unwrap();
        // The peer keeps what earlier runs left: each shop is a new one.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let shop = SHOPS.fetch_add(1, Ordering::SeqCst);
        let one_send = RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        };
        let payments = Payments::builder()
            .namespace(format!("peer/{}-{}-{shop}", since.as_nanos(), std::process::id()))
            .gateway(Arc::new(stripe))
            .journal(Arc::new(MemoryJournal::new()))
            .policy(one_send)
            .build()
            .unwrap();
        Some(Self {
            url,
            transport,
            payments,
            client: reqwest::Client::builder()
                .no_proxy()
                .timeout(Duration::from_secs(20))
                .build()
                .unwrap(),
        })
    }

    async fn done(&self, operation: &Operation) -> Outcome {
        self.payments.execute(operation).await.unwrap()
    }

    fn on(&self, operation: &Operation) -> Target {
        Target::Operation(self.payments.key(operation))
    }

    fn lose_answers(&self, count: u32) {
        self.transport.answers_to_lose.store(count, Ordering::SeqCst);
    }

    /// How often something was asked for that can do something.
    fn sends(&self) -> usize {
        self.transport.sent.load(Ordering::SeqCst)
    }

    async fn read(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}{path}", self.url)).bearer_auth(KEY);
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    }

    async fn post(&self, path: &str, form: &str) -> Value {
        let request = self
            .client
            .post(format!("{}{path}", self.url))
            .bearer_auth(KEY)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form.to_owned());
        serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
    }

    /// All that the peer keeps for this operation: payments, or refunds of `payment`.
    async fn kept(&self, operation: &Operation, payment: Option<&str>) -> Vec<Value> {
        let path = payment.map_or_else(
            || "/v1/payment_intents".to_owned(),
            |payment| format!("/v1/refunds?payment_intent={payment}"),
        );
        let separator = if payment.is_some() { '&' } else { '?' };
        let key = self.payments.key(operation).to_string();
        let (mut kept, mut after) = (Vec::new(), String::new());
        for _ in 0..100 {
            let page = self.read(&format!("{path}{separator}limit=100{after}")).await;
            let objects = page["data"].as_array().unwrap();
            kept.extend(
                objects
                    .iter()
                    .filter(|it| it["metadata"]["payonce_key"] == key.as_str())
                    .cloned(),
            );
            if page["has_more"] != true {
                return kept;
            }
            after = format!("&starting_after={}", objects.last().unwrap()["id"].as_str().unwrap());
        }
        panic!("the peer's list has no end");
    }

    /// The one payment that the peer keeps for this operation.
    async fn payment(&self, operation: &Operation) -> Value {
        let kept = self.kept(operation, None).await;
        let [payment] = &kept[..] else {
            panic!("not one payment: {kept:?}");
        };
        self.read(&format!("/v1/payment_intents/{}", payment["id"].as_str().unwrap()))
            .await
    }
}

fn by_card(operation: Operation) -> Operation {
    operation.with(StripeOptions::payment_method("pm_card_visa"))
}

fn charge(reference: &str) -> Operation {
    by_card(Operation::charge(reference, usd("20.00")).unwrap()).metadata("cart", "cart-5")
}

fn authorize(reference: &str) -> Operation {
    by_card(Operation::authorize(reference, usd("20.00")).unwrap())
}

fn capture(peer: &Peer, authorized: &Operation, amount: &str) -> Operation {
    let capture = Operation::capture("capture", usd(amount), peer.on(authorized)).unwrap();
    capture.with(StripeOptions::follow_up().unmarked_capture())
}

fn id(outcome: &Outcome) -> String {
    outcome.gateway_ref().unwrap().to_string()
}

#[track_caller]
fn assert_amount(outcome: &Outcome, expected: &str) {
    let Outcome::Succeeded(succeeded) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(succeeded.amount, Some(usd(expected)));
}

#[tokio::test]
async fn a_charge_is_what_the_peer_keeps() {
    let Some(peer) = Peer::find() else { return };
    let outcome = peer.done(&charge("order")).await;
    assert_amount(&outcome, "20.00");
    let payment = peer.payment(&charge("order")).await;
    assert_eq!(payment["id"], id(&outcome));
    assert_eq!(
        (&payment["status"], &payment["amount"]),
        (&"succeeded".into(), &2000.into())
    );
    assert_eq!(payment["currency"], "usd");
    assert_eq!(payment["metadata"]["payonce_reference"], "order");
    assert_eq!(payment["metadata"]["cart"], "cart-5");
    assert_eq!(payment["latest_charge"]["captured"], true);
    // Known: nothing more is sent.
    assert_amount(&peer.done(&charge("order")).await, "20.00");
    assert_eq!(peer.sends(), 1);
}

#[tokio::test]
async fn a_decline_by_the_peer_is_definite_and_another_attempt_pays() {
    let Some(peer) = Peer::find() else { return };
    let declined = charge("order").with(StripeOptions::payment_method("pm_card_chargeCustomerFail"));
    let outcome = peer.done(&declined).await;
    let Outcome::Failed(failed) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failed.category, FailureCategory::Declined);
    assert_eq!(failed.evidence.code.as_deref(), Some("card_declined"));
    let payment = peer.payment(&declined).await;
    assert_ne!(payment["status"], "succeeded");
    let next = charge("order").attempt(NonZeroU32::new(2).unwrap());
    assert_is(&peer.done(&next).await, "succeeded");
    assert_eq!(peer.payment(&next).await["status"], "succeeded");
}

#[tokio::test]
async fn an_authorization_is_captured_whole() {
    let Some(peer) = Peer::find() else { return };
    let order = authorize("order");
    assert_amount(&peer.done(&order).await, "20.00");
    let payment = peer.payment(&order).await;
    assert_eq!(payment["status"], "requires_capture");
    assert_eq!(payment["latest_charge"]["captured"], false);
    let outcome = peer.done(&capture(&peer, &order, "20.00")).await;
    assert_amount(&outcome, "20.00");
    let payment = peer.payment(&order).await;
    assert_eq!(payment["status"], "succeeded");
    assert_eq!(payment["latest_charge"]["captured"], true);
    assert_eq!(payment["latest_charge"]["amount_refunded"], 0);
}

#[tokio::test]
async fn an_authorization_is_captured_in_part() {
    let Some(peer) = Peer::find() else { return };
    let order = authorize("order");
    assert_amount(&peer.done(&order).await, "20.00");
    let outcome = peer.done(&capture(&peer, &order, "12.50")).await;
    let charge = peer.payment(&order).await["latest_charge"].clone();
    assert_eq!(charge["captured"], true);
    // The peer keeps the rest as a refund.
    assert_eq!(charge["amount_refunded"], 750);
    assert_amount(&outcome, "12.50");
}

#[tokio::test]
async fn a_void_releases_an_authorization() {
    let Some(peer) = Peer::find() else { return };
    let order = authorize("order");
    assert_amount(&peer.done(&order).await, "20.00");
    let void = Operation::void("void", peer.on(&order)).unwrap();
    assert_is(&peer.done(&void).await, "succeeded");
    assert_eq!(peer.payment(&order).await["status"], "canceled");
    // What is released cannot be captured, and what is captured cannot be released.
    assert_is(&peer.done(&capture(&peer, &order, "20.00")).await, "failed");
    assert_eq!(peer.payment(&order).await["status"], "canceled");
}

#[tokio::test]
async fn refunds_give_back_as_much_as_was_asked_for() {
    let Some(peer) = Peer::find() else { return };
    let order = charge("order");
    let payment = id(&peer.done(&order).await);
    let mut given_back = 0;
    for (reference, amount, minor) in [("refund-1", "5.00", 500), ("refund-2", "15.00", 1500)] {
        let refund = Operation::refund(reference, usd(amount), peer.on(&order)).unwrap();
        let outcome = peer.done(&refund).await;
        assert_amount(&outcome, amount);
        let kept = peer.kept(&refund, Some(&payment)).await;
        assert_eq!(kept.len(), 1);
        assert_eq!(
            (&kept[0]["id"], &kept[0]["amount"]),
            (&id(&outcome).into(), &minor.into())
        );
        given_back += minor;
        let charge = peer.payment(&order).await["latest_charge"].clone();
        assert_eq!(charge["amount_refunded"], given_back);
        assert_eq!(charge["refunded"], given_back == 2000);
    }
}

#[tokio::test]
async fn a_payment_that_waits_for_its_payer_is_asked_about_by_its_id() {
    let Some(peer) = Peer::find() else { return };
    let card = "type=card&card[number]=4000002500003155&card[exp_month]=12&card[exp_year]=2030&card[cvc]=123";
    let method = peer.post("/v1/payment_methods", card).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let order = charge("order").with(StripeOptions::payment_method(method));
    let outcome = peer.done(&order).await;
    let Outcome::Pending(pending) = &outcome else {
        panic!("{outcome:?}");
    };
    let NextStep::Confirm { client_secret } = &pending.next else {
        panic!("{pending:?}");
    };
    let key = peer.payments.key(&order);
    assert_is(&peer.payments.resolve(key).await.unwrap(), "pending");
    let form = format!("success=true&client_secret={}", client_secret.expose());
    peer.post(&format!("/v1/payment_intents/{}/_authenticate", id(&outcome)), &form)
        .await;
    assert_amount(&peer.payments.resolve(key).await.unwrap(), "20.00");
    assert_eq!(peer.payment(&order).await["status"], "succeeded");
    assert_eq!(peer.sends(), 1);
}

#[tokio::test]
async fn lost_answers_are_found_by_asking_and_nothing_is_sent_twice() {
    let Some(peer) = Peer::find() else { return };
    let order = charge("order");
    peer.lose_answers(1);
    let outcome = peer.done(&order).await;
    assert_amount(&outcome, "20.00");
    let payment = peer.payment(&order).await;
    assert_eq!(payment["id"], id(&outcome));

    let refund = Operation::refund("refund", usd("5.00"), peer.on(&order)).unwrap();
    peer.lose_answers(1);
    let outcome = peer.done(&refund).await;
    assert_amount(&outcome, "5.00");
    let kept = peer.kept(&refund, payment["id"].as_str()).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["id"], id(&outcome));

    let held = authorize("held");
    peer.lose_answers(1);
    assert_amount(&peer.done(&held).await, "20.00");
    peer.lose_answers(1);
    assert_is(&peer.done(&capture(&peer, &held, "20.00")).await, "succeeded");
    assert_eq!(peer.payment(&held).await["latest_charge"]["captured"], true);

    let released = authorize("released");
    assert_amount(&peer.done(&released).await, "20.00");
    let void = Operation::void("void", peer.on(&released)).unwrap();
    peer.lose_answers(1);
    assert_is(&peer.done(&void).await, "succeeded");
    assert_eq!(peer.payment(&released).await["status"], "canceled");
    assert_eq!(peer.sends(), 6, "one each");
    assert!(peer.payments.unresolved(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_request_that_the_peer_refuses_is_a_failure_and_no_payment() {
    let Some(peer) = Peer::find() else { return };
    for (reference, operation) in [
        ("described", charge("described").description("Two tickets")),
        ("unknown", charge("unknown").with(StripeOptions::payment_method("pm_0"))),
    ] {
        let outcome = peer.done(&operation).await;
        let Outcome::Failed(failed) = &outcome else {
            panic!("{reference}: {outcome:?}");
        };
        assert_eq!(failed.category, FailureCategory::Invalid, "{reference}");
        assert!(peer.kept(&operation, None).await.is_empty(), "{reference}");
    }
}
