//! What the fake remembers: its objects, the events about them, and the money that they moved.

use super::amount;
use super::form::Params;
use super::objects::{Charge, Event, Intent, Refund, Row, Session, Table};
use super::refusal::Refusal;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::operation::OperationKind;
use crate::testing::{Bank, Movement};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Pairs of metadata by which the merchant's operation is known at Stripe.
pub(super) const REFERENCE: &str = "payonce_reference";
const KEY: &str = "payonce_key";
/// The same for a capture, whose metadata lands on the intent beside that of the authorization.
const CAPTURE_REFERENCE: &str = "payonce_capture_reference";
const CAPTURE_KEY: &str = "payonce_capture_key";

/// An authorization that is not captured lapses after this, by default and for cards.
const AUTHORIZATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// One request, as an endpoint sees it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) params: Params,
    /// The `Idempotency-Key`, on requests that may have one.
    pub(super) key: Option<String>,
    /// The `Stripe-Account`; empty for the platform's own.
    pub(super) account: String,
    /// `None` for what a payer or a bank does.
    pub(super) request_id: Option<String>,
}

impl Call {
    /// Something that happens without a request of the merchant.
    pub(super) fn nobody(account: &str) -> Self {
        Self {
            params: Params::default(),
            key: None,
            account: account.to_owned(),
            request_id: None,
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) bank: Bank,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) intents: Table<Intent>,
    pub(super) charges: Table<Charge>,
    pub(super) refunds: Table<Refund>,
    pub(super) sessions: Table<Session>,
    pub(super) events: Table<Event>,
    /// Requests for which the fake has no endpoint.
    pub(super) unexpected: Vec<String>,
    ids: u64,
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) search_lag: Duration,
    pub(super) event_lag: Duration,
    pub(super) refund_status: String,
    pub(super) sessions_pay_at_once: bool,
}

impl World {
    pub(super) fn new(bank: Bank) -> Self {
        Self {
            bank,
            clock: Arc::new(SystemClock),
            settings: Settings {
                search_lag: Duration::ZERO,
                event_lag: Duration::ZERO,
                refund_status: "succeeded".to_owned(),
                sessions_pay_at_once: false,
            },
            intents: Table::default(),
            charges: Table::default(),
            refunds: Table::default(),
            sessions: Table::default(),
            events: Table::default(),
            unexpected: Vec::new(),
            ids: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new id, such as `pi_3Fake0000000000000001`.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}_3Fake{:016}", self.ids)
    }

    /// Lets happen what time alone brings: sessions expire, authorizations lapse.
    pub(super) fn pass_time(&mut self) {
        let now = self.now();
        let lapsed =
            |intent: &&Intent| intent.status == "requires_capture" && now.since(intent.authorized_at) >= AUTHORIZATION;
        for mut intent in self.intents.all().filter(lapsed).cloned().collect::<Vec<_>>() {
            let nobody = Call::nobody(&intent.account);
            self.release(&mut intent, "automatic", &nobody);
        }
        let expired = |session: &&Session| session.status == "open" && now >= session.expires_at;
        for mut session in self.sessions.all().filter(expired).cloned().collect::<Vec<_>>() {
            let nobody = Call::nobody(&session.account);
            session.status = "expired".to_owned();
            self.emit("checkout.session.expired", session.json(), &nobody);
            self.sessions.put(session);
        }
    }

    /// Cancels an intent, and gives the money back that was reserved for it.
    pub(super) fn release(&mut self, intent: &mut Intent, reason: &str, call: &Call) {
        if intent.status == "requires_capture" {
            self.moves(
                OperationKind::Void,
                intent,
                &BTreeMap::new(),
                intent.amount_capturable,
                &intent.id,
                call,
            );
        }
        intent.status = "canceled".to_owned();
        intent.amount_capturable = 0;
        intent.next_action = Value::Null;
        intent.canceled_at = Some(self.now());
        intent.cancellation_reason = (!reason.is_empty()).then(|| reason.to_owned());
        self.emit("payment_intent.canceled", intent.json(), call);
        self.save(intent);
    }

    /// Tells the bank. `own` is the metadata of the request that moves the money, where it has some; what it does
    /// not say is taken from the intent.
    pub(super) fn moves(
        &self,
        kind: OperationKind,
        intent: &Intent,
        own: &BTreeMap<String, String>,
        units: i64,
        gateway_ref: &str,
        call: &Call,
    ) {
        let told = |name| intent.metadata.get(name).or_else(|| intent.page_metadata.get(name));
        let own_reference = own.get(CAPTURE_REFERENCE).or_else(|| own.get(REFERENCE));
        let reference = own_reference.or_else(|| told(REFERENCE));
        let reference = reference.map_or(gateway_ref, String::as_str);
        let header = call.key.as_ref();
        // A later step of the same intent (capture, void) is another operation: its key is never the intent's own.
        let key = match kind {
            OperationKind::Charge | OperationKind::Authorize => own.get(KEY).or_else(|| told(KEY)),
            OperationKind::Capture | OperationKind::Void | OperationKind::Refund | OperationKind::Update => {
                own.get(CAPTURE_KEY).or_else(|| own.get(KEY))
            }
        };
        let movement = Movement::new(
            kind,
            reference,
            "stripe",
            gateway_ref,
            amount::money(units, intent.currency),
        )
        .with_key(key.or(header).cloned())
        .with_identity(header.cloned().unwrap_or_default());
        self.bank.record(movement);
    }

    /// Writes an event down.
    pub(super) fn emit(&mut self, kind: &str, object: Value, call: &Call) {
        let id = self.id("evt");
        let event = Event {
            id,
            account: call.account.clone(),
            kind: kind.to_owned(),
            created: self.now(),
            object,
            request_id: call.request_id.clone(),
            key: call.key.clone(),
        };
        self.events.put(event);
    }

    /// Stores an intent, and what the search index will know of it later.
    pub(super) fn save(&mut self, intent: &Intent) {
        let mut intent = intent.clone();
        intent.indexed.push((self.now(), intent.json()));
        self.intents.put(intent);
    }

    pub(super) fn intent(&self, id: &str, call: &Call) -> Result<Intent, Refusal> {
        let found = self.intents.get(id).filter(|intent| intent.account == call.account);
        found
            .cloned()
            .ok_or_else(|| Refusal::no_such("payment_intent", id, "intent"))
    }

    pub(super) fn charge(&self, id: &str, call: &Call) -> Result<Charge, Refusal> {
        let found = self.charges.get(id).filter(|charge| charge.account == call.account);
        found.cloned().ok_or_else(|| Refusal::no_such("charge", id, "id"))
    }
}
