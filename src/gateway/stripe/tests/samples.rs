//! Every sample of Stripe's objects and exchanges is read as what it stands for.

use super::*;
use serde_json::Value;
use std::path::PathBuf;

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/stripe")
        .join(name)
}

fn sample(folder_name: &str, file: &str) -> Value {
    let text = std::fs::read_to_string(folder(folder_name).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// No sample may be left out of a table.
#[track_caller]
fn all_are_listed(folder_name: &str, listed: &[(&str, &str)]) {
    let mut files: Vec<String> = std::fs::read_dir(folder(folder_name))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut listed: Vec<&str> = listed.iter().map(|(file, _)| *file).collect();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

async fn check(operation: &Operation, folder_name: &str, table: &[(&str, &str)]) {
    for (file, expected) in table {
        let body = sample(folder_name, file).to_string();
        let read = send(operation, json(200, &body)).await;
        assert_eq!(word(&read), *expected, "{folder_name}/{file}: {read:?}");
    }
}

const PAYMENT_INTENTS: [(&str, &str); 12] = [
    ("canceled.json", "failed cancelled"),
    ("canceled_expired.json", "failed expired"),
    ("processing.json", "pending wait"),
    ("requires_action_promptpay_qr.json", "pending qr"),
    ("requires_action_redirect.json", "pending redirect"),
    ("requires_action_use_stripe_sdk.json", "pending confirm"),
    ("requires_capture.json", "pending wait"),
    ("requires_confirmation.json", "pending confirm"),
    ("requires_payment_method_declined.json", "failed declined"),
    ("requires_payment_method_new.json", "pending confirm"),
    ("succeeded.json", "succeeded 20.00 USD"),
    ("succeeded_partial_capture.json", "succeeded 6.00 USD"),
];

#[tokio::test]
async fn payment_intents_for_a_charge() {
    all_are_listed("payment_intent", &PAYMENT_INTENTS);
    check(&charge(), "payment_intent", &PAYMENT_INTENTS).await;
    // Where the request itself confirms, nobody holds a client secret.
    check(
        &card(),
        "payment_intent",
        &[
            ("requires_confirmation.json", "pending wait"),
            ("requires_payment_method_new.json", "pending wait"),
            ("requires_payment_method_declined.json", "failed declined"),
        ],
    )
    .await;
}

#[tokio::test]
async fn payment_intents_for_an_authorization() {
    let table = [
        ("requires_capture.json", "succeeded 20.00 USD"),
        ("succeeded.json", "succeeded 20.00 USD"),
        ("succeeded_partial_capture.json", "succeeded 20.00 USD"),
        ("canceled_expired.json", "failed expired"),
    ];
    check(&authorize(), "payment_intent", &table).await;
}

#[tokio::test]
async fn payment_intents_for_a_capture_and_for_a_void() {
    let id = "pi_3TestVector00000000000001";
    let capture = Operation::capture("c-1", usd("20.00"), on(id)).unwrap();
    let table = [
        ("succeeded.json", "succeeded 20.00 USD"),
        ("succeeded_partial_capture.json", "succeeded 6.00 USD"),
        ("processing.json", "pending wait"),
        ("requires_capture.json", "maybe Unreadable"),
        ("canceled_expired.json", "failed expired"),
    ];
    check(&capture, "payment_intent", &table).await;
    let void = Operation::void("v-1", on(id)).unwrap();
    let table = [
        ("canceled.json", "succeeded"),
        ("succeeded.json", "failed settled"),
        ("requires_capture.json", "maybe Unreadable"),
    ];
    check(&void, "payment_intent", &table).await;
}

#[tokio::test]
async fn refunds() {
    let table = [
        ("canceled.json", "failed cancelled"),
        ("failed.json", "failed declined"),
        ("pending_insufficient_balance.json", "pending wait"),
        ("pending_processing.json", "pending wait"),
        ("requires_action.json", "pending wait"),
        ("succeeded.json", "succeeded 3.00 USD"),
        ("succeeded_reversal.json", "succeeded 3.00 USD"),
    ];
    all_are_listed("refund", &table);
    let refund = Operation::refund("r-1", usd("3.00"), on("pi_3TestVector00000000000001")).unwrap();
    check(&refund, "refund", &table).await;
}

#[tokio::test]
async fn checkout_sessions() {
    let table = [
        ("complete_paid.json", "succeeded 20.00 USD"),
        ("complete_unpaid_delayed_method.json", "pending wait"),
        ("expired.json", "failed expired"),
        ("open.json", "pending redirect"),
    ];
    all_are_listed("checkout_session", &table);
    check(&page(), "checkout_session", &table).await;
    let paid = send(
        &page(),
        json(200, &sample("checkout_session", "complete_paid.json").to_string()),
    )
    .await;
    assert_eq!(
        paid.unwrap().gateway_ref().unwrap().as_str(),
        "pi_3TestVector00000000000001"
    );
    let open = send(&page(), json(200, &sample("checkout_session", "open.json").to_string())).await;
    let Ok(Outcome::Pending(open)) = open else {
        panic!("{open:?}")
    };
    assert_eq!(open.expires_at, Some(Timestamp::from_unix_seconds(1_764_633_600)));
    assert!(open.gateway_ref.unwrap().as_str().starts_with("cs_"));
}

/// Objects of another kind are no answer to any operation.
#[tokio::test]
async fn other_objects_are_never_an_answer() {
    for folder_name in ["charge", "customer", "payment_method", "setup_intent", "list", "event"] {
        for entry in std::fs::read_dir(folder(folder_name)).unwrap() {
            let body = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for operation in [charge(), card(), page(), authorize(), capture(), void(), refund()] {
                let read = send(&operation, json(200, &body)).await;
                assert_eq!(word(&read), "maybe Unreadable", "{folder_name}: {read:?}");
            }
        }
    }
}

/// From the index of the samples, in our words.
const EXCHANGES: [(&str, &str); 30] = [
    ("200_first_execution.json", "succeeded 20.00 USD"),
    ("200_replayed.json", "succeeded 20.00 USD"),
    ("400_amount_too_small.json", "failed invalid"),
    ("400_charge_already_refunded.json", "maybe Duplicate"),
    ("400_idempotency_endpoint_mismatch.json", "maybe Duplicate"),
    ("400_idempotency_params_mismatch.json", "maybe Duplicate"),
    ("400_parameter_missing.json", "failed invalid"),
    ("400_payment_intent_unexpected_state_cancel.json", "failed settled"),
    (
        "400_payment_intent_unexpected_state_capture.json",
        "succeeded 20.00 USD",
    ),
    ("400_payment_intent_unexpected_state_confirm.json", "maybe Duplicate"),
    ("400_refund_greater_than_unrefunded.json", "failed invalid"),
    ("401_invalid_api_key.json", "not Credentials"),
    ("402_authentication_required.json", "failed authentication_required"),
    ("402_card_declined.json", "failed declined"),
    ("402_generic_decline.json", "failed declined"),
    ("402_processing_error.json", "failed declined"),
    ("403_permission.json", "not Credentials"),
    ("404_resource_missing.json", "failed no_such_payment"),
    ("409_idempotency_key_in_use.json", "maybe StillRunning"),
    (
        "409_idempotency_key_in_use_type_idempotency_error.json",
        "maybe StillRunning",
    ),
    ("424_external_dependency.json", "maybe ServerFault"),
    ("429_lock_timeout.json", "maybe StillRunning"),
    ("429_rate_limit_endpoint-concurrency.json", "not Throttled"),
    ("429_rate_limit_endpoint-rate.json", "not Throttled"),
    ("429_rate_limit_global-concurrency.json", "not Throttled"),
    ("429_rate_limit_global-rate.json", "not Throttled"),
    ("429_rate_limit_resource-specific.json", "not Throttled"),
    ("500_stored_api_error.json", "maybe ServerFault"),
    ("502_html_gateway.json", "maybe ServerFault"),
    ("503_unavailable.json", "maybe ServerFault"),
];

/// The operation that would have made the request of an exchange.
fn operation_for(path: &str) -> Operation {
    let id = path.split('/').nth(3).unwrap_or("pi_1");
    if path.ends_with("/capture") {
        Operation::capture("c-1", usd("20.00"), on(id)).unwrap()
    } else if path.ends_with("/cancel") {
        Operation::void("v-1", on(id)).unwrap()
    } else if path.ends_with("/refunds") {
        Operation::refund("r-1", usd("20.00"), on("pi_1")).unwrap()
    } else if path.matches('/').count() > 2 && !path.ends_with("/confirm") {
        Operation::void("v-1", on(id)).unwrap()
    } else {
        card()
    }
}

#[tokio::test]
async fn exchanges() {
    all_are_listed("http", &EXCHANGES);
    for (file, expected) in EXCHANGES {
        let exchange = sample("http", file);
        let response = &exchange["response"];
        let status = response["status"]
            .as_u64()
            .and_then(|status| u16::try_from(status).ok())
            .unwrap();
        let headers = response["headers"].as_object().unwrap();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let body = &response["body"];
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let operation = operation_for(exchange["request"]["path"].as_str().unwrap());
        let script = Script::new([Ok(answer(status, &headers, &body))]);
        let read = stripe(&script).send(&instruction(&operation)).await;
        assert_eq!(word(&read), expected, "{file}: {read:?}");
        let should_retry = headers.iter().find(|(name, _)| *name == "Stripe-Should-Retry");
        let request_id = headers
            .iter()
            .find(|(name, _)| *name == "Request-Id")
            .map(|(_, id)| *id);
        match read {
            Ok(outcome) => {
                let evidence = outcome.evidence().unwrap();
                assert_eq!(evidence.http_status, Some(status));
                assert_eq!(evidence.request_id.as_deref(), request_id, "{file}");
                assert_eq!(evidence.replayed, file == "200_replayed.json");
            }
            Err(failure) => {
                assert_eq!(failure.http_status(), Some(status));
                assert_eq!(failure.request_id(), request_id, "{file}");
                assert_eq!(
                    failure.retry_advice(),
                    should_retry.map(|(_, value)| *value == "true"),
                    "{file}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_decline_keeps_the_reason_the_advice_and_the_payment_that_exists() {
    let exchange = sample("http", "402_card_declined.json");
    let read = send(&card(), json(402, &exchange["response"]["body"].to_string())).await;
    let Ok(Outcome::Failed(failed)) = read else {
        panic!("{read:?}")
    };
    assert_eq!(failed.decline_code.as_deref(), Some("insufficient_funds"));
    assert_eq!(failed.advice.as_deref(), Some("try_again_later"));
    assert_eq!(failed.gateway_ref.unwrap().as_str(), "pi_3TestVector00000000000001");
    assert_eq!(failed.evidence.code.as_deref(), Some("card_declined"));
    assert_eq!(failed.evidence.details.get("network_decline_code"), Some("51"));
    assert!(!failed.payer_may_retry);
}
