//! How long a server asks to be left alone.

use crate::clock::Timestamp;
use std::time::Duration;

/// Reads the values of the header `Retry-After` (RFC 9110, section 10.2.3): whole seconds, or a date in any of the
/// three forms of HTTP. Several values ask for the longest.
///
/// A date is never rounded down. What is neither form is ignored, as are zero and dates in the past: `None` means
/// that nothing is asked for. The result has no upper bound; how long to wait at most is the caller's decision.
pub fn retry_after<'a>(values: impl IntoIterator<Item = &'a str>, now: Timestamp) -> Option<Duration> {
    values
        .into_iter()
        .filter_map(|value| wait(value.trim_matches([' ', '\t']), now))
        .filter(|wait| !wait.is_zero())
        .max()
}

fn wait(value: &str, now: Timestamp) -> Option<Duration> {
    // Digits alone: `parse` would also take a sign.
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(Timestamp::from(date).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-01-01T00:00:00.400Z
    const NOW: Timestamp = Timestamp::from_unix_millis(1_767_225_600_400);

    #[track_caller]
    fn check(values: &[&str], expected_millis: Option<u64>) {
        let expected = expected_millis.map(Duration::from_millis);
        assert_eq!(retry_after(values.iter().copied(), NOW), expected, "{values:?}");
    }

    #[test]
    fn c69_retry_after_in_all_its_forms() {
        check(&["2"], Some(2000));
        check(&[" 2 "], Some(2000));
        check(&["0"], None);
        check(&["Thu, 01 Jan 2026 00:00:05 GMT"], Some(4600));
        check(&["Thursday, 01-Jan-26 00:00:05 GMT"], Some(4600));
        check(&["Thu Jan  1 00:00:05 2026"], Some(4600));
        check(&["Wed, 31 Dec 2025 23:59:00 GMT"], None);
        for junk in ["-5", "+5", "1.5", "abc", "", "999999999999999999999", "２"] {
            check(&[junk], None);
        }
        check(&["86400"], Some(86_400_000));
        check(&["2", "9"], Some(9000));
        check(&["9", "abc", "2"], Some(9000));
        check(&[], None);
    }

    proptest! {
        #[test]
        fn no_text_and_no_clock_makes_it_panic(value in ".{0,40}", millis in any::<i64>()) {
            let _ = retry_after([value.as_str()], Timestamp::from_unix_millis(millis));
        }

        #[test]
        fn dates_that_are_nearly_right_do_not_panic(day in 0_u32..40, year in 0_u32..10_000, hour in 0_u32..99) {
            let text = format!("Thu, {day:02} Jan {year:04} {hour:02}:00:05 GMT");
            let _ = retry_after([text.as_str()], NOW);
        }

        #[test]
        fn whole_seconds_are_taken_as_they_are(seconds in 1_u64..=u64::MAX) {
            prop_assert_eq!(retry_after([seconds.to_string().as_str()], NOW), Some(Duration::from_secs(seconds)));
        }
    }
}
