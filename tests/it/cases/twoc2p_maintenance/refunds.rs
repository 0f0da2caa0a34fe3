//! Refunds.

use super::sealed::{self, Written, response, sealed, settled as paid_and_settled};
use super::*;
use crate::shop::assert_is;
use payonce::clock::Clock as _;
use payonce::gateway::twoc2p::ActionOptions;
use payonce::gateway::{NotificationError, RawNotification};
use payonce::inbound::{InboundError, Intake};
use payonce::operation::{GatewayRef, OperationKind};
use payonce::outcome::FailureCategory;
use payonce::record::Recorded;
use payonce::testing::server::RefundRows;
use payonce::testing::{Fault, FaultPlan};
use std::collections::BTreeSet;

#[tokio::test]
async fn c58_a_part_is_given_back_and_never_the_whole() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    let refund = desk.refund("r-1", "25.00", &charge);
    let outcome = desk.shop.pay(&refund).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500);
    let sent = desk.requests("R");
    assert_eq!(sent.len(), 1);
    assert_eq!(element(&sent[0], "actionAmount").as_deref(), Some("25.00"));
    assert_eq!(element(&sent[0], "idempotencyID"), Some(desk.shop.key(&refund)));
    assert_eq!(
        outcome.gateway_ref().unwrap().as_str(),
        desk.twoc2p.refunds("INV7001")[0]
    );
    // Called again, it is what it was.
    assert_is(&desk.shop.pay(&refund).await, "succeeded");
    assert_eq!(desk.requests("R").len(), 1);
}

#[tokio::test]
async fn c58_what_is_not_settled_yet_is_neither_refunded_nor_voided() {
    let desk = Desk::new();
    let charge = desk.paid().await;
    let refund = desk.refund("r-1", "25.00", &charge);
    let told = failed(desk.shop.pay(&refund).await);
    assert_eq!(told.category, FailureCategory::NotSettled);
    assert_eq!(desk.processes(), ["I"], "neither V nor R");
    let bank = desk.bank();
    assert_eq!((bank.voided("INV7001"), bank.refunded("INV7001")), (0, 0));
    assert!(!desk.twoc2p.maintenance_requests().concat().contains("<processType>V"));
    // Settled later, it is a new decision.
    assert!(desk.twoc2p.settle("INV7001"));
    let again = refund.attempt(std::num::NonZeroU32::new(2).unwrap());
    assert_is(&desk.shop.pay(&again).await, "succeeded");
    assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500);
}

#[tokio::test]
async fn c55_more_than_is_left_is_refused_and_what_went_before_is_shown() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    // Somebody gives 30.00 back elsewhere.
    let elsewhere = Wired::maintained(&desk.twoc2p);
    let invoice = Target::Gateway(GatewayRef::new("INV7001"));
    let theirs = Operation::refund("portal-1", thb("30.00"), invoice).unwrap();
    assert_is(&elsewhere.pay(&theirs).await, "succeeded");

    let refund = desk.refund("r-9", "80.00", &charge);
    let told = failed(desk.shop.pay(&refund).await);
    assert_eq!(told.category, FailureCategory::Invalid);
    assert_eq!(told.evidence.code.as_deref(), Some("40"));
    assert_eq!(told.evidence.details.get("amount_refunded"), Some("30.00"));
    assert!(told.evidence.message.is_some());
    assert_eq!(
        desk.requests("R").len(),
        2,
        "theirs and ours: neither repeated nor reduced"
    );
    assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 3000);
}

#[tokio::test]
async fn c49_amounts_of_refunds_are_digits_and_one_point() {
    for (amount, expected) in [("1234.5", "1234.50"), ("1234567.00", "1234567.00"), ("25", "25.00")] {
        let desk = Desk::new();
        let charge = desk.pay(Operation::charge("INV7001", thb("2000000.00")).unwrap()).await;
        assert!(desk.twoc2p.settle("INV7001"));
        assert_is(&desk.shop.pay(&desk.refund("r-1", amount, &charge)).await, "succeeded");
        assert_eq!(
            element(&desk.requests("R")[0], "actionAmount").as_deref(),
            Some(expected)
        );
    }
}

#[tokio::test]
async fn a_lost_answer_is_repeated_under_the_same_id_and_one_refund_is_made() {
    for fault in [
        Fault::CloseAfterReading,
        Fault::CloseAfterEffect,
        Fault::ResetAfterEffect,
        Fault::HalfBodyAfterEffect,
        Fault::ErrorAfterEffect,
        Fault::HtmlAfterEffect,
        Fault::ErrorBeforeEffect,
        Fault::Throttle,
    ] {
        let desk = Desk::new();
        let charge = desk.settled().await;
        // The look before the refund works, the refund's answer is lost.
        desk.twoc2p
            .set_faults(FaultPlan::none().on(ACTION, None).on(ACTION, fault).inquiries_too());
        let refund = desk.refund("r-1", "25.00", &charge);
        assert_is(&desk.shop.resolve_or_pay(&refund).await, "succeeded");
        assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500, "{fault:?}");
        let ids: BTreeSet<_> = desk
            .requests("R")
            .iter()
            .map(|xml| element(xml, "idempotencyID"))
            .collect();
        assert_eq!(ids, BTreeSet::from([Some(desk.shop.key(&refund))]), "{fault:?}");
    }
}

#[tokio::test]
async fn a_gateway_that_forgets_ids_is_asked_before_anything_is_repeated_later() {
    for rows in [RefundRows::Bare, RefundRows::WithUserDefined] {
        let desk = Desk::new();
        let charge = desk.settled().await;
        desk.twoc2p.set_forgets_idempotency_ids(true);
        desk.twoc2p.set_refund_rows(rows);
        let shop = desk
            .shop
            .another_process(|builder| builder.policy(crate::wired::policy(1)));
        let plan = FaultPlan::none().on(ACTION, None).on(ACTION, Fault::CloseAfterEffect);
        desk.twoc2p
            .set_faults(plan.on(ACTION, Fault::CloseAfterReading).inquiries_too());
        let refund = desk.refund("r-1", "25.00", &charge);
        assert_is(&shop.pay(&refund).await, "unknown");
        // The job runs again: the list of refunds has it.
        for _ in 0..3 {
            assert_is(&shop.pay(&refund).await, "succeeded");
        }
        assert_eq!(desk.requests("R").len(), 1, "{rows:?}");
        assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500);
    }
}

#[tokio::test]
async fn two_refunds_of_one_amount_are_never_taken_for_each_other() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    let shop = desk
        .shop
        .another_process(|builder| builder.policy(crate::wired::policy(1)));
    let (first, second) = (
        desk.refund("r-1", "25.00", &charge),
        desk.refund("r-2", "25.00", &charge),
    );
    assert_is(&shop.pay(&first).await, "succeeded");
    // The second one is lost before its effect: there is one row of 25.00, and it is the first one's.
    let plan = FaultPlan::none().on(ACTION, None).on(ACTION, Fault::CloseAfterReading);
    desk.twoc2p.set_faults(plan.inquiries_too());
    assert_is(&shop.pay(&second).await, "unknown");
    assert_is(&shop.resolve(&second).await, "unknown");
    assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500);
    // Called again it is sent again, under the same id, and made once.
    assert_is(&shop.pay(&second).await, "succeeded");
    assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 5000);
    let ids = desk.twoc2p.refunds("INV7001");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 2);
}

#[tokio::test]
async fn a_refund_that_takes_time_is_followed_to_its_end() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    desk.twoc2p.set_refunds_asynchronous(true);
    let refund = desk.refund("r-1", "25.00", &charge);
    assert_is(&desk.shop.pay(&refund).await, "pending");
    assert_is(&desk.shop.resolve(&refund).await, "pending");
    assert_eq!(desk.bank().refunded("INV7001"), 0);
    let id = desk.twoc2p.refunds("INV7001")[0].clone();
    desk.twoc2p.confirm_refund(&id).await;
    // 2C2P posts a notice, which is as good as a look.
    let notice = RawNotification::new(Vec::new(), desk.twoc2p.refund_notice(&id), desk.shop.clock.now());
    for recorded in [Recorded::First, Recorded::Already] {
        let taken = desk.shop.payments.notify("2c2p", &notice).await.unwrap();
        let Intake::Taken {
            outcome,
            recorded: told,
            ..
        } = taken
        else {
            panic!("{taken:?}")
        };
        assert_is(&outcome, "succeeded");
        assert_eq!(told, recorded);
    }
    assert_eq!(desk.bank().refunded("INV7001"), 1);
    assert_eq!(desk.requests("R").len(), 1);
}

#[tokio::test]
async fn a_refund_that_the_bank_gives_back_fails_even_after_it_succeeded() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    desk.twoc2p.set_refunds_asynchronous(true);
    let refund = desk.refund("r-1", "25.00", &charge);
    assert_is(&desk.shop.pay(&refund).await, "pending");
    let id = desk.twoc2p.refunds("INV7001")[0].clone();
    desk.twoc2p.reject_refund(&id, "RR2").await;
    let notice = RawNotification::new(Vec::new(), desk.twoc2p.refund_notice(&id), desk.shop.clock.now());
    let taken = desk.shop.payments.notify("2c2p", &notice).await.unwrap();
    let Intake::Taken { outcome, .. } = taken else {
        panic!("{taken:?}")
    };
    let told = failed(outcome);
    assert_eq!(told.category, FailureCategory::Declined);
    assert_eq!(told.decline_code.as_deref(), Some("RR2"));
    assert_eq!(desk.bank().refunded("INV7001"), 0);
}

#[tokio::test]
async fn a_notice_that_2c2p_has_not_signed_is_refused() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    assert_is(&desk.shop.pay(&desk.refund("r-1", "25.00", &charge)).await, "succeeded");
    let good = desk.twoc2p.refund_notice(&desk.twoc2p.refunds("INV7001")[0]);
    let mut changed = good.clone();
    let at = changed.len() - 20;
    changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
    for body in [changed, b"notifyResponse=".to_vec(), b"notifyResponse=a.b.c".to_vec()] {
        let notice = RawNotification::new(Vec::new(), body, desk.shop.clock.now());
        let error = desk.shop.payments.notify("2c2p", &notice).await.unwrap_err();
        assert!(
            matches!(error, InboundError::Refused(NotificationError::Signature)),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_refund_without_keys_is_refused_before_anything_is_written() {
    let desk = Desk::new();
    let without = Wired::twoc2p(desk.twoc2p.base_url());
    let invoice = Target::Gateway(GatewayRef::new("INV7001"));
    let refund = Operation::refund("r-1", thb("30.00"), invoice).unwrap();
    let error = without.try_pay(&refund).await.unwrap_err();
    assert!(matches!(error, payonce::Error::Unsupported(_)), "{error:?}");
    assert!(without.look_up(&refund).await.is_none());
    assert!(desk.twoc2p.requests().is_empty());
}

#[tokio::test]
async fn a_refusal_after_a_lost_first_send_is_not_taken_for_the_end() {
    for code in ["41", "44", "46", "54"] {
        let desk = Desk::new();
        let charge = desk.settled().await;
        desk.twoc2p.set_forgets_idempotency_ids(true);
        desk.twoc2p.set_refund_rows(RefundRows::WithUserDefined);
        desk.twoc2p.next_maintenance_code_after_effect("R", "95");
        desk.twoc2p.next_maintenance_code("R", code);
        assert_is(&desk.shop.pay(&desk.refund("r-1", "25.00", &charge)).await, "succeeded");
        assert_eq!(desk.bank().total(OperationKind::Refund, "INV7001"), 2500, "{code}");
    }
    // Without a first send it is.
    let desk = Desk::new();
    let charge = desk.settled().await;
    desk.twoc2p.next_maintenance_code("R", "46");
    let told = failed(desk.shop.pay(&desk.refund("r-1", "25.00", &charge)).await);
    assert_eq!(told.category, FailureCategory::Declined);
    assert_eq!(desk.requests("R").len(), 1);
}

#[tokio::test]
async fn options_of_the_other_interface_are_refused_and_not_dropped() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    let refund = desk
        .refund("r-1", "25.00", &charge)
        .with(TwoC2pOptions::new().locale("th"));
    let order = Operation::charge("INV7002", thb("1.00")).unwrap();
    let order = order.with(ActionOptions::new().notify_url("https://shop.example/2c2p"));
    for operation in [refund, order] {
        let error = desk.shop.try_pay(&operation).await.unwrap_err();
        assert!(
            matches!(error, payonce::Error::Invalid(ref invalid) if invalid.field() == "options"),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn what_goes_with_a_refund_is_written_where_the_template_has_it() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    let options = ActionOptions::new()
        .bank_account("014", "ผู้รับ <A&B>", "1234567890")
        .sub_merchant("SUB1", thb("10.00"))
        .sub_merchant("SUB2", thb("15.00"))
        .notify_url("https://shop.example/2c2p?a=1&b=2");
    let refund = desk.refund("r-1", "25.00", &charge);
    let refund = refund
        .with(options.clone())
        .metadata("till", "7")
        .description("Broken glass");
    assert_is(&desk.shop.pay(&refund).await, "succeeded");
    let sent = &desk.requests("R")[0];
    let names = [
        "version",
        "merchantID",
        "processType",
        "invoiceNo",
        "actionAmount",
        "bankCode",
        "accountName",
        "accountNumber",
        "subMerchantList",
        "notifyURL",
        "userDefined1",
        "userDefined2",
        "idempotencyID",
        "notes",
    ];
    let places: Vec<usize> = names
        .iter()
        .map(|name| sent.find(&format!("<{name}>")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{sent}");
    assert_eq!(element(sent, "accountName").as_deref(), Some("ผู้รับ &lt;A&amp;B&gt;"));
    assert_eq!(element(sent, "userDefined2").as_deref(), Some("till=7"));
    assert!(
        sent.contains("<subMerchant subMID=\"SUB1\" subAmount=\"10.00\"/>"),
        "{sent}"
    );
    assert!(!format!("{refund:?}{options:?}").contains("1234567890"));
    // Shares that are not the whole, in another currency, or too long: nothing leaves.
    for wrong in [
        ActionOptions::new().sub_merchant("SUB1", thb("10.00")),
        ActionOptions::new().payment_amount(Money::parse("1", Currency::USD).unwrap()),
        ActionOptions::new().bank_account("12345678901", "a", "1"),
        ActionOptions::new().notify_url("javascript:alert(1)"),
    ] {
        let refund = desk.refund("r-2", "25.00", &charge).with(wrong);
        assert!(matches!(
            desk.shop.try_pay(&refund).await,
            Err(payonce::Error::Invalid(_))
        ));
    }
    assert_eq!(desk.requests("R").len(), 1);
}

#[tokio::test]
async fn a_refund_that_2c2p_has_accepted_is_not_given_up_because_no_list_shows_it() {
    let written = Written::new();
    written.answers(|sealer, process, document| match process {
        "I" => sealed(sealer, &paid_and_settled(document)),
        "RS" => sealed(sealer, &response("00", "RS", "INV7001", "")),
        _ => sealed(
            sealer,
            &response("42", "R", "INV7001", "<amount>25.00</amount><status>RP</status>"),
        ),
    });
    let refund = sealed::refund("INV7001");
    assert_is(&written.shop.pay(&refund).await, "pending");
    for _ in 0..12 {
        written.shop.clock.advance(16 * MINUTE);
        assert_is(&written.shop.resolve(&refund).await, "pending");
    }
    assert_eq!(written.requests("R").len(), 1);
}
