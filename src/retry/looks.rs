//! When to look again at an operation that is open.
//!
//! Three schedules: of what is unknown, of what is pending, and of what was left by a dead process. The last one is the
//! lease: while it lasts somebody may be at it, and when it ends the operation is due.

use super::schedule::Random;
use crate::clock::Timestamp;
use crate::outcome::Outcome;
use crate::record::{PAGE_GRACE, Record, State};
use std::time::Duration;

/// The ceilings of the pauses while nobody knows, in seconds: a lost answer is found within seconds if it can be found.
const UNKNOWN: [u64; 10] = [2, 6, 18, 54, 162, 486, 1_458, 4_374, 13_122, 21_600];

/// And while the payer or a bank is at work: there a notification is likelier than an answer.
const PENDING: [u64; 9] = [15, 45, 135, 405, 900, 1_800, 3_600, 7_200, 21_600];

/// The slow heartbeat of what a person has been asked about.
const REVIEW: u64 = 86_400;

/// When to look at `record` again after an inquiry, an answer or a notification at `now`.
///
/// The spread is a function of the key, so that a crowd of operations that became unknown together is not asked about
/// together, and each one's schedule can be foretold. A page that closes is looked at when it has closed, since then
/// "not found" begins to mean something.
pub(crate) fn next_look(record: &Record, now: Timestamp) -> Timestamp {
    let tries = record.looks.saturating_add(record.failed_looks);
    let ceilings: &[u64] = match &record.state {
        State::Known(Outcome::Pending(_)) => &PENDING,
        State::Sending
        | State::Released
        | State::Known(Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => {
            &UNKNOWN
        }
    };
    let last = ceilings.len() - 1;
    let ceiling = if record.needs_review() {
        REVIEW
    } else {
        ceilings[usize::try_from(tries).unwrap_or(last).min(last)]
    };
    let mut random = Random(low_half(record).wrapping_add(u64::from(tries)));
    let spread = Duration::from_millis(random.below(ceiling * 500));
    let due = now.after(Duration::from_secs(ceiling)).before(spread);
    match record.page_closes().map(|closes| closes.after(PAGE_GRACE)) {
        Some(closed) if closed > now => due.min(closed.after(Duration::from_millis(random.below(60_000)))),
        Some(_) | None => due,
    }
}

fn low_half(record: &Record) -> u64 {
    u64::try_from(record.key.as_u128() & u128::from(u64::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{NextStep, Pending};
    use crate::testing::conformance::sample::{NOW, Sample, answered, lost};

    /// A record without a page, since the samples have one.
    fn pageless(mut record: Record) -> Record {
        record.payable_until = None;
        record
    }

    fn unknown(number: usize) -> Record {
        let record = Sample::charge("shop", &format!("order-{number}")).record();
        pageless(lost(&record).0)
    }

    fn pending(number: usize) -> Record {
        let record = Sample::charge("shop", &format!("order-{number}")).record();
        answered(&record, Outcome::Pending(Pending::new(NextStep::Wait))).0
    }

    /// The pauses of so many looks that are answered and bring nothing.
    fn pauses(record: &Record, looks: u32) -> Vec<Duration> {
        let mut record = record.clone();
        (0..looks)
            .map(|looks| {
                record.looks = looks;
                next_look(&record, NOW).since(NOW)
            })
            .collect()
    }

    #[test]
    fn what_is_unknown_is_looked_at_within_seconds_and_single_figures_in_ten_minutes() {
        for number in 0..100 {
            let record = unknown(number);
            let pauses = pauses(&record, 10);
            assert!(pauses[0] <= Duration::from_secs(2), "{pauses:?}");
            let mut passed = Duration::ZERO;
            let looks = pauses.iter().take_while(|pause| {
                let before = passed;
                passed += **pause;
                before < Duration::from_secs(600)
            });
            assert!((5..10).contains(&looks.count()));
            assert_eq!(
                next_look(&record, NOW),
                next_look(&record, NOW),
                "a function of the key"
            );
        }
    }

    #[test]
    fn looks_grow_for_days_and_then_a_person_is_asked_and_the_heartbeat_is_a_day() {
        let record = unknown(1);
        let days: Duration = pauses(&record, 20).iter().sum();
        assert!(days > Duration::from_secs(2 * 86_400), "{days:?}");
        let mut record = record;
        record.looks = 19;
        assert!(!record.needs_review());
        record.looks = 20;
        assert!(record.needs_review());
        let pause = next_look(&record, NOW).since(NOW);
        assert!((43_200..=86_400).contains(&pause.as_secs()), "{pause:?}");
    }

    #[test]
    fn inquiries_that_fail_wait_longer_and_do_not_bring_it_to_a_person() {
        let mut record = unknown(1);
        record.failed_looks = 500;
        assert!(!record.needs_review());
        let pause = next_look(&record, NOW).since(NOW);
        assert!((10_800..=21_600).contains(&pause.as_secs()), "{pause:?}");
    }

    #[test]
    fn what_is_pending_is_looked_at_less_often_and_when_its_page_has_closed() {
        for number in 0..100 {
            let mut record = pending(number);
            assert!(next_look(&record, NOW).since(NOW) <= Duration::from_secs(15));
            let closed = record.page_closes().unwrap().after(PAGE_GRACE);
            record.looks = 8;
            let due = next_look(&record, NOW);
            assert!(due >= closed && due.since(closed) <= Duration::from_secs(60), "{due:?}");
            let later = closed.after(Duration::from_secs(1));
            assert!(next_look(&record, later).since(later) >= Duration::from_secs(3_600));
        }
    }
}
