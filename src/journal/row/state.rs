//! The stored form of a state. What is secret has no field here.

use super::{StoredMoney, text, unreadable};
use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::money::Money;
use crate::operation::GatewayRef;
use crate::outcome::{
    Conflict, ConflictKind, Evidence, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded, Unknown,
    UnknownReason,
};
use crate::record::State;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(super) enum StoredState {
    Sending,
    Released,
    Succeeded(StoredSucceeded),
    Pending(StoredPending),
    Failed(StoredFailed),
    Unknown(StoredUnknown),
    Conflict(StoredConflict),
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredSucceeded {
    gateway_ref: Option<String>,
    amount: Option<StoredMoney>,
    notes: Vec<String>,
    evidence: StoredEvidence,
    at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredPending {
    gateway_ref: Option<String>,
    page_url: Option<String>,
    expires_at: Option<i64>,
    evidence: StoredEvidence,
    at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredFailed {
    category: String,
    decline_code: Option<String>,
    advice: Option<String>,
    gateway_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<StoredMoney>,
    evidence: StoredEvidence,
    at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredUnknown {
    reason: String,
    detail: String,
    since: i64,
    next_look_at: Option<i64>,
    retry_after_ms: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredConflict {
    kind: String,
    expected: Option<StoredMoney>,
    reported: Option<StoredMoney>,
    detail: String,
    gateway_ref: Option<String>,
    evidence: StoredEvidence,
    at: Option<i64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredEvidence {
    http_status: Option<u16>,
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
    replayed: bool,
    details: BTreeMap<String, String>,
}

impl StoredEvidence {
    fn new(evidence: &Evidence) -> Self {
        Self {
            http_status: evidence.http_status,
            code: evidence.code.clone(),
            message: evidence.message.clone(),
            request_id: evidence.request_id.clone(),
            replayed: evidence.replayed,
            details: evidence
                .details
                .iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    fn read(self) -> Evidence {
        Evidence {
            http_status: self.http_status,
            code: self.code,
            message: self.message,
            request_id: self.request_id,
            replayed: self.replayed,
            details: self.details.into_iter().collect(),
        }
    }
}

/// The state without what has no field below.
pub(super) fn kept(state: State) -> State {
    let mut state = state;
    match &mut state {
        State::Known(Outcome::Pending(pending)) if stored_page(&pending.next).is_none() => {
            pending.next = NextStep::Wait;
        }
        State::Known(Outcome::Failed(failed)) => failed.payer_may_retry = false,
        State::Sending
        | State::Released
        | State::Known(Outcome::Succeeded(_) | Outcome::Pending(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => {}
    }
    state
}

/// The one link that a caller needs again after a crash. All else is asked for anew.
fn stored_page(next: &NextStep) -> Option<String> {
    match next {
        NextStep::Redirect { url } => Some(url.expose().to_owned()),
        NextStep::Wait
        | NextStep::Confirm { .. }
        | NextStep::QrCode { .. }
        | NextStep::PaySlip { .. }
        | NextStep::OpenApp { .. } => None,
    }
}

impl StoredState {
    pub(super) fn new(state: &State) -> Self {
        match state {
            State::Sending => Self::Sending,
            State::Released => Self::Released,
            State::Known(Outcome::Succeeded(payload)) => Self::Succeeded(StoredSucceeded::new(payload)),
            State::Known(Outcome::Pending(payload)) => Self::Pending(StoredPending::new(payload)),
            State::Known(Outcome::Failed(payload)) => Self::Failed(StoredFailed::new(payload)),
            State::Known(Outcome::Unknown(payload)) => Self::Unknown(StoredUnknown::new(payload)),
            State::Known(Outcome::Conflict(payload)) => Self::Conflict(StoredConflict::new(payload)),
        }
    }

    pub(super) fn read(self) -> Result<State, JournalError> {
        Ok(match self {
            Self::Sending => State::Sending,
            Self::Released => State::Released,
            Self::Succeeded(stored) => State::Known(Outcome::Succeeded(stored.read()?)),
            Self::Pending(stored) => State::Known(Outcome::Pending(stored.read())),
            Self::Failed(stored) => State::Known(Outcome::Failed(stored.read()?)),
            Self::Unknown(stored) => State::Known(Outcome::Unknown(stored.read()?)),
            Self::Conflict(stored) => State::Known(Outcome::Conflict(stored.read()?)),
        })
    }
}

impl StoredSucceeded {
    fn new(payload: &Succeeded) -> Self {
        Self {
            gateway_ref: text(payload.gateway_ref.as_ref()),
            amount: payload.amount.map(StoredMoney::new),
            notes: payload.notes.clone(),
            evidence: StoredEvidence::new(&payload.evidence),
            at: payload.at.map(Timestamp::unix_millis),
        }
    }

    fn read(self) -> Result<Succeeded, JournalError> {
        Ok(Succeeded {
            gateway_ref: self.gateway_ref.map(GatewayRef::new),
            amount: money(self.amount)?,
            notes: self.notes,
            evidence: self.evidence.read(),
            at: when(self.at),
        })
    }
}

impl StoredPending {
    fn new(payload: &Pending) -> Self {
        Self {
            gateway_ref: text(payload.gateway_ref.as_ref()),
            page_url: stored_page(&payload.next),
            expires_at: payload.expires_at.map(Timestamp::unix_millis),
            evidence: StoredEvidence::new(&payload.evidence),
            at: payload.at.map(Timestamp::unix_millis),
        }
    }

    fn read(self) -> Pending {
        let page = self.page_url.map(|url| NextStep::Redirect { url: Secret::new(url) });
        Pending {
            gateway_ref: self.gateway_ref.map(GatewayRef::new),
            next: page.unwrap_or(NextStep::Wait),
            expires_at: when(self.expires_at),
            evidence: self.evidence.read(),
            at: when(self.at),
        }
    }
}

impl StoredFailed {
    fn new(payload: &Failed) -> Self {
        Self {
            category: payload.category.as_str().to_owned(),
            decline_code: payload.decline_code.clone(),
            advice: payload.advice.clone(),
            gateway_ref: text(payload.gateway_ref.as_ref()),
            settled: payload.settled.map(StoredMoney::new),
            evidence: StoredEvidence::new(&payload.evidence),
            at: payload.at.map(Timestamp::unix_millis),
        }
    }

    fn read(self) -> Result<Failed, JournalError> {
        Ok(Failed {
            category: FailureCategory::parse(&self.category).ok_or_else(|| unreadable("category"))?,
            decline_code: self.decline_code,
            advice: self.advice,
            gateway_ref: self.gateway_ref.map(GatewayRef::new),
            settled: money(self.settled)?,
            payer_may_retry: false,
            evidence: self.evidence.read(),
            at: when(self.at),
        })
    }
}

impl StoredUnknown {
    fn new(payload: &Unknown) -> Self {
        Self {
            reason: payload.reason.as_str().to_owned(),
            detail: payload.detail.clone(),
            since: payload.since.unix_millis(),
            next_look_at: payload.next_look_at.map(Timestamp::unix_millis),
            retry_after_ms: u64::try_from(payload.retry_after.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn read(self) -> Result<Unknown, JournalError> {
        Ok(Unknown {
            reason: UnknownReason::parse(&self.reason).ok_or_else(|| unreadable("reason"))?,
            detail: self.detail,
            since: Timestamp::from_unix_millis(self.since),
            next_look_at: when(self.next_look_at),
            retry_after: Duration::from_millis(self.retry_after_ms),
        })
    }
}

impl StoredConflict {
    fn new(payload: &Conflict) -> Self {
        Self {
            kind: payload.kind.as_str().to_owned(),
            expected: payload.expected.map(StoredMoney::new),
            reported: payload.reported.map(StoredMoney::new),
            detail: payload.detail.clone(),
            gateway_ref: text(payload.gateway_ref.as_ref()),
            evidence: StoredEvidence::new(&payload.evidence),
            at: payload.at.map(Timestamp::unix_millis),
        }
    }

    fn read(self) -> Result<Conflict, JournalError> {
        Ok(Conflict {
            kind: ConflictKind::parse(&self.kind).ok_or_else(|| unreadable("kind of conflict"))?,
            expected: money(self.expected)?,
            reported: money(self.reported)?,
            detail: self.detail,
            gateway_ref: self.gateway_ref.map(GatewayRef::new),
            evidence: self.evidence.read(),
            at: when(self.at),
        })
    }
}

fn money(stored: Option<StoredMoney>) -> Result<Option<Money>, JournalError> {
    stored.map(|money| money.read()).transpose()
}

fn when(stored: Option<i64>) -> Option<Timestamp> {
    stored.map(Timestamp::from_unix_millis)
}
