//! Direct payments: a token, then one payment with it.

use super::*;

const TOKEN: &str =
    r#"{"webPaymentUrl":"https://pgw-ui.2c2p.com/x","paymentToken":"TESTONLYpay+/=","respCode":"0000"}"#;

fn by_card(reference: &str) -> Operation {
    let options = TwoC2pOptions::new()
        .customer_token("TESTONLYcustomertoken")
        .locale("en");
    charge(reference, "2000", Currency::THB).with(options)
}

fn by_qr(reference: &str) -> Operation {
    charge(reference, "2000", Currency::THB).with(TwoC2pOptions::new().direct_channel("PPQR"))
}

fn flow(code: &str) -> Result<Response, Failure> {
    ok(format!(
        r#"{{"respCode":"{code}","data":"https://bank.example/x","fallbackData":"https://bank.example/f","channelCode":"CC","expiryTimer":"900000"}}"#
    ))
}

#[tokio::test]
async fn the_payment_carries_token_and_card_and_is_not_signed() {
    let (gateway, network) = account([signed(TOKEN), flow("1001")]);
    let operation = by_card("INV7001");
    let _ = send(&gateway, &operation).await.unwrap();
    assert_eq!(network.paths(), ["paymentToken", "payment"]);
    let key = operation.key(&Namespace::new("shop1").unwrap());
    let expected = format!(
        "{{\"paymentToken\":\"TESTONLYpay+/=\",\"clientID\":\"{key}\",\"locale\":\"en\",\
         \"payment\":{{\"code\":{{\"channelCode\":\"CC\"}},\"data\":{{\"customerToken\":\"TESTONLYcustomertoken\"}}}}}}"
    );
    assert_eq!(network.body(1), expected);
    // With it, a repeated request might be given the first token again, and pay a second time.
    assert!(!network.claims(0).contains("idempotencyID"));
    assert!(network.claims(0).contains(&format!("\"userDefined1\":\"{key}\"")));
}

#[tokio::test]
async fn flow_codes_say_what_the_payer_has_to_do() {
    type Check = fn(&NextStep) -> bool;
    let cases: [(&str, Check); 6] = [
        ("1000", |next| matches!(next, NextStep::Redirect { .. })),
        (
            "1001",
            |next| matches!(next, NextStep::Redirect { url } if url.expose() == "https://bank.example/x"),
        ),
        ("1002", |next| matches!(next, NextStep::OpenApp { fallback: None, .. })),
        ("1003", |next| matches!(next, NextStep::PaySlip { .. })),
        (
            "1004",
            |next| matches!(next, NextStep::OpenApp { fallback: Some(url), .. } if url.expose() == "https://bank.example/f"),
        ),
        ("1005", |next| matches!(next, NextStep::QrCode { .. })),
    ];
    for (code, check) in cases {
        let (gateway, _) = account([signed(TOKEN), flow(code)]);
        let outcome = send(&gateway, &by_qr("INV7001")).await.unwrap();
        let Outcome::Pending(pending) = outcome else {
            panic!("{code}: {outcome:?}");
        };
        assert!(check(&pending.next), "{code}: {pending:?}");
        assert_eq!(pending.evidence.code.as_deref(), Some(code));
        assert_eq!(pending.evidence.details.get("expiryTimer"), Some("900000"));
        assert_eq!(pending.expires_at, Some(NOW.after(TOKEN_LIFE)));
    }
}

#[tokio::test]
async fn c34_the_end_of_a_flow_decides_nothing_and_one_inquiry_does() {
    let answer =
        r#"{"channelCode":"CC","invoiceNo":"INV7001","respCode":"2000","respDesc":"Transaction is completed"}"#;
    let paid =
        r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":2000.00,"currencyCode":"THB","respCode":"0000"}"#;
    for finished in [ok(answer), signed(answer)] {
        let (gateway, network) = account([signed(TOKEN), finished, signed(paid)]);
        let operation = by_card("INV7001");
        let failure = check_maybe(send(&gateway, &operation).await, FailureKind::Duplicate);
        assert_eq!(failure.code(), Some("2000"));
        let found = gateway.inquire(&reserve(&gateway, &operation)).await.unwrap();
        assert!(matches!(found, Inquiry::Found(Outcome::Succeeded(_))));
        assert_eq!(network.paths(), ["paymentToken", "payment", "paymentInquiry"]);
    }
}

#[tokio::test]
async fn whatever_else_ends_a_flow_leaves_it_to_an_inquiry() {
    for (answer, kind) in [
        (flow("0000"), FailureKind::Duplicate),
        (flow("4051"), FailureKind::Duplicate),
        (flow("9041"), FailureKind::Duplicate),
        (flow("9042"), FailureKind::Duplicate),
        (flow("2002"), FailureKind::Duplicate),
        (ok("{}"), FailureKind::Duplicate),
        (ok(r#"{"respCode":"1001"}"#), FailureKind::Unreadable),
        (
            ok(r#"{"respCode":"1001","data":"javascript:alert(1)"}"#),
            FailureKind::Unreadable,
        ),
        (ok("<html>"), FailureKind::Unreadable),
        (status(502, "text/html", "<html>"), FailureKind::ServerFault),
        (lost(), FailureKind::Timeout),
    ] {
        let (gateway, _) = account([signed(TOKEN), answer]);
        let _ = check_maybe(send(&gateway, &by_card("INV7001")).await, kind);
    }
}

#[tokio::test]
async fn a_repeated_send_stops_at_the_token_and_pays_nothing() {
    let (gateway, network) = account([signed(TOKEN), lost(), signed(r#"{"respCode":"9015"}"#)]);
    let operation = by_card("INV7001");
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Timeout);
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Duplicate);
    assert_eq!(network.paths(), ["paymentToken", "payment", "paymentToken"]);
}

#[tokio::test]
async fn a_payment_that_did_not_leave_ends_the_attempt_since_its_token_is_dropped() {
    let (gateway, _) = account([signed(TOKEN), unconnected()]);
    let outcome = send(&gateway, &by_card("INV7001")).await.unwrap();
    assert!(matches!(outcome, Outcome::Failed(failed) if failed.category == FailureCategory::Cancelled));
}

#[tokio::test]
async fn without_a_payment_token_there_is_no_payment() {
    let (gateway, network) = account([signed(
        r#"{"webPaymentUrl":"https://pgw-ui.2c2p.com/x","respCode":"0000"}"#,
    )]);
    let _ = check_maybe(send(&gateway, &by_card("INV7001")).await, FailureKind::Unreadable);
    assert_eq!(network.paths(), ["paymentToken"]);
}

#[tokio::test]
async fn a_declined_card_is_final_since_there_is_no_page() {
    let declined = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","respCode":"4051","acquirerResponseCode":"51"}"#;
    let (gateway, _) = account([signed(declined)]);
    let record = reserve(&gateway, &by_card("INV7001"));
    assert_eq!(record.payable_until(), None);
    let Inquiry::Found(Outcome::Failed(failed)) = gateway.inquire(&record).await.unwrap() else {
        panic!("not failed");
    };
    assert!(!failed.payer_may_retry);
    assert_eq!(failed.decline_code.as_deref(), Some("51"));
}

#[tokio::test]
async fn not_found_proves_nothing_while_the_token_can_still_be_used() {
    for (minutes, expected) in [(0, false), (44, false), (45, true)] {
        let now = NOW.after(Duration::from_secs(minutes * 60));
        let (gateway, _) = account_at(now, [signed(r#"{"respCode":"2002"}"#)]);
        let record = reserve(&gateway, &by_card("INV7001"));
        let inquiry = gateway.inquire(&record).await.unwrap();
        assert!(
            matches!(inquiry, Inquiry::Absent { consistent } if consistent == expected),
            "{minutes}"
        );
    }
}

#[test]
fn two_cards_or_an_expiry_are_refused() {
    let (gateway, _) = account([]);
    let both = TwoC2pOptions::new().customer_token("a").secure_pay_token("b");
    for (operation, field) in [
        (charge("INV7001", "20", Currency::USD).with(both), "securePayToken"),
        (by_card("INV7001").expires_at(NOW.after(TOKEN_LIFE)), "expires_at"),
        (
            charge("I1", "20", Currency::USD).with(TwoC2pOptions::new().secure_pay_token("")),
            "securePayToken",
        ),
    ] {
        let key = operation.key(&Namespace::new("shop1").unwrap());
        let refused = gateway.prepare(key, &operation).unwrap_err();
        assert!(
            matches!(refused, Refusal::Invalid(invalid) if invalid.field() == field),
            "{field}"
        );
    }
    assert!(
        reserve(&gateway, &by_qr("I2").expires_at(NOW.after(TOKEN_LIFE)))
            .payable_until()
            .is_some()
    );
}
