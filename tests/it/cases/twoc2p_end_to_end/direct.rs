//! Direct payments at 2C2P: two requests, of which only the second moves money.

use super::{Counter, MINUTE, PAYMENT, second};
use crate::shop::assert_is;
use crate::wired::{INQUIRY, TOKEN, claims, invoice, of, policy, thb};
use payonce::error::Error;
use payonce::gateway::twoc2p::TwoC2pOptions;
use payonce::operation::Operation;
use payonce::outcome::{FailureCategory, NextStep, Outcome};
use payonce::testing::server::DirectPayment;
use payonce::testing::{Fault, FaultPlan};

fn by_token() -> Operation {
    invoice("2000.00").with(TwoC2pOptions::new().customer_token("TESTONLYcustomertoken"))
}

fn by_qr() -> Operation {
    invoice("2000.00").with(TwoC2pOptions::new().direct_channel("PPQR").direct_qr_type("URL"))
}

#[tokio::test]
async fn c34_a_stored_card_is_charged_by_three_requests() {
    let counter = Counter::new();
    let Outcome::Succeeded(succeeded) = counter.shop.pay(&by_token()).await else {
        panic!("not paid")
    };
    assert_eq!(succeeded.amount, Some(thb("2000.00")));
    let counts = (
        counter.twoc2p.count(TOKEN),
        counter.twoc2p.count(PAYMENT),
        counter.twoc2p.count(INQUIRY),
    );
    assert_eq!(counts, (1, 1, 1), "2000 is followed by exactly one inquiry");
    assert_eq!(counter.bank().charged("INV7001"), 1);
    let token = claims(&of(counter.twoc2p.requests(), TOKEN)[0]);
    assert!(
        !token.contains("TESTONLYcustomertoken"),
        "the card goes with the payment"
    );
    let payment = of(counter.twoc2p.requests(), PAYMENT)[0].text();
    assert!(payment.contains("TESTONLYcustomertoken"));
}

#[tokio::test]
async fn a_declined_card_is_final_at_once_and_another_attempt_may_follow() {
    let counter = Counter::new();
    counter.twoc2p.next_payment(DirectPayment::Decline("4051".to_owned()));
    let Outcome::Failed(failed) = counter.shop.pay(&by_token()).await else {
        panic!("not declined")
    };
    assert_eq!(failed.category, FailureCategory::Declined);
    assert_eq!(failed.evidence.code.as_deref(), Some("4051"));
    assert_is(&counter.shop.pay(&second(&by_token())).await, "succeeded");
    assert_eq!(counter.twoc2p.invoices().len(), 2);
    assert_eq!(counter.bank().movements().len(), 1);
}

#[tokio::test]
async fn a_payer_who_has_to_authenticate_is_waited_for() {
    let counter = Counter::new();
    counter.twoc2p.next_payment(DirectPayment::Redirect);
    let Outcome::Pending(pending) = counter.shop.pay(&by_token()).await else {
        panic!("not pending")
    };
    assert!(matches!(pending.next, NextStep::Redirect { .. }), "{pending:?}");
    assert_eq!(counter.bank().charged("INV7001"), 0);
    let beside = counter.shop.try_pay(&second(&by_token())).await;
    assert!(
        matches!(beside, Err(Error::AttemptOpen { attempt: 1, .. })),
        "{beside:?}"
    );
    assert!(counter.twoc2p.pay("INV7001"));
    assert_is(&counter.shop.pay(&by_token()).await, "succeeded");
    assert_eq!(
        (counter.twoc2p.count(PAYMENT), counter.bank().charged("INV7001")),
        (1, 1)
    );
}

#[tokio::test]
async fn a_qr_code_is_shown_and_scanned() {
    let counter = Counter::new();
    let Outcome::Pending(pending) = counter.shop.pay(&by_qr()).await else {
        panic!("not pending")
    };
    assert!(matches!(&pending.next, NextStep::QrCode { data } if data.expose().ends_with("INV7001.png")));
    assert!(counter.twoc2p.pay("INV7001"));
    assert_is(&counter.shop.resolve(&by_qr()).await, "succeeded");
    assert_eq!(counter.bank().charged("INV7001"), 1);
}

#[tokio::test]
async fn every_fault_of_either_request_charges_a_stored_card_at_most_once() {
    for route in [TOKEN, PAYMENT] {
        for fault in Fault::ALL.into_iter().filter(|fault| !fault.stalls()) {
            let counter = Counter::with(|builder| builder.policy(policy(2)));
            counter.twoc2p.set_faults(FaultPlan::none().on(route, fault));
            let mut outcome = counter.shop.pay(&by_token()).await;
            for _ in 0..3 {
                outcome = counter.shop.pay(&by_token()).await;
            }
            let charged = counter.bank().charged(&counter.shop.key(&by_token()));
            // What was executed is found. A payment that never came to be leaves its invoice number burnt, and is not
            // made with another one behind the caller's back.
            let executed = route == PAYMENT && fault.has_effect();
            let untouched = route == TOKEN && !fault.has_effect();
            assert_eq!(charged, usize::from(executed || untouched), "{route} {fault:?}");
            assert_eq!(
                outcome.as_str() == "succeeded",
                charged == 1,
                "{route} {fault:?}: {outcome:?}"
            );
            assert!(counter.twoc2p.count(PAYMENT) <= 1, "{route} {fault:?}");
            assert_eq!(counter.twoc2p.invoices(), ["INV7001"]);

            if charged == 0 {
                assert!(!outcome.is_settled(), "{route} {fault:?}: {outcome:?}");
                counter.twoc2p.set_unpaid_code("2002");
                counter.twoc2p.set_expired_code("2002");
                for _ in 0..3 {
                    counter.shop.clock.advance(MINUTE * 46);
                    outcome = counter.shop.resolve(&by_token()).await;
                }
                assert_is(&outcome, "failed");
                assert_is(&counter.shop.pay(&second(&by_token())).await, "succeeded");
            }
            assert_eq!(counter.bank().movements().len(), 1, "{route} {fault:?}");
        }
    }
}
