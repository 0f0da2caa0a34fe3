//! Settlements, 2C2P's word for captures.

use super::*;
use crate::shop::assert_is;
use payonce::operation::OperationKind;
use payonce::outcome::{ConflictKind, FailureCategory};
use payonce::testing::{Fault, FaultPlan};

#[tokio::test]
async fn an_authorization_is_captured_once_and_final_when_it_is_settled() {
    let desk = Desk::new();
    let authorize = desk.authorized().await;
    let capture = desk.capture("100.00", &authorize);
    assert_is(&desk.shop.pay(&capture).await, "pending");
    assert_is(&desk.shop.resolve(&capture).await, "pending");
    assert!(desk.twoc2p.settle("INV7001"));
    assert_is(&desk.shop.resolve(&capture).await, "succeeded");
    assert_is(&desk.shop.pay(&capture).await, "succeeded");
    let bank = desk.bank();
    assert_eq!(
        (
            bank.authorized("INV7001"),
            bank.captured("INV7001"),
            bank.charged("INV7001")
        ),
        (1, 1, 0)
    );
    assert_eq!(desk.requests("S").len(), 1);
}

#[tokio::test]
async fn a_part_is_captured_with_its_own_amount_and_never_the_whole() {
    let desk = Desk::new();
    let authorize = desk.authorized().await;
    let capture = desk.capture("60.00", &authorize);
    assert_is(&desk.shop.pay(&capture).await, "pending");
    assert_eq!(
        element(&desk.requests("S")[0], "actionAmount").as_deref(),
        Some("60.00")
    );
    assert_eq!(desk.bank().total(OperationKind::Capture, "INV7001"), 6000);
}

#[tokio::test]
async fn c61_codes_that_are_no_failures_are_decided_by_the_inquiry() {
    for code in ["39", "34", "32", "35", "95"] {
        let desk = Desk::new();
        let authorize = desk.authorized().await;
        desk.twoc2p.next_maintenance_code("S", code);
        desk.twoc2p.next_maintenance_code("S", code);
        desk.twoc2p.next_maintenance_code("S", code);
        desk.twoc2p.override_status("INV7001", Some("S"), Some("100.00"));
        let outcome = desk.shop.pay(&desk.capture("100.00", &authorize)).await;
        assert_is(&outcome, "succeeded");
        assert_eq!(desk.processes().last().map(String::as_str), Some("I"), "{code}");
        assert_eq!(
            desk.bank().captured("INV7001"),
            0,
            "settled by somebody else, and not again by us"
        );
    }
}

#[tokio::test]
async fn c61_settled_over_another_amount_is_a_conflict() {
    let desk = Desk::new();
    let authorize = desk.authorized().await;
    desk.twoc2p.next_maintenance_code("S", "39");
    desk.twoc2p.override_status("INV7001", Some("S"), Some("60.00"));
    let Outcome::Conflict(conflict) = desk.shop.pay(&desk.capture("100.00", &authorize)).await else {
        panic!("no conflict")
    };
    assert_eq!(conflict.kind, ConflictKind::Amount);
    assert_eq!(
        (conflict.expected, conflict.reported),
        (Some(thb("100.00")), Some(thb("60.00")))
    );
}

#[tokio::test]
async fn c61_a_failed_settlement_is_final_only_while_the_payment_is_as_it_was() {
    let desk = Desk::new();
    let authorize = desk.authorized().await;
    desk.twoc2p.next_maintenance_code("S", "35");
    let told = failed(desk.shop.pay(&desk.capture("100.00", &authorize)).await);
    assert_eq!(told.category, FailureCategory::Declined);
    assert_eq!(desk.processes(), ["S", "I"]);
    assert_eq!(desk.bank().captured("INV7001"), 0);
}

#[tokio::test]
async fn already_settled_is_not_believed_against_the_status() {
    let desk = Desk::with(|builder| builder.policy(crate::wired::policy(1)));
    let authorize = desk.authorized().await;
    desk.twoc2p.next_maintenance_code("S", "39");
    assert_is(&desk.shop.pay(&desk.capture("100.00", &authorize)).await, "unknown");
}

#[tokio::test]
async fn a_lost_answer_is_repeated_under_the_same_id_and_settles_once() {
    for fault in [
        Fault::CloseAfterReading,
        Fault::CloseAfterEffect,
        Fault::ErrorAfterEffect,
        Fault::HtmlAfterEffect,
    ] {
        let desk = Desk::new();
        let authorize = desk.authorized().await;
        desk.twoc2p.set_faults(FaultPlan::none().on(ACTION, fault));
        let capture = desk.capture("100.00", &authorize);
        assert_is(&desk.shop.pay(&capture).await, "pending");
        assert!(desk.twoc2p.settle("INV7001"));
        assert_is(&desk.shop.resolve(&capture).await, "succeeded");
        assert_eq!(desk.bank().captured("INV7001"), 1, "{fault:?}");
    }
}
