//! A shop charges some hundred orders through two gateways, over a network that loses answers, and crashes half way.
//!
//! `cargo run --example quick_start` needs nothing else: both gateways are fakes on loopback, and a bank behind them
//! counts how often money really moved. At the end the bank judges; the exit code is not zero if it disagrees with
//! what the journal says. `--seed N` replays a run.
//!
//! `PAYONCE_API_KEY=sk_test_... cargo run --example quick_start -- --gateway-url https://api.stripe.com` sends a few
//! orders to a real sandbox instead.

#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::TwoC2p;
use payonce::journal::sqlite::SqliteJournal;
use payonce::testing::server::{FakeStripe, FakeTwoC2p, LoggedRequest};
use payonce::testing::{Bank, Fault, FaultPlan};
use payonce::{Currency, Gateway, Money, Operation, OperationKind, Outcome, Payments, RetryPolicy};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The secret that the fake shares with the shop.
const MERCHANT_SECRET: &str = "FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001";
const ORDERS: usize = 200;
const CONCURRENCY: usize = 16;
/// Of a thousand requests that could move money, so many meet a fault.
const FAULTS_PER_MILLE: u16 = 250;
/// How often what is still unknown is looked at before the example gives up.
const ROUNDS: usize = 40;

type Failure = Box<dyn Error + Send + Sync>;

/// Tells the requests that a row of the table counts.
type Counts = fn(&LoggedRequest) -> bool;

fn main() -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match argument("--gateway-url") {
        Some(url) => runtime.block_on(sandbox(&url)),
        None => runtime.block_on(offline()),
    }
}

/// The fakes, the bank, and the shop that crashes half way.
async fn offline() -> Result<ExitCode, Failure> {
    let seed = argument("--seed").map_or(Ok(42), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("journal.sqlite");
    let bank = Bank::new();
    let stripe = FakeStripe::start(bank.clone());
    let twoc2p = FakeTwoC2p::start(bank.clone(), "TESTM01", MERCHANT_SECRET);
    twoc2p.set_pays_at_once(true);
    stripe.set_faults(FaultPlan::seeded(seed, FAULTS_PER_MILLE).choosing(Fault::ALL));
    twoc2p.set_faults(FaultPlan::seeded(seed + 1, FAULTS_PER_MILLE).choosing(Fault::ALL));
    let shop = Shop {
        stripe_url: stripe.base_url(),
        twoc2p_url: twoc2p.base_url(),
    };
    println!("{ORDERS} orders, {CONCURRENCY} at a time, {FAULTS_PER_MILLE} faults in 1000 requests, seed {seed}\n");

    println!("1. The shop runs, and is killed half way.");
    let (first_half, path) = (shop.clone(), journal.clone());
    std::thread::spawn(move || first_half.run_and_die(&path, ORDERS / 2))
        .join()
        .map_err(|_| "the shop panicked")??;

    println!("2. It starts again on the same journal and runs its job again, all of it, from the first order.");
    let payments = shop.payments(&journal)?;
    charge_all(&payments, &AtomicUsize::new(0), ORDERS).await;

    println!("3. What is still open is asked about, and sent again with the same key where that is safe.");
    let rounds = resolve_all(&payments).await?;
    println!("   {rounds} rounds\n");

    let report = Report::new(&payments, &bank).await?;
    println!("{:<40}{:>10}{:>10}", "", "stripe", "2c2p");
    let rows: [(&str, Counts); 4] = [
        ("requests that could move money", |it| !is_inquiry(it)),
        ("of these executed, answer lost", |it| {
            it.fault.is_some_and(Fault::has_effect)
        }),
        ("of these lost or refused before", |it| {
            it.fault.is_some_and(|fault| !fault.has_effect())
        }),
        ("inquiries", is_inquiry),
    ];
    for (what, counts) in rows {
        let count = |requests: Vec<LoggedRequest>| requests.iter().filter(|it| counts(it)).count();
        println!(
            "{what:<40}{:>10}{:>10}",
            count(stripe.requests()),
            count(twoc2p.requests())
        );
    }
    report.print();
    payments.shutdown().await;
    Ok(if report.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What the shop knows: where its gateways are.
#[derive(Clone)]
struct Shop {
    stripe_url: String,
    twoc2p_url: String,
}

impl Shop {
    fn payments(&self, journal: &Path) -> Result<Payments, Failure> {
        let stripe = Stripe::builder("sk_test_quickstart")
            .base_url(&self.stripe_url)
            .build()?;
        let twoc2p = TwoC2p::builder("TESTM01", MERCHANT_SECRET)
            .base_url(&self.twoc2p_url)
            .build()?;
        Ok(Payments::builder()
            .namespace("quick-start/test")
            .gateway(Arc::new(stripe))
            .gateway(Arc::new(twoc2p))
            .journal(Arc::new(SqliteJournal::open(journal)?))
            // A real shop takes the default: 15 seconds an attempt, 45 in all.
            .policy(RetryPolicy {
                base: Duration::from_millis(20),
                cap: Duration::from_millis(100),
                attempt_timeout: Duration::from_millis(400),
                deadline: Duration::from_secs(3),
                ..RetryPolicy::default()
            })
            .lease_margin(Duration::from_millis(500))
            .inquiries(500, 500)
            .build()?)
    }

    /// Runs in a runtime of its own and drops it, with everything in flight, once `enough` orders are through.
    fn run_and_die(&self, journal: &Path, enough: usize) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let payments = self.payments_in(&runtime, journal)?;
        let through = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&through);
        runtime.spawn(async move { charge_all(&payments, &counter, ORDERS).await });
        while through.load(Ordering::Relaxed) < enough {
            std::thread::sleep(Duration::from_millis(5));
        }
        runtime.shutdown_background();
        println!("   killed after {enough} orders, with others in flight");
        Ok(())
    }

    fn payments_in(&self, runtime: &tokio::runtime::Runtime, journal: &Path) -> Result<Payments, Failure> {
        let _inside = runtime.enter();
        self.payments(journal)
    }
}

fn order(number: usize) -> Result<Operation, Failure> {
    let reference = format!("order-{number}");
    Ok(if number.is_multiple_of(2) {
        // Each tenth order at Stripe meets a card that is declined.
        let card = if number.is_multiple_of(20) {
            "pm_card_chargeDeclined"
        } else {
            "pm_card_visa"
        };
        Operation::charge(reference, Money::parse("20.00", Currency::USD)?)?
            .with(StripeOptions::payment_method(card))
            .through("stripe")
    } else {
        Operation::charge(reference, Money::parse("2000.00", Currency::THB)?)?.through("2c2p")
    })
}

/// The application's job: charge every order. It does not know which ones it has charged before, and need not.
async fn charge_all(payments: &Payments, through: &AtomicUsize, orders: usize) {
    let mut under_way = JoinSet::new();
    for number in 0..orders {
        if under_way.len() >= CONCURRENCY {
            under_way.join_next().await;
            progress(through);
        }
        let payments = payments.clone();
        under_way.spawn(async move {
            if let Err(error) = charge(&payments, number).await {
                println!("   order-{number}: {error}");
            }
        });
    }
    while under_way.join_next().await.is_some() {
        progress(through);
    }
}

async fn charge(payments: &Payments, number: usize) -> Result<(), Failure> {
    let _looked_at_later = payments.execute(&order(number)?).await?;
    Ok(())
}

fn progress(through: &AtomicUsize) {
    let done = through.fetch_add(1, Ordering::Relaxed) + 1;
    if done.is_multiple_of(25) {
        println!("   {done} orders through");
    }
}

/// Runs the job again for what is open, until nothing is. Each call asks first, and sends again, with the same key,
/// only where that is safe. In production the reconciler does the asking, on its own schedule.
async fn resolve_all(payments: &Payments) -> Result<usize, Failure> {
    for round in 0..ROUNDS {
        let open = payments.unresolved(ORDERS).await?;
        if open.is_empty() {
            return Ok(round);
        }
        println!("   {} open", open.len());
        let mut under_way = JoinSet::new();
        for record in open {
            let number = record.reference().as_str().trim_start_matches("order-").parse()?;
            let payments = payments.clone();
            under_way.spawn(async move { charge(&payments, number).await });
        }
        while let Some(done) = under_way.join_next().await {
            if let Err(error) = done? {
                println!("   nothing was executed, the next round tries again: {error}");
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(ROUNDS)
}

/// The journal's view of each order beside the bank's.
struct Report {
    outcomes: BTreeMap<&'static str, usize>,
    moved_twice: usize,
    moved_unknown_to_us: usize,
    claimed_but_not_moved: usize,
    open: usize,
    retries: u32,
}

impl Report {
    async fn new(payments: &Payments, bank: &Bank) -> Result<Self, Failure> {
        let mut report = Self {
            outcomes: BTreeMap::new(),
            moved_twice: 0,
            moved_unknown_to_us: 0,
            claimed_but_not_moved: 0,
            open: 0,
            retries: 0,
        };
        for number in 0..ORDERS {
            let order = order(number)?;
            let key = payments.key(&order);
            let outcome = payments.look_up(key).await?;
            let word = outcome.as_ref().map_or("never sent", Outcome::as_str);
            *report.outcomes.entry(word).or_default() += 1;
            let moved = bank.charged(&key.to_string());
            let succeeded = matches!(outcome, Some(Outcome::Succeeded(_)));
            report.moved_twice += usize::from(moved > 1);
            report.moved_unknown_to_us += usize::from(moved > 0 && !succeeded);
            report.claimed_but_not_moved += usize::from(moved == 0 && succeeded);
            report.open += usize::from(outcome.is_none_or(|outcome| !outcome.is_settled()));
            let sends = payments.history(key).await?.iter().map(|line| line.sends).max();
            report.retries += sends.unwrap_or(1).saturating_sub(1);
        }
        Ok(report)
    }

    fn print(&self) {
        println!(
            "\n{:<40}{:>10}",
            "sends that were repeated, with their key", self.retries
        );
        for (outcome, orders) in &self.outcomes {
            println!("{:<40}{orders:>10}", format!("orders {outcome}"));
        }
        println!("{:<40}{:>10}", "orders still open", self.open);
        println!();
        println!("{:<40}{:>10}", "money moved twice", self.moved_twice);
        println!(
            "{:<40}{:>10}",
            "money moved without our knowing", self.moved_unknown_to_us
        );
        println!(
            "{:<40}{:>10}",
            "success claimed, no money moved", self.claimed_but_not_moved
        );
        println!(
            "\n{}",
            if self.is_good() {
                "The bank agrees."
            } else {
                "THE BANK DISAGREES."
            }
        );
    }

    fn is_good(&self) -> bool {
        self.moved_twice + self.moved_unknown_to_us + self.claimed_but_not_moved + self.open == 0
    }
}

/// A few orders to a real sandbox of Stripe. There is no bank to judge: the outcomes are printed.
async fn sandbox(url: &str) -> Result<ExitCode, Failure> {
    let key = std::env::var("PAYONCE_API_KEY").map_err(|_| "put the sandbox key into PAYONCE_API_KEY")?;
    let folder = tempfile::tempdir()?;
    let payments = Payments::builder()
        .namespace("quick-start/sandbox")
        .gateway(Arc::new(Stripe::builder(key).base_url(url).build()?) as Arc<dyn Gateway>)
        .journal(Arc::new(SqliteJournal::open(folder.path().join("journal.sqlite"))?))
        .build()?;
    // The journal is a new one each time, so the orders must be new ones too.
    let run = std::process::id();
    for number in 0..5 {
        let reference = format!("quick-start-{run}-{number}");
        let order = Operation::charge(reference, Money::parse("20.00", Currency::USD)?)?
            .with(StripeOptions::payment_method("pm_card_visa"));
        let outcome = payments.execute(&order).await?;
        let again = payments.execute(&order).await?;
        println!(
            "{} {} {}: {}, again: {}",
            OperationKind::Charge,
            order.reference(),
            payments.key(&order),
            outcome.as_str(),
            again.as_str()
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn is_inquiry(request: &LoggedRequest) -> bool {
    request.method == "GET" || request.path.contains("paymentInquiry")
}

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}
