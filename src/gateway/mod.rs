//! The port to payment gateways, and the adapters behind it.

#[cfg(feature = "stripe")]
pub mod stripe;
#[cfg(feature = "twoc2p")]
pub mod twoc2p;

use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::operation::{GatewayRef, Invalid, Operation, OperationKey, OperationKind};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::Promise;
use async_trait::async_trait;
use std::fmt;
use std::time::Duration;

/// One merchant account at one payment gateway.
///
/// The contract, which `testing::conformance` checks:
///
/// * A request is a function of the instruction alone: the same instruction gives the same bytes, in every process.
/// * [`send`](Self::send) makes at most one request that can move money, and never a second one by itself.
/// * `Err` with [`Failure::not_executed`] only on proof; anything in doubt is [`Failure::maybe_executed`].
/// * [`inquire`](Self::inquire) never causes an effect and asks by what *we* sent.
/// * Nothing that is returned, printed or stored contains a credential or card data.
#[async_trait]
pub trait Gateway: fmt::Debug + Send + Sync + 'static {
    /// A short stable name; it is stored with each operation.
    fn name(&self) -> &'static str;

    /// Checks that `operation` fits this gateway and derives the identity it will have there. Pure.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] names the field; [`Refusal::Unsupported`] says what is not offered.
    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal>;

    /// What holds when the same key is sent again, and when "not found" proves something. Pure.
    fn promise(&self, kind: OperationKind) -> Promise;

    /// One attempt. `Ok` is what the gateway said, in an answer that is authentic and about this operation.
    ///
    /// # Errors
    /// A [`Failure`], which says whether the gateway may have executed the request.
    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure>;

    /// Asks what became of an operation, by what was sent: key, reference, invoice number.
    ///
    /// # Errors
    /// A [`Failure`]: the inquiry itself failed and nothing was learned.
    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure>;

    /// Verifies the raw bytes, and only then reads them. Pure.
    ///
    /// # Errors
    /// A [`NotificationError`], which says what to answer the sender.
    fn read_notification(&self, raw: &RawNotification) -> Result<Notification, NotificationError>;
}

/// What [`Gateway::prepare`] derives from an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// The identity at the gateway, unique for ever: Stripe's idempotency key, 2C2P's invoice number. The journal
    /// keeps it under a unique index.
    pub wire_identity: String,
    /// How long the payer can act on a page that the operation opens, unless the operation says otherwise. `None`
    /// when no payer acts.
    pub payable_for: Option<Duration>,
}

impl Prepared {
    /// An operation in which no payer acts.
    pub fn new(wire_identity: impl Into<String>) -> Self {
        Self {
            wire_identity: wire_identity.into(),
            payable_for: None,
        }
    }
}

/// Why an operation cannot be sent through a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A field does not fit.
    Invalid(Invalid),
    /// The gateway, or this adapter, does not offer it.
    Unsupported(String),
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

/// The answer to an inquiry that worked.
#[allow(clippy::large_enum_variant, reason = "made once an inquiry, and matched at once")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Inquiry {
    /// The gateway knows the operation.
    Found(Outcome),
    /// The gateway does not know it.
    Absent {
        /// By a lookup that cannot lag behind the gateway's own state. A miss in a search index is not consistent.
        consistent: bool,
    },
}

/// A notification as it came in: headers and body, untouched. It can be stored and read again later.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawNotification {
    /// Header names in any case, values as received; repeated names stay repeated.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte as received: not parsed, not decoded, not trimmed.
    pub body: Vec<u8>,
    /// When it was received. Signatures with a time stamp are judged by this, also when it is verified again later.
    pub received_at: Timestamp,
}

impl RawNotification {
    /// A notification received at `received_at`.
    #[must_use]
    pub fn new(headers: Vec<(String, String)>, body: Vec<u8>, received_at: Timestamp) -> Self {
        Self {
            headers,
            body,
            received_at,
        }
    }

    /// The values of a header, whatever the case of its name.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for RawNotification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawNotification")
            .field("bytes", &self.body.len())
            .field("received_at", &self.received_at)
            .finish_non_exhaustive()
    }
}

/// A verified notification.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Notification {
    /// What makes a delivery recognisable as a repeat.
    pub event_id: String,
    /// The gateway's name for what happened.
    pub name: String,
    /// By what the operation can be found, surest first.
    pub about: Vec<About>,
    /// What it says about the operation; `None` when it only suggests an inquiry, or is of no known type.
    pub says: Option<Outcome>,
}

impl Notification {
    /// A notification that says nothing yet.
    pub fn new(event_id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            event_id: event_id.into(),
            name: name.into(),
            about: Vec::new(),
            says: None,
        }
    }
}

/// By what an operation can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// Its own key.
    Key(OperationKey),
    /// The identity that [`Gateway::prepare`] derived.
    WireIdentity(String),
    /// The gateway's id of the payment or refund.
    GatewayRef(GatewayRef),
}

/// Why a notification was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotificationError {
    /// A header or the body does not have the gateway's form.
    #[error("malformed notification: {0}")]
    Malformed(String),
    /// No signature by a known secret over exactly these bytes. The body must be the raw one.
    #[error("no valid signature over the raw body")]
    Signature,
    /// The signature is good and its time stamp is too far from the time of receipt.
    #[error("the signature's time stamp is outside of the tolerance")]
    Stale,
    /// Authentic, but for another merchant account than this one.
    #[error("the notification is for another merchant account")]
    OtherMerchant,
}
