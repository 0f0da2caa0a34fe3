//! Notifications from Stripe: whom they are from, whom they are about, and what they say.

use aws_lc_rs::hmac;
use base64::Engine as _;
use payonce::clock::Timestamp;
use payonce::gateway::stripe::Stripe;
use payonce::gateway::{About, Gateway, Notification, NotificationError, RawNotification};
use payonce::operation::{GatewayRef, OperationKey};
use payonce::outcome::{FailureCategory, Outcome};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

pub(crate) const SECRET: &str = "whsec_TESTONLYcases0001";
const OLDER_SECRET: &str = "whsec_TESTONLYcases0000";
const NOW: i64 = 1_767_225_600;
const E1: &str = r#"{"id":"evt_1","object":"event","created":1767225600,"livemode":false,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"succeeded","metadata":{"op":"order-7001"}}}}"#;
/// Over [`E1`] at [`NOW`] with [`SECRET`].
const V1: &str = "61b898600d56c0ac0b11f2126b3fde66001bfab6650d4bcd00afa0c51cf2f3b7";
const KEY: &str = "402f04607e0a5d329f51fdc342460021";
const OTHER_KEY: &str = "e130cebe37775561a1877ef4bbf5840b";

/// A header value for `body`, as Stripe would sign it with [`SECRET`].
pub(crate) fn sign(body: &[u8], stamp: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, &[stamp.to_string().as_bytes(), b".", body].concat());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={stamp},v1={hex}")
}

/// Built once: the default transport reads the machine's certificates.
fn stripe() -> &'static Stripe {
    static STRIPE: LazyLock<Stripe> = LazyLock::new(|| {
        Stripe::builder("sk_test_TESTONLYcases0001")
            .webhook_secret(OLDER_SECRET)
            .webhook_secret(SECRET)
            .build()
            .unwrap()
    });
    &STRIPE
}

fn raw(headers: &[(&str, &str)], body: &[u8]) -> RawNotification {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    RawNotification::new(headers.collect(), body.to_vec(), Timestamp::from_unix_seconds(NOW))
}

fn deliver(header: &str, body: &[u8]) -> Result<Notification, NotificationError> {
    stripe().read_notification(&raw(&[("Stripe-Signature", header)], body))
}

/// A signed event with this content.
fn event(name: &str, fields: &str, object: &str) -> Notification {
    let body = format!(r#"{{"id":"evt_1","object":"event","type":"{name}"{fields},"data":{{"object":{object}}}}}"#);
    deliver(&sign(body.as_bytes(), NOW), body.as_bytes()).unwrap()
}

fn about_key(key: &str) -> About {
    About::Key(OperationKey::parse(key).unwrap())
}

fn about_id(id: &str) -> About {
    About::GatewayRef(GatewayRef::new(id))
}

fn says(notification: &Notification) -> &'static str {
    notification.says.as_ref().map_or("nothing", Outcome::as_str)
}

fn sample(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/stripe/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[track_caller]
fn refused(header: &str, expected: &NotificationError) {
    match deliver(header, E1.as_bytes()) {
        Err(error) => {
            let same = std::mem::discriminant(&error) == std::mem::discriminant(expected);
            assert!(same, "{header}: {error:?}");
        }
        Ok(_) => panic!("accepted: {header}"),
    }
}

#[test]
fn c25_only_the_raw_body_is_verified() {
    let header = "t=1767225600,v1=24d91878ec66967a4dd8a409f921a1e591a06867017ad36ee908ca378b0d4404";
    let body = sample("webhook_pretty_lf.json");
    assert_eq!(deliver(header, &body).unwrap().event_id, "evt_1");
    let value: Value = serde_json::from_slice(&body).unwrap();
    let compact = value.to_string().into_bytes();
    let longer = [body.as_slice(), b"\n"].concat();
    for other in [compact, longer] {
        let error = deliver(header, &other).unwrap_err();
        assert_eq!(error, NotificationError::Signature);
        assert!(error.to_string().contains("raw"));
    }
}

#[test]
fn c26_spaces_and_split_headers_are_read() {
    for header in [format!("t={NOW}, v1={V1}, v0=abc"), format!("  t={NOW} ,\tv1={V1}  ")] {
        assert!(deliver(&header, E1.as_bytes()).is_ok(), "{header}");
    }
    let (stamp, signature) = (format!("t={NOW}"), format!("v1={V1}"));
    let split = [
        ("Stripe-Signature", stamp.as_str()),
        ("Stripe-Signature", signature.as_str()),
    ];
    assert!(stripe().read_notification(&raw(&split, E1.as_bytes())).is_ok());
}

#[test]
fn c27_only_v1_counts() {
    for scheme in ["v0", "v2", "V1", "v11", "v1 "] {
        refused(&format!("t={NOW},{scheme}={V1}"), &NotificationError::Signature);
    }
    refused(&format!("t={NOW}"), &NotificationError::Signature);
    refused(
        &format!("t={NOW},v1={}", V1.to_uppercase()),
        &NotificationError::Signature,
    );
    refused(&format!("t={NOW},v1={}", &V1[..62]), &NotificationError::Signature);
    assert!(deliver(&format!("t={NOW},v1={},v1={V1}", "0".repeat(64)), E1.as_bytes()).is_ok());
}

#[test]
fn c28_the_time_stamp_is_held_to_the_tolerance_in_both_directions() {
    for header in [
        "t=1767225300,v1=f363e83d02e5c88d678c6a9305f5bd8f939735bcfb83633d2811925b69543f0a",
        "t=1767225900,v1=44aaef68b6c13ec5943adfe1b9831a2dc2beb7130415e6b4fff6669af7ee1ded",
    ] {
        assert!(deliver(header, E1.as_bytes()).is_ok(), "{header}");
    }
    for header in [
        "t=1767225299,v1=c1cfe6611914043c47a909cc2688095ceb7c476ce70beac3e113db2487bf2c3e",
        "t=1767225901,v1=a7b445311e5b29e05547ce67d48e530a2c9ee9cfefa8711709288b7b302637f5",
    ] {
        refused(header, &NotificationError::Stale);
    }
    refused(
        "t=1767225600,v1=c1cfe6611914043c47a909cc2688095ceb7c476ce70beac3e113db2487bf2c3e",
        &NotificationError::Signature,
    );
}

#[test]
fn c29_without_a_secret_nothing_is_authentic() {
    let stripe = Stripe::builder("sk_test_TESTONLYcases0001").build().unwrap();
    let header = format!("t={NOW},v1={V1}");
    let raw = raw(&[("Stripe-Signature", header.as_str())], E1.as_bytes());
    assert_eq!(
        stripe.read_notification(&raw).unwrap_err(),
        NotificationError::Signature
    );
}

#[test]
fn c30_the_name_of_the_header_has_no_case_and_an_encoded_body_is_not_guessed() {
    let header = format!("t={NOW},v1={V1}");
    for name in ["Stripe-Signature", "stripe-signature", "STRIPE-SIGNATURE"] {
        let notification = stripe()
            .read_notification(&raw(&[(name, header.as_str())], E1.as_bytes()))
            .unwrap();
        assert_eq!(says(&notification), "succeeded");
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(E1);
    assert_eq!(
        deliver(&header, encoded.as_bytes()).unwrap_err(),
        NotificationError::Signature
    );
}

#[test]
fn c31_malformed_headers_are_refused_by_type() {
    let malformed = NotificationError::Malformed(String::new());
    for header in [
        String::new(),
        "t=".to_owned(),
        format!("v1={V1}"),
        "=,=,=".to_owned(),
        "v1=a,".repeat(14_000),
        format!("t={NOW},v1={V1}{}", ",v0=a".repeat(14_000)),
        format!("t={NOW}{}", format!(",v1={V1}").repeat(17)),
        format!("t=1767225299,t={NOW},v1=c1cfe6611914043c47a909cc2688095ceb7c476ce70beac3e113db2487bf2c3e"),
        format!("t={NOW},t=1767225299,v1=c1cfe6611914043c47a909cc2688095ceb7c476ce70beac3e113db2487bf2c3e"),
        format!("t={NOW},t={NOW},v1={V1}"),
    ] {
        refused(&header, &malformed);
    }
    for stamp in [
        "abc",
        "NaN",
        "-1",
        "1e9",
        "99999999999999999999",
        "+1767225600",
        "1767225600.0",
        "１",
    ] {
        refused(&format!("t={stamp},v1={V1}"), &malformed);
    }
    let missing = stripe().read_notification(&raw(&[], E1.as_bytes()));
    assert!(matches!(missing, Err(NotificationError::Malformed(_))), "{missing:?}");
}

/// 29 headers, with the verdicts of Stripe's own libraries for Python and Node. Ours differs where we choose to be
/// stricter: a time stamp an hour in the future is stale, a tolerance of zero cannot be set, and an empty body is no
/// event (the two libraries disagree about it themselves).
#[test]
fn signatures_are_judged_as_by_stripes_own_libraries() {
    let vectors: Value = serde_json::from_slice(&sample("webhook_signatures.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 29);
    for case in cases {
        let text = |name: &str| case[name].as_str().unwrap();
        let tolerance = case["tolerance_s"].as_u64().unwrap();
        let builder = Stripe::builder("sk_test_vector").webhook_secret(text("secret"));
        let built = builder.tolerance(Duration::from_secs(tolerance)).build();
        if text("name") == "valid_old_tolerance_0_disables_check" {
            assert!(built.is_err());
            continue;
        }
        let body = base64::engine::general_purpose::STANDARD
            .decode(text("payload_base64"))
            .unwrap();
        let headers = vec![("Stripe-Signature".to_owned(), text("header").to_owned())];
        let now = Timestamp::from_unix_seconds(case["now_unix"].as_i64().unwrap());
        let read = built
            .unwrap()
            .read_notification(&RawNotification::new(headers, body, now));
        match text("name") {
            "future_timestamp_1h" => assert_eq!(read.unwrap_err(), NotificationError::Stale),
            "valid_empty_body" => assert!(matches!(read, Err(NotificationError::Malformed(_)))),
            name => {
                assert_eq!(text("official_python"), text("official_node"), "{name}");
                assert_eq!(read.is_ok(), text("official_python") == "ok", "{name}: {read:?}");
            }
        }
    }
}

#[test]
fn events_say_what_their_objects_say() {
    let charge_id = "pi_3TestVector00000000000001";
    for (file, expected, ids) in [
        ("charge.refunded", "nothing", vec![]),
        ("payment_intent.canceled", "failed", vec![charge_id]),
        ("payment_intent.created", "pending", vec![charge_id]),
        ("payment_intent.payment_failed", "failed", vec![charge_id]),
        ("payment_intent.succeeded", "succeeded", vec![charge_id]),
        ("refund.failed", "failed", vec!["re_3TestVector00000000000001"]),
        ("refund.updated", "succeeded", vec!["re_3TestVector00000000000001"]),
        ("thin_v2_event_notification", "nothing", vec![]),
    ] {
        let body = sample(&format!("event/{file}.json"));
        let notification = deliver(&sign(&body, NOW), &body).unwrap();
        assert_eq!(says(&notification), expected, "{file}");
        let ids: Vec<About> = ids.into_iter().map(about_id).collect();
        assert_eq!(notification.about, ids, "{file}");
        assert!(!notification.event_id.is_empty() && !notification.name.is_empty());
        assert!(!format!("{notification:?}").contains("_secret_Test"));
    }
}

fn intent(fields: &str) -> String {
    format!(r#"{{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd",{fields}}}"#)
}

fn marked(key: &str) -> String {
    format!(r#""metadata":{{"payonce_key":"{key}"}}"#)
}

#[test]
fn an_event_is_about_the_operation_that_marked_the_object() {
    let paid = intent(&format!(r#""status":"succeeded",{}"#, marked(KEY)));
    let notification = event("payment_intent.succeeded", "", &paid);
    assert_eq!(notification.about, [about_key(KEY), about_id("pi_1")]);
    assert_eq!(says(&notification), "succeeded");

    let refunded = format!(
        r#"{{"id":"re_1","status":"failed","failure_reason":"expired_or_canceled_card",{}}}"#,
        marked(KEY)
    );
    let notification = event("refund.failed", "", &refunded);
    assert_eq!(notification.about, [about_key(KEY), about_id("re_1")]);
    let Some(Outcome::Failed(failed)) = notification.says else {
        panic!()
    };
    assert_eq!(failed.decline_code.as_deref(), Some("expired_or_canceled_card"));

    let session = format!(
        r#"{{"id":"cs_1","object":"checkout.session","status":"complete","payment_status":"unpaid","payment_intent":"pi_1",{}}}"#,
        marked(KEY)
    );
    let notification = event("checkout.session.completed", "", &session);
    assert_eq!(notification.about, [about_key(KEY), about_id("pi_1"), about_id("cs_1")]);
    assert_eq!(says(&notification), "pending");
    let notification = event("checkout.session.async_payment_failed", "", &session);
    let Some(Outcome::Failed(failed)) = notification.says else {
        panic!()
    };
    assert_eq!(failed.category, FailureCategory::Declined);
    assert!(!failed.payer_may_retry);
}

#[test]
fn an_event_caused_by_a_follow_up_is_about_that() {
    let capture_mark = format!(r#""metadata":{{"payonce_key":"{KEY}","payonce_capture_key":"{OTHER_KEY}"}}"#);
    let request = |key: &str| format!(r#","request":{{"id":"req_1","idempotency_key":"{key}"}}"#);
    let captured = intent(&format!(
        r#""status":"succeeded","amount_received":600,"capture_method":"manual",{capture_mark}"#
    ));
    let notification = event("payment_intent.succeeded", &request(OTHER_KEY), &captured);
    assert_eq!(notification.about, [about_key(OTHER_KEY)]);
    let Some(Outcome::Succeeded(succeeded)) = notification.says else {
        panic!()
    };
    assert_eq!(
        succeeded.amount.unwrap().minor(),
        600,
        "what was captured, not what was authorized"
    );

    // A void leaves no mark: only the key of the request tells, and the gateway is to be asked.
    let voided = intent(&format!(
        r#""status":"canceled","capture_method":"manual",{}"#,
        marked(KEY)
    ));
    let notification = event("payment_intent.canceled", &request(OTHER_KEY), &voided);
    assert_eq!(notification.about, [about_key(OTHER_KEY), about_key(KEY)]);
    assert_eq!(says(&notification), "nothing");

    let held = intent(&format!(
        r#""status":"requires_capture","amount_capturable":2000,"capture_method":"manual",{}"#,
        marked(KEY)
    ));
    let notification = event("payment_intent.amount_capturable_updated", &request(KEY), &held);
    assert_eq!(notification.about, [about_key(KEY), about_id("pi_1")]);
    assert_eq!(says(&notification), "succeeded");

    let refund = event(
        "charge.refunded",
        &request(OTHER_KEY),
        r#"{"id":"ch_1","object":"charge"}"#,
    );
    assert_eq!(
        (refund.about.as_slice(), says(&refund)),
        (&[about_key(OTHER_KEY)][..], "nothing")
    );
}

#[test]
fn unknown_events_say_nothing_and_are_no_error() {
    for (name, object) in [
        ("brand.new.event", "{}"),
        ("payment_intent.succeeded", "null"),
        (
            "payment_intent.succeeded",
            r#"{"id":"pi_1","object":"payment_intent","status":"brand_new"}"#,
        ),
        (
            "payment_intent.succeeded",
            r#"{"id":"ch_1","object":"charge","status":"succeeded"}"#,
        ),
        ("refund.updated", "[1]"),
        ("checkout.session.completed", "7"),
        ("", "{}"),
    ] {
        assert_eq!(says(&event(name, "", object)), "nothing", "{name} {object}");
    }
}

#[test]
fn another_account_or_mode_is_another_merchant() {
    let paid = intent(r#""status":"succeeded""#);
    for fields in [r#","livemode":true"#, r#","account":"acct_other""#] {
        let body = format!(r#"{{"id":"evt_1","type":"payment_intent.succeeded"{fields},"data":{{"object":{paid}}}}}"#);
        let read = deliver(&sign(body.as_bytes(), NOW), body.as_bytes());
        assert_eq!(read.unwrap_err(), NotificationError::OtherMerchant);
    }
    let ours = Stripe::builder("sk_live_1")
        .account("acct_other")
        .webhook_secret(SECRET)
        .build()
        .unwrap();
    let body = r#"{"id":"evt_1","type":"x","livemode":true,"account":"acct_other"}"#;
    let header = sign(body.as_bytes(), NOW);
    assert!(
        ours.read_notification(&raw(&[("stripe-signature", header.as_str())], body.as_bytes()))
            .is_ok()
    );
}

proptest! {
    #[test]
    fn no_header_and_no_body_is_accepted_or_panics(header in ".{0,120}", body in prop::collection::vec(any::<u8>(), 0..80)) {
        prop_assert!(deliver(&header, &body).is_err());
    }

    #[test]
    fn nothing_that_is_nearly_a_header_is_accepted(parts in prop::collection::vec(
        prop::sample::select(vec!["t=1767225600", "t=", "v1=", "v1=61b8", "v0=61b8", "=", "t", "v1=é", " ", "t=9999999999999"]), 0..8)) {
        prop_assert!(deliver(&parts.join(","), E1.as_bytes()).is_err());
    }

    #[test]
    fn no_signed_body_makes_the_reader_panic(body in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = deliver(&sign(&body, NOW), &body);
    }

    #[test]
    fn a_changed_byte_is_noticed(at in 0_usize..E1.len(), bit in 0_u8..8) {
        let mut body = E1.as_bytes().to_vec();
        body[at] ^= 1 << bit;
        prop_assert_eq!(deliver(&format!("t={NOW},v1={V1}"), &body).unwrap_err(), NotificationError::Signature);
    }
}
