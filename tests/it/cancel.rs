//! Cancelling by any means: one refund where the void came too late, and none before that is known.

use crate::scripted::Scripted;
use crate::shop::{assert_is, usd};
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::Inquiry;
use payonce::operation::{GatewayRef, Operation, OperationKind, Target};
use payonce::outcome::{Failed, FailureCategory, Outcome, Succeeded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn void() -> Operation {
    Operation::void("void-1", Target::Gateway(GatewayRef::new("pi_1"))).unwrap()
}

fn settled(amount: Option<&str>) -> Outcome {
    let mut failed = Failed::new(FailureCategory::Settled);
    failed.settled = amount.map(usd);
    Outcome::Failed(failed)
}

/// Voids come too late, and refunds succeed.
fn too_late(amount: Option<&'static str>) -> Arc<Scripted> {
    Arc::new(Scripted::new(
        move |instruction| match instruction.operation().kind() {
            OperationKind::Void => Ok(settled(amount)),
            _ => Ok(Outcome::Succeeded(Succeeded::new(instruction.operation().amount()))),
        },
        |_| Ok(Inquiry::Absent { consistent: false }),
    ))
}

fn kinds(gateway: &Scripted) -> Vec<OperationKind> {
    gateway.sent().iter().map(Operation::kind).collect()
}

#[tokio::test]
async fn a_void_alone_never_refunds() {
    let gateway = too_late(Some("15.00"));
    let outcome = gateway.shop().execute(&void()).await.unwrap();
    assert_is(&outcome, "failed");
    assert_eq!(kinds(&gateway), [OperationKind::Void]);
}

#[tokio::test]
async fn what_was_settled_meanwhile_is_given_back_once_however_often_it_is_cancelled() {
    let gateway = too_late(Some("15.00"));
    let payments = gateway.shop();
    for _ in 0..3 {
        assert_is(&payments.cancel(&void()).await.unwrap(), "succeeded");
    }
    assert_eq!(kinds(&gateway), [OperationKind::Void, OperationKind::Refund]);
    let sent = gateway.sent();
    assert_eq!(sent[1].amount(), Some(usd("15.00")), "what was settled");
    assert_eq!(sent[1].reference(), sent[0].reference(), "linked by its reference");
    assert_ne!(
        payments.key(&sent[1]),
        payments.key(&sent[0]),
        "with an identity of its own"
    );
}

#[tokio::test]
async fn a_void_that_worked_or_has_another_reason_is_not_followed_by_a_refund() {
    for outcome in [
        Outcome::Succeeded(Succeeded::new(None)),
        Outcome::Failed(Failed::new(FailureCategory::Declined)),
        settled(None),
    ] {
        let word = outcome.as_str();
        let gateway = Arc::new(Scripted::new(
            move |_| Ok(outcome.clone()),
            |_| Ok(Inquiry::Absent { consistent: false }),
        ));
        assert_is(&gateway.shop().cancel(&void()).await.unwrap(), word);
        assert_eq!(kinds(&gateway), [OperationKind::Void]);
    }
}

#[tokio::test]
async fn nothing_is_refunded_while_nobody_knows_what_became_of_the_void() {
    let answers = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&answers);
    let gateway = Arc::new(Scripted::new(
        |instruction| match instruction.operation().kind() {
            OperationKind::Void => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
            _ => Ok(Outcome::Succeeded(Succeeded::new(instruction.operation().amount()))),
        },
        move |_| match now.load(Ordering::SeqCst) {
            true => Ok(Inquiry::Found(settled(Some("20.00")))),
            false => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer either")),
        },
    ));
    let payments = gateway.shop();
    assert_is(&payments.cancel(&void()).await.unwrap(), "unknown");
    assert!(!kinds(&gateway).contains(&OperationKind::Refund));
    // The inquiry answers in the end: now it is known, and one refund follows.
    answers.store(true, Ordering::SeqCst);
    assert_is(&payments.resolve(payments.key(&void())).await.unwrap(), "failed");
    assert!(!kinds(&gateway).contains(&OperationKind::Refund), "a look never sends");
    for _ in 0..2 {
        assert_is(&payments.cancel(&void()).await.unwrap(), "succeeded");
    }
    let refunds = kinds(&gateway)
        .into_iter()
        .filter(|kind| *kind == OperationKind::Refund);
    assert_eq!(refunds.count(), 1);
}

#[tokio::test]
async fn only_a_void_can_be_cancelled_by_any_means() {
    let gateway = too_late(Some("15.00"));
    let charge = Operation::charge("order-1", usd("20.00")).unwrap();
    let error = gateway.shop().cancel(&charge).await.unwrap_err();
    assert!(matches!(error, payonce::Error::Invalid(_)), "{error:?}");
    assert!(gateway.sent().is_empty());
}
