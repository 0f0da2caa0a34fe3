//! The journal in a SQLite file: the contract, and what only a file can go through.

mod crash;
mod locks;
mod payments;
mod versions;

use async_trait::async_trait;
use payonce::clock::Timestamp;
use payonce::error::JournalError;
use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, Pruned, Replaced, Reservation, Wanted};
use payonce::operation::OperationKey;
use payonce::outcome::{NextStep, Outcome, Pending};
use payonce::record::{HistoryLine, Lease, Record};
use payonce::testing::conformance;
use payonce::testing::conformance::sample::{CANARY, Sample, answered, outcomes, secret_steps};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const SHOP: &str = "shop/test";

/// Far longer than anything here takes; a test that hangs fails by it.
const BOUND: Duration = Duration::from_secs(60);

async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(BOUND, future).await.expect("took too long")
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn reserve(journal: &dyn Journal, sample: &Sample) -> Record {
    let answer = journal.reserve(&sample.record(), &sample.line()).await.unwrap();
    let Reservation::New(record) = answer else {
        panic!("not reserved: {answer:?}");
    };
    record
}

async fn replace(journal: &dyn Journal, from: &Record, (next, line): (Record, HistoryLine)) -> Record {
    let answer = journal.replace(from.version(), &next, &line, None).await.unwrap();
    assert!(matches!(answer, Replaced::Stored), "not stored: {answer:?}");
    next
}

/// The bytes of the file and its companions, as far as they exist.
fn bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for companion in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(companion);
        bytes.extend(std::fs::read(name).unwrap_or_default());
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract() {
    let folder = folder();
    let number = AtomicU32::new(0);
    let make = || async {
        let name = format!("{}.sqlite3", number.fetch_add(1, Ordering::Relaxed));
        Arc::new(SqliteJournal::open(folder.path().join(name)).unwrap()) as Arc<dyn Journal>
    };
    bounded(conformance::journal(make)).await;
}

/// Two journals on one file, as two processes would have: each step may meet a step of the other.
#[derive(Debug)]
struct InTurns(SqliteJournal, SqliteJournal, AtomicU32);

impl InTurns {
    fn next(&self) -> &SqliteJournal {
        if self.2.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            &self.0
        } else {
            &self.1
        }
    }
}

#[async_trait]
impl Journal for InTurns {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        self.next().reserve(record, line).await
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        self.next().load(key).await
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        self.next().replace(expected, next, line, event).await
    }

    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        self.next().claim_due(namespace, now, lease, limit).await
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        self.next().find(wanted, limit).await
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        self.next().history(key).await
    }

    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        self.next().prune(namespace, before, limit).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_connections_keep_the_contract_together() {
    let folder = folder();
    let number = AtomicU32::new(0);
    let make = || async {
        let path = folder.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
        let (one, two) = (SqliteJournal::open(&path).unwrap(), SqliteJournal::open(&path).unwrap());
        Arc::new(InTurns(one, two, AtomicU32::new(0))) as Arc<dyn Journal>
    };
    bounded(conformance::journal(make)).await;
}

#[tokio::test]
async fn c66_no_byte_of_the_file_is_a_secret() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    for (number, step) in secret_steps().into_iter().enumerate() {
        let record = reserve(&journal, &Sample::charge(SHOP, &format!("order-{number}"))).await;
        replace(
            &journal,
            &record,
            answered(&record, Outcome::Pending(Pending::new(step))),
        )
        .await;
    }
    let written = bytes(&path);
    assert!(contains(&written, "order-0"), "the rows are in these bytes");
    assert!(!contains(&written, CANARY));
    let text = format!("{journal:?}");
    assert!(text.contains("journal.sqlite3") && !text.contains("order-0"), "{text}");
    bounded(journal.close()).await;
    assert!(!contains(&bytes(&path), CANARY));
}

/// The link to a hosted page is kept while the payer needs it, and is overwritten when it is settled.
#[tokio::test]
async fn c66_the_link_to_a_page_leaves_the_file_with_the_payment() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    let record = reserve(&journal, &Sample::charge(SHOP, "order-1")).await;
    // Long enough to fill pages of its own, which the shorter row then leaves behind.
    let page = NextStep::Redirect {
        url: format!("https://pay.example/{}", "TESTONLYlink/".repeat(1000)).into(),
    };
    let pending = replace(
        &journal,
        &record,
        answered(&record, Outcome::Pending(Pending::new(page))),
    )
    .await;
    bounded(journal.close()).await;
    assert!(
        contains(&bytes(&path), "TESTONLYlink"),
        "a caller needs it after a crash"
    );

    let journal = SqliteJournal::open(&path).unwrap();
    replace(&journal, &pending, answered(&pending, outcomes().remove(0))).await;
    bounded(journal.close()).await;
    let left = bytes(&path);
    assert!(contains(&left, "order-1") && !contains(&left, "TESTONLYlink"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    reserve(&journal, &Sample::charge(SHOP, "order-1")).await;
    let mut seen = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        seen += 1;
    }
    assert_eq!(seen, 3, "the file, its log and the log's index");
}

#[tokio::test]
async fn what_cannot_be_opened_is_said_clearly() {
    let folder = folder();
    for (path, words) in [
        (
            folder.path().join("missing/journal.sqlite3"),
            "folder of the journal does not exist",
        ),
        (folder.path().to_owned(), "could not be opened"),
        ("".into(), "path is empty"),
    ] {
        let error = SqliteJournal::open(&path).unwrap_err();
        assert!(!error.is_transient(), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(!folder.path().join("missing").exists());
}

/// A name that SQLite gives a meaning to is a file like any other.
#[tokio::test]
async fn every_path_is_a_file() {
    let folder = folder();
    for name in [":memory:", "file:journal?mode=memory", "journal ?#%41.sqlite3"] {
        let path = folder.path().join(name);
        let journal = SqliteJournal::open(&path).unwrap();
        let record = reserve(&journal, &Sample::charge(SHOP, "order-1")).await;
        bounded(journal.close()).await;
        assert!(path.is_file());
        let journal = SqliteJournal::open(&path).unwrap();
        assert!(journal.load(record.key()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_request_outlives_its_caller_and_is_done_before_the_journal_ends() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let journal = SqliteJournal::open(&path).unwrap();
    let sample = Sample::charge(SHOP, "order-1");
    let (record, line) = (sample.record(), sample.line());
    {
        let mut reserve = std::pin::pin!(journal.reserve(&record, &line));
        // One poll hands it in, and the caller goes away.
        std::future::poll_fn(|context| {
            let _ = reserve.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    bounded(journal.close()).await;
    let journal = SqliteJournal::open(&path).unwrap();
    assert!(journal.load(sample.key()).await.unwrap().is_some());
}
