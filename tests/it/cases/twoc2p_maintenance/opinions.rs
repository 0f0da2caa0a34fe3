//! The maintenance API's view where a payment inquiry is vague.

use super::*;
use crate::shop::assert_is;
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p};
use payonce::journal::MemoryJournal;
use payonce::outcome::{ConflictKind, FailureCategory};
use payonce::testing::{Fault, FaultPlan};

const INQUIRY: &str = "POST /payment/4.3/paymentInquiry";

impl Desk {
    /// A charge of 2000.00 whose payment inquiry says nothing but `code`, and which stands so at the maintenance API.
    async fn vague(code: &str, status: &str, amount: &str) -> (Self, Operation) {
        let desk = Self::new();
        let charge = Operation::charge("INV7001", thb("2000.00")).unwrap();
        assert_is(&desk.shop.pay(&charge).await, "pending");
        desk.twoc2p.set_unpaid_code(code);
        desk.twoc2p.override_status("INV7001", Some(status), Some(amount));
        (desk, charge)
    }
}

#[tokio::test]
async fn c36_paid_over_another_amount_or_too_late_is_a_conflict_and_never_failed() {
    for code in ["2003", "4099", "2001", "2002", "4006", "0999"] {
        for (status, amount, expected) in [
            ("A", "2000.00", "succeeded"),
            ("RS", "2000.00", "succeeded"),
            ("S", "2000.00", "succeeded"),
            ("AP", "2000.00", "pending"),
            ("AL", "1500.00", "conflict"),
            ("AM", "2500.00", "conflict"),
            ("AE", "2000.00", "conflict"),
            ("S", "1999.00", "conflict"),
        ] {
            let (desk, charge) = Desk::vague(code, status, amount).await;
            let outcome = desk.shop.resolve(&charge).await;
            assert_eq!(outcome.as_str(), expected, "{code} {status}: {outcome:?}");
            if let Outcome::Conflict(conflict) = outcome {
                assert_eq!(conflict.reported, Some(thb(amount)), "{code} {status}");
                assert_eq!(conflict.expected, Some(thb("2000.00")));
                if status != "S" {
                    assert_eq!(conflict.kind, ConflictKind::Irregular);
                }
            }
        }
    }
}

#[tokio::test]
async fn c36_what_was_paid_too_late_is_not_called_failed_after_the_page_closed() {
    let (desk, charge) = Desk::vague("2002", "AE", "2000.00").await;
    desk.shop.clock.advance(120 * MINUTE);
    for _ in 0..3 {
        let Outcome::Conflict(conflict) = desk.shop.resolve(&charge).await else {
            panic!("no conflict")
        };
        assert!(conflict.detail.contains("AE"), "{}", conflict.detail);
        desk.shop.clock.advance(2 * MINUTE);
    }
}

#[tokio::test]
async fn a_refusal_on_an_open_page_is_not_the_end_and_after_its_closing_it_is() {
    let (desk, charge) = Desk::vague("2003", "PF", "2000.00").await;
    desk.twoc2p.set_expired_code("2003");
    assert_is(&desk.shop.resolve(&charge).await, "pending");
    desk.shop.clock.advance(120 * MINUTE);
    assert_eq!(
        failed(desk.shop.resolve(&charge).await).category,
        FailureCategory::Declined
    );
}

#[tokio::test]
async fn what_the_payment_inquiry_is_sure_of_needs_no_second_opinion() {
    let desk = Desk::new();
    desk.paid().await;
    assert!(desk.processes().is_empty());
}

#[tokio::test]
async fn without_keys_the_first_opinion_stands() {
    for (code, expected) in [("2003", "pending"), ("2001", "pending")] {
        let (desk, charge) = Desk::vague(code, "S", "2000.00").await;
        let without = Wired::twoc2p(desk.twoc2p.base_url());
        desk.twoc2p.set_pays_at_once(false);
        let other = Operation::charge("INV7002", thb("2000.00")).unwrap();
        assert_is(&without.pay(&other).await, "pending");
        assert_is(&without.resolve(&other).await, expected);
        assert!(desk.processes().is_empty());
        assert_is(&desk.shop.resolve(&charge).await, "succeeded");
    }
}

#[tokio::test]
async fn absence_takes_both_opinions() {
    // The page is closed, the payment inquiry knows nothing, and the maintenance API cannot be reached.
    let desk = Desk::new();
    let charge = Operation::charge("INV7001", thb("2000.00")).unwrap();
    assert_is(&desk.shop.pay(&charge).await, "pending");
    desk.twoc2p.set_unpaid_code("2002");
    desk.twoc2p.set_expired_code("2002");
    desk.shop.clock.advance(120 * MINUTE);
    for _ in 0..4 {
        desk.twoc2p
            .set_faults(FaultPlan::none().on(ACTION, Fault::CloseAfterReading));
        assert_is(&desk.shop.resolve(&charge).await, "pending");
        desk.shop.clock.advance(5 * MINUTE);
    }
    // Both say that there is none: after two looks the attempt is closed.
    desk.twoc2p.next_maintenance_code("I", "16");
    desk.twoc2p.next_maintenance_code("I", "16");
    assert_is(&desk.shop.resolve(&charge).await, "pending");
    desk.shop.clock.advance(5 * MINUTE);
    assert_eq!(
        failed(desk.shop.resolve(&charge).await).category,
        FailureCategory::Expired
    );
    assert_eq!(desk.bank().charged("INV7001"), 0);
}

#[tokio::test]
async fn second_opinions_have_a_limit_of_their_own() {
    let (desk, charge) = Desk::vague("2003", "S", "2000.00").await;
    let keys = MaintenanceKeys::new(desk.twoc2p.merchant_private_key(), desk.twoc2p.gateway_certificate()).unwrap();
    let account = TwoC2p::builder(MERCHANT, MERCHANT_SECRET)
        .base_url(desk.twoc2p.base_url())
        .maintenance_url(desk.twoc2p.maintenance_url())
        .maintenance_keys(keys)
        .second_opinions(1, 2)
        .clock(Arc::clone(&desk.shop.clock) as _)
        .build()
        .unwrap();
    let payments = payonce::Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(account))
        .journal(Arc::new(MemoryJournal::new()))
        .clock(Arc::clone(&desk.shop.clock) as _)
        .build()
        .unwrap();
    desk.twoc2p.set_unpaid_code("2001");
    let orders: Vec<Operation> = (2..8)
        .map(|number| Operation::charge(format!("INV700{number}"), thb("10.00")).unwrap())
        .collect();
    for order in &orders {
        assert_is(&payments.execute(order).await.unwrap(), "pending");
    }
    let asked = desk.twoc2p.count(INQUIRY);
    for order in &orders {
        assert_is(&payments.resolve(payments.key(order)).await.unwrap(), "pending");
    }
    assert_eq!(desk.twoc2p.count(INQUIRY) - asked, orders.len());
    assert_eq!(desk.processes(), ["I", "I"], "a burst of two");
    desk.shop.clock.advance(Duration::from_secs(1));
    assert_is(&payments.resolve(payments.key(&orders[0])).await.unwrap(), "pending");
    assert_eq!(desk.processes().len(), 3);
    drop(charge);
}

#[tokio::test]
async fn an_opinion_about_somebody_else_s_payment_is_not_taken() {
    let desk = Desk::new();
    // Another system of the merchant has used the same invoice number.
    let theirs = Wired::maintained(&desk.twoc2p).another_process(|builder| builder.namespace("shop2"));
    let charge = Operation::charge("INV7001", thb("2000.00")).unwrap();
    assert_is(&theirs.pay(&charge).await, "pending");
    desk.twoc2p.set_unpaid_code("2003");
    desk.twoc2p.override_status("INV7001", Some("S"), Some("2000.00"));
    let outcome = desk.shop.pay(&charge).await;
    assert!(!matches!(outcome, Outcome::Succeeded(_)), "{outcome:?}");
}
