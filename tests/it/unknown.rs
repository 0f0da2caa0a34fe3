//! A lost answer is an unknown outcome, and is resolved by asking.

use crate::shop::{Shop, assert_is, charge};
use payonce::error::Error;
use payonce::outcome::FailureCategory;
use payonce::outcome::{Outcome, UnknownReason};
use payonce::retry::{Absence, AfterAbsence, Promise, RetryPolicy, SameKey, Since};
use std::time::Duration;

fn one_attempt() -> RetryPolicy {
    RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    }
}

#[tokio::test]
async fn a_lost_answer_is_found_by_the_retry_with_the_same_key() {
    let shop = Shop::new();
    shop.gateway.answer_lost_after_effect("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
    assert_eq!(shop.gateway.sends().len(), 2);
}

#[tokio::test]
async fn a_lost_answer_is_found_by_inquiry_when_no_retry_is_left() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.answer_lost_after_effect("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!((shop.gateway.sends().len(), shop.gateway.inquiries().len()), (1, 1));
}

#[tokio::test]
async fn c02_repeating_the_whole_call_while_the_outcome_is_unknown_charges_once() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.answer_lost_after_effect("order-7001").inquiries_fail(1);
    let first = shop.payments.execute(&charge("order-7001")).await.unwrap();
    let Outcome::Unknown(unknown) = &first else {
        panic!("{first:?}")
    };
    assert_eq!(unknown.reason, UnknownReason::AnswerLost);
    assert!(
        unknown.next_look_at.is_some() && unknown.detail.contains("attempts used up"),
        "{unknown:?}"
    );

    shop.clock.advance(Duration::from_secs(3));
    let second = shop.payments.execute(&charge("order-7001")).await.unwrap();
    let third = shop
        .another_process()
        .payments
        .execute(&charge("order-7001"))
        .await
        .unwrap();
    for outcome in [second, third] {
        assert_is(&outcome, "succeeded");
    }
    assert_eq!(shop.bank().charged("order-7001"), 1);
    assert_eq!(shop.payments.unresolved(10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_failure_to_connect_does_not_undo_a_lost_answer() {
    let shop = Shop::new();
    shop.gateway
        .answer_lost_after_effect("order-1")
        .unreachable("order-1")
        .unreachable("order-1")
        .inquiries_fail(3);
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn a_duplicate_leads_to_an_inquiry_and_never_to_another_send() {
    let shop = Shop::new();
    shop.gateway.answer_lost_after_effect("order-1").duplicate("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!((shop.gateway.sends().len(), shop.gateway.inquiries().len()), (2, 1));
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn c11_past_the_keys_retention_nothing_is_sent_any_more() {
    for found in [true, false] {
        let shop = Shop::with(|builder| builder.policy(one_attempt()));
        if found {
            shop.gateway.answer_lost_after_effect("order-7001");
        } else {
            shop.gateway.answer_lost_before_effect("order-7001");
        }
        shop.gateway.inquiries_fail(1);
        assert_is(&shop.payments.execute(&charge("order-7001")).await.unwrap(), "unknown");

        shop.clock.advance(Duration::from_secs(90_000));
        let expected = if found { "succeeded" } else { "unknown" };
        for _ in 0..4 {
            assert_is(&shop.payments.execute(&charge("order-7001")).await.unwrap(), expected);
            shop.clock.advance(Duration::from_secs(3600));
        }
        assert_eq!(shop.gateway.sends().len(), 1, "the gateway may have forgotten the key");
        assert_eq!(shop.bank().charged("order-7001"), usize::from(found));
    }
}

#[tokio::test]
async fn absence_is_believed_late_and_twice_and_then_the_same_key_is_sent_again() {
    let promise = Promise::new(
        SameKey::Executes,
        Absence::After {
            since: Since::LastSend,
            quiet: Duration::from_secs(600),
            looks: 2,
            apart: Duration::from_secs(60),
            then: AfterAbsence::Closed(FailureCategory::Expired),
        },
    );
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.promises(promise).answer_lost_before_effect("order-1");
    let key = shop.payments.key(&charge("order-1"));
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    for _ in 0..5 {
        assert_is(&shop.payments.resolve(key).await.unwrap(), "unknown");
    }
    shop.clock.advance(Duration::from_secs(601));
    assert_is(&shop.payments.resolve(key).await.unwrap(), "unknown");
    shop.clock.advance(Duration::from_secs(59));
    assert_is(&shop.payments.resolve(key).await.unwrap(), "unknown");
    shop.clock.advance(Duration::from_secs(1));
    let Outcome::Failed(failed) = shop.payments.resolve(key).await.unwrap() else {
        panic!("not failed")
    };
    assert_eq!(failed.category, FailureCategory::Expired);
    assert_eq!(
        shop.gateway.sends().len(),
        1,
        "a gateway without keys never gets a second send"
    );
}

#[tokio::test]
async fn c12_a_finished_operation_repeated_weeks_later_makes_no_request() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-7001");
    assert_is(
        &shop.payments.execute(&charge("order-7001")).await.unwrap(),
        "succeeded",
    );
    shop.clock.advance(Duration::from_secs(40 * 24 * 3600));
    assert_is(
        &shop.payments.execute(&charge("order-7001")).await.unwrap(),
        "succeeded",
    );
    assert_eq!((shop.gateway.sends().len(), shop.gateway.inquiries().len()), (1, 0));
}

#[tokio::test]
async fn resolving_what_is_not_there_is_an_error() {
    let shop = Shop::new();
    let key = shop.payments.key(&charge("order-1"));
    assert!(matches!(
        shop.payments.resolve(key).await.unwrap_err(),
        Error::NotFound { .. }
    ));
    assert!(shop.payments.history(key).await.unwrap().is_empty());
}

#[tokio::test]
async fn c75_an_operation_open_over_an_upgrade_keeps_its_stored_key() {
    let shop = Shop::with(|builder| builder.policy(one_attempt()));
    shop.gateway.answer_lost_after_effect("order-7001").inquiries_fail(2);
    assert_is(&shop.payments.execute(&charge("order-7001")).await.unwrap(), "unknown");
    let stored = shop.payments.key(&charge("order-7001"));

    let upgraded = Shop::on(std::sync::Arc::clone(&shop.journal), shop.gateway.clone(), |builder| {
        builder.another_derivation()
    });
    assert_ne!(
        upgraded.payments.key(&charge("order-7001")),
        stored,
        "the derivation did change"
    );
    assert_is(
        &upgraded.payments.execute(&charge("order-7001")).await.unwrap(),
        "succeeded",
    );
    upgraded.gateway.succeeds("order-7002");
    assert_is(
        &upgraded.payments.execute(&charge("order-7002")).await.unwrap(),
        "succeeded",
    );

    let keys: Vec<_> = shop.gateway.sends().into_iter().map(|asked| asked.key).collect();
    assert!(keys[..keys.len() - 1].iter().all(|key| *key == stored), "{keys:?}");
    assert_eq!(*keys.last().unwrap(), upgraded.payments.key(&charge("order-7002")));
    assert_eq!(shop.bank().charged("order-7001"), 1);
}
