//! Tests of the adapter without a network: a scripted transport answers and remembers what was sent.

mod answers;
mod inquire;
mod requests;
mod samples;

use super::{Stripe, StripeOptions};
use crate::clock::{Clock, Timestamp};
use crate::failure::{Failure, FailureKind};
use crate::gateway::{Gateway, Inquiry};
use crate::money::{Currency, Money};
use crate::operation::{GatewayRef, Namespace, Operation, Target};
use crate::outcome::Outcome;
use crate::record::{Instruction, Intent, Lease, PaymentTarget, Record};
use crate::transport::{Method, Request, Response, Transport};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// 2026-01-01T00:00:00Z
const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);
/// Of the charge `order-7001` in the namespace `shop1`.
const KEY: &str = "402f04607e0a5d329f51fdc342460021";
const API_KEY: &str = "sk_test_TESTONLYcases0001";

/// What was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    method: Method,
    url: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Seen {
    fn path(&self) -> &str {
        let path = self.url.strip_prefix("https://api.stripe.com").unwrap();
        path.split('?').next().unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| *other == name)
            .map(|(_, value)| value.as_str())
    }

    /// The pairs of the body, or of the query where there is none.
    fn pairs(&self) -> Vec<(String, String)> {
        let text = match self.method {
            Method::Post => self.body.as_str(),
            Method::Get | Method::Delete => self.url.split_once('?').map_or("", |(_, query)| query),
        };
        url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
    }

    fn pair(&self, name: &str) -> Option<String> {
        self.pairs()
            .into_iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value)
    }
}

/// A transport that gives prepared answers in turn.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Response, Failure>>>,
    seen: Mutex<Vec<Seen>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Result<Response, Failure>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            seen: Mutex::default(),
        })
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Transport for Script {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let headers = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.expose().to_owned()));
        self.seen.lock().unwrap().push(Seen {
            method: request.method,
            url: request.url,
            headers: headers.collect(),
            body: String::from_utf8(request.body).unwrap(),
        });
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or_else(|| {
            Err(Failure::not_executed(
                FailureKind::Connect,
                "the script has no further answer",
            ))
        })
    }
}

/// A clock that stands still.
#[derive(Debug)]
struct Still;

#[async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    async fn sleep(&self, _: Duration) {}
}

fn stripe(script: &Arc<Script>) -> Stripe {
    let transport: Arc<dyn Transport> = Arc::<Script>::clone(script);
    Stripe::builder(API_KEY)
        .transport(transport)
        .clock(Arc::new(Still))
        .build()
        .unwrap()
}

fn json(status: u16, body: &str) -> Response {
    answer(
        status,
        &[("content-type", "application/json"), ("request-id", "req_1")],
        body,
    )
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Response::new(status, headers.collect(), body.as_bytes().to_vec())
}

fn usd(text: &str) -> Money {
    Money::parse(text, Currency::USD).unwrap()
}

fn on(id: &str) -> Target {
    Target::Gateway(GatewayRef::new(id))
}

fn charge() -> Operation {
    Operation::charge("order-7001", usd("20.00")).unwrap()
}

/// A charge that one request creates and confirms.
fn card() -> Operation {
    charge().with(StripeOptions::payment_method("pm_1"))
}

fn page() -> Operation {
    charge().with(StripeOptions::hosted_page("https://shop.example/ok"))
}

fn authorize() -> Operation {
    Operation::authorize("order-7001", usd("20.00"))
        .unwrap()
        .with(StripeOptions::payment_method("pm_1"))
}

fn capture() -> Operation {
    Operation::capture("order-7001/capture", usd("20.00"), on("pi_1")).unwrap()
}

fn void() -> Operation {
    Operation::void("order-7001/void", on("pi_1")).unwrap()
}

fn refund() -> Operation {
    Operation::refund("order-7001/refund-1", usd("20.00"), on("pi_1")).unwrap()
}

fn key(operation: &Operation) -> String {
    operation.key(&Namespace::new("shop1").unwrap()).to_string()
}

/// The record of an operation that was reserved at [`NOW`].
fn record(operation: &Operation) -> Record {
    let namespace = Namespace::new("shop1").unwrap();
    let key = operation.key(&namespace);
    let prepared = stripe(&Script::new([])).prepare(key, operation).unwrap();
    let target = match operation.target() {
        Some(Target::Gateway(id)) => Some(PaymentTarget {
            gateway_ref: Some(id.clone()),
            wire_identity: None,
            amount: None,
        }),
        _ => None,
    };
    let intent = Intent {
        key,
        namespace: namespace.shared(),
        operation,
        gateway: "stripe".into(),
        wire_identity: prepared.wire_identity.into(),
        fingerprint: operation.fingerprint(),
        target,
        payable_for: prepared.payable_for,
    };
    Record::reserve(intent, NOW, Lease::new("test", NOW.after(Duration::from_secs(60))))
}

fn instruction(operation: &Operation) -> Instruction {
    record(operation)
        .instruction(&Arc::new(operation.clone()), Duration::from_secs(15))
        .unwrap()
}

/// Sends `operation`, which is answered with `response`.
async fn send(operation: &Operation, response: Response) -> Result<Outcome, Failure> {
    let script = Script::new([Ok(response)]);
    stripe(&script).send(&instruction(operation)).await
}

/// What is sent for `operation`.
async fn sent(operation: &Operation) -> Seen {
    let script = Script::new([]);
    let _ = stripe(&script).send(&instruction(operation)).await;
    let seen = script.seen();
    assert_eq!(seen.len(), 1, "{operation:?}");
    seen[0].clone()
}

/// Asks about `record`, and is answered with `responses` in turn, all of which must be used.
async fn inquire(
    record: &Record,
    responses: impl IntoIterator<Item = Response>,
) -> (Result<Inquiry, Failure>, Vec<Seen>) {
    let script = Script::new(responses.into_iter().map(Ok));
    let inquiry = stripe(&script).inquire(record).await;
    assert!(script.answers.lock().unwrap().is_empty(), "unused answers");
    let seen = script.seen();
    assert!(
        seen.iter().all(|seen| seen.method == Method::Get),
        "an inquiry must only read"
    );
    (inquiry, seen)
}

/// One word for what came out, and the category, kind or step.
fn word(result: &Result<Outcome, Failure>) -> String {
    match result {
        Ok(Outcome::Succeeded(payload)) => match payload.amount {
            Some(amount) => format!("succeeded {amount}"),
            None => "succeeded".to_owned(),
        },
        Ok(Outcome::Pending(payload)) => format!("pending {}", step(&payload.next)),
        Ok(Outcome::Failed(payload)) => format!("failed {}", payload.category.as_str()),
        Ok(Outcome::Conflict(payload)) => format!("conflict {}", payload.kind.as_str()),
        Ok(Outcome::Unknown(_)) => "unknown".to_owned(),
        Err(failure) => {
            let maybe = if failure.may_have_executed() { "maybe" } else { "not" };
            format!("{maybe} {:?}", failure.kind())
        }
    }
}

fn step(next: &crate::outcome::NextStep) -> &'static str {
    use crate::outcome::NextStep;
    match next {
        NextStep::Wait => "wait",
        NextStep::Redirect { .. } => "redirect",
        NextStep::Confirm { .. } => "confirm",
        NextStep::QrCode { .. } => "qr",
        NextStep::PaySlip { .. } => "slip",
        NextStep::OpenApp { .. } => "app",
    }
}
