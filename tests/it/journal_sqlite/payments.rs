//! Payments on a journal that cannot be written, and on one that is opened again after weeks.

use super::{bounded, folder};
use crate::shop::{Shop, assert_is, charge};
use payonce::error::Error;
use payonce::journal::sqlite::SqliteJournal;
use payonce::outcome::{Outcome, UnknownReason};
use payonce::reconcile::Reconciler;
use payonce::testing::MockGateway;
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn shop(path: &Path, gateway: MockGateway) -> Shop {
    let journal = SqliteJournal::builder()
        .busy_timeout(Duration::from_millis(50))
        .open(path)
        .unwrap();
    Shop::on(Arc::new(journal), gateway, |builder| builder)
}

fn hold(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn c77_without_a_written_intent_nothing_is_sent() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let shop = shop(&path, MockGateway::new());
    shop.gateway.succeeds("order-7001");
    let other = hold(&path);
    let error = bounded(shop.payments.execute(&charge("order-7001"))).await.unwrap_err();
    assert!(matches!(error, Error::Journal(_)) && error.is_retryable(), "{error:?}");
    assert!(error.to_string().contains("nothing was sent"), "{error}");
    assert!(
        bounded(Reconciler::new(shop.payments.clone()).run_once())
            .await
            .is_err()
    );
    assert_eq!(shop.gateway.sends().len(), 0);

    drop(other);
    let outcome = bounded(shop.payments.execute(&charge("order-7001"))).await.unwrap();
    assert_is(&outcome, "succeeded");
    assert_eq!(shop.bank().charged("order-7001"), 1);
}

#[tokio::test]
async fn c77_a_result_that_cannot_be_written_is_unknown_and_is_found_again() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let shop = shop(&path, MockGateway::new());
    let answer = shop.gateway.slow("order-7001");
    let payments = shop.payments.clone();
    let call = tokio::spawn(async move { payments.execute(&charge("order-7001")).await });
    // The request is on its way when somebody takes the file.
    bounded(async {
        while shop.gateway.sends().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let other = hold(&path);
    answer.release();
    let Outcome::Unknown(unknown) = bounded(call).await.unwrap().unwrap() else {
        panic!("the journal was locked");
    };
    let key = shop.payments.key(&charge("order-7001"));
    assert_eq!(unknown.reason, UnknownReason::NotRecorded);
    assert!(unknown.detail.contains(&key.to_string()), "{}", unknown.detail);

    drop(other);
    shop.clock.advance(Duration::from_secs(600));
    let round = bounded(Reconciler::new(shop.payments.clone()).run_once())
        .await
        .unwrap();
    assert_eq!((round.looked_at, round.settled), (1, 1));
    let outcome = bounded(shop.payments.execute(&charge("order-7001"))).await.unwrap();
    assert_is(&outcome, "succeeded");
    assert_eq!((shop.gateway.sends().len(), shop.bank().charged("order-7001")), (1, 1));
}

#[tokio::test]
async fn c12_a_finished_operation_is_finished_for_later_processes_too() {
    let folder = folder();
    let path = folder.path().join("journal.sqlite3");
    let first = shop(&path, MockGateway::new());
    first.gateway.succeeds("order-7001");
    let outcome = bounded(first.payments.execute(&charge("order-7001"))).await.unwrap();
    assert_is(&outcome, "succeeded");
    let gateway = first.gateway.clone();
    drop(first);

    let later = shop(&path, gateway);
    later.clock.advance(Duration::from_secs(40 * 24 * 3600));
    let Outcome::Succeeded(succeeded) = bounded(later.payments.execute(&charge("order-7001"))).await.unwrap() else {
        panic!("it had succeeded");
    };
    assert!(succeeded.evidence.replayed);
    assert_eq!((later.gateway.sends().len(), later.gateway.inquiries().len()), (1, 0));
}
