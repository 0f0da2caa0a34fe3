//! A process is killed (SIGKILL) before and after every commit, send and answer of a job; then the job runs again, and the
//! reconciler. The child is this test binary, started again; gateways and bank are the parent's, and outlive it.

mod job;
mod points;

use crate::stores::{self, Store};
use crate::wired::{MERCHANT, MERCHANT_SECRET, bounded};
use job::{Doors, Job};
use payonce::clock::{Clock, SystemClock};
use payonce::operation::OperationKind;
use payonce::outcome::Outcome;
use payonce::reconcile::Reconciler;
use payonce::testing::server::{FakeStripe, FakeTwoC2p};
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use points::{POINTS, Point};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CHILD: &str = "crash::child_that_does_the_job";
const DOORS: &str = "PAYONCE_CRASH_DOORS";
const POINT: &str = "PAYONCE_CRASH_POINT";
const PASS: &str = "PAYONCE_CRASH_PASS";

/// Longer than a lease lasts: 45 s for the call, 15 s for its last exchange, 30 s of margin.
const LEASE: Duration = Duration::from_secs(120);

/// The two gateways, the bank behind both, and a journal.
struct Town {
    stripe: FakeStripe,
    twoc2p: FakeTwoC2p,
    bank: Bank,
    doors: Doors,
    _store: Store,
}

impl Town {
    /// With a payment at 2C2P that is settled, for the job to give a part of it back.
    async fn new(store: Store) -> Self {
        let bank = Bank::new();
        let stripe = FakeStripe::start(bank.clone());
        let twoc2p = FakeTwoC2p::start(bank.clone(), MERCHANT, MERCHANT_SECRET);
        let doors = Doors {
            journal: store.line.clone(),
            stripe: stripe.base_url(),
            twoc2p: twoc2p.base_url(),
            maintenance: twoc2p.maintenance_url(),
        };
        let town = Self {
            stripe,
            twoc2p,
            bank,
            doors,
            _store: store,
        };
        let job = Job::new(&town.doors, Arc::new(SystemClock), None).await;
        let paid = bounded(job.payments.execute(&job.page_order())).await.unwrap();
        assert!(matches!(paid, Outcome::Pending(_)), "{paid:?}");
        assert!(town.twoc2p.pay("INV7001") && town.twoc2p.settle("INV7001"));
        let key = job.payments.key(&job.page_order());
        let paid = bounded(job.payments.resolve(key)).await.unwrap();
        assert!(matches!(paid, Outcome::Succeeded(_)), "{paid:?}");
        town
    }

    fn start_child(&self, point: Point, pass: usize) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", CHILD])
            .env(DOORS, self.doors.to_line())
            .env(POINT, point.as_str())
            .env(PASS, pass.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Runs the job in a child that dies at the `pass`-th passing of `point`. `false` when it came to its end instead.
    async fn job_dies_at(&self, point: Point, pass: usize) -> bool {
        let mut child = self.start_child(point, pass);
        // Not on the thread that serves it.
        let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap().success());
        !bounded(waiting).await.unwrap()
    }

    /// Restarted: the job runs again, the reconciler twice, and everything agrees with the bank.
    #[track_caller]
    fn restarted(&self, context: &str) -> impl Future<Output = ()> {
        let context = context.to_owned();
        async move {
            let clock = Arc::new(ManualClock::at(SystemClock.now().after(LEASE)));
            let job = Job::new(&self.doors, Arc::clone(&clock) as _, None).await;
            let words = bounded(job.run()).await;
            assert_eq!(words, ["succeeded", "succeeded", "succeeded"], "{context}");
            let reconciler = Reconciler::new(job.payments.clone());
            for _ in 0..2 {
                bounded(reconciler.run_once()).await.unwrap();
                clock.advance(LEASE);
            }
            let asked = (self.stripe.requests().len(), self.twoc2p.requests().len());
            bounded(reconciler.run_once()).await.unwrap();
            let again = (self.stripe.requests().len(), self.twoc2p.requests().len());
            assert_eq!(asked, again, "{context}: nothing is left to be asked");
            let bank = &self.bank;
            assert_eq!(bank.charged("order-1"), 1, "{context}: {bank:?}");
            assert_eq!(bank.refunded("refund-1"), 1, "{context}: {bank:?}");
            assert_eq!(
                bank.total(OperationKind::Refund, "INV7001"),
                3000,
                "{context}: {bank:?}"
            );
            assert!(bank.moved_twice().is_empty(), "{context}: {bank:?}");
        }
    }
}

#[tokio::test]
async fn child_that_does_the_job() {
    let Ok(doors) = std::env::var(DOORS) else { return };
    let point = Point::parse(&std::env::var(POINT).unwrap()).unwrap();
    let pass = std::env::var(PASS).unwrap().parse().unwrap();
    let job = Job::new(&Doors::parse(&doors), Arc::new(SystemClock), Some((point, pass))).await;
    let _whatever_is_known = bounded(job.run()).await;
}

/// Every point at every passing, until the job comes to its end without passing it once more.
#[tokio::test]
async fn c76_a_job_that_is_killed_at_any_step_takes_effect_once() {
    for kind in stores::kinds() {
        let mut deaths = 0;
        for point in POINTS {
            for pass in 1..=20 {
                let town = Town::new(stores::empty(kind).await).await;
                if !town.job_dies_at(point, pass).await {
                    assert!(pass > 1, "{point:?} is never passed");
                    break;
                }
                deaths += 1;
                town.restarted(&format!("{kind}, {point:?}, pass {pass}")).await;
            }
        }
        assert!(deaths >= 20, "only {deaths} deaths");
    }
}

/// The same on a network that loses answers: which ones, a seed says.
#[tokio::test]
async fn a_job_that_is_killed_while_answers_are_lost_takes_effect_once() {
    let seeds = std::env::var("PAYONCE_CRASH_SEEDS").map_or(24, |text| text.parse().unwrap());
    let mut deaths = 0;
    let kinds = stores::kinds();
    for (seed, kind) in (0..seeds).zip(kinds.iter().cycle()) {
        let point = POINTS[usize::try_from(seed).unwrap() % POINTS.len()];
        let pass = usize::try_from(seed).unwrap() / POINTS.len() % 5 + 1;
        let town = Town::new(stores::empty(kind).await).await;
        let plan = || FaultPlan::seeded(seed, 400).choosing(LOSSES);
        town.stripe.set_faults(plan());
        town.twoc2p.set_faults(plan());
        deaths += usize::from(town.job_dies_at(point, pass).await);
        town.stripe.set_faults(FaultPlan::none());
        town.twoc2p.set_faults(FaultPlan::none());
        town.restarted(&format!("{kind}, seed {seed}, {point:?}, pass {pass}"))
            .await;
    }
    assert!(deaths > 0);
}

/// What costs no patience.
const LOSSES: [Fault; 6] = [
    Fault::CloseAfterReading,
    Fault::CloseAfterEffect,
    Fault::ResetAfterEffect,
    Fault::HalfBodyAfterEffect,
    Fault::HtmlAfterEffect,
    Fault::ErrorAfterEffect,
];

/// Between the sending of a request and its answer, which is where no point of ours can be: the gateway has executed it
/// and says nothing.
#[tokio::test]
async fn c76_a_job_that_is_killed_while_it_waits_for_an_answer_takes_effect_once() {
    let stripe = ["POST /v1/payment_intents", "POST /v1/refunds"];
    let routes = stripe.into_iter().chain(["POST /PaymentAction/2.0/action"]);
    let kinds = stores::kinds();
    for (route, kind) in routes.flat_map(|route| kinds.iter().map(move |kind| (route, kind))) {
        let town = Town::new(stores::empty(kind).await).await;
        let plan = || FaultPlan::none().on(route, Fault::StallAfterEffect);
        town.stripe.set_faults(plan());
        // The look before a refund at 2C2P goes to the same address.
        let plan = FaultPlan::none().on(route, None).on(route, Fault::StallAfterEffect);
        town.twoc2p.set_faults(plan);
        let before = town.bank.movements().len();
        let expected = before + stripe.iter().position(|other| *other == route).unwrap_or(2) + 1;
        let mut child = town.start_child(Point::BeforeReserve, usize::MAX);
        bounded(async {
            while town.bank.movements().len() < expected {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        child.kill().unwrap();
        child.wait().unwrap();
        town.restarted(route).await;
    }
}
