//! The cases that 2C2P's adapter answers by itself, through the public API.

mod answers;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use payonce::clock::Timestamp;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::twoc2p::codes::{Api, Class, class};
use payonce::gateway::twoc2p::{InvoiceProfile, PaymentResult, TwoC2p, TwoC2pBuilder, read_browser_return};
use payonce::gateway::{About, Gateway, Notification, NotificationError, RawNotification, Refusal};
use payonce::money::{Currency, Money};
use payonce::operation::{Namespace, Operation};
use payonce::outcome::{Outcome, Succeeded};
use payonce::transport::{Request, Response, Transport};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";
const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// The claims of most of the tokens below: TESTM01, INV7001, 20.00 USD, 0000, T1.
pub(crate) const NORMAL: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyIsInRyYW5SZWYiOiJUMSJ9.eLjiqv8zEM_HY8MFkX7ufsrNa9TmfrBAwjw345SImO0";

/// Gives one answer, again and again.
struct Answers(Mutex<Vec<u8>>);

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answers")
    }
}

#[async_trait]
impl Transport for Answers {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        assert!(
            request.url.ends_with("/payment/4.3/paymentInquiry"),
            "only inquiries are expected"
        );
        Ok(Response::new(200, Vec::new(), self.0.lock().unwrap().clone()))
    }
}

fn builder(body: impl Into<Vec<u8>>) -> TwoC2pBuilder {
    TwoC2p::builder("TESTM01", SECRET).transport(Arc::new(Answers(Mutex::new(body.into()))))
}

fn gateway() -> TwoC2p {
    builder("").build().unwrap()
}

async fn inquire(body: impl Into<Vec<u8>>) -> Result<PaymentResult, Failure> {
    builder(body).build().unwrap().payment_inquiry("INV7001").await
}

/// What an inquiry that is answered with `token` reports.
async fn report(token: &str) -> PaymentResult {
    inquire(envelope(token)).await.unwrap()
}

pub(crate) fn envelope(token: &str) -> String {
    format!("{{\"payload\":\"{token}\"}}")
}

pub(crate) fn sign(claims: &str) -> String {
    let signed = format!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{}",
        URL_SAFE_NO_PAD.encode(claims)
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    format!(
        "{signed}.{}",
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()))
    )
}

/// The claims of a paid INV7001 over 20.00 USD, with one more member.
fn paid_with(member: &str) -> String {
    format!(
        r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":20.0,"currencyCode":"USD","respCode":"0000","respDesc":"Success",{member}}}"#
    )
}

fn notify(body: impl Into<Vec<u8>>) -> Result<Notification, NotificationError> {
    gateway().read_notification(&RawNotification::new(Vec::new(), body.into(), NOW))
}

#[track_caller]
fn succeeded(notification: Notification) -> Succeeded {
    match notification.says {
        Some(Outcome::Succeeded(succeeded)) => succeeded,
        other => panic!("{other:?}"),
    }
}

fn money(text: &str, code: &str) -> Money {
    Money::parse(text, Currency::parse(code).unwrap()).unwrap()
}

fn invoice_no(profile: InvoiceProfile, reference: &str) -> String {
    let gateway = builder("").invoice_profile(profile).build().unwrap();
    let operation = Operation::charge(reference, money("20.00", "USD")).unwrap();
    let key = operation.key(&Namespace::new("shop1").unwrap());
    gateway.prepare(key, &operation).unwrap().wire_identity
}

#[test]
fn c09_invoice_number_is_a_pure_function() {
    let long = "order-".repeat(13) + "77";
    assert_eq!(long.len(), 80);
    let references = ["order-7001", "order_7001", &long, "ออเดอร์-๑", "INV7001"];
    for (profile, most) in [
        (InvoiceProfile::Standard, 50),
        (InvoiceProfile::Qr, 20),
        (InvoiceProfile::Myanmar, 12),
    ] {
        let mut seen = BTreeSet::new();
        for reference in references {
            let number = invoice_no(profile, reference);
            assert_eq!(number, invoice_no(profile, reference));
            assert!((1..=most).contains(&number.len()), "{number}");
            assert!(number.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{number}");
            if profile == InvoiceProfile::Myanmar {
                assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{number}");
            }
            assert!(seen.insert(number), "{reference} collapses");
        }
    }
    // The values of another process, on another day.
    assert_eq!(
        invoice_no(InvoiceProfile::Standard, "order-7001"),
        "3SSKRZ72JMKQ4VLRLUJW59D7L"
    );
    assert_eq!(invoice_no(InvoiceProfile::Standard, "INV7001"), "INV7001");
    assert_eq!(invoice_no(InvoiceProfile::Myanmar, "order-7001"), "408408141857");
}

#[test]
fn c24_a_token_of_another_merchant_pays_nothing_here() {
    let theirs = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMiIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyIsInRyYW5SZWYiOiJUMSJ9._OdomtZoUsr3dBmhNvvDkkhQq8hhtDv0wOz0TxU3-rk";
    let forged = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyIsInRyYW5SZWYiOiJUMSJ9.CRs7VQgRWB2d_c6D330gWWDO4SBpW43X2SvhJf6Oq5o";
    let second_secret = "TESTONLY2C2P0002TESTONLY2C2P0002TESTONLY2C2P0002TESTONLY2C2P0002";
    let second = TwoC2p::builder("TESTM02", second_secret).transport(Arc::new(Answers(Mutex::default())));
    let second = second.build().unwrap();
    let read = |gateway: &TwoC2p, token: &str| {
        gateway.read_notification(&RawNotification::new(Vec::new(), envelope(token).into_bytes(), NOW))
    };
    // Authentic for the account whose secret signed it, and about that account's invoice only.
    let authentic = read(&second, theirs).unwrap();
    assert!(authentic.event_id.contains("TESTM02"));
    assert_eq!(read(&second, forged).unwrap_err(), NotificationError::OtherMerchant);
    assert_eq!(read(&gateway(), theirs).unwrap_err(), NotificationError::Signature);
    assert_eq!(read(&gateway(), forged).unwrap_err(), NotificationError::Signature);
}

#[test]
fn c34_c35_c36_codes_mean_what_their_own_table_says() {
    for (api, code, expected) in [
        (Api::Maintenance, "00", Class::Success),
        (Api::Maintenance, "0000", Class::Unknown),
        (Api::MaintenanceStatus, "RF", Class::Success),
        (Api::Payment, "00", Class::Unknown),
        (Api::PaymentFlow, "2000", Class::Unknown),
        (Api::Payment, "2001", Class::InProgress),
        (Api::PaymentFlow, "2002", Class::NotFound),
        (Api::MaintenanceStatus, "A", Class::Success),
        (Api::MaintenanceStatus, "AL", Class::Unknown),
        (Api::MaintenanceStatus, "AM", Class::Unknown),
        (Api::MaintenanceStatus, "AE", Class::Unknown),
        (Api::MaintenanceStatus, "AP", Class::Pending),
    ] {
        assert_eq!(class(api, code), expected, "{api:?} {code}");
    }
}

#[test]
fn c35_the_browser_return_is_a_prompt_and_no_more() {
    let json = r#"{"invoiceNo":"INV7001","channelCode":"CC","respCode":"2002","respDesc":"Transaction is rejected"}"#;
    let padded = STANDARD.encode(json);
    for encoded in [
        padded.replace('=', "%3D").replace('+', "%2B"),
        padded.clone(),
        padded.replace('=', ""),
    ] {
        let returned = read_browser_return(format!("paymentResponse={encoded}").as_bytes()).unwrap();
        assert_eq!(returned.invoice_no, "INV7001");
        assert_eq!(returned.code.as_deref(), Some("2002"));
    }
    // It is no notification, whatever it says.
    let body = format!("paymentResponse={padded}");
    assert!(notify(body.clone()).is_err());
    let forms = builder("").accept_form_callbacks().build().unwrap();
    assert!(
        forms
            .read_notification(&RawNotification::new(Vec::new(), body.into_bytes(), NOW))
            .is_err()
    );
    for body in [
        "",
        "paymentResponse=",
        "paymentResponse=%%%",
        "paymentResponse=e30=",
        "payload=e30=",
        "paymentResponse=bnVsbA",
    ] {
        let error = read_browser_return(body.as_bytes()).unwrap_err();
        assert!(matches!(error, NotificationError::Malformed(_)), "{body}");
    }
}

#[tokio::test]
async fn c37_the_algorithm_is_never_the_token_s_choice() {
    let claims = NORMAL.split('.').nth(1).unwrap();
    let tokens = [
        format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{claims}."),
        format!("eyJhbGciOiJOb05lIiwidHlwIjoiSldUIn0.{claims}."),
        format!(
            "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.{claims}.eRyydNHH2TiisR03u4Qcprvr8XQEcZ1yYPpuFU8I0dajsjm9chj_1i_wYWSvNOjhuV9NftwomqewGAHkwf3vig"
        ),
        format!("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.{claims}.kKToxkZeOASge02Xn1VOp4ssUkmIcponImroq1cuY2k"),
        format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{claims}._7JN3XhSS3QUWazPCY_D84MPjd3VKgwKg4iuU3CL3Qk"),
    ];
    for token in tokens {
        assert_eq!(
            notify(envelope(&token)).unwrap_err(),
            NotificationError::Signature,
            "{token}"
        );
        let failure = inquire(envelope(&token)).await.unwrap_err();
        assert!(failure.may_have_executed() && failure.kind() == FailureKind::Unreadable);
    }
    assert!(notify(envelope(NORMAL)).is_ok());
    assert!(TwoC2p::builder("TESTM01", "").build().is_err());
}

#[test]
fn c42_a_payload_that_is_no_token_is_rejected() {
    let newline = envelope(&format!("{NORMAL}\\n"));
    for body in [
        "{}",
        r#"{"payload":null}"#,
        r#"{"payload":""}"#,
        r#"{"payload":{}}"#,
        r#"{"payload":["a.b.c"]}"#,
        r#"{"payload":"a.b"}"#,
        r#"{"payload":"a.b.c.d"}"#,
        &newline,
        &format!("payload={NORMAL}"),
        "not json",
        "",
        "[]",
    ] {
        let error = notify(body).unwrap_err();
        assert!(matches!(error, NotificationError::Malformed(_)), "{body}: {error:?}");
        assert!(!error.to_string().contains("eyJ"));
    }
    let forms = builder("").accept_form_callbacks().build().unwrap();
    let read = |body: String| forms.read_notification(&RawNotification::new(Vec::new(), body.into_bytes(), NOW));
    let notification = read(format!("payload={NORMAL}")).unwrap();
    assert_eq!(notification.about, [About::WireIdentity("INV7001".to_owned())]);
    assert_eq!(succeeded(notification).amount, Some(money("20.00", "USD")));
    assert!(read(format!("payload={NORMAL}%0A")).is_err());
    assert!(read("not json".to_owned()).is_err());
    assert!(read(envelope(NORMAL)).is_ok());
}

#[test]
fn a_notification_finds_its_operation_by_the_key_it_echoes() {
    let key = "402f04607e0a5d329f51fdc342460021";
    let about = |member: &str| notify(envelope(&sign(&paid_with(member)))).unwrap();
    let by_key = |notification: &Notification| matches!(&notification.about[..], [About::Key(found)] if found.to_string() == key);
    assert!(by_key(&about(&format!(r#""userDefined1":"{key}""#))));
    assert!(by_key(&about(&format!(r#""userDefined1":"","idempotencyID":"{key}""#))));
    let foreign = about(r#""userDefined1":"cart-5""#);
    assert!(
        foreign.about.is_empty() && foreign.says.is_none(),
        "another system's payment"
    );
    let unnamed = sign(r#"{"merchantID":"TESTM01","respCode":"0000"}"#);
    assert!(matches!(
        notify(envelope(&unnamed)),
        Err(NotificationError::Malformed(_))
    ));
    let vague = sign(&paid_with(r#""x":1"#).replace("0000", "4099"));
    assert!(notify(envelope(&vague)).unwrap().says.is_none());
}

#[test]
fn c50_amounts_outside_of_the_limits_are_refused_before_anything_is_sent() {
    let refused = |amount: Money| {
        let operation = Operation::charge("INV7001", amount).unwrap();
        let key = operation.key(&Namespace::new("shop1").unwrap());
        match gateway().prepare(key, &operation) {
            Err(Refusal::Invalid(invalid)) => Some(invalid.field()),
            Err(other) => panic!("{other:?}"),
            Ok(_) => None,
        }
    };
    assert_eq!(refused(money("9999999999999.00", "THB")), Some("amount"));
    assert_eq!(refused(Money::from_minor(i64::MAX, Currency::THB)), Some("amount"));
    assert_eq!(refused(money("999999999999.99", "THB")), None);
    assert_eq!(refused(money("0.01", "THB")), None);
    assert!(Money::parse("1.123456", Currency::THB).is_err());
    for text in ["0.00", "-1.00"] {
        assert!(Operation::charge("INV7001", money(text, "USD")).is_err());
    }
}

#[test]
fn c74_an_expiry_without_a_zone_is_refused() {
    let operation = Operation::charge("INV7001", money("20", "USD")).unwrap();
    let operation = operation.expires_at(NOW.after(Duration::from_secs(1800)));
    let key = operation.key(&Namespace::new("shop1").unwrap());
    let refused = gateway().prepare(key, &operation).unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(invalid) if invalid.field() == "expires_at"));
    let zoned = builder("").utc_offset_minutes(420).build().unwrap();
    let prepared = zoned.prepare(key, &operation).unwrap();
    assert_eq!(prepared.payable_for, Some(Duration::from_secs(1800)));
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #[test]
    fn no_bytes_from_outside_make_it_panic_or_believe(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(notify(bytes.clone()).is_err());
        prop_assert!(block_on(inquire(bytes.clone())).is_err());
        let _ = read_browser_return(&bytes);
        let form = [b"paymentResponse=".as_slice(), STANDARD.encode(&bytes).as_bytes()].concat();
        let _ = read_browser_return(&form);
    }

    #[test]
    fn no_signed_claims_make_it_panic(claims in ".{0,200}", json in "[\\[\\]{}\",:0-9a-z.eE+-]{0,60}") {
        let _ = notify(envelope(&sign(&claims)));
        for name in ["amount", "respCode", "invoiceNo", "transactionDateTime", "currencyCode"] {
            let claims = paid_with(&format!("\"{name}\":{json}"));
            let _ = notify(envelope(&sign(&claims)));
            let _ = block_on(inquire(envelope(&sign(&claims))));
        }
    }
}
