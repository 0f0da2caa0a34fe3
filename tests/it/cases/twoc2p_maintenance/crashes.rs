//! A process dies at a step of a refund. The child is this test binary, started again; 2C2P and its bank are the
//! parent's, and outlive it.

use super::{ACTION, thb};
use crate::shop::assert_is;
use crate::wired::{MERCHANT, MERCHANT_SECRET, bounded};
use async_trait::async_trait;
use payonce::Payments;
use payonce::clock::{Clock, SystemClock};
use payonce::failure::Failure;
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p};
use payonce::journal::sqlite::SqliteJournal;
use payonce::operation::{Operation, OperationKind, Target};
use payonce::reconcile::Reconciler;
use payonce::testing::server::FakeTwoC2p;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use payonce::transport::{Http, Request, Response, Transport};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const JOURNAL: &str = "PAYONCE_CRASH_JOURNAL";
const URL: &str = "PAYONCE_CRASH_URL";
const STEP: &str = "PAYONCE_CRASH_STEP";
const CHILD: &str = "cases::twoc2p_maintenance::crashes::child_that_refunds";

/// Longer than a lease lasts: 45 s for the call, 15 s for its last exchange, 30 s of margin.
const LEASE: Duration = Duration::from_secs(120);

/// Where the child dies. Its first exchange is the look at the payment, its second the refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The intent is committed, and nothing has left.
    Prepared,
    /// The refund has been sent and made, and no answer has come.
    Sent,
    /// The answer is there, and not committed.
    Answered,
    /// It is committed.
    Committed,
}

const STEPS: [Step; 4] = [Step::Prepared, Step::Sent, Step::Answered, Step::Committed];

/// Ends the process, as a power cut does, at its step.
#[derive(Debug)]
struct Mortal {
    http: Http,
    step: Step,
    exchanges: AtomicUsize,
}

#[async_trait]
impl Transport for Mortal {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let nth = self.exchanges.fetch_add(1, Ordering::SeqCst);
        if self.step == Step::Prepared {
            std::process::abort();
        }
        let response = self.http.exchange(request).await;
        if self.step == Step::Answered && nth == 1 {
            std::process::abort();
        }
        response
    }
}

fn payments(path: &Path, url: &str, transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Payments {
    // Its keys are those of any fake.
    let keys = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
    let keys = MaintenanceKeys::new(keys.merchant_private_key(), keys.gateway_certificate()).unwrap();
    let account = TwoC2p::builder(MERCHANT, MERCHANT_SECRET)
        .base_url(format!("{url}/payment/4.3"))
        .maintenance_url(format!("{url}/PaymentAction/2.0/action"))
        .maintenance_keys(keys)
        .transport(transport)
        .clock(Arc::clone(&clock));
    Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(account.build().unwrap()))
        .journal(Arc::new(SqliteJournal::open(path).unwrap()))
        .clock(clock)
        .build()
        .unwrap()
}

fn charge() -> Operation {
    Operation::charge("INV7001", thb("100.00")).unwrap()
}

fn refund(payments: &Payments) -> Operation {
    Operation::refund("r-1", thb("30.00"), Target::Operation(payments.key(&charge()))).unwrap()
}

#[tokio::test]
async fn child_that_refunds() {
    let Some(path) = std::env::var_os(JOURNAL).map(PathBuf::from) else {
        return;
    };
    let step = std::env::var(STEP).unwrap();
    let step = STEPS
        .into_iter()
        .find(|candidate| format!("{candidate:?}") == step)
        .unwrap();
    let mortal = Mortal {
        http: Http::new().unwrap(),
        step,
        exchanges: AtomicUsize::new(0),
    };
    let payments = payments(
        &path,
        &std::env::var(URL).unwrap(),
        Arc::new(mortal),
        Arc::new(SystemClock),
    );
    assert_is(&payments.execute(&refund(&payments)).await.unwrap(), "succeeded");
}

fn start_child(path: &Path, url: &str, step: Step) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD])
        .env(JOURNAL, path)
        .env(URL, url)
        .env(STEP, format!("{step:?}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for the child's end without keeping the thread that serves it.
async fn ended(mut child: Child) -> bool {
    let waiting = tokio::task::spawn_blocking(move || child.wait().unwrap().success());
    bounded(waiting).await.unwrap()
}

#[tokio::test]
async fn c76_one_refund_whichever_step_the_process_dies_at() {
    for step in STEPS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite3");
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
        let url = twoc2p.base_url().replace("/payment/4.3", "");
        let clock = Arc::new(ManualClock::at(SystemClock.now()));
        let shop = payments(&path, &url, Arc::new(Http::new().unwrap()), Arc::clone(&clock) as _);
        assert_is(&shop.execute(&charge()).await.unwrap(), "pending");
        assert!(twoc2p.pay("INV7001") && twoc2p.settle("INV7001"));
        assert_is(&shop.resolve(shop.key(&charge())).await.unwrap(), "succeeded");

        if step == Step::Sent {
            let plan = FaultPlan::none().on(ACTION, None).on(ACTION, Fault::StallAfterEffect);
            twoc2p.set_faults(plan);
        }
        let mut child = start_child(&path, &url, step);
        if step == Step::Sent {
            bounded(async {
                while twoc2p.bank().refunded("INV7001") == 0 {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
            child.kill().unwrap();
        }
        assert_eq!(ended(child).await, step == Step::Committed, "{step:?}");
        let made = usize::from(step != Step::Prepared);
        assert_eq!(twoc2p.bank().refunded("INV7001"), made, "{step:?}");

        // Restarted: the job runs again, and the reconciler twice.
        clock.set(SystemClock.now().after(LEASE));
        assert_is(&bounded(shop.execute(&refund(&shop))).await.unwrap(), "succeeded");
        let reconciler = Reconciler::new(shop.clone());
        bounded(reconciler.run_once()).await.unwrap();
        let requests = twoc2p.requests().len();
        bounded(reconciler.run_once()).await.unwrap();
        assert_eq!(twoc2p.requests().len(), requests, "nothing is left to be asked");
        let bank = twoc2p.bank();
        assert_eq!(bank.refunded("INV7001"), 1, "{step:?}");
        assert_eq!(bank.total(OperationKind::Refund, "INV7001"), 3000, "{step:?}");
    }
}
