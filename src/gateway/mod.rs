//! The port to payment gateways, and the adapters behind it.

#[cfg(feature = "stripe")]
pub mod stripe;
#[cfg(feature = "twoc2p")]
pub mod twoc2p;

mod notification;

pub use notification::{About, Notification, NotificationError, RawNotification};

use crate::failure::Failure;
use crate::money::Money;
use crate::operation::{Invalid, Operation, OperationKey, OperationKind};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::Promise;
use async_trait::async_trait;
use std::fmt;
use std::time::Duration;

/// One merchant account at one payment gateway.
///
/// The contract. `testing::conformance` checks what can be seen from outside: identities, repeats, inquiries, and that
/// foreign notifications are refused. The rest needs faults, and is for your own tests:
///
/// * A request is a function of the instruction alone: the same instruction gives the same bytes, in every process (the
///   randomness of an encrypted envelope aside).
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

    /// One send. `Ok` is what the gateway said, in an answer that is authentic and about this operation.
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
    /// How much the payment was of that the operation acts on, where the caller said so in the gateway's options. What
    /// the journal knows goes before it.
    pub payment_amount: Option<Money>,
}

impl Prepared {
    /// An operation in which no payer acts.
    pub fn new(wire_identity: impl Into<String>) -> Self {
        Self {
            wire_identity: wire_identity.into(),
            payable_for: None,
            payment_amount: None,
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
    /// The gateway knows one, and only one, that has every feature of it but names neither its key nor an id of its that
    /// we know. It is believed only if no other operation of the journal can be the one that was found.
    Similar(Outcome),
    /// The gateway does not know it.
    Absent {
        /// By a lookup that cannot lag behind the gateway's own state. A miss in a search index is not consistent.
        consistent: bool,
    },
}
