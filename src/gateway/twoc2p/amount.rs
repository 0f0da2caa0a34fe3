//! Amounts on the wire: decimals of major units (page `api-payment-token-request-parameter`, type D 12,5).

use crate::money::{Currency, Money};
use crate::operation::Invalid;

/// The most digits before the point that 2C2P takes.
const INTEGER_DIGITS: usize = 12;

/// How far a point may be moved by an exponent. No amount needs as much; it bounds what a hostile number can cost.
const LARGEST_EXPONENT: i32 = 30;

/// `money` as a JSON number with exactly the currency's decimals: `1234.50`, `500` for yen.
///
/// The decimals are those of ISO 4217, except that rupiah are whole: 2C2P's page singles them out.
pub(super) fn to_wire(field: &'static str, money: Money) -> Result<String, Invalid> {
    let text = if money.currency().code() == "IDR" {
        let whole = money
            .to_scale(0)
            .map_err(|_| Invalid::new(field, "rupiah are whole at 2C2P"))?;
        whole.to_string()
    } else {
        money.to_decimal()
    };
    if money.minor() <= 0 {
        return Err(Invalid::new(field, "must be greater than zero"));
    }
    let integer = text.split('.').next().unwrap_or_default();
    if integer.len() > INTEGER_DIGITS {
        return Err(Invalid::new(field, "has more than 12 digits before the point"));
    }
    Ok(text)
}

/// Reads the JSON text of an amount, a number or a string, exactly. `None` for whatever is not plainly an amount.
///
/// * Zeros that say nothing are ignored in front and behind: `000000001000.00000` is 1000.
/// * A string of digits is major units, never minor ones: `000000100000` is one hundred thousand.
/// * A JSON *number* may have an exponent, since some libraries write 1000 as `1e3`; a string may not.
/// * Signs, spaces, group separators, and digits that the currency has no room for are refused, never rounded away.
pub(super) fn from_wire(json: &str, currency: Currency) -> Option<Money> {
    let money = if json.starts_with('"') {
        let text: String = serde_json::from_str(json).ok()?;
        Money::parse(&text, currency).ok()?
    } else {
        Money::parse(&without_exponent(json)?, currency).ok()?
    };
    (money.minor() >= 0 && !json.trim_start_matches('"').starts_with('-')).then_some(money)
}

/// The same number without an exponent; digits are moved, never computed with.
fn without_exponent(number: &str) -> Option<String> {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return Some(number.to_owned());
    };
    let exponent: i32 = exponent.parse().ok()?;
    if exponent.abs() > LARGEST_EXPONENT {
        return None;
    }
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{integer}{fraction}");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let shift = usize::try_from(exponent.unsigned_abs()).ok()?;
    Some(if exponent >= 0 {
        let missing = shift.saturating_sub(fraction.len());
        let digits = format!("{digits}{}", "0".repeat(missing));
        let point = integer.len() + shift;
        with_point(&digits, point)
    } else {
        let missing = shift.saturating_sub(integer.len()) + 1;
        let digits = format!("{}{digits}", "0".repeat(missing));
        with_point(&digits, integer.len() + missing - shift)
    })
}

fn with_point(digits: &str, point: usize) -> String {
    let (integer, fraction) = digits.split_at(point.min(digits.len()));
    if fraction.is_empty() {
        integer.to_owned()
    } else {
        format!("{integer}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn money(text: &str, code: &str) -> Money {
        Money::parse(text, Currency::parse(code).unwrap()).unwrap()
    }

    #[test]
    fn c45_c49_writes_the_currency_s_decimals_and_a_point_only() {
        for (text, code, expected) in [
            ("1234.5", "THB", "1234.50"),
            ("1234567", "THB", "1234567.00"),
            ("500", "JPY", "500"),
            ("150000", "VND", "150000"),
            ("5.124", "KWD", "5.124"),
            ("122657", "IDR", "122657"),
            ("999999999999.99", "USD", "999999999999.99"),
        ] {
            assert_eq!(to_wire("amount", money(text, code)).unwrap(), expected);
        }
        for (text, code) in [
            ("9999999999999", "THB"),
            ("1000000000000", "USD"),
            ("0.50", "IDR"),
            ("0", "THB"),
        ] {
            assert_eq!(to_wire("amount", money(text, code)).unwrap_err().field(), "amount");
        }
        assert!(to_wire("amount", Money::from_minor(i64::MAX, Currency::THB)).is_err());
        assert!(to_wire("amount", Money::from_minor(i64::MIN, Currency::THB)).is_err());
    }

    #[test]
    fn reads_numbers_and_strings_exactly() {
        for (json, expected) in [
            ("1000.00", "1000"),
            ("1000", "1000"),
            ("93.1", "93.10"),
            ("\"230.87\"", "230.87"),
            ("\"000000002500.90000\"", "2500.90"),
            ("\"000000100000\"", "100000"),
            ("1e3", "1000"),
            ("1E+3", "1000"),
            ("1.5e2", "150"),
            ("12345e-2", "123.45"),
            ("5e-2", "0.05"),
            ("1.23400e2", "123.40"),
            ("0", "0"),
            ("0e5", "0"),
        ] {
            assert_eq!(from_wire(json, Currency::THB), Some(money(expected, "THB")), "{json}");
        }
        assert_eq!(from_wire("500", Currency::JPY), Some(money("500", "JPY")));
    }

    #[test]
    fn refuses_what_is_not_plainly_an_amount() {
        for json in [
            "",
            "null",
            "true",
            "{}",
            "[]",
            "\"\"",
            "\"1,000.00\"",
            "\"1e3\"",
            "-1000.00",
            "\"-5\"",
            "-0",
            "\" 1\"",
            "\"1.001\"",
            "1000.0000000001",
            "1e-3",
            "1e31",
            "1e99999999999",
            "1e",
            "\"１\"",
            "NaN",
            "\"1",
            "--1e3",
        ] {
            assert_eq!(from_wire(json, Currency::THB), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", number in "-?[0-9]{0,40}(\\.[0-9]{0,40})?([eE][+-]?[0-9]{1,6})?") {
            let _ = from_wire(&text, Currency::THB);
            let _ = from_wire(&number, Currency::THB);
        }

        #[test]
        fn what_is_written_is_read_back(minor in 1_i64..99_999_999_999_999, code in prop::sample::select(vec!["THB", "JPY", "KWD"])) {
            let money = Money::from_minor(minor, Currency::parse(code).unwrap());
            if let Ok(text) = to_wire("amount", money) {
                prop_assert_eq!(from_wire(&text, money.currency()), Some(money));
                let quoted = format!("\"{text}\"");
                prop_assert_eq!(from_wire(&quoted, money.currency()), Some(money));
            }
        }

        #[test]
        fn an_exponent_moves_the_point_and_nothing_else(minor in 0_i64..9_999_999_999, exponent in 0_usize..9) {
            let money = Money::from_minor(minor, Currency::THB);
            let text = money.to_decimal();
            let (integer, fraction) = text.split_once('.').unwrap();
            let number = format!("{integer}{fraction}{}e-{}", "0".repeat(exponent), exponent + 2);
            prop_assert_eq!(from_wire(&number, Currency::THB), Some(money));
        }
    }
}
