//! Limits over all calls of one `Payments`: how many retries, and how many inquiries a second.

use crate::clock::Timestamp;
use crate::failure::FailureKind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bucket of retry tokens. A gateway in trouble empties it, and then calls stop retrying instead of adding load.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    tokens: AtomicU32,
}

/// A full bucket.
const CAPACITY: u32 = 500;

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            tokens: AtomicU32::new(CAPACITY),
        }
    }
}

impl RetryBudget {
    /// Takes the price of a retry after such a failure, or nothing when the bucket does not hold it.
    pub(crate) fn withdraw(&self, after: FailureKind) -> bool {
        let price = price(after);
        self.tokens
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |tokens| tokens.checked_sub(price))
            .is_ok()
    }

    /// Gives back the price of a retry that led to an answer.
    pub(crate) fn refund(&self, after: FailureKind) {
        self.deposit(price(after));
    }

    /// A first send that was answered earns a little.
    pub(crate) fn earn(&self) {
        if self.tokens.load(Ordering::Relaxed) < CAPACITY {
            self.deposit(1);
        }
    }

    fn deposit(&self, tokens: u32) {
        let filled = |held: u32| Some(held.saturating_add(tokens).min(CAPACITY));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, filled);
    }
}

const fn price(after: FailureKind) -> u32 {
    match after {
        FailureKind::Throttled | FailureKind::StillRunning => 5,
        FailureKind::Connect
        | FailureKind::Timeout
        | FailureKind::Broken
        | FailureKind::Unreadable
        | FailureKind::TooLarge
        | FailureKind::ServerFault
        | FailureKind::Duplicate
        | FailureKind::Credentials
        | FailureKind::Unsupported => 14,
    }
}

/// How many inquiries may leave in a stretch of time. Its own, so that new work cannot starve the resolution of old.
#[derive(Debug)]
pub(crate) struct InquiryBudget {
    per_second: u32,
    burst: u32,
    state: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Thousandths of an inquiry.
    level: u64,
    at: Option<Timestamp>,
}

impl InquiryBudget {
    /// `per_second` on average, `burst` at once.
    #[must_use]
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second,
            burst,
            state: Mutex::new(Bucket {
                level: u64::from(burst) * 1000,
                at: None,
            }),
        }
    }

    /// Takes one, if there is one at `now`.
    pub(crate) fn withdraw(&self, now: Timestamp) -> bool {
        let mut bucket = self.filled(now);
        let rest = bucket.level.checked_sub(1000);
        bucket.level = rest.unwrap_or(bucket.level);
        rest.is_some()
    }

    /// How many there are at `now`.
    pub(crate) fn available(&self, now: Timestamp) -> usize {
        usize::try_from(self.filled(now).level / 1000).unwrap_or(usize::MAX)
    }

    fn filled(&self, now: Timestamp) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = bucket.at.map_or(0, |at| now.since(at).as_millis());
        let earned = u64::try_from(passed)
            .unwrap_or(u64::MAX)
            .saturating_mul(u64::from(self.per_second));
        bucket.level = bucket.level.saturating_add(earned).min(u64::from(self.burst) * 1000);
        bucket.at = Some(bucket.at.map_or(now, |at| at.max(now)));
        bucket
    }
}

impl Default for InquiryBudget {
    /// Half of the 20 reads a second that Stripe allows for search (docs/rate-limits).
    fn default() -> Self {
        Self::new(10, 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_outage_empties_the_retry_budget_and_success_fills_it_again() {
        let budget = RetryBudget::default();
        let spent = (0..1000).filter(|_| budget.withdraw(FailureKind::Timeout)).count();
        assert_eq!(spent, 35, "500 tokens at 14 each");
        assert!(budget.withdraw(FailureKind::Throttled), "ten are left");
        budget.refund(FailureKind::Timeout);
        assert!(budget.withdraw(FailureKind::Timeout));
        for _ in 0..20 {
            budget.earn();
        }
        assert!(budget.withdraw(FailureKind::Timeout));
    }

    #[test]
    fn inquiries_are_capped_by_time_and_a_clock_that_goes_back_earns_nothing() {
        let budget = InquiryBudget::new(2, 3);
        let start = Timestamp::from_unix_seconds(1000);
        let taken = |now| (0..100).filter(|_| budget.withdraw(now)).count();
        assert_eq!(taken(start), 3);
        assert_eq!(taken(start.after(Duration::from_secs(1))), 2);
        assert_eq!(taken(start), 0);
        assert_eq!(taken(start.after(Duration::from_secs(1))), 0);
        assert_eq!(taken(start.after(Duration::from_secs(3600))), 3);
    }
}
