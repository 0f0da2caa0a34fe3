//! A journal in memory: for tests, and for programs whose operations need not outlive the process.

use super::row::Row;
use super::{Journal, Pruned, Replaced, Reservation, Wanted};
use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::operation::{OperationKey, OperationKind, Reference};
use crate::record::{HistoryLine, Lease, Record, State};
use async_trait::async_trait;
use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps everything in this process's memory. After a crash it knows nothing: real money wants
/// [`SqliteJournal`](crate::journal::sqlite::SqliteJournal) or another durable journal.
#[derive(Default)]
pub struct MemoryJournal {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    operations: HashMap<OperationKey, Box<Entry>>,
    /// The index that makes two operations with one identity at a gateway impossible.
    identities: HashMap<Identity, OperationKey>,
    attempts: HashMap<Family, Vec<OperationKey>>,
    /// Namespace, gateway and id of the events that were seen, and when.
    events: HashMap<(Arc<str>, Arc<str>, String), Timestamp>,
}

struct Entry {
    record: Record,
    history: Vec<HistoryLine>,
}

/// Namespace, gateway and wire identity.
type Identity = (Arc<str>, Arc<str>, Arc<str>);

/// Namespace, kind and reference.
type Family = (Arc<str>, OperationKind, Reference);

impl Tables {
    /// As if the operation had never been.
    fn forget(&mut self, key: OperationKey) {
        let Some(entry) = self.operations.remove(&key) else {
            return;
        };
        let record = entry.record;
        self.identities.retain(|_, owner| *owner != key);
        let family = (record.namespace, record.kind, record.reference);
        if let Some(attempts) = self.attempts.get_mut(&family) {
            attempts.retain(|attempt| *attempt != key);
        }
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.operations.values().map(|entry| &entry.record)
    }
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
            .field("operations", &self.tables().operations.len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        let mut tables = self.tables();
        let mut record = Row::kept(record.clone());
        let mut replaced = None;
        let family = (Arc::clone(&record.namespace), record.kind, record.reference.clone());
        for key in tables.attempts.get(&family).into_iter().flatten() {
            let Some(Entry { record: other, .. }) = tables.operations.get(key).map(Box::as_ref) else {
                continue;
            };
            if other.attempt == record.attempt {
                if !matches!(other.state, State::Released) {
                    return Ok(Reservation::Existing(other.clone()));
                }
                record = record.in_place_of(other);
                replaced = Some(identity(other));
            }
        }
        for key in tables
            .attempts
            .get(&family)
            .into_iter()
            .flatten()
            .filter(|key| **key != record.key)
        {
            if let Some(other) = tables
                .operations
                .get(key)
                .filter(|other| other.record.blocks_other_attempts())
            {
                return Ok(Reservation::Blocked(other.record.clone()));
            }
        }
        let identity = identity(&record);
        if let Some(holder) = tables.identities.get(&identity).filter(|key| **key != record.key)
            && let Some(other) = tables.operations.get(holder)
        {
            return Ok(Reservation::IdentityTaken(other.record.clone()));
        }
        if let Some(replaced) = replaced {
            tables.identities.remove(&replaced);
        }
        tables.identities.insert(identity, record.key);
        match tables.operations.entry(record.key) {
            Occupied(mut entry) => {
                entry.get_mut().record = record.clone();
                entry.get_mut().history.push(line.clone());
            }
            Vacant(entry) => {
                let history = vec![line.clone()];
                entry.insert(Box::new(Entry {
                    record: record.clone(),
                    history,
                }));
                tables.attempts.entry(family).or_default().push(record.key);
            }
        }
        Ok(Reservation::New(record))
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        Ok(self.tables().operations.get(&key).map(|entry| entry.record.clone()))
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        let mut tables = self.tables();
        let event = event.map(|id| (Arc::clone(&next.namespace), Arc::clone(&next.gateway), id.to_owned()));
        if event.as_ref().is_some_and(|event| tables.events.contains_key(event)) {
            return Ok(Replaced::Seen);
        }
        let Some(entry) = tables.operations.get_mut(&next.key) else {
            return Err(JournalError::permanent("the operation is not in the journal"));
        };
        if entry.record.version != expected {
            return Ok(Replaced::Stale(entry.record.clone()));
        }
        entry.record = Row::kept(next.clone());
        entry.history.push(line.clone());
        tables.events.extend(event.map(|event| (event, line.at)));
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
            .records()
            .filter(|record| *record.namespace == *namespace && record.is_open())
            .filter_map(|record| record.due_at.filter(|at| *at <= now).map(|at| (at, record.key)))
            .collect();
        due.sort_unstable();
        due.truncate(limit);
        let mut claimed = Vec::with_capacity(due.len());
        for (_, key) in due {
            if let Some(entry) = tables.operations.get_mut(&key) {
                entry.record = entry.record.clone().leased(lease.clone());
                claimed.push(entry.record.clone());
            }
        }
        Ok(claimed)
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        let tables = self.tables();
        let mut found: Vec<_> = tables
            .records()
            .filter(|record| matches(record, wanted))
            .cloned()
            .collect();
        found.sort_by_key(|record| (record.created_at, record.key));
        found.truncate(limit);
        Ok(found)
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        Ok(self
            .tables()
            .operations
            .get(&key)
            .map(|entry| entry.history.clone())
            .unwrap_or_default())
    }

    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        let mut tables = self.tables();
        let finished = |record: &Record| {
            record
                .finished_at()
                .filter(|at| *record.namespace == *namespace && *at < before)
        };
        let mut old: Vec<_> = tables
            .records()
            .filter_map(|record| finished(record).map(|at| (at, record.key)))
            .collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, key) in &old {
            tables.forget(*key);
        }
        let mut seen: Vec<_> = tables
            .events
            .iter()
            .filter(|((event_namespace, _, _), at)| **event_namespace == *namespace && **at < before)
            .map(|(event, at)| (*at, event.clone()))
            .collect();
        seen.sort_unstable();
        seen.truncate(limit);
        for (_, event) in &seen {
            tables.events.remove(event);
        }
        Ok(Pruned::new(old.len(), seen.len()))
    }
}

fn identity(record: &Record) -> Identity {
    (
        Arc::clone(&record.namespace),
        Arc::clone(&record.gateway),
        Arc::clone(&record.wire_identity),
    )
}

fn matches(record: &Record, wanted: &Wanted) -> bool {
    match wanted {
        Wanted::GatewayRef { namespace, gateway, id } => {
            *record.namespace == **namespace && *record.gateway == **gateway && record.gateway_ref.as_ref() == Some(id)
        }
        Wanted::WireIdentity {
            namespace,
            gateway,
            identity,
        } => *record.namespace == **namespace && *record.gateway == **gateway && *record.wire_identity == **identity,
        Wanted::Attempts {
            namespace,
            kind,
            reference,
        } => *record.namespace == **namespace && record.kind == *kind && record.reference.as_str() == reference,
        Wanted::Open { namespace } => *record.namespace == **namespace && record.is_open(),
        Wanted::InReview { namespace } => *record.namespace == **namespace && record.needs_review(),
    }
}
