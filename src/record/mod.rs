//! The durable memory of one operation, and the one function that changes it.

mod learn;

pub(crate) use learn::PAGE_GRACE;
pub use learn::{Fact, Learned, Observation, Recorded, Source};

use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::money::Money;
use crate::operation::{Fingerprint, GatewayRef, Operation, OperationKey, OperationKind, Reference};
use crate::outcome::{Failed, FailureCategory, Outcome, Unknown, UnknownReason};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// How many answered looks without anything new before a person is asked: some days of them.
const LAST_LOOK: u32 = 20;

/// What a journal stores for one operation.
///
/// Built only by the engine and by [`journal::row`](crate::journal::row); changed only through [`Record::learn`] and
/// the steps of the engine. Journals store it and compare versions, they never change it.
#[derive(Clone, Debug)]
pub struct Record {
    pub(crate) key: OperationKey,
    pub(crate) namespace: Arc<str>,
    pub(crate) kind: OperationKind,
    pub(crate) reference: Reference,
    pub(crate) attempt: u32,
    pub(crate) gateway: Arc<str>,
    pub(crate) wire_identity: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) amount: Option<Money>,
    pub(crate) target: Option<PaymentTarget>,
    pub(crate) state: State,
    pub(crate) gateway_ref: Option<GatewayRef>,
    pub(crate) sends: u32,
    pub(crate) maybe_executed: bool,
    pub(crate) first_sent_at: Timestamp,
    pub(crate) last_sent_at: Timestamp,
    pub(crate) payable_until: Option<Timestamp>,
    pub(crate) absences: Absences,
    pub(crate) looks: u32,
    pub(crate) failed_looks: u32,
    pub(crate) due_at: Option<Timestamp>,
    pub(crate) lease: Option<Lease>,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) version: u64,
}

/// Where an operation stands.
#[allow(clippy::exhaustive_enums, reason = "every step of the engine decides for each state")]
#[allow(
    clippy::large_enum_variant,
    reason = "an open record is the exception; most hold an outcome"
)]
#[derive(Clone, Debug)]
pub enum State {
    /// A request is on its way, or its process died while it was. Whose, says the lease.
    Sending,
    /// Provably nothing was executed: no connection came about, the gateway turned the request away, or its absence
    /// there is proven. It blocks no other attempt, and the next call of the operation takes its place under the same
    /// key, with other content if need be.
    Released,
    /// The gateway, or its silence, said this.
    Known(Outcome),
}

/// The payment that a capture, void or refund acts on, as its own operation knew it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentTarget {
    /// The gateway's id of the payment, where it is known.
    pub gateway_ref: Option<GatewayRef>,
    /// The identity under which the payment was sent (2C2P: its invoice number), where it went through this journal.
    pub wire_identity: Option<Arc<str>>,
    /// How much the payment was of, where it went through this journal.
    pub amount: Option<Money>,
}

impl PaymentTarget {
    /// Do both name one payment? Callers who know it from elsewhere may have written either name as the gateway's id.
    pub(crate) fn is_same_payment(&self, other: &Self) -> bool {
        let names = |target: &Self| {
            let id = target.gateway_ref.as_ref().map(|id| id.as_str().to_owned());
            let identity = target.wire_identity.as_deref().map(str::to_owned);
            [id, identity].into_iter().flatten().collect::<Vec<_>>()
        };
        let theirs = names(other);
        names(self).iter().any(|name| theirs.contains(name))
    }
}

/// The right of one call to send, or of one worker to look, for a while. It expires, and every write that follows it
/// compares versions as well: that it ran out is never what safety rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// Who holds it: one `Payments` of one process, with all its clones. Within it, one call a key.
    pub owner: Arc<str>,
    /// Until when, by the clock that the processes share.
    pub until: Timestamp,
}

impl Lease {
    /// `owner` holds it until `until`.
    pub fn new(owner: impl Into<Arc<str>>, until: Timestamp) -> Self {
        Self {
            owner: owner.into(),
            until,
        }
    }
}

/// Consistent answers of "not found" since the last send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absences {
    pub(crate) count: u32,
    pub(crate) last: Option<Timestamp>,
}

/// A line of an operation's history. Nothing in it is secret or personal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryLine {
    /// When it was learned.
    pub at: Timestamp,
    /// From where.
    pub source: Source,
    /// How many sends there had been.
    pub sends: u32,
    /// The state before, in a word; empty for the first line.
    pub from: Cow<'static, str>,
    /// The state after.
    pub to: Cow<'static, str>,
    /// The HTTP status of the answer, where there was one.
    pub http_status: Option<u16>,
    /// The gateway's code.
    pub code: Option<String>,
    /// The gateway's id of the request.
    pub request_id: Option<String>,
    /// The answer was a stored one.
    pub replayed: bool,
    /// One sentence.
    pub note: Cow<'static, str>,
}

impl HistoryLine {
    /// A line without particulars.
    pub fn new(
        at: Timestamp,
        source: Source,
        from: impl Into<Cow<'static, str>>,
        to: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            at,
            source,
            sends: 0,
            from: from.into(),
            to: to.into(),
            http_status: None,
            code: None,
            request_id: None,
            replayed: false,
            note: Cow::Borrowed(""),
        }
    }
}

/// What may be sent. It exists only for an operation that the journal holds as being sent by this call, so that
/// nothing that is not written down can leave the process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Instruction {
    key: OperationKey,
    wire_identity: Arc<str>,
    operation: Arc<Operation>,
    target: Option<PaymentTarget>,
    first_sent_at: Timestamp,
    payable_until: Option<Timestamp>,
    page_closes: Option<Timestamp>,
    timeout: Duration,
}

impl Instruction {
    /// The idempotency key, as stored when the operation was first reserved.
    #[must_use]
    pub fn key(&self) -> OperationKey {
        self.key
    }

    /// The identity that `Gateway::prepare` derived (2C2P: the invoice number), as stored.
    #[must_use]
    pub fn wire_identity(&self) -> &str {
        &self.wire_identity
    }

    /// What to do.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The payment that a capture, void or refund acts on.
    #[must_use]
    pub fn target(&self) -> Option<&PaymentTarget> {
        self.target.as_ref()
    }

    /// When the operation was first sent. Unlike the present it is the same in each retry: a request may depend on it.
    #[must_use]
    pub fn first_sent_at(&self) -> Timestamp {
        self.first_sent_at
    }

    /// Until when the payer can pay on a page, where the operation opens one.
    #[must_use]
    pub fn payable_until(&self) -> Option<Timestamp> {
        self.payable_until
    }

    /// When the page closes that *this* send opens, at a gateway that counts from there. Unlike
    /// [`payable_until`](Self::payable_until) it moves with each send, so that no request may depend on it.
    #[must_use]
    pub fn page_closes(&self) -> Option<Timestamp> {
        self.page_closes
    }

    /// How long this exchange may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// The identity and content of an operation about to be reserved.
#[derive(Debug)]
pub(crate) struct Intent<'a> {
    pub(crate) key: OperationKey,
    pub(crate) namespace: Arc<str>,
    pub(crate) operation: &'a Operation,
    pub(crate) gateway: Arc<str>,
    pub(crate) wire_identity: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) target: Option<PaymentTarget>,
    pub(crate) payable_for: Option<Duration>,
}

impl Record {
    /// The record with which the operation is reserved: being sent, for the first time, by the holder of `lease`.
    pub(crate) fn reserve(intent: Intent<'_>, now: Timestamp, lease: Lease) -> Self {
        let operation = intent.operation;
        let page_closes = intent.payable_for.map(|duration| now.after(duration));
        Self {
            key: intent.key,
            namespace: intent.namespace,
            kind: operation.kind(),
            reference: operation.reference().clone(),
            attempt: operation.attempt_number(),
            gateway: intent.gateway,
            wire_identity: intent.wire_identity,
            fingerprint: intent.fingerprint,
            amount: operation.amount(),
            target: intent.target,
            state: State::Sending,
            gateway_ref: None,
            sends: 1,
            maybe_executed: false,
            first_sent_at: now,
            last_sent_at: now,
            payable_until: page_closes.map(|default| operation.expiry().unwrap_or(default)),
            absences: Absences::default(),
            looks: 0,
            failed_looks: 0,
            due_at: Some(lease.until),
            lease: Some(lease),
            created_at: now,
            updated_at: now,
            version: 1,
        }
    }

    /// The record for another send with the same key, by the holder of `lease`.
    ///
    /// `failure` is what ended the send before, when this call made it; without it the operation is taken over from a
    /// call that is gone, and what that one sent is not known.
    pub(crate) fn send_again(&self, now: Timestamp, lease: Lease, failure: Option<&Failure>) -> Self {
        let before = failure.is_none_or(Failure::may_have_executed) && !matches!(self.state, State::Released);
        Self {
            state: State::Sending,
            sends: self.sends + 1,
            maybe_executed: self.maybe_executed || before,
            last_sent_at: now,
            absences: Absences::default(),
            due_at: Some(lease.until),
            lease: Some(lease),
            updated_at: self.updated_at.max(now),
            version: self.version + 1,
            ..self.clone()
        }
    }

    /// The same record, to be looked at again at `due` while it is open, and no longer under a lease.
    pub(crate) fn look_again_at(mut self, now: Timestamp, due: Timestamp) -> Self {
        self.due_at = self.is_open().then_some(due);
        self.lease = None;
        if let State::Known(Outcome::Unknown(unknown)) = &mut self.state {
            unknown.next_look_at = Some(due);
            unknown.retry_after = due.since(now);
        }
        self
    }

    /// The permission to send `operation`, while the record says that it is being sent.
    pub(crate) fn instruction(&self, operation: &Arc<Operation>, timeout: Duration) -> Option<Instruction> {
        matches!(self.state, State::Sending).then(|| Instruction {
            key: self.key,
            wire_identity: Arc::clone(&self.wire_identity),
            operation: Arc::clone(operation),
            target: self.target.clone(),
            first_sent_at: self.first_sent_at,
            payable_until: self.payable_until,
            page_closes: self.page_closes(),
            timeout,
        })
    }

    /// When the payer's page is closed at the latest: a page that was opened by a later send than the first stays open
    /// for as long from there.
    pub(crate) fn page_closes(&self) -> Option<Timestamp> {
        let later = self.last_sent_at.since(self.first_sent_at);
        self.payable_until.map(|until| until.after(later))
    }

    /// What is known, for the caller.
    pub fn outcome(&self) -> Outcome {
        match &self.state {
            State::Known(outcome) => outcome.clone(),
            State::Released => {
                let mut failed = Failed::new(FailureCategory::NotExecuted);
                failed.at = Some(self.updated_at);
                Outcome::Failed(failed)
            }
            State::Sending => {
                let detail = "a request is on its way, or was when its process ended";
                let mut unknown = Unknown::new(UnknownReason::InFlight, detail, self.last_sent_at);
                unknown.next_look_at = self.due_at;
                Outcome::Unknown(unknown)
            }
        }
    }

    /// May the operation still change by itself, or have changed without our knowing?
    #[must_use]
    pub fn is_open(&self) -> bool {
        match &self.state {
            State::Sending => true,
            State::Released => false,
            State::Known(outcome) => !outcome.is_settled(),
        }
    }

    /// May another attempt begin beside this one? Only when this one has definitely failed or never was executed.
    #[must_use]
    pub fn blocks_other_attempts(&self) -> bool {
        !matches!(self.state, State::Released | State::Known(Outcome::Failed(_)))
    }

    /// Is it a person's turn? Gateway and journal disagree, or it has been looked at for days and is still open. It is
    /// looked at once a day all the same.
    #[must_use]
    pub fn needs_review(&self) -> bool {
        match &self.state {
            State::Known(Outcome::Conflict(_)) => true,
            State::Sending
            | State::Released
            | State::Known(Outcome::Succeeded(_) | Outcome::Pending(_) | Outcome::Failed(_) | Outcome::Unknown(_)) => {
                self.is_open() && self.looks >= LAST_LOOK
            }
        }
    }

    /// When it came to its end; `None` while it is open or waits for a person.
    #[must_use]
    pub fn finished_at(&self) -> Option<Timestamp> {
        (!self.is_open() && !self.needs_review()).then_some(self.updated_at)
    }

    /// The state in a word: `sending`, `released`, or that of the outcome.
    #[must_use]
    pub fn state_word(&self) -> &'static str {
        match &self.state {
            State::Sending => "sending",
            State::Released => "released",
            State::Known(outcome) => outcome.as_str(),
        }
    }

    /// The idempotency key.
    #[must_use]
    pub fn key(&self) -> OperationKey {
        self.key
    }

    /// The namespace of the key.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The caller's reference.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The number of the attempt.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The gateway that it was sent to.
    #[must_use]
    pub fn gateway(&self) -> &str {
        &self.gateway
    }

    /// The identity under which it was sent.
    #[must_use]
    pub fn wire_identity(&self) -> &str {
        &self.wire_identity
    }

    /// The fingerprint of its content.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The amount asked for; `None` for a void.
    #[must_use]
    pub fn amount(&self) -> Option<Money> {
        self.amount
    }

    /// The payment that a capture, void or refund acts on.
    #[must_use]
    pub fn target(&self) -> Option<&PaymentTarget> {
        self.target.as_ref()
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The gateway's id, once one is known.
    #[must_use]
    pub fn gateway_ref(&self) -> Option<&GatewayRef> {
        self.gateway_ref.as_ref()
    }

    /// How many sends there have been.
    #[must_use]
    pub fn sends(&self) -> u32 {
        self.sends
    }

    /// When it was first sent.
    #[must_use]
    pub fn first_sent_at(&self) -> Timestamp {
        self.first_sent_at
    }

    /// When it was last sent.
    #[must_use]
    pub fn last_sent_at(&self) -> Timestamp {
        self.last_sent_at
    }

    /// Until when the payer can pay on a page, where there is one.
    #[must_use]
    pub fn payable_until(&self) -> Option<Timestamp> {
        self.payable_until
    }

    /// When the reconciler is to look; `None` when nothing is to be looked for.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    /// How often the gateway has answered an inquiry without anything new, since the state last changed.
    #[must_use]
    pub fn looks(&self) -> u32 {
        self.looks
    }

    /// How many inquiries have failed since the last one that was answered.
    #[must_use]
    pub fn failed_looks(&self) -> u32 {
        self.failed_looks
    }

    /// Who may send or look, and until when.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref()
    }

    /// When it was first reserved.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// When it last changed.
    #[must_use]
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// Grows by one with every stored change: what `replace` compares.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// This record in the place of `released`, of which nothing was ever executed: it keeps that one's key.
    #[must_use]
    pub fn in_place_of(mut self, released: &Self) -> Self {
        self.key = released.key;
        self.created_at = released.created_at;
        self.version = released.version + 1;
        self
    }

    /// The same record under `lease` and with the next version: for journals that hand out due operations.
    #[must_use]
    pub fn leased(mut self, lease: Lease) -> Self {
        self.due_at = Some(lease.until);
        self.lease = Some(lease);
        self.version += 1;
        self
    }
}

#[cfg(test)]
mod tests;
