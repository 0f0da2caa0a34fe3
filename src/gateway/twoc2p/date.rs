//! Times on the wire: neither direction carries a zone.

use crate::clock::Timestamp;
use crate::operation::Invalid;
use std::fmt;

/// A date and time of day without a zone, as 2C2P reports them.
///
/// It looks like the local time of the merchant's country, which no page confirms. Do not order or expire anything
/// by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct LocalTime {
    /// Year, four digits.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59: a leap second is not a valid time here.
    pub second: u8,
}

impl LocalTime {
    /// Reads `yyyyMMddHHmmss` (page `api-payment-inquiry-response-parameter`), strictly.
    ///
    /// The page's own sample has twelve digits, day first. That form stays raw text: twelve digits do not say which
    /// of them are the year.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.len() != 14 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let two = |at: usize| text.get(at..at + 2)?.parse::<u8>().ok();
        let year = text.get(..4)?.parse().ok()?;
        let time = Self {
            year,
            month: two(4)?,
            day: two(6)?,
            hour: two(8)?,
            minute: two(10)?,
            second: two(12)?,
        };
        (year > 0 && time.exists()).then_some(time)
    }

    fn exists(self) -> bool {
        let small = |number: u8| i8::try_from(number).unwrap_or(i8::MAX);
        let (month, day, hour) = (small(self.month), small(self.day), small(self.hour));
        i16::try_from(self.year).is_ok_and(|year| {
            jiff::civil::DateTime::new(year, month, day, hour, small(self.minute), small(self.second), 0).is_ok()
        })
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            self.year, self.month, self.day, self.hour, self.minute, self.second
        )
    }
}

impl fmt::Debug for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Minutes east of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UtcOffset(jiff::tz::Offset);

impl UtcOffset {
    /// Whole minutes, at most 14 hours either way: what is in use on Earth.
    pub(super) fn from_minutes(minutes: i32) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("utc_offset_minutes", "must be between -840 and 840");
        if minutes.abs() > 14 * 60 {
            return Err(refuse());
        }
        let offset = jiff::tz::Offset::from_seconds(minutes * 60).map_err(|_| refuse())?;
        Ok(Self(offset))
    }
}

/// `instant` as `yyyy-MM-dd HH:mm:ss` (`paymentExpiry`). Parts of a second are dropped, so that the page never closes
/// later than asked.
pub(super) fn expiry_to_wire(instant: Timestamp, offset: UtcOffset) -> Result<String, Invalid> {
    let refuse = || Invalid::new("expires_at", "is out of range");
    let second = jiff::Timestamp::from_second(instant.unix_seconds()).map_err(|_| refuse())?;
    let local = offset.0.to_datetime(second);
    if local.year() < 1000 {
        return Err(refuse());
    }
    Ok(local.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_fourteen_digits_that_are_a_date() {
        let time = LocalTime::parse("20251231203312").unwrap();
        assert_eq!(format!("{time} {time:?}"), "2025-12-31 20:33:12 2025-12-31 20:33:12");
        assert!(LocalTime::parse("20240229000000").is_some());
        for text in [
            "311225235959",
            "00000101000000",
            "20230229000000",
            "2025123120331",
            "+2025123120331",
            "",
        ] {
            assert_eq!(LocalTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_expiry_is_written_in_the_merchant_s_time() {
        let at = |millis: i64| Timestamp::from_unix_millis(1_767_227_400_000 + millis);
        let write = |instant, minutes| expiry_to_wire(instant, UtcOffset::from_minutes(minutes).unwrap());
        assert_eq!(write(at(0), 420).unwrap(), "2026-01-01 07:30:00");
        assert_eq!(write(at(999), 420).unwrap(), "2026-01-01 07:30:00");
        assert_eq!(write(at(0), 0).unwrap(), "2026-01-01 00:30:00");
        assert_eq!(write(at(0), -210).unwrap(), "2025-12-31 21:00:00");
        assert_eq!(write(Timestamp::NEVER, 0).unwrap_err().field(), "expires_at");
        for minutes in [841, -841, i32::MAX, i32::MIN + 1] {
            assert_eq!(
                UtcOffset::from_minutes(minutes).unwrap_err().field(),
                "utc_offset_minutes"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", bytes in prop::collection::vec(any::<u8>(), 0..20), digits in "[0-9]{14}") {
            let _ = LocalTime::parse(&text);
            let _ = LocalTime::parse(&String::from_utf8_lossy(&bytes));
            if let Some(time) = LocalTime::parse(&digits) {
                let written: String = time.to_string().chars().filter(char::is_ascii_digit).collect();
                prop_assert_eq!(written, digits);
            }
        }

        #[test]
        fn no_instant_makes_it_panic(millis in any::<i64>(), minutes in -840_i32..=840) {
            let _ = expiry_to_wire(Timestamp::from_unix_millis(millis), UtcOffset::from_minutes(minutes).unwrap());
        }
    }
}
