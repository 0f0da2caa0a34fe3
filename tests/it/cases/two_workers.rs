//! Answers that reach several workers in an awkward order.

use crate::puppet::Puppet;
use crate::shop::{NOW, assert_is, charge, usd};
use payonce::clock::Clock;
use payonce::engine::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::journal::{Journal, MemoryJournal};
use payonce::outcome::{Failed, FailureCategory, Outcome};
use payonce::testing::ManualClock;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

struct Workers {
    puppet: Puppet,
    clock: Arc<ManualClock>,
    journal: Arc<dyn Journal>,
}

impl Workers {
    fn new() -> Self {
        Self {
            puppet: Puppet::default(),
            clock: Arc::new(ManualClock::at(NOW)),
            journal: Arc::new(MemoryJournal::new()),
        }
    }

    fn process(&self) -> Payments {
        Payments::builder()
            .namespace("shop1")
            .gateway(Arc::new(self.puppet.clone()))
            .journal(Arc::clone(&self.journal))
            .clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
            .build()
            .unwrap()
    }

    /// Starts the charge in a new process, as if the ones before were gone: their leases have ended.
    async fn start(&self, sends: usize) -> JoinHandle<Outcome> {
        self.clock.advance(Duration::from_secs(200));
        let payments = self.process();
        let call = tokio::spawn(async move { payments.execute(&charge("order-7001")).await.unwrap() });
        self.puppet.sent(sends).await;
        call
    }
}

fn still_running() -> Failure {
    Failure::maybe_executed(FailureKind::StillRunning, "the first request is still running").with_http_status(409)
}

#[tokio::test]
async fn c15_success_seen_first_and_409_later() {
    let workers = Workers::new();
    let first = workers.start(1).await;
    let second = workers.start(2).await;
    let third = workers.start(3).await;
    workers.puppet.answer(Ok(Puppet::paid("pi_1", usd("20.00"))));
    assert_is(&first.await.unwrap(), "succeeded");
    workers.puppet.answer(Err(still_running()));
    workers.puppet.answer(Err(still_running()));
    for late in [second, third] {
        let outcome = late.await.unwrap();
        assert_is(&outcome, "succeeded");
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    }
    assert_eq!(workers.puppet.sends(), 3, "no further request after the 200");
}

#[tokio::test]
async fn c79_the_second_worker_does_not_undo_the_first() {
    let workers = Workers::new();
    let paused = workers.start(1).await;
    let second = workers.start(2).await;
    workers.puppet.answer_last(Ok(Puppet::paid("pi_1", usd("20.00"))));
    assert_is(&second.await.unwrap(), "succeeded");
    let payments = workers.process();
    let key = payments.key(&charge("order-7001"));
    let before = payments.history(key).await.unwrap().len();

    // It was paused with a copy from before, and gets an error that would mean nothing good.
    workers
        .puppet
        .answer(Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time")));
    let outcome = paused.await.unwrap();
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    assert_is(&payments.look_up(key).await.unwrap().unwrap(), "succeeded");
    let lines = payments.history(key).await.unwrap();
    assert!(lines[before..].iter().all(|line| line.to == "succeeded"), "{lines:?}");
    assert_eq!(workers.puppet.sends(), 2);
}

#[tokio::test]
async fn an_inquiry_that_an_answer_overtook_is_asked_again_and_undoes_nothing() {
    let workers = Workers::new();
    let call = workers.start(1).await;
    workers.clock.advance(Duration::from_secs(200));
    let (before, after) = (workers.puppet.next_inquiry(), workers.puppet.next_inquiry());
    let payments = workers.process();
    let key = payments.key(&charge("order-7001"));
    let asking = tokio::spawn(async move { payments.resolve(key).await.unwrap() });
    workers.puppet.asked(1).await;
    workers.puppet.answer(Ok(Puppet::paid("pi_1", usd("20.00"))));
    assert_is(&call.await.unwrap(), "succeeded");

    // What the gateway read before it took the money reaches us after it.
    before
        .send(Outcome::Failed(Failed::new(FailureCategory::Declined)))
        .unwrap();
    after.send(Puppet::paid("pi_1", usd("20.00"))).unwrap();
    assert_is(&asking.await.unwrap(), "succeeded");
    workers.puppet.asked(2).await;
    assert_is(&workers.process().look_up(key).await.unwrap().unwrap(), "succeeded");
}

#[tokio::test]
async fn two_payments_that_claim_one_operation_are_a_conflict_not_a_success() {
    let workers = Workers::new();
    let first = workers.start(1).await;
    let second = workers.start(2).await;
    workers.puppet.answer(Ok(Puppet::paid("pi_1", usd("20.00"))));
    assert_is(&first.await.unwrap(), "succeeded");
    workers.puppet.answer(Ok(Puppet::paid("pi_2", usd("20.00"))));
    assert_is(&second.await.unwrap(), "conflict");
}

#[tokio::test]
async fn an_answer_over_another_amount_is_a_conflict_that_shows_both() {
    let workers = Workers::new();
    let call = workers.start(1).await;
    workers.puppet.answer(Ok(Puppet::paid("pi_1", usd("21.00"))));
    let Outcome::Conflict(conflict) = call.await.unwrap() else {
        panic!("not a conflict")
    };
    assert_eq!(
        (conflict.expected, conflict.reported),
        (Some(usd("20.00")), Some(usd("21.00")))
    );
}
