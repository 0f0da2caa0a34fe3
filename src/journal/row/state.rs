//! The stored form of a state. What is secret has no field here.

use super::{StoredMoney, text, unreadable};
use crate::clock::Timestamp;
use crate::error::JournalError;
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
    Succeeded {
        gateway_ref: Option<String>,
        amount: Option<StoredMoney>,
        notes: Vec<String>,
        evidence: StoredEvidence,
        at: Option<i64>,
    },
    Pending {
        gateway_ref: Option<String>,
        page_url: Option<String>,
        expires_at: Option<i64>,
        evidence: StoredEvidence,
        at: Option<i64>,
    },
    Failed {
        category: String,
        decline_code: Option<String>,
        advice: Option<String>,
        gateway_ref: Option<String>,
        evidence: StoredEvidence,
        at: Option<i64>,
    },
    Unknown {
        reason: String,
        detail: String,
        since: i64,
        next_look_at: Option<i64>,
        retry_after_ms: u64,
    },
    Conflict {
        kind: String,
        expected: Option<StoredMoney>,
        reported: Option<StoredMoney>,
        detail: String,
        gateway_ref: Option<String>,
        evidence: StoredEvidence,
        at: Option<i64>,
    },
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
        let outcome = match state {
            State::Sending => return Self::Sending,
            State::Released => return Self::Released,
            State::Known(outcome) => outcome,
        };
        match outcome {
            Outcome::Succeeded(payload) => Self::Succeeded {
                gateway_ref: text(payload.gateway_ref.as_ref()),
                amount: payload.amount.map(StoredMoney::new),
                notes: payload.notes.clone(),
                evidence: StoredEvidence::new(&payload.evidence),
                at: payload.at.map(Timestamp::unix_millis),
            },
            Outcome::Pending(payload) => Self::Pending {
                gateway_ref: text(payload.gateway_ref.as_ref()),
                page_url: stored_page(&payload.next),
                expires_at: payload.expires_at.map(Timestamp::unix_millis),
                evidence: StoredEvidence::new(&payload.evidence),
                at: payload.at.map(Timestamp::unix_millis),
            },
            Outcome::Failed(payload) => Self::Failed {
                category: payload.category.as_str().to_owned(),
                decline_code: payload.decline_code.clone(),
                advice: payload.advice.clone(),
                gateway_ref: text(payload.gateway_ref.as_ref()),
                evidence: StoredEvidence::new(&payload.evidence),
                at: payload.at.map(Timestamp::unix_millis),
            },
            Outcome::Unknown(payload) => Self::Unknown {
                reason: payload.reason.as_str().to_owned(),
                detail: payload.detail.clone(),
                since: payload.since.unix_millis(),
                next_look_at: payload.next_look_at.map(Timestamp::unix_millis),
                retry_after_ms: u64::try_from(payload.retry_after.as_millis()).unwrap_or(u64::MAX),
            },
            Outcome::Conflict(payload) => Self::Conflict {
                kind: payload.kind.as_str().to_owned(),
                expected: payload.expected.map(StoredMoney::new),
                reported: payload.reported.map(StoredMoney::new),
                detail: payload.detail.clone(),
                gateway_ref: text(payload.gateway_ref.as_ref()),
                evidence: StoredEvidence::new(&payload.evidence),
                at: payload.at.map(Timestamp::unix_millis),
            },
        }
    }

    pub(super) fn read(self) -> Result<State, JournalError> {
        let money = |stored: Option<StoredMoney>| stored.map(|money| money.read()).transpose();
        let when = |stored: Option<i64>| stored.map(Timestamp::from_unix_millis);
        let outcome = match self {
            Self::Sending => return Ok(State::Sending),
            Self::Released => return Ok(State::Released),
            Self::Succeeded {
                gateway_ref,
                amount,
                notes,
                evidence,
                at,
            } => Outcome::Succeeded(Succeeded {
                gateway_ref: gateway_ref.map(GatewayRef::new),
                amount: money(amount)?,
                notes,
                evidence: evidence.read(),
                at: when(at),
            }),
            Self::Pending {
                gateway_ref,
                page_url,
                expires_at,
                evidence,
                at,
            } => Outcome::Pending(Pending {
                gateway_ref: gateway_ref.map(GatewayRef::new),
                next: page_url.map_or(NextStep::Wait, |url| NextStep::Redirect { url: Secret::new(url) }),
                expires_at: when(expires_at),
                evidence: evidence.read(),
                at: when(at),
            }),
            Self::Failed {
                category,
                decline_code,
                advice,
                gateway_ref,
                evidence,
                at,
            } => Outcome::Failed(Failed {
                category: FailureCategory::parse(&category).ok_or_else(|| unreadable("category"))?,
                decline_code,
                advice,
                gateway_ref: gateway_ref.map(GatewayRef::new),
                payer_may_retry: false,
                evidence: evidence.read(),
                at: when(at),
            }),
            Self::Unknown {
                reason,
                detail,
                since,
                next_look_at,
                retry_after_ms,
            } => Outcome::Unknown(Unknown {
                reason: UnknownReason::parse(&reason).ok_or_else(|| unreadable("reason"))?,
                detail,
                since: Timestamp::from_unix_millis(since),
                next_look_at: when(next_look_at),
                retry_after: Duration::from_millis(retry_after_ms),
            }),
            Self::Conflict {
                kind,
                expected,
                reported,
                detail,
                gateway_ref,
                evidence,
                at,
            } => Outcome::Conflict(Conflict {
                kind: ConflictKind::parse(&kind).ok_or_else(|| unreadable("kind of conflict"))?,
                expected: money(expected)?,
                reported: money(reported)?,
                detail,
                gateway_ref: gateway_ref.map(GatewayRef::new),
                evidence: evidence.read(),
                at: when(at),
            }),
        };
        Ok(State::Known(outcome))
    }
}
