//! The straight path, and what is refused before anything leaves.

use crate::shop::{NOW, Shop, assert_is, charge, usd};
use payonce::clock::Timestamp;
use payonce::engine::Payments;
use payonce::error::Error;
use payonce::failure::FailureKind;
use payonce::journal::MemoryJournal;
use payonce::operation::{Operation, Target};
use payonce::outcome::{FailureCategory, Outcome};
use payonce::retry::RetryPolicy;
use payonce::testing::MockGateway;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn a_charge_is_taken_once_and_replayed_from_the_journal_ever_after() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-7001");
    let first = shop.payments.execute(&charge("order-7001")).await.unwrap();
    shop.clock.advance(Duration::from_secs(40 * 24 * 3600));
    let second = shop
        .another_process()
        .payments
        .execute(&charge("order-7001"))
        .await
        .unwrap();
    for outcome in [&first, &second] {
        assert_is(outcome, "succeeded");
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "mock_1");
    }
    assert!(!first.evidence().unwrap().replayed);
    assert!(second.evidence().unwrap().replayed);
    assert_eq!(shop.bank().charged("order-7001"), 1);
    assert_eq!((shop.gateway.sends().len(), shop.gateway.inquiries().len()), (1, 0));
}

#[tokio::test]
async fn a_decline_is_final_for_its_attempt() {
    let shop = Shop::new();
    shop.gateway.declines("order-1", "insufficient_funds");
    for _ in 0..2 {
        let Outcome::Failed(failed) = shop.payments.execute(&charge("order-1")).await.unwrap() else {
            panic!("not failed")
        };
        assert_eq!(failed.category, FailureCategory::Declined);
        assert_eq!(failed.decline_code.as_deref(), Some("insufficient_funds"));
    }
    assert_eq!(shop.gateway.sends().len(), 1);
}

#[tokio::test]
async fn an_unreachable_gateway_is_an_error_and_the_same_call_works_later() {
    let shop = Shop::new();
    shop.gateway
        .unreachable("order-1")
        .unreachable("order-1")
        .unreachable("order-1")
        .succeeds("order-1");
    let error = shop.payments.execute(&charge("order-1")).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { attempts: 3, .. }), "{error:?}");
    assert!(error.is_retryable());
    assert_eq!(shop.gateway.sends().len(), 3, "each with the same key");
    assert!(shop.gateway.sends().windows(2).all(|pair| pair[0] == pair[1]));
    let key = shop.payments.key(&charge("order-1"));
    let known = shop.payments.look_up(key).await.unwrap().unwrap();
    assert!(
        matches!(&known, Outcome::Failed(failed) if failed.category == FailureCategory::NotExecuted),
        "{known:?}"
    );

    // Nothing was executed, so even the content may be corrected.
    let corrected = charge("order-1").description("corrected");
    assert_is(&shop.payments.execute(&corrected).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
    assert_eq!(shop.payments.key(&corrected), key);
}

#[tokio::test]
async fn waits_are_below_the_ceilings_and_retry_after_is_obeyed() {
    let shop = Shop::new();
    let long = Some(Duration::from_secs(9));
    shop.gateway
        .throttled("order-1", None)
        .throttled("order-1", long)
        .succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    let sleeps = shop.clock.sleeps();
    assert_eq!(sleeps.len(), 2);
    assert!(sleeps[0] <= Duration::from_millis(500));
    assert_eq!(sleeps[1], Duration::from_secs(9));
}

#[tokio::test]
async fn a_wait_that_is_too_long_ends_the_call_and_says_so() {
    let shop = Shop::new();
    shop.gateway.throttled("order-1", Some(Duration::from_secs(86_400)));
    let error = shop.payments.execute(&charge("order-1")).await.unwrap_err();
    assert!(error.to_string().contains("asks to wait too long"), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(86_400)));
    assert!(shop.clock.sleeps().is_empty());
}

#[tokio::test]
async fn the_deadline_ends_the_retries() {
    let policy = RetryPolicy {
        attempts: 100,
        deadline: Duration::from_secs(20),
        ..RetryPolicy::default()
    };
    let shop = Shop::with(|builder| builder.policy(policy));
    for _ in 0..100 {
        shop.gateway.unreachable("order-1");
    }
    let error = shop.payments.execute(&charge("order-1")).await.unwrap_err();
    assert!(error.to_string().contains("deadline reached"), "{error}");
    assert!(shop.clock.sleeps().iter().sum::<Duration>() < Duration::from_secs(20));
}

#[tokio::test]
async fn an_outage_empties_the_budget_and_calls_stop_retrying() {
    let shop = Shop::new();
    for number in 0..40 {
        let reference = format!("order-{number}");
        shop.gateway
            .unreachable(&reference)
            .unreachable(&reference)
            .unreachable(&reference);
    }
    for number in 0..40 {
        let error = shop
            .payments
            .execute(&charge(&format!("order-{number}")))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }));
    }
    let retries = shop.gateway.sends().len() - 40;
    assert_eq!(retries, 35, "500 tokens at 14 each, then first sends only");
}

#[tokio::test]
async fn a_pending_payment_is_asked_about_when_the_payer_presses_pay_again() {
    let shop = Shop::new();
    shop.gateway.waits_for_payer("order-1");
    let Outcome::Pending(pending) = shop.payments.execute(&charge("order-1")).await.unwrap() else {
        panic!("not pending")
    };
    assert!(format!("{:?}", pending.next).contains("***"), "the link is not printed");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "pending");
    shop.gateway.pay("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_eq!(shop.gateway.sends().len(), 1);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn what_a_refund_acts_on_is_found_in_the_journal() {
    let shop = Shop::new();
    let refund = |target| Operation::refund("order-1/refund-1", usd("5.00"), Target::Operation(target)).unwrap();
    let key = shop.payments.key(&charge("order-1"));
    let error = shop.payments.execute(&refund(key)).await.unwrap_err();
    assert!(matches!(error, Error::NoTarget { target } if target == key));

    shop.gateway.succeeds("order-1").succeeds("order-1/refund-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    assert_is(&shop.payments.execute(&refund(key)).await.unwrap(), "succeeded");
    assert_eq!(shop.bank().refunded("order-1/refund-1"), 1);
}

#[tokio::test]
async fn a_refund_in_another_currency_than_the_payments_is_refused_before_anything_is_sent() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    let target = Target::Operation(shop.payments.key(&charge("order-1")));
    let yen = payonce::Money::from_minor(500, payonce::Currency::JPY);
    let refund = Operation::refund("order-1/refund-1", yen, target).unwrap();
    let error = shop.payments.execute(&refund).await.unwrap_err();
    assert_eq!(error.invalid_field(), Some("amount"));
    assert_eq!(shop.gateway.sends().len(), 1);
}

#[tokio::test]
async fn every_step_leaves_a_line() {
    let shop = Shop::new();
    shop.gateway
        .throttled("order-1", None)
        .answer_lost_after_effect("order-1")
        .succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    let lines = shop
        .payments
        .history(shop.payments.key(&charge("order-1")))
        .await
        .unwrap();
    let steps: Vec<_> = lines
        .iter()
        .map(|line| (&*line.from, &*line.to, line.sends, line.http_status))
        .collect();
    assert_eq!(
        steps,
        [
            ("", "sending", 1, None),
            ("sending", "sending", 2, Some(429)),
            ("sending", "sending", 3, None),
            ("sending", "succeeded", 3, None),
        ]
    );
    assert_eq!(lines[0].at, NOW);
}

#[test]
fn a_shop_without_its_parts_is_refused_by_name() {
    let journal = || Arc::new(MemoryJournal::new());
    let gateway = || Arc::new(MockGateway::new());
    let missing = [
        (Payments::builder().journal(journal()).gateway(gateway()), "namespace"),
        (Payments::builder().namespace("a").gateway(gateway()), "journal"),
        (Payments::builder().namespace("a").journal(journal()), "gateway"),
        (
            Payments::builder()
                .namespace("a")
                .journal(journal())
                .gateway(gateway())
                .gateway(gateway()),
            "gateway",
        ),
        (
            Payments::builder().namespace("").journal(journal()).gateway(gateway()),
            "namespace",
        ),
    ];
    for (builder, field) in missing {
        assert_eq!(builder.build().unwrap_err().field(), field);
    }
}

#[tokio::test]
async fn an_unknown_gateway_name_is_refused_before_anything_is_written() {
    let shop = Shop::new();
    let error = shop
        .payments
        .execute(&charge("order-1").through("nobody"))
        .await
        .unwrap_err();
    assert_eq!(error.invalid_field(), Some("gateway"));
    assert!(
        shop.payments
            .look_up(shop.payments.key(&charge("order-1")))
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn failures_say_what_happened_and_whether_anything_was_sent() {
    let shop = Shop::with(|builder| {
        builder.policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
    });
    shop.gateway.unreachable("order-1");
    let error = shop.payments.execute(&charge("order-1")).await.unwrap_err();
    let Error::Unreachable { failure, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(failure.kind(), FailureKind::Connect);
    assert_eq!(
        error.to_string(),
        "gateway unreachable after 1 attempts, attempts used up; nothing was executed"
    );
    assert!(Timestamp::from_unix_millis(0) < NOW);
}

#[tokio::test]
async fn no_setting_of_time_is_too_long() {
    let shop = Shop::with(|builder| {
        let policy = RetryPolicy {
            deadline: Duration::MAX,
            attempt_timeout: Duration::MAX,
            ..RetryPolicy::default()
        };
        builder.policy(policy).lease_margin(Duration::MAX)
    });
    shop.gateway.succeeds("order-1");
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
}
