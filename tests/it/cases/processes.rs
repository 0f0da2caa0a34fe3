//! Processes that share a journal, and that die. The child is this test binary, started again; the gateway and its bank
//! are the parent's, so that they outlive it.

use crate::shop::usd;
use payonce::clock::{Clock, SystemClock, Timestamp};
use payonce::engine::Payments;
use payonce::error::Error;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::journal::sqlite::SqliteJournal;
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use payonce::reconcile::Reconciler;
use payonce::testing::server::FakeStripe;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;

const CREATE: &str = "POST /v1/payment_intents";

/// The child's lines on its standard output begin with this, so that the test runner's own are told apart.
const MARK: &str = "payonce-child:";
const JOURNAL: &str = "PAYONCE_CHILD_JOURNAL";
const GATEWAY: &str = "PAYONCE_CHILD_GATEWAY";

/// How many orders two processes race for.
const ORDERS: usize = 20;
/// More than fit on the disk that is full, and a bound.
const MANY: usize = 2_000;

/// Longer than a lease lasts: 45 s for the call, 15 s for its last exchange, 30 s of margin.
const LEASE: Duration = Duration::from_secs(120);

async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("took too long")
}

/// Waits until it is so.
async fn until(mut so: impl FnMut() -> bool) {
    bounded(async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn order(reference: &str) -> Operation {
    let charge = Operation::charge(reference, usd("20.00")).unwrap();
    charge.with(StripeOptions::payment_method("pm_card_visa"))
}

fn reference(number: usize) -> String {
    format!("order-{number}")
}

fn payments(path: &Path, url: &str, clock: Arc<dyn Clock>) -> Payments {
    let stripe = Stripe::builder("sk_test_TESTONLYchild0001")
        .base_url(url)
        .build()
        .unwrap();
    Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(stripe))
        .journal(Arc::new(SqliteJournal::open(path).unwrap()))
        .clock(clock)
        .build()
        .unwrap()
}

fn word(result: &Result<Outcome, Error>) -> String {
    match result {
        Ok(outcome) => {
            let id = outcome.gateway_ref().map(ToString::to_string);
            format!("{} {}", outcome.as_str(), id.unwrap_or_default())
        }
        Err(error) => format!("error {}", error.is_retryable()),
    }
}

/// Two processes' worth of things: the file, and the gateway.
struct Street {
    path: PathBuf,
    fake: FakeStripe,
    _folder: TempDir,
}

impl Street {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            path: folder.path().join("journal.sqlite3"),
            fake: FakeStripe::start(Bank::new()),
            _folder: folder,
        }
    }

    fn payments(&self, clock: Arc<dyn Clock>) -> Payments {
        payments(&self.path, &self.fake.base_url(), clock)
    }

    /// Runs one of the tests below, whose name begins with `child`, in a process of its own.
    fn child(&self, test: &str) -> Other {
        let program = std::env::current_exe().unwrap();
        self.start(Command::new(program), test)
    }

    /// The same on a disk with room for so many blocks of 512 bytes in a file.
    #[cfg(unix)]
    fn child_with_little_room(&self, test: &str, blocks: u32) -> Other {
        let mut command = Command::new("sh");
        // A write that does not fit is an error of that write; without the trap it would end the process.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
        self.start(command, test)
    }

    fn start(&self, mut command: Command, test: &str) -> Other {
        let mut child = command
            .args(["--exact", &format!("cases::processes::{test}"), "--nocapture"])
            .env(JOURNAL, &self.path)
            .env(GATEWAY, self.fake.base_url())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Other { child, lines }
    }
}

struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    /// SIGKILL: nothing is tidied up.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        assert!(!self.child.wait().unwrap().success());
    }

    /// The next thing that the child says.
    fn says(&mut self) -> Option<String> {
        let said = |line: std::io::Result<String>| Some(line.ok()?.split_once(MARK)?.1.to_owned());
        self.lines.find_map(said)
    }

    /// All that the child says until it ends, which it has to do well. Not on the thread that serves it.
    async fn ends(mut self) -> Vec<String> {
        let reading = tokio::task::spawn_blocking(move || {
            let said: Vec<String> = std::iter::from_fn(|| self.says()).collect();
            assert!(self.child.wait().unwrap().success());
            said
        });
        bounded(reading).await.unwrap()
    }
}

/// What this process was started for, when it is a child.
fn as_child() -> Option<Payments> {
    let path = PathBuf::from(std::env::var_os(JOURNAL)?);
    let url = std::env::var(GATEWAY).unwrap();
    Some(payments(&path, &url, Arc::new(SystemClock)))
}

#[tokio::test]
async fn child_that_pays_once() {
    let Some(payments) = as_child() else { return };
    let result = payments.execute(&order("order-1")).await;
    println!("{MARK}{}", word(&result));
}

#[tokio::test]
async fn child_that_pays_all_orders_at_once() {
    let Some(payments) = as_child() else { return };
    println!("{MARK}ready");
    for (reference, word) in pay_all(&payments).await {
        println!("{MARK}{reference} {word}");
    }
}

#[tokio::test]
async fn child_that_pays_until_the_disk_is_full() {
    let Some(payments) = as_child() else { return };
    for number in 0..MANY {
        let result = payments.execute(&order(&reference(number))).await;
        println!("{MARK}{}", word(&result));
        if let Err(error) = result {
            println!("{MARK}{error}");
            return;
        }
    }
}

async fn pay_all(payments: &Payments) -> BTreeMap<String, String> {
    let mut calls = JoinSet::new();
    for number in 0..ORDERS {
        let payments = payments.clone();
        calls.spawn(async move {
            let reference = reference(number);
            let result = payments.execute(&order(&reference)).await;
            (reference, word(&result))
        });
    }
    let mut results = BTreeMap::new();
    while let Some(result) = calls.join_next().await {
        results.extend([result.unwrap()]);
    }
    results
}

#[tokio::test]
async fn a_click_in_each_of_two_processes_is_one_send_and_both_see_its_outcome() {
    let street = Street::new();
    let hold = street.fake.hold(CREATE);
    let other = street.child("child_that_pays_once");
    bounded(hold.reached(1)).await;
    let payments = street.payments(Arc::new(SystemClock));
    let ours = tokio::spawn({
        let payments = payments.clone();
        async move { payments.execute(&order("order-1")).await }
    });
    // Two looks of ours at the row of the other's.
    let early = tokio::time::timeout(Duration::from_millis(250), hold.reached(2)).await;
    assert!(
        early.is_err() && !ours.is_finished(),
        "the second one did not wait for the first"
    );
    hold.release();
    let ours = bounded(ours).await.unwrap();
    assert_eq!(other.ends().await, [word(&ours)]);
    assert!(word(&ours).starts_with("succeeded pi_"), "{ours:?}");
    assert_eq!(street.fake.count(CREATE), 1);
    assert_eq!(street.fake.bank().charged("order-1"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_race_for_many_orders_send_each_once() {
    let street = Street::new();
    let payments = street.payments(Arc::new(SystemClock));
    let hold = street.fake.hold(CREATE);
    let mut other = street.child("child_that_pays_all_orders_at_once");
    // Whoever waits for the child must leave the thread to the gateway.
    let other = tokio::task::spawn_blocking(move || (other.says(), other));
    let (ready, other) = bounded(other).await.unwrap();
    assert_eq!(ready.as_deref(), Some("ready"));
    let ours = tokio::spawn(async move { pay_all(&payments).await });
    bounded(hold.reached(ORDERS)).await;
    // Each is with one of the two now, and the other one has come to it as well.
    let early = tokio::time::timeout(Duration::from_millis(250), hold.reached(ORDERS + 1)).await;
    assert!(early.is_err(), "an order was sent twice");
    hold.release();
    let ours = bounded(ours).await.unwrap();
    let theirs: Vec<String> = other.ends().await;
    let lines: Vec<String> = ours
        .iter()
        .map(|(reference, word)| format!("{reference} {word}"))
        .collect();
    assert_eq!(theirs, lines, "both know the same payments");
    for (reference, word) in &ours {
        assert!(word.starts_with("succeeded pi_"), "{reference}: {word}");
        assert_eq!(street.fake.bank().charged(reference), 1, "{reference}");
    }
    assert_eq!(street.fake.count(CREATE), ORDERS);
}

#[tokio::test]
async fn a_process_that_is_killed_before_its_answer_leaves_one_payment_to_be_found() {
    let street = Street::new();
    let hold = street.fake.hold(CREATE);
    let mut other = street.child("child_that_pays_once");
    bounded(hold.reached(1)).await;
    other.kill();

    // Its lease is alive: nobody knows that it is dead, and nobody sends.
    let clock = Arc::new(ManualClock::at(now()));
    let payments = street.payments(Arc::clone(&clock) as _);
    let outcome = bounded(payments.execute(&order("order-1"))).await.unwrap();
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
    assert_eq!(street.fake.count(CREATE), 1);

    // The request is executed all the same: it had been read.
    hold.release();
    until(|| street.fake.bank().charged("order-1") == 1).await;
    clock.set(now().after(LEASE));
    let round = bounded(Reconciler::new(payments.clone()).run_once()).await.unwrap();
    assert_eq!((round.looked_at, round.settled), (1, 1));
    let outcome = bounded(payments.execute(&order("order-1"))).await;
    assert_eq!(
        word(&outcome),
        format!("succeeded {}", street.fake.payment_intents()[0])
    );
    assert_eq!(
        (street.fake.count(CREATE), street.fake.bank().charged("order-1")),
        (1, 1)
    );
}

#[tokio::test]
async fn a_process_that_is_killed_while_its_request_runs_is_not_overtaken() {
    let street = Street::new();
    let hold = street.fake.hold(CREATE);
    let mut other = street.child("child_that_pays_once");
    bounded(hold.reached(1)).await;
    other.kill();

    // The lease is over and the request still runs: nothing is found, the same key goes out, and the gateway says so.
    let clock = Arc::new(ManualClock::at(now().after(LEASE)));
    let payments = street.payments(Arc::clone(&clock) as _);
    let ours = tokio::spawn({
        let payments = payments.clone();
        async move { payments.execute(&order("order-1")).await }
    });
    until(|| street.fake.count(CREATE) >= 2).await;
    hold.release();
    let _whatever_is_known_now = bounded(ours).await.unwrap();
    until(|| street.fake.bank().charged("order-1") == 1).await;
    clock.advance(LEASE);
    let outcome = bounded(payments.execute(&order("order-1"))).await;
    assert!(word(&outcome).starts_with("succeeded pi_"), "{outcome:?}");
    assert_eq!(street.fake.bank().charged("order-1"), 1);
    same_key_each_time(&street.fake);
}

#[tokio::test]
async fn a_process_that_is_killed_before_anything_was_executed_is_followed_under_its_key() {
    let street = Street::new();
    street.fake.set_faults(FaultPlan::script([Fault::StallAfterReading]));
    let mut other = street.child("child_that_pays_once");
    until(|| street.fake.count(CREATE) == 1).await;
    other.kill();
    let clock = Arc::new(ManualClock::at(now().after(LEASE)));
    let outcome = bounded(street.payments(clock).execute(&order("order-1"))).await;
    assert!(word(&outcome).starts_with("succeeded pi_"), "{outcome:?}");
    assert_eq!(
        (street.fake.count(CREATE), street.fake.bank().charged("order-1")),
        (2, 1)
    );
    same_key_each_time(&street.fake);
}

/// Whoever sent it, and whatever became of that process: one key, and the same bytes.
#[track_caller]
fn same_key_each_time(fake: &FakeStripe) {
    let sends: Vec<_> = fake
        .requests()
        .into_iter()
        .filter(|request| request.is(CREATE))
        .collect();
    for send in &sends {
        assert_eq!(send.header("idempotency-key"), sends[0].header("idempotency-key"));
        assert_eq!(send.body, sends[0].body);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn c77_on_a_full_disk_nothing_is_sent_that_is_not_written_down() {
    let street = Street::new();
    let said = street
        .child_with_little_room("child_that_pays_until_the_disk_is_full", 2_000)
        .ends()
        .await;
    let [results @ .., message] = &said[..] else {
        panic!("the child said nothing");
    };
    assert!(message.contains("nothing was sent"), "{message}");
    let refused = results.len() - 1;
    assert!(refused > 0 && results[refused] == "error true", "{results:?}");
    // All before it left once; that one never.
    assert_eq!(street.fake.count(CREATE), refused);
    assert_eq!(street.fake.bank().charged(&reference(refused)), 0);

    // There is room again: what was paid is known or found, what was refused is paid.
    let clock = Arc::new(ManualClock::at(now().after(LEASE)));
    let payments = street.payments(clock);
    for number in 0..=refused {
        let outcome = bounded(payments.execute(&order(&reference(number)))).await;
        assert!(word(&outcome).starts_with("succeeded pi_"), "{number}: {outcome:?}");
        assert_eq!(street.fake.bank().charged(&reference(number)), 1);
    }
    assert_eq!(street.fake.count(CREATE), refused + 1);
}
