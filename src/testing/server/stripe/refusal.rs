//! Stripe's error envelope.

use crate::testing::server::Reply;
use serde_json::{Map, Value, json};

/// An error answer. Whether it is stored under the idempotency key depends on how far the request got.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: u16,
    /// The endpoint had begun to execute: the answer is stored and replayed.
    pub(super) executed: bool,
    error: Map<String, Value>,
}

impl Refusal {
    fn new(status: u16, kind: &str, message: impl Into<String>) -> Self {
        let mut error = Map::new();
        error.insert("type".to_owned(), kind.into());
        error.insert("message".to_owned(), message.into().into());
        Self {
            status,
            executed: false,
            error,
        }
    }

    /// 400, before anything was executed.
    pub(super) fn invalid(param: Option<&str>, message: impl Into<String>) -> Self {
        let refusal = Self::new(400, "invalid_request_error", message);
        match param {
            Some(param) => refusal.with("param", param),
            None => refusal,
        }
    }

    /// 400, after the endpoint had begun: a rule of the object that it acts on.
    pub(super) fn against_rules(message: impl Into<String>) -> Self {
        Self {
            executed: true,
            ..Self::invalid(None, message)
        }
    }

    /// 404 for an id that this account does not have.
    pub(super) fn no_such(kind: &str, id: &str, param: &str) -> Self {
        let refusal = Self::new(404, "invalid_request_error", format!("No such {kind}: '{id}'"));
        refusal.code("resource_missing").with("param", param)
    }

    /// 402: the issuer said no. The answer is stored.
    pub(super) fn declined(error: &Value, intent: Value) -> Self {
        let mut refusal = Self::new(402, "card_error", "");
        if let Value::Object(fields) = error {
            refusal.error.extend(fields.clone());
        }
        refusal.executed = true;
        refusal.with("payment_intent", intent)
    }

    /// 401: no key, or not one that this fake takes.
    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, "invalid_request_error", message)
    }

    /// 400 of the idempotency layer. It has no code.
    pub(super) fn idempotency(message: impl Into<String>) -> Self {
        Self::new(400, "idempotency_error", message)
    }

    /// 409: the first request with this key is still running.
    pub(super) fn key_in_use(key: &str) -> Self {
        let message = format!("Another request with the idempotency key {key} is still running.");
        Self::new(409, "invalid_request_error", message).code("idempotency_key_in_use")
    }

    /// 429 of the limiter.
    pub(super) fn rate_limit() -> Self {
        Self::new(429, "invalid_request_error", "Request rate limit exceeded.").code("rate_limit")
    }

    /// 500.
    pub(super) fn internal() -> Self {
        Self::new(500, "api_error", "An unknown error occurred")
    }

    pub(super) fn code(self, code: &str) -> Self {
        let page = format!("https://docs.stripe.com/error-codes#{}", code.replace('_', "-"));
        self.with("code", code).with("doc_url", page)
    }

    pub(super) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.error.insert(field.to_owned(), value.into());
        self
    }

    pub(super) fn body(&self) -> Vec<u8> {
        json!({ "error": self.error }).to_string().into_bytes()
    }

    pub(super) fn reply(&self) -> Reply {
        Reply::new(self.status)
            .header("Content-Type", "application/json")
            .body(self.body())
    }
}
