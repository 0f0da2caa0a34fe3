//! FakeStripe, against what Stripe's documentation says.

use super::{Answer, bounded, client, manual_clock};
use payonce::operation::OperationKind;
use payonce::testing::server::FakeStripe;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use serde_json::Value;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const PAY: &str =
    "amount=2000&currency=usd&confirm=true&payment_method=pm_card_visa&metadata[payonce_reference]=order-1";

struct Shop {
    server: FakeStripe,
    client: reqwest::Client,
    clock: ManualClock,
}

impl Shop {
    fn new() -> Self {
        let (clock, shared) = manual_clock();
        let server = FakeStripe::start(Bank::new());
        server.set_clock(shared);
        Self {
            server,
            client: client(),
            clock,
        }
    }

    fn bank(&self) -> Bank {
        self.server.bank()
    }

    async fn post(&self, path: &str, key: &str, body: &str) -> Answer {
        self.post_as("Bearer sk_test_TESTONLY", "", path, key, body).await
    }

    async fn post_as(&self, authorization: &str, account: &str, path: &str, key: &str, body: &str) -> Answer {
        let mut request = self
            .client
            .post(format!("{}/v1/{path}", self.server.base_url()))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body.to_owned());
        for (name, value) in [
            ("Authorization", authorization),
            ("Idempotency-Key", key),
            ("Stripe-Account", account),
        ] {
            if !value.is_empty() {
                request = request.header(name, value);
            }
        }
        bounded(Answer::of(request)).await.unwrap()
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.client.get(format!("{}/v1/{path}", self.server.base_url()));
        let answer = bounded(Answer::of(request.header("Authorization", "Bearer rk_test_TESTONLY")));
        answer.await.unwrap().json()
    }

    /// A new intent by `body`, by its id.
    async fn intent(&self, key: &str, body: &str) -> String {
        let answer = self.post("payment_intents", key, body).await.json();
        let intent = if answer["error"].is_null() {
            &answer
        } else {
            &answer["error"]["payment_intent"]
        };
        intent["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

#[track_caller]
fn refused(answer: &Answer, status: u16, kind: &str, code: &str) {
    let error = answer.json()["error"].clone();
    assert_eq!(answer.status, status, "{error}");
    assert_eq!(error["type"], kind, "{error}");
    assert_eq!(error["code"].as_str().unwrap_or_default(), code, "{error}");
    assert_eq!(answer.header("Idempotent-Replayed"), None, "{error}");
}

fn ids(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().unwrap();
    data.iter().map(|object| object["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn c01_the_same_key_gives_the_first_answer_again_and_no_second_payment() {
    let shop = Shop::new();
    let first = shop.post("payment_intents", "k1", PAY).await;
    assert_eq!(first.json()["status"], "succeeded");
    assert_eq!(first.header("Idempotency-Key"), Some("k1"));
    assert_eq!(first.header("Original-Request"), first.header("Request-Id"));
    assert_eq!(first.header("Stripe-Should-Retry"), Some("false"));
    assert_eq!(first.header("Idempotent-Replayed"), None);

    let reordered =
        "metadata%5Bpayonce_reference%5D=order-1&currency=usd&confirm=true&payment_method=pm_card_visa&amount=2000";
    for body in [PAY, reordered] {
        let again = shop.post("payment_intents", "k1", body).await;
        assert_eq!(again.text, first.text);
        assert_eq!(again.header("Idempotent-Replayed"), Some("true"));
        assert_eq!(again.header("Original-Request"), first.header("Request-Id"));
        assert_ne!(again.header("Request-Id"), first.header("Request-Id"));
    }
    assert_eq!(shop.bank().charged("order-1"), 1);
    assert_eq!(shop.bank().charged("k1"), 1);

    // Another key is another payment: that is what the bank is there to tell.
    shop.post("payment_intents", "k2", PAY).await;
    assert_eq!(shop.bank().charged("order-1"), 2);
    assert_eq!(shop.bank().moved_twice(), ["order-1"]);
}

#[tokio::test]
async fn c04_the_same_key_with_other_parameters_or_another_endpoint_is_an_error() {
    let shop = Shop::new();
    shop.post("payment_intents", "k1", PAY).await;
    let other = PAY.replace("2000", "2001");
    refused(
        &shop.post("payment_intents", "k1", &other).await,
        400,
        "idempotency_error",
        "",
    );
    refused(&shop.post("refunds", "k1", PAY).await, 400, "idempotency_error", "");
    assert_eq!(shop.server.payment_intents().len(), 1);
}

#[tokio::test]
async fn keys_are_those_of_an_account() {
    let shop = Shop::new();
    let mine = shop.post("payment_intents", "k1", PAY).await;
    let theirs = shop
        .post_as("Bearer sk_test_1", "acct_1", "payment_intents", "k1", PAY)
        .await;
    assert_eq!(theirs.header("Idempotent-Replayed"), None);
    assert_ne!(mine.json()["id"], theirs.json()["id"]);
    let id = theirs.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        shop.get(&format!("payment_intents/{id}")).await["error"]["code"],
        "resource_missing"
    );
}

#[tokio::test]
async fn c11_a_key_is_forgotten_after_24_hours_and_runs_anew() {
    let shop = Shop::new();
    shop.post("payment_intents", "k1", PAY).await;
    shop.clock.advance(24 * HOUR - Duration::from_secs(1));
    let kept = shop.post("payment_intents", "k1", PAY).await;
    assert_eq!(kept.header("Idempotent-Replayed"), Some("true"));
    shop.clock.advance(Duration::from_secs(1));
    let forgotten = shop.post("payment_intents", "k1", PAY).await;
    assert_eq!(forgotten.header("Idempotent-Replayed"), None);
    assert_eq!(shop.bank().charged("order-1"), 2);
}

#[tokio::test]
async fn c13_a_decline_is_stored_and_its_intent_exists() {
    let shop = Shop::new();
    let body = PAY.replace("pm_card_visa", "pm_card_chargeDeclinedInsufficientFunds");
    let first = shop.post("payment_intents", "k1", &body).await;
    refused(&first, 402, "card_error", "card_declined");
    let error = first.json()["error"].clone();
    assert_eq!(error["decline_code"], "insufficient_funds");
    assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
    let again = shop.post("payment_intents", "k1", &body).await;
    assert_eq!((again.status, &again.text), (402, &first.text));
    assert_eq!(again.header("Idempotent-Replayed"), Some("true"));

    // The same intent can be paid with another card.
    let id = error["payment_intent"]["id"].as_str().unwrap();
    let path = format!("payment_intents/{id}/confirm");
    let paid = shop.post(&path, "k2", "payment_method=pm_card_visa").await.json();
    assert_eq!(paid["status"], "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn c14_what_was_refused_before_execution_is_not_stored() {
    let shop = Shop::new();
    for (body, code, param) in [
        ("amount=20.00&currency=usd", "parameter_invalid_integer", "amount"),
        ("currency=usd", "parameter_missing", "amount"),
        ("amount=2000", "parameter_missing", "currency"),
        ("amount=49&currency=usd", "amount_too_small", "amount"),
        ("amount=2000&currency=usd&colour=red", "parameter_unknown", "colour"),
        ("amount=2000&currency=", "parameter_invalid_empty", "currency"),
        (
            "amount=2000&currency=usd&payment_method=pm_nobody",
            "resource_missing",
            "payment_method",
        ),
    ] {
        let answer = shop.post("payment_intents", "k1", body).await;
        assert_eq!(answer.json()["error"]["code"], code, "{body}");
        assert_eq!(answer.json()["error"]["param"], param, "{body}");
        assert_eq!(answer.header("Original-Request"), None, "{body}");
    }
    for authorization in ["", "Bearer sk_live_1", "Bearer pk_test_1", "Bearer sk_test_"] {
        let answer = shop.post_as(authorization, "", "payment_intents", "k1", PAY).await;
        refused(&answer, 401, "invalid_request_error", "");
    }
    shop.server.set_faults(FaultPlan::script([Fault::Throttle]));
    let limited = shop.post("payment_intents", "k1", PAY).await;
    refused(&limited, 429, "invalid_request_error", "rate_limit");
    assert!(limited.header("Stripe-Rate-Limited-Reason").is_some());
    assert!(shop.server.payment_intents().is_empty());
    let first = shop.post("payment_intents", "k1", PAY).await;
    assert_eq!((first.status, first.header("Idempotent-Replayed")), (200, None));
}

#[tokio::test]
async fn an_internal_error_is_stored_and_given_again_although_the_money_moved() {
    let shop = Shop::new();
    shop.server.set_faults(FaultPlan::script([Fault::ErrorAfterEffect]));
    refused(&shop.post("payment_intents", "k1", PAY).await, 500, "api_error", "");
    let again = shop.post("payment_intents", "k1", PAY).await;
    assert_eq!((again.status, again.header("Idempotent-Replayed")), (500, Some("true")));
    assert_eq!(shop.bank().charged("order-1"), 1);
    let events = shop.get("events?type=payment_intent.succeeded").await;
    assert_eq!(events["data"][0]["request"]["idempotency_key"], "k1");
}

#[tokio::test]
async fn a_running_key_is_a_conflict_until_its_first_request_is_done() {
    let shop = Shop::new();
    let hold = shop.server.hold("POST /v1/payment_intents");
    let (first, second) = tokio::join!(shop.post("payment_intents", "k1", PAY), async {
        bounded(hold.reached(1)).await;
        let second = shop.post("payment_intents", "k1", PAY).await;
        hold.release();
        second
    });
    refused(&second, 409, "invalid_request_error", "idempotency_key_in_use");
    assert_eq!(second.header("Stripe-Should-Retry"), Some("true"));
    assert_eq!(first.status, 200);
    assert_eq!(shop.post("payment_intents", "k1", PAY).await.text, first.text);
    assert_eq!(shop.bank().charged("order-1"), 1);
}

#[tokio::test]
async fn an_authorization_is_captured_in_part_once_and_its_rest_released() {
    let shop = Shop::new();
    let body = format!("{PAY}&capture_method=manual");
    let id = shop.intent("k1", &body).await;
    assert_eq!(
        (shop.bank().authorized("order-1"), shop.bank().charged("order-1")),
        (1, 0)
    );
    let capture = format!("payment_intents/{id}/capture");
    refused(
        &shop.post(&capture, "k2", "amount_to_capture=2001").await,
        400,
        "invalid_request_error",
        "amount_too_large",
    );
    let marks = "amount_to_capture=1500&metadata[payonce_capture_reference]=capture-1&metadata[payonce_capture_key]=k3";
    let captured = shop.post(&capture, "k3", marks).await.json();
    assert_eq!(
        (&captured["status"], &captured["amount_received"]),
        (&"succeeded".into(), &1500.into())
    );
    assert_eq!(captured["amount_capturable"], 0);
    let again = shop.post(&capture, "k4", "").await;
    refused(&again, 400, "invalid_request_error", "payment_intent_unexpected_state");
    assert_eq!(again.json()["error"]["payment_intent"]["status"], "succeeded");
    for id in ["capture-1", "k3"] {
        assert_eq!(shop.bank().captured(id), 1, "{id}");
    }
    assert_eq!(shop.bank().total(OperationKind::Capture, "capture-1"), 1500);
}

#[tokio::test]
async fn an_authorization_is_released_by_cancelling_by_refunding_and_by_time() {
    let shop = Shop::new();
    let body = format!("{PAY}&capture_method=manual");
    let one = shop.intent("k1", &body).await;
    let cancel = format!("payment_intents/{one}/cancel");
    refused(
        &shop.post(&cancel, "k2", "metadata[a]=b").await,
        400,
        "invalid_request_error",
        "parameter_unknown",
    );
    let cancelled = shop.post(&cancel, "k2", "cancellation_reason=duplicate").await.json();
    assert_eq!(
        (&cancelled["status"], &cancelled["cancellation_reason"]),
        (&"canceled".into(), &"duplicate".into())
    );
    assert_eq!(shop.bank().voided("k2"), 1);
    refused(
        &shop.post(&cancel, "k3", "").await,
        400,
        "invalid_request_error",
        "payment_intent_unexpected_state",
    );

    let two = shop.intent("k4", &body).await;
    assert_eq!(
        shop.post("refunds", "k5", &format!("payment_intent={two}"))
            .await
            .json()["status"],
        "succeeded"
    );
    assert_eq!(shop.server.status(&two), "canceled");
    let three = shop.intent("k6", &body).await;
    shop.clock.advance(7 * 24 * HOUR);
    assert_eq!(
        shop.get(&format!("payment_intents/{three}")).await["status"],
        "canceled"
    );
    assert_eq!(shop.bank().voided("order-1"), 3);
    assert_eq!(shop.bank().refunded("order-1"), 0);

    let paid = shop.intent("k7", PAY).await;
    let late = shop.post(&format!("payment_intents/{paid}/cancel"), "k8", "").await;
    refused(&late, 400, "invalid_request_error", "payment_intent_unexpected_state");
}

#[tokio::test]
async fn refunds_add_up_to_what_was_charged_and_no_further() {
    let shop = Shop::new();
    let id = shop.intent("k1", PAY).await;
    let refund = |amount: i64, name: &str| {
        format!(
            "payment_intent={id}&amount={amount}&metadata[payonce_reference]={name}&metadata[payonce_key]={name}-key"
        )
    };
    assert_eq!(
        shop.post("refunds", "r1", &refund(1500, "refund-1")).await.json()["status"],
        "succeeded"
    );
    let again = shop.post("refunds", "r1", &refund(1500, "refund-1")).await;
    assert_eq!(again.header("Idempotent-Replayed"), Some("true"));
    let too_much = shop.post("refunds", "r2", &refund(501, "refund-2")).await;
    refused(&too_much, 400, "invalid_request_error", "");
    assert_eq!(too_much.json()["error"]["param"], "amount");
    shop.server.set_refund_status("pending");
    let pending = shop.post("refunds", "r3", &refund(500, "refund-3")).await.json();
    assert_eq!(pending["pending_reason"], "processing");
    assert_eq!(shop.bank().refunded("refund-3"), 0);
    let full = shop.post("refunds", "r4", &format!("payment_intent={id}")).await;
    refused(&full, 400, "invalid_request_error", "charge_already_refunded");

    let pending = pending["id"].as_str().unwrap();
    shop.server.finish_refund(pending, "succeeded");
    assert_eq!(shop.bank().total(OperationKind::Refund, "refund-3"), 500);
    shop.server.finish_refund(pending, "failed");
    assert_eq!(
        shop.get(&format!("refunds/{pending}")).await["failure_reason"],
        "expired_or_canceled_card"
    );
    let charge = shop.get(&format!("payment_intents/{id}?expand[]=latest_charge")).await["latest_charge"].clone();
    assert_eq!(
        (&charge["amount_refunded"], &charge["refunded"]),
        (&1500.into(), &false.into())
    );
    let listed = shop.get(&format!("refunds?payment_intent={id}&limit=1")).await;
    assert_eq!((ids(&listed), &listed["has_more"]), (vec![pending], &true.into()));
    assert_eq!(shop.bank().refunded("refund-1-key"), 1);
}

#[tokio::test]
async fn payers_authenticate_wait_and_pay_in_the_browser() {
    let shop = Shop::new();
    let with = |method: &str| PAY.replace("pm_card_visa", method);
    let three_d = shop.intent("k1", &with("pm_card_authenticationRequired")).await;
    let shown = shop.get(&format!("payment_intents/{three_d}")).await;
    assert_eq!(shown["next_action"]["type"], "redirect_to_url");
    assert_eq!(shop.bank().charged("order-1"), 0);
    assert!(shop.server.authenticate(&three_d) && !shop.server.authenticate(&three_d));
    let off = format!("{}&off_session=true", with("pm_card_authenticationRequired"));
    refused(
        &shop.post("payment_intents", "k2", &off).await,
        402,
        "card_error",
        "authentication_required",
    );

    let slow = shop.intent("k3", &with("pm_card_processing")).await;
    assert_eq!(shop.server.status(&slow), "processing");
    assert!(shop.server.finish_processing(&slow));
    let code = PAY.replace("payment_method=pm_card_visa", "payment_method_data[type]=promptpay");
    let code = shop.intent("k4", &code).await;
    assert!(shop.server.authenticate(&code));
    let open = shop
        .intent("k5", &PAY.replace("&confirm=true&payment_method=pm_card_visa", ""))
        .await;
    assert_eq!(shop.server.status(&open), "requires_payment_method");
    assert_eq!(
        shop.server.confirm_client_side(&open, "pm_card_chargeDeclined"),
        "requires_payment_method"
    );
    assert_eq!(shop.server.confirm_client_side(&open, "pm_card_visa"), "succeeded");
    assert_eq!(shop.bank().charged("order-1"), 4);
    let (_, last) = shop.server.events(&open).pop().unwrap();
    assert_eq!(last, "payment_intent.succeeded");
}

#[tokio::test]
async fn a_session_is_paid_once_while_it_is_open() {
    let shop = Shop::new();
    let body = "mode=payment&success_url=https://shop.example&line_items[0][quantity]=2\
                &line_items[0][price_data][currency]=thb&line_items[0][price_data][unit_amount]=1000\
                &metadata[payonce_reference]=order-1&payment_intent_data[metadata][payonce_key]=k1";
    let open = |key: &'static str| async {
        let session = shop.post("checkout/sessions", key, body).await.json();
        assert_eq!(
            (&session["status"], &session["amount_total"]),
            (&"open".into(), &2000.into()),
            "{session}"
        );
        session["id"].as_str().unwrap().to_owned()
    };
    let paid = open("k1").await;
    assert!(shop.server.pay_session(&paid) && !shop.server.pay_session(&paid));
    let session = shop.get(&format!("checkout/sessions/{paid}")).await;
    assert_eq!(
        (&session["status"], &session["payment_status"]),
        (&"complete".into(), &"paid".into())
    );
    let intent = session["payment_intent"].as_str().unwrap();
    let metadata = shop.get(&format!("payment_intents/{intent}")).await["metadata"].clone();
    assert_eq!(metadata, serde_json::json!({ "payonce_key": "k1" }));
    assert_eq!((shop.bank().charged("order-1"), shop.bank().charged("k1")), (1, 1));

    let expired = open("k2").await;
    let path = format!("checkout/sessions/{expired}/expire");
    assert_eq!(shop.post(&path, "k3", "").await.json()["status"], "expired");
    refused(&shop.post(&path, "k4", "").await, 400, "invalid_request_error", "");
    let forgotten = open("k5").await;
    shop.clock.advance(24 * HOUR);
    for id in [expired, forgotten] {
        assert!(!shop.server.pay_session(&id), "{id}");
    }
    shop.server.set_sessions_pay_at_once(true);
    shop.server.set_faults(FaultPlan::script([Fault::CloseAfterEffect]));
    let request = shop
        .client
        .post(format!("{}/v1/checkout/sessions", shop.server.base_url()));
    let lost = request
        .header("Authorization", "Bearer sk_test_TESTONLY")
        .header("Content-Type", "application/x-www-form-urlencoded");
    assert!(bounded(lost.body(body).send()).await.is_err());
    assert_eq!(shop.bank().charged("order-1"), 2);
}

#[tokio::test]
async fn lists_are_newest_first_in_pages_and_windows() {
    let shop = Shop::new();
    let mut made = Vec::new();
    for number in 0..5 {
        made.push(shop.intent(&format!("k{number}"), PAY).await);
        shop.clock.advance(Duration::from_secs(10));
    }
    made.reverse();
    let first = shop.get("payment_intents?limit=2").await;
    assert_eq!(
        (ids(&first), &first["has_more"]),
        (vec![&*made[0], &*made[1]], &true.into())
    );
    let rest = shop
        .get(&format!("payment_intents?limit=3&starting_after={}", made[1]))
        .await;
    assert_eq!(
        (ids(&rest), &rest["has_more"]),
        (vec![&*made[2], &*made[3], &*made[4]], &false.into())
    );
    let before = shop
        .get(&format!("payment_intents?limit=1&ending_before={}", made[2]))
        .await;
    assert_eq!((ids(&before), &before["has_more"]), (vec![&*made[1]], &true.into()));
    let start = super::NOW.unix_seconds();
    let window = format!("payment_intents?created[gte]={}&created[lt]={}", start + 10, start + 30);
    assert_eq!(ids(&shop.get(&window).await), [&*made[2], &*made[3]]);
    assert_eq!(shop.get("payment_intents?limit=101").await["error"]["param"], "limit");
}

#[tokio::test]
async fn the_search_index_lags_and_shows_the_present_object() {
    let shop = Shop::new();
    shop.server.set_search_lag(Duration::from_secs(60));
    let id = shop.intent("k1", PAY).await;
    let search = "payment_intents/search?query=metadata[%27payonce_reference%27]%3A%27order-1%27";
    assert!(ids(&shop.get(search).await).is_empty());
    assert_eq!(ids(&shop.get("payment_intents").await), [&*id]);
    shop.clock.advance(Duration::from_secs(60));
    let found = shop.get(search).await;
    assert_eq!((&found["object"], ids(&found)), (&"search_result".into(), vec![&*id]));
    assert_eq!(found["data"][0]["status"], "succeeded");
    assert!(ids(&shop.get(&search.replace("order-1", "order-2")).await).is_empty());
}

#[tokio::test]
async fn events_carry_the_key_and_webhooks_a_signature_over_their_bytes() {
    let shop = Shop::new();
    let id = shop.intent("k1", PAY).await;
    let kinds: Vec<_> = shop.server.events(&id).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["payment_intent.created", "payment_intent.succeeded"]);
    let list = "events?types[]=payment_intent.created&types[]=payment_intent.canceled";
    let events = shop.get(list).await;
    assert_eq!(events["data"][0]["request"]["idempotency_key"], "k1");
    assert_eq!(ids(&events).len(), 1);
    let event = events["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(shop.get(&format!("events/{event}")).await["data"]["object"]["id"], *id);

    let (headers, body) = shop.server.webhook(&id, "whsec_TESTONLY");
    let text = String::from_utf8(body.clone()).unwrap();
    assert!(text.contains("payment_intent.succeeded"), "{text}");
    let (_, signature) = headers.iter().find(|(name, _)| name == "Stripe-Signature").unwrap();
    let (stamp, rest) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    assert_eq!(stamp, super::NOW.unix_seconds().to_string());
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, b"whsec_TESTONLY");
    let message = [stamp.as_bytes(), b".", &body].concat();
    let expected: String = aws_lc_rs::hmac::sign(&key, &message)
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert!(rest.starts_with(&expected), "{signature}");

    shop.server.set_event_lag(Duration::from_secs(5));
    assert!(ids(&shop.get(list).await).is_empty());
    shop.clock.advance(30 * 24 * HOUR);
    assert!(ids(&shop.get(list).await).is_empty());
}

#[tokio::test]
async fn an_endpoint_that_the_fake_does_not_have_is_loud() {
    let shop = Shop::new();
    let answer = shop.post("customers", "k1", "name=x").await;
    assert_eq!(answer.status, 501);
    assert!(answer.text.contains("POST /v1/customers"), "{}", answer.text);
    assert_eq!(shop.server.unexpected(), ["POST /v1/customers"]);
}
