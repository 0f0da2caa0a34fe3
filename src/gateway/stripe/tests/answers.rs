//! What answers mean, case by case.

use super::*;
use crate::outcome::NextStep;
use proptest::prelude::*;
use std::error::Error as _;

/// A PaymentIntent with a few fields.
fn intent(fields: &str) -> String {
    format!(r#"{{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd",{fields}}}"#)
}

fn error(fields: &str) -> String {
    format!(r#"{{"error":{{{fields}}}}}"#)
}

#[track_caller]
fn check(read: &Result<Outcome, Failure>, expected: &str) {
    assert_eq!(word(read), expected, "{read:?}");
}

#[tokio::test]
async fn c03_an_edge_error_says_nothing_about_the_origin() {
    let html = format!("<html><body>edge error {}</body></html>", "x".repeat(5000));
    let read = send(&card(), answer(502, &[("Content-Type", "text/html")], &html)).await;
    check(&read, "maybe ServerFault");
    let text = read.unwrap_err().to_string();
    assert!(text.contains("HTTP 502") && text.contains("text/html"), "{text}");
    assert!(text.len() < 450, "{} bytes", text.len());
}

#[tokio::test]
async fn c07_a_key_with_other_parameters_is_known_by_the_type_and_never_a_decline() {
    let body = error(r#""type":"idempotency_error","message":"other parameters; take another key than K1""#);
    for status in [400, 404] {
        check(&send(&card(), json(status, &body)).await, "maybe Duplicate");
    }
}

#[tokio::test]
async fn c13_a_replayed_decline_is_visible_as_such() {
    let body = error(r#""type":"card_error","code":"card_declined","decline_code":"generic_decline""#);
    for (headers, replayed) in [
        (&[][..], false),
        (&[("Idempotent-Replayed", "true")][..], true),
        (&[("idempotent-replayed", "TRUE")][..], true),
        (&[("IDEMPOTENT-REPLAYED", "false")][..], false),
    ] {
        let read = send(&card(), answer(402, headers, &body)).await;
        let Ok(Outcome::Failed(failed)) = read else {
            panic!("{read:?}")
        };
        assert_eq!(failed.evidence.replayed, replayed, "{headers:?}");
        assert_eq!(failed.decline_code.as_deref(), Some("generic_decline"));
    }
}

#[tokio::test]
async fn c14_a_limit_is_not_a_refusal_and_a_refusal_is_definitive() {
    let limited = error(r#""type":"invalid_request_error","code":"rate_limit""#);
    check(&send(&card(), json(429, &limited)).await, "not Throttled");
    let invalid = error(r#""type":"invalid_request_error","code":"parameter_invalid_integer","param":"amount""#);
    let read = send(&card(), json(400, &invalid)).await;
    check(&read, "failed invalid");
    assert_eq!(read.unwrap().evidence().unwrap().details.get("param"), Some("amount"));
}

#[tokio::test]
async fn c16_a_lock_is_known_by_its_code_whatever_its_type_and_status() {
    for (status, advice) in [(429, None), (429, Some("true")), (409, None)] {
        let headers: Vec<(&str, &str)> = advice.map(|value| ("Stripe-Should-Retry", value)).into_iter().collect();
        for kind in ["invalid_request_error", "idempotency_error", "api_error"] {
            let body = error(&format!(
                r#""code":"lock_timeout","type":"{kind}","message":"object busy""#
            ));
            let read = send(&card(), answer(status, &headers, &body)).await;
            check(&read, "maybe StillRunning");
            assert_eq!(read.unwrap_err().retry_advice(), advice.map(|_| true));
        }
    }
}

#[tokio::test]
async fn c17_a_success_that_cannot_be_read_is_neither_success_nor_failure() {
    for body in ["<nil>", "", "null", "[]", "{", "{\"id\":\"pi_1\"", "\u{feff}{}"] {
        let read = send(&card(), json(200, body)).await;
        check(&read, "maybe Unreadable");
        let text = read.unwrap_err().to_string();
        for part in ["HTTP 200", "application/json", "req_1"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[tokio::test]
async fn c50_a_refused_amount_is_definitive() {
    let body = error(r#""type":"invalid_request_error","code":"amount_too_small""#);
    let tiny = Operation::charge("order-7001", usd("0.49")).unwrap();
    check(&send(&tiny, json(400, &body)).await, "failed invalid");
}

#[tokio::test]
async fn c51_unknown_payment_methods_are_kept_as_text() {
    let body = intent(
        r#""status":"succeeded","payment_method_types":["card","brand_new_pay"],"latest_charge":{"id":"ch_1",
        "object":"charge","payment_method_details":{"type":"brand_new_pay","brand_new_pay":{"x":1}}}"#,
    );
    let read = send(&card(), json(200, &body)).await;
    check(&read, "succeeded 20.00 USD");
    let outcome = read.unwrap();
    let details = &outcome.evidence().unwrap().details;
    assert_eq!(details.get("payment_method_types"), Some("card,brand_new_pay"));
    assert_eq!(details.get("payment_method_type"), Some("brand_new_pay"));
    assert_eq!(details.get("latest_charge"), Some("ch_1"));
}

#[tokio::test]
async fn c55_a_refund_over_the_rest_is_refused_and_the_rest_is_shown() {
    let refused = json(
        400,
        &error(r#""type":"invalid_request_error","message":"80.00 asked, 70.00 left""#),
    );
    let charge = r#"{"id":"ch_1","object":"charge","amount_captured":10000,"amount_refunded":3000}"#;
    let operation = Operation::refund("r-9", usd("80.00"), on("ch_1")).unwrap();
    let script = Script::new([Ok(refused), Ok(json(200, charge))]);
    let Ok(Outcome::Failed(failed)) = stripe(&script).send(&instruction(&operation)).await else {
        panic!()
    };
    assert_eq!(failed.evidence.message.as_deref(), Some("80.00 asked, 70.00 left"));
    assert_eq!(failed.evidence.details.get("amount_refunded"), Some("3000"));
    let posts = script.seen().iter().filter(|seen| seen.method == Method::Post).count();
    assert_eq!(posts, 1);
}

#[tokio::test]
async fn c56_an_accepted_refund_is_pending_and_one_without_a_status_is_unknown() {
    let refund_with = |status: &str| format!(r#"{{"id":"re_1","object":"refund","amount":2000{status}}}"#);
    check(
        &send(&refund(), json(200, &refund_with(r#","status":"pending""#))).await,
        "pending wait",
    );
    check(
        &send(&refund(), json(200, &refund_with(r#","status":"requires_action""#))).await,
        "pending wait",
    );
    for unclear in [
        "",
        r#","status":null"#,
        r#","status":"brand_new""#,
        r#","status":"succeeded""#,
    ] {
        check(
            &send(&refund(), json(200, &refund_with(unclear))).await,
            "maybe Unreadable",
        );
    }
}

#[tokio::test]
async fn c60_a_capture_that_was_done_is_told_by_the_state_and_the_amount() {
    let refused = |fields: &str| {
        error(&format!(
            r#""type":"invalid_request_error","code":"payment_intent_unexpected_state","payment_intent":{}"#,
            intent(fields)
        ))
    };
    let done = refused(r#""status":"succeeded","amount_received":2000"#);
    check(&send(&capture(), json(400, &done)).await, "succeeded 20.00 USD");
    // Somebody else captured less: the record compares, and makes it a conflict.
    let less = refused(r#""status":"succeeded","amount_received":1500"#);
    check(&send(&capture(), json(400, &less)).await, "succeeded 15.00 USD");
    let operation = capture();
    let outcome = send(&operation, json(400, &less)).await.unwrap();
    let heard = crate::record::Observation::new(crate::record::Source::Answer, NOW, crate::record::Fact::Said(outcome));
    let learned = record(&operation).learn(&heard).record.outcome();
    assert_eq!(learned.as_str(), "conflict");

    let other = refused(r#""status":"succeeded","amount_received":2000,"metadata":{"payonce_capture_key":"00"}"#);
    check(&send(&capture(), json(400, &other)).await, "failed already_done");
    for (fields, expected) in [
        (
            r#""status":"canceled","cancellation_reason":"automatic""#,
            "failed expired",
        ),
        (
            r#""status":"canceled","cancellation_reason":"abandoned""#,
            "failed cancelled",
        ),
        (r#""status":"requires_payment_method""#, "failed invalid"),
        (r#""status":"requires_capture""#, "maybe Duplicate"),
        (r#""status":"succeeded""#, "maybe Duplicate"),
        (r#""status":"brand_new""#, "maybe Duplicate"),
    ] {
        check(&send(&capture(), json(400, &refused(fields))).await, expected);
    }
    let elsewhere = done.replace("pi_1", "pi_2");
    check(&send(&capture(), json(400, &elsewhere)).await, "maybe Duplicate");
}

#[tokio::test]
async fn c64_a_captured_payment_cannot_be_voided_and_a_cancelled_one_is() {
    let refused = |fields: &str| {
        error(&format!(
            r#""type":"invalid_request_error","code":"payment_intent_unexpected_state","payment_intent":{}"#,
            intent(fields)
        ))
    };
    let captured = refused(r#""status":"succeeded","amount_received":2000"#);
    check(&send(&void(), json(400, &captured)).await, "failed settled");
    let cancelled = refused(r#""status":"canceled""#);
    check(&send(&void(), json(400, &cancelled)).await, "succeeded");
    let processing = refused(r#""status":"processing""#);
    check(&send(&void(), json(400, &processing)).await, "maybe Duplicate");
    let bare = error(r#""type":"invalid_request_error","code":"charge_already_refunded""#);
    check(&send(&void(), json(400, &bare)).await, "maybe Duplicate");
    // A page that is not open any more is refused without a code.
    let page = Operation::void("v-1", on("cs_1")).unwrap();
    let body = error(r#""type":"invalid_request_error","message":"only open ones""#);
    check(&send(&page, json(400, &body)).await, "maybe Duplicate");
}

#[tokio::test]
async fn c65_a_key_that_is_echoed_is_scrubbed() {
    let body = error(&format!(
        r#""type":"invalid_request_error","message":"bad key {API_KEY}""#
    ));
    let read = send(&card(), json(401, &body)).await;
    check(&read, "not Credentials");
    let failure = read.unwrap_err();
    assert!(failure.source().is_none());
    for text in [failure.to_string(), format!("{failure:?}"), failure.detail().to_owned()] {
        assert!(!text.contains("TESTONLY") && !text.contains("Bearer"), "{text}");
    }
    let gateway = format!(
        "{:?} {:?}",
        stripe(&Script::new([])),
        Stripe::builder(API_KEY).webhook_secret("whsec_TESTONLY")
    );
    assert!(!gateway.contains("TESTONLY"), "{gateway}");
}

#[tokio::test]
async fn c66_a_client_secret_is_handed_out_and_never_printed() {
    let body = intent(r#""status":"requires_action","client_secret":"pi_1_secret_TESTONLY""#);
    let read = send(&charge(), json(200, &body)).await;
    assert!(!format!("{read:?}").contains("TESTONLY"));
    let Ok(Outcome::Pending(pending)) = read else {
        panic!("{read:?}")
    };
    let NextStep::Confirm { client_secret } = &pending.next else {
        panic!("{pending:?}")
    };
    assert_eq!(client_secret.expose(), "pi_1_secret_TESTONLY");
}

#[tokio::test]
async fn c67_a_card_number_in_an_answer_is_masked() {
    let body = "card 4242 4242 4242 4242 cvc 123 and 4111111111111111";
    let read = send(&card(), answer(400, &[("content-type", "text/html")], body)).await;
    check(&read, "maybe Unreadable");
    let text = format!("{0} {0:?}", read.unwrap_err());
    assert!(!text.contains("4242") && !text.contains("4111"), "{text}");
    let shaped = error(r#""type":"card_error","code":"incorrect_number","message":"no 4111111111111111""#);
    let read = send(&card(), json(402, &shaped)).await;
    assert!(!format!("{read:?}").contains("4111"));
}

#[tokio::test]
async fn c69_retry_after_is_passed_on() {
    let body = error(r#""type":"invalid_request_error","code":"rate_limit""#);
    let two = [("Retry-After", "2"), ("retry-after", "Thu, 01 Jan 2026 00:00:09 GMT")];
    let failure = send(&card(), answer(429, &two, &body)).await.unwrap_err();
    assert_eq!(failure.retry_after(), Some(Duration::from_secs(9)));
    let failure = send(&card(), answer(429, &[("Retry-After", "-5")], &body))
        .await
        .unwrap_err();
    assert_eq!(failure.retry_after(), None);
}

#[tokio::test]
async fn c71_an_answer_from_a_box_in_between_proves_nothing() {
    for operation in [card(), charge(), page(), authorize(), capture(), void(), refund()] {
        for (status, content_type, body) in [
            (403, "text/html", "Access denied"),
            (407, "text/html", "Proxy Authentication Required"),
            (200, "text/html", "<html>Login to WiFi</html>"),
            (200, "application/json", r#"{"ok":true}"#),
            (200, "application/json", r#"{"error":{"type":"api_error"}}"#),
            (451, "text/html", "unavailable"),
            (
                401,
                "application/json",
                r#"{"error":"invalid_grant","error_description":"no"}"#,
            ),
            (402, "text/plain", "pay the hotel"),
            (400, "text/html", "Bad Request"),
            (404, "text/html", "Not Found"),
            (409, "application/json", r#"{"message":"conflict"}"#),
            (307, "text/html", ""),
            (204, "", ""),
        ] {
            let read = send(&operation, answer(status, &[("content-type", content_type)], body)).await;
            check(&read, "maybe Unreadable");
        }
        check(
            &send(&operation, answer(429, &[], "slow down")).await,
            "maybe Throttled",
        );
        check(&send(&operation, answer(503, &[], "")).await, "maybe ServerFault");
    }
}

#[tokio::test]
async fn success_without_an_amount_or_with_another_identity_is_no_success() {
    let succeeded = |fields: &str| format!(r#"{{"object":"payment_intent","status":"succeeded",{fields}}}"#);
    for fields in [
        r#""id":"pi_1""#,
        r#""id":"pi_1","amount":2000"#,
        r#""id":"pi_1","amount":"2000","currency":"usd""#,
        r#""id":"pi_1","amount":2000.5,"currency":"usd""#,
        r#""id":"pi_1","amount":2e3,"currency":"usd""#,
        r#""id":"pi_1","amount":20000000000000000000,"currency":"usd""#,
        r#""id":"ch_1","amount":2000,"currency":"usd""#,
        r#""id":"pi_1/x","amount":2000,"currency":"usd""#,
        r#""amount":2000,"currency":"usd""#,
        r#""id":"pi_1","amount":2000,"currency":"usd","metadata":{"payonce_key":"00000000000000000000000000000000"}"#,
    ] {
        check(&send(&card(), json(200, &succeeded(fields))).await, "maybe Unreadable");
    }
    let ours = format!(r#""id":"pi_1","amount":2000,"currency":"usd","metadata":{{"payonce_key":"{KEY}"}}"#);
    check(
        &send(&card(), json(200, &succeeded(&ours))).await,
        "succeeded 20.00 USD",
    );
    // An amount that the currency cannot hold was not what was asked for.
    for odd in [
        r#""id":"pi_1","amount":550,"currency":"isk""#,
        r#""id":"pi_1","amount":2000,"currency":"zzz""#,
    ] {
        check(&send(&card(), json(200, &succeeded(odd))).await, "conflict amount");
    }
}

#[tokio::test]
async fn another_payments_object_is_no_answer_to_a_follow_up() {
    let body = intent(r#""status":"succeeded","amount_received":2000"#).replace("pi_1", "pi_2");
    check(&send(&capture(), json(200, &body)).await, "maybe Unreadable");
    let body = intent(r#""status":"canceled""#).replace("pi_1", "pi_2");
    check(&send(&void(), json(200, &body)).await, "maybe Unreadable");
    let body = r#"{"id":"re_1","object":"refund","amount":2000,"currency":"usd","status":"succeeded","payment_intent":"pi_2"}"#;
    check(&send(&refund(), json(200, body)).await, "maybe Unreadable");
    check(
        &send(&refund(), json(200, &body.replace("pi_2", "pi_1"))).await,
        "succeeded 20.00 USD",
    );
}

#[tokio::test]
async fn codes_outside_of_the_table_fall_back_to_status_and_type() {
    for (status, fields, expected) in [
        (
            400,
            r#""type":"invalid_request_error","code":"new_next_year""#,
            "failed invalid",
        ),
        (400, r#""type":"card_error","code":"new_next_year""#, "failed declined"),
        (400, r#""type":"api_error""#, "maybe ServerFault"),
        (400, r#""type":"brand_new_error""#, "maybe ServerFault"),
        (402, r#""type":"invalid_request_error""#, "failed declined"),
        (404, r#""type":"invalid_request_error""#, "failed invalid"),
        (
            400,
            r#""type":"invalid_request_error","code":"resource_missing""#,
            "failed invalid",
        ),
        (
            400,
            r#""type":"invalid_request_error","code":"testmode_charges_only""#,
            "not Credentials",
        ),
        (
            400,
            r#""type":"invalid_request_error","code":"token_already_used""#,
            "maybe Duplicate",
        ),
        (
            400,
            r#""type":"invalid_request_error","code":"rate_limit""#,
            "maybe Throttled",
        ),
        (429, r#""type":"invalid_request_error""#, "maybe Throttled"),
        (409, r#""type":"invalid_request_error""#, "maybe StillRunning"),
    ] {
        check(&send(&card(), json(status, &error(fields))).await, expected);
    }
    let gone = error(r#""type":"invalid_request_error","code":"resource_missing","param":"intent""#);
    for operation in [capture(), void(), refund()] {
        check(&send(&operation, json(404, &gone)).await, "failed no_such_payment");
    }
    let expired = error(r#""type":"invalid_request_error","code":"charge_expired_for_capture""#);
    check(&send(&capture(), json(400, &expired)).await, "failed expired");
}

#[tokio::test]
async fn what_the_payer_has_to_do_is_read_from_any_kind_of_action() {
    for (kind, fields, expected) in [
        ("redirect_to_url", r#""url":"https://a.example""#, "redirect"),
        ("alipay_handle_redirect", r#""url":"https://a.example""#, "redirect"),
        (
            "konbini_display_details",
            r#""hosted_voucher_url":"https://a.example","expires_at":1767230000"#,
            "slip",
        ),
        (
            "paynow_display_qr_code",
            r#""data":"0002","hosted_instructions_url":"https://a.example""#,
            "qr",
        ),
        (
            "upi_handle_redirect_or_display_qr_code",
            r#""hosted_instructions_url":"https://a.example","qr_code":{"image_url_svg":"https://b.example"}"#,
            "qr",
        ),
        ("wechat_pay_redirect_to_ios_app", r#""native_url":"weixin://x""#, "app"),
        (
            "display_bank_transfer_instructions",
            r#""hosted_instructions_url":"https://a.example""#,
            "redirect",
        ),
        ("card_await_notification", "", "wait"),
        ("brand_new_action", "", "confirm"),
    ] {
        let action = format!(r#""next_action":{{"type":"{kind}","{kind}":{{{fields}}}}}"#);
        let body = intent(&format!(r#""status":"requires_action","client_secret":"s",{action}"#));
        let read = send(&card(), json(200, &body)).await;
        check(&read, &format!("pending {expected}"));
        let Ok(Outcome::Pending(pending)) = read else { panic!() };
        assert_eq!(pending.expires_at.is_some(), kind.starts_with("konbini"));
    }
}

#[test]
fn settings_are_checked_by_name_and_never_echoed() {
    let built = |builder: super::super::StripeBuilder| match builder.build() {
        Err(super::super::BuildError::Invalid(invalid)) => {
            assert!(!invalid.to_string().contains("TESTONLY"), "{invalid}");
            invalid.field()
        }
        other => panic!("{other:?}"),
    };
    for key in [
        "",
        "pk_test_TESTONLY",
        "whsec_TESTONLY",
        "sk_",
        "sk_test_TESTONLY\n",
        " sk_test_TESTONLY",
    ] {
        assert_eq!(built(Stripe::builder(key)), "secret_key", "{key:?}");
    }
    let good = || Stripe::builder(API_KEY);
    assert_eq!(built(good().base_url("http://api.example")), "base_url");
    assert_eq!(built(good().account("TESTONLY")), "account");
    assert_eq!(built(good().tolerance(Duration::ZERO)), "tolerance");
    // Case C29: an API key given as the signing secret.
    for secret in ["sk_test_TESTONLYcases0001", "pk_test_TESTONLY", "", "whsec_"] {
        assert_eq!(
            built(good().webhook_secret("whsec_good").webhook_secret(secret)),
            "webhook_secret"
        );
    }
    assert!(
        Stripe::builder("rk_live_1")
            .webhook_secret("whsec_TESTONLYcases0001")
            .build()
            .is_ok()
    );
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// JSON near enough to an answer of Stripe's that its every branch is reached.
fn nearly_an_answer() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "\"payment_intent\"",
        "\"refund\"",
        "\"checkout.session\"",
        "\"list\"",
        "\"succeeded\"",
        "\"canceled\"",
        "\"requires_action\"",
        "\"requires_capture\"",
        "\"pi_1\"",
        "\"re_1\"",
        "\"cs_1\"",
        "\"usd\"",
        "\"isk\"",
        "null",
        "true",
        "-1",
        "2000",
        "9223372036854775807",
        "1e99",
        "\"\"",
        "[]",
        "{}",
        "\"card_declined\"",
        "\"payment_intent_unexpected_state\"",
        "\"invalid_request_error\"",
        "\"card_error\"",
        "{\"id\":\"pi_1\"}",
    ]);
    let name = prop::sample::select(vec![
        "id",
        "object",
        "status",
        "amount",
        "amount_received",
        "amount_capturable",
        "currency",
        "type",
        "code",
        "metadata",
        "next_action",
        "last_payment_error",
        "payment_intent",
        "payment_status",
        "latest_charge",
    ]);
    (any::<bool>(), prop::collection::vec((name, word), 0..8)).prop_map(|(error, fields)| {
        let fields: Vec<String> = fields
            .into_iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        let object = format!("{{{}}}", fields.join(","));
        if error {
            format!("{{\"error\":{object}}}")
        } else {
            object
        }
    })
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_or_succeed(body in prop::collection::vec(any::<u8>(), 0..200), status in 100_u16..600) {
        for operation in [card(), page(), capture(), void(), refund()] {
            let read = block_on(send(&operation, Response::new(status, Vec::new(), body.clone())));
            prop_assert!(matches!(&read, Err(failure) if failure.may_have_executed()), "{read:?}");
        }
    }

    #[test]
    fn nothing_that_is_nearly_an_answer_makes_the_reader_panic(body in nearly_an_answer(), status in prop::sample::select(vec![200_u16, 400, 402, 404, 409, 429])) {
        for operation in [card(), page(), authorize(), capture(), void(), refund()] {
            let read = block_on(send(&operation, json(status, &body)));
            if let Ok(Outcome::Succeeded(succeeded)) = read {
                let amount_needed = operation.amount().is_some();
                prop_assert_eq!(succeeded.amount.is_some(), amount_needed, "{}", body);
            }
        }
    }
}
