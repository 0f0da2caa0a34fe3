//! Inquiries, and what the record makes of them.

use super::*;
use crate::outcome::ConflictKind;
use crate::record::{Fact, Observation, Source};
use crate::retry::{AbsenceVerdict, absence};

fn result(code: &str) -> String {
    format!(
        r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":2000.00,"currencyCode":"THB","tranRef":"T1","respCode":"{code}","respDesc":"x"}}"#
    )
}

async fn inquire(claims: &str) -> Result<Inquiry, Failure> {
    inquire_answer(signed(claims)).await
}

async fn inquire_answer(answer: Result<Response, Failure>) -> Result<Inquiry, Failure> {
    let (gateway, _) = account([answer]);
    let record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    gateway.inquire(&record).await
}

async fn found(claims: &str) -> Outcome {
    match inquire(claims).await {
        Ok(Inquiry::Found(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

/// The state of an operation over 2000.00 THB after an inquiry with this answer.
async fn state_after(claims: &str) -> Outcome {
    let (gateway, _) = account([]);
    let record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    let fact = Fact::Said(found(claims).await);
    record
        .learn(&Observation::new(Source::Inquiry, NOW, fact))
        .record
        .outcome()
}

#[track_caller]
fn check_nothing(inquiry: Result<Inquiry, Failure>, kind: FailureKind) {
    let failure = inquiry.expect_err("something was learned");
    assert!(failure.may_have_executed());
    assert_eq!(failure.kind(), kind, "{failure}");
}

#[tokio::test]
async fn asks_by_the_invoice_number_and_signs() {
    let (gateway, network) = account([signed(&result("0000"))]);
    let record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    let _ = gateway.inquire(&record).await.unwrap();
    assert_eq!(network.paths(), ["paymentInquiry"]);
    assert_eq!(network.claims(0), r#"{"merchantID":"TESTM01","invoiceNo":"INV7001"}"#);
}

#[tokio::test]
async fn executed_states_are_successes() {
    for (code, notes) in [("0000", 0), ("4110", 1), ("4120", 1)] {
        let Outcome::Succeeded(succeeded) = found(&result(code)).await else {
            panic!("{code}");
        };
        assert_eq!(succeeded.amount, Some(Money::parse("2000", Currency::THB).unwrap()));
        assert_eq!(succeeded.gateway_ref.unwrap().as_str(), "T1");
        assert_eq!(succeeded.notes.len(), notes);
        assert_eq!(succeeded.evidence.code.as_deref(), Some(code));
    }
}

#[tokio::test]
async fn refusals_are_final_for_their_try_and_the_payer_has_another() {
    for (code, category, retry) in [
        ("4051", FailureCategory::Declined, true),
        ("4081", FailureCategory::Declined, true),
        ("9035", FailureCategory::Declined, true),
        ("0004", FailureCategory::AuthenticationRequired, true),
        ("4076", FailureCategory::Invalid, true),
        ("5004", FailureCategory::Refused, true),
        ("0003", FailureCategory::Cancelled, true),
        ("4080", FailureCategory::Cancelled, true),
        ("5009", FailureCategory::Expired, false),
        ("9020", FailureCategory::Expired, false),
    ] {
        let Outcome::Failed(failed) = found(&result(code)).await else {
            panic!("{code}");
        };
        assert_eq!((failed.category, failed.payer_may_retry), (category, retry), "{code}");
    }
}

#[tokio::test]
async fn waiting_is_pending_and_vague_codes_teach_nothing() {
    for code in ["0001", "2001", "4009"] {
        assert!(matches!(found(&result(code)).await, Outcome::Pending(_)), "{code}");
    }
    for code in ["2002", "4071", "4140"] {
        let inquiry = inquire(&result(code)).await.unwrap();
        assert!(matches!(inquiry, Inquiry::Absent { consistent: true }), "{code}");
    }
    // Expired without a word on which invoice: no payment of ours is known, and no more than that.
    for code in ["5009", "9020"] {
        let unnamed = inquire(&format!(r#"{{"respCode":"{code}"}}"#)).await.unwrap();
        assert!(matches!(unnamed, Inquiry::Absent { consistent: true }), "{code}");
    }
    for code in [
        "2003", "4000", "4200", "4006", "4010", "4011", "4016", "4032", "4045", "4046", "4049", "4070", "4093", "4099",
        "4121", "4130", "0999", "5002", "5019", "4091", "9990", "9999", "9015", "9041", "9005", "7777",
    ] {
        check_nothing(inquire(&result(code)).await, FailureKind::ServerFault);
    }
    for code in ["9007", "9042", "9900"] {
        check_nothing(inquire(&result(code)).await, FailureKind::Credentials);
    }
}

#[tokio::test]
async fn an_answer_that_is_not_signed_or_about_something_else_teaches_nothing() {
    check_nothing(inquire_answer(ok(result("0000"))).await, FailureKind::Unreadable);
    check_nothing(
        inquire_answer(ok(r#"{"respCode":"4051"}"#)).await,
        FailureKind::Unreadable,
    );
    check_nothing(
        inquire_answer(ok(r#"{"respCode":"9042"}"#)).await,
        FailureKind::Credentials,
    );
    check_nothing(inquire_answer(lost()).await, FailureKind::Timeout);
    for (from, to) in [
        ("TESTM01", "TESTM02"),
        ("INV7001", "INV7002"),
        ("INV7001", "inv7001"),
        (r#""merchantID":"TESTM01","#, ""),
        (r#""invoiceNo":"INV7001","#, ""),
    ] {
        let claims = result("0000").replacen(from, to, 1);
        check_nothing(inquire(&claims).await, FailureKind::Unreadable);
    }
    // An issued token, signed, is no payment.
    let token = r#"{"paymentToken":"t","webPaymentUrl":"https://x.example/","respCode":"0000"}"#;
    check_nothing(inquire(token).await, FailureKind::Unreadable);
    check_nothing(inquire(r#"{"respCode":"4051"}"#).await, FailureKind::Unreadable);
    assert!(matches!(found(r#"{"respCode":"2001"}"#).await, Outcome::Pending(_)));
}

#[tokio::test]
async fn the_payment_of_another_system_under_the_same_number_is_not_ours() {
    let key = charge("INV7001", "2000", Currency::THB).key(&Namespace::new("shop1").unwrap());
    let with = |name: &str, value: &str| result("0000").replacen('{', &format!("{{\"{name}\":\"{value}\","), 1);
    for name in ["userDefined1", "idempotencyID"] {
        check_nothing(inquire(&with(name, "cart-5")).await, FailureKind::Unreadable);
        assert!(matches!(
            found(&with(name, &key.to_string())).await,
            Outcome::Succeeded(_)
        ));
        assert!(matches!(found(&with(name, "")).await, Outcome::Succeeded(_)));
    }
}

#[tokio::test]
async fn c22_a_failed_try_leaves_the_invoice_open_and_never_undoes_a_payment() {
    let say = |claims: &str| {
        let (gateway, _) = account([]);
        let raw = RawNotification::new(Vec::new(), envelope(claims).into_bytes(), NOW);
        gateway.read_notification(&raw).unwrap()
    };
    let (gateway, _) = account([]);
    let mut record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    let declined = result("4051");
    let paid = result("0000").replace("T1", "T2");
    let mut states = Vec::new();
    let mut events = Vec::new();
    for claims in [&declined, &paid, &declined] {
        let notification = say(claims);
        let observation = Observation::new(Source::Notification, NOW, Fact::Said(notification.says.unwrap()));
        record = record.learn(&observation).record;
        states.push(record.state_word());
        events.push(notification.event_id);
    }
    assert_eq!(states, ["pending", "succeeded", "succeeded"]);
    assert_eq!(record.gateway_ref().unwrap().as_str(), "T2");
    assert_eq!(events[0], events[2]);
    assert_ne!(events[0], events[1]);
    assert!(matches!(say(&result("2001")).says, Some(Outcome::Pending(_))));

    // When the page has closed, the same words are the end, but not as an old message that a payment may have followed.
    let (gateway, _) = account([]);
    let record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    let late = NOW.after(TOKEN_LIFE).after(TOKEN_GRACE).after(Duration::from_secs(1));
    let learn = |source| {
        let fact = Fact::Said(say(&declined).says.unwrap());
        record.learn(&Observation::new(source, late, fact))
    };
    assert_eq!(learn(Source::Inquiry).record.state_word(), "failed");
    let told = learn(Source::Notification);
    assert_eq!((told.record.state_word(), told.contradiction), ("sending", true));
}

#[tokio::test]
async fn c23_signed_but_for_another_amount_or_currency_is_a_conflict() {
    for (amount, currency, expected) in [
        ("\"20.00\"", "THB", "conflict"),
        ("\"2000.00\"", "VND", "conflict"),
        ("2000", "THB", "succeeded"),
    ] {
        let claims = format!(
            r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":{amount},"currencyCode":"{currency}","respCode":"0000","respDesc":"Success"}}"#
        );
        let outcome = state_after(&claims).await;
        assert_eq!(outcome.as_str(), expected, "{amount} {currency}");
        if let Outcome::Conflict(conflict) = outcome {
            assert_eq!(conflict.kind, ConflictKind::Amount);
            assert_eq!(conflict.expected.unwrap().to_string(), "2000.00 THB");
            assert_ne!(conflict.reported, conflict.expected);
            assert!(conflict.reported.is_some());
        }
    }
}

#[tokio::test]
async fn c32_an_invoice_that_exists_is_asked_about_and_no_other_number_is_invented() {
    let paid = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":2000.00,"currencyCode":"THB","respCode":"0000","respDesc":"Success","tranRef":"T1"}"#;
    let duplicate = r#"{"respCode":"9015","respDesc":"Existing Invoice Number"}"#;
    let (gateway, network) = account([lost(), signed(duplicate), signed(paid)]);
    let operation = charge("INV7001", "2000", Currency::THB);
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Timeout);
    let _ = check_maybe(send(&gateway, &operation).await, FailureKind::Duplicate);
    let inquiry = gateway.inquire(&reserve(&gateway, &operation)).await.unwrap();
    assert!(matches!(inquiry, Inquiry::Found(Outcome::Succeeded(_))));
    assert_eq!(network.paths(), ["paymentToken", "paymentToken", "paymentInquiry"]);
    assert_eq!(network.body(0), network.body(1));
    assert!(network.claims(2).contains(r#""invoiceNo":"INV7001""#));
}

#[tokio::test]
async fn c33_an_invoice_that_exists_unpaid_stays_open_until_its_page_has_closed() {
    let (gateway, _) = account([]);
    let promise = gateway.promise(OperationKind::Charge);
    let record = reserve(&gateway, &charge("INV7001", "2000", Currency::THB));
    let not_found = r#"{"invoiceNo":"INV7001","respCode":"2002","respDesc":"Transaction not found"}"#;
    for seconds in [0, 10, 20, 44 * 60] {
        let Inquiry::Absent { consistent } = inquire(not_found).await.unwrap() else {
            panic!("found");
        };
        let now = NOW.after(Duration::from_secs(seconds));
        assert_eq!(
            absence(&record, &promise, consistent, now),
            AbsenceVerdict::Inconclusive
        );
        assert!(record.blocks_other_attempts());
    }
    let closed = NOW.after(TOKEN_LIFE).after(TOKEN_GRACE);
    assert_eq!(absence(&record, &promise, true, closed), AbsenceVerdict::Counts);
    let once = record
        .learn(&Observation::new(
            Source::Inquiry,
            closed,
            Fact::Absent { counts: true },
        ))
        .record;
    let soon = closed.after(Duration::from_secs(59));
    assert_eq!(absence(&once, &promise, true, soon), AbsenceVerdict::Inconclusive);
    let proven = AbsenceVerdict::Proven(AfterAbsence::Closed(FailureCategory::Expired));
    assert_eq!(
        absence(&once, &promise, true, soon.after(Duration::from_secs(1))),
        proven
    );

    let pending = r#"{"invoiceNo":"INV7001","respCode":"0001","respDesc":"Transaction is pending"}"#;
    assert!(matches!(state_after(pending).await, Outcome::Pending(_)));
}

#[tokio::test]
async fn c34_a_success_code_of_another_table_is_not_recognised() {
    check_nothing(inquire(&result("00")).await, FailureKind::ServerFault);
    check_nothing(inquire(&result("2000")).await, FailureKind::ServerFault);
}

#[tokio::test]
async fn c35_in_progress_is_pending_and_says_nothing_about_credentials() {
    let claims = r#"{"invoiceNo":"INV7001","respCode":"2001","respDesc":"Transaction in progress"}"#;
    assert!(matches!(state_after(claims).await, Outcome::Pending(_)));
}

#[tokio::test]
async fn c36_money_that_arrived_irregularly_is_for_a_person() {
    for code in ["5015", "5016", "5017"] {
        let claims = result(code).replace("2000.00", "1500.00");
        let Outcome::Conflict(conflict) = state_after(&claims).await else {
            panic!("{code}");
        };
        assert_eq!(conflict.kind, ConflictKind::Irregular);
        assert_eq!(conflict.reported.unwrap().to_string(), "1500.00 THB");
        assert_eq!(conflict.expected.unwrap().to_string(), "2000.00 THB");
    }
}

#[tokio::test]
async fn c40_an_amount_that_cannot_be_read_is_a_conflict_and_shows_what_came() {
    for (amount, shown) in [
        ("null", "null"),
        ("\"1,000.00\"", "1,000.00"),
        ("-2000.00", "-2000.00"),
        ("\"2000.001\"", "2000.001"),
        ("\"4111111111111111.001\"", "***"),
    ] {
        let outcome = state_after(&result("0000").replace("2000.00", amount)).await;
        let Outcome::Conflict(conflict) = outcome else {
            panic!("{amount}: {outcome:?}");
        };
        assert_eq!(conflict.kind, ConflictKind::Amount);
        assert!(conflict.detail.contains(shown), "{}", conflict.detail);
        assert_eq!(conflict.gateway_ref.unwrap().as_str(), "T1");
    }
    let absent = result("0000").replace(r#""amount":2000.00,"#, "");
    assert!(matches!(state_after(&absent).await, Outcome::Conflict(_)));
    let nowhere = result("0000").replace("THB", "XXX");
    assert!(matches!(state_after(&nowhere).await, Outcome::Conflict(_)));
}
