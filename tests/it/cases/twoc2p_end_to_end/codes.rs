//! Cases C32 to C35: what the codes mean where they stand.

use super::{Counter, MINUTE, PAYMENT, second, shop_at, signed};
use crate::shop::assert_is;
use crate::wired::{INQUIRY, TOKEN, claims, impatient, invoice, of, policy, thb};
use base64::Engine as _;
use payonce::clock::Clock;
use payonce::error::Error;
use payonce::gateway::RawNotification;
use payonce::gateway::twoc2p::{TwoC2pOptions, read_browser_return};
use payonce::operation::Operation;
use payonce::outcome::{FailureCategory, Outcome};
use payonce::testing::server::{Reply, ScriptedServer};
use payonce::testing::{Fault, FaultPlan};
use std::time::Duration;

const EXISTS: &str = r#"{"respCode":"9015","respDesc":"Existing Invoice Number"}"#;
const PAID: &str = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":2000.00,"currencyCode":"THB","respCode":"0000","respDesc":"Success","tranRef":"T1"}"#;

fn order() -> Operation {
    invoice("2000.00")
}

#[track_caller]
fn refused_beside_the_first(result: Result<Outcome, Error>) {
    match result {
        Err(Error::AttemptOpen { attempt: 1, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn c32_existing_invoice_after_a_lost_answer_is_asked_about() {
    for lost in [
        Fault::StallAfterEffect,
        Fault::ResetAfterEffect,
        Fault::CloseAfterEffect,
        Fault::HalfBodyAfterEffect,
    ] {
        for unsigned in [false, true] {
            let server = ScriptedServer::start();
            let exists = if unsigned {
                Reply::new(200).json(EXISTS)
            } else {
                signed(EXISTS)
            };
            server
                .reply(TOKEN, signed(r#"{"respCode":"0000"}"#).fault(lost))
                .reply(TOKEN, exists)
                .reply(INQUIRY, signed(PAID));
            let shop = shop_at(&server).with(|builder| builder.policy(impatient(3)));
            let Outcome::Succeeded(succeeded) = shop.pay(&order()).await else {
                panic!("not found")
            };
            assert_eq!(succeeded.amount, Some(thb("2000.00")));
            assert_eq!(succeeded.gateway_ref.unwrap().as_str(), "T1");
            let tokens = of(server.requests(), TOKEN);
            assert_eq!((tokens.len(), server.count(INQUIRY)), (2, 1), "{lost:?}");
            assert_eq!(tokens[0].body, tokens[1].body, "byte for byte");
            for request in server.requests() {
                assert!(
                    claims(&request).contains(r#""invoiceNo":"INV7001""#),
                    "no variant is invented"
                );
            }
        }
    }
}

#[tokio::test]
async fn c32_an_invoice_of_a_journal_that_was_lost_is_asked_about_as_well() {
    for paid in [true, false] {
        let counter = Counter::new();
        assert_is(&counter.shop.pay(&order()).await, "pending");
        if paid {
            assert!(counter.twoc2p.pay("INV7001"));
        }
        let forgetful = counter.shop.with(|builder| builder);
        let expected = if paid { "succeeded" } else { "pending" };
        assert_is(&forgetful.pay(&order()).await, expected);
        assert_eq!((counter.twoc2p.count(TOKEN), counter.twoc2p.count(INQUIRY)), (2, 1));
        assert_eq!(counter.twoc2p.invoices(), ["INV7001"]);
    }
}

#[tokio::test]
async fn c33_an_invoice_that_exists_and_is_not_paid_is_neither_failed_nor_succeeded() {
    for (answer, expected) in [
        (
            r#"{"invoiceNo":"INV7001","respCode":"2002","respDesc":"Transaction not found"}"#,
            "unknown",
        ),
        (r#"{"respCode":"0001","respDesc":"Transaction is pending"}"#, "pending"),
    ] {
        let server = ScriptedServer::start();
        server
            .reply(TOKEN, Reply::new(200).fault(Fault::CloseAfterEffect))
            .reply(TOKEN, signed(EXISTS))
            .always(INQUIRY, move |_| signed(answer));
        let shop = shop_at(&server);
        assert_is(&shop.pay(&order()).await, expected);
        for look in 2..5 {
            shop.clock.advance(Duration::from_secs(10));
            assert_is(&shop.resolve(&order()).await, expected);
            assert_eq!(server.count(INQUIRY), look);
            refused_beside_the_first(shop.try_pay(&second(&order())).await);
        }
        assert_eq!(server.count(TOKEN), 2, "no other number was tried");
    }
}

#[tokio::test]
async fn c33_once_the_page_has_closed_two_looks_make_room_for_another_number() {
    let counter = Counter::new();
    counter.twoc2p.set_unpaid_code("2002");
    counter.twoc2p.set_expired_code("2002");
    counter
        .twoc2p
        .set_faults(FaultPlan::none().on(TOKEN, Fault::CloseAfterEffect));
    let opened = counter.shop.clock.now();
    assert_is(&counter.shop.pay(&order()).await, "unknown");
    assert_eq!(counter.twoc2p.count(TOKEN), 2);

    // Until the page has closed, and for the grace after it, somebody who has the link may pay or have paid.
    for minute in [10, 20, 29, 35, 44] {
        let passed = counter.shop.clock.now().since(opened);
        counter.shop.clock.advance(MINUTE * minute - passed);
        assert_is(&counter.shop.resolve(&order()).await, "unknown");
        refused_beside_the_first(counter.shop.try_pay(&second(&order())).await);
    }
    counter.shop.clock.advance(MINUTE * 2);
    assert_is(&counter.shop.resolve(&order()).await, "unknown");
    refused_beside_the_first(counter.shop.try_pay(&second(&order())).await);
    // At once is no second look.
    assert_is(&counter.shop.resolve(&order()).await, "unknown");
    counter.shop.clock.advance(MINUTE);
    let Outcome::Failed(failed) = counter.shop.resolve(&order()).await else {
        panic!("not closed")
    };
    assert_eq!(failed.category, FailureCategory::Expired);
    assert_eq!(counter.twoc2p.count(TOKEN), 2);

    assert_is(&counter.shop.pay(&second(&order())).await, "pending");
    let invoices = counter.twoc2p.invoices();
    assert_eq!(invoices.len(), 2);
    assert_eq!(invoices[0], "INV7001");
    assert!(counter.twoc2p.pay(&invoices[1]) && !counter.twoc2p.pay(&invoices[0]));
    assert_is(&counter.shop.pay(&second(&order())).await, "succeeded");
    assert_eq!(counter.bank().charged(&counter.shop.key(&second(&order()))), 1);
    assert_eq!(counter.bank().charged(&counter.shop.key(&order())), 0);
}

fn by_token() -> Operation {
    order().with(TwoC2pOptions::new().customer_token("TESTONLYcustomertoken"))
}

const ISSUED: &str = r#"{"respCode":"0000","respDesc":"Success","paymentToken":"TESTONLYpaytoken"}"#;

#[tokio::test]
async fn c34_2000_of_a_direct_payment_is_the_end_of_the_flow_and_not_yet_paid() {
    let finished = r#"{"respCode":"2000","respDesc":"Transaction is completed"}"#;
    for (inquiry, expected) in [
        (PAID.to_owned(), "succeeded"),
        (PAID.replace("0000", "4051"), "failed"),
        (PAID.replace("0000", "00"), "unknown"),
    ] {
        for flow in [signed(finished), Reply::new(200).json(finished)] {
            let server = ScriptedServer::start();
            server
                .reply(TOKEN, signed(ISSUED))
                .reply(PAYMENT, flow)
                .reply(INQUIRY, signed(&inquiry));
            let shop = shop_at(&server).with_one_attempt();
            assert_is(&shop.pay(&by_token()).await, expected);
            assert_eq!(
                (server.count(TOKEN), server.count(PAYMENT), server.count(INQUIRY)),
                (1, 1, 1)
            );
            assert_eq!(server.unexpected(), [""; 0]);
        }
    }
}

#[tokio::test]
async fn c34_success_of_another_table_is_no_success() {
    let server = ScriptedServer::start();
    server
        .reply(TOKEN, Reply::new(200).fault(Fault::CloseAfterEffect))
        .reply(INQUIRY, signed(&PAID.replace("0000", "00")))
        .reply(INQUIRY, signed(&PAID.replace("0000", "00")))
        .reply(INQUIRY, signed(PAID));
    let shop = shop_at(&server).with_one_attempt();
    assert_is(&shop.pay(&order()).await, "unknown");
    assert_is(&shop.resolve(&order()).await, "unknown");
    assert_is(&shop.resolve(&order()).await, "succeeded");
    assert_eq!(server.count(TOKEN), 1);
}

#[tokio::test]
async fn c35_2001_of_an_inquiry_is_pending_and_says_nothing_of_credentials() {
    let server = ScriptedServer::start();
    server
        .reply(TOKEN, Reply::new(200).fault(Fault::CloseAfterEffect))
        .always(INQUIRY, |_| {
            signed(r#"{"invoiceNo":"INV7001","respCode":"2001","respDesc":"Transaction in progress"}"#)
        });
    let shop = shop_at(&server).with_one_attempt();
    let Outcome::Pending(pending) = shop.pay(&order()).await else {
        panic!("not pending")
    };
    assert_eq!(pending.evidence.code.as_deref(), Some("2001"));
    for line in shop.history(&order()).await {
        assert!(!line.note.to_lowercase().contains("credential"), "{line:?}");
    }
}

#[tokio::test]
async fn c35_what_the_browser_brings_back_only_prompts_an_inquiry() {
    for paid in [false, true] {
        let counter = Counter::with(|builder| builder.policy(policy(1)));
        assert_is(&counter.shop.pay(&order()).await, "pending");
        if paid {
            assert!(counter.twoc2p.pay("INV7001"));
        }
        let json =
            r#"{"invoiceNo":"INV7001","channelCode":"CC","respCode":"2002","respDesc":"Transaction is rejected"}"#;
        let form = format!(
            "paymentResponse={}",
            base64::engine::general_purpose::STANDARD.encode(json)
        );
        // It is no notification.
        let raw = RawNotification::new(Vec::new(), form.clone().into_bytes(), counter.shop.clock.now());
        assert!(counter.shop.payments.notify("2c2p", &raw).await.is_err());
        assert_is(&counter.shop.look_up(&order()).await.unwrap(), "pending");
        assert_eq!(counter.twoc2p.count(INQUIRY), 0);

        let returned = read_browser_return(form.as_bytes()).unwrap();
        assert_eq!(returned.invoice_no, "INV7001");
        let expected = if paid { "succeeded" } else { "pending" };
        assert_is(&counter.shop.resolve(&order()).await, expected);
        assert_eq!(counter.twoc2p.count(INQUIRY), 1);
    }
}
