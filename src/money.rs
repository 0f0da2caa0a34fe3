//! Amounts of money as whole minor units of an ISO 4217 currency.
//!
//! There is no floating point here and no rounding that was not asked for: what cannot be represented is refused.

use std::fmt;
use std::str::FromStr;

/// An ISO 4217 currency that has a minor unit.
///
/// The exponent is that of ISO 4217. Gateways differ for some currencies (Stripe for ISK, UGX and MGA), and those
/// differences live in the gateway's adapter: see [`Money::to_scale`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// The Thai baht.
    pub const THB: Self = Self(iso_currency::Currency::THB);
    /// The United States dollar.
    pub const USD: Self = Self(iso_currency::Currency::USD);
    /// The euro.
    pub const EUR: Self = Self(iso_currency::Currency::EUR);
    /// The Singapore dollar.
    pub const SGD: Self = Self(iso_currency::Currency::SGD);
    /// The Japanese yen, which has no minor unit in use: one unit is one yen.
    pub const JPY: Self = Self(iso_currency::Currency::JPY);

    /// Reads a three-letter code, in either case.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`] for anything that ISO 4217 does not list, and for codes without a minor unit
    /// (gold, testing codes), in which nobody can be charged.
    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        let upper = code.to_ascii_uppercase();
        iso_currency::Currency::from_code(&upper)
            .filter(|currency| currency.exponent().is_some())
            .map(Self)
            .ok_or(MoneyError::UnknownCurrency)
    }

    /// The three letters, upper case.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// How many decimals ISO 4217 gives the currency: 2 for most, 0 for JPY, 3 for KWD.
    #[must_use]
    pub fn exponent(self) -> u8 {
        self.0
            .exponent()
            .and_then(|exponent| u8::try_from(exponent).ok())
            .unwrap_or(0)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(code: &str) -> Result<Self, MoneyError> {
        Self::parse(code)
    }
}

/// An amount: whole minor units (satang, cents, yen) of one currency.
///
/// ```
/// use payonce::money::{Currency, Money};
///
/// let price = Money::parse("19.99", Currency::USD)?;
/// assert_eq!(price.minor(), 1999);
/// assert_eq!(price.to_string(), "19.99 USD");
/// assert!(Money::parse("19.999", Currency::USD).is_err(), "nothing is rounded without being asked");
/// # Ok::<(), payonce::money::MoneyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    minor: i64,
    currency: Currency,
}

/// How [`Money::parse_rounded`] treats digits that the currency has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rounding {
    /// Half away from zero: 0.005 becomes 0.01.
    HalfUp,
    /// Half to the even neighbour (bankers' rounding): 0.005 becomes 0.00, 0.015 becomes 0.02.
    HalfEven,
    /// Toward zero: 0.009 becomes 0.00.
    Down,
}

/// Why an amount was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyError {
    /// Not a currency of ISO 4217 in which money can be moved.
    #[error("not a currency of ISO 4217 with a minor unit")]
    UnknownCurrency,
    /// Not a plain decimal number: digits, at most one point, an optional leading minus.
    #[error("not a plain decimal number")]
    NotANumber,
    /// More decimals than the currency, or the gateway's scale, can hold.
    #[error("more decimals than the currency has")]
    TooManyDecimals,
    /// Outside of what 64 bits of minor units can hold.
    #[error("amount out of range")]
    OutOfRange,
    /// Arithmetic over two currencies.
    #[error("the two amounts are in different currencies")]
    CurrencyMismatch,
}

impl Money {
    /// `minor` whole minor units: `from_minor(1999, USD)` is 19.99 dollars, `from_minor(500, JPY)` is 500 yen.
    #[must_use]
    pub const fn from_minor(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Reads a decimal string of major units, exactly.
    ///
    /// # Errors
    /// [`MoneyError::NotANumber`] for signs other than a leading minus, spaces, group separators and exponents;
    /// [`MoneyError::TooManyDecimals`] when a non-zero digit would be lost; [`MoneyError::OutOfRange`] past `i64`.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, MoneyError> {
        let minor = Decimal::parse(text)?.to_scale(currency.exponent(), None)?;
        Ok(Self { minor, currency })
    }

    /// Reads a decimal string of major units and rounds what does not fit, as asked.
    ///
    /// # Errors
    /// As [`Money::parse`], without [`MoneyError::TooManyDecimals`].
    pub fn parse_rounded(text: &str, currency: Currency, rounding: Rounding) -> Result<Self, MoneyError> {
        let minor = Decimal::parse(text)?.to_scale(currency.exponent(), Some(rounding))?;
        Ok(Self { minor, currency })
    }

    /// The amount in minor units.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.minor
    }

    /// The currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// Major units as a plain decimal with exactly the currency's decimals: `1234.50`, `500` for yen.
    #[must_use]
    pub fn to_decimal(self) -> String {
        let exponent = usize::from(self.currency.exponent());
        let sign = if self.minor < 0 { "-" } else { "" };
        let digits = format!("{:0width$}", self.minor.unsigned_abs(), width = exponent + 1);
        let (major, minor) = digits.split_at(digits.len() - exponent);
        let point = if exponent == 0 { "" } else { "." };
        format!("{sign}{major}{point}{minor}")
    }

    /// The same amount counted in units of 10^-`scale`, for gateways whose scale is not that of ISO 4217.
    ///
    /// # Errors
    /// [`MoneyError::TooManyDecimals`] when the scale is too coarse for the amount, [`MoneyError::OutOfRange`] on
    /// overflow.
    pub fn to_scale(self, scale: u8) -> Result<i64, MoneyError> {
        self.as_decimal().to_scale(scale, None)
    }

    /// The reverse of [`Money::to_scale`].
    ///
    /// # Errors
    /// As [`Money::to_scale`].
    pub fn from_scale(units: i64, scale: u8, currency: Currency) -> Result<Self, MoneyError> {
        let decimal = Decimal {
            digits: i128::from(units),
            scale: u32::from(scale),
        };
        Ok(Self {
            minor: decimal.to_scale(currency.exponent(), None)?,
            currency,
        })
    }

    /// The sum.
    ///
    /// # Errors
    /// [`MoneyError::CurrencyMismatch`], or [`MoneyError::OutOfRange`] on overflow.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_add)
    }

    /// The difference.
    ///
    /// # Errors
    /// [`MoneyError::CurrencyMismatch`], or [`MoneyError::OutOfRange`] on overflow.
    pub fn checked_sub(self, other: Self) -> Result<Self, MoneyError> {
        self.combine(other, i64::checked_sub)
    }

    fn combine(self, other: Self, operator: fn(i64, i64) -> Option<i64>) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::CurrencyMismatch);
        }
        let minor = operator(self.minor, other.minor).ok_or(MoneyError::OutOfRange)?;
        Ok(Self {
            minor,
            currency: self.currency,
        })
    }

    fn as_decimal(self) -> Decimal {
        Decimal {
            digits: i128::from(self.minor),
            scale: u32::from(self.currency.exponent()),
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.to_decimal(), self.currency)
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `digits` × 10^-`scale`, wide enough that no step of a conversion can overflow silently.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    scale: u32,
}

/// More significant digits than this cannot become an `i64` of minor units; the bound keeps hostile input cheap.
const MAX_DIGITS: usize = 60;

impl Decimal {
    fn parse(text: &str) -> Result<Self, MoneyError> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (major, fraction) = match unsigned.split_once('.') {
            Some((major, fraction)) if !fraction.is_empty() => (major, fraction),
            Some(_) => return Err(MoneyError::NotANumber),
            None => (unsigned, ""),
        };
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if major.is_empty() || !all_digits(major) || !all_digits(fraction) {
            return Err(MoneyError::NotANumber);
        }
        // Zeros that say nothing are dropped first, so that 000000001000.00000 is as good as 1000.
        let major = major.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if major.len() > MAX_DIGITS {
            return Err(MoneyError::OutOfRange);
        }
        if fraction.len() > MAX_DIGITS {
            return Err(MoneyError::TooManyDecimals);
        }
        let mut digits: i128 = 0;
        for byte in major.bytes().chain(fraction.bytes()) {
            digits = digits
                .checked_mul(10)
                .and_then(|value| value.checked_add(i128::from(byte - b'0')))
                .ok_or(MoneyError::OutOfRange)?;
        }
        let scale = u32::try_from(fraction.len()).map_err(|_| MoneyError::TooManyDecimals)?;
        Ok(Self {
            digits: if negative { -digits } else { digits },
            scale,
        })
    }

    fn to_scale(self, scale: u8, rounding: Option<Rounding>) -> Result<i64, MoneyError> {
        let scale = u32::from(scale);
        let power = |exponent: u32| 10_i128.checked_pow(exponent).ok_or(MoneyError::OutOfRange);
        let value = if scale >= self.scale {
            self.digits
                .checked_mul(power(scale - self.scale)?)
                .ok_or(MoneyError::OutOfRange)?
        } else {
            let divisor = power(self.scale - scale)?;
            let (quotient, remainder) = (self.digits / divisor, self.digits % divisor);
            match (remainder, rounding) {
                (0, _) | (_, Some(Rounding::Down)) => quotient,
                (_, None) => return Err(MoneyError::TooManyDecimals),
                (_, Some(rounding)) => quotient + round_step(quotient, remainder, divisor, rounding),
            }
        };
        i64::try_from(value).map_err(|_| MoneyError::OutOfRange)
    }
}

fn round_step(quotient: i128, remainder: i128, divisor: i128, rounding: Rounding) -> i128 {
    let away = remainder.signum();
    let half = (remainder.abs() * 2).cmp(&divisor);
    match (half, rounding) {
        (std::cmp::Ordering::Greater, _) => away,
        (std::cmp::Ordering::Equal, Rounding::HalfEven) if quotient % 2 == 0 => 0,
        (std::cmp::Ordering::Equal, _) => away,
        (std::cmp::Ordering::Less, _) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn currency(code: &str) -> Currency {
        Currency::parse(code).unwrap()
    }

    #[test]
    fn reads_and_writes_the_same_text() {
        for (text, code, minor) in [
            ("20.00", "USD", 2000),
            ("0.07", "USD", 7),
            ("500", "JPY", 500),
            ("35.200", "KWD", 35_200),
            ("-1.05", "EUR", -105),
            ("0.00", "THB", 0),
        ] {
            let money = Money::parse(text, currency(code)).unwrap();
            assert_eq!(money.minor(), minor, "{text}");
            assert_eq!(money.to_decimal(), text);
        }
    }

    #[test]
    fn refuses_what_is_not_a_plain_decimal() {
        for text in [
            "", "-", ".", "1.", ".5", "+1", " 1", "1 ", "1e3", "1,000.00", "--1", "1.-5", "０１", "NaN", "0x10",
        ] {
            assert_eq!(
                Money::parse(text, Currency::USD),
                Err(MoneyError::NotANumber),
                "{text:?}"
            );
        }
        assert_eq!(Money::parse("0.001", Currency::USD), Err(MoneyError::TooManyDecimals));
        assert_eq!(Money::parse("0.5", Currency::JPY), Err(MoneyError::TooManyDecimals));
        assert_eq!(
            Money::parse("92233720368547758.08", Currency::USD),
            Err(MoneyError::OutOfRange)
        );
        assert_eq!(
            Money::parse(&"9".repeat(10_000), Currency::USD),
            Err(MoneyError::OutOfRange)
        );
    }

    #[test]
    fn knows_no_currency_without_a_minor_unit() {
        for code in ["XAU", "XXX", "XTS", "ZZZ", "", "US", "usdx", "ÄÖÜ"] {
            assert_eq!(Currency::parse(code), Err(MoneyError::UnknownCurrency), "{code}");
        }
        assert_eq!(currency("thb"), Currency::THB);
    }

    #[test]
    fn rounds_only_when_asked_and_as_asked() {
        let parse = |text, rounding| Money::parse_rounded(text, Currency::USD, rounding).unwrap().minor();
        assert_eq!(parse("8.928", Rounding::HalfUp), 893);
        assert_eq!(parse("-8.925", Rounding::HalfUp), -893);
        assert_eq!(parse("8.925", Rounding::HalfEven), 892);
        assert_eq!(parse("8.9251", Rounding::HalfEven), 893);
        assert_eq!(parse("8.929", Rounding::Down), 892);
    }

    proptest! {
        #[test]
        fn every_amount_survives_its_own_text(minor in any::<i64>(), code in prop::sample::select(vec!["USD", "JPY", "KWD", "CLF"])) {
            let money = Money::from_minor(minor, currency(code));
            prop_assert_eq!(Money::parse(&money.to_decimal(), money.currency()), Ok(money));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".*") {
            let _ = Money::parse(&text, Currency::USD);
            let _ = Currency::parse(&text);
        }

        #[test]
        fn scaling_is_exact_or_refused(minor in any::<i64>(), scale in 0_u8..9) {
            let money = Money::from_minor(minor, Currency::USD);
            if let Ok(units) = money.to_scale(scale) {
                prop_assert_eq!(Money::from_scale(units, scale, Currency::USD), Ok(money));
            }
        }
    }
}
