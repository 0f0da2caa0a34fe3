//! The state machine: a pure, total function of record and observation.

use super::{Absences, HistoryLine, Record, State};
use crate::clock::Timestamp;
use crate::failure::Failure;
use crate::operation::{GatewayRef, OperationKind};
use crate::outcome::{
    Conflict, ConflictKind, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded, Unknown, UnknownReason,
};
use std::time::Duration;

/// How long after the closing of the payer's page a payment can still arrive there.
pub(crate) const PAGE_GRACE: Duration = Duration::from_secs(15 * 60);

/// Something that was learned about an operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observation {
    /// From where.
    pub source: Source,
    /// When.
    pub at: Timestamp,
    /// What.
    pub fact: Fact,
}

impl Observation {
    /// `fact`, learned from `source` at `at`.
    #[must_use]
    pub const fn new(source: Source, at: Timestamp, fact: Fact) -> Self {
        Self { source, at, fact }
    }
}

/// Where something was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The engine itself: begun, taken over, given up.
    Engine,
    /// The answer to a send.
    Answer,
    /// The answer to an inquiry: the gateway's present view.
    Inquiry,
    /// A webhook or backend callback.
    Notification,
}

impl Source {
    /// A stable word for storage and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Answer => "answer",
            Self::Inquiry => "inquiry",
            Self::Notification => "notification",
        }
    }

    /// The reverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Engine, Self::Answer, Self::Inquiry, Self::Notification]
            .into_iter()
            .find(|source| source.as_str() == word)
    }
}

/// What was learned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact {
    /// The gateway says so. [`Outcome::Unknown`] in here counts as a lost answer.
    Said(Outcome),
    /// A send ended without an outcome; the failure says whether it may have been executed.
    Ended(Failure),
    /// The gateway was asked and does not know the operation.
    Absent {
        /// It counts toward a proof of absence: a lookup that cannot lag, late enough, and apart from the one before.
        counts: bool,
    },
    /// Absence is proven, and the same operation may be sent again.
    NeverHappened,
    /// Absence is proven, and the attempt's identity is burnt.
    Closed(FailureCategory),
    /// The inquiry itself failed: nothing was learned.
    Blind(Failure),
}

/// Whether an observation was the first to bring about a change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "first or not: there is no third")]
pub enum Recorded {
    /// The state changed: act on it. At most one observer of a change is told so, in whatever process.
    First,
    /// It was known already, or changes nothing.
    Already,
}

/// What an observation makes of a record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Learned {
    /// The record after it, with the next version.
    pub record: Record,
    /// Whether the state changed.
    pub recorded: Recorded,
    /// Two final answers contradict each other, or a failure may be an old one: one inquiry has to decide.
    pub contradiction: bool,
    /// The line for the history.
    pub line: HistoryLine,
}

impl Record {
    /// What `observation` makes of this record. Pure and total; storing the result is the engine's work.
    #[must_use]
    pub fn learn(&self, observation: &Observation) -> Learned {
        let mut next = self.clone();
        let contradiction = match &observation.fact {
            Fact::Said(outcome) => next.hear(outcome, observation),
            Fact::Ended(failure) => next.ended(failure, observation.at),
            Fact::Absent { counts } => next.absent(*counts, observation.at),
            Fact::NeverHappened => next.close(State::Released),
            Fact::Closed(category) => next.close(State::Known(Outcome::Failed(Failed::new(*category)))),
            Fact::Blind(_) => false,
        };
        next.stamp(observation.at);
        next.version = self.version + 1;
        let recorded = if self.state_word() == next.state_word() {
            Recorded::Already
        } else {
            Recorded::First
        };
        // An inquiry that failed is no look: a gateway that is down for a week has not been asked twenty times.
        (next.looks, next.failed_looks) = match (recorded, observation.source, &observation.fact) {
            (Recorded::First, _, _) => (0, 0),
            (Recorded::Already, Source::Inquiry, Fact::Blind(_)) => (self.looks, self.failed_looks.saturating_add(1)),
            (Recorded::Already, Source::Inquiry, _) => (self.looks.saturating_add(1), 0),
            (Recorded::Already, _, _) => (self.looks, self.failed_looks),
        };
        Learned {
            line: self.line(&next, observation),
            record: next,
            recorded,
            contradiction,
        }
    }

    fn hear(&mut self, outcome: &Outcome, observation: &Observation) -> bool {
        if matches!(self.state, State::Known(Outcome::Conflict(_))) {
            return false;
        }
        match outcome {
            Outcome::Succeeded(succeeded) => self.hear_success(succeeded, observation.source),
            Outcome::Failed(failed) if failed.payer_may_retry && self.page_open(observation.at) => {
                let mut pending = Pending::new(NextStep::Wait);
                pending.gateway_ref.clone_from(&failed.gateway_ref);
                pending.evidence.clone_from(&failed.evidence);
                self.hear_pending(&pending)
            }
            // Told late, it is about one try of several: whether a later one was paid, only an inquiry says.
            Outcome::Failed(failed)
                if failed.payer_may_retry
                    && observation.source == Source::Notification
                    && self.payable_until.is_some()
                    && !matches!(self.state, State::Known(Outcome::Failed(_))) =>
            {
                true
            }
            Outcome::Failed(failed) => self.hear_failure(failed, observation.source),
            Outcome::Pending(pending) => self.hear_pending(pending),
            Outcome::Conflict(conflict) => self.hear_conflict(conflict),
            Outcome::Unknown(unknown) => self.lost(unknown.reason, &unknown.detail, observation.at),
        }
    }

    fn hear_success(&mut self, heard: &Succeeded, source: Source) -> bool {
        if let (Some(expected), Some(reported)) = (self.amount, heard.amount)
            && expected != reported
        {
            let detail = format!("asked for {expected}, the gateway reports {reported}");
            return self.disagree(ConflictKind::Amount, detail, heard);
        }
        match &self.state {
            State::Known(Outcome::Succeeded(known)) => {
                if differ(known.gateway_ref.as_ref(), heard.gateway_ref.as_ref()) {
                    let detail = "two payments of the gateway claim this operation".to_owned();
                    return self.disagree(ConflictKind::TwoPayments, detail, heard);
                }
                // The first to tell need not be the one that tells most.
                let mut known = known.clone();
                known.gateway_ref = known.gateway_ref.or_else(|| heard.gateway_ref.clone());
                known.amount = known.amount.or(heard.amount);
                self.settle(Outcome::Succeeded(known));
                false
            }
            // A refund that a bank gave back is not revived by an old notification: the gateway is asked.
            State::Known(Outcome::Failed(_)) if self.kind == OperationKind::Refund && source != Source::Inquiry => true,
            State::Known(Outcome::Failed(_)) => {
                self.settle(Outcome::Succeeded(heard.clone()));
                source != Source::Inquiry
            }
            State::Sending
            | State::Released
            | State::Known(Outcome::Pending(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => {
                self.settle(Outcome::Succeeded(heard.clone()));
                false
            }
        }
    }

    fn hear_failure(&mut self, heard: &Failed, source: Source) -> bool {
        match &self.state {
            State::Known(Outcome::Succeeded(known)) => {
                // A bank can give a refund back days later. What is said of another one has to be asked about.
                let other = differ(known.gateway_ref.as_ref(), heard.gateway_ref.as_ref());
                let believed = source == Source::Inquiry || (source == Source::Notification && !other);
                if self.kind == OperationKind::Refund && believed {
                    self.settle(Outcome::Failed(heard.clone()));
                    return false;
                }
                if source != Source::Inquiry {
                    return true;
                }
                let mut conflict = Conflict::new(
                    ConflictKind::Contradiction,
                    "the gateway reported success and now reports failure",
                );
                conflict.gateway_ref = heard.gateway_ref.clone().or_else(|| known.gateway_ref.clone());
                conflict.expected = self.amount;
                conflict.evidence.clone_from(&heard.evidence);
                self.settle(Outcome::Conflict(conflict));
                false
            }
            // Still failed, and now it can be said for what: the payment has gone on without the void.
            State::Known(Outcome::Failed(_))
                if source == Source::Inquiry && heard.category == FailureCategory::Settled =>
            {
                self.settle(Outcome::Failed(heard.clone()));
                false
            }
            State::Known(Outcome::Failed(_)) => false,
            State::Sending
            | State::Released
            | State::Known(Outcome::Pending(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => {
                self.settle(Outcome::Failed(heard.clone()));
                false
            }
        }
    }

    fn hear_pending(&mut self, heard: &Pending) -> bool {
        match &self.state {
            // Older than what is known already.
            State::Known(Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::Conflict(_)) => false,
            State::Known(Outcome::Pending(known)) => {
                let mut pending = heard.clone();
                if matches!(pending.next, NextStep::Wait) {
                    pending.next = known.next.clone();
                }
                pending.expires_at = pending.expires_at.or(known.expires_at);
                pending.gateway_ref = pending.gateway_ref.or_else(|| known.gateway_ref.clone());
                pending.at = known.at;
                self.settle(Outcome::Pending(pending));
                false
            }
            State::Sending | State::Released | State::Known(Outcome::Unknown(_)) => {
                self.settle(Outcome::Pending(heard.clone()));
                false
            }
        }
    }

    fn hear_conflict(&mut self, heard: &Conflict) -> bool {
        let mut conflict = heard.clone();
        conflict.expected = conflict.expected.or(self.amount);
        self.settle(Outcome::Conflict(conflict));
        false
    }

    fn ended(&mut self, failure: &Failure, at: Timestamp) -> bool {
        if failure.may_have_executed() {
            return self.lost(UnknownReason::AnswerLost, &failure.to_string(), at);
        }
        // A later send that provably did not connect does not undo an earlier one that may have been executed.
        if self.maybe_executed {
            return self.lost(
                UnknownReason::AnswerLost,
                "an earlier attempt may have been executed",
                at,
            );
        }
        if matches!(self.state, State::Sending) {
            self.state = State::Released;
            self.lease = None;
            self.due_at = None;
        }
        false
    }

    fn lost(&mut self, reason: UnknownReason, detail: &str, at: Timestamp) -> bool {
        self.maybe_executed = true;
        if matches!(self.state, State::Sending | State::Released) {
            self.settle(Outcome::Unknown(Unknown::new(reason, detail, at)));
        }
        false
    }

    fn absent(&mut self, counts: bool, at: Timestamp) -> bool {
        if counts && self.is_open() {
            self.absences = Absences {
                count: self.absences.count.saturating_add(1),
                last: Some(at),
            };
        }
        match &mut self.state {
            State::Known(Outcome::Unknown(unknown)) => unknown.reason = UnknownReason::NotFoundYet,
            // A process died while it was sending, and the gateway knows nothing of it yet.
            State::Sending => {
                self.lost(
                    UnknownReason::NotFoundYet,
                    "the gateway does not know the operation yet",
                    at,
                );
            }
            State::Released | State::Known(_) => {}
        }
        false
    }

    fn close(&mut self, state: State) -> bool {
        if self.is_open() {
            self.maybe_executed = false;
            self.absences = Absences::default();
            self.state = state;
            self.lease = None;
            self.due_at = None;
        }
        false
    }

    fn disagree(&mut self, kind: ConflictKind, detail: String, heard: &Succeeded) -> bool {
        let mut conflict = Conflict::new(kind, detail);
        conflict.expected = self.amount;
        conflict.reported = heard.amount;
        conflict.gateway_ref.clone_from(&heard.gateway_ref);
        conflict.evidence.clone_from(&heard.evidence);
        self.settle(Outcome::Conflict(conflict));
        false
    }

    fn settle(&mut self, outcome: Outcome) {
        if let Some(id) = outcome.gateway_ref() {
            self.gateway_ref = Some(id.clone());
        }
        if !matches!(outcome, Outcome::Unknown(_)) {
            self.absences = Absences::default();
        }
        self.state = State::Known(outcome);
        self.lease = None;
        if !self.is_open() {
            self.due_at = None;
        }
    }

    fn page_open(&self, now: Timestamp) -> bool {
        self.page_closes().is_some_and(|closes| now <= closes.after(PAGE_GRACE))
    }

    fn stamp(&mut self, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
        if let State::Known(outcome) = &mut self.state {
            let when = match outcome {
                Outcome::Succeeded(payload) => &mut payload.at,
                Outcome::Pending(payload) => &mut payload.at,
                Outcome::Failed(payload) => &mut payload.at,
                Outcome::Conflict(payload) => &mut payload.at,
                Outcome::Unknown(_) => return,
            };
            when.get_or_insert(at);
        }
    }

    fn line(&self, next: &Self, observation: &Observation) -> HistoryLine {
        let mut line = HistoryLine::new(observation.at, observation.source, self.state_word(), next.state_word());
        line.sends = next.sends;
        match &observation.fact {
            Fact::Said(outcome) => {
                line.note = outcome.as_str().into();
                if let Some(evidence) = outcome.evidence() {
                    line.http_status = evidence.http_status;
                    line.code.clone_from(&evidence.code);
                    line.request_id.clone_from(&evidence.request_id);
                    line.replayed = evidence.replayed;
                }
            }
            Fact::Ended(failure) | Fact::Blind(failure) => {
                line.http_status = failure.http_status();
                line.code = failure.code().map(str::to_owned);
                line.request_id = failure.request_id().map(str::to_owned);
                line.note = failure.detail().to_owned().into();
            }
            Fact::Absent { counts: true } => line.note = "not found, which counts toward a proof".into(),
            Fact::Absent { counts: false } => line.note = "not found, which proves nothing yet".into(),
            Fact::NeverHappened => line.note = "absence proven: may be sent again".into(),
            Fact::Closed(_) => line.note = "absence proven: attempt closed".into(),
        }
        line
    }
}

/// Two ids that are both known and are not the same.
fn differ(one: Option<&GatewayRef>, other: Option<&GatewayRef>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}
