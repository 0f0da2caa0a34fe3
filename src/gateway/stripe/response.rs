//! What an answer means: by HTTP status first, then by `error.code`, then by `error.type`.
//!
//! A 409 can wear the type of a parameter mismatch, a lock time-out that of a client's error, and a decline on a
//! stand-in that of an invalid request; so the type comes last (api/errors, docs/error-low-level, docs/rate-limits).
//! An answer that is not in Stripe's form came from a box in between and proves nothing.

use super::codes::{self, Class};
use super::json::Json;
use super::object::{self, Unclear, View, detail, text};
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::operation::{GatewayRef, OperationKind};
use crate::outcome::{Evidence, Failed, FailureCategory, Outcome};
use crate::transport::{Response, excerpt, retry_after, scrub};
use std::time::Duration;

/// An answer, taken apart.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    status: u16,
    request_id: Option<String>,
    replayed: bool,
    should_retry: Option<bool>,
    retry_after: Option<Duration>,
    /// A limiter named itself as the sender of a 429.
    limited: bool,
    body: Body<'a>,
}

#[derive(Debug)]
enum Body<'a> {
    /// 2xx with a JSON object that says what it is.
    Object(Json<'a>),
    /// Any other status with `{"error": {"type": ...}}`.
    Error(Json<'a>),
    /// Anything else; described, scrubbed.
    Foreign(String),
}

/// What a read brought.
#[derive(Debug)]
pub(super) enum Found {
    /// The object, and the evidence of the answer that brought it.
    Object(Json<'static>, Evidence),
    /// Stripe does not know the id in this account and mode.
    Missing,
}

impl<'a> Answer<'a> {
    pub(super) fn new(response: &'a Response, now: Timestamp) -> Self {
        let header = |wanted: &str| {
            // Names are matched in any case: a transport of the user's own may not lower them.
            let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case(wanted);
            response.headers.iter().find(named).map(|(_, value)| value.trim())
        };
        let delays = response
            .headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        Self {
            status: response.status,
            request_id: header("request-id").filter(|id| !id.is_empty()).map(scrub),
            replayed: header("idempotent-replayed").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            should_retry: header("stripe-should-retry").and_then(flag),
            retry_after: retry_after(delays.map(|(_, value)| value.as_str()), now),
            limited: header("stripe-rate-limited-reason").is_some(),
            body: Body::new(response, header("content-type")),
        }
    }

    /// What the answer to a send says about the operation.
    pub(super) fn judge(self, view: &View<'_>) -> Result<Outcome, Failure> {
        let evidence = self.evidence();
        match &self.body {
            Body::Object(object) => object::read(object, view, evidence).map_err(|why| self.unclear(&why)),
            Body::Error(error) => self.judge_error(error, view, evidence),
            Body::Foreign(description) => Err(self.judge_foreign(description)),
        }
    }

    /// The same answer, free of the bytes that it was read from.
    pub(super) fn into_owned(self) -> Answer<'static> {
        let body = match self.body {
            Body::Object(object) => Body::Object(object.into_owned()),
            Body::Error(error) => Body::Error(error.into_owned()),
            Body::Foreign(description) => Body::Foreign(description),
        };
        Answer { body, ..self }
    }

    /// The answer says, in Stripe's own form, that this kind of read is not to be had: no such path, no permission,
    /// no search in this country.
    pub(super) fn refuses_the_way(&self) -> bool {
        match &self.body {
            Body::Error(_) => matches!(self.status, 400 | 403 | 404),
            Body::Foreign(_) => self.status == 404,
            Body::Object(_) => false,
        }
    }

    pub(super) fn unclear(&self, why: &Unclear) -> Failure {
        let detail = format!("an answer that cannot be relied on: {}", why.0);
        self.failure(Failure::maybe_executed(FailureKind::Unreadable, detail))
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            http_status: Some(self.status),
            request_id: self.request_id.clone(),
            replayed: self.replayed,
            ..Evidence::default()
        }
    }

    fn failure(&self, failure: Failure) -> Failure {
        failure
            .with_http_status(self.status)
            .with_request_id(self.request_id.clone())
            .with_retry_after(self.retry_after)
            .with_retry_advice(self.should_retry)
    }

    fn judge_error(&self, error: &Json<'_>, view: &View<'_>, mut evidence: Evidence) -> Result<Outcome, Failure> {
        let code = text(error, "code");
        let class = code.and_then(codes::error_code).map(|row| row.class);
        evidence.code = code.map(scrub);
        evidence.message = text(error, "message").map(scrub);
        detail(&mut evidence, "param", text(error, "param"));
        let fail = |maybe: bool, kind, what| Err(self.failed(error, maybe, kind, what));
        match self.status {
            402 => self.decline(error, view, evidence),
            401 | 403 => fail(
                false,
                FailureKind::Credentials,
                "Stripe does not accept the credentials",
            ),
            409 if class == Some(Class::Duplicate) => self.reconcile(error, view, evidence),
            409 => fail(true, FailureKind::StillRunning, "an earlier request still runs"),
            429 if class == Some(Class::StillRunning) => {
                fail(true, FailureKind::StillRunning, "another request holds the object")
            }
            // The limiters stand before the idempotency layer (docs/rate-limits). A 429 that names neither a limiter
            // nor a limit is not proven to come from one.
            429 => {
                let proven = self.limited || class == Some(Class::Throttled);
                fail(!proven, FailureKind::Throttled, "too many requests")
            }
            424 | 500..=599 => fail(true, FailureKind::ServerFault, "a fault on the side of Stripe"),
            400..=499 => self.judge_refusal(error, class, view, evidence),
            _ => fail(true, FailureKind::Unreadable, "an error under a status of success"),
        }
    }

    fn judge_refusal(
        &self,
        error: &Json<'_>,
        class: Option<Class>,
        view: &View<'_>,
        evidence: Evidence,
    ) -> Result<Outcome, Failure> {
        let kind = text(error, "type").unwrap_or("");
        let fail = |maybe: bool, kind, what| Err(self.failed(error, maybe, kind, what));
        if kind == "idempotency_error" {
            return fail(
                true,
                FailureKind::Duplicate,
                "the key was used before with other parameters",
            );
        }
        let by_type = match kind {
            "card_error" => Some(Class::Declined),
            "invalid_request_error" if self.status == 404 => Some(Class::NotFound),
            "invalid_request_error" => Some(Class::Invalid),
            _ => None,
        };
        match class.or(by_type) {
            Some(Class::Duplicate) => self.reconcile(error, view, evidence),
            Some(Class::StillRunning) => fail(true, FailureKind::StillRunning, "another request holds the object"),
            Some(Class::Throttled) => fail(true, FailureKind::Throttled, "too many requests"),
            Some(Class::Credentials) => fail(false, FailureKind::Credentials, "Stripe does not accept the account"),
            Some(Class::Declined | Class::Authenticate | Class::Expired) => self.decline(error, view, evidence),
            // An expired or completed page is refused without a code: the page itself has to be looked at.
            Some(Class::Invalid) if view.target.is_some_and(|target| target.starts_with("cs_")) => {
                fail(true, FailureKind::Duplicate, "the page cannot be closed")
            }
            Some(Class::Invalid) => Ok(refusal(FailureCategory::Invalid, view, evidence)),
            Some(Class::NotFound) if view.target.is_some() => {
                Ok(refusal(FailureCategory::NoSuchPayment, view, evidence))
            }
            Some(Class::NotFound) => Ok(refusal(FailureCategory::Invalid, view, evidence)),
            None => fail(true, FailureKind::ServerFault, "an error of a kind that leaves it open"),
        }
    }

    fn decline(&self, error: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Failure> {
        let mut failed = object::declined(error, evidence);
        let intent = error.get("payment_intent").unwrap_or(&Json::Null);
        let ours = view.key.map(|key| key.to_string());
        let creates = view.target.is_none();
        if creates && object::mark(intent, object::KEY_MARK).is_some_and(|mark| Some(mark) != ours.as_deref()) {
            return Err(self.unclear(&Unclear("it is about another operation".to_owned())));
        }
        failed.gateway_ref = match view.kind {
            OperationKind::Refund | OperationKind::Update => None,
            OperationKind::Capture | OperationKind::Void => target_ref(view),
            // It exists although the payment failed (docs/payments/paymentintents/lifecycle).
            OperationKind::Charge | OperationKind::Authorize => object::id_of(intent, &["pi_"]).ok(),
        };
        Ok(Outcome::Failed(failed))
    }

    /// The effect may be there already. Where the error carries the payment, its state decides; else an inquiry.
    fn reconcile(&self, error: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Failure> {
        let open = || self.failed(error, true, FailureKind::Duplicate, "the effect may be there already");
        let Some(intent) = error.get("payment_intent").filter(|intent| intent.is_object()) else {
            return Err(open());
        };
        let read = match view.kind {
            OperationKind::Capture => object::captured(intent, view, evidence.clone()),
            OperationKind::Void => object::voided(intent, view, evidence.clone()),
            OperationKind::Charge | OperationKind::Authorize => {
                let ours = object::mark(intent, object::KEY_MARK) == view.key.map(|key| key.to_string()).as_deref();
                if ours {
                    object::payment(intent, view, evidence.clone()).map(Some)
                } else {
                    Ok(None)
                }
            }
            OperationKind::Refund | OperationKind::Update => Ok(None),
        };
        match (read, view.kind, text(intent, "status")) {
            (Ok(Some(outcome)), _, _) => Ok(outcome),
            // Never authorized: there is nothing to capture, and no repeat changes that.
            (
                Ok(None),
                OperationKind::Capture,
                Some("requires_payment_method" | "requires_confirmation" | "requires_action"),
            ) => Ok(refusal(FailureCategory::Invalid, view, evidence)),
            _ => Err(open()),
        }
    }

    fn refused_read(&self, status: u16, error: &Json<'_>) -> Failure {
        let (kind, what) = match status {
            401 | 403 => (
                FailureKind::Credentials,
                "Stripe does not accept the credentials for this read",
            ),
            429 => (FailureKind::Throttled, "too many reads"),
            424 | 500..=599 => (FailureKind::ServerFault, "a fault on the side of Stripe"),
            _ => (FailureKind::Unsupported, "Stripe refuses this read"),
        };
        self.failed(error, false, kind, what)
    }

    fn failed(&self, error: &Json<'_>, maybe: bool, kind: FailureKind, what: &str) -> Failure {
        let detail = match text(error, "message") {
            Some(message) => format!("{what}: {}", scrub(message)),
            None => what.to_owned(),
        };
        let failure = if maybe {
            Failure::maybe_executed(kind, detail)
        } else {
            Failure::not_executed(kind, detail)
        };
        let code = text(error, "code").or(text(error, "type"));
        self.failure(match code {
            Some(code) => failure.with_code(scrub(code)),
            None => failure,
        })
    }

    /// Whoever sent it, the request may have gone on to Stripe: nothing is proven.
    fn judge_foreign(&self, description: &str) -> Failure {
        let kind = match self.status {
            424 | 500..=599 => FailureKind::ServerFault,
            429 => FailureKind::Throttled,
            _ => FailureKind::Unreadable,
        };
        let detail = format!("an answer that is not in Stripe's form: {description}");
        self.failure(Failure::maybe_executed(kind, detail))
    }
}

impl Answer<'static> {
    /// What the answer to a read brought.
    pub(super) fn found(self) -> Result<Found, Failure> {
        let evidence = self.evidence();
        match (self.status, &self.body) {
            (404, Body::Error(_)) => Ok(Found::Missing),
            (_, Body::Object(object)) => Ok(Found::Object(object.clone(), evidence)),
            (status, Body::Error(error)) => Err(self.refused_read(status, error)),
            (_, Body::Foreign(description)) => Err(self.judge_foreign(description)),
        }
    }
}

impl<'a> Body<'a> {
    fn new(response: &'a Response, content_type: Option<&str>) -> Self {
        let foreign = || {
            let content_type = content_type.map_or_else(|| "no content type".to_owned(), scrub);
            Self::Foreign(format!("{content_type}, {}", excerpt(&response.body)))
        };
        let Ok(value) = serde_json::from_slice::<Json<'_>>(&response.body) else {
            return foreign();
        };
        let success = (200..300).contains(&response.status);
        match value.get("error").filter(|error| !error.is_null()) {
            Some(error) if !success && text(error, "type").is_some() => Self::Error(error.clone()),
            None if success && text(&value, "object").is_some() => Self::Object(value),
            _ => foreign(),
        }
    }
}

fn refusal(category: FailureCategory, view: &View<'_>, evidence: Evidence) -> Outcome {
    let mut failed = Failed::new(category);
    failed.gateway_ref = target_ref(view);
    failed.evidence = evidence;
    Outcome::Failed(failed)
}

/// A refund that was refused has no id of its own, and the payment's id is not its.
fn target_ref(view: &View<'_>) -> Option<GatewayRef> {
    let acts = matches!(view.kind, OperationKind::Capture | OperationKind::Void);
    view.target.filter(|_| acts).map(GatewayRef::new)
}

fn flag(value: &str) -> Option<bool> {
    match value {
        _ if value.eq_ignore_ascii_case("true") => Some(true),
        _ if value.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}
