//! 2C2P's hosted page: the payer pays, is refused, turns back, comes late; and the inquiry lags.

use super::{Counter, MINUTE, second, shop_at, signed};
use crate::shop::{NOW, assert_is};
use crate::wired::{INQUIRY, TOKEN, claims, invoice, of, policy, thb};
use payonce::error::Error;
use payonce::gateway::RawNotification;
use payonce::operation::Operation;
use payonce::outcome::{ConflictKind, FailureCategory, NextStep, Outcome};
use payonce::reconcile::Reconciler;
use payonce::testing::server::{AmountForm, ScriptedServer};
use payonce::testing::{Fault, FaultPlan};

fn order() -> Operation {
    invoice("2000.00")
}

/// A shop whose payer has the page of INV7001 before them.
async fn page() -> Counter {
    let counter = Counter::new();
    let Outcome::Pending(pending) = counter.shop.pay(&order()).await else {
        panic!("no page")
    };
    let NextStep::Redirect { url } = &pending.next else {
        panic!("{pending:?}")
    };
    assert_eq!(url.expose(), counter.twoc2p.page_url(&counter.twoc2p.invoices()[0]));
    assert_eq!(pending.expires_at, Some(NOW.after(MINUTE * 30)));
    counter
}

#[tokio::test]
async fn a_page_is_paid_once_and_the_link_is_kept_until_then() {
    for form in [
        AmountForm::Number,
        AmountForm::ShortNumber,
        AmountForm::Text,
        AmountForm::Padded,
    ] {
        let counter = page().await;
        counter.twoc2p.set_amount_form(form);
        // The payer presses pay again: the same page, and no second one.
        let Outcome::Pending(pending) = counter.shop.pay(&order()).await else {
            panic!("not pending")
        };
        assert!(matches!(pending.next, NextStep::Redirect { .. }), "the link is lost");
        assert!(counter.twoc2p.pay("INV7001"));
        let Outcome::Succeeded(succeeded) = counter.shop.pay(&order()).await else {
            panic!("not paid")
        };
        assert_eq!(succeeded.amount, Some(thb("2000.00")), "{form:?}");
        assert_is(&counter.shop.pay(&order()).await, "succeeded");
        assert_eq!((counter.twoc2p.count(TOKEN), counter.bank().charged("INV7001")), (1, 1));
        assert_eq!(counter.bank().charged(&counter.shop.key(&order())), 1);
    }
}

#[tokio::test]
async fn a_declined_card_leaves_the_page_open_for_another() {
    let counter = page().await;
    assert!(counter.twoc2p.decline("INV7001", "4051"));
    let Outcome::Pending(pending) = counter.shop.resolve(&order()).await else {
        panic!("one card is not all cards")
    };
    assert_eq!(pending.evidence.code.as_deref(), Some("4051"));
    let beside = counter.shop.try_pay(&second(&order())).await;
    assert!(
        matches!(beside, Err(Error::AttemptOpen { attempt: 1, .. })),
        "{beside:?}"
    );
    assert!(counter.twoc2p.pay("INV7001"));
    assert_is(&counter.shop.resolve(&order()).await, "succeeded");
    assert_eq!(counter.bank().charged("INV7001"), 1);
}

#[tokio::test]
async fn a_declined_card_is_final_once_the_page_has_closed() {
    let counter = page().await;
    assert!(counter.twoc2p.decline("INV7001", "4051"));
    counter.shop.clock.advance(MINUTE * 46);
    let Outcome::Failed(failed) = counter.shop.resolve(&order()).await else {
        panic!("not failed")
    };
    assert_eq!(failed.category, FailureCategory::Declined);
    assert_is(&counter.shop.pay(&second(&order())).await, "pending");
    let invoices = counter.twoc2p.invoices();
    assert!(counter.twoc2p.pay(&invoices[1]));
    assert_is(&counter.shop.pay(&second(&order())).await, "succeeded");
    assert!(counter.bank().moved_twice().is_empty());
    assert_eq!(counter.bank().movements().len(), 1);
}

#[tokio::test]
async fn a_payer_who_turns_back_may_still_have_the_link() {
    let counter = page().await;
    assert!(counter.twoc2p.cancel("INV7001"));
    assert_is(&counter.shop.resolve(&order()).await, "pending");
    assert!(counter.twoc2p.pay("INV7001"), "the link still works");
    assert_is(&counter.shop.resolve(&order()).await, "succeeded");

    let counter = page().await;
    assert!(counter.twoc2p.cancel("INV7001"));
    counter.shop.clock.advance(MINUTE * 46);
    let Outcome::Failed(failed) = counter.shop.resolve(&order()).await else {
        panic!("not failed")
    };
    assert_eq!(failed.category, FailureCategory::Cancelled);
}

#[tokio::test]
async fn c36_money_that_comes_late_is_for_a_person_to_decide_about() {
    let counter = page().await;
    counter.shop.clock.advance(MINUTE * 31);
    assert!(counter.twoc2p.pay_late("INV7001"));
    let Outcome::Conflict(conflict) = counter.shop.resolve(&order()).await else {
        panic!("decided")
    };
    assert_eq!(conflict.kind, ConflictKind::Irregular);
    assert_eq!(conflict.reported, Some(thb("2000.00")));
    let beside = counter.shop.try_pay(&second(&order())).await;
    assert!(
        matches!(beside, Err(Error::AttemptOpen { attempt: 1, .. })),
        "{beside:?}"
    );
    assert_eq!(counter.bank().charged("INV7001"), 1);
}

#[track_caller]
fn expired(outcome: &Outcome) {
    let Outcome::Failed(failed) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(failed.category, FailureCategory::Expired);
}

#[tokio::test]
async fn an_expired_page_makes_room_for_another_attempt() {
    for code in ["5009", "9020", "2002"] {
        let counter = page().await;
        counter.twoc2p.set_expired_code(code);
        counter.shop.clock.advance(MINUTE * 31);
        if code == "2002" {
            // "Not found" is believed when the page and its grace are over, and not at once.
            assert_is(&counter.shop.resolve(&order()).await, "pending");
            counter.shop.clock.advance(MINUTE * 15);
            assert_is(&counter.shop.resolve(&order()).await, "pending");
            counter.shop.clock.advance(MINUTE);
        }
        expired(&counter.shop.resolve(&order()).await);
        assert_is(&counter.shop.pay(&second(&order())).await, "pending");
        assert!(!counter.twoc2p.pay("INV7001") && counter.twoc2p.pay(&counter.twoc2p.invoices()[1]));
        assert_is(&counter.shop.pay(&second(&order())).await, "succeeded");
        assert_eq!(counter.bank().movements().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_names_no_invoice_closes_an_expired_page_as_slowly_as_not_found_does() {
    let server = ScriptedServer::start();
    let issued =
        r#"{"respCode":"0000","webPaymentUrl":"https://pgw-ui.2c2p.com/page/1","paymentToken":"TESTONLYpaytoken"}"#;
    server.reply(TOKEN, signed(issued)).always(INQUIRY, |_| {
        signed(r#"{"respCode":"5009","respDesc":"Payment expired"}"#)
    });
    let shop = shop_at(&server);
    assert_is(&shop.pay(&order()).await, "pending");
    for minutes in [20, 15, 11] {
        shop.clock.advance(MINUTE * minutes);
        assert_is(&shop.resolve(&order()).await, "pending");
    }
    shop.clock.advance(MINUTE);
    expired(&shop.resolve(&order()).await);
}

#[tokio::test]
async fn money_that_comes_after_the_attempt_was_closed_is_found_out_all_the_same() {
    let counter = page().await;
    counter.shop.clock.advance(MINUTE * 31);
    expired(&counter.shop.resolve(&order()).await);
    assert!(counter.twoc2p.pay_late("INV7001"));
    let raw = RawNotification::new(Vec::new(), counter.twoc2p.callback("INV7001"), NOW);
    counter.shop.payments.notify("2c2p", &raw).await.unwrap();
    assert_is(&counter.shop.look_up(&order()).await.unwrap(), "conflict");
}

#[tokio::test]
async fn an_inquiry_that_lags_behind_the_payment_is_asked_again() {
    let counter = page().await;
    counter.twoc2p.set_inquiry_lag(3);
    assert!(counter.twoc2p.pay("INV7001"));
    let reconciler = Reconciler::new(counter.shop.another_process(|builder| builder).payments);
    for minutes in [1, 1, 3] {
        counter.shop.clock.advance(MINUTE * minutes);
        assert_eq!(reconciler.run_once().await.unwrap().settled, 0);
        assert!(!counter.shop.look_up(&order()).await.unwrap().is_settled());
    }
    counter.shop.clock.advance(MINUTE * 7);
    assert_eq!(reconciler.run_once().await.unwrap().settled, 1);
    assert_is(&counter.shop.look_up(&order()).await.unwrap(), "succeeded");
    assert_eq!((counter.twoc2p.count(TOKEN), counter.twoc2p.count(INQUIRY)), (1, 4));
    assert_eq!(counter.bank().charged("INV7001"), 1);
}

#[tokio::test]
async fn a_lag_does_not_close_what_was_paid_in_the_last_minute() {
    let counter = page().await;
    counter.shop.clock.advance(MINUTE * 29);
    counter.twoc2p.set_inquiry_lag(1);
    assert!(counter.twoc2p.pay("INV7001"));
    counter.shop.clock.advance(MINUTE * 17);
    assert!(
        !counter.shop.resolve(&order()).await.is_settled(),
        "one look proves nothing"
    );
    counter.shop.clock.advance(MINUTE);
    assert_is(&counter.shop.resolve(&order()).await, "succeeded");
}

#[tokio::test]
async fn c32_9015_means_the_same_signed_and_unsigned() {
    for signs in [true, false] {
        for paid in [true, false] {
            let counter = Counter::new();
            counter.twoc2p.set_signs_refusals(signs);
            counter.twoc2p.set_pays_at_once(paid);
            counter
                .twoc2p
                .set_faults(FaultPlan::none().on(TOKEN, Fault::ResetAfterEffect));
            let expected = if paid { "succeeded" } else { "pending" };
            assert_is(&counter.shop.pay(&order()).await, expected);
            assert_eq!((counter.twoc2p.count(TOKEN), counter.twoc2p.count(INQUIRY)), (2, 1));
            assert_eq!(counter.twoc2p.invoices(), ["INV7001"]);
            assert_eq!(counter.bank().charged("INV7001"), usize::from(paid));
        }
    }
}

#[tokio::test]
async fn where_2c2p_gives_the_first_token_again_the_payer_gets_the_page() {
    let counter = Counter::new();
    counter.twoc2p.set_replays_same_idempotency_id(true);
    counter
        .twoc2p
        .set_faults(FaultPlan::none().on(TOKEN, Fault::CloseAfterEffect));
    let Outcome::Pending(pending) = counter.shop.pay(&order()).await else {
        panic!("not pending")
    };
    assert!(matches!(pending.next, NextStep::Redirect { .. }));
    assert_eq!((counter.twoc2p.count(TOKEN), counter.twoc2p.count(INQUIRY)), (2, 0));
    assert_eq!(counter.twoc2p.invoices(), ["INV7001"]);
}

#[tokio::test]
async fn every_fault_of_the_token_request_ends_in_one_invoice_and_one_payment() {
    for fault in Fault::ALL.into_iter().filter(|fault| !fault.stalls()) {
        let counter = Counter::with(|builder| builder.policy(policy(1)));
        counter.twoc2p.set_pays_at_once(true);
        counter.twoc2p.set_faults(FaultPlan::none().on(TOKEN, fault));
        let mut outcome = counter.shop.pay(&order()).await;
        for _ in 0..4 {
            if outcome.is_settled() {
                break;
            }
            outcome = counter.shop.pay(&order()).await;
        }
        assert_is(&outcome, "succeeded");
        assert_eq!(counter.twoc2p.invoices(), ["INV7001"], "{fault:?}");
        assert_eq!(counter.bank().charged(&counter.shop.key(&order())), 1, "{fault:?}");
        let tokens = of(counter.twoc2p.requests(), TOKEN);
        assert!(tokens.iter().all(|request| claims(request) == claims(&tokens[0])));
    }
}
