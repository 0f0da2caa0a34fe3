//! The durable journals, by a line of text that another process can open too.

use payonce::journal::Journal;
use payonce::journal::sqlite::SqliteJournal;
use std::sync::Arc;
use tempfile::TempDir;

/// An empty journal, and what keeps it in being.
pub(crate) struct Store {
    /// `sqlite:PATH`.
    pub(crate) line: String,
    _folder: TempDir,
}

/// The kinds that there are here.
pub(crate) fn kinds() -> Vec<&'static str> {
    vec!["sqlite"]
}

pub(crate) async fn empty(kind: &str) -> Store {
    match kind {
        "sqlite" => {
            let folder = tempfile::tempdir().unwrap();
            Store {
                line: format!("sqlite:{}", folder.path().join("journal.sqlite3").display()),
                _folder: folder,
            }
        }
        other => panic!("no journal of the kind {other}"),
    }
}

pub(crate) async fn open(line: &str) -> Arc<dyn Journal> {
    match line.split_once(':').unwrap() {
        ("sqlite", path) => Arc::new(SqliteJournal::open(path).unwrap()),
        (other, _) => panic!("no journal of the kind {other}"),
    }
}
