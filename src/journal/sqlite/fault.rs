//! What an error of SQLite means for whoever wants to try again.

use crate::error::JournalError;
use rusqlite::ErrorCode;

/// The error of a step. SQLite's own text, kept as the source, names tables and files, never what is in them.
pub(super) fn failed(error: rusqlite::Error) -> JournalError {
    let code = error.sqlite_error_code();
    let is = |codes: &[ErrorCode]| code.is_some_and(|code| codes.contains(&code));
    let meaning = if is(&[ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked]) {
        JournalError::transient("the journal is locked by another connection")
    } else if is(&[ErrorCode::DiskFull]) {
        JournalError::transient("there is no room for the journal on the disk")
    } else if is(&[ErrorCode::SystemIoFailure, ErrorCode::CannotOpen]) {
        JournalError::transient("the journal's file could not be read or written")
    } else if is(&[
        ErrorCode::OutOfMemory,
        ErrorCode::OperationInterrupted,
        ErrorCode::FileLockingProtocolFailed,
        ErrorCode::SchemaChanged,
    ]) {
        JournalError::transient("the journal could not do the step now")
    } else if is(&[ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase]) {
        JournalError::permanent("the journal's file is damaged, or is not a SQLite file")
    } else if is(&[ErrorCode::ReadOnly, ErrorCode::PermissionDenied]) {
        JournalError::permanent("the journal's file may not be written")
    } else {
        JournalError::permanent("the journal refused the step")
    };
    meaning.with_source(error)
}

/// Is the step worth trying again at once, since it only met another connection?
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}
