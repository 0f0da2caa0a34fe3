//! Several workers in several processes sweep the same journal.

use crate::shop::usd;
use crate::stores;
use crate::wired::bounded;
use payonce::Payments;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use payonce::reconcile::Reconciler;
use payonce::retry::RetryPolicy;
use payonce::testing::server::FakeStripe;
use payonce::testing::{Bank, Fault, FaultPlan};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

const CHILD: &str = "cases::sweeps::child_that_sweeps";
const STORE: &str = "PAYONCE_SWEEP_STORE";
const GATEWAY: &str = "PAYONCE_SWEEP_GATEWAY";

const CREATE: &str = "POST /v1/payment_intents";
const WORKERS: usize = 4;
const OPERATIONS: usize = 50;

async fn payments(store: &str, url: &str) -> Payments {
    let stripe = Stripe::builder("sk_test_TESTONLYsweep0001")
        .base_url(url)
        .build()
        .unwrap();
    Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(stripe))
        .journal(stores::open(store).await)
        .policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
        .inquiries(10_000, 10_000)
        .build()
        .unwrap()
}

fn order(number: usize) -> Operation {
    let charge = Operation::charge(format!("order-{number}"), usd("20.00")).unwrap();
    charge.with(StripeOptions::payment_method("pm_card_visa"))
}

/// So many workers, one operation at a time each, until the sender is gone.
async fn sweep(payments: &Payments, until: &watch::Receiver<()>) {
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let worker = Reconciler::new(payments.clone())
            .batch(1)
            .pause(Duration::from_millis(5));
        let mut until = until.clone();
        workers.spawn(async move {
            worker
                .run_until(async move { while until.changed().await.is_ok() {} })
                .await
        });
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test]
async fn child_that_sweeps() {
    let Ok(store) = std::env::var(STORE) else { return };
    let payments = payments(&store, &std::env::var(GATEWAY).unwrap()).await;
    let (running, until) = watch::channel(());
    // Until the parent closes the pipe, or dies.
    let parent = tokio::task::spawn_blocking(move || {
        let _ = std::io::read_to_string(std::io::stdin());
        drop(running);
    });
    bounded(sweep(&payments, &until)).await;
    parent.await.unwrap();
}

#[tokio::test]
async fn c78_of_eight_workers_in_two_processes_one_settles_each_operation() {
    for kind in stores::kinds() {
        let store = stores::empty(kind).await;
        let fake = FakeStripe::start(Bank::new());
        let here = payments(&store.line, &fake.base_url()).await;
        let mut unknown = 0;
        for number in 0..OPERATIONS {
            // The charge is made and its answer lost, and so is the first inquiry.
            let plan = FaultPlan::none()
                .on(CREATE, Fault::CloseAfterEffect)
                .on("GET /v1/payment_intents", Fault::CloseAfterReading);
            fake.set_faults(plan);
            let outcome = here.execute(&order(number)).await.unwrap();
            unknown += usize::from(matches!(outcome, Outcome::Unknown(_)));
        }
        assert_eq!(unknown, OPERATIONS);
        fake.set_faults(FaultPlan::none());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD])
            .env(STORE, &store.line)
            .env(GATEWAY, fake.base_url())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (running, until) = watch::channel(());
        let sweeping = {
            let here = here.clone();
            tokio::spawn(async move { sweep(&here, &until).await })
        };
        bounded(async {
            while !here.unresolved(1).await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        drop(running);
        drop(child.stdin.take());
        bounded(sweeping).await.unwrap();
        let ended = tokio::task::spawn_blocking(move || child.wait().unwrap().success());
        assert!(bounded(ended).await.unwrap(), "no error reached the other process");
        for number in 0..OPERATIONS {
            let history = here.history(here.key(&order(number))).await.unwrap();
            let settled = history
                .iter()
                .filter(|line| line.from == "unknown" && line.to == "succeeded");
            assert_eq!(settled.count(), 1, "order-{number}: {history:?}");
            assert_eq!(history.last().unwrap().to, "succeeded", "nobody came after");
            assert_eq!(fake.bank().charged(&format!("order-{number}")), 1);
        }
        assert_eq!(fake.count(CREATE), OPERATIONS, "the workers never send");
    }
}
