//! The decisions as tables: what follows a failed send, and what "not found" is worth.

use super::*;
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::record::{PAGE_GRACE, Record};
use crate::testing::conformance::sample::{NOW, Sample};

const HOUR: Duration = Duration::from_secs(3600);

/// The columns: what the gateway promises of a second send, and whether the promise has run out.
const PROMISES: [(&str, SameKey, Duration); 6] = [
    ("replays", SameKey::Replays { within: HOUR }, Duration::from_secs(3599)),
    ("expired", SameKey::Replays { within: HOUR }, HOUR),
    ("refuses", SameKey::Refuses, HOUR),
    (
        "successes",
        SameKey::ReplaysSuccesses { within: HOUR },
        Duration::from_secs(3599),
    ),
    (
        "latest",
        SameKey::LatestState { within: HOUR },
        Duration::from_secs(3599),
    ),
    ("executes", SameKey::Executes, Duration::ZERO),
];

fn failures() -> Vec<(&'static str, Failure)> {
    let not = |kind| Failure::not_executed(kind, "not executed");
    let maybe = |kind| Failure::maybe_executed(kind, "maybe executed");
    let fault = |status| maybe(FailureKind::ServerFault).with_http_status(status);
    vec![
        ("connect", not(FailureKind::Connect)),
        ("throttled", not(FailureKind::Throttled).with_http_status(429)),
        ("throttled, maybe", maybe(FailureKind::Throttled).with_http_status(429)),
        ("timeout", maybe(FailureKind::Timeout)),
        ("broken", maybe(FailureKind::Broken)),
        ("still running", maybe(FailureKind::StillRunning).with_http_status(409)),
        ("fault 500", fault(500)),
        ("fault 500, advised", fault(500).with_retry_advice(Some(true))),
        ("fault 503", fault(503)),
        ("fault 503, warned", fault(503).with_retry_advice(Some(false))),
        ("fault without answer", maybe(FailureKind::ServerFault)),
        (
            "connect, warned",
            not(FailureKind::Connect).with_retry_advice(Some(false)),
        ),
        ("unreadable", maybe(FailureKind::Unreadable)),
        ("too large", maybe(FailureKind::TooLarge)),
        ("duplicate", maybe(FailureKind::Duplicate)),
        ("credentials", not(FailureKind::Credentials).with_http_status(401)),
        ("unsupported", not(FailureKind::Unsupported)),
    ]
}

fn record() -> Record {
    Sample::charge("shop", "order-1").record()
}

fn after_a_lost_send() -> Record {
    let mut record = record();
    record.maybe_executed = true;
    record
}

fn decided(record: &Record, failure: &Failure, same_key: SameKey, passed: Duration) -> Decision {
    let now = NOW.after(passed);
    decide(&Try {
        sends: 1,
        failure,
        promise: &Promise::new(same_key, Absence::Inconclusive),
        policy: &RetryPolicy::default(),
        record,
        now,
        deadline: now.after(Duration::from_secs(45)),
        wait: Duration::from_secs(1),
    })
}

fn table(record: &Record) -> String {
    let mut lines = vec![format!("{:20}", "") + &PROMISES.map(|(name, ..)| format!(" {name:9}")).concat()];
    for (name, failure) in failures() {
        let cells = PROMISES.map(
            |(_, same_key, passed)| match decided(record, &failure, same_key, passed) {
                Decision::SendAgain { wait } => {
                    assert_eq!(wait, Duration::from_secs(1));
                    format!(" {:9}", "again")
                }
                Decision::Stop { .. } => format!(" {:9}", "stop"),
            },
        );
        lines.push(format!("{name:20}") + &cells.concat());
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[track_caller]
fn check(record: &Record, expected: &str) {
    let actual = table(record);
    for (actual, expected) in actual.lines().zip(expected.trim_start_matches('\n').lines()) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.trim(), expected.trim());
}

#[test]
fn after_a_first_send() {
    check(&record(), FIRST);
}

/// Once a send may have been executed, also a later one that was not is sent again only under the key's protection.
#[test]
fn after_a_send_that_may_have_been_executed() {
    check(&after_a_lost_send(), AGAIN);
}

#[test]
fn waits_as_long_as_the_gateway_asks_within_the_deadline() {
    let busy = |seconds| {
        let failure = Failure::not_executed(FailureKind::Throttled, "slow down");
        failure.with_retry_after(Some(Duration::from_secs(seconds)))
    };
    let decision = |seconds, deadline| {
        let policy = RetryPolicy::default();
        decide(&Try {
            sends: 1,
            failure: &busy(seconds),
            promise: &Promise::new(SameKey::Refuses, Absence::Inconclusive),
            policy: &policy,
            record: &record(),
            now: NOW,
            deadline: NOW.after(Duration::from_secs(deadline)),
            wait: Duration::from_secs(2),
        })
    };
    let again = |seconds| Decision::SendAgain {
        wait: Duration::from_secs(seconds),
    };
    let stop = |because| Decision::Stop { because };
    assert_eq!(decision(0, 45), again(2), "the schedule's own wait");
    assert_eq!(decision(9, 45), again(9));
    assert_eq!(decision(60, 99), again(60));
    assert_eq!(decision(61, 99), stop("the gateway asks to wait too long"));
    assert_eq!(decision(44, 45), again(44));
    assert_eq!(decision(45, 45), stop("deadline reached"));
    assert_eq!(decision(0, 2), stop("deadline reached"));
}

#[test]
fn the_first_send_counts_as_an_attempt() {
    let sends = |sends| {
        decide(&Try {
            sends,
            failure: &Failure::not_executed(FailureKind::Connect, "refused"),
            promise: &Promise::new(SameKey::Executes, Absence::Inconclusive),
            policy: &RetryPolicy::default(),
            record: &record(),
            now: NOW,
            deadline: NOW.after(HOUR),
            wait: Duration::ZERO,
        })
    };
    assert!(matches!(sends(2), Decision::SendAgain { .. }));
    let because = "attempts used up";
    assert_eq!(sends(3), Decision::Stop { because });
}

/// Seconds since the last send (or since the page closed), consistent or not, looks before and when, and the verdict.
#[test]
fn not_found_proves_something_late_often_enough_and_by_a_lookup_that_cannot_lag() {
    use AbsenceVerdict::{Counts, Inconclusive, Proven};
    let seconds = Duration::from_secs;
    let after = |then| Absence::After {
        since: Since::PageClosed,
        quiet: seconds(300),
        looks: 3,
        apart: seconds(60),
        then,
    };
    let again = Promise::new(SameKey::Replays { within: HOUR }, after(AfterAbsence::SendAgain));
    let expired = AfterAbsence::Closed(FailureCategory::Expired);
    let closed = Promise::new(SameKey::Refuses, after(expired));
    let never = Promise::new(SameKey::Refuses, Absence::Inconclusive);
    for (promise, now, consistent, count, last, verdict) in [
        (&never, 9999, true, 9, Some(1), Inconclusive),
        (&again, 300, false, 2, None, Inconclusive),
        (&again, 299, true, 0, None, Inconclusive),
        (&again, 300, true, 0, None, Counts),
        (&again, 359, true, 1, Some(300), Inconclusive),
        (&again, 360, true, 1, Some(300), Counts),
        (&again, 419, true, 2, Some(360), Inconclusive),
        (&again, 420, true, 2, Some(360), Proven(AfterAbsence::SendAgain)),
        (&again, 3599, true, 2, Some(360), Proven(AfterAbsence::SendAgain)),
        // Past the key's retention nothing is sent on the strength of "not found".
        (&again, 3600, true, 2, Some(360), Counts),
        (&closed, 420, true, 1, Some(360), Counts),
        (&closed, 420, true, 2, Some(360), Proven(expired)),
        (&closed, 9999, true, 2, Some(360), Proven(expired)),
    ] {
        let mut record = record();
        record.payable_until = None;
        record.absences.count = count;
        record.absences.last = last.map(|at| NOW.after(seconds(at)));
        let at = |now| NOW.after(seconds(now));
        assert_eq!(
            absence(&record, promise, consistent, at(now)),
            verdict,
            "{promise:?} at {now}"
        );
        // With a page the time runs from when nobody can pay on it any more.
        let shift = seconds(600);
        record.payable_until = Some(NOW.after(shift).before(PAGE_GRACE));
        record.absences.last = record.absences.last.map(|at| at.after(shift));
        let key_expires_meanwhile = now < 3600 && now + 600 >= 3600;
        if !key_expires_meanwhile {
            assert_eq!(
                absence(&record, promise, consistent, at(now).after(shift)),
                verdict,
                "{promise:?} {now}"
            );
        }
    }
}

/// A later send starts the quiet time anew. An open page matters only to a gateway that shows nothing before it is
/// closed.
#[test]
fn the_quiet_time_runs_from_the_last_send_or_the_closing_of_the_page() {
    let quiet = Duration::from_secs(300);
    let last_send = NOW.after(HOUR);
    let open_till = last_send.after(HOUR);
    for (since, payable_until, begins) in [
        (Since::LastSend, None, last_send),
        (Since::LastSend, Some(Timestamp::NEVER), last_send),
        (Since::PageClosed, None, last_send),
        (Since::PageClosed, Some(NOW), last_send.after(PAGE_GRACE)),
        (
            Since::PageClosed,
            Some(open_till),
            open_till.after(last_send.since(NOW)).after(PAGE_GRACE),
        ),
    ] {
        let then = AfterAbsence::SendAgain;
        let after = Absence::After {
            since,
            quiet,
            looks: 1,
            apart: Duration::ZERO,
            then,
        };
        let promise = Promise::new(SameKey::Refuses, after);
        let mut record = record();
        record.payable_until = payable_until;
        record.last_sent_at = last_send;
        let verdict = |now| absence(&record, &promise, true, now);
        let early = begins.after(quiet).before(Duration::from_millis(1));
        assert_eq!(
            verdict(early),
            AbsenceVerdict::Inconclusive,
            "{since:?} {payable_until:?}"
        );
        assert_eq!(
            verdict(begins.after(quiet)),
            AbsenceVerdict::Proven(then),
            "{since:?} {payable_until:?}"
        );
    }
}

#[rustfmt::skip]
const FIRST: &str = "
                     replays   expired   refuses   successes latest    executes
connect              again     again     again     again     again     again
throttled            again     again     again     again     again     again
throttled, maybe     again     stop      again     again     again     stop
timeout              again     stop      again     again     again     stop
broken               again     stop      again     again     again     stop
still running        again     stop      again     again     again     stop
fault 500            stop      stop      again     again     again     stop
fault 500, advised   again     stop      again     again     again     stop
fault 503            again     stop      again     again     again     stop
fault 503, warned    stop      stop      stop      stop      stop      stop
fault without answer again     stop      again     again     again     stop
connect, warned      stop      stop      stop      stop      stop      stop
unreadable           stop      stop      stop      stop      stop      stop
too large            stop      stop      stop      stop      stop      stop
duplicate            stop      stop      stop      stop      stop      stop
credentials          stop      stop      stop      stop      stop      stop
unsupported          stop      stop      stop      stop      stop      stop
";

#[rustfmt::skip]
const AGAIN: &str = "
                     replays   expired   refuses   successes latest    executes
connect              again     stop      again     again     again     stop
throttled            again     stop      again     again     again     stop
throttled, maybe     again     stop      again     again     again     stop
timeout              again     stop      again     again     again     stop
broken               again     stop      again     again     again     stop
still running        again     stop      again     again     again     stop
fault 500            stop      stop      again     again     again     stop
fault 500, advised   again     stop      again     again     again     stop
fault 503            again     stop      again     again     again     stop
fault 503, warned    stop      stop      stop      stop      stop      stop
fault without answer again     stop      again     again     again     stop
connect, warned      stop      stop      stop      stop      stop      stop
unreadable           stop      stop      stop      stop      stop      stop
too large            stop      stop      stop      stop      stop      stop
duplicate            stop      stop      stop      stop      stop      stop
credentials          stop      stop      stop      stop      stop      stop
unsupported          stop      stop      stop      stop      stop      stop
";

/// A look a day later is in the record; then the clock is set back to the hour of the send.
#[test]
fn a_clock_that_goes_back_does_not_make_a_key_young_again() {
    let mut record = after_a_lost_send();
    let replays = Promise::new(
        SameKey::Replays {
            within: Duration::from_secs(23 * 3600),
        },
        Absence::Inconclusive,
    );
    let soon = NOW.after(Duration::from_secs(3600));
    assert!(may_send_again(&record, &replays, soon));
    record.updated_at = NOW.after(Duration::from_secs(24 * 3600));
    assert!(!may_send_again(&record, &replays, soon));
}
