//! How long to wait: between the sends of one call, and between the looks of the reconciler.

use super::RetryPolicy;
use crate::operation::OperationKey;
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
struct Random(u64);

impl Random {
    fn from_system() -> Self {
        let mut bytes = [0; 8];
        // Without randomness the waits are regular, which is no reason to fail a payment.
        let _ = aws_lc_rs::rand::fill(&mut bytes);
        Self(u64::from_le_bytes(bytes))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        u64::try_from((u128::from(mixed) * u128::from(bound)) >> 64).unwrap_or(0)
    }
}

/// The ceiling of the pause after `looks` inquiries without a new state: seconds at first, hours after a day.
const LOOKS: [u64; 10] = [2, 6, 18, 54, 162, 486, 1_458, 4_374, 13_122, 21_600];

/// How long after the `looks`-th look to look again. The jitter is a function of the key, so that a crowd of
/// operations that became unknown together spreads, and each one's schedule can be foretold.
#[must_use]
pub(crate) fn look_after(looks: u32, key: OperationKey) -> Duration {
    let index = usize::try_from(looks).unwrap_or(usize::MAX).min(LOOKS.len() - 1);
    let ceiling = LOOKS[index] * 1000;
    let seed = u64::try_from(key.as_u128() & u128::from(u64::MAX)).unwrap_or(0);
    let spread = Random(seed.wrapping_add(u64::from(looks))).below(ceiling / 2);
    Duration::from_millis(ceiling - spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Namespace, OperationKind, Reference};
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

    #[test]
    fn looks_begin_within_seconds_and_are_single_figures_in_ten_minutes() {
        let namespace = Namespace::new("shop1").unwrap();
        for number in 0..100 {
            let reference = Reference::new(format!("order-{number}")).unwrap();
            let key = namespace.key(OperationKind::Charge, &reference, 1);
            let mut passed = Duration::ZERO;
            let mut looks = 0;
            while passed < Duration::from_secs(600) {
                passed += look_after(looks, key);
                looks += 1;
            }
            assert!(look_after(0, key) <= Duration::from_secs(2));
            assert!((5..10).contains(&looks), "{looks}");
            assert_eq!(look_after(3, key), look_after(3, key));
            assert!(look_after(u32::MAX, key) >= Duration::from_secs(10_800));
        }
    }
}
