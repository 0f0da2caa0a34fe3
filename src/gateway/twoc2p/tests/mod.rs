//! The adapter against a network that is a list of answers.

mod calls;
mod direct;
mod fixtures;
mod inquire;
mod send;

use super::*;
use crate::clock::Timestamp;
use crate::money::Money;
use crate::operation::Namespace;
use crate::record::{Intent, Lease};
use std::collections::VecDeque;
use std::sync::Mutex;

pub(super) const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";
pub(super) const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// Answers in order, and remembers what was sent. It fails the test when it is asked too often.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Result<Response, Failure>>>,
    sent: Mutex<Vec<(String, String)>>,
}

#[async_trait]
impl Transport for Scripted {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let path = request.url.rsplit('/').next().unwrap().to_owned();
        let body = String::from_utf8(request.body).unwrap();
        self.sent.lock().unwrap().push((path.clone(), body));
        let answer = self.answers.lock().unwrap().pop_front();
        answer.unwrap_or_else(|| panic!("no answer was scripted for {path}"))
    }
}

impl Scripted {
    pub(super) fn paths(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn body(&self, nth: usize) -> String {
        self.sent.lock().unwrap()[nth].1.clone()
    }

    /// The claims of the `nth` request, which must be signed.
    pub(super) fn claims(&self, nth: usize) -> String {
        let outer = json::Members::parse(self.body(nth).as_bytes()).unwrap();
        let signer = Signer::new(&Secret::from(SECRET));
        String::from_utf8(signer.verify(&outer.string("payload").unwrap()).unwrap()).unwrap()
    }
}

#[derive(Debug)]
pub(super) struct FixedClock(pub(super) Timestamp);

#[async_trait]
impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    async fn sleep(&self, _duration: Duration) {}
}

pub(super) fn account(answers: impl IntoIterator<Item = Result<Response, Failure>>) -> (TwoC2p, Arc<Scripted>) {
    account_at(NOW, answers)
}

pub(super) fn account_at(
    now: Timestamp,
    answers: impl IntoIterator<Item = Result<Response, Failure>>,
) -> (TwoC2p, Arc<Scripted>) {
    let transport = Arc::new(Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        sent: Mutex::default(),
    });
    let shared: Arc<dyn Transport> = Arc::<Scripted>::clone(&transport);
    let gateway = TwoC2p::builder("TESTM01", SECRET)
        .utc_offset_minutes(420)
        .transport(shared)
        .clock(Arc::new(FixedClock(now)))
        .build()
        .unwrap();
    (gateway, transport)
}

pub(super) fn charge(reference: &str, amount: &str, currency: Currency) -> Operation {
    Operation::charge(reference, Money::parse(amount, currency).unwrap()).unwrap()
}

pub(super) fn reserve(gateway: &TwoC2p, operation: &Operation) -> Record {
    let key = operation.key(&Namespace::new("shop1").unwrap());
    let prepared = gateway.prepare(key, operation).unwrap();
    let intent = Intent {
        key,
        namespace: "shop1".into(),
        operation,
        gateway: NAME.into(),
        wire_identity: prepared.wire_identity.into(),
        fingerprint: operation.fingerprint(),
        target: None,
        payable_for: prepared.payable_for,
    };
    Record::reserve(intent, NOW, Lease::new("test", NOW.after(Duration::from_secs(60))))
}

pub(super) async fn send(gateway: &TwoC2p, operation: &Operation) -> Result<Outcome, Failure> {
    let record = reserve(gateway, operation);
    let instruction = record
        .instruction(&Arc::new(operation.clone()), Duration::from_secs(15))
        .unwrap();
    gateway.send(&instruction).await
}

pub(super) fn ok(body: impl Into<Vec<u8>>) -> Result<Response, Failure> {
    status(200, "application/json", body)
}

pub(super) fn status(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Result<Response, Failure> {
    let headers = vec![("content-type".to_owned(), content_type.to_owned())];
    Ok(Response::new(status, headers, body.into()))
}

/// `claims`, signed by the merchant's own secret.
pub(super) fn signed(claims: &str) -> Result<Response, Failure> {
    ok(envelope(claims))
}

pub(super) fn envelope(claims: &str) -> String {
    let token = Signer::new(&Secret::from(SECRET)).sign(claims);
    format!("{{\"payload\":\"{token}\"}}")
}

pub(super) fn lost() -> Result<Response, Failure> {
    Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time"))
}

pub(super) fn unconnected() -> Result<Response, Failure> {
    Err(Failure::not_executed(
        FailureKind::Connect,
        "no connection to the gateway",
    ))
}

#[track_caller]
pub(super) fn check_maybe(result: Result<Outcome, Failure>, kind: FailureKind) -> Failure {
    let failure = result.expect_err("an outcome where there was none");
    assert!(failure.may_have_executed(), "{failure}");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure
}
