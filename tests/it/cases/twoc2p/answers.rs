//! How the members of an answer are read.

use super::*;

#[tokio::test]
async fn c39_a_code_that_is_a_number_gets_its_zeros_back() {
    for (token, code, expected) in [
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjowLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.B6DqnBrK1sObv1ZDAhLvXpGSsA_Pq29MEJMQ_Vvi6fY",
            Some("0000"),
            Class::Success,
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoxLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.j3XavtG0Am8ECKsIR__PkI1bUk6kbKCryFGsvK3dKCE",
            Some("0001"),
            Class::Pending,
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpbnZvaWNlTm8iOiJJTlY3MDAxIiwicmVzcENvZGUiOjkwMTUsInJlc3BEZXNjIjoiRXhpc3RpbmcgSW52b2ljZSBOdW1iZXIifQ.CBz-m8PUW6fuU1wSgZLmNPJOnLqiSwUoARaMKqOxBTw",
            Some("9015"),
            Class::Duplicate,
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjpudWxsLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.JPlB3UyDExtSrqaFPfgRvhNF1YeymbVfUNQ_w9cLTo4",
            None,
            Class::Unknown,
        ),
    ] {
        let result = report(token).await;
        assert_eq!(result.code.as_deref(), code);
        assert_eq!(result.class, expected);
        // The same everywhere: a callback is read by the same rule.
        if let (Ok(notification), Some(code)) = (notify(envelope(token)), code) {
            assert!(notification.event_id.contains(code));
        }
    }
    for json in ["1.0", "-1", "12345", "1e3", "true", "{}", "[\"0000\"]"] {
        let result = report(&sign(&format!(r#"{{"respCode":{json}}}"#))).await;
        assert_eq!((result.code, result.class), (None, Class::Unknown), "{json}");
    }
}

#[tokio::test]
async fn c40_an_amount_is_read_exactly_or_not_at_all() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/twoc2p/c2p_amount_forms.tsv"
    );
    let forms = std::fs::read_to_string(path).unwrap();
    let expected = [
        Some("1000.00"),
        Some("1000.00"),
        Some("1000.00"),
        Some("320.45"),
        Some("1000.00"),
        Some("1000.00"),
        None,
        Some("100000.00"),
        None,
        None,
        None,
        None,
    ];
    assert_eq!(forms.lines().count(), expected.len());
    for (line, expected) in forms.lines().zip(expected) {
        let (form, token) = line.split_once('\t').unwrap();
        let result = report(token).await;
        assert_eq!(result.amount, expected.map(|text| money(text, "THB")), "{form}");
        assert_eq!(result.amount_text.as_deref(), Some(form));
        assert_eq!(
            result.code.as_deref(),
            Some("0000"),
            "the rest of the answer is exposed"
        );
        assert_eq!(result.invoice_no.as_deref(), Some("INV7001"));
        let says = notify(envelope(token)).unwrap().says.unwrap();
        match (expected, says) {
            (Some(text), Outcome::Succeeded(succeeded)) => assert_eq!(succeeded.amount, Some(money(text, "THB"))),
            (None, Outcome::Conflict(conflict)) => assert_eq!(conflict.reported, None),
            (_, other) => panic!("{form}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn c41_a_byte_order_mark_is_passed_over_and_utf_16_is_not_an_answer() {
    let outer = STANDARD.decode("77u/eyJwYXlsb2FkIjoiZXlKaGJHY2lPaUpJVXpJMU5pSXNJblI1Y0NJNklrcFhWQ0o5LmV5SnRaWEpqYUdGdWRFbEVJam9pVkVWVFZFMHdNU0lzSW1sdWRtOXBZMlZPYnlJNklrbE9WamN3TURFaUxDSmhiVzkxYm5RaU9qSXdMakFzSW1OMWNuSmxibU41UTI5a1pTSTZJbFZUUkNJc0luSmxjM0JEYjJSbElqb2lNREF3TUNJc0luSmxjM0JFWlhOaklqb2lVM1ZqWTJWemN5SXNJblJ5WVc1U1pXWWlPaUpVTVNKOS5lTGppcXY4ekVNX0hZOE1Ga1g3dWZzck5hOVRtZnJCQXdqdzM0NVNJbU8wIn0=").unwrap();
    let result = inquire(outer.clone()).await.unwrap();
    assert_eq!(
        (result.class, result.amount),
        (Class::Success, Some(money("20.00", "USD")))
    );
    assert_eq!(succeeded(notify(outer).unwrap()).amount, Some(money("20.00", "USD")));

    let inner = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.77u_eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyIsInRyYW5SZWYiOiJUMSJ9.6jt_1LzfaizId3gGkiat62gbWOkWzfbPHjkn_yqd6mA";
    let result = report(inner).await;
    assert_eq!(
        (result.tran_ref.as_deref(), result.amount),
        (Some("T1"), Some(money("20.00", "USD")))
    );

    let utf_16 = STANDARD.decode("//57ACIAcABhAHkAbABvAGEAZAAiADoAIgB4ACIAfQA=").unwrap();
    let failure = inquire(utf_16.clone()).await.unwrap_err();
    assert!(failure.may_have_executed() && failure.kind() == FailureKind::Unreadable);
    assert!(failure.detail().contains("not the expected format"), "{failure}");
    assert!(matches!(notify(utf_16), Err(NotificationError::Malformed(_))));
}

#[tokio::test]
async fn c45_yen_and_dong_are_whole() {
    for (text, code) in [("500", "JPY"), ("150000", "VND")] {
        let claims = format!(
            r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":{text},"currencyCode":"{code}","respCode":"0000"}}"#
        );
        assert_eq!(report(&sign(&claims)).await.amount, Some(money(text, code)));
        assert_eq!(money(text, code).minor().to_string(), text);
    }
}

#[tokio::test]
async fn c52_null_and_empty_are_absent() {
    let claims = r#"{"cardNo":"411111XXXXXX1111","cardToken":"","merchantID":"TESTM01","invoiceNo":"INV7001","amount":20,"monthlyPayment":null,"userDefined1":"","currencyCode":"USD","recurringUniqueID":"","tranRef":"9100001","referenceNo":"9100002","approvalCode":null,"eci":"05","transactionDateTime":"20251231203312","agentCode":"XBANK","installmentMerchantAbsorbRate":null,"installmentPeriod":"","fxRate":"","idempotencyID":"","respCode":"0000","respDesc":"Success"}"#;
    let result = report(&sign(claims)).await;
    for absent in [
        &result.monthly_payment,
        &result.user_defined[0],
        &result.recurring_unique_id,
        &result.approval_code,
        &result.installment_merchant_absorb_rate,
        &result.installment_period,
        &result.fx_rate,
        &result.idempotency_id,
        &result.card_type,
    ] {
        assert_eq!(*absent, None);
    }
    assert!(result.customer_token.is_none());
    assert_eq!(result.account_no.as_deref(), Some("411111XXXXXX1111"));
    assert_eq!(result.transaction_time.unwrap().to_string(), "2025-12-31 20:33:12");
    let succeeded = succeeded(notify(envelope(&sign(claims))).unwrap());
    assert_eq!(succeeded.amount, Some(money("20.00", "USD")));
    assert_eq!(succeeded.gateway_ref.unwrap().as_str(), "9100001");
}

#[tokio::test]
async fn c53_numbers_and_strings_stand_for_each_other() {
    type Field = fn(&PaymentResult) -> Option<String>;
    let cases: [(&str, Field, &str); 12] = [
        (r#""installmentPeriod":6"#, |r| r.installment_period.clone(), "6"),
        (r#""installmentPeriod":"6""#, |r| r.installment_period.clone(), "6"),
        (r#""interestRate":0.3"#, |r| r.interest_rate.clone(), "0.3"),
        (r#""interestRate":"0.30000""#, |r| r.interest_rate.clone(), "0.30000"),
        (
            r#""recurringUniqueID":900001"#,
            |r| r.recurring_unique_id.clone(),
            "900001",
        ),
        (
            r#""recurringUniqueID":"900001""#,
            |r| r.recurring_unique_id.clone(),
            "900001",
        ),
        (r#""accountNo":411111"#, |r| r.account_no.clone(), "411111"),
        (r#""eci":5"#, |r| r.eci.clone(), "5"),
        (r#""eci":"05""#, |r| r.eci.clone(), "05"),
        (r#""referenceNo":"00010001""#, |r| r.reference_no.clone(), "00010001"),
        (r#""tranRef":9100001"#, |r| r.tran_ref.clone(), "9100001"),
        (
            r#""loyaltyPoints":[{"x":1}]"#,
            |r| r.loyalty_points.clone(),
            r#"[{"x":1}]"#,
        ),
    ];
    for (member, field, expected) in cases {
        let result = report(&sign(&paid_with(member))).await;
        assert_eq!(field(&result).as_deref(), Some(expected), "{member}");
        assert_eq!(result.class, Class::Success);
    }
    for fx in ["31000.00", "\"31000.00\""] {
        let member = format!(r#""fxAmount":{fx},"fxCurrencyCode":"THB""#);
        let result = report(&sign(&paid_with(&member))).await;
        assert_eq!(result.fx_amount, Some(money("31000.00", "THB")));
    }
    let numbered = paid_with(r#""x":1"#).replace("\"INV7001\"", "7001");
    let gateway = builder(envelope(&sign(&numbered))).build().unwrap();
    assert_eq!(
        gateway.payment_inquiry("7001").await.unwrap().invoice_no.as_deref(),
        Some("7001")
    );
    assert!(gateway.payment_inquiry("07001").await.is_err());
    let about = notify(envelope(&sign(&numbered))).unwrap().about;
    assert_eq!(about, [About::WireIdentity("7001".to_owned())]);
}

#[tokio::test]
async fn c66_c67_a_result_prints_neither_token_nor_card() {
    let members = r#""customerToken":"TESTONLYcustomertoken","accountNo":"4111111111111111","issuerBank":"CANARY""#;
    let claims = paid_with(members).replace("\"Success\"", "\"Invalid card 4111 1111 1111 1111\"");
    let result = report(&sign(&claims)).await;
    assert_eq!(
        result.customer_token.as_ref().unwrap().expose(),
        "TESTONLYcustomertoken"
    );
    let notification = notify(envelope(&sign(&claims))).unwrap();
    let printed = format!(
        "{result:?} {notification:?} {:?} {:?}",
        result.account_no, result.description
    );
    for canary in ["TESTONLY", "4111", "CANARY"] {
        assert!(!printed.contains(canary), "{printed}");
    }
}

#[tokio::test]
async fn c72_twelve_digits_stay_text_and_the_state_is_read_in_any_case() {
    for (json, parsed, raw) in [
        ("\"311225235959\"", None, Some("311225235959")),
        (
            "\"20251231235959\"",
            Some("2025-12-31 23:59:59"),
            Some("20251231235959"),
        ),
        ("20251231235959", Some("2025-12-31 23:59:59"), Some("20251231235959")),
        ("\"2025-12-31 23:59:59\"", None, Some("2025-12-31 23:59:59")),
        ("\"\"", None, None),
        ("null", None, None),
    ] {
        let claims = paid_with(&format!(r#""transactionDateTime":{json}"#));
        let result = report(&sign(&claims)).await;
        assert_eq!(
            result.transaction_time.map(|time| time.to_string()).as_deref(),
            parsed,
            "{json}"
        );
        assert_eq!(result.transaction_time_text.as_deref(), raw, "{json}");
        let _ = succeeded(notify(envelope(&sign(&claims))).unwrap());
    }
    let absent = report(&sign(&paid_with(r#""x":1"#))).await;
    assert!(absent.transaction_time.is_none() && absent.transaction_time_text.is_none());
}

#[tokio::test]
async fn c73_an_impossible_stamp_is_no_time_and_no_obstacle() {
    for (text, valid) in [
        ("20210229120000", false),
        ("20211301120000", false),
        ("20211231245959", false),
        ("20211231235960", false),
        ("00000000000000", false),
        ("99999999999999", false),
        ("2021254456", false),
        ("foo", false),
        ("202125x456", false),
        ("202ก12110101", false),
        ("２０２１１２３１２３５９５９", false),
        ("-2021123123595", false),
        ("20220305123312", true),
    ] {
        let claims = paid_with(&format!(r#""transactionDateTime":"{text}""#));
        let result = report(&sign(&claims)).await;
        assert_eq!(result.transaction_time.is_some(), valid, "{text}");
        assert_eq!(result.transaction_time_text.as_deref(), Some(text));
        let _ = succeeded(notify(envelope(&sign(&claims))).unwrap());
        if let Some(time) = result.transaction_time {
            assert_eq!((time.hour, time.minute, time.second), (12, 33, 12));
        }
    }
}
