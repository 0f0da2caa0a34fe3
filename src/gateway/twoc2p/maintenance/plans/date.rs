//! The days of a payment plan.

use crate::operation::Invalid;
use std::fmt;

/// A day on which a plan charges. In the merchant's own zone, presumably: no page says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct ChargeDate {
    /// 2000 to 2099: only so far can 2C2P's two orders of the same eight digits be told apart.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

impl ChargeDate {
    /// That day.
    ///
    /// # Errors
    /// [`Invalid`] for a day that does not exist, or not in this century.
    pub fn new(year: u16, month: u8, day: u8) -> Result<Self, Invalid> {
        let known = (2000..=2099).contains(&year) && exists(year, month, day);
        let refuse = || Invalid::new("chargeNextDate", "is no day of the years 2000 to 2099");
        known.then_some(Self { year, month, day }).ok_or_else(refuse)
    }

    /// Reads `yyyyMMdd`, which answers are printed with, and `ddMMyyyy`, which requests are written in. In this century
    /// no eight digits are both: a month begins with 0 or 1, a year with 2.
    pub(super) fn read(text: &str) -> Option<Self> {
        let year = |from| digits(text, from, 4);
        let two = |from| digits(text, from, 2).and_then(|number| u8::try_from(number).ok());
        if text.len() != 8 {
            return None;
        }
        let written = || Self::new(year(4)?, two(2)?, two(0)?).ok();
        Self::new(year(0)?, two(4)?, two(6)?).ok().or_else(written)
    }

    /// `ddMMyyyy` (page `api-payment-action-recurring-maintenance`; the guide's text has another order).
    pub(super) fn to_wire(self) -> String {
        format!("{:02}{:02}{:04}", self.day, self.month, self.year)
    }
}

impl fmt::Display for ChargeDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Debug for ChargeDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `chargeOnDate`: the day of each month on which a plan charges, with the month that 2C2P has in the same field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ChargeDay {
    /// Day of the month, from 1.
    pub day: u8,
    /// Month, 1 to 12.
    pub month: u8,
}

impl ChargeDay {
    /// That day.
    ///
    /// # Errors
    /// [`Invalid`] for a day that no year has.
    pub fn new(day: u8, month: u8) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("chargeOnDate", "is no day of a year");
        exists(2000, month, day)
            .then_some(Self { day, month })
            .ok_or_else(refuse)
    }

    /// Reads `ddMM`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let two = |from| digits(text, from, 2).and_then(|number| u8::try_from(number).ok());
        (text.len() == 4).then_some(())?;
        Self::new(two(0)?, two(2)?).ok()
    }

    /// `ddMM`.
    pub(super) fn to_wire(self) -> String {
        format!("{:02}{:02}", self.day, self.month)
    }
}

fn exists(year: u16, month: u8, day: u8) -> bool {
    let small = |number: u8| i8::try_from(number).unwrap_or(i8::MAX);
    i16::try_from(year).is_ok_and(|year| jiff::civil::Date::new(year, small(month), small(day)).is_ok())
}

/// So many digits from there.
fn digits(text: &str, from: usize, count: usize) -> Option<u16> {
    let part = text.get(from..from + count)?;
    let all = part.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| part.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_day_is_read_in_both_orders_and_written_in_one() {
        let date = ChargeDate::new(2021, 3, 7).unwrap();
        for text in ["20210307", "07032021"] {
            assert_eq!(ChargeDate::read(text), Some(date), "{text}");
        }
        assert_eq!(
            (date.to_wire().as_str(), date.to_string().as_str()),
            ("07032021", "2021-03-07")
        );
        for text in [
            "", "2021037", "20211307", "30022021", "19991231", "21000101", "+2021037", "2021๑",
        ] {
            assert_eq!(ChargeDate::read(text), None, "{text}");
        }
        assert_eq!(ChargeDay::read("3101"), ChargeDay::new(31, 1).ok());
        for text in ["", "3102", "0001", "0113", "101", "๑1"] {
            assert_eq!(ChargeDay::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_two_days(text in "[0-9]{8}", other in ".{0,9}") {
            let _ = (ChargeDate::read(&other), ChargeDay::read(&other));
            if let Some(date) = ChargeDate::read(&text) {
                let printed = format!("{:04}{:02}{:02}", date.year, date.month, date.day);
                prop_assert!((printed == text) ^ (date.to_wire() == text));
            }
        }
    }
}
