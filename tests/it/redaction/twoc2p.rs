//! 2C2P: what its answers, and what comes in their place, could give away.

use super::watch::{BODY, CARD, CUSTOMER_TOKEN, METADATA, OTHER_CARD, PAGE, TWOC2P_SECRET};
use super::{NOW, Room, order};
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use payonce::gateway::RawNotification;
use payonce::gateway::twoc2p::{TwoC2p, TwoC2pOptions, read_browser_return};
use payonce::operation::Operation;
use payonce::testing::server::{DirectPayment, FakeTwoC2p, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::sync::Arc;
use std::time::Duration;

/// How long a stalled exchange is waited for, in real time.
const STALL: Duration = Duration::from_millis(300);
const TOKEN: &str = "POST /payment/4.3/paymentToken";
const PAY: &str = "POST /payment/4.3/payment";
const INQUIRY: &str = "POST /payment/4.3/paymentInquiry";

fn gateway(room: &Room, url: &str) -> TwoC2p {
    TwoC2p::builder("TESTM01", TWOC2P_SECRET)
        .base_url(url)
        .clock(room.clock())
        .build()
        .unwrap()
}

fn stored_card(reference: &str) -> Operation {
    let options = TwoC2pOptions::new()
        .customer_token(CUSTOMER_TOKEN)
        .direct_payer("CANARYpayer0001", "CANARYpayer0001@example.com");
    order(reference).with(options)
}

fn sign(claims: &str) -> String {
    let signed = format!("eyJhbGciOiJIUzI1NiJ9.{}", URL_SAFE_NO_PAD.encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, TWOC2P_SECRET.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!(r#"{{"payload":"{signed}.{tag}"}}"#)
}

#[tokio::test]
async fn c66_payments_through_2c2p_leave_no_trace() {
    let mut room = Room::new();
    room.watch.canary("payer", "CANARYpayer0001");
    let fake = FakeTwoC2p::start(Bank::new(), "TESTM01", TWOC2P_SECRET);
    fake.set_clock(room.clock());
    let gateway = Arc::new(gateway(&room, &fake.base_url()));
    let payments = room.payments(Arc::<TwoC2p>::clone(&gateway) as _);

    for reference in ["PAID", "REFUSED", "OPEN"] {
        room.pay(&payments, &order(reference), "pending").await;
        room.watch.canary(PAGE, fake.token(reference));
    }
    for (reference, result, expected) in [
        ("DIRECT", DirectPayment::Approve, "succeeded"),
        ("DECLINED", DirectPayment::Decline("4051".to_owned()), "failed"),
        ("REDIRECTED", DirectPayment::Redirect, "pending"),
    ] {
        fake.next_payment(result);
        room.pay(&payments, &stored_card(reference), expected).await;
        room.watch.canary("payment token", fake.token(reference));
    }
    let scanned = order("SCANNED").with(TwoC2pOptions::new().direct_channel("PPQR"));
    room.pay(&payments, &scanned, "pending").await;
    room.watch.canary("payment token", fake.token("SCANNED"));

    // The payers act, and 2C2P tells: by a good signature and by bad ones.
    assert!(fake.pay("PAID") && fake.decline("REFUSED", "4051"));
    for invoice in ["PAID", "REFUSED"] {
        let raw = RawNotification::new(Vec::new(), fake.callback(invoice), NOW);
        room.watch
            .canary("callback", String::from_utf8(raw.body.clone()).unwrap());
        room.watch.show("a callback", &raw);
        room.watch
            .show("an intake", &payments.notify("2c2p", &raw).await.unwrap());
    }
    room.resolve(&payments, &order("REFUSED"), "pending").await;
    let claims = |code: &str, whose: &str| {
        format!(
            r#"{{"merchantID":"{whose}","invoiceNo":"OPEN","respCode":"{code}","respDesc":"{CARD}","cardNo":"{OTHER_CARD}"}}"#
        )
    };
    for code in [OTHER_CARD, CARD] {
        let odd = RawNotification::new(Vec::new(), sign(&claims(code, "TESTM01")).into_bytes(), NOW);
        let read = payonce::gateway::Gateway::read_notification(&*gateway, &odd).unwrap();
        room.watch.show("an odd callback", &read);
        room.watch
            .show("its intake", &payments.notify("2c2p", &odd).await.unwrap());
    }
    let forged = sign(&claims("0000", "TESTM01")).replace("\"}", "A\"}");
    for body in [
        forged,
        sign(&claims("0000", "OTHER01")),
        format!("{{\"payload\":\"{CARD}\"}}"),
        CARD.to_owned(),
    ] {
        let raw = RawNotification::new(Vec::new(), body.into_bytes(), NOW);
        room.watch
            .error("a refused callback", &payments.notify("2c2p", &raw).await.unwrap_err());
    }
    let form = STANDARD.encode(format!(
        r#"{{"invoiceNo":"OPEN","respDesc":"{CARD} {OTHER_CARD}","respCode":"{OTHER_CARD}"}}"#
    ));
    room.watch.show(
        "a browser's return",
        &read_browser_return(format!("paymentResponse={form}").as_bytes()).unwrap(),
    );
    room.watch
        .show("a report", &gateway.payment_inquiry("PAID").await.unwrap());

    let sent = fake.requests();
    assert!(
        sent.iter()
            .any(|request| request.is(PAY) && request.text().contains(CUSTOMER_TOKEN))
    );
    room.watch.requests(&sent);
    room.watch.show("the payments", &payments);
    room.watch.show("the gateway", &gateway);
    room.watch.show("the fake", &fake);
    room.watch.judge_bytes(&room.bytes(), Some(PAGE));
    assert!(room.watch.is_in(&room.bytes(), PAGE));

    // Paid, or expired: no page is left, and no link to one.
    assert!(fake.pay("REFUSED") && fake.pay("OPEN") && fake.pay("REDIRECTED"));
    for reference in ["REFUSED", "OPEN", "REDIRECTED"] {
        room.resolve(&payments, &order(reference), "succeeded").await;
    }
    payments.shutdown().await;
    drop(payments);
    let (watch, left) = room.close().await;
    watch.judge_bytes(&left, None);
    watch.judge(&["payonce.recorded", "payonce.notified", "payonce.notification_refused"]);
}

/// What comes in the place of an issued token, and how the operation ends. An inquiry then finds nothing.
fn replies() -> Vec<(&'static str, &'static str, Reply)> {
    let plain = |code: &str, text: &str| {
        Reply::new(200).json(format!(r#"{{"respCode":"{code}","respDesc":"{text}","x":"{BODY}"}}"#))
    };
    let echo =
        format!(r#"{{"paymentToken":"{BODY}","data":{{"customerToken":"{CUSTOMER_TOKEN}","note":"{METADATA}"}}}}"#);
    let signed = |claims: &str| Reply::new(200).json(sign(claims));
    vec![
        (
            "CARDINREFUSAL",
            "failed",
            plain("9005", &format!("bad card {CARD} or {OTHER_CARD}")),
        ),
        (
            "TOKENINREFUSAL",
            "failed",
            plain("9005", &format!("token {CUSTOMER_TOKEN} is not valid")),
        ),
        ("CARDASCODE", "unknown", plain(OTHER_CARD, CARD)),
        (
            "SIGNEDREFUSAL",
            "failed",
            signed(&format!(r#"{{"respCode":"9005","respDesc":"{CARD}","x":"{BODY}"}}"#)),
        ),
        (
            "FOREIGNSIGNATURE",
            "unknown",
            Reply::new(200).json(sign(&format!(r#"{{"pan":"{CARD}"}}"#)).replace("\"}", "A\"}")),
        ),
        (
            "CARDINPAGE",
            "unknown",
            Reply::new(502).html(format!("<html><title>{CARD}</title>{OTHER_CARD}</html>")),
        ),
        (
            "REQUESTINPAGE",
            "unknown",
            Reply::new(500).html(format!("<html><h1>Oops {echo}</h1>{echo} {TWOC2P_SECRET}</html>")),
        ),
        (
            "REQUESTINTEXT",
            "unknown",
            Reply::new(400).body(format!("bad request: {echo}")),
        ),
        (
            "NOPAYLOAD",
            "unknown",
            Reply::new(200).json(format!(r#"{{"payload":["{CARD}","{BODY}"]}}"#)),
        ),
        (
            "NOPAGE",
            "unknown",
            signed(&format!(
                r#"{{"respCode":"0000","paymentToken":"{BODY}","webPaymentUrl":"{BODY}"}}"#
            )),
        ),
        (
            "CUTOFF",
            "unknown",
            Reply::new(200).json(echo[..echo.len() - 4].to_owned()),
        ),
    ]
}

#[tokio::test]
async fn c67_odd_answers_in_2c2p_s_place_leave_no_trace() {
    let mut room = Room::new();
    let server = ScriptedServer::start();
    let payments = room.payments(Arc::new(gateway(&room, &format!("{}/payment/4.3", server.url()))));
    server.always(INQUIRY, |_| {
        Reply::new(200).json(sign(&format!(r#"{{"respCode":"2002","respDesc":"{CARD}"}}"#)))
    });
    for (number, (reference, expected, _)) in replies().into_iter().enumerate() {
        server.always(TOKEN, move |_| replies().swap_remove(number).2);
        room.pay(&payments, &order(reference), expected).await;
    }

    // The inquiry brings the card, the token that stands for it, and whatever else.
    server.always(TOKEN, |_| Reply::bad_gateway());
    server.always(INQUIRY, |_| {
        let odd = format!(r#""approvalCode":"{CARD}","agentCode":"{OTHER_CARD}","referenceNo":"{CARD}","eci":"{CARD}""#);
        let card = format!(r#""accountNo":"{OTHER_CARD}","customerToken":"{CUSTOMER_TOKEN}","userDefined2":"note={METADATA}""#);
        let paid = r#""merchantID":"TESTM01","invoiceNo":"FOUND","amount":20.0,"currencyCode":"THB","respCode":"0000","tranRef":"T1""#;
        Reply::new(200).json(sign(&format!(r#"{{{paid},"respDesc":"Success {CARD}",{odd},{card},"x":"{BODY}"}}"#)))
    });
    room.pay(&payments, &order("FOUND"), "succeeded").await;
    // It answers about somebody else's payment, which is no answer.
    room.pay(&payments, &order("OTHER"), "unknown").await;
    server.always(INQUIRY, |_| {
        Reply::new(200).json(format!(r#"{{"respCode":"9042","respDesc":"{CARD} {CUSTOMER_TOKEN}"}}"#))
    });
    room.pay(&payments, &order("BLIND"), "unknown").await;

    // What a direct payment brings is for the payer alone.
    server.always(TOKEN, |_| {
        Reply::new(200).json(sign(r#"{"respCode":"0000","paymentToken":"CANARYpaymenttoken0001"}"#))
    });
    room.watch.canary("payment token", "CANARYpaymenttoken0001");
    for (reference, code) in [
        ("PAGE", "1001"),
        ("APP", "1002"),
        ("SLIP", "1003"),
        ("LINK", "1004"),
        ("SCAN", "1005"),
    ] {
        server.always(PAY, move |_| {
            let data = format!("https://pay.example/CANARYdata{code}");
            let more = format!(r#""fallbackData":"{data}/fallback","type":"{CARD}","channelCode":"{OTHER_CARD}""#);
            Reply::new(200).json(format!(
                r#"{{"respCode":"{code}","respDesc":"{CARD}","data":"{data}",{more}}}"#
            ))
        });
        room.pay(&payments, &stored_card(reference), "pending").await;
    }
    server.always(PAY, |request| {
        Reply::new(500).html(format!("<h1>error</h1><pre>{}</pre>", request.text()))
    });
    room.pay(&payments, &stored_card("ECHOED"), "unknown").await;
    assert_eq!(server.unexpected(), Vec::<String>::new());

    room.watch.requests(&server.requests());
    room.watch.judge_bytes(&room.bytes(), Some(PAGE));
    room.watch.judge(&[
        "payonce.attempt_failed",
        "payonce.inquiry_failed",
        "payonce.not_found",
        "payonce.stopped",
    ]);
}

#[tokio::test]
async fn broken_connections_to_2c2p_leave_no_trace() {
    let mut room = Room::new();
    let fake = FakeTwoC2p::start(Bank::new(), "TESTM01", TWOC2P_SECRET);
    fake.set_clock(room.clock());
    let payments = room.patient_for(STALL, Arc::new(gateway(&room, &fake.base_url())));
    for route in [TOKEN, PAY] {
        for fault in Fault::ALL {
            fake.set_faults(FaultPlan::none().on(route, fault));
            let reference = format!("{fault:?}{}", route.len()).to_uppercase();
            let operation = stored_card(&reference);
            let result = payments.execute(&operation).await;
            room.watch.result(&reference, &result);
            room.show_stored(&payments, &operation).await;
        }
    }
    for invoice in fake.invoices() {
        room.watch.canary("payment token", fake.token(&invoice));
    }
    fake.stop_listening().await;
    room.pay(&payments, &stored_card("UNREACHABLE"), "error").await;
    room.watch.requests(&fake.requests());
    room.watch.judge_bytes(&room.bytes(), None);
    room.watch.judge(&["payonce.attempt_failed", "payonce.stopped"]);
}
