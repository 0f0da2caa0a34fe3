//! Voids, and the settlement that comes between.

use super::*;
use crate::shop::assert_is;
use payonce::operation::{GatewayRef, OperationKind};
use payonce::outcome::{ConflictKind, FailureCategory};
use payonce::testing::{Fault, FaultPlan};

#[tokio::test]
async fn a_payment_that_is_not_settled_is_voided_once() {
    let desk = Desk::new();
    let charge = desk.paid().await;
    let void = desk.void(&charge);
    for _ in 0..2 {
        assert_is(&desk.shop.pay(&void).await, "succeeded");
    }
    assert_eq!(desk.bank().voided("INV7001"), 1);
    let sent = desk.requests("V");
    assert_eq!(sent.len(), 1);
    assert_eq!(element(&sent[0], "actionAmount").as_deref(), Some("100.00"));
    assert_eq!(element(&sent[0], "idempotencyID"), Some(desk.shop.key(&void)));
}

#[tokio::test]
async fn c62_a_void_that_meets_the_settlement_is_told_so_and_nothing_is_refunded() {
    for code in ["21", "12"] {
        let desk = Desk::new();
        let charge = desk.paid().await;
        let void = desk.void(&charge);
        assert_eq!(desk.twoc2p.status("INV7001"), "A");
        desk.twoc2p.next_maintenance_code("V", code);
        assert!(desk.twoc2p.settle("INV7001"));
        let told = failed(desk.shop.pay(&void).await);
        assert_eq!(told.category, FailureCategory::Settled);
        assert_eq!(told.settled, Some(thb("100.00")));
        assert_eq!(desk.processes(), ["V", "I"], "{code}");
        let bank = desk.bank();
        assert_eq!((bank.voided("INV7001"), bank.refunded("INV7001")), (0, 0));
    }
}

#[tokio::test]
async fn c62_cancelled_by_any_means_it_is_given_back_once_under_an_identity_of_its_own() {
    for code in ["21", "12"] {
        let desk = Desk::new();
        let charge = desk.paid().await;
        let void = desk.void(&charge);
        desk.twoc2p.next_maintenance_code("V", code);
        assert!(desk.twoc2p.settle("INV7001"));
        for _ in 0..2 {
            assert_is(&desk.shop.payments.cancel(&void).await.unwrap(), "succeeded");
        }
        let bank = desk.bank();
        assert_eq!((bank.voided("INV7001"), bank.refunded("INV7001")), (0, 1));
        assert_eq!(bank.total(OperationKind::Refund, "INV7001"), 10_000);
        let sent = desk.requests("R");
        assert_eq!(sent.len(), 1);
        assert_ne!(element(&sent[0], "idempotencyID"), Some(desk.shop.key(&void)));
    }
}

#[tokio::test]
async fn c62_while_the_second_look_fails_nothing_is_refunded() {
    let desk = Desk::with(|builder| builder.policy(crate::wired::policy(1)));
    let charge = desk.paid().await;
    let void = desk.void(&charge);
    desk.twoc2p.next_maintenance_code("V", "21");
    assert!(desk.twoc2p.settle("INV7001"));
    let lost = Fault::CloseAfterReading;
    let plan = FaultPlan::none().on(ACTION, None).on(ACTION, lost).on(ACTION, lost);
    desk.twoc2p.set_faults(plan.inquiries_too());
    assert_is(&desk.shop.payments.cancel(&void).await.unwrap(), "unknown");
    assert!(desk.requests("R").is_empty());
    assert_eq!(desk.bank().refunded("INV7001"), 0);
    // It can be looked at again: now it is known, and one refund follows.
    assert_is(&desk.shop.payments.cancel(&void).await.unwrap(), "succeeded");
    let bank = desk.bank();
    assert_eq!((bank.voided("INV7001"), bank.refunded("INV7001")), (0, 1));
}

#[tokio::test]
async fn c62_what_is_on_its_way_to_the_acquirer_stays_open_until_it_has_arrived() {
    let desk = Desk::with(|builder| builder.policy(crate::wired::policy(1)));
    let charge = desk.paid().await;
    let void = desk.void(&charge);
    desk.twoc2p.next_maintenance_code("V", "21");
    desk.twoc2p.override_status("INV7001", Some("RS"), None);
    assert_is(&desk.shop.payments.cancel(&void).await.unwrap(), "unknown");
    desk.twoc2p.override_status("INV7001", None, None);
    assert!(desk.twoc2p.settle("INV7001"));
    assert_eq!(
        failed(desk.shop.resolve(&void).await).category,
        FailureCategory::Settled
    );
    assert_is(&desk.shop.payments.cancel(&void).await.unwrap(), "succeeded");
    let bank = desk.bank();
    assert_eq!((bank.voided("INV7001"), bank.refunded("INV7001")), (0, 1));
}

#[tokio::test]
async fn c63_a_repeat_that_is_told_already_voided_was_ours() {
    let desk = Desk::new();
    let charge = desk.paid().await;
    desk.twoc2p.set_forgets_idempotency_ids(true);
    desk.twoc2p.next_maintenance_code_after_effect("V", "95");
    assert_is(&desk.shop.pay(&desk.void(&charge)).await, "succeeded");
    assert_eq!(desk.processes(), ["V", "V", "I"]);
    assert_eq!(desk.bank().voided("INV7001"), 1);
}

#[tokio::test]
async fn c63_already_voided_and_settled_cannot_both_be_true() {
    let desk = Desk::new();
    let charge = desk.settled().await;
    desk.twoc2p.next_maintenance_code("V", "29");
    let Outcome::Conflict(conflict) = desk.shop.pay(&desk.void(&charge)).await else {
        panic!("no conflict")
    };
    assert_eq!(conflict.kind, ConflictKind::Contradiction);
    assert!(conflict.detail.contains("settled"), "{}", conflict.detail);
    assert_eq!(desk.bank().voided("INV7001"), 0);
}

#[tokio::test]
async fn a_refused_void_of_what_is_not_settled_is_final() {
    for code in ["21", "12", "25", "61", "65"] {
        let desk = Desk::new();
        let charge = desk.paid().await;
        desk.twoc2p.next_maintenance_code("V", code);
        let told = failed(desk.shop.pay(&desk.void(&charge)).await);
        assert_eq!(told.category, FailureCategory::Declined, "{code}");
        assert_eq!(desk.bank().voided("INV7001"), 0);
    }
}

#[tokio::test]
async fn a_payment_of_another_journal_is_voided_by_its_invoice_number_and_amount() {
    let desk = Desk::new();
    desk.paid().await;
    let elsewhere = Wired::maintained(&desk.twoc2p);
    let invoice = Target::Gateway(GatewayRef::new("INV7001"));
    let void = Operation::void("void-1", invoice).unwrap();
    let error = elsewhere.try_pay(&void).await.unwrap_err();
    assert!(matches!(error, payonce::Error::Invalid(ref invalid) if invalid.field() == "payment_amount"));
    assert!(desk.processes().is_empty());
    let told = payonce::gateway::twoc2p::ActionOptions::new().payment_amount(thb("100.00"));
    let void = void.with(told);
    desk.twoc2p.next_maintenance_code_after_effect("V", "99");
    desk.twoc2p.set_forgets_idempotency_ids(true);
    assert_is(&elsewhere.pay(&void).await, "succeeded");
    assert_eq!(desk.bank().voided("INV7001"), 1);
}
