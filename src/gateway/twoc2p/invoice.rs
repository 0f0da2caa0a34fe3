//! The invoice number: 2C2P's own idempotency key, unique per merchant for ever (page
//! `api-payment-token-request-parameter`).

use crate::operation::{OperationKey, Reference};

/// What the merchant's channels allow as an invoice number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InvoiceProfile {
    /// Up to 50 letters and digits.
    #[default]
    Standard,
    /// Up to 20 letters and digits: QR channels.
    Qr,
    /// Exactly digits, at most 12: the channels of Myanmar. A derived number has 40 bits, so that a merchant with a
    /// million payments will see two of the same; the second one is refused before it is sent, and its next attempt
    /// number gives another.
    Myanmar,
}

/// The invoice number of an operation: a pure function of key, reference and attempt.
///
/// The reference itself where it fits and this is the first attempt; else digits of the key. Some reference can spell
/// out the derived number of another operation. That does not go unnoticed: the journal keeps invoice numbers under a
/// unique index, so that the second operation is refused before it is sent; and past the journal 2C2P answers 9015
/// and its inquiry echoes the other operation's key, which is refused as another identity.
pub(super) fn number(profile: InvoiceProfile, key: OperationKey, reference: &Reference, attempt: u32) -> String {
    let text = reference.as_str();
    let fits = match profile {
        InvoiceProfile::Standard => text.len() <= 50 && alphanumeric(text),
        InvoiceProfile::Qr => text.len() <= 20 && alphanumeric(text),
        InvoiceProfile::Myanmar => text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if fits && attempt == 1 {
        return text.to_owned();
    }
    match profile {
        // 36^25 is more than 2^128: nothing is lost.
        InvoiceProfile::Standard => digits(key.as_u128(), 36, 25),
        InvoiceProfile::Qr => digits(key.as_u128(), 36, 20),
        InvoiceProfile::Myanmar => digits(key.as_u128(), 10, 12),
    }
}

fn alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The last `length` digits of `value` in base `base`, with zeros in front.
fn digits(mut value: u128, base: u32, length: usize) -> String {
    let mut out: Vec<char> = Vec::with_capacity(length);
    for _ in 0..length {
        let digit = u32::try_from(value % u128::from(base)).unwrap_or(0);
        out.push(char::from_digit(digit, base).unwrap_or('0').to_ascii_uppercase());
        value /= u128::from(base);
    }
    out.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Namespace, OperationKind};
    use proptest::prelude::*;

    fn of(profile: InvoiceProfile, reference: &str, attempt: u32) -> String {
        let reference = Reference::new(reference).unwrap();
        let key = Namespace::new("shop1")
            .unwrap()
            .key(OperationKind::Charge, &reference, attempt);
        number(profile, key, &reference, attempt)
    }

    #[test]
    fn golden_numbers() {
        // Computed from the golden keys of the design with another language's big integers.
        for (profile, reference, attempt, expected) in [
            (InvoiceProfile::Standard, "INV7001", 1, "INV7001"),
            (InvoiceProfile::Standard, "order-7001", 1, "3SSKRZ72JMKQ4VLRLUJW59D7L"),
            (InvoiceProfile::Qr, "order-7001", 1, "Z72JMKQ4VLRLUJW59D7L"),
            (InvoiceProfile::Myanmar, "order-7001", 1, "408408141857"),
            (InvoiceProfile::Standard, "ออเดอร์-๑", 1, "534IRL7T12N75A7FIIIH3311Q"),
        ] {
            assert_eq!(of(profile, reference, attempt), expected);
        }
    }

    #[test]
    fn the_reference_itself_where_it_fits_and_is_the_first_attempt() {
        let fifty = "x".repeat(50);
        assert_eq!(of(InvoiceProfile::Standard, &fifty, 1), fifty);
        assert_ne!(of(InvoiceProfile::Standard, &fifty, 2), fifty);
        assert_eq!(of(InvoiceProfile::Standard, &"x".repeat(51), 1).len(), 25);
        assert_eq!(of(InvoiceProfile::Qr, &"7".repeat(21), 1).len(), 20);
        assert_eq!(of(InvoiceProfile::Myanmar, "123456789012", 1), "123456789012");
        assert_eq!(of(InvoiceProfile::Myanmar, "1234567890123", 1).len(), 12);
        assert_eq!(of(InvoiceProfile::Myanmar, "INV1", 1).len(), 12);
    }

    #[test]
    fn digits_are_the_last_ones_with_zeros_in_front() {
        assert_eq!(digits(35, 36, 3), "00Z");
        assert_eq!(digits(36, 36, 3), "010");
        assert_eq!(digits(u128::MAX, 36, 25), "F5LXX1ZZ5PNORYNQGLHZMSP33");
        assert_eq!(digits(1_234_567, 10, 4), "4567");
    }

    proptest! {
        #[test]
        fn fits_every_profile(reference in "[^@\\p{C}\\p{Z}]{1,40}", attempt in 1_u32..1000) {
            for (profile, most) in [(InvoiceProfile::Standard, 50), (InvoiceProfile::Qr, 20), (InvoiceProfile::Myanmar, 12)] {
                let number = of(profile, &reference, attempt);
                prop_assert!((1..=most).contains(&number.len()));
                prop_assert!(alphanumeric(&number));
                prop_assert!(profile != InvoiceProfile::Myanmar || number.bytes().all(|byte| byte.is_ascii_digit()));
            }
        }
    }
}
