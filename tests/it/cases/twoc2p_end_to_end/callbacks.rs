//! Backend callbacks of 2C2P, from the bytes on the socket's other side to what is known afterwards.

use super::{Counter, MINUTE, second};
use crate::cases::twoc2p::{envelope, sign};
use crate::shop::{NOW, assert_is};
use crate::wired::{INQUIRY, MERCHANT, TOKEN, Wired, invoice, thb};
use payonce::gateway::{NotificationError, RawNotification};
use payonce::inbound::{InboundError, Intake};
use payonce::operation::Operation;
use payonce::outcome::{ConflictKind, Outcome};
use payonce::record::Recorded;
use payonce::testing::Bank;
use payonce::testing::server::FakeTwoC2p;

const OTHER_SECRET: &str = "TESTONLY2C2P0002TESTONLY2C2P0002TESTONLY2C2P0002TESTONLY2C2P0002";

fn order() -> Operation {
    invoice("2000.00")
}

fn raw(body: impl Into<Vec<u8>>) -> RawNotification {
    let headers = vec![("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned())];
    RawNotification::new(headers, body.into(), NOW)
}

async fn take(shop: &Wired, body: impl Into<Vec<u8>>) -> (Outcome, Recorded) {
    let intake = shop.payments.notify("2c2p", &raw(body)).await.unwrap();
    let Intake::Taken { outcome, recorded, .. } = intake else {
        panic!("{intake:?}")
    };
    (outcome, recorded)
}

#[tokio::test]
async fn a_callback_settles_the_operation_once_and_a_repeat_changes_nothing() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&order()).await, "pending");
    assert!(counter.twoc2p.pay("INV7001"));
    let body = counter.twoc2p.callback("INV7001");
    let (outcome, recorded) = take(&counter.shop, body.clone()).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(recorded, Recorded::First);
    let restarted = counter.shop.another_process(|builder| builder);
    for shop in [&counter.shop, &restarted] {
        let (outcome, recorded) = take(shop, body.clone()).await;
        assert_is(&outcome, "succeeded");
        assert_eq!(recorded, Recorded::Already);
    }
    assert_is(&counter.shop.pay(&order()).await, "succeeded");
    assert_eq!(counter.twoc2p.count(INQUIRY), 0, "nothing had to be asked");
    assert_eq!(counter.twoc2p.count(TOKEN), 1);
}

#[tokio::test]
async fn a_callback_that_comes_before_the_answer_that_was_lost_is_enough() {
    use payonce::testing::{Fault, FaultPlan};
    let counter = Counter::with(|builder| builder.policy(crate::wired::policy(1)));
    counter.twoc2p.set_pays_at_once(true);
    counter
        .twoc2p
        .set_faults(FaultPlan::script([Fault::CloseAfterEffect, Fault::HtmlBeforeEffect]).inquiries_too());
    assert_is(&counter.shop.pay(&order()).await, "unknown");
    let (outcome, recorded) = take(&counter.shop, counter.twoc2p.callback("INV7001")).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(recorded, Recorded::First);
    assert_eq!(counter.bank().charged("INV7001"), 1);
}

#[tokio::test]
async fn c22_a_refused_try_neither_ends_the_invoice_nor_undoes_its_payment() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&order()).await, "pending");
    assert!(counter.twoc2p.decline("INV7001", "4051"));
    let declined = counter.twoc2p.callback("INV7001");
    let (outcome, recorded) = take(&counter.shop, declined.clone()).await;
    assert_is(&outcome, "pending");
    assert_eq!(recorded, Recorded::Already);
    assert!(counter.shop.try_pay(&second(&order())).await.is_err());

    assert!(counter.twoc2p.pay("INV7001"));
    let (outcome, recorded) = take(&counter.shop, counter.twoc2p.callback("INV7001")).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(recorded, Recorded::First);
    let tran_ref = outcome.gateway_ref().cloned();
    // The first one is sent again.
    let (outcome, _) = take(&counter.shop, declined).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().cloned(), tran_ref);
    assert_is(&counter.shop.look_up(&order()).await.unwrap(), "succeeded");
}

#[tokio::test]
async fn c22_a_late_notice_of_an_earlier_card_is_settled_by_one_look() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&order()).await, "pending");
    assert!(counter.twoc2p.decline("INV7001", "4051"));
    let declined = counter.twoc2p.callback("INV7001");
    assert!(counter.twoc2p.pay("INV7001"));
    let paid = counter.twoc2p.callback("INV7001");
    assert_is(&take(&counter.shop, paid).await.0, "succeeded");
    // It is delivered for the first time a day later, when no page is open any more.
    counter.shop.clock.advance(MINUTE * 1440);
    assert_is(&take(&counter.shop, declined).await.0, "succeeded");
    assert_eq!(counter.twoc2p.count(INQUIRY), 1);
}

/// A signed callback about INV7001 with this amount, currency and code.
fn callback(amount: &str, currency: &str, code: &str) -> String {
    envelope(&sign(&format!(
        r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":{amount},"currencyCode":"{currency}","respCode":"{code}","respDesc":"Success"}}"#
    )))
}

#[tokio::test]
async fn c22_2001_alone_is_pending() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&order()).await, "pending");
    assert_is(
        &take(&counter.shop, callback("2000.00", "THB", "2001")).await.0,
        "pending",
    );
}

#[tokio::test]
async fn c23_paid_but_not_as_asked_is_a_conflict_that_shows_both() {
    for (amount, currency, reported) in [
        ("\"20.00\"", "THB", Some("20.00 THB")),
        ("\"2000.00\"", "VND", None),
        ("2000", "THB", Some("2000.00 THB")),
    ] {
        let counter = Counter::new();
        assert_is(&counter.shop.pay(&order()).await, "pending");
        let (outcome, recorded) = take(&counter.shop, callback(amount, currency, "0000")).await;
        assert_eq!(recorded, Recorded::First);
        if amount == "2000" {
            assert_is(&outcome, "succeeded");
            continue;
        }
        let Outcome::Conflict(conflict) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(conflict.kind, ConflictKind::Amount);
        assert_eq!(conflict.expected, Some(thb("2000.00")));
        match reported {
            Some(text) => assert_eq!(conflict.reported.unwrap().to_string(), text),
            // Dong have no decimals: what was written is shown.
            None => assert!(conflict.detail.contains("2000.00"), "{}", conflict.detail),
        }
    }
}

#[tokio::test]
async fn c24_another_merchant_s_callback_pays_nothing_here() {
    let counter = Counter::new();
    assert_is(&counter.shop.pay(&order()).await, "pending");
    // Authentic for the other account, and about an invoice of the same number there.
    let other = FakeTwoC2p::start(Bank::new(), "TESTM02", OTHER_SECRET);
    let theirs = their_callback(&other, OTHER_SECRET, "TESTM02").await;
    // Signed with our secret, but said to be for another account.
    let misdirected = FakeTwoC2p::start(Bank::new(), "TESTM02", crate::wired::MERCHANT_SECRET);
    let misdirected = their_callback(&misdirected, crate::wired::MERCHANT_SECRET, "TESTM02").await;
    // Said to be ours, but signed with the other account's secret.
    let forged = FakeTwoC2p::start(Bank::new(), MERCHANT, OTHER_SECRET);
    let forged = their_callback(&forged, OTHER_SECRET, MERCHANT).await;
    for (body, expected) in [
        (theirs, NotificationError::Signature),
        (misdirected, NotificationError::OtherMerchant),
        (forged, NotificationError::Signature),
    ] {
        let refused = counter.shop.payments.notify("2c2p", &raw(body)).await.unwrap_err();
        assert!(
            matches!(&refused, InboundError::Refused(error) if *error == expected),
            "{refused:?}"
        );
    }
    assert_is(&counter.shop.look_up(&order()).await.unwrap(), "pending");
    assert_eq!(counter.twoc2p.count(INQUIRY), 0);
}

/// INV7001, paid at another account.
async fn their_callback(fake: &FakeTwoC2p, secret: &str, merchant: &str) -> Vec<u8> {
    use payonce::engine::Payments;
    use payonce::gateway::twoc2p::TwoC2p;
    use payonce::journal::MemoryJournal;
    use std::sync::Arc;
    let gateway = TwoC2p::builder(merchant, secret)
        .base_url(fake.base_url())
        .build()
        .unwrap();
    let payments = Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(gateway))
        .journal(Arc::new(MemoryJournal::new()))
        .build()
        .unwrap();
    assert_is(&payments.execute(&order()).await.unwrap(), "pending");
    assert!(fake.pay("INV7001"));
    fake.callback("INV7001")
}

#[tokio::test]
async fn a_callback_about_what_is_not_in_the_journal_is_passed_over() {
    let counter = Counter::new();
    for body in [
        callback("20.00", "THB", "0000"),
        callback("20.00", "THB", "0000").replace("INV7001", "INV9999"),
    ] {
        let Ok(Intake::Ignored { name }) = counter.shop.payments.notify("2c2p", &raw(body)).await else {
            continue;
        };
        assert_eq!(name, "payment 0000");
    }
    assert!(counter.shop.payments.unresolved(10).await.unwrap().is_empty());
}
