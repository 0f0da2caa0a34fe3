//! When to try again: the gateway's promise, the caller's policy, and the decision between them.

mod budget;
mod decide;
mod looks;
mod schedule;

pub(crate) use budget::{InquiryBudget, RetryBudget};
pub(crate) use decide::{AbsenceVerdict, Decision, Try, absence, decide, may_send_again};
pub(crate) use looks::next_look;
pub(crate) use schedule::Schedule;

use crate::outcome::FailureCategory;
use std::time::Duration;

/// How hard one call tries. Keys never change, so no policy can cause a second effect.
///
/// ```
/// use payonce::retry::RetryPolicy;
/// use std::time::Duration;
///
/// let patient = RetryPolicy { attempts: 5, ..RetryPolicy::default() };
/// assert_eq!(patient.deadline, Duration::from_secs(45));
/// ```
#[allow(
    clippy::exhaustive_structs,
    reason = "a struct to be written with ..Default::default()"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Sends in all, the first included. At least 1.
    pub attempts: u32,
    /// The ceiling of the first wait; each further one doubles. The wait itself is random between zero and the
    /// ceiling (full jitter), the first one too.
    pub base: Duration,
    /// The highest ceiling.
    pub cap: Duration,
    /// How long one exchange may take.
    pub attempt_timeout: Duration,
    /// How long one call of `execute` may take in all. What is begun then runs on and is recorded.
    pub deadline: Duration,
    /// The longest `Retry-After` that is waited for; a longer one ends the call.
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(15),
            deadline: Duration::from_secs(45),
            longest_retry_after: Duration::from_secs(60),
        }
    }
}

/// What a gateway promises about one kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promise {
    /// What a second send with the same key does.
    pub same_key: SameKey,
    /// When "not found" proves that nothing happened.
    pub absence: Absence,
}

impl Promise {
    /// Both halves of the promise.
    #[must_use]
    pub const fn new(same_key: SameKey, absence: Absence) -> Self {
        Self { same_key, absence }
    }
}

/// What happens when the same key is sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameKey {
    /// The stored answer comes back, failures included, for so long after the *first* send (Stripe).
    Replays {
        /// Already less the safety margin.
        within: Duration,
    },
    /// Refused for ever as already used (2C2P's `invoiceNo`): sending again is safe, the refusal leads to inquiry.
    Refuses,
    /// Only successes are stored; a failed request is executed anew.
    ReplaysSuccesses {
        /// Already less the safety margin.
        within: Duration,
    },
    /// The latest state of the first request comes back, not stored bytes.
    LatestState {
        /// Already less the safety margin.
        within: Duration,
    },
    /// Nothing: a second send is a second effect. Only inquiry may follow an unknown outcome.
    Executes,
}

/// When a *consistent* "not found" proves that the operation never happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// Never: the gateway has no lookup that proves it.
    Inconclusive,
    /// After a quiet time, by repeated looks.
    After {
        /// Where the quiet time begins.
        since: Since,
        /// How long it lasts.
        quiet: Duration,
        /// How many looks must agree.
        looks: u32,
        /// How far apart they must be at least.
        apart: Duration,
        /// What it then means.
        then: AfterAbsence,
    },
}

/// From when on a gateway that says "not found" may be believed, after a quiet time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Since {
    /// The last send: what was executed can be found from then on (Stripe: the object exists before the payer acts).
    LastSend,
    /// The closing of the payer's page, with some grace: until then there may be nothing to find although the page
    /// is open (2C2P: an inquiry knows of payments, not of tokens). Without a page, the last send.
    PageClosed,
}

/// What a proven absence means for the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterAbsence {
    /// The same operation may be sent again with the same key.
    SendAgain,
    /// The identity is burnt: the attempt is closed, and only a new attempt may follow.
    Closed(FailureCategory),
}

#[cfg(test)]
mod tests;
