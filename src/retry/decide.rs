//! What follows a failed send: pure, so that a table can test it.

use super::{Absence, AfterAbsence, Promise, RetryPolicy, SameKey, Since};
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::record::{PAGE_GRACE, Record};
use std::time::Duration;

/// What to do after a failed send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Send the same bytes with the same key after `wait`.
    SendAgain { wait: Duration },
    /// Send nothing more in this call. Where something may have been executed, ask.
    Stop { because: &'static str },
}

/// One failed send of one call.
#[derive(Debug)]
pub(crate) struct Try<'a> {
    /// How many sends this call has made.
    pub(crate) sends: u32,
    pub(crate) failure: &'a Failure,
    pub(crate) promise: &'a Promise,
    pub(crate) policy: &'a RetryPolicy,
    pub(crate) record: &'a Record,
    pub(crate) now: Timestamp,
    /// When this call has to be over.
    pub(crate) deadline: Timestamp,
    /// The wait that the schedule proposes.
    pub(crate) wait: Duration,
}

/// Decides on everything but the budget, which only a retry that would happen may draw from.
pub(crate) fn decide(one: &Try<'_>) -> Decision {
    let stop = |because| Decision::Stop { because };
    let failure = one.failure;
    match failure.kind() {
        FailureKind::Duplicate => return stop("the gateway has seen this identity before"),
        FailureKind::Unreadable | FailureKind::TooLarge => return stop("the answer could not be read"),
        FailureKind::Credentials => return stop("the credentials were refused"),
        FailureKind::Unsupported => return stop("the gateway does not offer it"),
        FailureKind::ServerFault if failure.http_status() == Some(500) && failure.retry_advice().is_none() => {
            // A gateway that replays stored answers replays this one too (Stripe, docs/error-low-level).
            if matches!(one.promise.same_key, SameKey::Replays { .. }) {
                return stop("a server fault would only be replayed");
            }
        }
        FailureKind::ServerFault
        | FailureKind::Connect
        | FailureKind::Timeout
        | FailureKind::Broken
        | FailureKind::Throttled
        | FailureKind::StillRunning => {}
    }
    if failure.retry_advice() == Some(false) {
        return stop("the gateway advises against a retry");
    }
    let maybe = one.record.maybe_executed || failure.may_have_executed();
    if maybe && !key_still_protects(one.promise, one.record, one.now) {
        return stop("the key no longer protects a second send");
    }
    if one.sends >= one.policy.attempts {
        return stop("attempts used up");
    }
    let asked = failure.retry_after().unwrap_or(Duration::ZERO);
    if asked > one.policy.longest_retry_after {
        return stop("the gateway asks to wait too long");
    }
    let wait = one.wait.max(asked);
    if one.now.after(wait) >= one.deadline {
        return stop("deadline reached");
    }
    Decision::SendAgain { wait }
}

/// May this operation be sent (again) without the danger of a second effect?
pub(crate) fn may_send_again(record: &Record, promise: &Promise, now: Timestamp) -> bool {
    key_still_protects(promise, record, now)
}

fn key_still_protects(promise: &Promise, record: &Record, now: Timestamp) -> bool {
    // A clock that was set back does not make the key younger than the record knows it to be.
    let now = now.max(record.updated_at);
    match promise.same_key {
        SameKey::Replays { within } | SameKey::ReplaysSuccesses { within } | SameKey::LatestState { within } => {
            now.since(record.first_sent_at) < within
        }
        SameKey::Refuses => true,
        SameKey::Executes => false,
    }
}

/// What an answer of "not found" is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbsenceVerdict {
    /// Nothing yet.
    Inconclusive,
    /// It counts, and more must follow.
    Counts,
    /// With it, absence is proven.
    Proven(AfterAbsence),
}

/// Weighs a "not found" that came at `now`. `consistent` says whether the lookup can lag.
pub(crate) fn absence(record: &Record, promise: &Promise, consistent: bool, now: Timestamp) -> AbsenceVerdict {
    let Absence::After {
        since,
        quiet,
        looks,
        apart,
        then,
    } = promise.absence
    else {
        return AbsenceVerdict::Inconclusive;
    };
    let begins = match (since, record.page_closes()) {
        (Since::PageClosed, Some(until)) => record.last_sent_at.max(until.after(PAGE_GRACE)),
        (Since::PageClosed, None) | (Since::LastSend, _) => record.last_sent_at,
    };
    let quiet_over = begins.after(quiet);
    let too_soon = record.absences.last.is_some_and(|last| now.since(last) < apart);
    if !consistent || now < quiet_over || too_soon {
        return AbsenceVerdict::Inconclusive;
    }
    if record.absences.count + 1 < looks {
        return AbsenceVerdict::Counts;
    }
    // Past the key's retention a proven absence is left to a person: sending again would rest on the proof alone.
    if then == AfterAbsence::SendAgain && !may_send_again(record, promise, now) {
        return AbsenceVerdict::Counts;
    }
    AbsenceVerdict::Proven(then)
}
