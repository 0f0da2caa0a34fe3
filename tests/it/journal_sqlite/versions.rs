//! Files of other versions, of other programs, and damaged ones.
//!
//! `tests/fixtures/journal/version-N.sqlite3` was written by the version of this crate whose schema had the number N.
//! When a migration is added, the present file stays as it is and a new one is written:
//! `PAYONCE_WRITE_FIXTURE=tests/fixtures/journal/version-N.sqlite3 cargo test --test it journal_sqlite::versions`.

use super::{SHOP, bounded, folder, replace, reserve};
use payonce::journal::row::Row;
use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, Replaced, Reservation, Wanted};
use payonce::operation::OperationKind;
use payonce::record::Record;
use payonce::testing::conformance::sample::{Sample, answered, lost, outcomes, released};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

const FIXTURES: [&str; 2] = ["version-1.sqlite3", "version-2.sqlite3"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/journal")
        .join(name)
}

/// One operation in every state, one under a key that nothing derives, and a seen event.
async fn fill(journal: &SqliteJournal) -> Vec<Record> {
    let mut records = Vec::new();
    for (number, outcome) in outcomes().into_iter().enumerate() {
        let record = reserve(journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        let (next, line) = answered(&record, outcome);
        let event = format!("evt_{number}");
        let answer = journal
            .replace(record.version(), &next, &line, Some(&event))
            .await
            .unwrap();
        assert!(matches!(answer, Replaced::Stored));
        records.push(next);
    }
    records.push(reserve(journal, &Sample::refund(SHOP, "refund-1")).await);
    let free = reserve(journal, &Sample::charge(SHOP, "order-free")).await;
    records.push(replace(journal, &free, released(&free)).await);
    let old_key = Sample::charge(SHOP, "order-old").under_key_of(&Sample::charge("older", "order-old"));
    records.push(reserve(journal, &old_key).await);
    records
}

fn text(record: &Record) -> String {
    Row::write(record).unwrap().json
}

#[tokio::test]
async fn writes_a_file_for_later_versions_when_asked_to() {
    if let Some(path) = std::env::var_os("PAYONCE_WRITE_FIXTURE") {
        let journal = SqliteJournal::open(path).unwrap();
        fill(&journal).await;
        bounded(journal.close()).await;
    }
}

/// What every version has written, this one reads as if it had written it itself, and goes on with it.
#[tokio::test]
async fn c54_files_of_earlier_versions_are_read_and_continued() {
    let folder = folder();
    let expected = fill(&SqliteJournal::open(folder.path().join("new.sqlite3")).unwrap()).await;
    for name in FIXTURES {
        let path = folder.path().join(name);
        std::fs::copy(fixture(name), &path).unwrap();
        let journal = SqliteJournal::open(&path).unwrap();
        for record in &expected {
            let stored = journal.load(record.key()).await.unwrap().unwrap();
            assert_eq!(text(&stored), text(record), "{name}");
            let lines = journal.history(record.key()).await.unwrap().len();
            assert_eq!(lines, usize::try_from(record.version()).unwrap(), "{name}");
        }
        let unknown = &expected[3];
        let (next, line) = answered(unknown, outcomes().remove(0));
        let seen = journal
            .replace(unknown.version(), &next, &line, Some("evt_3"))
            .await
            .unwrap();
        assert!(matches!(seen, Replaced::Seen), "{name}: the events are still known");
        replace(&journal, unknown, (next, line)).await;
        reserve(&journal, &Sample::charge(SHOP, "order-new")).await;
        let open = Wanted::Open {
            namespace: SHOP.to_owned(),
        };
        assert_eq!(journal.find(&open, 99).await.unwrap().len(), 4, "{name}");
    }
}

/// An operation that is open when a new version derives other keys is resumed under its stored one.
#[tokio::test]
async fn c75_the_stored_key_outlives_the_derivation() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    std::fs::copy(fixture(FIXTURES[0]), &path).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let derived_now = Sample::charge(SHOP, "order-old");
    let answer = journal
        .reserve(&derived_now.record(), &derived_now.line())
        .await
        .unwrap();
    let Reservation::Existing(stored) = answer else {
        panic!("{answer:?}");
    };
    assert_ne!(stored.key(), derived_now.key());
    let attempts = Wanted::Attempts {
        namespace: SHOP.to_owned(),
        kind: OperationKind::Charge,
        reference: "order-old".to_owned(),
    };
    assert_eq!(journal.find(&attempts, 9).await.unwrap()[0].key(), stored.key());
    let resumed = replace(&journal, &stored, lost(&stored)).await;
    assert_eq!(
        journal.load(stored.key()).await.unwrap().unwrap().version(),
        resumed.version()
    );
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    std::fs::copy(fixture(FIXTURES[0]), &path).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = SqliteJournal::open(&path).unwrap_err();
    assert!(!error.is_transient());
    assert!(error.to_string().contains("newer version"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// A newer program has migrated the file while an older one had it open.
#[tokio::test]
async fn a_schema_that_becomes_newer_stops_the_writing() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    let first = reserve(&journal, &Sample::charge(SHOP, "order-1")).await;
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 3").unwrap();
    let (next, line) = lost(&first);
    let error = journal.replace(first.version(), &next, &line, None).await.unwrap_err();
    assert!(
        !error.is_transient() && error.to_string().contains("newer version"),
        "{error}"
    );
    newer.execute_batch("PRAGMA user_version = 2").unwrap();
    assert_eq!(
        journal.history(first.key()).await.unwrap().len(),
        1,
        "nothing was stored"
    );
}

#[tokio::test]
async fn other_files_are_refused_and_left_as_they_are() {
    let folder = folder();
    let database = folder.path().join("other.sqlite3");
    let other = Connection::open(&database).unwrap();
    other
        .execute_batch("CREATE TABLE customers (name TEXT); PRAGMA user_version = 1")
        .unwrap();
    other.close().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database ".repeat(1000)).unwrap();
    for (path, words) in [(database, "another program"), (text, "not a SQLite file")] {
        let before = std::fs::read(&path).unwrap();
        let error = SqliteJournal::open(&path).unwrap_err();
        assert!(!error.is_transient());
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn a_damaged_file_is_a_permanent_error() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    std::fs::copy(fixture(FIXTURES[FIXTURES.len() - 1]), &path).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // The first page says what the file is; all others hold nonsense.
    bytes[4096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let sample = Sample::charge(SHOP, "order-1");
    let (record, line) = (sample.record(), sample.line());
    for error in [
        journal.load(sample.key()).await.unwrap_err(),
        journal.reserve(&record, &line).await.unwrap_err(),
    ] {
        assert!(!error.is_transient());
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}

/// One row that cannot be read is an error for itself alone: the reconciler goes on with the others.
#[tokio::test]
async fn a_row_that_cannot_be_read_does_not_hide_the_others() {
    use payonce::record::Lease;
    use payonce::testing::conformance::sample::{LEASE, NOW};
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    let bad = reserve(&journal, &Sample::charge(SHOP, "order-1").at(NOW.before(LEASE))).await;
    let good = reserve(&journal, &Sample::charge(SHOP, "order-2")).await;
    let newer = text(&bad).replace("\"form\":1", "\"form\":99");
    let other = Connection::open(&path).unwrap();
    other
        .execute(
            "UPDATE operations SET row = ?1 WHERE key = ?2",
            (newer, bad.key().to_string()),
        )
        .unwrap();

    let error = journal.load(bad.key()).await.unwrap_err();
    assert!(!error.is_transient());
    let claim = || async {
        let lease = Lease::new("worker/1", NOW.after(LEASE * 9));
        journal.claim_due(SHOP, NOW.after(LEASE), &lease, 1).await
    };
    assert_eq!(claim().await.unwrap()[0].key(), good.key());
    assert!(
        !claim().await.unwrap_err().is_transient(),
        "and then the bad one is said"
    );
}
