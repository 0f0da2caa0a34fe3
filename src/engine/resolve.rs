//! Asking the gateway what became of an operation. Nothing here can cause an effect.

use super::{Chain, Inner};
use crate::error::JournalError;
use crate::gateway::{Gateway, Inquiry};
use crate::record::{Fact, Record, Recorded, Source, State};
use crate::retry::{AbsenceVerdict, AfterAbsence, absence};
use std::sync::Arc;
use tracing::{debug, info};

/// What one inquiry brought.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The record as it is now stored.
    pub(crate) record: Box<Record>,
    /// Whether this inquiry was the first to bring the change about.
    pub(crate) recorded: Recorded,
    /// The inquiry itself failed, or did not leave: asking again may help at once.
    pub(crate) blind: bool,
}

impl Asked {
    fn not(record: Box<Record>, blind: bool) -> Self {
        Self {
            record,
            recorded: Recorded::Already,
            blind,
        }
    }
}

impl Inner {
    /// Asks once about an open record and stores what was learned. One that is not open, or that a call is sending at
    /// this moment, comes back as it is: "not found" would mean nothing while the request is on its way.
    pub(crate) async fn resolve(&self, record: Box<Record>) -> Result<Asked, JournalError> {
        let now = self.clock.now();
        let being_sent =
            matches!(record.state, State::Sending) && record.lease.as_ref().is_some_and(|it| it.until > now);
        if !record.is_open() || being_sent {
            return Ok(Asked::not(record, false));
        }
        self.ask(record).await
    }

    /// Asks once, whatever the state, and stores what was learned; once more where another answer overtook this one
    /// and says something else. Only for a record that no call is sending.
    pub(crate) async fn ask(&self, record: Box<Record>) -> Result<Asked, JournalError> {
        let (asked, overtaken) = self.ask_once(record).await?;
        if !overtaken {
            return Ok(asked);
        }
        Ok(self.ask_once(asked.record).await?.0)
    }

    async fn ask_once(&self, record: Box<Record>) -> Result<(Asked, bool), JournalError> {
        let gateway = self.gateway(&record.gateway).map(Arc::clone);
        let Some(gateway) = gateway.filter(|_| self.inquiry_budget.withdraw(self.clock.now())) else {
            debug!(key = %record.key, gateway = &*record.gateway, "payonce.not_asked");
            return Ok((Asked::not(record, true), false));
        };
        let fact = match gateway.inquire(&record).await {
            Ok(Inquiry::Found(outcome)) => Fact::Said(outcome),
            Ok(Inquiry::Absent { consistent }) => {
                debug!(key = %record.key, gateway = &*record.gateway, consistent, "payonce.not_found");
                self.not_found(&record, &gateway, consistent)
            }
            Err(failure) => {
                info!(
                    key = %record.key, gateway = &*record.gateway, failure = ?failure.kind(),
                    http_status = failure.http_status(), code = failure.code(), request_id = failure.request_id(),
                    error = %Chain(&failure), "payonce.inquiry_failed"
                );
                Fact::Blind(failure)
            }
        };
        let blind = matches!(fact, Fact::Blind(_));
        let observed = self.observe(record, Source::Inquiry, fact, None).await?;
        let asked = Asked {
            record: observed.record,
            recorded: observed.recorded,
            blind,
        };
        Ok((asked, observed.contradiction))
    }

    fn not_found(&self, record: &Record, gateway: &Arc<dyn Gateway>, consistent: bool) -> Fact {
        let promise = gateway.promise(record.kind);
        match absence(record, &promise, consistent, self.clock.now()) {
            AbsenceVerdict::Inconclusive => Fact::Absent { counts: false },
            AbsenceVerdict::Counts => Fact::Absent { counts: true },
            AbsenceVerdict::Proven(AfterAbsence::SendAgain) => Fact::NeverHappened,
            AbsenceVerdict::Proven(AfterAbsence::Closed(category)) => Fact::Closed(category),
        }
    }
}
