//! The steps of a journal in SQL. Each runs inside a transaction that its thread has begun.
//!
//! Here and around, only what rusqlite 0.32 and 0.43 have in common is used: the range lets it resolve beside another
//! crate's SQLite. So statements are kept here (the later ones have `prepare_cached` behind a feature), and numbers
//! go in as `i64` (the later ones do not take `u64`).

use super::fault::failed;
use super::schema;
use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::journal::row::Row;
use crate::journal::{Pruned, Replaced, Reservation, Wanted};
use crate::operation::OperationKey;
use crate::record::{HistoryLine, Lease, Record, State};
use rusqlite::{Connection, OptionalExtension, Params, Statement, params};
use std::collections::HashMap;

/// A connection and the statements that were prepared on it, each once.
pub(super) struct Tables<'c> {
    connection: &'c Connection,
    prepared: HashMap<&'static str, Statement<'c>>,
}

impl<'c> Tables<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self {
            connection,
            prepared: HashMap::new(),
        }
    }

    pub(super) fn reserve(&mut self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        let (namespace, kind, reference) = (&record.namespace, record.kind.as_str(), record.reference.as_str());
        let existing = self.one(SAME_ATTEMPT, params![namespace, kind, reference, record.attempt])?;
        let (record, put) = match existing {
            None => (record.clone(), INSERT),
            Some(released) if matches!(released.state, State::Released) => {
                (record.clone().in_place_of(&released), UPDATE)
            }
            Some(existing) => return Ok(Reservation::Existing(existing)),
        };
        let key = record.key.to_string();
        if let Some(other) = self.one(BLOCKING, params![namespace, kind, reference, key])? {
            return Ok(Reservation::Blocked(other));
        }
        let identity = params![namespace, record.gateway, record.wire_identity, key];
        if let Some(other) = self.one(SAME_IDENTITY, identity)? {
            return Ok(Reservation::IdentityTaken(other));
        }
        self.put(put, &record)?;
        self.append(record.key, line)?;
        Ok(Reservation::New(record))
    }

    pub(super) fn load(&mut self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        self.one("SELECT row FROM operations WHERE key = ?1", params![key.to_string()])
    }

    pub(super) fn replace(
        &mut self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        if let Some(id) = event
            && self.has_seen(next, id)?
        {
            return Ok(Replaced::Seen);
        }
        // The row itself is read only where somebody else has changed it.
        if self.version_of(next.key)? != i64::try_from(expected).ok() {
            let stored = self.load(next.key)?;
            let missing = || JournalError::permanent("the operation is not in the journal");
            return Ok(Replaced::Stale(stored.ok_or_else(missing)?));
        }
        self.put(UPDATE, next)?;
        self.append(next.key, line)?;
        if let Some(id) = event {
            let seen = params![next.namespace, next.gateway, id, line.at.unix_millis()];
            self.change(
                "INSERT INTO events (namespace, gateway, event_id, seen_at) VALUES (?1, ?2, ?3, ?4)",
                seen,
            )?;
        }
        Ok(Replaced::Stored)
    }

    pub(super) fn claim_due(
        &mut self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let due = params![namespace, now.unix_millis()];
        let (mut claimed, unreadable) = self.readable(DUE, due, limit)?;
        for record in &mut claimed {
            *record = record.clone().leased(lease.clone());
            self.put(UPDATE, record)?;
        }
        match unreadable {
            // A row that cannot be read must not keep the others from being resolved, nor stay unnoticed for ever.
            Some(error) if claimed.is_empty() && limit > 0 => Err(error),
            _ => Ok(claimed),
        }
    }

    pub(super) fn find(&mut self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        match wanted {
            Wanted::GatewayRef { namespace, gateway, id } => {
                self.all(BY_GATEWAY_REF, params![namespace, gateway, id.as_str(), limit])
            }
            Wanted::WireIdentity {
                namespace,
                gateway,
                identity,
            } => self.all(BY_IDENTITY, params![namespace, gateway, identity, limit]),
            Wanted::Attempts {
                namespace,
                kind,
                reference,
            } => self.all(ATTEMPTS, params![namespace, kind.as_str(), reference, limit]),
            Wanted::Open { namespace } => self.all(OPEN, params![namespace, limit]),
            Wanted::InReview { namespace } => self.all(IN_REVIEW, params![namespace, limit]),
        }
    }

    pub(super) fn history(&mut self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        let sql = "SELECT line FROM history WHERE key = ?1 ORDER BY seq";
        let lines = self.texts(sql, params![key.to_string()])?;
        lines.iter().map(|line| Row::read_line(line)).collect()
    }

    pub(super) fn prune(&mut self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let old = params![namespace, before.unix_millis(), limit];
        self.statement(PRUNE_HISTORY)?.execute(old).map_err(failed)?;
        let operations = self.statement(PRUNE_OPERATIONS)?.execute(old).map_err(failed)?;
        let events = self.statement(PRUNE_EVENTS)?.execute(old).map_err(failed)?;
        Ok(Pruned::new(operations, events))
    }

    /// A statement without parameters or rows that is run around each request.
    pub(super) fn run(&mut self, sql: &'static str) -> Result<(), JournalError> {
        self.statement(sql)?.execute(()).map(|_| ()).map_err(failed)
    }

    /// Fails when another process has brought the file to a newer schema.
    pub(super) fn check_schema(&mut self) -> Result<(), JournalError> {
        let statement = self.statement("PRAGMA user_version")?;
        schema::still_current(statement.query_row((), |row| row.get(0)).map_err(failed)?)
    }

    fn put(&mut self, sql: &'static str, record: &Record) -> Result<(), JournalError> {
        let row = Row::write(record)?;
        let values = params![
            record.key.to_string(),
            record.namespace,
            record.kind.as_str(),
            record.reference.as_str(),
            record.attempt,
            record.gateway,
            record.wire_identity,
            record.gateway_ref.as_ref().map(|id| id.as_str()),
            record.state_word(),
            record.is_open(),
            record.blocks_other_attempts(),
            record.needs_review(),
            record.finished_at().map(Timestamp::unix_millis),
            record.due_at.map(Timestamp::unix_millis),
            record.created_at.unix_millis(),
            i64::try_from(record.version).unwrap_or(i64::MAX),
            row.json,
        ];
        self.change(sql, values)
    }

    fn append(&mut self, key: OperationKey, line: &HistoryLine) -> Result<(), JournalError> {
        self.change(APPEND, params![key.to_string(), Row::write_line(line)?])
    }

    fn version_of(&mut self, key: OperationKey) -> Result<Option<i64>, JournalError> {
        let statement = self.statement("SELECT version FROM operations WHERE key = ?1")?;
        statement
            .query_row(params![key.to_string()], |row| row.get(0))
            .optional()
            .map_err(failed)
    }

    fn has_seen(&mut self, record: &Record, event: &str) -> Result<bool, JournalError> {
        let sql = "SELECT 1 FROM events WHERE namespace = ?1 AND gateway = ?2 AND event_id = ?3";
        let statement = self.statement(sql)?;
        statement
            .exists(params![record.namespace, record.gateway, event])
            .map_err(failed)
    }

    fn one(&mut self, sql: &'static str, params: impl Params) -> Result<Option<Record>, JournalError> {
        let statement = self.statement(sql)?;
        let json: Option<String> = statement
            .query_row(params, |row| row.get(0))
            .optional()
            .map_err(failed)?;
        json.map(|json| Row::new(json).read()).transpose()
    }

    fn all(&mut self, sql: &'static str, params: impl Params) -> Result<Vec<Record>, JournalError> {
        let rows = self.texts(sql, params)?;
        rows.into_iter().map(|json| Row::new(json).read()).collect()
    }

    /// Up to `limit` records, past those that cannot be read; with the first reason why one could not.
    fn readable(
        &mut self,
        sql: &'static str,
        params: impl Params,
        limit: usize,
    ) -> Result<(Vec<Record>, Option<JournalError>), JournalError> {
        let mut rows = self.statement(sql)?.query(params).map_err(failed)?;
        let (mut records, mut unreadable) = (Vec::new(), None);
        while records.len() < limit
            && let Some(row) = rows.next().map_err(failed)?
        {
            match Row::new(row.get::<_, String>(0).map_err(failed)?).read() {
                Ok(record) => records.push(record),
                Err(error) => unreadable = unreadable.or(Some(error)),
            }
        }
        Ok((records, unreadable))
    }

    fn texts(&mut self, sql: &'static str, params: impl Params) -> Result<Vec<String>, JournalError> {
        let statement = self.statement(sql)?;
        let rows = statement.query_map(params, |row| row.get(0)).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn change(&mut self, sql: &'static str, params: impl Params) -> Result<(), JournalError> {
        self.statement(sql)?.execute(params).map(|_| ()).map_err(failed)
    }

    fn statement(&mut self, sql: &'static str) -> Result<&mut Statement<'c>, JournalError> {
        use std::collections::hash_map::Entry;
        match self.prepared.entry(sql) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(self.connection.prepare(sql).map_err(failed)?)),
        }
    }
}

const SAME_ATTEMPT: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND kind = ?2 AND reference = ?3 AND attempt = ?4";

const BLOCKING: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND kind = ?2 AND reference = ?3 AND key <> ?4 AND blocks = 1
    ORDER BY attempt, key LIMIT 1";

const SAME_IDENTITY: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND gateway = ?2 AND wire_identity = ?3 AND key <> ?4";

const DUE: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND open = 1 AND due_at <= ?2
    ORDER BY due_at, key";

const BY_GATEWAY_REF: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND gateway = ?2 AND gateway_ref = ?3
    ORDER BY created_at, key LIMIT ?4";

const BY_IDENTITY: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND gateway = ?2 AND wire_identity = ?3
    ORDER BY created_at, key LIMIT ?4";

const ATTEMPTS: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND kind = ?2 AND reference = ?3
    ORDER BY created_at, key LIMIT ?4";

const OPEN: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND open = 1
    ORDER BY created_at, key LIMIT ?2";

/// The same operations in both, since nothing changes between them.
const PRUNE_HISTORY: &str = "
    DELETE FROM history WHERE key IN (
        SELECT key FROM operations
        WHERE namespace = ?1 AND finished_at < ?2
        ORDER BY finished_at, key LIMIT ?3)";

const PRUNE_OPERATIONS: &str = "
    DELETE FROM operations WHERE key IN (
        SELECT key FROM operations
        WHERE namespace = ?1 AND finished_at < ?2
        ORDER BY finished_at, key LIMIT ?3)";

const PRUNE_EVENTS: &str = "
    DELETE FROM events WHERE (namespace, gateway, event_id) IN (
        SELECT namespace, gateway, event_id FROM events
        WHERE namespace = ?1 AND seen_at < ?2
        ORDER BY seen_at LIMIT ?3)";

const IN_REVIEW: &str = "
    SELECT row FROM operations
    WHERE namespace = ?1 AND review = 1
    ORDER BY created_at, key LIMIT ?2";

const INSERT: &str = "
    INSERT INTO operations (key, namespace, kind, reference, attempt, gateway, wire_identity, gateway_ref, state, open,
        blocks, review, finished_at, due_at, created_at, version, row)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const UPDATE: &str = "
    UPDATE operations SET (namespace, kind, reference, attempt, gateway, wire_identity, gateway_ref, state, open,
        blocks, review, finished_at, due_at, created_at, version, row)
      = (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
    WHERE key = ?1";

const APPEND: &str = "
    INSERT INTO history (key, seq, line)
    SELECT ?1, coalesce(max(seq), 0) + 1, ?2 FROM history WHERE key = ?1";

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    impl Tables<'_> {
        /// Work that succeeds and makes the commit fail.
        pub(in super::super) fn leave_line_without_operation(&mut self) -> Result<(), JournalError> {
            self.connection
                .execute_batch(
                    "PRAGMA defer_foreign_keys = ON; INSERT INTO history (key, seq, line) VALUES ('none', 1, '{}')",
                )
                .map_err(failed)
        }

        /// What SQLite does by itself on some errors.
        pub(in super::super) fn lose_transaction(&mut self) -> Result<(), JournalError> {
            self.connection.execute_batch("ROLLBACK").map_err(failed)?;
            Err(JournalError::transient("taken down"))
        }
    }

    #[test]
    fn every_search_goes_by_an_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = schema::create_file(&folder.path().join("journal.sqlite3")).unwrap();
        let connection = schema::open_for_writing(&path, Duration::from_secs(30)).unwrap();
        for (sql, index) in [
            (SAME_ATTEMPT, "operations_attempt"),
            (BLOCKING, "operations_attempt"),
            (SAME_IDENTITY, "operations_identity"),
            (DUE, "operations_due"),
            (BY_GATEWAY_REF, "operations_gateway_ref"),
            (BY_IDENTITY, "operations_identity"),
            (ATTEMPTS, "operations_attempt"),
            (OPEN, "operations_due"),
            (IN_REVIEW, "operations_review"),
            (PRUNE_HISTORY, "operations_finished"),
            (PRUNE_OPERATIONS, "operations_finished"),
            (PRUNE_EVENTS, "events_seen"),
        ] {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let mut rows = statement.raw_query();
            let mut plan = String::new();
            while let Some(row) = rows.next().unwrap() {
                plan += &row.get::<_, String>(3).unwrap();
            }
            assert!(plan.contains(&format!("INDEX {index}")), "{sql}\n{plan}");
        }
    }
}
