//! One exchange: sealed, sent, opened, read, and held to what was asked.

use super::Maintenance;
use super::answer::PaymentStatus;
use super::request::ProcessRequest;
use super::xml::{self, Element, XmlError};
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::codes::Class;
use crate::transport::{Method, Request, Response, excerpt, scrub};
use std::time::Duration;

impl TwoC2p {
    fn configured(&self) -> Result<&Maintenance, Failure> {
        let missing = || Failure::not_executed(FailureKind::Unsupported, "the account has no maintenance keys");
        self.maintenance.as_ref().ok_or_else(missing)
    }

    /// Sends a request and reads the answer to it.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none that 2C2P has made for this merchant about this request.
    pub(super) async fn process(
        &self,
        request: &ProcessRequest,
        timeout: Option<Duration>,
    ) -> Result<PaymentStatus, Failure> {
        let document = request.xml(self, self.configured()?.refund_notify_url.as_deref());
        let root = self.exchange_document(document, timeout).await?;
        let status = PaymentStatus::read(&root).ok_or_else(|| unreadable("another document than was asked for"))?;
        match self.difference(request, &status) {
            None => Ok(status),
            Some(what) => {
                let what = format!("names another {what}; its code is {}", status.explain());
                Err(about_another(&what, status.code.as_deref()))
            }
        }
    }

    /// Sends a document and reads the one that answers it, whatever it is about.
    pub(super) async fn exchange_document(
        &self,
        document: Result<String, XmlError>,
        timeout: Option<Duration>,
    ) -> Result<Element, Failure> {
        let url = &self.configured()?.url;
        let document = document.map_err(|error| Failure::not_executed(FailureKind::Unsupported, error.to_string()))?;
        let answer = self.exchange_sealed(url, document.as_bytes(), timeout).await?;
        xml::parse(&answer).map_err(|error| unreadable(&format!("cannot be read: {error}")))
    }

    /// Sends `body` encrypted and signed, and opens the answer.
    ///
    /// Whatever is wrong with the answer's envelope has one form here: see [`Rejected`](super::envelope::Rejected).
    pub(super) async fn exchange_sealed(
        &self,
        url: &str,
        body: &[u8],
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, Failure> {
        let keys = &self.configured()?.keys;
        let token = keys
            .seal(body)
            .map_err(|error| Failure::not_executed(FailureKind::Unsupported, error.to_string()))?;
        let mut request = Request::new(Method::Post, url)
            .header("content-type", "text/plain")
            .header("accept", "text/plain")
            .body(token);
        request.timeout = timeout;
        let response = self.transport.exchange(request).await?;
        if response.status != 200 {
            return Err(not_an_answer(&response));
        }
        keys.open(&response.body).map_err(|rejected| {
            let detail = format!("2C2P's answer is {rejected}{}", page(&response));
            Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200)
        })
    }

    /// What in an answer is not as in the request. An answer that could not place the request names nothing.
    fn difference(&self, request: &ProcessRequest, status: &PaymentStatus) -> Option<&'static str> {
        let differs = |ours: &str, theirs: &Option<String>| theirs.as_ref().is_some_and(|theirs| theirs != ours);
        let key = request.action.as_ref().map(|action| action.key.to_string());
        let placed = !matches!(status.class(), Class::Auth | Class::GatewayError | Class::InProgress);
        let succeeded = matches!(status.code.as_deref(), Some("00" | "42"));
        if differs(&self.merchant_id, &status.merchant_id) {
            return Some("merchant");
        }
        if differs(&request.invoice_no, &status.invoice_no) || (placed && status.invoice_no.is_none()) {
            return Some("invoice");
        }
        if differs(request.process_type, &status.process_type) || (succeeded && status.process_type.is_none()) {
            return Some("process type");
        }
        if key.is_some_and(|key| differs(&key, &status.idempotency_id)) {
            return Some("operation");
        }
        // The amount of a question is that of the payment, which the answer is asked for.
        let asked = request.amount.filter(|_| succeeded && request.action.is_some())?;
        (status.amount(asked.currency()) != Some(asked)).then_some("amount")
    }
}

/// The failure for an answer that 2C2P has made, and that says nothing about what was asked.
pub(super) fn unreadable(what: &str) -> Failure {
    let detail = format!("2C2P's answer is authentic and {what}");
    Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200)
}

/// The same for one about another merchant, payment or plan, with its code.
pub(super) fn about_another(what: &str, code: Option<&str>) -> Failure {
    match code {
        Some(code) => unreadable(what).with_code(scrub(code)),
        None => unreadable(what),
    }
}

/// No status but 200 is documented. 400 and 401 have been seen where keys were not registered, from before the gateway;
/// they are not signed, so that they prove nothing.
fn not_an_answer(response: &Response) -> Failure {
    let (kind, what) = match response.status {
        400 | 401 | 403 => (
            FailureKind::Credentials,
            "does not accept the merchant's keys, by an unsigned answer",
        ),
        429 => (FailureKind::Throttled, "asks for fewer requests"),
        500.. => (FailureKind::ServerFault, "reports a fault of its own"),
        _ => (FailureKind::Unreadable, "gives an answer with an unexpected status"),
    };
    Failure::maybe_executed(kind, format!("2C2P {what}{}", page(response))).with_http_status(response.status)
}

/// A piece of an error page. Of nothing else: a document in the clear names the payer's card and account.
fn page(response: &Response) -> String {
    let html = response
        .header("content-type")
        .is_some_and(|value| value.contains("html"));
    if !html || response.body.is_empty() {
        return String::new();
    }
    format!(": {}", excerpt(&response.body))
}
