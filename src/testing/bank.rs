//! The ledger that judges: how often did money really move?

use crate::money::Money;
use crate::operation::OperationKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stands behind every fake gateway and only counts.
///
/// Tests judge by the bank, never by what the code under test says of itself: whatever was lost, replayed or
/// refused on the way, `bank.charged("order-1042")` must be 1. Clones share one ledger, so one bank can stand behind
/// several gateways.
///
/// ```
/// use payonce::money::{Currency, Money};
/// use payonce::operation::OperationKind;
/// use payonce::testing::{Bank, Movement};
///
/// let bank = Bank::new();
/// let price = Money::from_minor(2000, Currency::THB);
/// bank.record(Movement::new(OperationKind::Charge, "order-1042", "mock", "mock_1", price));
/// assert_eq!(bank.charged("order-1042"), 1);
/// assert!(bank.moved_twice().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct Bank {
    movements: Arc<Mutex<Vec<Movement>>>,
}

/// Money that moved, or was reserved or released, once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Movement {
    /// What was done with it.
    pub kind: OperationKind,
    /// The merchant's reference, where the gateway was told one; else the gateway's own id.
    pub reference: String,
    /// The key of the operation, where the gateway was told one.
    pub key: Option<String>,
    /// Whatever else the request was known by: the HTTP idempotency key, the invoice number, user-defined fields.
    pub identities: Vec<String>,
    /// The gateway that moved it.
    pub gateway: &'static str,
    /// The gateway's id of the payment or refund.
    pub gateway_ref: String,
    /// How much.
    pub amount: Money,
}

impl Movement {
    /// A movement without a key.
    pub fn new(
        kind: OperationKind,
        reference: impl Into<String>,
        gateway: &'static str,
        gateway_ref: impl Into<String>,
        amount: Money,
    ) -> Self {
        Self {
            kind,
            reference: reference.into(),
            key: None,
            identities: Vec::new(),
            gateway,
            gateway_ref: gateway_ref.into(),
            amount,
        }
    }

    /// Adds the key of the operation.
    #[must_use]
    pub fn with_key(mut self, key: Option<String>) -> Self {
        self.key = key;
        self
    }

    /// Adds something else by which the request was known. An empty text is no identity.
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        let identity = identity.into();
        if !identity.is_empty() && !self.identities.contains(&identity) {
            self.identities.push(identity);
        }
        self
    }

    /// Is it known by `id`: as reference, as key, or as what else it was sent under?
    #[must_use]
    pub fn is_about(&self, id: &str) -> bool {
        self.reference == id || self.key.as_deref() == Some(id) || self.identities.iter().any(|other| other == id)
    }
}

impl Bank {
    /// A bank in which nothing has moved yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a movement. Called by the fakes at the moment at which a real bank would move the money.
    pub fn record(&self, movement: Movement) {
        self.ledger().push(movement);
    }

    /// How often money was taken for `id`: a reference, a key, or an identity on the wire such as an invoice number.
    #[must_use]
    pub fn charged(&self, id: &str) -> usize {
        self.count(OperationKind::Charge, id)
    }

    /// How often money was reserved for `id`.
    #[must_use]
    pub fn authorized(&self, id: &str) -> usize {
        self.count(OperationKind::Authorize, id)
    }

    /// How often reserved money was taken for `id`.
    #[must_use]
    pub fn captured(&self, id: &str) -> usize {
        self.count(OperationKind::Capture, id)
    }

    /// How often money was given back for `id`.
    #[must_use]
    pub fn refunded(&self, id: &str) -> usize {
        self.count(OperationKind::Refund, id)
    }

    /// How often reserved money was released for `id`.
    #[must_use]
    pub fn voided(&self, id: &str) -> usize {
        self.count(OperationKind::Void, id)
    }

    /// The sum of the movements of one kind for `id`, in minor units of their currency.
    #[must_use]
    pub fn total(&self, kind: OperationKind, id: &str) -> i64 {
        self.ledger()
            .iter()
            .filter(|movement| movement.kind == kind && movement.is_about(id))
            .fold(0, |sum, movement| movement.amount.minor().saturating_add(sum))
    }

    /// All movements, oldest first.
    #[must_use]
    pub fn movements(&self) -> Vec<Movement> {
        self.ledger().clone()
    }

    /// The references and keys for which money moved more than once in the same way: two charges for one order, two
    /// refunds under one refund number. Sorted; empty is what every test of exactly-once wants.
    ///
    /// The key counts beside the reference, so that one operation sent under two invoice numbers is found out too.
    #[must_use]
    pub fn moved_twice(&self) -> Vec<String> {
        let mut counts: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
        for movement in self.ledger().iter() {
            let reference = Some(&movement.reference);
            let key = movement.key.as_ref().filter(|key| Some(*key) != reference);
            for id in reference.into_iter().chain(key) {
                *counts.entry((movement.kind.as_str(), id.clone())).or_default() += 1;
            }
        }
        let twice: BTreeSet<String> = counts
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .map(|((_, id), _)| id)
            .collect();
        twice.into_iter().collect()
    }

    fn count(&self, kind: OperationKind, id: &str) -> usize {
        self.ledger()
            .iter()
            .filter(|movement| movement.kind == kind && movement.is_about(id))
            .count()
    }

    fn ledger(&self) -> MutexGuard<'_, Vec<Movement>> {
        self.movements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bank {
    /// One line a movement, so that a failed assertion shows the whole ledger.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ledger = self.ledger();
        let mut list = f.debug_list();
        for movement in ledger.iter() {
            list.entry(&format_args!(
                "{} {} for {} ({} at {})",
                movement.kind, movement.amount, movement.reference, movement.gateway_ref, movement.gateway
            ));
        }
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    fn movement(kind: OperationKind, reference: &str, minor: i64) -> Movement {
        Movement::new(
            kind,
            reference,
            "mock",
            "mock_1",
            Money::from_minor(minor, Currency::THB),
        )
    }

    #[test]
    fn counts_by_reference_by_key_and_by_invoice() {
        let bank = Bank::new();
        let charge = movement(OperationKind::Charge, "order-1", 2000).with_key(Some("k1".to_owned()));
        bank.clone().record(charge.with_identity("INV1").with_identity(""));
        for id in ["order-1", "k1", "INV1"] {
            assert_eq!(bank.charged(id), 1, "{id}");
            assert_eq!(bank.total(OperationKind::Charge, id), 2000, "{id}");
        }
        for count in [bank.charged(""), bank.charged("order-2"), bank.refunded("order-1")] {
            assert_eq!(count, 0);
        }
    }

    #[test]
    fn names_what_moved_twice_and_nothing_else() {
        let bank = Bank::new();
        bank.record(movement(OperationKind::Authorize, "order-1", 2000));
        bank.record(movement(OperationKind::Capture, "order-1", 2000));
        bank.record(movement(OperationKind::Charge, "order-2", 2000));
        assert!(bank.moved_twice().is_empty());
        bank.record(movement(OperationKind::Charge, "order-2", 2000));
        bank.record(movement(OperationKind::Refund, "refund-1", 1));
        bank.record(movement(OperationKind::Refund, "refund-1", 1));
        assert_eq!(bank.moved_twice(), ["order-2", "refund-1"]);
        for invoice in ["INV1", "INV2"] {
            bank.record(movement(OperationKind::Charge, invoice, 1).with_key(Some("k1".to_owned())));
        }
        assert_eq!(bank.moved_twice(), ["k1", "order-2", "refund-1"]);
    }
}
