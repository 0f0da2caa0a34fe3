//! An inquiry that finds something like the operation, without its name on it: whose is it?

use crate::scripted::Scripted;
use crate::shop::{assert_is, usd};
use payonce::engine::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::Inquiry;
use payonce::operation::{GatewayRef, Operation, Target};
use payonce::outcome::{Outcome, Succeeded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn refund(reference: &str, amount: &str, payment: &str) -> Operation {
    Operation::refund(reference, usd(amount), Target::Gateway(GatewayRef::new(payment))).unwrap()
}

fn given_back(id: &str, amount: &str) -> Outcome {
    let mut succeeded = Succeeded::new(Some(usd(amount)));
    succeeded.gateway_ref = Some(GatewayRef::new(id));
    Outcome::Succeeded(succeeded)
}

/// Loses the answer of every refund but the first one when `first_answers`, and shows one row of 5.00, `row-1`.
fn gateway(first_answers: bool) -> Arc<Scripted> {
    let first = AtomicBool::new(first_answers);
    Arc::new(Scripted::new(
        move |_| match first.swap(false, Ordering::SeqCst) {
            true => Ok(given_back("row-1", "5.00")),
            false => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        },
        |_| Ok(Inquiry::Similar(given_back("row-1", "5.00"))),
    ))
}

#[tokio::test]
async fn the_only_one_that_it_can_be_is_believed() {
    let payments = gateway(false).shop();
    let outcome = payments.execute(&refund("r-1", "5.00", "INV1")).await.unwrap();
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "row-1");
}

#[tokio::test]
async fn one_that_has_its_own_operation_is_nobody_else_s() {
    let payments = gateway(true).shop();
    assert_is(
        &payments.execute(&refund("r-1", "5.00", "INV1")).await.unwrap(),
        "succeeded",
    );
    assert_is(
        &payments.execute(&refund("r-2", "5.00", "INV1")).await.unwrap(),
        "unknown",
    );
}

/// Nobody can ask before `open` is called: all are under way before anyone looks.
fn late_gateway() -> (Arc<Scripted>, impl Fn()) {
    let open = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&open);
    let gateway = Arc::new(Scripted::new(
        |_| Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        move |_| match is_open.load(Ordering::SeqCst) {
            true => Ok(Inquiry::Similar(given_back("row-1", "5.00"))),
            false => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer either")),
        },
    ));
    (gateway, move || open.store(true, Ordering::SeqCst))
}

async fn all_unknown(payments: &Payments, refunds: &[Operation]) {
    for refund in refunds {
        assert_is(&payments.execute(refund).await.unwrap(), "unknown");
    }
}

#[tokio::test]
async fn of_two_that_it_could_be_neither_gets_it() {
    let (gateway, open) = late_gateway();
    let payments = gateway.shop();
    let refunds = [refund("r-1", "5.00", "INV1"), refund("r-2", "5.00", "INV1")];
    all_unknown(&payments, &refunds).await;
    open();
    for refund in &refunds {
        assert_is(&payments.resolve(payments.key(refund)).await.unwrap(), "unknown");
    }
}

#[tokio::test]
async fn another_amount_or_another_payment_is_no_rival() {
    let (gateway, open) = late_gateway();
    let payments = gateway.shop();
    let ours = refund("r-3", "5.00", "INV1");
    let others = [refund("r-1", "6.00", "INV1"), refund("r-2", "5.00", "INV2")];
    all_unknown(&payments, &others).await;
    all_unknown(&payments, std::slice::from_ref(&ours)).await;
    open();
    assert_is(&payments.resolve(payments.key(&ours)).await.unwrap(), "succeeded");
}

#[tokio::test]
async fn one_that_a_person_has_to_decide_about_may_own_it() {
    let disputed = AtomicBool::new(true);
    let gateway = Arc::new(Scripted::new(
        move |_| match disputed.swap(false, Ordering::SeqCst) {
            // Another amount than asked for, and no id.
            true => Ok(Outcome::Succeeded(Succeeded::new(Some(usd("4.00"))))),
            false => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        },
        |_| Ok(Inquiry::Similar(given_back("row-1", "5.00"))),
    ));
    let payments = gateway.shop();
    assert_is(
        &payments.execute(&refund("r-1", "5.00", "INV1")).await.unwrap(),
        "conflict",
    );
    assert_is(
        &payments.execute(&refund("r-2", "5.00", "INV1")).await.unwrap(),
        "unknown",
    );
}
