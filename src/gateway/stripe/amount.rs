//! Amounts as Stripe counts them, which is not always as ISO 4217 does (docs/currencies).

use crate::money::{Currency, Money, MoneyError};
use crate::operation::Invalid;

/// How many decimals Stripe's unit has.
///
/// Icelandic króna and Ugandan shilling have none in use and are yet sent with two, which must be 00; the ariary has
/// two in ISO 4217 and none at Stripe. Both lists are from docs/currencies ("zero-decimal", "special cases").
fn scale(currency: Currency) -> u8 {
    match currency.code() {
        "BIF" | "CLP" | "DJF" | "GNF" | "JPY" | "KMF" | "KRW" | "MGA" | "PYG" | "RWF" | "VND" | "VUV" | "XAF"
        | "XOF" | "XPF" => 0,
        "BHD" | "JOD" | "KWD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

/// The amount as it is sent.
///
/// No minimum and no maximum is checked: Stripe's differ by settlement currency and account, and its refusal is a
/// definitive answer. Only what cannot be written exactly is refused here.
pub(super) fn to_wire(amount: Money) -> Result<i64, Invalid> {
    let currency = amount.currency();
    let scale = scale(currency);
    let units = amount
        .to_scale(scale)
        .map_err(|error| Invalid::new("amount", format!("cannot be sent to Stripe in {currency}: {error}")))?;
    if scale == 3 && units % 10 != 0 {
        let reason = format!("the last of the three decimals must be 0 in {currency} at Stripe");
        return Err(Invalid::new("amount", reason));
    }
    Ok(units)
}

/// The amount that Stripe reports.
pub(super) fn from_wire(units: i64, currency: Currency) -> Result<Money, MoneyError> {
    Money::from_scale(units, scale(currency), currency)
}

/// The currency as it is sent.
pub(super) fn currency(amount: Money) -> String {
    amount.currency().code().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn money(text: &str) -> Money {
        let (amount, code) = text.split_once(' ').unwrap();
        Money::parse(amount, Currency::parse(code).unwrap()).unwrap()
    }

    #[test]
    fn c45_yen_is_not_multiplied() {
        for (text, wire) in [
            ("500 JPY", 500),
            ("2000 KRW", 2000),
            ("150000 VND", 150_000),
            ("7 CLP", 7),
            ("10000 XAF", 10_000),
            ("10.00 USD", 1000),
        ] {
            assert_eq!(to_wire(money(text)), Ok(wire), "{text}");
            assert_eq!(from_wire(wire, money(text).currency()), Ok(money(text)));
        }
    }

    #[test]
    fn currencies_without_decimals_are_sent_as_they_are() {
        let codes = "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF";
        for code in codes.split(' ') {
            assert_eq!(to_wire(money(&format!("7 {code}"))), Ok(7), "{code}");
        }
    }

    #[test]
    fn c46_the_third_decimal_must_be_zero() {
        assert_eq!(to_wire(money("35.200 KWD")), Ok(35_200));
        assert_eq!(to_wire(money("18.600 KWD")), Ok(18_600));
        for text in ["5.124 KWD", "0.001 BHD"] {
            let refused = to_wire(money(text)).unwrap_err();
            assert_eq!(refused.field(), "amount");
            assert!(refused.reason().contains("must be 0"), "{refused}");
        }
        assert_eq!(
            from_wire(92_000, Currency::parse("KWD").unwrap()),
            Ok(money("92.000 KWD"))
        );
    }

    #[test]
    fn exponents_that_differ_from_iso_4217() {
        for (text, wire) in [
            ("5 ISK", 500),
            ("7 UGX", 700),
            ("5.00 MGA", 5),
            ("10.45 HUF", 1045),
            ("1.00 TWD", 100),
        ] {
            assert_eq!(to_wire(money(text)), Ok(wire), "{text}");
            assert_eq!(from_wire(wire, money(text).currency()), Ok(money(text)));
        }
        assert!(to_wire(money("5.20 MGA")).is_err());
        assert_eq!(
            from_wire(550, Currency::parse("ISK").unwrap()),
            Err(MoneyError::TooManyDecimals)
        );
    }

    #[test]
    fn c50_only_what_overflows_is_refused() {
        assert_eq!(to_wire(money("999999999.99 USD")), Ok(99_999_999_999));
        assert_eq!(to_wire(Money::from_minor(i64::MAX, Currency::USD)), Ok(i64::MAX));
        let refused = to_wire(Money::from_minor(i64::MAX, Currency::parse("ISK").unwrap())).unwrap_err();
        assert_eq!(refused.field(), "amount");
    }

    proptest! {
        #[test]
        fn what_is_sent_reads_back_as_the_same_amount(
            minor in any::<i64>(),
            code in prop::sample::select(vec!["USD", "JPY", "KWD", "ISK", "UGX", "MGA", "CLF", "IQD"]),
        ) {
            let amount = Money::from_minor(minor, Currency::parse(code).unwrap());
            if let Ok(units) = to_wire(amount) {
                prop_assert_eq!(from_wire(units, amount.currency()), Ok(amount));
            }
        }
    }
}
