//! The journal cannot be written: what the callers of a payment, a notification and the reconciler are told.

use crate::puppet::Puppet;
use crate::shop::{NOW, Shop, assert_is, charge, usd};
use payonce::engine::Payments;
use payonce::error::Error;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::RawNotification;
use payonce::inbound::{InboundError, Intake};
use payonce::journal::sqlite::SqliteJournal;
use payonce::outcome::{Outcome, UnknownReason};
use payonce::reconcile::Reconciler;
use payonce::record::Recorded;
use payonce::testing::{ManualClock, MockGateway};
use rusqlite::Connection;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than anybody holds a lock here that is let go.
const PATIENT: Duration = Duration::from_secs(30);
const IMPATIENT: Duration = Duration::from_millis(50);

async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("took too long")
}

struct Till {
    shop: Shop,
    path: PathBuf,
    _folder: TempDir,
}

impl Till {
    /// A shop whose journal waits so long for others who hold its file.
    fn new(busy_timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite3");
        let journal = SqliteJournal::builder().busy_timeout(busy_timeout).open(&path).unwrap();
        Self {
            shop: Shop::on(Arc::new(journal), MockGateway::new(), |builder| builder),
            path,
            _folder: folder,
        }
    }

    fn notification(&self, word: &str, reference: &str) -> RawNotification {
        let key = self.shop.payments.key(&charge(reference));
        RawNotification::new(Vec::new(), format!("{word} {key}").into_bytes(), NOW)
    }

    /// Waits until so many requests have left.
    async fn sent(&self, times: usize) {
        bounded(async {
            while self.shop.gateway.sends().len() < times {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Another connection that writes and does not come to an end. It lets go when it is dropped.
fn hold(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.busy_timeout(PATIENT).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn c77_a_lock_that_is_let_go_in_time_only_delays() {
    let till = Till::new(PATIENT);
    till.shop.gateway.succeeds("order-7001");
    let lock = hold(&till.path);
    let payments = till.shop.payments.clone();
    let mut call = tokio::spawn(async move { payments.execute(&charge("order-7001")).await });
    let early = tokio::time::timeout(Duration::from_millis(200), &mut call).await;
    assert!(early.is_err(), "it did not wait for the lock");
    assert_eq!(
        till.shop.gateway.sends().len(),
        0,
        "nothing leaves before the intent is on disk"
    );
    drop(lock);
    assert_is(&bounded(call).await.unwrap().unwrap(), "succeeded");
    assert_eq!(till.shop.bank().charged("order-7001"), 1);
}

#[tokio::test]
async fn c77_while_the_lock_lasts_nothing_is_sent_nothing_acknowledged_and_nothing_lost() {
    let till = Till::new(IMPATIENT);
    let Shop {
        payments,
        gateway,
        clock,
        ..
    } = &till.shop;
    // One order waits for its payer, one lost its answer; then somebody takes the file.
    gateway.waits_for_payer("order-7002").succeeds("order-7001");
    assert_is(&payments.execute(&charge("order-7002")).await.unwrap(), "pending");
    gateway.pay("order-7002");
    gateway.answer_lost_after_effect("order-7003").inquiries_fail(9);
    gateway
        .answer_lost_after_effect("order-7003")
        .answer_lost_after_effect("order-7003");
    assert_is(&payments.execute(&charge("order-7003")).await.unwrap(), "unknown");
    gateway.inquiries_fail(0);
    clock.advance(Duration::from_secs(3600));
    let (sends, inquiries) = (gateway.sends().len(), gateway.inquiries().len());
    let reconciler = Reconciler::new(payments.clone());
    let paid = till.notification("succeeded", "order-7002");

    let lock = hold(&till.path);
    let error = bounded(payments.execute(&charge("order-7001"))).await.unwrap_err();
    assert!(
        matches!(&error, Error::Journal(cause) if cause.is_transient()),
        "{error:?}"
    );
    assert!(error.to_string().contains("nothing was sent"), "{error}");
    let refused = bounded(payments.notify("mock", &paid)).await.unwrap_err();
    assert!(matches!(refused, InboundError::TryAgain(_)), "{refused:?}");
    let claim = bounded(reconciler.run_once()).await.unwrap_err();
    assert!(claim.is_transient(), "{claim:?}");
    assert_eq!((gateway.sends().len(), gateway.inquiries().len()), (sends, inquiries));
    assert_eq!(till.shop.bank().charged("order-7001"), 0);
    drop(lock);

    // The gateway delivers again, the worker comes round again, the customer presses again.
    let intake = bounded(payments.notify("mock", &paid)).await.unwrap();
    let Intake::Taken { outcome, recorded, .. } = intake else {
        panic!("{intake:?}");
    };
    assert_is(&outcome, "succeeded");
    assert_eq!(recorded, Recorded::First);
    let round = bounded(reconciler.run_once()).await.unwrap();
    assert_eq!((round.looked_at, round.settled), (1, 1));
    assert_is(
        &bounded(payments.execute(&charge("order-7001"))).await.unwrap(),
        "succeeded",
    );
    for reference in ["order-7001", "order-7002", "order-7003"] {
        assert_eq!(till.shop.bank().charged(reference), 1, "{reference}");
    }
    assert!(payments.unresolved(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn c77_a_result_that_cannot_be_written_is_found_by_the_next_call() {
    let till = Till::new(IMPATIENT);
    let Shop { payments, gateway, .. } = &till.shop;
    let answer = gateway.slow("order-7001");
    let call = tokio::spawn({
        let payments = payments.clone();
        async move { payments.execute(&charge("order-7001")).await }
    });
    till.sent(1).await;
    let lock = hold(&till.path);
    answer.release();
    let outcome = bounded(call).await.unwrap().unwrap();
    let Outcome::Unknown(unknown) = &outcome else {
        panic!("{outcome:?}");
    };
    let key = payments.key(&charge("order-7001"));
    assert_eq!(unknown.reason, UnknownReason::NotRecorded);
    assert!(unknown.detail.contains(&key.to_string()), "{}", unknown.detail);

    // The money has moved; as long as that cannot be written, nobody says anything else and nobody sends.
    let again = bounded(payments.execute(&charge("order-7001"))).await;
    assert!(
        !matches!(&again, Ok(Outcome::Succeeded(_) | Outcome::Failed(_))),
        "{again:?}"
    );
    assert_eq!(gateway.sends().len(), 1);
    drop(lock);

    let outcome = bounded(payments.execute(&charge("order-7001"))).await.unwrap();
    assert_is(&outcome, "succeeded");
    assert_is(&payments.look_up(key).await.unwrap().unwrap(), "succeeded");
    assert_eq!((gateway.sends().len(), till.shop.bank().charged("order-7001")), (1, 1));
}

/// The file is taken while the first request is on its way, and the answer asks for a second one.
#[tokio::test]
async fn c77_a_second_send_that_cannot_be_written_does_not_leave() {
    for (failure, says_nothing_was_executed) in [
        (Failure::not_executed(FailureKind::Throttled, "too many requests"), true),
        (
            Failure::maybe_executed(FailureKind::Timeout, "no answer in time"),
            false,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite3");
        let journal = SqliteJournal::builder().busy_timeout(IMPATIENT).open(&path).unwrap();
        let puppet = Puppet::default();
        let payments = Payments::builder()
            .namespace("shop1")
            .gateway(Arc::new(puppet.clone()))
            .journal(Arc::new(journal))
            .clock(Arc::new(ManualClock::at(NOW)))
            .build()
            .unwrap();
        let pay = || {
            let payments = payments.clone();
            tokio::spawn(async move { payments.execute(&charge("order-7001")).await })
        };
        let call = pay();
        puppet.sent(1).await;
        let lock = hold(&path);
        puppet.answer(Err(failure));
        match bounded(call).await.unwrap() {
            Err(Error::Journal(_)) => assert!(says_nothing_was_executed),
            Ok(Outcome::Unknown(unknown)) => {
                assert!(!says_nothing_was_executed);
                assert_eq!(unknown.reason, UnknownReason::NotRecorded);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(puppet.sends(), 1);
        drop(lock);

        // Under the same key, once it can be written down.
        let call = pay();
        puppet.sent(2).await;
        puppet.answer(Ok(Puppet::paid("pi_1", usd("20.00"))));
        assert_is(&bounded(call).await.unwrap().unwrap(), "succeeded");
        let history = payments.history(payments.key(&charge("order-7001"))).await.unwrap();
        assert_eq!(history.last().unwrap().sends, 2);
    }
}
