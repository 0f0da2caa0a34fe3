//! Journaled calls a second at concurrency 64: the SQLite journal, whose writer shares one flush among what has come in,
//! beside the same journal when each write has a commit and a flush of its own. At least 5 times.
//!
//! And what `reserve`, `replace` and `claim_due` cost in a file with many finished operations (200,000, or as many as
//! `PAYONCE_BENCH_FINISHED` says) and ten thousand open ones, beside a file with ten thousand in all. At most 1.5 times.
//! `cargo bench --bench journal`.

#![allow(
    clippy::unwrap_used,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement stops at whatever is unexpected, and prints figures"
)]

use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, Replaced, Reservation};
use payonce::record::Lease;
use payonce::testing::conformance::sample::{NOW, Sample, answered, outcomes};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CONCURRENCY: usize = 64;
const CALLS: usize = 1_920;
const ROUNDS: usize = 5;

const NAMESPACE: &str = "bench/test";
const OPEN: usize = 10_000;
/// Of each kind; the steps that claim use up 32 open operations each.
const STEPS: usize = 200;

fn main() {
    // Beside the project's files, since a folder for temporary ones may be memory, which flushes nothing.
    let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).unwrap();
    throughput(folder.path());
    scale(folder.path());
}

fn throughput(folder: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut grouped, mut single) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        let path = folder.join(format!("grouped-{round}.sqlite3"));
        grouped = grouped.min(runtime.block_on(journaled(&path, CONCURRENCY)));
        let path = folder.join(format!("single-{round}.sqlite3"));
        single = single.min(runtime.block_on(journaled(&path, 1)));
    }
    let rate = |duration: Duration| CALLS as f64 / duration.as_secs_f64();
    println!(
        "SQLite, concurrency {CONCURRENCY}: {:.0} journaled calls a second, {:.0} with a commit for each write, {:.1} times (at least 5)",
        rate(grouped),
        rate(single),
        rate(grouped) / rate(single),
    );
}

fn scale(folder: &Path) {
    let finished = std::env::var("PAYONCE_BENCH_FINISHED").map_or(200_000, |text| text.parse().unwrap());
    let small = File::new(folder.join("small.sqlite3"), 0);
    let large = File::new(folder.join("large.sqlite3"), finished);
    let bytes = std::fs::metadata(&large.path).unwrap().len() - std::fs::metadata(&small.path).unwrap().len();
    println!("SQLite: {} bytes on disk for each finished operation", bytes / finished);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    for step in ["reserve", "replace", "claim_due"] {
        let (mut in_small, mut in_large) = (Vec::new(), Vec::new());
        for round in 0..STEPS {
            in_small.push(runtime.block_on(small.step(step, round)));
            in_large.push(runtime.block_on(large.step(step, round)));
        }
        let median = |mut times: Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e6
        };
        let (in_small, in_large) = (median(in_small), median(in_large));
        println!(
            "SQLite {step}: {in_large:.0} us beside {finished} finished operations, {in_small:.0} us without, {:.2} times (at most 1.5)",
            in_large / in_small
        );
    }
}

/// A journal with [`OPEN`] open operations that are due, and many that are finished.
struct File {
    path: PathBuf,
    journal: SqliteJournal,
}

impl File {
    /// The finished ones are copies of one that the journal has written, made by SQLite alone.
    fn new(path: PathBuf, finished: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let journal = SqliteJournal::open(&path).unwrap();
        runtime.block_on(async {
            let done = Sample::charge(NAMESPACE, "done");
            journal.reserve(&done.record(), &done.line()).await.unwrap();
            let (next, line) = answered(&done.record(), outcomes().remove(0));
            journal.replace(1, &next, &line, None).await.unwrap();
            for number in 0..OPEN {
                let sample = Sample::charge(NAMESPACE, &format!("open-{number}"));
                let (record, line) = (sample.record(), sample.line());
                journal.reserve(&record, &line).await.unwrap();
            }
        });
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(&format!(
                "PRAGMA synchronous = OFF;
                 BEGIN;
                 CREATE TEMP TABLE numbers AS
                     WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {finished})
                     SELECT i FROM n WHERE {finished} > 0;
                 INSERT INTO operations (key, namespace, kind, reference, attempt, gateway, wire_identity, gateway_ref,
                         state, open, blocks, due_at, created_at, version, row)
                     SELECT lower(hex(randomblob(16))), namespace, kind, 'order-' || i, attempt, gateway,
                         'identity-' || i, 'pi_' || i, state, open, blocks, due_at, created_at - i, version, row
                     FROM operations, numbers WHERE reference = 'done';
                 INSERT INTO history (key, seq, line)
                     SELECT o.key, h.seq, h.line FROM operations o, history h
                     WHERE o.reference LIKE 'order-%'
                         AND h.key = (SELECT key FROM operations WHERE reference = 'done');
                 COMMIT;
                 PRAGMA wal_checkpoint(TRUNCATE);
                 ANALYZE;"
            ))
            .unwrap();
        Self { path, journal }
    }

    /// How long the `round`-th step of this kind takes.
    async fn step(&self, step: &str, round: usize) -> Duration {
        let sample = Sample::charge(NAMESPACE, &format!("new-{round}"));
        let record = sample.record();
        let started = Instant::now();
        match step {
            "reserve" => {
                let reserved = self.journal.reserve(&record, &sample.line()).await.unwrap();
                assert!(matches!(reserved, Reservation::New(_)));
            }
            "replace" => {
                let (next, line) = answered(&record, outcomes().remove(0));
                let replaced = self.journal.replace(1, &next, &line, None).await.unwrap();
                assert!(matches!(replaced, Replaced::Stored));
            }
            _ => {
                let now = NOW.after(Duration::from_secs(86_400));
                let lease = Lease::new("bench", now.after(Duration::from_secs(60)));
                let claimed = self.journal.claim_due(NAMESPACE, now, &lease, 32).await.unwrap();
                assert_eq!(claimed.len(), 32);
            }
        }
        started.elapsed()
    }
}

/// Each call reserved, and then stored with its outcome; so many writes at the journal at once.
async fn journaled(path: &Path, at_once: usize) -> Duration {
    let journal = Arc::new(SqliteJournal::open(path).unwrap());
    let door = Arc::new(Semaphore::new(at_once));
    crowd(move |number| {
        let (journal, door) = (Arc::clone(&journal), Arc::clone(&door));
        async move {
            let sample = Sample::charge("bench/test", &format!("order-{number}"));
            let (record, line) = (sample.record(), sample.line());
            let admitted = door.acquire().await.unwrap();
            let reserved = journal.reserve(&record, &line).await.unwrap();
            drop(admitted);
            assert!(matches!(reserved, Reservation::New(_)));
            let (next, line) = answered(&record, outcomes().remove(0));
            let _admitted = door.acquire().await.unwrap();
            let replaced = journal.replace(record.version(), &next, &line, None).await.unwrap();
            assert!(matches!(replaced, Replaced::Stored));
        }
    })
    .await
}

/// So many tasks at once, each with its share of the calls, one after the other.
async fn crowd<F>(call: impl Fn(usize) -> F + Clone + Send + 'static) -> Duration
where
    F: Future<Output = ()> + Send,
{
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..CONCURRENCY {
        let call = call.clone();
        tasks.spawn(async move {
            for number in 0..CALLS / CONCURRENCY {
                call(task * CALLS + number).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    started.elapsed()
}
