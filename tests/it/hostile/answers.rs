//! Answers that are true and yet not about what was asked.

use crate::shop::{assert_is, charge, usd};
use payonce::engine::Payments;
use payonce::error::Error;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::journal::MemoryJournal;
use payonce::money::Money;
use payonce::operation::{Operation, OperationKind};
use payonce::retry::RetryPolicy;
use payonce::testing::server::{Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, Movement};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

fn by_card(attempt: u32) -> Operation {
    charge("order-1")
        .attempt(NonZeroU32::new(attempt).unwrap())
        .with(StripeOptions::payment_method("pm_card_visa"))
}

/// The first request is executed and its answer lost. What it asks for is against the rules by the time of the second.
#[tokio::test]
async fn a_refusal_of_the_second_send_says_nothing_of_the_first() {
    let bank = Bank::new();
    let ledger = bank.clone();
    let pay = move |amount: Money| {
        ledger.record(Movement::new(
            OperationKind::Charge,
            "order-1",
            "stripe",
            "pi_1",
            amount,
        ))
    };
    let server = ScriptedServer::start();
    server.reply(
        "POST /v1/payment_intents",
        Reply::new(200)
            .fault(Fault::CloseAfterEffect)
            .effect(move |_| pay(usd("20.00"))),
    );
    let refusal = r#"{"error":{"type":"invalid_request_error","code":"amount_too_small","message":"too small"}}"#;
    server.reply("POST /v1/payment_intents", Reply::new(400).json(refusal));
    let gateway = Stripe::builder("sk_test_TESTONLYcases0001")
        .base_url(server.url())
        .build()
        .unwrap();
    let payments = Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(gateway))
        .journal(Arc::new(MemoryJournal::new()))
        .policy(RetryPolicy {
            attempts: 2,
            base: Duration::from_millis(1),
            ..RetryPolicy::default()
        })
        .build()
        .unwrap();
    assert_is(&payments.execute(&by_card(1)).await.unwrap(), "unknown");
    assert_eq!(bank.charged("order-1"), 1);
    let error = payments.execute(&by_card(2)).await.unwrap_err();
    assert!(matches!(error, Error::AttemptOpen { attempt: 1, .. }), "{error:?}");
}
