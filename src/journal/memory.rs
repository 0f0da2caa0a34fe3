//! A journal in memory: for tests, and for programs whose operations need not outlive the process.

use super::{Journal, Replaced, Reservation, Wanted};
use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::operation::OperationKey;
use crate::record::{HistoryLine, Lease, Record, State};
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps everything in this process's memory. After a crash it knows nothing: real money wants
/// [`SqliteJournal`](crate::journal::sqlite::SqliteJournal) or another durable journal.
#[derive(Default)]
pub struct MemoryJournal {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    records: HashMap<OperationKey, Record>,
    history: HashMap<OperationKey, Vec<HistoryLine>>,
    /// The index that makes two operations with one identity at a gateway impossible.
    identities: HashMap<(String, String, String), OperationKey>,
    attempts: HashMap<(String, &'static str, String), Vec<OperationKey>>,
    events: HashSet<(String, String, String)>,
}

impl MemoryJournal {
    /// An empty journal.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Every step below leaves the tables consistent before it can panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryJournal")
            .field("operations", &self.tables().records.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        let mut tables = self.tables();
        let mut record = record.clone();
        let family = family(&record);
        let keys = tables.attempts.get(&family).map(Vec::as_slice).unwrap_or_default();
        let attempts: Vec<_> = keys.iter().filter_map(|key| tables.records.get(key)).collect();
        if let Some(existing) = attempts.iter().find(|other| other.attempt == record.attempt) {
            if !matches!(existing.state, State::Released) {
                return Ok(Reservation::Existing((*existing).clone()));
            }
            record = record.in_place_of(existing);
        }
        let mut others = attempts.iter().filter(|other| other.key != record.key);
        if let Some(other) = others.find(|other| other.blocks_other_attempts()) {
            return Ok(Reservation::Blocked((*other).clone()));
        }
        let identity = identity(&record);
        if let Some(other) = tables.identities.get(&identity).filter(|key| **key != record.key) {
            let other = tables.records[other].clone();
            return Ok(Reservation::IdentityTaken(other));
        }
        tables.identities.insert(identity, record.key);
        let attempts = tables.attempts.entry(family).or_default();
        if !attempts.contains(&record.key) {
            attempts.push(record.key);
        }
        tables.history.entry(record.key).or_default().push(line.clone());
        tables.records.insert(record.key, record.clone());
        Ok(Reservation::New(record))
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        Ok(self.tables().records.get(&key).cloned())
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        let mut tables = self.tables();
        let event = event.map(|id| (next.namespace.clone(), next.gateway.clone(), id.to_owned()));
        if event.as_ref().is_some_and(|event| tables.events.contains(event)) {
            return Ok(Replaced::Seen);
        }
        let Some(stored) = tables.records.get_mut(&next.key) else {
            return Err(JournalError::permanent("the operation is not in the journal"));
        };
        if stored.version != expected {
            return Ok(Replaced::Stale(stored.clone()));
        }
        *stored = next.clone();
        tables.history.entry(next.key).or_default().push(line.clone());
        tables.events.extend(event);
        Ok(Replaced::Stored)
    }

    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let mut tables = self.tables();
        let mut due: Vec<_> = tables
            .records
            .values()
            .filter(|record| record.namespace == namespace && record.is_open())
            .filter_map(|record| record.due_at.filter(|at| *at <= now).map(|at| (at, record.key)))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        let mut claimed = Vec::with_capacity(due.len());
        for (_, key) in due {
            if let Some(record) = tables.records.get_mut(&key) {
                *record = record.clone().leased(lease.clone());
                claimed.push(record.clone());
            }
        }
        Ok(claimed)
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        let tables = self.tables();
        let mut found: Vec<_> = tables
            .records
            .values()
            .filter(|record| matches(record, wanted))
            .cloned()
            .collect();
        found.sort_by_key(|record| (record.created_at, record.key));
        found.truncate(limit);
        Ok(found)
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        Ok(self.tables().history.get(&key).cloned().unwrap_or_default())
    }
}

fn family(record: &Record) -> (String, &'static str, String) {
    (
        record.namespace.clone(),
        record.kind.as_str(),
        record.reference.as_str().to_owned(),
    )
}

fn identity(record: &Record) -> (String, String, String) {
    (
        record.namespace.clone(),
        record.gateway.clone(),
        record.wire_identity.clone(),
    )
}

fn matches(record: &Record, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::GatewayRef { namespace, gateway, id } => {
            record.namespace == *namespace && record.gateway == *gateway && record.gateway_ref.as_ref() == Some(id)
        }
        Wanted::WireIdentity {
            namespace,
            gateway,
            identity,
        } => record.namespace == *namespace && record.gateway == *gateway && record.wire_identity == *identity,
        Wanted::Attempts {
            namespace,
            kind,
            reference,
        } => record.namespace == *namespace && record.kind == *kind && record.reference.as_str() == reference,
        Wanted::Open { namespace } => record.namespace == *namespace && record.is_open(),
    }
}
