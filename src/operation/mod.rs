//! The business operation: what the caller wants, and its own identity for it.

mod fingerprint;
mod key;

pub use fingerprint::{Canonical, Fingerprint};
pub use key::{Namespace, OperationKey};

use crate::clock::Timestamp;
use crate::money::Money;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Why an input was refused before anything was written or sent. Names the field; never repeats the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Invalid {
    field: &'static str,
    reason: String,
}

impl Invalid {
    /// `field` is named as in the public API; `reason` must not repeat the value.
    pub fn new(field: &'static str, reason: impl Into<String>) -> Self {
        Self {
            field,
            reason: reason.into(),
        }
    }

    /// The field at fault.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What is wrong with it.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The caller's own identity of a business operation: an order number, a refund number.
///
/// It is required, never generated, and reaches the gateway; so it must hold no personal data. An `@` is refused,
/// since references that contain one are nearly always e-mail addresses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference(Arc<str>);

impl Reference {
    /// The longest reference, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 200;

    /// Checks and wraps `text`.
    ///
    /// # Errors
    /// [`Invalid`] for an empty or over-long text, control characters, white space at either end, or an `@`.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        let refuse = |reason: &str| Err(Invalid::new("reference", reason));
        if text.is_empty() {
            return refuse("must not be empty");
        }
        if text.len() > Self::MAX_BYTES {
            return refuse("is longer than 200 bytes");
        }
        if text.chars().any(char::is_control) {
            return refuse("contains a control character");
        }
        if text.trim() != text {
            return refuse("begins or ends with white space");
        }
        if text.contains('@') {
            return refuse("contains an @: use an order number, not an e-mail address");
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The gateway's own id of a payment or refund: `pi_...`, a `tranRef`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatewayRef(Arc<str>);

impl GatewayRef {
    /// Wraps an id as the gateway gave it.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What an operation does with money. Exhaustive on purpose: whoever handles operations decides for each.
#[allow(clippy::exhaustive_enums, reason = "a new kind must be looked at everywhere")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Take money.
    Charge,
    /// Reserve money, to be captured or voided later.
    Authorize,
    /// Take money that was authorized (2C2P: settle).
    Capture,
    /// Release an authorization, or cancel a payment before it is settled.
    Void,
    /// Give money back.
    Refund,
    /// Change what the gateway keeps for the merchant, a payment plan or a stored card. By itself it moves no money.
    Update,
}

impl OperationKind {
    /// The word that enters the key and the journal: `charge`, `authorize`, `capture`, `void`, `refund`,
    /// `update`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Authorize => "authorize",
            Self::Capture => "capture",
            Self::Void => "void",
            Self::Refund => "refund",
            Self::Update => "update",
        }
    }

    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Charge,
            Self::Authorize,
            Self::Capture,
            Self::Void,
            Self::Refund,
            Self::Update,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a capture, void or refund acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A payment known by the gateway's own name for it: Stripe's `pi_...` or `ch_...`, 2C2P's invoice number.
    Gateway(GatewayRef),
    /// A payment made through this journal, by the key of its operation. The journal knows the gateway's id.
    Operation(OperationKey),
}

impl From<OperationKey> for Target {
    fn from(key: OperationKey) -> Self {
        Self::Operation(key)
    }
}

impl From<GatewayRef> for Target {
    fn from(id: GatewayRef) -> Self {
        Self::Gateway(id)
    }
}

/// Options of one gateway, attached to an operation. They enter the fingerprint.
///
/// Implemented by the option types of the adapters (`StripeOptions`, `TwoC2pOptions`) and by users' own gateways.
pub trait GatewayOptions: Any + fmt::Debug + Send + Sync {
    /// The name of the gateway that reads them, as in `Gateway::name`.
    fn gateway(&self) -> &'static str;

    /// Writes every option that changes what is sent, in a fixed order.
    fn canonical(&self, out: &mut Canonical);
}

/// One business operation: kind, reference, attempt, and what it asks for.
///
/// ```
/// use payonce::money::{Currency, Money};
/// use payonce::operation::Operation;
///
/// let price = Money::parse("2000.00", Currency::THB)?;
/// let order = Operation::charge("order-1042", price)?.description("Two tickets");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Operation {
    kind: OperationKind,
    reference: Reference,
    attempt: NonZeroU32,
    amount: Option<Money>,
    target: Option<Target>,
    gateway: Option<Arc<str>>,
    description: Option<String>,
    metadata: BTreeMap<String, String>,
    expires_at: Option<Timestamp>,
    options: Vec<Arc<dyn GatewayOptions>>,
}

impl Operation {
    /// Takes `amount` for the order `reference`.
    ///
    /// # Errors
    /// [`Invalid`] for a bad reference, or an amount that is not greater than zero.
    pub fn charge(reference: impl Into<String>, amount: Money) -> Result<Self, Invalid> {
        Self::new(OperationKind::Charge, reference, Some(amount), None)
    }

    /// Reserves `amount` for the order `reference`, to be captured or voided later.
    ///
    /// # Errors
    /// As [`Operation::charge`].
    pub fn authorize(reference: impl Into<String>, amount: Money) -> Result<Self, Invalid> {
        Self::new(OperationKind::Authorize, reference, Some(amount), None)
    }

    /// Takes `amount` of the authorized payment `target`.
    ///
    /// # Errors
    /// As [`Operation::charge`].
    pub fn capture(reference: impl Into<String>, amount: Money, target: impl Into<Target>) -> Result<Self, Invalid> {
        Self::new(OperationKind::Capture, reference, Some(amount), Some(target.into()))
    }

    /// Releases the authorized payment `target`, whole.
    ///
    /// # Errors
    /// [`Invalid`] for a bad reference.
    pub fn void(reference: impl Into<String>, target: impl Into<Target>) -> Result<Self, Invalid> {
        Self::new(OperationKind::Void, reference, None, Some(target.into()))
    }

    /// Gives `amount` of the payment `target` back. `reference` is the refund's own number, not the order's.
    ///
    /// # Errors
    /// As [`Operation::charge`].
    pub fn refund(reference: impl Into<String>, amount: Money, target: impl Into<Target>) -> Result<Self, Invalid> {
        Self::new(OperationKind::Refund, reference, Some(amount), Some(target.into()))
    }

    /// Changes what the gateway keeps for the merchant: a payment plan, a stored card. `what` are the options of that
    /// gateway which say so; the operation goes there.
    ///
    /// # Errors
    /// [`Invalid`] for a bad reference.
    pub fn update(reference: impl Into<String>, what: impl GatewayOptions) -> Result<Self, Invalid> {
        Ok(Self::new(OperationKind::Update, reference, None, None)?
            .through(what.gateway())
            .with(what))
    }

    fn new(
        kind: OperationKind,
        reference: impl Into<String>,
        amount: Option<Money>,
        target: Option<Target>,
    ) -> Result<Self, Invalid> {
        if amount.is_some_and(|amount| amount.minor() <= 0) {
            return Err(Invalid::new("amount", "must be greater than zero"));
        }
        Ok(Self {
            kind,
            reference: Reference::new(reference)?,
            attempt: NonZeroU32::MIN,
            amount,
            target,
            gateway: None,
            description: None,
            metadata: BTreeMap::new(),
            expires_at: None,
            options: Vec::new(),
        })
    }

    /// Makes this attempt number `attempt`: a *new decision* of the payer or merchant, such as another card after a
    /// decline. It is never a retry. It is refused while an earlier attempt may still take money.
    #[must_use]
    pub fn attempt(mut self, attempt: NonZeroU32) -> Self {
        self.attempt = attempt;
        self
    }

    /// Sends the operation through the gateway of this name; without it, through the first one configured.
    #[must_use]
    pub fn through(mut self, gateway: impl Into<Arc<str>>) -> Self {
        self.gateway = Some(gateway.into());
        self
    }

    /// A text for the payer or the statement, without personal data.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// A pair for the merchant's own use at the gateway, without personal data. The last value of a name counts.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// The payer can pay until then; afterwards the hosted page is closed. Without it the gateway's default holds.
    #[must_use]
    pub fn expires_at(mut self, instant: Timestamp) -> Self {
        self.expires_at = Some(instant);
        self
    }

    /// Options for one gateway. A second set for the same gateway replaces the first.
    #[must_use]
    pub fn with(mut self, options: impl GatewayOptions) -> Self {
        self.options.retain(|other| other.gateway() != options.gateway());
        self.options.push(Arc::new(options));
        self
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The caller's own identity of it.
    #[must_use]
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// The number of the attempt, from 1.
    #[must_use]
    pub fn attempt_number(&self) -> u32 {
        self.attempt.get()
    }

    /// How much; `None` for a void, which is always of the whole, and for an update.
    #[must_use]
    pub fn amount(&self) -> Option<Money> {
        self.amount
    }

    /// What a capture, void or refund acts on.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// The gateway asked for by name.
    #[must_use]
    pub fn gateway_name(&self) -> Option<&str> {
        self.gateway.as_deref()
    }

    /// The text for the payer.
    #[must_use]
    pub fn description_text(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// The merchant's own pairs, ordered by the UTF-8 bytes of their names.
    #[must_use]
    pub fn metadata_pairs(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Until when the payer can pay, where the caller said so.
    #[must_use]
    pub fn expiry(&self) -> Option<Timestamp> {
        self.expires_at
    }

    /// The options of type `T`, where they were given.
    #[must_use]
    pub fn options<T: GatewayOptions>(&self) -> Option<&T> {
        self.options.iter().find_map(|options| {
            let any: &dyn Any = options.as_ref();
            any.downcast_ref::<T>()
        })
    }

    /// The key of this operation in `namespace`: a pure function of namespace, kind, reference and attempt.
    #[must_use]
    pub fn key(&self, namespace: &Namespace) -> OperationKey {
        namespace.key(self.kind, &self.reference, self.attempt.get())
    }

    /// The fingerprint over all that the operation asks for. The gateway's name is not part of it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        let mut out = Canonical::new();
        out.put("kind", self.kind.as_str());
        out.put("reference", self.reference.as_str());
        out.number("attempt", i64::from(self.attempt.get()));
        if let Some(amount) = self.amount {
            out.number("amount", amount.minor());
            out.put("currency", amount.currency().code());
        }
        match &self.target {
            Some(Target::Gateway(id)) => out.put("target.gateway", id.as_str()),
            Some(Target::Operation(key)) => out.put("target.operation", &key.to_string()),
            None => {}
        }
        out.optional("description", self.description.as_deref());
        for (name, value) in &self.metadata {
            out.put("metadata", name);
            out.put("=", value);
        }
        if let Some(instant) = self.expires_at {
            out.number("expires_at", instant.unix_millis());
        }
        let mut options: Vec<_> = self.options.iter().collect();
        options.sort_by_key(|options| options.gateway());
        for options in options {
            out.put("options", options.gateway());
            options.canonical(&mut out);
        }
        out.finish()
    }
}

/// Of metadata the names alone, of the description its length: the texts are the merchant's, and perhaps the payer's.
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.metadata.keys().collect();
        f.debug_struct("Operation")
            .field("kind", &self.kind)
            .field("reference", &self.reference)
            .field("attempt", &self.attempt)
            .field("amount", &self.amount)
            .field("target", &self.target)
            .field("gateway", &self.gateway)
            .field("description_bytes", &self.description.as_ref().map(String::len))
            .field("metadata", &names)
            .field("expires_at", &self.expires_at)
            .field("options", &self.options)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    fn usd(text: &str) -> Money {
        Money::parse(text, Currency::USD).unwrap()
    }

    #[test]
    fn bad_references_are_refused_by_name_without_their_value() {
        for text in ["", " a", "a ", "a\nb", "a\u{0}b", "me@example.com", &"x".repeat(201)] {
            let invalid = Reference::new(text).unwrap_err();
            assert_eq!(invalid.field(), "reference");
            assert!(!invalid.to_string().contains("example.com"));
        }
        for text in ["order-7001", "ออเดอร์-๑", "a b", &"x".repeat(200)] {
            assert!(Reference::new(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn amounts_must_be_positive() {
        for text in ["0.00", "-1.00"] {
            let invalid = Operation::charge("order-1", usd(text)).unwrap_err();
            assert_eq!(invalid.field(), "amount");
        }
    }

    #[test]
    fn anything_asked_for_changes_the_fingerprint_and_the_gateway_does_not() {
        let base = || Operation::charge("order-1", usd("20.00")).unwrap();
        let target = || Target::Gateway(GatewayRef::new("pi_1"));
        let all = [
            base(),
            Operation::charge("order-1", usd("20.01")).unwrap(),
            Operation::charge("order-2", usd("20.00")).unwrap(),
            Operation::charge("order-1", Money::from_minor(2000, Currency::THB)).unwrap(),
            Operation::authorize("order-1", usd("20.00")).unwrap(),
            Operation::refund("order-1", usd("20.00"), target()).unwrap(),
            base().attempt(NonZeroU32::new(2).unwrap()),
            base().description("a"),
            base().description(""),
            base().metadata("a", "b"),
            base().metadata("a", "b").metadata("c", "d"),
            base().metadata("a", "b=c"),
            base().expires_at(Timestamp::from_unix_seconds(1)),
        ];
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate() {
                assert_eq!(a.fingerprint() == b.fingerprint(), i == j, "{a:?} {b:?}");
            }
        }
        assert_eq!(base().fingerprint(), base().through("2c2p").fingerprint());
    }
}
