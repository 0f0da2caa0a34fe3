//! The durable journal of one machine: a SQLite file that any number of its processes may share.

mod fault;
mod schema;
mod tables;
mod threads;

use super::{Journal, Pruned, Replaced, Reservation, Wanted};
use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::operation::OperationKey;
use crate::record::{HistoryLine, Lease, Record};
use async_trait::async_trait;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use threads::Desk;

/// A journal in a SQLite file.
///
/// What has been written survives a crash of the process and of the machine: write-ahead log, and one flush to the
/// disk before any answer. Requests that wait for the same flush share it. Several journals, in several processes of
/// *one* machine, may be open on a file; a file on a network drive is not safe.
///
/// The file and its two companions (`-wal`, `-shm`) belong together: copy or move them only while no journal is open.
/// On Unix a new file can be read by its owner alone.
///
/// Of what the payer has to do, the file holds the link to a hosted page alone. It is overwritten when the payment is
/// settled; in the log it stays until that is next folded into the file.
///
/// Two threads own the connections, one that writes and one that reads. They end when the journal is dropped, after
/// they have done what was asked before.
///
/// ```
/// use payonce::journal::Wanted;
/// use payonce::journal::{Journal, sqlite::SqliteJournal};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("payments.sqlite3");
/// let journal = SqliteJournal::open(&path)?;
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let open = journal.find(&Wanted::Open { namespace: "shop/live".into() }, 100).await?;
/// assert!(open.is_empty());
/// # Ok::<(), payonce::error::JournalError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqliteJournal {
    path: PathBuf,
    writer: Desk,
    reader: Desk,
}

/// Settings of a [`SqliteJournal`].
#[derive(Clone, Debug)]
pub struct SqliteJournalBuilder {
    busy_timeout: Duration,
}

impl SqliteJournal {
    /// Opens the journal at `path` with the defaults, and creates it where there is none. Blocks while it does so:
    /// call it at the start of a program.
    ///
    /// # Errors
    /// As [`SqliteJournalBuilder::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().open(path)
    }

    /// Settings to change before opening.
    #[must_use]
    pub fn builder() -> SqliteJournalBuilder {
        SqliteJournalBuilder {
            busy_timeout: Duration::from_secs(5),
        }
    }

    /// Ends the two threads and waits until the file is closed. Dropping the journal ends them as well, but does not
    /// wait.
    pub async fn close(self) {
        let Self { writer, reader, .. } = self;
        // The writer last: who closes the last connection tidies the log away.
        reader.close().await;
        writer.close().await;
    }
}

impl SqliteJournalBuilder {
    /// How long a step waits for other connections that hold the file, before it fails with a transient error and
    /// nothing is stored. 5 s unless set; at most a day.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout.min(Duration::from_secs(24 * 60 * 60));
        self
    }

    /// Opens the journal at `path`, and creates it where there is none; its folder must exist. An older journal is
    /// brought to this version's schema first.
    ///
    /// # Errors
    /// A permanent [`JournalError`] for a missing folder, a file that may not be written, a file that is not a
    /// journal or is damaged, and a journal of a newer version of this crate, which is left as it is. A transient one
    /// while another connection holds the file, or without room on the disk.
    pub fn open(self, path: impl AsRef<Path>) -> Result<SqliteJournal, JournalError> {
        let path = schema::create_file(path.as_ref())?;
        let writing = schema::open_for_writing(&path, self.busy_timeout)?;
        let reading = schema::open_for_reading(&path, self.busy_timeout)?;
        Ok(SqliteJournal {
            path,
            writer: Desk::open("payonce-journal-write", writing, threads::write)?,
            reader: Desk::open("payonce-journal-read", reading, threads::read)?,
        })
    }
}

impl fmt::Debug for SqliteJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteJournal")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        let (record, line) = (record.clone(), line.clone());
        self.writer.ask(move |tables| tables.reserve(&record, &line)).await
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        self.reader.ask(move |tables| tables.load(key)).await
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        let (next, line, event) = (next.clone(), line.clone(), event.map(str::to_owned));
        self.writer
            .ask(move |tables| tables.replace(expected, &next, &line, event.as_deref()))
            .await
    }

    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        let (namespace, lease) = (namespace.to_owned(), lease.clone());
        self.writer
            .ask(move |tables| tables.claim_due(&namespace, now, &lease, limit))
            .await
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        let wanted = wanted.clone();
        self.reader.ask(move |tables| tables.find(&wanted, limit)).await
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        self.reader.ask(move |tables| tables.history(key)).await
    }

    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        let namespace = namespace.to_owned();
        self.writer
            .ask(move |tables| tables.prune(&namespace, before, limit))
            .await
    }
}
