//! SHA-256 over everything an operation asks for, in a form that no map order or locale can change.

use aws_lc_rs::digest;
use std::fmt;

/// What identifies the *content* of an operation. Same key with another fingerprint is refused before any traffic.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// From the 64 lower-case hex digits of its [`Display`](fmt::Display) form.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Collects the fields of an operation in a form in which no two different operations look alike: each name and each
/// value is preceded by its length.
#[derive(Debug)]
pub struct Canonical {
    bytes: Vec<u8>,
}

/// Enters every fingerprint, so that a change of the form can never be mistaken for a change of the content.
const FORM: &[u8] = b"payonce fingerprint 1";

impl Canonical {
    pub(super) fn new() -> Self {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(FORM);
        Self { bytes }
    }

    /// Adds a field. Maps must be added in the order of their names' UTF-8 bytes (that of a `BTreeMap<String, _>`).
    pub fn put(&mut self, name: &str, value: &str) {
        self.length_and_bytes(name.as_bytes());
        self.length_and_bytes(value.as_bytes());
    }

    /// Adds a field that has a value; an absent one leaves no trace, an empty one does.
    pub fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Adds a whole number, in decimal.
    pub fn number(&mut self, name: &str, value: i64) {
        self.put(name, &value.to_string());
    }

    pub(super) fn finish(self) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, &self.bytes).as_ref());
        Fingerprint(bytes)
    }

    fn length_and_bytes(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_cannot_move_between_two_fields() {
        let of = |pairs: &[(&str, &str)]| {
            let mut out = Canonical::new();
            for (name, value) in pairs {
                out.put(name, value);
            }
            out.finish()
        };
        assert_ne!(of(&[("ab", "c")]), of(&[("a", "bc")]));
        assert_ne!(of(&[("a", ""), ("b", "")]), of(&[("a", "b"), ("", "")]));
        assert_ne!(of(&[]), of(&[("", "")]));
    }

    #[test]
    fn reads_its_own_text() {
        let print = Canonical::new().finish();
        assert_eq!(Fingerprint::parse(&print.to_string()), Some(print));
        for text in ["", "zz", &"A".repeat(64), &"+1".repeat(32)] {
            assert_eq!(Fingerprint::parse(text), None);
        }
    }
}
