//! What is sent.

use super::*;
use crate::clock::Timestamp;
use std::collections::HashMap;

#[tokio::test]
async fn a_card_charge_is_one_post_with_the_key_and_nothing_that_was_not_asked_for() {
    let seen = sent(&card()).await;
    assert_eq!(seen.method, Method::Post);
    assert_eq!(seen.url, "https://api.stripe.com/v1/payment_intents");
    assert_eq!(
        seen.body,
        format!(
            "amount=2000&currency=usd&payment_method=pm_1&confirm=true&payment_method_types[0]=card\
             &metadata[payonce_key]={KEY}&metadata[payonce_reference]=order-7001"
        )
    );
    for (name, value) in [
        ("Idempotency-Key", KEY),
        ("Authorization", "Bearer sk_test_TESTONLYcases0001"),
        ("Stripe-Version", "2026-09-30.endive"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ] {
        assert_eq!(seen.header(name), Some(value));
    }
    assert_eq!(seen.header("Stripe-Account"), None);
}

#[tokio::test]
async fn a_charge_without_options_creates_an_unconfirmed_payment() {
    let seen = sent(&charge()).await;
    assert_eq!(
        seen.body,
        format!("amount=2000&currency=usd&metadata[payonce_key]={KEY}&metadata[payonce_reference]=order-7001")
    );
}

#[tokio::test]
async fn a_hosted_page_carries_the_marks_on_the_page_and_on_the_payment() {
    let operation = Operation::authorize("order-7001", usd("20.00"))
        .unwrap()
        .description("Two tickets")
        .expires_at(Timestamp::from_unix_seconds(1_767_230_000))
        .with(StripeOptions::hosted_page(
            "https://shop.example/ok?s={CHECKOUT_SESSION_ID}",
        ));
    let seen = sent(&operation).await;
    assert_eq!(seen.path(), "/v1/checkout/sessions");
    let key = key(&operation);
    let expected = [
        ("mode", "payment"),
        ("line_items[0][price_data][currency]", "usd"),
        ("line_items[0][price_data][unit_amount]", "2000"),
        ("line_items[0][price_data][product_data][name]", "Two tickets"),
        ("line_items[0][quantity]", "1"),
        ("success_url", "https://shop.example/ok?s={CHECKOUT_SESSION_ID}"),
        ("expires_at", "1767230000"),
        ("payment_intent_data[capture_method]", "manual"),
        ("payment_intent_data[description]", "Two tickets"),
        ("payment_intent_data[metadata][payonce_key]", &key),
        ("payment_intent_data[metadata][payonce_reference]", "order-7001"),
        ("metadata[payonce_key]", &key),
        ("metadata[payonce_reference]", "order-7001"),
    ];
    let pairs = seen.pairs();
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(pairs, expected);
}

#[tokio::test]
async fn a_page_closes_when_the_record_says_also_when_a_retry_opens_it_later() {
    let operation = page();
    let seen = sent(&operation).await;
    let closes = record(&operation).payable_until().unwrap();
    assert_eq!(seen.pair("expires_at"), Some(closes.unix_seconds().to_string()));
    assert!(closes.since(NOW) < Duration::from_secs(24 * 60 * 60));
}

#[tokio::test]
async fn follow_ups_act_on_the_payment_by_its_id() {
    let seen = sent(&capture().metadata("a", "b")).await;
    assert_eq!(seen.path(), "/v1/payment_intents/pi_1/capture");
    let pairs = [
        ("amount_to_capture", "2000"),
        ("metadata[a]", "b"),
        ("metadata[payonce_capture_key]", &key(&capture())),
        ("metadata[payonce_capture_reference]", "order-7001/capture"),
    ];
    assert_eq!(
        seen.pairs(),
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );

    let bare = sent(&capture().with(StripeOptions::follow_up().unmarked_capture())).await;
    assert_eq!(bare.body, "amount_to_capture=2000");

    let seen = sent(&void()).await;
    assert_eq!(
        (seen.path(), seen.body.as_str()),
        ("/v1/payment_intents/pi_1/cancel", "")
    );
    let seen = sent(&void().with(StripeOptions::follow_up().cancellation_reason("duplicate"))).await;
    assert_eq!(seen.body, "cancellation_reason=duplicate");
    let seen = sent(&Operation::void("v-1", on("cs_test_1")).unwrap()).await;
    assert_eq!(
        (seen.path(), seen.body.as_str()),
        ("/v1/checkout/sessions/cs_test_1/expire", "")
    );

    let seen = sent(&refund()).await;
    assert_eq!(seen.path(), "/v1/refunds");
    let marks = format!(
        "metadata[payonce_key]={}&metadata[payonce_reference]=order-7001%2Frefund-1",
        key(&refund())
    );
    assert_eq!(seen.body, format!("payment_intent=pi_1&amount=2000&{marks}"));
    let by_charge = Operation::refund("order-7001/refund-1", usd("20.00"), on("ch_1")).unwrap();
    let seen = sent(&by_charge.with(StripeOptions::follow_up().refund_reason("fraudulent"))).await;
    assert_eq!(seen.body, format!("charge=ch_1&amount=2000&reason=fraudulent&{marks}"));
}

#[tokio::test]
async fn what_was_asked_for_is_sent() {
    let options = StripeOptions::payment_method("pm_1")
        .customer("cus_1")
        .redirects(false)
        .return_url("https://shop.example/back?a=b")
        .off_session()
        .error_on_requires_action()
        .setup_future_usage("off_session")
        .statement_descriptor_suffix("ORDER 7001");
    let seen = sent(&authorize().description("Two tickets").with(options)).await;
    for (name, value) in [
        ("customer", "cus_1"),
        ("automatic_payment_methods[enabled]", "true"),
        ("automatic_payment_methods[allow_redirects]", "never"),
        ("return_url", "https://shop.example/back?a=b"),
        ("off_session", "true"),
        ("error_on_requires_action", "true"),
        ("setup_future_usage", "off_session"),
        ("statement_descriptor_suffix", "ORDER 7001"),
        ("capture_method", "manual"),
        ("description", "Two tickets"),
    ] {
        assert_eq!(seen.pair(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(seen.pair("payment_method_types[0]"), None);
}

#[tokio::test]
async fn a_connected_account_and_another_address_are_used() {
    let script = Script::new([]);
    let transport: Arc<dyn Transport> = Arc::<Script>::clone(&script);
    let stripe = Stripe::builder(API_KEY)
        .account("acct_1")
        .base_url("http://127.0.0.1:12111/")
        .transport(transport)
        .build()
        .unwrap();
    let _ = stripe.send(&instruction(&charge())).await;
    let seen = script.seen();
    assert_eq!(seen[0].url, "http://127.0.0.1:12111/v1/payment_intents");
    assert_eq!(seen[0].header("Stripe-Account"), Some("acct_1"));
}

#[tokio::test]
async fn c01_each_attempt_has_the_same_key_and_the_same_bytes() {
    let lost = || Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time"));
    let replayed = answer(
        200,
        &[("content-type", "application/json"), ("Idempotent-Replayed", "true")],
        r#"{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"succeeded","metadata":{"op":"order-7001"}}"#,
    );
    let script = Script::new([lost(), Ok(replayed)]);
    let (stripe, operation) = (stripe(&script), card());
    let first = record(&operation);
    let instruction = |record: &Record| {
        record
            .instruction(&Arc::new(operation.clone()), Duration::from_secs(15))
            .unwrap()
    };
    let failure = stripe.send(&instruction(&first)).await.unwrap_err();
    assert!(failure.may_have_executed());
    // The second attempt is made later, by another process.
    let later = NOW.after(Duration::from_secs(3600));
    let second = first.send_again(later, Lease::new("other", later), None);
    let outcome = stripe.send(&instruction(&second)).await.unwrap();
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    assert!(outcome.evidence().unwrap().replayed);
    assert_eq!(word(&Ok(outcome)), "succeeded 20.00 USD");
    let seen = script.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn c05_the_order_of_a_map_changes_nothing() {
    let mut bodies = Vec::new();
    for _ in 0..200 {
        // Each HashMap has its own random seed.
        let map: HashMap<&str, &str> = [("b", "2"), ("a", "1"), ("c", "3")].into_iter().collect();
        let operation = map
            .into_iter()
            .fold(card(), |operation, (name, value)| operation.metadata(name, value));
        bodies.push((sent(&operation).await.body, operation.fingerprint()));
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].0.contains("metadata[a]=1&metadata[b]=2&metadata[c]=3"));
}

#[tokio::test]
async fn c06_metadata_is_in_the_order_of_its_bytes_whatever_the_locale() {
    let names = ["z", "ä", "a", "Z", "_", "A1", "a-b"];
    let operation = names
        .into_iter()
        .fold(charge(), |operation, name| operation.metadata(name, "1"));
    let sent = sent(&operation).await.pairs();
    let order: Vec<&str> = sent
        .iter()
        .filter_map(|(name, value)| {
            (value == "1")
                .then(|| name.strip_prefix("metadata[")?.strip_suffix(']'))
                .flatten()
        })
        .collect();
    assert_eq!(order, ["A1", "Z", "_", "a", "a-b", "z", "ä"]);
}

#[tokio::test]
async fn c08_a_new_attempt_has_a_new_key() {
    let first = sent(&card()).await;
    let second = charge().with(StripeOptions::payment_method("pm_2"));
    assert_ne!(
        card().fingerprint(),
        second.fingerprint(),
        "so (i) is refused before it is sent"
    );
    let second = sent(&second.attempt(std::num::NonZeroU32::new(2).unwrap())).await;
    assert_ne!(first.header("Idempotency-Key"), second.header("Idempotency-Key"));
}

#[tokio::test]
async fn c10_the_key_of_a_refund_does_not_depend_on_what_was_refunded() {
    let refund = || Operation::refund("r-1", usd("10.00"), on("ch_1")).unwrap();
    assert_eq!(sent(&refund()).await, sent(&refund()).await);
}

#[tokio::test]
async fn c45_c46_c49_amounts_on_the_wire() {
    for (text, code, wire) in [
        ("500", "JPY", "500"),
        ("2000", "KRW", "2000"),
        ("150000", "VND", "150000"),
        ("7", "CLP", "7"),
        ("10000", "XAF", "10000"),
        ("35.200", "KWD", "35200"),
        ("18.600", "KWD", "18600"),
        ("5", "ISK", "500"),
        ("5.00", "MGA", "5"),
        ("10038.00", "USD", "1003800"),
        ("999999.99", "USD", "99999999"),
        ("999999999.99", "USD", "99999999999"),
        ("0.49", "USD", "49"),
    ] {
        let amount = Money::parse(text, Currency::parse(code).unwrap()).unwrap();
        let seen = sent(&Operation::charge("order-7001", amount).unwrap()).await;
        assert_eq!(seen.pair("amount").as_deref(), Some(wire), "{text} {code}");
        assert_eq!(seen.pair("currency"), Some(code.to_ascii_lowercase()));
        let page = StripeOptions::hosted_page("https://shop.example/ok");
        let seen = sent(&Operation::charge("order-7001", amount).unwrap().with(page)).await;
        assert_eq!(
            seen.pair("line_items[0][price_data][unit_amount]").as_deref(),
            Some(wire)
        );
        let seen = sent(&Operation::refund("r-1", amount, on("pi_1")).unwrap()).await;
        assert_eq!(seen.pair("amount").as_deref(), Some(wire));
        let seen = sent(&Operation::capture("c-1", amount, on("pi_1")).unwrap()).await;
        assert_eq!(seen.pair("amount_to_capture").as_deref(), Some(wire));
    }
}

#[tokio::test]
async fn a_target_that_the_journal_resolved_to_something_unusable_is_not_sent() {
    let operation = refund();
    let mut record = record(&operation);
    for target in [None, Some("cs_test_1"), Some("pi_1/../../customers")] {
        record.target = Some(PaymentTarget {
            gateway_ref: target.map(GatewayRef::new),
            wire_identity: None,
            amount: None,
        });
        let script = Script::new([]);
        let instruction = record
            .instruction(&Arc::new(operation.clone()), Duration::from_secs(15))
            .unwrap();
        let failure = stripe(&script).send(&instruction).await.unwrap_err();
        assert!(!failure.may_have_executed(), "{failure:?}");
        assert!(script.seen().is_empty());
    }
}
