//! How long to wait between the sends of one call.

use super::RetryPolicy;
use std::time::Duration;

/// The ceilings of one call's waits, and the randomness below them.
#[derive(Debug)]
pub(crate) struct Schedule {
    ceilings: Ceilings,
    random: Random,
}

impl Schedule {
    /// `seed` makes the waits repeatable; without it they differ from call to call.
    pub(crate) fn new(policy: &RetryPolicy, seed: Option<u64>) -> Self {
        Self {
            ceilings: Ceilings::new(policy.base, policy.cap),
            random: seed.map_or_else(Random::from_system, Random),
        }
    }

    /// Full jitter: anything between zero and the ceiling, in the first wait as in the last. A fleet that failed
    /// together must not come back together.
    pub(crate) fn next_wait(&mut self) -> Duration {
        let ceiling = self.ceilings.next();
        let millis = u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.random.below(millis.saturating_add(1)))
    }
}

#[cfg(feature = "backoff")]
#[derive(Debug)]
struct Ceilings(backoff::ExponentialBackoff);

#[cfg(feature = "backoff")]
impl Ceilings {
    fn new(base: Duration, cap: Duration) -> Self {
        use backoff::backoff::Backoff as _;
        let mut schedule = backoff::ExponentialBackoff {
            initial_interval: base.min(cap),
            max_interval: cap,
            multiplier: 2.0,
            // Its jitter cannot be seeded and its deadline runs on std's clock: both are ours.
            randomization_factor: 0.0,
            max_elapsed_time: None,
            ..Default::default()
        };
        schedule.reset();
        Self(schedule)
    }

    fn next(&mut self) -> Duration {
        use backoff::backoff::Backoff as _;
        let ceiling = self.0.next_backoff().unwrap_or(self.0.max_interval);
        // Its jitter, though switched off, adds up to a nanosecond.
        Duration::from_micros(u64::try_from(ceiling.as_micros()).unwrap_or(u64::MAX))
    }
}

#[cfg(any(test, not(feature = "backoff")))]
#[derive(Debug)]
struct OwnCeilings {
    next: Duration,
    cap: Duration,
}

#[cfg(any(test, not(feature = "backoff")))]
impl OwnCeilings {
    fn new(base: Duration, cap: Duration) -> Self {
        Self {
            next: base.min(cap),
            cap,
        }
    }

    fn next(&mut self) -> Duration {
        let current = self.next;
        self.next = current.saturating_mul(2).min(self.cap);
        current
    }
}

#[cfg(not(feature = "backoff"))]
use OwnCeilings as Ceilings;

/// SplitMix64: enough to spread waits, and the same everywhere for a seed.
#[derive(Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn from_system() -> Self {
        let mut bytes = [0; 8];
        // Without randomness the waits are regular, which is no reason to fail a payment.
        let _ = aws_lc_rs::rand::fill(&mut bytes);
        Self(u64::from_le_bytes(bytes))
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        u64::try_from((u128::from(mixed) * u128::from(bound)) >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn with_and_without_the_backoff_crate_the_ceilings_are_the_same(base in 1_u64..10_000, cap in 1_u64..60_000) {
            let (base, cap) = (Duration::from_millis(base), Duration::from_millis(cap));
            let (mut theirs, mut ours) = (Ceilings::new(base, cap), OwnCeilings::new(base, cap));
            for _ in 0..20 {
                prop_assert_eq!(theirs.next(), ours.next());
            }
        }

        #[test]
        fn waits_stay_below_their_ceilings_and_repeat_for_a_seed(seed in any::<u64>()) {
            let policy = RetryPolicy::default();
            let mut ceilings = OwnCeilings::new(policy.base, policy.cap);
            let (mut one, mut two) = (Schedule::new(&policy, Some(seed)), Schedule::new(&policy, Some(seed)));
            for _ in 0..10 {
                let wait = one.next_wait();
                prop_assert!(wait <= ceilings.next());
                prop_assert_eq!(wait, two.next_wait());
            }
        }
    }

    #[test]
    fn the_first_wait_spreads_from_zero_to_the_ceiling() {
        let waits: Vec<_> = (0..1000)
            .map(|seed| Schedule::new(&RetryPolicy::default(), Some(seed)).next_wait())
            .collect();
        assert!(waits.iter().any(|wait| *wait < Duration::from_millis(50)));
        assert!(waits.iter().any(|wait| *wait > Duration::from_millis(450)));
    }
}
