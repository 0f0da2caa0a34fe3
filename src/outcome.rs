//! What is known about an operation.

use crate::clock::Timestamp;
use crate::money::Money;
use crate::operation::GatewayRef;
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What is known about an operation, already in the journal.
///
/// Exhaustive on purpose: a caller who does not think of [`Outcome::Unknown`] does not compile.
#[allow(
    clippy::exhaustive_enums,
    reason = "every caller must decide about each outcome, Unknown above all"
)]
#[must_use = "an outcome may be Unknown, Failed or a Conflict: look at it"]
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Money was taken, reserved or given back, as the kind of the operation says.
    Succeeded(Succeeded),
    /// The gateway has it and has not finished; [`Pending::next`] says what the payer has to do.
    Pending(Pending),
    /// The gateway says definitively that this attempt did not and will not take effect.
    Failed(Failed),
    /// Nobody here knows. It will be resolved by inquiry; calling again with the same operation is always right.
    Unknown(Unknown),
    /// Gateway and journal disagree. A person decides.
    Conflict(Conflict),
}

impl Outcome {
    /// The word for tables and logs: `succeeded`, `pending`, `failed`, `unknown`, `conflict`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded(_) => "succeeded",
            Self::Pending(_) => "pending",
            Self::Failed(_) => "failed",
            Self::Unknown(_) => "unknown",
            Self::Conflict(_) => "conflict",
        }
    }

    /// The page to which the payer's browser goes now, where that is what comes next. Whoever holds the link can act for
    /// the payer: do not log it.
    #[must_use]
    pub const fn redirect(&self) -> Option<&Secret> {
        match self {
            Self::Pending(Pending {
                next: NextStep::Redirect { url },
                ..
            }) => Some(url),
            Self::Succeeded(_) | Self::Pending(_) | Self::Failed(_) | Self::Unknown(_) | Self::Conflict(_) => None,
        }
    }

    /// Nothing more is expected from the gateway: succeeded, failed, or waiting for a person's decision.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        match self {
            Self::Succeeded(_) | Self::Failed(_) | Self::Conflict(_) => true,
            Self::Pending(_) | Self::Unknown(_) => false,
        }
    }

    /// What the gateway said, where it said something.
    #[must_use]
    pub const fn evidence(&self) -> Option<&Evidence> {
        match self {
            Self::Succeeded(payload) => Some(&payload.evidence),
            Self::Pending(payload) => Some(&payload.evidence),
            Self::Failed(payload) => Some(&payload.evidence),
            Self::Conflict(payload) => Some(&payload.evidence),
            Self::Unknown(_) => None,
        }
    }

    /// The gateway's own id, where it is known.
    #[must_use]
    pub const fn gateway_ref(&self) -> Option<&GatewayRef> {
        match self {
            Self::Succeeded(payload) => payload.gateway_ref.as_ref(),
            Self::Pending(payload) => payload.gateway_ref.as_ref(),
            Self::Failed(payload) => payload.gateway_ref.as_ref(),
            Self::Conflict(payload) => payload.gateway_ref.as_ref(),
            Self::Unknown(_) => None,
        }
    }
}

/// What stood in the gateway's answer, free of secrets and card data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Evidence {
    /// The HTTP status.
    pub http_status: Option<u16>,
    /// The gateway's code: Stripe's `error.code`, 2C2P's `respCode`.
    pub code: Option<String>,
    /// The gateway's text, scrubbed.
    pub message: Option<String>,
    /// The gateway's id of the request.
    pub request_id: Option<String>,
    /// The answer was a stored one: nothing was executed this time.
    pub replayed: bool,
    /// Further facts that a merchant's records want, by the gateway's own names (approval code, channel, scheme).
    pub details: Details,
}

/// Named facts, ordered by name. Shared by all copies of an outcome, of which there are several a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details(Arc<BTreeMap<String, String>>);

impl Details {
    /// The fact of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All facts, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds a fact, or replaces the one of this name.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        Arc::make_mut(&mut self.0).insert(name.into(), value.into());
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Details {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(facts: I) -> Self {
        let facts = facts.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Arc::new(facts.collect()))
    }
}

/// Payload of [`Outcome::Succeeded`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Succeeded {
    /// The gateway's id of the payment or refund.
    pub gateway_ref: Option<GatewayRef>,
    /// How much, as the gateway reports it; `None` where it reports no amount (void).
    pub amount: Option<Money>,
    /// Remarks that do not change the outcome, such as a follow-up read that failed.
    pub notes: Vec<String>,
    /// What the gateway said.
    pub evidence: Evidence,
    /// When this became known here; `None` only before it is recorded.
    pub at: Option<Timestamp>,
}

impl Succeeded {
    /// Success over `amount`.
    #[must_use]
    pub fn new(amount: Option<Money>) -> Self {
        Self {
            gateway_ref: None,
            amount,
            notes: Vec::new(),
            evidence: Evidence::default(),
            at: None,
        }
    }
}

/// Payload of [`Outcome::Pending`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Pending {
    /// The gateway's id, where there is one already.
    pub gateway_ref: Option<GatewayRef>,
    /// What the payer has to do.
    pub next: NextStep,
    /// Until when the payer can do it.
    pub expires_at: Option<Timestamp>,
    /// What the gateway said.
    pub evidence: Evidence,
    /// When this became known here; `None` only before it is recorded.
    pub at: Option<Timestamp>,
}

impl Pending {
    /// Waiting for `next`.
    #[must_use]
    pub fn new(next: NextStep) -> Self {
        Self {
            gateway_ref: None,
            next,
            expires_at: None,
            evidence: Evidence::default(),
            at: None,
        }
    }
}

/// What the payer has to do for a pending operation.
///
/// Only [`NextStep::Redirect`] is kept in the journal. The others are handed out with the answer that brought them,
/// and again when a further call of the same operation asks the gateway anew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NextStep {
    /// Nothing: the gateway or a bank is at work.
    Wait,
    /// Open this page in the payer's browser.
    Redirect {
        /// Whoever holds the link can act for the payer: do not log it.
        url: Secret,
    },
    /// Finish in the payer's browser or app with the gateway's own library.
    Confirm {
        /// Stripe's `client_secret`; for the paying customer only.
        client_secret: Secret,
    },
    /// Show a code for the payer to scan.
    QrCode {
        /// The code's content or the address of its picture, as the gateway gave it.
        data: Secret,
    },
    /// Show a slip with which the payer pays at a counter or machine.
    PaySlip {
        /// Address of the slip.
        url: Secret,
    },
    /// Open the payer's banking or wallet app.
    OpenApp {
        /// Deep link.
        url: Secret,
        /// Page for devices without the app.
        fallback: Option<Secret>,
    },
}

/// Payload of [`Outcome::Failed`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failed {
    /// Why, in terms of what to do next.
    pub category: FailureCategory,
    /// The issuer's reason, where the gateway passes it on.
    pub decline_code: Option<String>,
    /// What the gateway or the card network advises, such as `do_not_try_again`.
    pub advice: Option<String>,
    /// The gateway's id, where an object exists although it failed.
    pub gateway_ref: Option<GatewayRef>,
    /// How much of the payment has been settled, where it failed for that reason and the gateway says how much.
    pub settled: Option<Money>,
    /// Only this try failed: the payer holds a page on which another one can still succeed. Until that page closes
    /// the operation is pending, and the record keeps it so.
    pub payer_may_retry: bool,
    /// What the gateway said.
    pub evidence: Evidence,
    /// When this became known here; `None` only before it is recorded.
    pub at: Option<Timestamp>,
}

impl Failed {
    /// A definitive failure of this attempt.
    #[must_use]
    pub fn new(category: FailureCategory) -> Self {
        Self {
            category,
            decline_code: None,
            advice: None,
            gateway_ref: None,
            settled: None,
            payer_may_retry: false,
            evidence: Evidence::default(),
            at: None,
        }
    }
}

/// Why an attempt failed, in terms of what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureCategory {
    /// The issuer, the acquirer or the gateway's risk rules refused. Another card may do.
    Declined,
    /// The payer has to authenticate.
    AuthenticationRequired,
    /// The gateway refused the request as malformed or against its rules. Changed content is a new attempt.
    Invalid,
    /// Page, token or authorization ran out.
    Expired,
    /// Cancelled by the payer or the merchant.
    Cancelled,
    /// The payment is already in another state in which this operation has no place (captured in full before a capture).
    AlreadyDone,
    /// A void came too late: the payment has been settled meanwhile, and [`Failed::settled`] says how much of it. To
    /// give it back is a refund; [`Payments::cancel`](crate::Payments::cancel) goes on to one.
    Settled,
    /// A refund came too early: the payment is not settled yet. It can be voided, as a whole, or refunded later.
    NotSettled,
    /// The payment that the operation acts on does not exist at the gateway.
    NoSuchPayment,
    /// The gateway refused our credentials in an answer that is not proof enough to send the same thing again.
    Refused,
    /// Nothing was executed, and that is proven; the same operation may be executed again.
    NotExecuted,
}

impl FailureCategory {
    /// A stable word for storage and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::AuthenticationRequired => "authentication_required",
            Self::Invalid => "invalid",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::AlreadyDone => "already_done",
            Self::Settled => "settled",
            Self::NotSettled => "not_settled",
            Self::NoSuchPayment => "no_such_payment",
            Self::Refused => "refused",
            Self::NotExecuted => "not_executed",
        }
    }

    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Declined,
            Self::AuthenticationRequired,
            Self::Invalid,
            Self::Expired,
            Self::Cancelled,
            Self::AlreadyDone,
            Self::Settled,
            Self::NotSettled,
            Self::NoSuchPayment,
            Self::Refused,
            Self::NotExecuted,
        ]
        .into_iter()
        .find(|category| category.as_str() == word)
    }
}

impl fmt::Display for FailureCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Payload of [`Outcome::Unknown`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unknown {
    /// Why nobody knows.
    pub reason: UnknownReason,
    /// One sentence for a person: what happened, how often it was tried, why it stopped.
    pub detail: String,
    /// Since when.
    pub since: Timestamp,
    /// When the next inquiry is due.
    pub next_look_at: Option<Timestamp>,
    /// Call again with the same operation after this, if you do not want to wait for the reconciler.
    pub retry_after: Duration,
}

impl Unknown {
    /// Unknown since `since`.
    #[must_use]
    pub fn new(reason: UnknownReason, detail: impl Into<String>, since: Timestamp) -> Self {
        Self {
            reason,
            detail: detail.into(),
            since,
            next_look_at: None,
            retry_after: Duration::from_secs(5),
        }
    }
}

/// Why an outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownReason {
    /// A request left and no usable answer came.
    AnswerLost,
    /// The first call of this operation is still running, here or in another process.
    InFlight,
    /// The gateway answered, and the journal could not be written: an inquiry will find the answer again.
    NotRecorded,
    /// The gateway was asked and does not know the operation, which proves nothing yet.
    NotFoundYet,
}

impl UnknownReason {
    /// A stable word for storage and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AnswerLost => "answer_lost",
            Self::InFlight => "in_flight",
            Self::NotRecorded => "not_recorded",
            Self::NotFoundYet => "not_found_yet",
        }
    }

    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::AnswerLost, Self::InFlight, Self::NotRecorded, Self::NotFoundYet]
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }
}

/// Payload of [`Outcome::Conflict`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Conflict {
    /// What does not agree.
    pub kind: ConflictKind,
    /// The amount asked for.
    pub expected: Option<Money>,
    /// The amount that the gateway reports, where it could be read.
    pub reported: Option<Money>,
    /// Both sides in words, with what could not be read as an amount.
    pub detail: String,
    /// The gateway's id that the disagreement is about.
    pub gateway_ref: Option<GatewayRef>,
    /// What the gateway said.
    pub evidence: Evidence,
    /// When this became known here; `None` only before it is recorded.
    pub at: Option<Timestamp>,
}

impl Conflict {
    /// A disagreement described by `detail`.
    #[must_use]
    pub fn new(kind: ConflictKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            expected: None,
            reported: None,
            detail: detail.into(),
            gateway_ref: None,
            evidence: Evidence::default(),
            at: None,
        }
    }
}

/// What does not agree between gateway and journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictKind {
    /// Another amount or currency than asked for, or one that cannot be read.
    Amount,
    /// Money arrived in a way the gateway itself marks as irregular: late, too much, too little.
    Irregular,
    /// Two payments of the gateway claim the same operation: money may have moved twice.
    TwoPayments,
    /// The gateway first said that it took effect and now says that it did not.
    Contradiction,
}

impl ConflictKind {
    /// A stable word for storage and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Amount => "amount",
            Self::Irregular => "irregular",
            Self::TwoPayments => "two_payments",
            Self::Contradiction => "contradiction",
        }
    }

    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Amount, Self::Irregular, Self::TwoPayments, Self::Contradiction]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}
