//! Every sample message, against the class that its manifest gives it.

use super::*;
use crate::outcome::ConflictKind;

struct Sample {
    path: String,
    kind: String,
    key: String,
    signature: String,
    code: String,
    class: String,
}

fn folder() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/twoc2p")
}

fn read(path: &str) -> Vec<u8> {
    let mut bytes = std::fs::read(folder().join(path)).unwrap();
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    bytes
}

fn samples() -> Vec<Sample> {
    let manifest = String::from_utf8(read("manifest.tsv")).unwrap();
    let rows = manifest.lines().skip(1).map(|line| {
        let fields: Vec<_> = line.split('\t').map(str::to_owned).collect();
        Sample {
            path: fields[0].clone(),
            kind: fields[2].clone(),
            key: fields[3].clone(),
            signature: fields[4].clone(),
            code: fields[5].clone(),
            class: fields[6].clone(),
        }
    });
    rows.collect()
}

/// The published demo secret of this name.
fn secret(name: &str) -> String {
    let keys: serde_json::Value = serde_json::from_slice(&read("hs256-demo-keys.json")).unwrap();
    keys[name]["key"].as_str().unwrap().to_owned()
}

fn demo_account(merchant: &str, answers: impl IntoIterator<Item = Result<Response, Failure>>) -> TwoC2p {
    let transport = Scripted {
        answers: Mutex::new(answers.into_iter().collect()),
        sent: Mutex::default(),
    };
    let builder = TwoC2p::builder(merchant, secret(merchant)).transport(Arc::new(transport));
    builder.build().unwrap()
}

/// The body as it would come over HTTP: bare tokens and claims are put into the envelope.
fn body(sample: &Sample) -> Vec<u8> {
    let bytes = read(&sample.path);
    let text = String::from_utf8(bytes.clone()).unwrap();
    if sample.kind.starts_with("JWT") {
        return format!("{{\"payload\":\"{text}\"}}").into_bytes();
    }
    if sample.kind == "claims" {
        let signer = Signer::new(&Secret::from(secret("JT01")));
        return format!("{{\"payload\":\"{}\"}}", signer.sign(&text)).into_bytes();
    }
    bytes
}

fn word(class: codes::Class) -> &'static str {
    use codes::Class;
    match class {
        Class::Success => "success",
        Class::Pending => "pending",
        Class::InProgress => "in_progress",
        Class::Declined => "declined",
        Class::Cancelled => "cancelled",
        Class::Expired => "expired",
        Class::NotFound => "not_found",
        Class::Duplicate => "duplicate",
        Class::InvalidRequest => "invalid_request",
        Class::Auth => "auth",
        Class::GatewayError => "gateway_error",
        Class::Unknown => "unknown",
    }
}

#[test]
fn every_sample_is_looked_at_by_a_test() {
    let known = |sample: &Sample| {
        sample.path.contains("-request.")
            || sample.path.contains("/token-")
            || sample.path.contains("/error-plain-")
            || sample.path.contains("/inquiry-")
            || sample.path.contains("/bad-")
            || sample.path.contains("/dopayment-")
            || sample.path.contains("/txstatus-")
            || sample.path.starts_with("callback/")
    };
    let samples = samples();
    assert_eq!(samples.len(), 50);
    for sample in samples {
        assert!(known(&sample), "{}", sample.path);
        assert!(!read(&sample.path).is_empty());
    }
}

#[test]
fn signatures_are_what_the_manifest_says() {
    let mut seen = 0;
    for sample in samples()
        .iter()
        .filter(|sample| ["valid", "invalid"].contains(&sample.signature.as_str()))
    {
        let name = sample.key.split(' ').next().unwrap();
        let signer = Signer::new(&Secret::from(secret(if name == "-" { "JT01" } else { name })));
        let outer = json::Members::parse(&body(sample)).unwrap();
        let verified = signer.verify(&outer.string("payload").unwrap());
        assert_eq!(verified.is_ok(), sample.signature == "valid", "{}", sample.path);
        seen += 1;
    }
    assert_eq!(seen, 24);
}

#[test]
fn the_printed_requests_are_signed_byte_for_byte_the_same() {
    for (path, name) in [
        ("payment/token-request.doc.jwt", "DOC1F4E"),
        ("payment/token-request.jt04.jwt", "JT04"),
    ] {
        let signer = Signer::new(&Secret::from(secret(name)));
        let token = String::from_utf8(read(path)).unwrap();
        let claims = String::from_utf8(signer.verify(&token).unwrap()).unwrap();
        assert_eq!(signer.sign(&claims), token);
    }
}

#[test]
fn token_answers_have_the_class_of_the_manifest() {
    let signer = Signer::new(&Secret::from(secret("JT01")));
    for sample in samples().iter().filter(|sample| {
        let name = &sample.path;
        name.starts_with("payment/token-") && !name.contains("request")
            || name.contains("/error-")
            || name.contains("/bad-")
    }) {
        let response = Response::new(200, Vec::new(), body(sample));
        let answer = response::token_answer(&response, &signer);
        let class = match &answer {
            Ok(TokenAnswer::Issued {
                payment_token: Some(_),
                page_url: Some(_),
            }) => "success",
            Ok(TokenAnswer::Issued { .. }) => panic!("{}: half a token", sample.path),
            Ok(TokenAnswer::Refused(failed)) if failed.category == FailureCategory::Refused => "auth",
            Ok(TokenAnswer::Refused(_)) => "invalid_request",
            Err(failure) if failure.kind() == FailureKind::Duplicate => "duplicate",
            Err(failure) if failure.kind() == FailureKind::ServerFault => "gateway_error",
            Err(_) => "unknown",
        };
        assert_eq!(class, sample.class, "{}", sample.path);
        if let Err(failure) = answer {
            assert!(failure.may_have_executed());
        }
    }
}

#[tokio::test]
async fn inquiry_answers_have_the_class_of_the_manifest() {
    let mut seen = 0;
    for sample in samples()
        .iter()
        .filter(|sample| sample.path.starts_with("payment/inquiry-") && !sample.path.contains("request"))
    {
        let bytes = body(sample);
        let signer = Signer::new(&Secret::from(secret("JT01")));
        let outer = json::Members::parse(&bytes).unwrap();
        let claims = json::Members::parse(&signer.verify(&outer.string("payload").unwrap()).unwrap()).unwrap();
        let invoice_no = claims.text("invoiceNo").unwrap_or_else(|| "INV1".to_owned());
        let result = demo_account("JT01", [ok(bytes)]).payment_inquiry(&invoice_no).await;
        seen += 1;
        if sample.path.contains("other-merchant") {
            assert_eq!(result.unwrap_err().kind(), FailureKind::Unreadable);
            continue;
        }
        let result = result.unwrap();
        assert_eq!(result.code.as_deref(), Some(sample.code.as_str()), "{}", sample.path);
        if sample.path.contains("amount-mismatch") {
            // The answer is good; that another amount was asked for is for the record to see.
            assert_eq!(result.amount.unwrap().to_string(), "2.00 SGD");
            continue;
        }
        assert_eq!(word(result.class), sample.class, "{}", sample.path);
        match result.conclude(true, Some(200)) {
            Conclusion::Says(Outcome::Conflict(conflict)) => {
                assert!(sample.path.contains("overpaid"), "{}", sample.path);
                assert_eq!(conflict.kind, ConflictKind::Irregular);
            }
            Conclusion::Says(outcome) => assert_eq!(
                outcome.as_str(),
                match sample.class.as_str() {
                    "success" => "succeeded",
                    "pending" | "in_progress" => "pending",
                    _ => "failed",
                },
                "{}",
                sample.path
            ),
            Conclusion::Absent => assert_eq!(sample.class, "not_found", "{}", sample.path),
            Conclusion::Nothing(kind) => panic!("{}: {kind:?}", sample.path),
        }
    }
    assert_eq!(seen, 14);
}

#[test]
fn the_amounts_of_the_samples_are_read_exactly() {
    for (path, expected) in [
        ("payment/inquiry-success-string-amount.constructed.json", "20.00 SGD"),
        ("payment/inquiry-success-padded-amount.constructed.json", "20.00 SGD"),
        ("callback/backend-failed-4081.real43.resigned.json", "93.10 MYR"),
    ] {
        let outer = json::Members::parse(&read(path)).unwrap();
        let signer = Signer::new(&Secret::from(secret("JT01")));
        let claims = signer.verify(&outer.string("payload").unwrap()).unwrap();
        let result = PaymentResult::read(&json::Members::parse(&claims).unwrap());
        assert_eq!(result.amount.unwrap().to_string(), expected);
    }
}

#[test]
fn a_direct_payment_s_answers_have_the_class_of_the_manifest() {
    let signer = Signer::new(&Secret::from(secret("JT01")));
    for sample in samples().iter().filter(|sample| {
        let name = &sample.path;
        name.contains("/dopayment-") && !name.contains("request") || name.contains("/txstatus-")
    }) {
        let answer = response::flow_answer(&Response::new(200, Vec::new(), body(sample)), &signer);
        match answer {
            Ok(pending) => {
                assert_eq!(sample.class, "pending", "{}", sample.path);
                assert!(!matches!(pending.next, NextStep::Wait));
            }
            Err(failure) => {
                assert_eq!(sample.class, "unknown", "{}", sample.path);
                assert_eq!(failure.code(), Some("2000"));
                assert!(failure.may_have_executed());
            }
        }
    }
}

#[test]
fn callbacks_have_the_class_of_the_manifest() {
    for sample in samples()
        .iter()
        .filter(|sample| sample.path.starts_with("callback/backend"))
    {
        let mut bytes = body(sample);
        let merchant = if sample.path.contains("failed-4081") {
            "JT01"
        } else {
            "JT04"
        };
        if sample.kind == "claims" {
            let claims = String::from_utf8(read(&sample.path)).unwrap();
            let token = Signer::new(&Secret::from(secret(merchant))).sign(&claims);
            bytes = format!("{{\"payload\":\"{token}\"}}").into_bytes();
        }
        let raw = RawNotification::new(Vec::new(), bytes, NOW);
        let notification = demo_account(merchant, []).read_notification(&raw);
        if sample.signature == "unverifiable" {
            assert_eq!(notification.unwrap_err(), NotificationError::Signature);
            continue;
        }
        let says = notification.unwrap().says.unwrap();
        let expected = if sample.class == "success" {
            "succeeded"
        } else {
            "failed"
        };
        assert_eq!(says.as_str(), expected, "{}", sample.path);
    }
    let returned = read_browser_return(&read("callback/frontend.form.txt")).unwrap();
    assert_eq!(returned.invoice_no, "080223152322");
    assert_eq!(returned.code.as_deref(), Some("2000"));
    assert_eq!(returned.channel_code.as_deref(), Some("CC"));
    assert_eq!(returned.locale, None);
}
