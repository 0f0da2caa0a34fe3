//! Token requests and their answers.

use super::*;
use crate::operation::{Invalid, Target};
use crate::outcome::Failed;
use std::num::NonZeroU32;

const ISSUED: &str = r#"{"webPaymentUrl":"https://pgw-ui.2c2p.com/payment/4.3/#/token/TESTONLYpaytoken%2b","paymentToken":"TESTONLYpaytoken+","respCode":"0000","respDesc":"Success"}"#;

fn refusal(operation: &Operation) -> Refusal {
    let (gateway, _) = account([]);
    let key = operation.key(&Namespace::new("shop1").unwrap());
    gateway.prepare(key, operation).unwrap_err()
}

#[track_caller]
fn check_invalid(operation: &Operation, field: &str) {
    match refusal(operation) {
        Refusal::Invalid(invalid) => assert_eq!(invalid.field(), field, "{invalid}"),
        Refusal::Unsupported(what) => panic!("unsupported: {what}"),
    }
}

#[track_caller]
fn failed(result: Result<Outcome, Failure>) -> Failed {
    match result {
        Ok(Outcome::Failed(failed)) => failed,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_issued_token_is_a_page_for_the_payer() {
    let (gateway, network) = account([signed(ISSUED)]);
    let outcome = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await.unwrap();
    let Outcome::Pending(pending) = outcome else {
        panic!("{outcome:?}");
    };
    let NextStep::Redirect { url } = &pending.next else {
        panic!("{pending:?}");
    };
    assert!(url.expose().ends_with("/token/TESTONLYpaytoken%2b"));
    assert_eq!(pending.expires_at, Some(NOW.after(TOKEN_LIFE)));
    assert_eq!(network.paths(), ["paymentToken"]);
}

#[tokio::test]
async fn the_claims_are_written_in_a_fixed_order_and_the_bytes_are_the_same_each_time() {
    let operation = charge("INV7001", "2000", Currency::THB)
        .description("Tickets <2> & \"more\"")
        .metadata("shop", "north")
        .metadata("cart", "7")
        .with(
            TwoC2pOptions::new()
                .payment_channels(["CC", "QR"])
                .request_3ds(Request3ds::Force),
        );
    let (gateway, network) = account([signed(ISSUED), signed(ISSUED)]);
    let _ = send(&gateway, &operation).await.unwrap();
    let _ = send(&gateway, &operation).await.unwrap();
    let key = operation.key(&Namespace::new("shop1").unwrap());
    let expected = format!(
        "{{\"merchantID\":\"TESTM01\",\"invoiceNo\":\"INV7001\",\"idempotencyID\":\"{key}\",\
         \"description\":\"Tickets &lt;2&gt; &amp; &quot;more&quot;\",\"amount\":2000.00,\"currencyCode\":\"THB\",\
         \"userDefined1\":\"{key}\",\"userDefined2\":\"cart=7\",\"userDefined3\":\"shop=north\",\
         \"paymentChannel\":[\"CC\",\"QR\"],\"request3DS\":\"F\"}}"
    );
    assert_eq!(network.claims(0), expected);
    assert_eq!(network.body(0), network.body(1));
}

#[tokio::test]
async fn an_unsigned_token_is_not_believed() {
    for body in [
        ISSUED,
        r#"{"respCode":"0000","respDesc":"Success"}"#,
        r#"{"payload":null,"respCode":"0000"}"#,
    ] {
        let (gateway, _) = account([ok(body)]);
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let failure = check_maybe(result, FailureKind::Unreadable);
        assert!(!format!("{failure} {failure:?}").contains("TESTONLY"));
    }
}

#[tokio::test]
async fn a_token_without_a_page_is_no_answer() {
    for claims in [
        r#"{"paymentToken":"t","respCode":"0000"}"#,
        r#"{"paymentToken":"t","webPaymentUrl":null,"respCode":"0000"}"#,
        r#"{"paymentToken":"t","webPaymentUrl":"javascript:alert(1)","respCode":"0000"}"#,
    ] {
        let (gateway, _) = account([signed(claims)]);
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let _ = check_maybe(result, FailureKind::Unreadable);
    }
}

#[tokio::test]
async fn a_request_that_was_not_accepted_ends_the_attempt_signed_or_not() {
    for (code, category) in [
        ("9005", FailureCategory::Invalid),
        ("9009", FailureCategory::Invalid),
        ("6101", FailureCategory::Invalid),
        ("9042", FailureCategory::Refused),
        ("9007", FailureCategory::Refused),
    ] {
        let claims = format!(r#"{{"respCode":"{code}","respDesc":"card 4111111111111111"}}"#);
        for answer in [ok(claims.clone()), signed(&claims)] {
            let (gateway, _) = account([answer]);
            let failed = failed(send(&gateway, &charge("INV7001", "2000", Currency::THB)).await);
            assert_eq!(failed.category, category, "{code}");
            assert!(!failed.payer_may_retry);
            assert_eq!(failed.evidence.code.as_deref(), Some(code));
            assert!(!format!("{failed:?}").contains("4111111111111111"));
        }
    }
}

#[tokio::test]
async fn a_refusal_is_not_believed_where_the_request_itself_may_have_paid() {
    let operation = charge("INV7001", "2000", Currency::THB).with(TwoC2pOptions::new().immediate_payment(true));
    let (gateway, _) = account([ok(r#"{"respCode":"9005"}"#)]);
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Duplicate);
}

#[tokio::test]
async fn every_other_code_leaves_the_outcome_open() {
    for (code, kind) in [
        ("9015", FailureKind::Duplicate),
        ("9093", FailureKind::Duplicate),
        ("5005", FailureKind::Duplicate),
        ("9041", FailureKind::Duplicate),
        ("4094", FailureKind::Duplicate),
        ("0999", FailureKind::ServerFault),
        ("9993", FailureKind::ServerFault),
        ("9035", FailureKind::ServerFault),
        ("9020", FailureKind::ServerFault),
        ("0001", FailureKind::ServerFault),
        ("2002", FailureKind::ServerFault),
        ("4110", FailureKind::ServerFault),
        ("00", FailureKind::ServerFault),
        ("7777", FailureKind::ServerFault),
        ("4111111111111111", FailureKind::ServerFault),
    ] {
        let claims = format!(r#"{{"respCode":"{code}","respDesc":"x"}}"#);
        for answer in [ok(claims.clone()), signed(&claims)] {
            let (gateway, network) = account([answer]);
            let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
            let failure = check_maybe(result, kind);
            assert!(!format!("{failure} {failure:?}").contains("4111111111111111"));
            assert_eq!(network.paths().len(), 1);
        }
    }
    for body in [
        "{}",
        r#"{"respCode":null}"#,
        r#"{"respCode":""}"#,
        r#"{"respCode":true}"#,
        r#"{"respCode":12345}"#,
    ] {
        let (gateway, _) = account([ok(body)]);
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let _ = check_maybe(result, FailureKind::Unreadable);
    }
}

#[tokio::test]
async fn no_status_but_200_is_an_answer_however_well_it_is_written() {
    for code in [201, 204, 302, 400, 401, 403, 404, 429, 500, 503] {
        let kind = if code >= 500 {
            FailureKind::ServerFault
        } else {
            FailureKind::Unreadable
        };
        for body in [envelope(ISSUED), r#"{"respCode":"9005"}"#.to_owned(), String::new()] {
            let (gateway, _) = account([status(code, "application/json", body)]);
            let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
            assert_eq!(check_maybe(result, kind).http_status(), Some(code));
        }
    }
}

#[tokio::test]
async fn a_failure_of_the_network_is_passed_on_as_it_is() {
    let operation = charge("INV7001", "2000", Currency::THB);
    let (gateway, _) = account([lost(), unconnected()]);
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Timeout);
    assert!(!send(&gateway, &operation).await.unwrap_err().may_have_executed());
}

#[tokio::test]
async fn c38_a_page_instead_of_json_leaves_the_outcome_open() {
    let page = "<!DOCTYPE html><html><head><title>Down for maintenance</title></head><body>try later</body></html>";
    for (code, content_type, kind) in [
        (200, "text/html", FailureKind::Unreadable),
        (503, "text/html", FailureKind::ServerFault),
        (200, "application/json", FailureKind::Unreadable),
    ] {
        let (gateway, network) = account([status(code, content_type, page)]);
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let failure = check_maybe(result, kind);
        assert_eq!(failure.http_status(), Some(code));
        assert!(failure.detail().contains(content_type), "{failure}");
        assert!(failure.detail().contains("Down for maintenance"), "{failure}");
        assert!(failure.detail().len() < 400);
        assert_eq!(network.paths().len(), 1);
    }
}

#[tokio::test]
async fn c67_an_answer_with_a_card_number_is_masked_wherever_it_is_printed() {
    let page = "card 4242 4242 4242 4242 cvc 123 and 4111111111111111";
    let (gateway, _) = account([
        status(400, "text/html", page),
        signed(r#"{"respCode":"9005","respDesc":"Invalid card 4111111111111111"}"#),
        signed(r#"{"respCode":"4111111111111111","respDesc":"Invalid card 4111111111111111"}"#),
    ]);
    for _ in 0..3 {
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let printed = match &result {
            Ok(outcome) => format!("{outcome:?}"),
            Err(failure) => format!(
                "{failure} {failure:?} {:?}",
                std::error::Error::source(failure).is_some()
            ),
        };
        assert!(
            !printed.contains("4242 4242") && !printed.contains("41111111"),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_shows_nothing_of_its_token() {
    let whole = envelope(ISSUED);
    for body in [
        &whole[..whole.len() - 9],
        &ISSUED[..120],
        "\u{feff}{\"paymentToken\":\"TESTONLYpaytoken",
    ] {
        let (gateway, _) = account([ok(body)]);
        let result = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await;
        let failure = check_maybe(result, FailureKind::Unreadable);
        let printed = format!("{failure} {failure:?}");
        assert!(
            !printed.contains("TESTONLY") && !printed.contains(&whole[60..90]),
            "{printed}"
        );
    }
}

#[tokio::test]
async fn c66_tokens_are_read_only_by_asking_for_them() {
    let (gateway, _) = account([signed(ISSUED)]);
    let outcome = send(&gateway, &charge("INV7001", "2000", Currency::THB)).await.unwrap();
    assert!(!format!("{outcome:?}").contains("TESTONLY"));
    let options = TwoC2pOptions::new().customer_token("TESTONLYcustomertoken");
    assert!(!format!("{options:?}").contains("TESTONLY"));
    assert!(!format!("{gateway:?}").contains("TESTONLY"));
    let builder = TwoC2p::builder("TESTM01", SECRET);
    assert!(!format!("{builder:?}").contains("TESTONLY"));
}

#[tokio::test]
async fn c74_an_expiry_is_sent_in_the_merchant_s_time() {
    let expires = NOW.after(Duration::from_millis(30 * 60 * 1000 + 999));
    let operation = charge("INV7001", "20", Currency::USD).expires_at(expires);
    let (gateway, network) = account([signed(ISSUED)]);
    let outcome = send(&gateway, &operation).await.unwrap();
    assert!(network.claims(0).contains(r#""paymentExpiry":"2026-01-01 07:30:00""#));
    assert!(matches!(outcome, Outcome::Pending(pending) if pending.expires_at == Some(expires)));

    for past in [
        NOW,
        NOW.before(Duration::from_secs(1)),
        NOW.after(Duration::from_millis(999)),
    ] {
        let (gateway, network) = account([]);
        let result = send(&gateway, &charge("INV7001", "20", Currency::USD).expires_at(past)).await;
        let failure = result.unwrap_err();
        assert!(!failure.may_have_executed());
        assert!(failure.detail().contains("expires_at"));
        assert!(network.paths().is_empty(), "nothing is sent");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name_before_anything_is_sent() {
    let base = || charge("INV7001", "2000", Currency::THB);
    check_invalid(&charge("INV7001", "9999999999999", Currency::THB), "amount");
    check_invalid(&base().description(""), "description");
    check_invalid(&base().description("&".repeat(51)), "description");
    check_invalid(&base().metadata("a", "x".repeat(149)), "metadata");
    let five = ["a", "b", "c", "d", "e"]
        .iter()
        .fold(base(), |operation, name| operation.metadata(*name, "1"));
    check_invalid(&five, "metadata");
    check_invalid(&base().expires_at(Timestamp::NEVER), "expires_at");
    check_invalid(
        &base().with(TwoC2pOptions::new().transaction_mode("PREAUTH")),
        "transactionMode",
    );
    assert!(reserve(&account([]).0, &base().description("ก".repeat(250))).is_open());
    assert!(reserve(&account([]).0, &base().metadata("a", "x".repeat(148))).is_open());
}

#[test]
fn a_long_reference_still_gets_a_description() {
    let (gateway, _) = account([]);
    let operation = charge(&"&".repeat(200), "2000", Currency::THB);
    let record = reserve(&gateway, &operation);
    let claims = gateway
        .token_claims(record.key(), record.wire_identity(), &operation)
        .unwrap();
    assert!(claims.contains(&format!(r#""description":"Payment {}""#, record.wire_identity())));
}

#[test]
fn what_needs_the_maintenance_api_is_not_supported() {
    let amount = Money::parse("20", Currency::USD).unwrap();
    let target = || Target::Gateway(crate::operation::GatewayRef::new("T1"));
    for operation in [
        Operation::capture("c1", amount, target()).unwrap(),
        Operation::void("v1", target()).unwrap(),
        Operation::refund("r1", amount, target()).unwrap(),
    ] {
        assert!(matches!(refusal(&operation), Refusal::Unsupported(what) if what.contains("maintenance API")));
    }
    let authorize = Operation::authorize("a1", amount).unwrap();
    assert!(matches!(refusal(&authorize), Refusal::Unsupported(what) if what.contains("transaction_mode")));
    let (gateway, _) = account([]);
    let record = reserve(
        &gateway,
        &authorize.with(TwoC2pOptions::new().transaction_mode("PREAUTH")),
    );
    assert_eq!(record.wire_identity(), "a1");
}

#[test]
fn an_account_in_one_currency_refuses_others() {
    let account = || TwoC2p::builder("TESTM01", SECRET).transport(Arc::new(Scripted::default()));
    let gateway = account().currency(Currency::THB).build().unwrap();
    let key = |operation: &Operation| operation.key(&Namespace::new("shop1").unwrap());
    let baht = charge("INV7001", "20", Currency::THB);
    let dollars = charge("INV7001", "20", Currency::USD);
    assert!(gateway.prepare(key(&baht), &baht).is_ok());
    let refused = gateway.prepare(key(&dollars), &dollars).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(invalid) if invalid.field() == "amount"));
    // C74: an expiry in a zone that nobody named is not sent as UTC.
    let expiring = baht.expires_at(NOW.after(TOKEN_LIFE));
    let refused = gateway.prepare(key(&expiring), &expiring).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(invalid) if invalid.field() == "expires_at"));
}

#[test]
fn a_new_attempt_has_another_invoice_number() {
    let (gateway, _) = account([]);
    let first = reserve(&gateway, &charge("INV7001", "20", Currency::USD));
    let second = charge("INV7001", "20", Currency::USD).attempt(NonZeroU32::new(2).unwrap());
    let second = reserve(&gateway, &second);
    assert_eq!(first.wire_identity(), "INV7001");
    assert_eq!(second.wire_identity().len(), 25);
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name_without_their_value() {
    let base = || TwoC2p::builder("TESTM01", SECRET).transport(Arc::new(Scripted::default()));
    let builder =
        |merchant: &str, secret: &str| TwoC2p::builder(merchant, secret).transport(Arc::new(Scripted::default()));
    for (field, builder) in [
        ("merchant_id", builder("", SECRET)),
        ("merchant_id", builder("TEST M01", SECRET)),
        ("merchant_id", builder(&"1".repeat(26), SECRET)),
        ("secret_key", builder("TESTM01", "")),
        ("secret_key", builder("TESTM01", "TESTONLY\n")),
        ("child_merchant_id", base().child_merchant_id("")),
        ("base_url", base().base_url("http://pgw.2c2p.com/")),
        ("frontend_return_url", base().frontend_return_url("/return")),
        ("backend_return_url", base().backend_return_url("ftp://shop.example/")),
        ("utc_offset_minutes", base().utc_offset_minutes(900)),
    ] {
        match builder.build() {
            Err(BuildError::Invalid(invalid)) => {
                assert_eq!(invalid.field(), field);
                assert!(!invalid.to_string().contains("TESTONLY"));
            }
            other => panic!("{field}: {other:?}"),
        }
    }
    assert!(base().sandbox().build().is_ok());
    let _: Invalid = Invalid::new("x", "the error type is the crate's own");
}

#[tokio::test]
async fn return_addresses_and_the_sub_account_are_sent_unless_the_operation_has_its_own() {
    let network = Arc::new(Scripted {
        answers: Mutex::new([signed(ISSUED), signed(ISSUED)].into()),
        sent: Mutex::default(),
    });
    let shared: Arc<dyn Transport> = Arc::<Scripted>::clone(&network);
    let gateway = TwoC2p::builder("TESTM01", SECRET)
        .child_merchant_id("CHILD1")
        .frontend_return_url("https://shop.example/return")
        .backend_return_url("https://shop.example/callback")
        .transport(shared)
        .build()
        .unwrap();
    let own = TwoC2pOptions::new().frontend_return_url("https://shop.example/other");
    let _ = send(&gateway, &charge("INV1", "20", Currency::USD)).await.unwrap();
    let _ = send(&gateway, &charge("INV2", "20", Currency::USD).with(own))
        .await
        .unwrap();
    assert!(network.claims(0).contains(r#""childMerchantID":"CHILD1""#));
    assert!(
        network
            .claims(0)
            .contains(r#""frontendReturnUrl":"https://shop.example/return""#)
    );
    assert!(
        network
            .claims(1)
            .contains(r#""frontendReturnUrl":"https://shop.example/other""#)
    );
    assert!(
        network
            .claims(1)
            .contains(r#""backendReturnUrl":"https://shop.example/callback""#)
    );
    assert!(!network.claims(1).contains("https://shop.example/return\""));
}
