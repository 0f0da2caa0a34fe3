//! The file: how it is opened, which schema it has, and how an older one is brought to the present.

use super::fault::{failed, is_busy};
use crate::error::JournalError;
use rusqlite::{Connection, OpenFlags};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Marks a SQLite file as a journal ("payo" in ASCII), so that no other program's file is taken for one.
const APPLICATION: i64 = 0x7061_796f;

/// The steps from one version of the schema to the next; the first makes version 1 out of an empty file. A step that
/// was released is never changed: `tests/fixtures/journal` holds a file of each version.
const MIGRATIONS: [&str; 2] = [VERSION_1, VERSION_2];

/// The columns beside `row` are copies, for searching alone: a record is read from its row.
///
/// `open` and `blocks` are what the record says of itself, so that no query has to know the states.
const VERSION_1: &str = "
    CREATE TABLE operations (
        key           TEXT PRIMARY KEY NOT NULL,
        namespace     TEXT NOT NULL,
        kind          TEXT NOT NULL,
        reference     TEXT NOT NULL,
        attempt       INTEGER NOT NULL,
        gateway       TEXT NOT NULL,
        wire_identity TEXT NOT NULL,
        gateway_ref   TEXT,
        state         TEXT NOT NULL,
        open          INTEGER NOT NULL,
        blocks        INTEGER NOT NULL,
        due_at        INTEGER,
        created_at    INTEGER NOT NULL,
        version       INTEGER NOT NULL,
        row           TEXT NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX operations_identity ON operations (namespace, gateway, wire_identity);
    CREATE UNIQUE INDEX operations_attempt ON operations (namespace, kind, reference, attempt);
    CREATE INDEX operations_gateway_ref ON operations (namespace, gateway, gateway_ref) WHERE gateway_ref IS NOT NULL;
    CREATE INDEX operations_due ON operations (namespace, due_at) WHERE open = 1;

    CREATE TABLE history (
        key  TEXT NOT NULL REFERENCES operations (key),
        seq  INTEGER NOT NULL,
        line TEXT NOT NULL,
        PRIMARY KEY (key, seq)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE events (
        namespace TEXT NOT NULL,
        gateway   TEXT NOT NULL,
        event_id  TEXT NOT NULL,
        seen_at   INTEGER NOT NULL,
        PRIMARY KEY (namespace, gateway, event_id)
    ) STRICT, WITHOUT ROWID;
";

/// What waits for a person can be found; until now that was a conflict alone. And what is over, by when it changed last.
const VERSION_2: &str = "
    ALTER TABLE operations ADD COLUMN finished_at INTEGER;
    UPDATE operations SET finished_at = json_extract(row, '$.updated_at') WHERE open = 0 AND state <> 'conflict';
    CREATE INDEX operations_finished ON operations (namespace, finished_at) WHERE finished_at IS NOT NULL;
    CREATE INDEX events_seen ON events (namespace, seen_at);

    ALTER TABLE operations ADD COLUMN review INTEGER NOT NULL DEFAULT 0;
    UPDATE operations SET review = 1 WHERE state = 'conflict';
    CREATE INDEX operations_review ON operations (namespace, created_at) WHERE review = 1;
";

/// Makes sure that there is a file, readable by its owner alone where it is new, and returns its absolute path.
pub(super) fn create_file(path: &Path) -> Result<PathBuf, JournalError> {
    // Absolute, so that a later change of the working directory does not matter and no name (`:memory:`) is special.
    let path = std::path::absolute(path).map_err(|error| unusable("the journal's path is empty", error))?;
    if !path.parent().is_some_and(Path::is_dir) {
        return Err(JournalError::permanent(format!(
            "the folder of the journal does not exist: {}",
            path.display()
        )));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(unusable("the journal's file could not be opened", error)),
    }
}

/// A connection that writes, to a file with the present schema.
pub(super) fn open_for_writing(path: &Path, busy_timeout: Duration) -> Result<Connection, JournalError> {
    let mut connection = connect(path, busy_timeout)?;
    // Before anything is changed: what is not ours, or of a newer version, is left as it is.
    settled_version(&mut connection)?;
    use_log(&connection, busy_timeout)?;
    for (pragma, value) in [
        ("synchronous", "FULL"),
        // macOS: a flush reaches the disk itself.
        ("fullfsync", "ON"),
        ("checkpoint_fullfsync", "ON"),
        // What is replaced, the link to a hosted page above all, is overwritten in the file.
        ("secure_delete", "ON"),
        ("foreign_keys", "ON"),
    ] {
        set(&connection, pragma, value)?;
    }
    migrate(&mut connection)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(super) fn open_for_reading(path: &Path, busy_timeout: Duration) -> Result<Connection, JournalError> {
    let connection = connect(path, busy_timeout)?;
    set(&connection, "query_only", "ON")?;
    Ok(connection)
}

/// Fails when the file has come to a newer schema while it was open: an older program must not write to it then.
pub(super) fn still_current(version: i64) -> Result<(), JournalError> {
    match usize::try_from(version) {
        Ok(version) if version == MIGRATIONS.len() => Ok(()),
        _ => Err(newer()),
    }
}

fn connect(path: &Path, busy_timeout: Duration) -> Result<Connection, JournalError> {
    // No CREATE: the file is there. No URI: a path is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(busy_timeout).map_err(failed)?;
    Ok(connection)
}

/// Some pragmas answer with their new value, which is of no interest here.
fn set(connection: &Connection, pragma: &str, value: &str) -> Result<(), JournalError> {
    connection
        .execute_batch(&format!("PRAGMA {pragma} = {value}"))
        .map_err(failed)
}

/// Switches to the write-ahead log. SQLite does not wait by itself when two connections do this at a time.
fn use_log(connection: &Connection, busy_timeout: Duration) -> Result<(), JournalError> {
    let begun = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode.eq_ignore_ascii_case("wal") => return Ok(()),
            Ok(_) => {
                return Err(JournalError::permanent(
                    "the journal's file system allows no write-ahead log",
                ));
            }
            Err(error) if is_busy(&error) && begun.elapsed() < busy_timeout => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The version of the schema as no other connection is changing it.
fn settled_version(connection: &mut Connection) -> Result<usize, JournalError> {
    let snapshot = connection.transaction().map_err(failed)?;
    version(&snapshot)
}

/// The version of the schema, 0 for an empty file. Reads several things, so it wants a transaction around it.
fn version(connection: &Connection) -> Result<usize, JournalError> {
    let number = |sql: &str| {
        connection
            .query_row(sql, (), |row| row.get::<_, i64>(0))
            .map_err(failed)
    };
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if application == 0 && version == 0 && tables == 0 {
        return Ok(0);
    }
    if application != APPLICATION {
        return Err(JournalError::permanent("the file is a database of another program"));
    }
    usize::try_from(version)
        .ok()
        .filter(|version| (1..=MIGRATIONS.len()).contains(version))
        .ok_or_else(newer)
}

fn migrate(connection: &mut Connection) -> Result<(), JournalError> {
    if settled_version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    // Again, under the lock: another process may have been faster.
    for step in MIGRATIONS.iter().skip(version(&transaction)?) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    set(&transaction, "application_id", &APPLICATION.to_string())?;
    set(&transaction, "user_version", &MIGRATIONS.len().to_string())?;
    transaction.commit().map_err(failed)
}

fn newer() -> JournalError {
    JournalError::permanent("the journal has the schema of a newer version of this crate")
}

fn unusable(detail: &str, error: io::Error) -> JournalError {
    let permanent = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::ReadOnlyFilesystem
    );
    let error_of = if permanent {
        JournalError::permanent
    } else {
        JournalError::transient
    };
    error_of(detail).with_source(error)
}
