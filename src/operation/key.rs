//! The idempotency key: a pure function of namespace, kind, reference and attempt.

use super::{Invalid, OperationKind, Reference};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// The root of all namespaces. A change of it, or of the derivation below, changes every key and is a new major version.
const ROOT: Uuid = Uuid::from_u128(0xb056_74b7_7b47_4228_a04f_c748_8f46_00e4);

/// Merchant account and mode, such as `shop-th/live`: sandbox and live keys never meet.
#[derive(Clone, PartialEq, Eq)]
pub struct Namespace {
    name: Arc<str>,
    id: Uuid,
}

impl Namespace {
    /// Checks and wraps `name`. It enters every key: choose it once.
    ///
    /// # Errors
    /// [`Invalid`] when `name` is empty, longer than 200 bytes, or has control characters.
    pub fn new(name: impl Into<String>) -> Result<Self, Invalid> {
        let name = name.into();
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            return Err(Invalid::new(
                "namespace",
                "must be 1 to 200 bytes without control characters",
            ));
        }
        Ok(Self::under(ROOT, name.into()))
    }

    fn under(root: Uuid, name: Arc<str>) -> Self {
        let mut input = Vec::with_capacity(name.len() + 6);
        netstring(&mut input, &name);
        let id = Uuid::new_v5(&root, &input);
        Self { name, id }
    }

    /// The same namespace as a version of this crate with another derivation would have it: to test that operations
    /// that are open over an upgrade keep their stored keys.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn of_another_derivation(self) -> Self {
        Self::under(Uuid::from_u128(1), self.name)
    }

    /// The name as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// The key of one operation.
    #[must_use]
    pub fn key(&self, kind: OperationKind, reference: &Reference, attempt: u32) -> OperationKey {
        let mut input = Vec::with_capacity(reference.as_str().len() + 32);
        netstring(&mut input, kind.as_str());
        netstring(&mut input, reference.as_str());
        netstring(&mut input, &attempt.to_string());
        OperationKey(Uuid::new_v5(&self.id, &input))
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

/// The idempotency key of an operation: 32 lower-case hex digits on the wire, which fits every provider's limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationKey(Uuid);

impl OperationKey {
    /// From its 32 lower-case hex digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() != 32 || !text.bytes().all(lower_hex) {
            return None;
        }
        Uuid::try_parse(text).ok().map(Self)
    }

    /// The key as a number of 128 bits, for adapters that must write it in another alphabet.
    #[must_use]
    pub fn as_u128(self) -> u128 {
        self.0.as_u128()
    }
}

impl fmt::Display for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.simple(), f)
    }
}

impl fmt::Debug for OperationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn netstring(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.len().to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(text.as_bytes());
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(namespace: &str, kind: &str, reference: &str, attempt: u32) -> String {
        let namespace = Namespace::new(namespace).unwrap();
        let kind = OperationKind::parse(kind).unwrap();
        let reference = Reference::new(reference).unwrap();
        namespace.key(kind, &reference, attempt).to_string()
    }

    #[test]
    fn golden_vectors() {
        for (namespace, kind, reference, attempt, expected) in [
            (
                "shop-th/live",
                "charge",
                "order-1042",
                1,
                "e130cebe37775561a1877ef4bbf5840b",
            ),
            (
                "shop-th/live",
                "charge",
                "order-1042",
                2,
                "0118959fc22b54d79f038dbf1194f0a6",
            ),
            (
                "shop-th/test",
                "charge",
                "order-1042",
                1,
                "e957cdca63a859a3a2adf02fa1c05c2b",
            ),
            (
                "shop-th/live",
                "refund",
                "order-1042/refund-1",
                1,
                "8f10df748daf5b1aa4df9c5a547818a2",
            ),
            ("shop1", "charge", "order-7001", 1, "402f04607e0a5d329f51fdc342460021"),
            ("shop1", "charge", "ออเดอร์-๑", 1, "55ec2b34f9c75cc8be72495117418f0e"),
        ] {
            assert_eq!(key(namespace, kind, reference, attempt), expected);
        }
    }

    #[test]
    fn reads_only_its_own_form() {
        let text = "e130cebe37775561a1877ef4bbf5840b";
        assert_eq!(OperationKey::parse(text).unwrap().to_string(), text);
        for other in [
            "",
            "E130CEBE37775561A1877EF4BBF5840B",
            "e130cebe-3777-5561-a187-7ef4bbf5840b",
            "urn:uuid:e130cebe37775561",
        ] {
            assert_eq!(OperationKey::parse(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn parts_cannot_run_into_each_other(a in "[a-z0-9:,]{1,12}", b in "[a-z0-9:,]{1,12}", m in 1_u32..99, n in 1_u32..99) {
            let same = a == b && m == n;
            prop_assert_eq!(key("shop", "charge", &a, m) == key("shop", "charge", &b, n), same);
            prop_assert_ne!(key("shop", "charge", &a, m), key("shop", "refund", &a, m));
        }
    }
}
