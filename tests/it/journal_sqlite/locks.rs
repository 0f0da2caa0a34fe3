//! Another connection holds the file.

use super::{SHOP, bounded, folder, reserve};
use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, Replaced, Reservation};
use payonce::record::Lease;
use payonce::testing::conformance::sample::{LEASE, NOW, Sample, lost};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Somebody who writes and does not come to an end.
fn hold(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn let_go(other: &Connection) {
    other.execute_batch("ROLLBACK").unwrap();
}

#[tokio::test]
async fn c77_a_step_waits_for_a_lock_that_is_let_go_in_time() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::builder()
        .busy_timeout(Duration::from_secs(30))
        .open(&path)
        .unwrap();
    let journal = Arc::new(journal);
    let first = reserve(&*journal, &Sample::charge(SHOP, "order-1")).await;

    let other = hold(&path);
    let mut steps = tokio::spawn({
        let journal = Arc::clone(&journal);
        async move {
            let sample = Sample::charge(SHOP, "order-2");
            let (record, line) = (sample.record(), sample.line());
            let reserved = journal.reserve(&record, &line).await;
            let lease = Lease::new("worker/1", NOW.after(LEASE * 9));
            let claimed = journal.claim_due(SHOP, NOW.after(LEASE), &lease, 9).await;
            (reserved, claimed)
        }
    });
    // Still waiting after a while; and reading does not wait at all.
    let early = tokio::time::timeout(Duration::from_millis(200), &mut steps).await;
    assert!(early.is_err(), "the step did not wait for the lock");
    assert!(bounded(journal.load(first.key())).await.unwrap().is_some());
    let_go(&other);
    let (reserved, claimed) = bounded(steps).await.unwrap();
    assert!(matches!(reserved.unwrap(), Reservation::New(_)));
    assert_eq!(claimed.unwrap().len(), 2);
}

#[tokio::test]
async fn c77_a_lock_that_lasts_is_a_transient_error_and_nothing_is_stored() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::builder()
        .busy_timeout(Duration::from_millis(50))
        .open(&path)
        .unwrap();
    let first = reserve(&journal, &Sample::charge(SHOP, "order-1")).await;
    let sample = Sample::charge(SHOP, "order-2");
    let (record, line) = (sample.record(), sample.line());
    let (next, event_line) = lost(&first);
    let lease = Lease::new("worker/1", NOW.after(LEASE * 9));

    let other = hold(&path);
    let errors = [
        bounded(journal.reserve(&record, &line)).await.unwrap_err(),
        bounded(journal.replace(first.version(), &next, &event_line, Some("evt_1")))
            .await
            .unwrap_err(),
        bounded(journal.claim_due(SHOP, NOW.after(LEASE), &lease, 9))
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert!(error.is_transient(), "{error}");
        assert!(error.to_string().contains("locked"), "{error}");
    }
    let_go(&other);

    assert!(journal.load(sample.key()).await.unwrap().is_none());
    assert!(journal.history(sample.key()).await.unwrap().is_empty());
    assert_eq!(
        journal.load(first.key()).await.unwrap().unwrap().version(),
        first.version()
    );
    // The same steps, tried again: the event has not been seen, the claim finds what was due.
    let replaced = journal
        .replace(first.version(), &next, &event_line, Some("evt_1"))
        .await;
    assert!(matches!(replaced.unwrap(), Replaced::Stored));
    reserve(&journal, &sample).await;
    assert_eq!(
        journal
            .claim_due(SHOP, NOW.after(LEASE), &lease, 9)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn opening_waits_for_a_lock_and_then_gives_up() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let other = hold(&path);
    let error = SqliteJournal::builder()
        .busy_timeout(Duration::from_millis(50))
        .open(&path)
        .unwrap_err();
    assert!(error.is_transient(), "{error}");
    let_go(&other);
    drop(other);
    SqliteJournal::open(&path).unwrap();
}

/// A new file, and everybody comes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_open_a_new_file_at_a_time() {
    let folder = folder();
    for round in 0..5 {
        let path = folder.path().join(format!("{round}.sqlite3"));
        let openers: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || SqliteJournal::open(path))
            })
            .collect();
        for (number, opener) in openers.into_iter().enumerate() {
            let journal = opener.join().unwrap().unwrap();
            reserve(&journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        }
    }
}
