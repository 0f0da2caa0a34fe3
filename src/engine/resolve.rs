//! Asking the gateway what became of an operation. Nothing here can cause an effect.

use super::{Chain, Inner};
use crate::error::JournalError;
use crate::gateway::{Gateway, Inquiry};
use crate::journal::Wanted;
use crate::outcome::Outcome;
use crate::record::{Fact, Record, Recorded, Source, State};
use crate::retry::{AbsenceVerdict, AfterAbsence, absence};
use std::sync::Arc;
use tracing::{debug, info};

/// How many open operations are compared, at most, before one that only looks alike is believed. Where there are more,
/// it is not.
const CLAIMANTS: usize = 10_000;

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
            Ok(Inquiry::Similar(outcome)) if self.claimed_by_another(&record, &outcome).await? => {
                debug!(key = %record.key, gateway = &*record.gateway, "payonce.found_similar");
                Fact::Absent { counts: false }
            }
            Ok(Inquiry::Similar(outcome)) => Fact::Said(outcome),
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

    /// Could what an inquiry found belong to another operation on the same payment? To the one that has its id, or to
    /// one of the same amount that nobody has decided about yet. An operation that is reserved after this was asked about
    /// cannot be it: what was found is older.
    async fn claimed_by_another(&self, record: &Record, found: &Outcome) -> Result<bool, JournalError> {
        let namespace = || record.namespace.to_string();
        let others = |records: Vec<Record>| records.into_iter().filter(|other| other.key != record.key);
        if let Some(id) = found.gateway_ref() {
            let wanted = Wanted::GatewayRef {
                namespace: namespace(),
                gateway: record.gateway.to_string(),
                id: id.clone(),
            };
            let same_kind = |other: &Record| other.kind == record.kind;
            if others(self.journal.find(&wanted, CLAIMANTS).await?).any(|other| same_kind(&other)) {
                return Ok(true);
            }
        }
        let open = Wanted::Open { namespace: namespace() };
        let disputed = Wanted::InReview { namespace: namespace() };
        let mut undecided = Vec::new();
        for wanted in [open, disputed] {
            let found = self.journal.find(&wanted, CLAIMANTS).await?;
            if found.len() == CLAIMANTS {
                return Ok(true);
            }
            undecided.extend(found);
        }
        let alike = |other: &Record| {
            let payments = other.target.as_ref().zip(record.target.as_ref());
            let same_payment = payments.is_none_or(|(theirs, ours)| theirs.is_same_payment(ours));
            same_payment && (other.kind, other.amount, &other.gateway) == (record.kind, record.amount, &record.gateway)
        };
        Ok(others(undecided).any(|other| alike(&other)))
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
