//! FakeTwoC2p, against what 2C2P's documentation says.

use super::{Answer, bounded, client, manual_clock};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use payonce::operation::OperationKind;
use payonce::testing::server::{AmountForm, DirectPayment, FakeTwoC2p};
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use serde_json::Value;
use std::time::Duration;

const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";
pub(super) const ORDER: &str = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","description":"two tickets","amount":2000.10,
    "currencyCode":"THB","idempotencyID":"k1","userDefined1":"order-7001"}"#;

pub(super) struct Shop {
    pub(super) server: FakeTwoC2p,
    pub(super) client: reqwest::Client,
    pub(super) clock: ManualClock,
}

impl Shop {
    pub(super) fn new() -> Self {
        let (clock, shared) = manual_clock();
        let server = FakeTwoC2p::start(Bank::new(), "TESTM01", SECRET);
        server.set_clock(shared);
        Self {
            server,
            client: client(),
            clock,
        }
    }

    pub(super) fn bank(&self) -> Bank {
        self.server.bank()
    }

    async fn post(&self, path: &str, body: impl Into<String>) -> Answer {
        bounded(self.try_post(path, body)).await.unwrap()
    }

    async fn try_post(&self, path: &str, body: impl Into<String>) -> Result<Answer, reqwest::Error> {
        let request = self.client.post(format!("{}/{path}", self.server.base_url()));
        Answer::of(request.header("Content-Type", "application/json").body(body.into())).await
    }

    pub(super) async fn token(&self, claims: &str) -> Answer {
        self.post("paymentToken", seal(claims, SECRET)).await
    }

    /// The code of a signed inquiry.
    pub(super) async fn inquire(&self, invoice: &str) -> String {
        let claims = format!(r#"{{"merchantID":"TESTM01","invoiceNo":"{invoice}"}}"#);
        let answer = self.post("paymentInquiry", seal(&claims, SECRET)).await;
        text(&open(&answer.text), "respCode")
    }

    pub(super) async fn pay_directly(&self, token: &str, channel: &str) -> Value {
        let body = serde_json::json!({
            "paymentToken": token,
            "payment": { "code": { "channelCode": channel }, "data": { "customerToken": "tok_1" } },
        });
        self.post("payment", body.to_string()).await.json()
    }
}

/// Signed here, not by the fake.
fn seal(claims: &str, secret: &str) -> String {
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#),
        URL_SAFE_NO_PAD.encode(claims)
    );
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret.as_bytes());
    let signature = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
    format!(r#"{{"payload":"{signed}.{}"}}"#, URL_SAFE_NO_PAD.encode(signature))
}

/// The claims of a signed body, as text. Fails when the signature is not good.
#[track_caller]
pub(super) fn open(body: &str) -> String {
    let envelope: Value = serde_json::from_str(body).unwrap();
    let token = envelope["payload"]
        .as_str()
        .unwrap_or_else(|| panic!("not signed: {body}"));
    let claims = token.split('.').nth(1).unwrap();
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!(seal(&claims, SECRET), body);
    claims
}

pub(super) fn text(claims: &str, name: &str) -> String {
    let claims: Value = serde_json::from_str(claims).unwrap();
    claims[name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_token_moves_no_money_and_the_page_moves_it_once() {
    let shop = Shop::new();
    let claims = open(&shop.token(ORDER).await.text);
    assert_eq!(text(&claims, "respCode"), "0000");
    assert_eq!(text(&claims, "paymentToken"), shop.server.token("INV7001"));
    assert!(text(&claims, "webPaymentUrl").ends_with("%3d"), "{claims}");
    assert_eq!(shop.bank().charged("INV7001"), 0);
    assert!(shop.server.pay("INV7001") && !shop.server.pay("INV7001"));
    for id in ["INV7001", "k1", "order-7001"] {
        assert_eq!(shop.bank().charged(id), 1, "{id}");
    }
    assert_eq!(shop.bank().total(OperationKind::Charge, "k1"), 200_010);
}

#[tokio::test]
async fn c32_an_invoice_number_is_taken_once() {
    let shop = Shop::new();
    shop.server.set_faults(FaultPlan::script([Fault::ResetAfterEffect]));
    shop.server.set_pays_at_once(true);
    assert!(
        bounded(shop.try_post("paymentToken", seal(ORDER, SECRET)))
            .await
            .is_err()
    );
    let again = shop.token(ORDER).await;
    assert_eq!((again.status, again.json()["respCode"].as_str()), (200, Some("9015")));
    assert!(again.json()["payload"].is_null());
    shop.server.set_signs_refusals(true);
    assert_eq!(text(&open(&shop.token(ORDER).await.text), "respCode"), "9015");
    assert_eq!(shop.inquire("INV7001").await, "0000");
    assert_eq!(shop.bank().charged("k1"), 1);
    assert_eq!(shop.server.count("POST /payment/4.3/paymentToken"), 3);
    assert_eq!(shop.server.invoices(), ["INV7001"]);
}

#[tokio::test]
async fn the_same_idempotency_id_gives_the_first_token_again_when_set_so() {
    let shop = Shop::new();
    shop.server.set_replays_same_idempotency_id(true);
    let first = shop.token(ORDER).await;
    assert_eq!(shop.token(ORDER).await.text, first.text);
    for other in [ORDER.replace("2000.10", "2000.11"), ORDER.replace("\"k1\"", "\"k2\"")] {
        assert_eq!(shop.token(&other).await.json()["respCode"], "9015");
    }
}

#[tokio::test]
async fn requests_that_are_not_well_made_are_refused_without_a_signature() {
    let shop = Shop::new();
    let without = |name: &str| {
        let mut claims: serde_json::Map<String, Value> = serde_json::from_str(ORDER).unwrap();
        claims.remove(name).unwrap();
        Value::Object(claims).to_string()
    };
    for (claims, code) in [
        (without("description"), "9005"),
        (without("amount"), "9005"),
        (without("merchantID"), "9005"),
        (ORDER.replace("TESTM01", "TESTM02"), "9007"),
        (ORDER.replace("INV7001", "INV-7001"), "9004"),
        (ORDER.replace("INV7001", &"9".repeat(51)), "9006"),
        (ORDER.replace("2000.10", "2000.101"), "9004"),
        (ORDER.replace("2000.10", "2e3"), "9004"),
        (ORDER.replace("2000.10", "0"), "9004"),
        (ORDER.replace("2000.10", "1234567890123"), "9004"),
        (ORDER.replace("THB", "XXX"), "9004"),
        (ORDER.replace("\"k1\"", &format!("\"{}\"", "k".repeat(101))), "9006"),
        (ORDER.replace("\"k1\"", "\"k1\",\"paymentExpiry\":\"tomorrow\""), "9008"),
    ] {
        let answer = shop.token(&claims).await;
        assert_eq!(answer.json()["respCode"], code, "{claims}");
    }
    let hex_key = "00".repeat(32);
    let forged = shop.post("paymentToken", seal(ORDER, &hex_key)).await;
    assert_eq!((forged.status, forged.json()["respCode"].as_str()), (200, Some("9042")));
    assert_eq!(shop.post("paymentToken", "{").await.json()["respCode"], "9900");
    assert!(shop.server.invoices().is_empty());
}

#[tokio::test]
async fn a_token_expires_by_the_clock_or_when_the_request_says() {
    let shop = Shop::new();
    shop.token(ORDER).await;
    // 07:10 in Bangkok is ten minutes from now.
    let short = ORDER
        .replace("INV7001", "INV7002")
        .replace("\"k1\"", "\"k2\",\"paymentExpiry\":\"2026-01-01 07:10:00\"");
    shop.token(&short).await;
    let utc = short.replace("INV7002", "INV7003").replace("07:10", "00:10");
    shop.token(&utc).await;
    assert!(
        !shop.server.pay("INV7003"),
        "in the wrong zone the page is dead on arrival"
    );
    shop.clock.advance(Duration::from_secs(600));
    assert!(!shop.server.pay("INV7002"));
    shop.clock.advance(Duration::from_secs(1199));
    assert_eq!(shop.inquire("INV7001").await, "2001");
    assert!(!shop.server.pay_late("INV7001"));
    shop.clock.advance(Duration::from_secs(1));
    assert!(!shop.server.pay("INV7001") && !shop.server.decline("INV7001", "4051") && !shop.server.cancel("INV7001"));
    assert_eq!(shop.inquire("INV7001").await, "5009");
    shop.server.set_expired_code("2002");
    assert_eq!(shop.inquire("INV7001").await, "2002");
    assert!(shop.bank().movements().is_empty());
    assert!(shop.server.pay_late("INV7001"));
    assert_eq!(shop.inquire("INV7001").await, "5017");
    assert_eq!(shop.bank().charged("INV7001"), 1);
}

#[tokio::test]
async fn c33_inquiries_say_unknown_unpaid_refused_and_paid() {
    let shop = Shop::new();
    assert_eq!(shop.inquire("INV7001").await, "2002");
    shop.token(ORDER).await;
    assert_eq!(shop.inquire("INV7001").await, "2001");
    shop.server.set_unpaid_code("2002");
    assert_eq!(shop.inquire("INV7001").await, "2002");
    assert!(shop.server.decline("INV7001", "4051"));
    assert_eq!(shop.inquire("INV7001").await, "4051");
    assert!(shop.server.cancel("INV7001"));
    assert_eq!(shop.inquire("INV7001").await, "0003");
    shop.server.set_inquiry_lag(2);
    assert!(shop.server.pay("INV7001"), "the page lives on after a refused try");
    for expected in ["2002", "2002", "0000", "0000"] {
        assert_eq!(shop.inquire("INV7001").await, expected);
    }
    let by_token = format!(
        r#"{{"merchantID":"TESTM01","paymentToken":"{}"}}"#,
        shop.server.token("INV7001")
    );
    let claims = open(&shop.post("paymentInquiry", seal(&by_token, SECRET)).await.text);
    assert_eq!(text(&claims, "invoiceNo"), "INV7001");
    assert_eq!(
        shop.post("paymentInquiry", seal(&by_token, "x")).await.json()["respCode"],
        "9042"
    );
    assert_eq!(shop.bank().charged("k1"), 1);
}

#[tokio::test]
async fn results_carry_identity_and_the_amount_in_the_form_asked_for() {
    let shop = Shop::new();
    shop.token(ORDER).await;
    shop.server.decline("INV7001", "4051");
    let body = String::from_utf8(shop.server.callback("INV7001")).unwrap();
    assert_eq!(text(&open(&body), "respCode"), "4051");
    shop.server.pay("INV7001");
    for (form, expected) in [
        (AmountForm::Number, "\"amount\":2000.10}"),
        (AmountForm::ShortNumber, "\"amount\":2000.1}"),
        (AmountForm::Text, "\"amount\":\"2000.10\"}"),
        (AmountForm::Padded, "\"amount\":\"000000002000.10000\"}"),
    ] {
        shop.server.set_amount_form(form);
        let claims = open(&String::from_utf8(shop.server.callback("INV7001")).unwrap());
        assert!(claims.ends_with(expected), "{claims}");
        for (name, value) in [
            ("merchantID", "TESTM01"),
            ("invoiceNo", "INV7001"),
            ("currencyCode", "THB"),
            ("idempotencyID", "k1"),
            ("userDefined1", "order-7001"),
            ("transactionDateTime", "20260101070000"),
            ("respCode", "0000"),
        ] {
            assert_eq!(text(&claims, name), value);
        }
        assert!(!text(&claims, "tranRef").is_empty());
    }
}

#[tokio::test]
async fn do_payment_uses_a_token_once_and_says_2000_for_good_and_bad() {
    let shop = Shop::new();
    for (invoice, told, channel, code, inquiry, charged) in [
        ("INV1", None, "CC", "2000", "0000", 1),
        (
            "INV2",
            Some(DirectPayment::Decline("4051".to_owned())),
            "CC",
            "2000",
            "4051",
            0,
        ),
        ("INV3", Some(DirectPayment::Redirect), "CC", "1001", "2001", 0),
        ("INV4", None, "PPQR", "1005", "2001", 0),
    ] {
        let order = ORDER
            .replace("INV7001", invoice)
            .replace("\"k1\"", &format!("\"key-{invoice}\""));
        shop.token(&order).await;
        if let Some(told) = told {
            shop.server.next_payment(told);
        }
        let token = shop.server.token(invoice);
        assert_eq!(shop.pay_directly(&token, channel).await["respCode"], code, "{invoice}");
        assert_eq!(shop.inquire(invoice).await, inquiry, "{invoice}");
        assert_eq!(shop.bank().charged(invoice), charged, "{invoice}");
        assert_eq!(
            shop.pay_directly(&token, channel).await["respCode"],
            "9041",
            "{invoice}"
        );
        assert_eq!(shop.bank().charged(invoice), charged, "{invoice}");
    }
    assert!(shop.server.pay("INV3") && shop.server.pay("INV4"));
    assert_eq!(shop.pay_directly("no such token", "CC").await["respCode"], "9040");
    assert_eq!(
        shop.post("payment", r#"{"paymentToken":"x"}"#).await.json()["respCode"],
        "9005"
    );
}

#[tokio::test]
async fn a_lost_do_payment_moved_the_money_and_inquiries_fail_only_when_asked_to() {
    let shop = Shop::new();
    shop.server.set_faults(
        FaultPlan::none()
            .on("POST /payment/4.3/payment", Fault::HalfBodyAfterEffect)
            .on("POST /payment/4.3/paymentInquiry", Fault::Throttle),
    );
    shop.token(ORDER).await;
    let body = serde_json::json!({
        "paymentToken": shop.server.token("INV7001"),
        "payment": { "code": { "channelCode": "CC" }, "data": { "customerToken": "tok_1" } },
    });
    assert!(bounded(shop.try_post("payment", body.to_string())).await.is_err());
    assert_eq!(shop.bank().charged("INV7001"), 1);
    let claims = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001"}"#;
    assert_eq!(shop.post("paymentInquiry", seal(claims, SECRET)).await.status, 429);
    shop.server.set_faults(FaultPlan::script([Fault::ErrorAfterEffect]));
    assert_eq!(shop.inquire("INV7001").await, "0000");
    let second = shop.token(&ORDER.replace("INV7001", "INV7002")).await;
    assert_eq!((second.status, second.json()["respCode"].as_str()), (500, Some("0999")));
    assert_eq!(shop.server.invoices().len(), 2);
}

#[tokio::test]
async fn an_endpoint_that_the_fake_does_not_have_is_loud() {
    let shop = Shop::new();
    let answer = shop.post("canceltransaction", "{}").await;
    assert_eq!(answer.status, 501);
    assert!(answer.text.contains("canceltransaction"), "{}", answer.text);
    assert_eq!(shop.server.unexpected(), ["POST /payment/4.3/canceltransaction"]);
}
