//! Canaries: secrets and card data that must not come out of the crate by any way but the one they are meant for. Not
//! in a log line at any level, not in what `Display` and `Debug` make of anything public, not in the journal's file.
//!
//! What the dependencies say at TRACE was looked at too, and is held to the same. hyper-util, through `tracing`, and
//! reqwest, through `log`, speak of connections, with scheme, host and port; reqwest also of a retry that it does not
//! make, and rustls-platform-verifier of how many roots it found. hyper, rustls and SQLite say nothing as they are built
//! here. A program that turns on reqwest's `connection_verbose` would log the bytes of every exchange; this crate does
//! not, and hands reqwest its header values marked as sensitive.

mod settings;
mod stripe;
mod twoc2p;
mod watch;

use payonce::clock::{Clock, Timestamp};
use payonce::engine::Payments;
use payonce::gateway::Gateway;
use payonce::journal::Journal;
use payonce::journal::sqlite::SqliteJournal;
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use payonce::retry::RetryPolicy;
use payonce::testing::{ManualClock, MockGateway};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use watch::{METADATA, Watch};

/// 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// A journal in a file, a clock, and somebody who watches.
struct Room {
    folder: TempDir,
    journal: Arc<SqliteJournal>,
    clock: ManualClock,
    watch: Watch,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            watch: Watch::start(),
            journal: Arc::new(SqliteJournal::open(folder.path().join("journal")).unwrap()),
            clock: ManualClock::at(NOW),
            folder,
        }
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    fn payments(&self, gateway: Arc<dyn Gateway>) -> Payments {
        self.patient_for(Duration::from_secs(10), gateway)
    }

    /// `patience` is real time: what a stalled exchange costs.
    fn patient_for(&self, patience: Duration, gateway: Arc<dyn Gateway>) -> Payments {
        let policy = RetryPolicy {
            attempts: 2,
            attempt_timeout: patience,
            ..RetryPolicy::default()
        };
        Payments::builder()
            .namespace("shop/test")
            .gateway(gateway)
            .journal(Arc::<SqliteJournal>::clone(&self.journal))
            .clock(self.clock())
            .policy(policy)
            .inquiries(1000, 1000)
            .jitter_seed(1)
            .build()
            .unwrap()
    }

    /// Executes an operation that must end like this, and shows all that is to be had of it to the watch.
    async fn pay(&mut self, payments: &Payments, operation: &Operation, expected: &str) -> Option<Outcome> {
        let label = operation.reference().to_string();
        let result = payments.execute(operation).await;
        let word = self.watch.result(&label, &result);
        assert_eq!(word, expected, "{label}: {result:?}");
        self.show_stored(payments, operation).await;
        result.ok()
    }

    /// Asks about an operation, and shows what came of it.
    async fn resolve(&mut self, payments: &Payments, operation: &Operation, expected: &str) {
        let label = operation.reference().to_string();
        let result = payments.resolve(payments.key(operation)).await;
        assert_eq!(self.watch.result(&label, &result), expected, "{label}: {result:?}");
        self.show_stored(payments, operation).await;
    }

    async fn show_stored(&mut self, payments: &Payments, operation: &Operation) {
        let key = payments.key(operation);
        self.watch.show("an operation", operation);
        self.watch.show("a record", &self.journal.load(key).await.unwrap());
        self.watch.show("its history", &payments.history(key).await.unwrap());
    }

    /// The bytes of the journal's file and its log.
    fn bytes(&self) -> Vec<u8> {
        bytes(self.folder.path().join("journal"))
    }

    /// Closes the journal; what its file holds afterwards.
    async fn close(self) -> (Watch, Vec<u8>) {
        let path = self.folder.path().join("journal");
        let journal = Arc::into_inner(self.journal).expect("nothing is under way");
        journal.close().await;
        (self.watch, bytes(path))
    }
}

fn bytes(path: PathBuf) -> Vec<u8> {
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    let mut bytes = std::fs::read(path).unwrap();
    bytes.extend(std::fs::read(log).unwrap_or_default());
    bytes
}

fn baht(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

/// An order over 20 baht with something in its metadata.
fn order(reference: &str) -> Operation {
    Operation::charge(reference, baht("20.00"))
        .unwrap()
        .metadata("note", METADATA)
}

#[tokio::test]
async fn a_lost_answer_can_be_followed_in_the_log() {
    let mut room = Room::new();
    let gateway = MockGateway::new();
    gateway.answer_lost_after_effect("order-1");
    let payments = room.payments(Arc::new(gateway));
    room.pay(&payments, &order("order-1"), "succeeded").await;
    let (names, all) = room.watch.story();
    let expected = [
        "execute",
        "reserved",
        "sending",
        "attempt_failed",
        "sending",
        "recorded",
    ];
    assert_eq!(names, expected, "{all}");
    let key = payments.key(&order("order-1")).to_string();
    assert!(all.lines().all(|line| line.contains(&key)), "{all}");
    for text in [
        "kind=\"charge\"",
        "failure=Timeout",
        "maybe_executed=true",
        "to=\"succeeded\"",
        "sends=2",
    ] {
        assert!(all.contains(text), "{text} is not in\n{all}");
    }
    let with_reference: Vec<_> = all.lines().filter(|line| line.contains("order-1")).collect();
    assert!(
        matches!(with_reference[..], [line] if line.starts_with("DEBUG")),
        "{all}"
    );
    room.watch.judge(&[]);
}
