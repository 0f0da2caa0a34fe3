//! Time as a port: what the crate knows of "now", and how it waits.

use async_trait::async_trait;
use std::fmt;
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant in UTC, to the millisecond, as it is stored in a journal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Later than anything that happens: "for ever".
    pub const NEVER: Self = Self(i64::MAX);

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Whole seconds since 1970-01-01T00:00:00Z. Seconds beyond the range of milliseconds become [`Self::NEVER`].
    #[must_use]
    pub const fn from_unix_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// `self` + `duration`, at most [`Self::NEVER`].
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// `self` - `duration`.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long from `earlier` to `self`; zero when `earlier` is the later one.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(timestamp) => fmt::Display::fmt(&timestamp, f),
            Err(_) => f.write_str("never"),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(duration) => Self(0).after(duration),
            Err(error) => Self(0).before(error.duration()),
        }
    }
}

/// Where the crate reads the time and how it waits between sends.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present. Comparable between the processes that share a journal: leases depend on it.
    fn now(&self) -> Timestamp;

    /// Returns after `duration`, not before.
    async fn sleep(&self, duration: Duration);
}

/// The machine's clock and tokio's timer.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing, and is written as it stands")]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Bounds how long a caller is kept waiting, in real time whatever the [`Clock`] says: patience is not simulated.
pub(crate) async fn within<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(duration, future).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_prints_utc() {
        let start = Timestamp::from_unix_seconds(1_767_225_600);
        assert_eq!(start.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(
            start.after(Duration::from_millis(400)).to_string(),
            "2026-01-01T00:00:00.4Z"
        );
        assert_eq!(start.after(Duration::MAX), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER.to_string(), "never");
        assert_eq!(start.since(start.after(Duration::from_secs(1))), Duration::ZERO);
        assert_eq!(start.after(Duration::from_secs(9)).since(start), Duration::from_secs(9));
        assert_eq!(start.before(Duration::from_millis(1)).unix_seconds(), 1_767_225_599);
    }
}
