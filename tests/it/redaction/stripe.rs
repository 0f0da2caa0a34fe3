//! Stripe: what its answers, and what comes in its place, could give away.

use super::watch::{API_KEY, BODY, CARD, CLIENT_SECRET, METADATA, OTHER_CARD, PAGE, WEBHOOK_SECRET};
use super::{Room, order};
use payonce::gateway::RawNotification;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::operation::{Operation, Target};
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::sync::Arc;
use std::time::Duration;

/// How long a stalled exchange is waited for, in real time.
const STALL: Duration = Duration::from_millis(300);
const CREATE: &str = "POST /v1/payment_intents";

fn gateway(room: &Room, url: &str) -> Stripe {
    Stripe::builder(API_KEY)
        .base_url(url)
        .webhook_secret(WEBHOOK_SECRET)
        .clock(room.clock())
        .build()
        .unwrap()
}

fn card(reference: &str) -> Operation {
    by(reference, "pm_card_visa")
}

fn by(reference: &str, method: &str) -> Operation {
    order(reference).with(StripeOptions::payment_method(method))
}

#[tokio::test]
async fn c66_payments_through_stripe_leave_no_trace() {
    let mut room = Room::new();
    let fake = FakeStripe::start(Bank::new());
    fake.set_clock(room.clock());
    let stripe = Arc::new(gateway(&room, &fake.base_url()));
    let payments = room.payments(Arc::<Stripe>::clone(&stripe) as _);

    room.pay(&payments, &card("paid"), "succeeded").await;
    room.pay(&payments, &by("declined", "pm_card_chargeDeclined"), "failed")
        .await;
    room.pay(&payments, &order("browser"), "pending").await;
    let hosted = order("hosted").with(StripeOptions::hosted_page("https://shop.example/thanks"));
    room.pay(&payments, &hosted, "pending").await;
    let challenged = by("challenged", "pm_card_authenticationRequired");
    room.pay(&payments, &challenged, "pending").await;
    let target = Target::Operation(payments.key(&card("paid")));
    let refund = Operation::refund("refund", super::baht("5.00"), target).unwrap();
    room.pay(&payments, &refund.metadata("note", METADATA), "succeeded")
        .await;

    // The payers act, and Stripe tells: by a good signature and by a bad one.
    assert!(fake.pay_session(&fake.sessions()[0]));
    let intents = fake.payment_intents();
    let paid_intent = intents.iter().find(|id| fake.status(id) == "requires_action").unwrap();
    assert!(fake.authenticate(paid_intent));
    let (headers, body) = fake.webhook(paid_intent, WEBHOOK_SECRET);
    let signature = headers
        .iter()
        .find(|(name, _)| name == "Stripe-Signature")
        .unwrap()
        .1
        .clone();
    room.watch.canary("signature", signature);
    room.watch
        .canary("webhook body", String::from_utf8(body.clone()).unwrap());
    let raw = RawNotification::new(headers.clone(), body, super::NOW);
    room.watch.show("a notification", &raw);
    room.watch.show(
        "what was read",
        &payonce::gateway::Gateway::read_notification(&*stripe, &raw),
    );
    let intake = payments.notify("stripe", &raw).await.unwrap();
    room.watch.show("an intake", &intake);
    let forged = RawNotification::new(headers, format!("{{\"card\":\"{CARD}\"}}").into_bytes(), super::NOW);
    let refused = payments.notify("stripe", &forged).await.unwrap_err();
    room.watch.error("a refused notification", &refused);
    let malformed = vec![("Stripe-Signature".to_owned(), format!("t={API_KEY},v1={OTHER_CARD}"))];
    let refused = payments
        .notify("stripe", &RawNotification::new(malformed, Vec::new(), super::NOW))
        .await;
    room.watch.error("a malformed notification", &refused.unwrap_err());

    let sent = fake.requests();
    let key_was_sent = |request: &payonce::testing::server::LoggedRequest| {
        request.header("authorization") == Some(&format!("Bearer {API_KEY}"))
    };
    assert!(sent.iter().all(key_was_sent) && sent[0].text().contains(METADATA));
    room.watch.requests(&sent);
    room.watch.show("the payments", &payments);
    room.watch.show("the gateway", &stripe);
    room.watch.show("the fake", &fake);
    room.watch.show("the bank", &fake.bank());

    // The file holds the links to pages that can still be used, and nothing else.
    room.watch.judge_bytes(&room.bytes(), Some(PAGE));
    assert!(room.watch.is_in(&room.bytes(), PAGE));
    room.resolve(&payments, &hosted, "succeeded").await;
    room.watch
        .show("what is open", &payments.unresolved(100).await.unwrap());
    payments.shutdown().await;
    drop(payments);
    let (watch, left) = room.close().await;
    watch.judge_bytes(&left, None);
    watch.judge(&[
        "payonce.execute",
        "payonce.sending",
        "payonce.recorded",
        "payonce.notified",
        "payonce.notification_refused",
    ]);
}

/// What a box in front of Stripe, or Stripe itself, may throw back at us.
fn replies() -> Vec<(&'static str, &'static str, Reply)> {
    let error = |status, fields: String| Reply::new(status).json(format!(r#"{{"error":{{{fields}}},"x":"{BODY}"}}"#));
    let intent = |fields: &str| {
        let head = r#""id":"pi_3Canary","object":"payment_intent","amount":2000,"currency":"thb""#;
        format!(r#"{{{head},"client_secret":"{CLIENT_SECRET}","x":"{BODY}","description":"{CARD}",{fields}}}"#)
    };
    let echo = format!("Authorization: Bearer {API_KEY} amount=2000&metadata[note]={METADATA}&card={CARD}");
    vec![
        (
            "echoed-key",
            "error",
            error(401, format!(r#""type":"invalid_request_error","message":"Invalid API Key provided: {API_KEY}""#)),
        ),
        (
            "card-in-a-page",
            "unknown",
            Reply::new(502).html(format!("<html><title>502 for {CARD}</title><body>{OTHER_CARD} {CARD}</body></html>")),
        ),
        (
            "request-in-a-page",
            "unknown",
            Reply::new(500).html(format!("<html><body><pre>{echo}</pre> <p data-c='{CARD}'>{BODY}</p></body></html>")),
        ),
        ("request-in-a-text", "unknown", Reply::new(503).header("Content-Type", "text/plain").body(echo)),
        (
            "card-in-a-decline",
            "failed",
            error(
                402,
                format!(
                    r#""type":"card_error","code":"card_declined","decline_code":"{CARD}","advice_code":"{API_KEY}","message":"Card {CARD} / {OTHER_CARD} was declined","payment_intent":{}"#,
                    intent(r#""status":"requires_payment_method""#)
                ),
            ),
        ),
        (
            "card-in-the-codes",
            "failed",
            error(400, format!(r#""type":"invalid_request_error","code":"{OTHER_CARD}","param":"{CARD}","message":"{CLIENT_SECRET}""#)),
        ),
        (
            "authentication",
            "pending",
            Reply::new(200).json(intent(r#""status":"requires_action","next_action":{"type":"use_stripe_sdk","use_stripe_sdk":{"x":"CANARYbody0001"}}"#)),
        ),
        (
            "redirect",
            "pending",
            Reply::new(200).json(intent(r#""status":"requires_action","next_action":{"type":"redirect_to_url","redirect_to_url":{"url":"https://hooks.example/CANARYlink0001"}}"#)),
        ),
        (
            "code-to-scan",
            "pending",
            Reply::new(200).json(intent(r#""status":"requires_action","next_action":{"type":"promptpay_display_qr_code","promptpay_display_qr_code":{"data":"CANARYqrcode0001"}}"#)),
        ),
        (
            "cut-off",
            "unknown",
            Reply::new(200).json(intent(r#""status":"succeeded""#).replace("}", "")),
        ),
        (
            "unknown-status",
            "unknown",
            Reply::new(200).json(intent(&format!(r#""status":"{OTHER_CARD} {API_KEY}""#))),
        ),
        (
            "another-amount",
            "conflict",
            Reply::new(200).json(intent(r#""status":"succeeded","amount_received":1"#)),
        ),
        (
            "elsewhere",
            "unknown",
            Reply::new(307).header("Location", format!("https://elsewhere.example/?key={API_KEY}")).html(format!("<p>{BODY}</p>")),
        ),
        (
            "odd-headers",
            "unknown",
            Reply::new(500).header("Request-Id", OTHER_CARD).header("Content-Type", format!("text/{API_KEY}")).body(CARD),
        ),
    ]
}

#[tokio::test]
async fn c65_c67_odd_answers_in_stripe_s_place_leave_no_trace() {
    let mut room = Room::new();
    let server = ScriptedServer::start();
    let payments = room.payments(Arc::new(gateway(&room, &server.url())));
    let lists = ["GET /v1/payment_intents", "GET /v1/payment_intents/search"];
    for list in lists {
        server.always(list, |_| {
            Reply::new(200).json(r#"{"object":"list","data":[],"has_more":false}"#)
        });
    }
    for (number, (reference, expected, _)) in replies().into_iter().enumerate() {
        server.always(CREATE, move |_| replies().swap_remove(number).2);
        room.pay(&payments, &card(reference), expected).await;
    }
    // An inquiry is answered as badly.
    server.always(CREATE, |_| Reply::bad_gateway());
    for list in lists {
        server.always(list, |_| {
            let page = format!("<h1>Error for {CARD}</h1> <p>Authorization: Bearer {API_KEY}</p>");
            Reply::new(500).html(page)
        });
    }
    room.pay(&payments, &card("blind"), "unknown").await;
    assert_eq!(server.unexpected(), Vec::<String>::new());

    room.watch.requests(&server.requests());
    room.watch.show("the server", &server);
    room.watch.judge_bytes(&room.bytes(), Some(PAGE));
    room.watch.judge(&[
        "payonce.attempt_failed",
        "payonce.inquiry_failed",
        "payonce.stopped",
        "payonce.conflict",
    ]);
}

#[tokio::test]
async fn broken_connections_to_stripe_leave_no_trace() {
    let mut room = Room::new();
    let fake = FakeStripe::start(Bank::new());
    fake.set_clock(room.clock());
    let payments = room.patient_for(STALL, Arc::new(gateway(&room, &fake.base_url())));
    for fault in Fault::ALL {
        fake.set_faults(FaultPlan::script([fault]));
        let label = format!("{fault:?}").to_lowercase();
        let result = payments.execute(&card(&label)).await;
        assert_ne!(room.watch.result(&label, &result), "failed", "{fault:?}");
        room.show_stored(&payments, &card(&label)).await;
    }
    fake.set_faults(
        FaultPlan::none()
            .on(CREATE, Fault::HalfBodyAfterEffect)
            .on(CREATE, Fault::HalfHeadersAfterEffect),
    );
    let patient = room.payments(Arc::new(gateway(&room, &fake.base_url())));
    room.pay(&patient, &card("twice"), "succeeded").await;
    fake.stop_listening().await;
    room.pay(&patient, &card("refused"), "error").await;
    room.watch.requests(&fake.requests());
    room.watch.judge_bytes(&room.bytes(), None);
    room.watch.judge(&["payonce.attempt_failed", "payonce.stopped"]);
}
