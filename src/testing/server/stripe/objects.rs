//! Stripe's objects, with the fields that a payments client reads.

use crate::clock::Timestamp;
use crate::money::Currency;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Objects of one kind, in the order in which they were made.
#[derive(Debug)]
pub(super) struct Table<T> {
    rows: Vec<T>,
    index: HashMap<String, usize>,
}

/// An object with an id.
pub(super) trait Row {
    fn id(&self) -> &str;
    fn account(&self) -> &str;
    fn created(&self) -> Timestamp;
    fn json(&self) -> Value;
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            index: HashMap::new(),
        }
    }
}

impl<T: Row> Table<T> {
    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.index.get(id).and_then(|at| self.rows.get(*at))
    }

    /// Adds an object, or replaces the one with its id.
    pub(super) fn put(&mut self, row: T) {
        match self.index.get(row.id()) {
            Some(at) => self.rows[*at] = row,
            None => {
                self.index.insert(row.id().to_owned(), self.rows.len());
                self.rows.push(row);
            }
        }
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.rows.iter()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) amount: i64,
    pub(super) amount_capturable: i64,
    pub(super) amount_received: i64,
    pub(super) currency: Currency,
    pub(super) status: String,
    pub(super) capture_method: String,
    pub(super) confirmation_method: String,
    pub(super) payment_method: Option<String>,
    pub(super) payment_method_types: Vec<String>,
    pub(super) customer: Option<String>,
    pub(super) description: Option<String>,
    pub(super) return_url: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    /// What the page it was paid on was told about it. Nobody but the bank gets to see this.
    pub(super) page_metadata: BTreeMap<String, String>,
    pub(super) latest_charge: Option<String>,
    pub(super) last_payment_error: Value,
    pub(super) next_action: Value,
    pub(super) canceled_at: Option<Timestamp>,
    pub(super) cancellation_reason: Option<String>,
    pub(super) created: Timestamp,
    pub(super) authorized_at: Timestamp,
    /// What it looked like, and since when: what a lagging index knows.
    pub(super) indexed: Vec<(Timestamp, Value)>,
}

impl Row for Intent {
    fn id(&self) -> &str {
        &self.id
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn created(&self) -> Timestamp {
        self.created
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "object": "payment_intent",
            "amount": self.amount,
            "amount_capturable": self.amount_capturable,
            "amount_received": self.amount_received,
            "application": null,
            "canceled_at": self.canceled_at.map(Timestamp::unix_seconds),
            "cancellation_reason": self.cancellation_reason,
            "capture_method": self.capture_method,
            "client_secret": format!("{}_secret_Fake", self.id),
            "confirmation_method": self.confirmation_method,
            "created": self.created.unix_seconds(),
            "currency": self.currency.code().to_ascii_lowercase(),
            "customer": self.customer,
            "description": self.description,
            "last_payment_error": self.last_payment_error,
            "latest_charge": self.latest_charge,
            "livemode": false,
            "metadata": self.metadata,
            "next_action": self.next_action,
            "payment_method": self.payment_method,
            "payment_method_types": self.payment_method_types,
            "processing": null,
            "receipt_email": null,
            "shipping": null,
            "status": self.status,
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) intent: String,
    pub(super) payment_method: Option<String>,
    pub(super) amount: i64,
    pub(super) amount_captured: i64,
    pub(super) amount_refunded: i64,
    pub(super) currency: Currency,
    pub(super) status: String,
    /// The code and the issuer's reason of a failed one.
    pub(super) failure: Option<(String, String)>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) description: Option<String>,
    pub(super) created: Timestamp,
}

impl Row for Charge {
    fn id(&self) -> &str {
        &self.id
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn created(&self) -> Timestamp {
        self.created
    }

    fn json(&self) -> Value {
        let paid = self.status == "succeeded";
        let reason = self.failure.as_ref().map(|(_, reason)| reason);
        json!({
            "id": self.id,
            "object": "charge",
            "amount": self.amount,
            "amount_captured": self.amount_captured,
            "amount_refunded": self.amount_refunded,
            "balance_transaction": null,
            "captured": paid && self.amount_captured > 0,
            "created": self.created.unix_seconds(),
            "currency": self.currency.code().to_ascii_lowercase(),
            "customer": null,
            "description": self.description,
            "disputed": false,
            "failure_code": self.failure.as_ref().map(|(code, _)| code),
            "failure_message": self.failure.as_ref().map(|_| "Your card was declined."),
            "livemode": false,
            "metadata": self.metadata,
            "outcome": {
                "network_status": if paid { "approved_by_network" } else { "declined_by_network" },
                "reason": reason,
                "type": if paid { "authorized" } else { "issuer_declined" },
            },
            "paid": paid,
            "payment_intent": self.intent,
            "payment_method": self.payment_method,
            "refunded": self.amount_captured > 0 && self.amount_refunded == self.amount_captured,
            "status": self.status,
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) charge: String,
    pub(super) intent: String,
    pub(super) amount: i64,
    pub(super) currency: Currency,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) failure_reason: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    /// The key of the request that made it, for the bank, when the money moves later.
    pub(super) key: Option<String>,
    pub(super) created: Timestamp,
}

impl Row for Refund {
    fn id(&self) -> &str {
        &self.id
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn created(&self) -> Timestamp {
        self.created
    }

    fn json(&self) -> Value {
        let mut refund = json!({
            "id": self.id,
            "object": "refund",
            "amount": self.amount,
            "balance_transaction": null,
            "charge": self.charge,
            "created": self.created.unix_seconds(),
            "currency": self.currency.code().to_ascii_lowercase(),
            "metadata": self.metadata,
            "payment_intent": self.intent,
            "reason": self.reason,
            "receipt_number": null,
            "source_transfer_reversal": null,
            "status": self.status,
            "transfer_reversal": null,
        });
        // These are absent, not null, when they say nothing.
        if let Some(reason) = &self.failure_reason {
            refund["failure_reason"] = reason.as_str().into();
        }
        if self.status == "pending" {
            refund["pending_reason"] = "processing".into();
        }
        if self.status == "requires_action" {
            refund["next_action"] = json!({ "type": "display_details", "display_details": {} });
        }
        refund
    }
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) amount: i64,
    pub(super) currency: Currency,
    pub(super) status: String,
    pub(super) payment_status: String,
    pub(super) intent: Option<String>,
    pub(super) success_url: Option<String>,
    pub(super) cancel_url: Option<String>,
    pub(super) client_reference_id: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) intent_metadata: BTreeMap<String, String>,
    pub(super) intent_description: Option<String>,
    pub(super) capture_method: String,
    pub(super) created: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl Row for Session {
    fn id(&self) -> &str {
        &self.id
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn created(&self) -> Timestamp {
        self.created
    }

    fn json(&self) -> Value {
        let page = format!("https://checkout.stripe.com/c/pay/{}", self.id);
        json!({
            "id": self.id,
            "object": "checkout.session",
            "amount_subtotal": self.amount,
            "amount_total": self.amount,
            "cancel_url": self.cancel_url,
            "client_reference_id": self.client_reference_id,
            "created": self.created.unix_seconds(),
            "currency": self.currency.code().to_ascii_lowercase(),
            "customer": null,
            "customer_details": null,
            "customer_email": null,
            "expires_at": self.expires_at.unix_seconds(),
            "livemode": false,
            "metadata": self.metadata,
            "mode": "payment",
            "payment_intent": self.intent,
            "payment_method_types": ["card"],
            "payment_status": self.payment_status,
            "setup_intent": null,
            "status": self.status,
            "success_url": self.success_url,
            "ui_mode": "hosted_page",
            "url": (self.status == "open").then_some(page),
        })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) kind: String,
    pub(super) created: Timestamp,
    /// The object as it was.
    pub(super) object: Value,
    pub(super) request_id: Option<String>,
    pub(super) key: Option<String>,
}

impl Row for Event {
    fn id(&self) -> &str {
        &self.id
    }

    fn account(&self) -> &str {
        &self.account
    }

    fn created(&self) -> Timestamp {
        self.created
    }

    fn json(&self) -> Value {
        let mut event = json!({
            "id": self.id,
            "object": "event",
            "api_version": super::VERSION,
            "created": self.created.unix_seconds(),
            "data": { "object": self.object },
            "livemode": false,
            "pending_webhooks": 1,
            "request": { "id": self.request_id, "idempotency_key": self.key },
            "type": self.kind,
        });
        if !self.account.is_empty() {
            event["account"] = self.account.as_str().into();
        }
        event
    }
}
