//! Records as the engine makes them, to test journals with.

use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::money::{Currency, Money};
use crate::operation::{GatewayRef, Namespace, Operation, OperationKey, Target};
use crate::outcome::{
    Conflict, ConflictKind, Evidence, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded, Unknown,
    UnknownReason,
};
use crate::record::{Fact, HistoryLine, Intent, Lease, Observation, PaymentTarget, Record, Source};
use crate::secret::Secret;
use std::num::NonZeroU32;
use std::time::Duration;

/// When samples are reserved: 2026-01-01T00:00:00Z.
pub const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// How long the lease of a sample lasts: it is due for a look when this has passed.
pub const LEASE: Duration = Duration::from_secs(60);

/// Part of every secret in a sample. It must be in no journal.
pub const CANARY: &str = "TESTONLYcanary";

/// An operation about to be reserved.
#[derive(Clone, Debug)]
pub struct Sample {
    namespace: Namespace,
    operation: Operation,
    gateway: String,
    identity: Option<String>,
    key: Option<OperationKey>,
    at: Timestamp,
}

impl Sample {
    /// A charge of 20.00 THB.
    ///
    /// # Panics
    /// When namespace or reference are not valid.
    #[must_use]
    pub fn charge(namespace: &str, reference: &str) -> Self {
        let amount = Money::from_minor(2000, Currency::THB);
        Self::of(namespace, Operation::charge(reference, amount).unwrap())
    }

    /// A refund of 5.00 THB of the payment `pi_1`.
    ///
    /// # Panics
    /// As [`Sample::charge`].
    #[must_use]
    pub fn refund(namespace: &str, reference: &str) -> Self {
        let amount = Money::from_minor(500, Currency::THB);
        let target = Target::Gateway(GatewayRef::new("pi_1"));
        Self::of(namespace, Operation::refund(reference, amount, target).unwrap())
    }

    fn of(namespace: &str, operation: Operation) -> Self {
        Self {
            namespace: Namespace::new(namespace).unwrap(),
            operation,
            gateway: "sample".to_owned(),
            identity: None,
            key: None,
            at: NOW,
        }
    }

    /// The number of the attempt, 1 unless set.
    ///
    /// # Panics
    /// For 0.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.operation = self.operation.attempt(NonZeroU32::new(attempt).unwrap());
        self
    }

    /// Another content for the same operation.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.operation = self.operation.description(text);
        self
    }

    /// The gateway, `sample` unless set.
    #[must_use]
    pub fn gateway(mut self, name: &str) -> Self {
        name.clone_into(&mut self.gateway);
        self
    }

    /// The identity at the gateway, the key unless set.
    #[must_use]
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.to_owned());
        self
    }

    /// The key that another operation would have: as if another version had derived it.
    #[must_use]
    pub fn under_key_of(mut self, other: &Self) -> Self {
        self.key = Some(other.key());
        self
    }

    /// When it is reserved, [`NOW`] unless set.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> OperationKey {
        self.key.unwrap_or_else(|| self.operation.key(&self.namespace))
    }

    /// The record with which it is reserved: being sent, under a lease of [`LEASE`].
    #[must_use]
    pub fn record(&self) -> Record {
        let key = self.key();
        let target = self.operation.target().map(|_| PaymentTarget {
            gateway_ref: Some(GatewayRef::new("pi_1")),
            wire_identity: Some("INV1".into()),
            amount: None,
        });
        let intent = Intent {
            key,
            namespace: self.namespace.as_str().into(),
            operation: &self.operation,
            gateway: self.gateway.as_str().into(),
            wire_identity: self.identity.clone().unwrap_or_else(|| key.to_string()).into(),
            fingerprint: self.operation.fingerprint(),
            target,
            payable_for: Some(Duration::from_secs(1800)),
        };
        Record::reserve(intent, self.at, Lease::new("sample/1", self.at.after(LEASE)))
    }

    /// The line with which it is reserved.
    #[must_use]
    pub fn line(&self) -> HistoryLine {
        let mut line = HistoryLine::new(self.at, Source::Engine, "", "sending");
        line.sends = 1;
        line.note = "reserved".into();
        line
    }
}

/// What `record` becomes when the gateway answers `outcome`, a second later, and the line for it.
#[must_use]
pub fn answered(record: &Record, outcome: Outcome) -> (Record, HistoryLine) {
    learned(record, Fact::Said(outcome))
}

/// What `record` becomes when nothing was executed, provably.
#[must_use]
pub fn released(record: &Record) -> (Record, HistoryLine) {
    let refused = Failure::not_executed(FailureKind::Connect, "no connection");
    learned(record, Fact::Ended(refused))
}

/// What `record` becomes when its answer was lost.
#[must_use]
pub fn lost(record: &Record) -> (Record, HistoryLine) {
    let timeout = Failure::maybe_executed(FailureKind::Timeout, "no answer in time");
    learned(record, Fact::Ended(timeout))
}

/// What `record` becomes when an inquiry was answered and found nothing.
#[must_use]
pub fn looked(record: &Record) -> (Record, HistoryLine) {
    learned_from(Source::Inquiry, record, Fact::Absent { counts: false })
}

fn learned(record: &Record, fact: Fact) -> (Record, HistoryLine) {
    learned_from(Source::Answer, record, fact)
}

fn learned_from(source: Source, record: &Record, fact: Fact) -> (Record, HistoryLine) {
    let at = record.updated_at().after(Duration::from_secs(1));
    let learned = record.learn(&Observation::new(source, at, fact));
    (learned.record, learned.line)
}

/// One outcome of every kind, with every field set that a journal keeps, and no secret.
#[must_use]
pub fn outcomes() -> Vec<Outcome> {
    let at = Some(NOW.after(Duration::from_millis(1)));
    let gateway_ref = Some(GatewayRef::new("pi_1"));
    let link = Secret::new("https://pay.example/page/1");
    vec![
        Outcome::Succeeded(Succeeded {
            gateway_ref: gateway_ref.clone(),
            amount: Some(Money::from_minor(2000, Currency::THB)),
            notes: vec!["first".to_owned(), "\u{e2a} \"second\"\n".to_owned()],
            evidence: evidence(),
            at,
        }),
        Outcome::Pending(Pending {
            gateway_ref: gateway_ref.clone(),
            next: NextStep::Redirect { url: link },
            expires_at: Some(NOW.after(Duration::from_secs(1800))),
            evidence: evidence(),
            at,
        }),
        Outcome::Failed(Failed {
            category: FailureCategory::Declined,
            decline_code: Some("insufficient_funds".to_owned()),
            advice: Some("try_again_later".to_owned()),
            gateway_ref: gateway_ref.clone(),
            settled: None,
            payer_may_retry: false,
            evidence: evidence(),
            at,
        }),
        Outcome::Unknown(Unknown {
            reason: UnknownReason::NotFoundYet,
            detail: "nobody knows".to_owned(),
            since: NOW,
            next_look_at: Some(Timestamp::NEVER),
            retry_after: Duration::from_millis(1234),
        }),
        Outcome::Conflict(Conflict {
            kind: ConflictKind::TwoPayments,
            expected: Some(Money::from_minor(i64::MAX, Currency::JPY)),
            reported: Some(Money::from_minor(i64::MIN, Currency::USD)),
            detail: "two sides".to_owned(),
            gateway_ref,
            evidence: evidence(),
            at,
        }),
    ]
}

/// Everything the payer may have to do that must not be kept. Each contains the [`CANARY`].
#[must_use]
pub fn secret_steps() -> Vec<NextStep> {
    let secret = |text: &str| Secret::new(format!("{text}{CANARY}"));
    vec![
        NextStep::Confirm {
            client_secret: secret("pi_1_secret_"),
        },
        NextStep::QrCode { data: secret("000201") },
        NextStep::PaySlip {
            url: secret("https://pay.example/slip/"),
        },
        NextStep::OpenApp {
            url: secret("bank://pay/"),
            fallback: Some(secret("https://pay.example/")),
        },
    ]
}

fn evidence() -> Evidence {
    Evidence {
        http_status: Some(200),
        code: Some("0000".to_owned()),
        message: Some("approved".to_owned()),
        request_id: Some("req_1".to_owned()),
        replayed: true,
        details: [("approvalCode", "717282")].into_iter().collect(),
    }
}
