//! A network for the tests of plans and stored cards: its answers are sealed from 2C2P's side, and what is sent is
//! opened there.

use crate::clock::{Clock, Timestamp};
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::maintenance::samples::{gateway, merchant};
use crate::gateway::{Gateway, Inquiry};
use crate::operation::{Namespace, Operation};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::testing::reserved;
use crate::transport::{Request, Response, Transport};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(in crate::gateway::twoc2p::maintenance) const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

pub(in crate::gateway::twoc2p::maintenance) type Answer = Result<Response, Failure>;

/// Answers in order, and remembers where what was sent. It fails the test when it is asked too often.
#[derive(Debug, Default)]
pub(in crate::gateway::twoc2p::maintenance) struct Network {
    answers: Mutex<VecDeque<Answer>>,
    sent: Mutex<Vec<(String, String)>>,
}

#[async_trait]
impl Transport for Network {
    async fn exchange(&self, request: Request) -> Answer {
        let text = String::from_utf8(gateway().open(&request.body).unwrap()).unwrap();
        self.sent.lock().unwrap().push((request.url, text));
        self.answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("no answer was scripted")
    }
}

#[derive(Debug)]
struct Stopped;

#[async_trait]
impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        NOW
    }

    async fn sleep(&self, _duration: Duration) {}
}

/// An account with keys, and its network.
pub(in crate::gateway::twoc2p::maintenance) struct Account {
    pub(in crate::gateway::twoc2p::maintenance) twoc2p: Arc<TwoC2p>,
    network: Arc<Network>,
}

impl Account {
    pub(in crate::gateway::twoc2p::maintenance) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(answers, Some("https://cards.example/CustomerToken"))
    }

    pub(in crate::gateway::twoc2p::maintenance) fn with(
        answers: impl IntoIterator<Item = Answer>,
        cards: Option<&str>,
    ) -> Self {
        let network = Arc::new(Network::default());
        network.answers.lock().unwrap().extend(answers);
        let mut builder = TwoC2p::builder("TESTM01", "TESTONLY2C2P0001TESTONLY2C2P0001")
            .base_url("https://pay.example/4.3")
            .maintenance_keys(merchant())
            .maintenance_url("https://plans.example/action")
            .transport(Arc::<Network>::clone(&network))
            .clock(Arc::new(Stopped));
        if let Some(url) = cards {
            builder = builder.customer_token_url(url);
        }
        Self {
            twoc2p: Arc::new(builder.build().unwrap()),
            network,
        }
    }

    /// Addresses and opened bodies, in order.
    pub(in crate::gateway::twoc2p::maintenance) fn sent(&self) -> Vec<(String, String)> {
        self.network.sent.lock().unwrap().clone()
    }

    /// The one body that was sent.
    #[track_caller]
    pub(in crate::gateway::twoc2p::maintenance) fn body(&self) -> String {
        let sent = self.sent();
        assert_eq!(sent.len(), 1);
        sent[0].1.clone()
    }

    pub(in crate::gateway::twoc2p::maintenance) fn last_body(&self) -> String {
        self.sent().pop().unwrap().1
    }

    pub(in crate::gateway::twoc2p::maintenance) async fn send(
        &self,
        operation: &Operation,
    ) -> Result<Outcome, Failure> {
        self.twoc2p.send(&reserve(&*self.twoc2p, operation).1).await
    }

    pub(in crate::gateway::twoc2p::maintenance) async fn inquire(
        &self,
        operation: &Operation,
    ) -> Result<Inquiry, Failure> {
        self.twoc2p.inquire(&reserve(&*self.twoc2p, operation).0).await
    }
}

pub(in crate::gateway::twoc2p::maintenance) fn reserve(
    gateway: &dyn Gateway,
    operation: &Operation,
) -> (Record, Instruction) {
    reserved(gateway, &Namespace::new("shop1").unwrap(), operation, NOW).unwrap()
}

/// `text` as 2C2P would send it.
pub(in crate::gateway::twoc2p::maintenance) fn sealed(text: &str) -> Answer {
    sealed_bytes(text.as_bytes())
}

pub(in crate::gateway::twoc2p::maintenance) fn sealed_bytes(bytes: &[u8]) -> Answer {
    plain(200, "text/plain", gateway().seal(bytes).unwrap())
}

pub(in crate::gateway::twoc2p::maintenance) fn plain(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    let headers = vec![("content-type".to_owned(), kind.to_owned())];
    Ok(Response::new(status, headers, body.into()))
}

pub(in crate::gateway::twoc2p::maintenance) fn lost() -> Answer {
    Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time"))
}

/// Answers to a request about which nothing can be known afterwards, with the kind of failure that each is: what 2C2P
/// did not seal for this merchant, or not whole, around the answer `text` that would have ended the operation.
pub(in crate::gateway::twoc2p::maintenance) fn no_answers(text: &str) -> Vec<(Answer, FailureKind)> {
    let token = gateway().seal(text.as_bytes()).unwrap();
    let stranger = crate::gateway::twoc2p::MaintenanceKeys::new(
        crate::gateway::twoc2p::maintenance::samples::STRANGER_PRIVATE,
        crate::gateway::twoc2p::maintenance::samples::MERCHANT_CERTIFICATE,
    );
    let foreign = stranger.unwrap().seal(text.as_bytes()).unwrap();
    let page = "<html><head><title>Sorry</title></head><body>4111111111111111</body></html>";
    vec![
        (lost(), FailureKind::Timeout),
        (plain(200, "text/plain", foreign), FailureKind::Unreadable),
        (
            plain(200, "text/plain", merchant().seal(text.as_bytes()).unwrap()),
            FailureKind::Unreadable,
        ),
        (
            plain(200, "text/plain", &token[..token.len() / 2]),
            FailureKind::Unreadable,
        ),
        (plain(200, "text/plain", ""), FailureKind::Unreadable),
        (plain(200, "text/xml", text), FailureKind::Unreadable),
        (plain(200, "text/html", page), FailureKind::Unreadable),
        (plain(502, "text/html", page), FailureKind::ServerFault),
        (plain(500, "text/plain", token.as_str()), FailureKind::ServerFault),
        (plain(401, "text/html", page), FailureKind::Credentials),
        (plain(302, "text/html", ""), FailureKind::Unreadable),
        (sealed("not what was asked for"), FailureKind::Unreadable),
        (sealed(""), FailureKind::Unreadable),
        (sealed_bytes(b"\xff\xfe"), FailureKind::Unreadable),
    ]
}
