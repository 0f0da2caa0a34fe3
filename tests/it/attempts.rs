//! A new attempt is a new decision: it begins only when the ones before can no longer take money.

use crate::shop::{Shop, assert_is, charge, usd};
use payonce::error::Error;
use payonce::operation::Operation;
use payonce::retry::RetryPolicy;
use std::num::NonZeroU32;
use std::time::Duration;

fn attempt(number: u32) -> Operation {
    charge("order-1").attempt(NonZeroU32::new(number).unwrap())
}

#[tokio::test]
async fn c08_a_new_card_after_a_decline_is_a_new_attempt() {
    let shop = Shop::new();
    shop.gateway
        .declines("order-1", "insufficient_funds")
        .succeeds("order-1");
    let card = |operation: Operation, card: &str| operation.metadata("card", card);
    assert_is(
        &shop.payments.execute(&card(attempt(1), "pm_1")).await.unwrap(),
        "failed",
    );

    let silently = shop.payments.execute(&card(attempt(1), "pm_2")).await.unwrap_err();
    assert!(matches!(silently, Error::KeyReused { .. }), "{silently:?}");
    assert_eq!(shop.gateway.sends().len(), 1, "refused without traffic");

    assert_is(
        &shop.payments.execute(&card(attempt(2), "pm_2")).await.unwrap(),
        "succeeded",
    );
    let sends = shop.gateway.sends();
    assert_eq!(sends.len(), 2);
    assert_ne!(sends[0].key, sends[1].key);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn c08_no_second_attempt_while_the_first_is_unknown() {
    let shop = Shop::with(|builder| {
        builder.policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
    });
    shop.gateway.answer_lost_after_effect("order-1").inquiries_fail(1);
    assert_is(&shop.payments.execute(&attempt(1)).await.unwrap(), "unknown");
    let error = shop.payments.execute(&attempt(2)).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::AttemptOpen {
                attempt: 1,
                state: "unknown",
                ..
            }
        ),
        "{error:?}"
    );
    assert_eq!(shop.gateway.sends().len(), 1);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn an_order_that_is_paid_has_no_second_attempt() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-1");
    assert_is(&shop.payments.execute(&attempt(1)).await.unwrap(), "succeeded");
    let error = shop.payments.execute(&attempt(2)).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::AttemptOpen {
                attempt: 1,
                state: "succeeded",
                ..
            }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_earlier_attempt_cannot_start_beside_a_later_one() {
    let shop = Shop::new();
    shop.gateway.waits_for_payer("order-1");
    assert_is(&shop.payments.execute(&attempt(2)).await.unwrap(), "pending");
    let error = shop.payments.execute(&attempt(1)).await.unwrap_err();
    assert!(matches!(error, Error::AttemptOpen { attempt: 2, .. }), "{error:?}");
}

#[tokio::test]
async fn an_attempt_that_was_released_cannot_be_revived_beside_its_successor() {
    let shop = Shop::new();
    shop.gateway
        .unreachable("order-1")
        .unreachable("order-1")
        .unreachable("order-1")
        .waits_for_payer("order-1");
    shop.payments.execute(&attempt(1)).await.unwrap_err();
    assert_is(&shop.payments.execute(&attempt(2)).await.unwrap(), "pending");
    let error = shop.payments.execute(&attempt(1)).await.unwrap_err();
    assert!(matches!(error, Error::AttemptOpen { attempt: 2, .. }), "{error:?}");
}

#[tokio::test]
async fn c04_a_reworded_description_is_refused_without_traffic() {
    let shop = Shop::with(|builder| {
        builder.policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
    });
    shop.gateway.answer_lost_after_effect("order-7001").inquiries_fail(1);
    let first = charge("order-7001").description("Order 7001");
    assert_is(&shop.payments.execute(&first).await.unwrap(), "unknown");
    let asked = (shop.gateway.sends().len(), shop.gateway.inquiries().len());
    let reworded = charge("order-7001").description("Order #7001 (retry)");
    let error = shop.payments.execute(&reworded).await.unwrap_err();
    assert!(matches!(error, Error::KeyReused { .. }), "{error:?}");
    assert_eq!((shop.gateway.sends().len(), shop.gateway.inquiries().len()), asked);
    assert_is(
        &shop.payments.look_up(shop.payments.key(&first)).await.unwrap().unwrap(),
        "unknown",
    );
    assert_is(&shop.payments.execute(&first).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-7001"), 1);
}

#[tokio::test]
async fn c10_a_refund_keeps_its_key_when_the_total_refunded_has_changed() {
    use payonce::operation::{GatewayRef, Target};
    let shop = Shop::with(|builder| {
        builder.policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
    });
    shop.gateway.answer_lost_after_effect("r-1").inquiries_fail(1);
    // The caller's copy of the charge is stale the first time and fresh the second: neither enters the key.
    let refund = || Operation::refund("r-1", usd("10.00"), Target::Gateway(GatewayRef::new("ch_1"))).unwrap();
    assert_is(&shop.payments.execute(&refund()).await.unwrap(), "unknown");
    shop.clock.advance(Duration::from_secs(5));
    assert_is(&shop.payments.execute(&refund()).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().refunded("r-1"), 1);
    assert_eq!(
        shop.bank().total(payonce::operation::OperationKind::Refund, "r-1"),
        1000
    );
}
