//! Journaled calls a second at concurrency 64: the SQLite journal, whose writer shares one flush among what has come in,
//! beside the same journal when each write has a commit and a flush of its own. At least 5 times.
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
use payonce::testing::conformance::sample::{Sample, answered, outcomes};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CONCURRENCY: usize = 64;
const CALLS: usize = 1_920;
const ROUNDS: usize = 5;

fn main() {
    // Beside the project's files, since a folder for temporary ones may be memory, which flushes nothing.
    let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/target")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut grouped, mut single) = (Duration::MAX, Duration::MAX);
    for round in 0..ROUNDS {
        let path = folder.path().join(format!("grouped-{round}.sqlite3"));
        grouped = grouped.min(runtime.block_on(journaled(&path, CONCURRENCY)));
        let path = folder.path().join(format!("single-{round}.sqlite3"));
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
