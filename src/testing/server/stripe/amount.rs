//! Stripe's amounts: whole units whose scale is not always that of ISO 4217 (reference of currencies, section "zero
//! decimal" and "special cases").

use super::refusal::Refusal;
use crate::money::{Currency, Money};

const NO_DECIMALS: [&str; 14] = [
    "BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF",
];
const THREE_DECIMALS: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// The least that can be charged, in Stripe's units.
const LEAST: [(&str, i64); 24] = [
    ("USD", 50),
    ("EUR", 50),
    ("GBP", 30),
    ("AUD", 50),
    ("BRL", 50),
    ("CAD", 50),
    ("CHF", 50),
    ("DKK", 250),
    ("HKD", 400),
    ("INR", 50),
    ("JPY", 50),
    ("MXN", 1000),
    ("NOK", 300),
    ("NZD", 50),
    ("SEK", 300),
    ("SGD", 50),
    ("AED", 200),
    ("BGN", 100),
    ("CZK", 1500),
    ("HUF", 17_500),
    ("MYR", 200),
    ("PLN", 200),
    ("RON", 200),
    ("THB", 1000),
];

/// The most, in Stripe's units: eight digits. Some currencies allow more; nobody has a test for that.
const MOST: i64 = 99_999_999;

/// How many decimals Stripe's units have.
fn scale(code: &str) -> u8 {
    if NO_DECIMALS.contains(&code) || code == "XPF" {
        0
    } else if THREE_DECIMALS.contains(&code) {
        3
    } else {
        // ISK and UGX too, whose two decimals must be zeros.
        2
    }
}

/// Reads a currency as Stripe writes it: lower case. Upper case is taken as well.
pub(super) fn currency(text: &str) -> Result<Currency, Refusal> {
    Currency::parse(text).map_err(|_| Refusal::invalid(Some("currency"), format!("Invalid currency: {text}")))
}

/// Checks the amount of a payment.
pub(super) fn check(units: i64, currency: Currency) -> Result<(), Refusal> {
    let refuse = |code: &str, message: String| Err(Refusal::invalid(Some("amount"), message).code(code));
    let code = currency.code();
    if units <= 0 {
        return refuse(
            "parameter_invalid_integer",
            format!("Invalid positive integer: {units}"),
        );
    }
    let least = LEAST
        .iter()
        .find(|(other, _)| *other == code)
        .map_or(1, |(_, least)| *least);
    if units < least {
        return refuse(
            "amount_too_small",
            format!("Amount must be at least {least} units of {code}"),
        );
    }
    if units > MOST {
        return refuse(
            "amount_too_large",
            format!("Amount must be no more than {MOST} units of {code}"),
        );
    }
    let step = match code {
        "ISK" | "UGX" => 100,
        _ if THREE_DECIMALS.contains(&code) => 10,
        _ => 1,
    };
    if units % step != 0 {
        let message = format!("The amount must be divisible by {step} for {code}");
        return refuse("invalid_charge_amount_no_decimal_compatible", message);
    }
    Ok(())
}

/// The amount as money. Units that ISO 4217 has no place for count as nothing; `check` lets none through.
pub(super) fn money(units: i64, currency: Currency) -> Money {
    Money::from_scale(units, scale(currency.code()), currency).unwrap_or(Money::from_minor(0, currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_stripe() {
        for (units, code, decimal) in [
            (2000, "usd", "20.00"),
            (500, "jpy", "500"),
            (500, "isk", "5"),
            (5120, "kwd", "5.120"),
            (500, "mga", "500.00"),
            (2000, "thb", "20.00"),
        ] {
            let currency = currency(code).unwrap();
            assert!(check(units, currency).is_ok(), "{code}");
            assert_eq!(money(units, currency).to_decimal(), decimal, "{code}");
        }
    }

    #[test]
    fn amounts_that_cannot_be_charged_are_refused() {
        for (units, code) in [
            (0, "usd"),
            (-1, "usd"),
            (49, "usd"),
            (100_000_000, "usd"),
            (501, "isk"),
            (5121, "kwd"),
            (999, "thb"),
        ] {
            assert!(check(units, currency(code).unwrap()).is_err(), "{units} {code}");
        }
        assert!(currency("zzz").is_err());
    }
}
