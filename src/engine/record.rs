//! The one write path: whatever is learned about an operation, from whomever, is stored here and nowhere else.

use super::Inner;
use crate::error::JournalError;
use crate::journal::Replaced;
use crate::outcome::Outcome;
use crate::record::{Fact, HistoryLine, Observation, Record, Recorded, Source, State};
use crate::retry::next_look;
use tracing::{info, warn};

/// How often a write is tried again because somebody else was first. Each round means that another writer got on.
const ROUNDS: u32 = 32;

/// What became of an observation.
#[derive(Debug)]
pub(crate) struct Observed {
    /// The record as it is now stored.
    pub(crate) record: Box<Record>,
    /// Whether this observer was the first to bring the change about.
    pub(crate) recorded: Recorded,
    /// Two final answers contradict each other: one inquiry decides.
    pub(crate) contradiction: bool,
}

impl Inner {
    /// Stores what `fact` makes of `record`, or of what the record has become meanwhile.
    pub(crate) async fn observe(
        &self,
        record: Box<Record>,
        source: Source,
        fact: Fact,
        event: Option<&str>,
    ) -> Result<Observed, JournalError> {
        let mut current = record;
        for _ in 0..ROUNDS {
            let now = self.clock.now();
            let learned = current.learn(&Observation::new(source, now, fact.clone()));
            // What an inquiry has to decide is not dealt with yet: the event counts as new when it comes again.
            let event = event.filter(|_| !learned.contradiction);
            let due = next_look(&learned.record, now);
            let next = Box::new(learned.record.look_again_at(now, due));
            match self
                .journal
                .replace(current.version, &next, &learned.line, event)
                .await?
            {
                Replaced::Stored => {
                    tell(&next, &learned.line, learned.recorded);
                    return Ok(Observed {
                        record: next,
                        recorded: learned.recorded,
                        contradiction: learned.contradiction,
                    });
                }
                Replaced::Seen => return Ok(Observed::already(current)),
                // An inquiry tells how things stood when the gateway read them. Another answer came after it was asked.
                Replaced::Stale(newer) if source == Source::Inquiry && !newer.is_open() => {
                    return Ok(Observed {
                        contradiction: !agrees(&fact, &newer),
                        ..Observed::already(Box::new(newer))
                    });
                }
                Replaced::Stale(newer) if holds_for_newer(&fact) => *current = newer,
                Replaced::Stale(newer) => return Ok(Observed::already(Box::new(newer))),
            }
        }
        Err(JournalError::transient(
            "the operation is being changed by too many writers at once",
        ))
    }
}

fn tell(record: &Record, line: &HistoryLine, recorded: Recorded) {
    info!(
        key = %record.key, kind = record.kind.as_str(), gateway = &*record.gateway, sends = record.sends,
        source = line.source.as_str(), from = &*line.from, to = &*line.to, http_status = line.http_status,
        code = line.code, request_id = line.request_id, "payonce.recorded"
    );
    if let (State::Known(Outcome::Conflict(conflict)), Recorded::First) = (&record.state, recorded) {
        warn!(key = %record.key, gateway = &*record.gateway, detail = conflict.detail, "payonce.conflict");
    }
}

impl Observed {
    fn already(record: Box<Record>) -> Self {
        Self {
            record,
            recorded: Recorded::Already,
            contradiction: false,
        }
    }
}

/// Does an inquiry say of a settled record what the record says?
fn agrees(fact: &Fact, record: &Record) -> bool {
    match fact {
        Fact::Said(outcome) => outcome.as_str() == record.state_word(),
        Fact::Ended(_) | Fact::Absent { .. } | Fact::NeverHappened | Fact::Closed(_) | Fact::Blind(_) => true,
    }
}

/// Does the fact still hold when the record has changed since it was learned? What the gateway said does, and so does
/// a lost answer. A "not found", a failed inquiry and a send that did not happen are about the record as it was: in
/// the meantime another worker may have sent.
fn holds_for_newer(fact: &Fact) -> bool {
    match fact {
        Fact::Said(_) => true,
        Fact::Ended(failure) => failure.may_have_executed(),
        Fact::Absent { .. } | Fact::NeverHappened | Fact::Closed(_) | Fact::Blind(_) => false,
    }
}
