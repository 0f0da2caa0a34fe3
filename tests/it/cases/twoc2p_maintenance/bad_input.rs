//! Answers that are wrong: typed, nothing lost, and the refund is found in the list in the end.

use super::sealed::{Written, fixture, listed, refund, response, sealed, settled, text};
use super::{element, thb};
use crate::fakes::sealing::Sealer;
use crate::shop::assert_is;
use payonce::operation::{Operation, Target};
use payonce::outcome::{FailureCategory, Outcome};
use payonce::record::Source;
use payonce::testing::server::Reply;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Bad = fn(&Sealer, &str) -> Reply;

/// Runs a refund whose every answer is `bad`, until the list of refunds shows it. Returns what the history says of the
/// answers.
async fn resolved_by_the_list(bad: Bad) -> (Written, Vec<String>) {
    let written = Written::new();
    let refund = refund("INV7001");
    let key = written.shop.key(&refund);
    written.answers(move |sealer, process, document| match process {
        "I" => sealed(sealer, &settled(document)),
        "RS" => sealed(sealer, &listed("INV7001", &key, "25.00")),
        _ => bad(sealer, document),
    });
    let outcome = written.shop.pay(&refund).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "77");
    let key = Some(written.shop.key(&refund));
    let ids = written
        .requests("R")
        .into_iter()
        .map(|document| element(&document, "idempotencyID"));
    assert!(ids.into_iter().all(|id| id == key), "every send carries the key");
    let history = written.shop.history(&refund).await;
    let notes = history.iter().filter(|line| line.source == Source::Answer);
    let notes = notes.map(|line| line.note.to_string()).collect();
    (written, notes)
}

fn good(document: &str) -> String {
    let invoice = element(document, "invoiceNo").unwrap();
    let more = "<amount>25.00</amount><status>RF</status><refundReferenceNo>78</refundReferenceNo>";
    response("00", "R", &invoice, more)
}

fn swapped(sealer: &Sealer, document: &str, from: &str, to: &str) -> Reply {
    let answer = good(document);
    assert!(answer.contains(from));
    sealed(sealer, &answer.replacen(from, to, 1))
}

#[tokio::test]
async fn answers_that_nobody_sealed_for_us_have_one_form_and_are_not_repeated() {
    let bad: [Bad; 9] = [
        |_, _| text(fixture("bad-R-response-stranger-signature.token.txt")),
        |_, _| text(fixture("bad-R-response-oaep256.token.txt")),
        |_, _| text(fixture("bad-R-response-jwe-only.token.txt")),
        // A bare JWE, made for us.
        |sealer, document| text(sealer.encrypt(&good(document))),
        // Truncated.
        |sealer, document| {
            let token = sealer.seal(&good(document));
            text(&token[..token.len() / 2])
        },
        // The signature of another message.
        |sealer, document| {
            let (one, other) = (sealer.seal(&good(document)), sealer.seal("<a/>"));
            let (text_, _) = one.rsplit_once('.').unwrap();
            let (_, signature) = other.rsplit_once('.').unwrap();
            text(format!("{text_}.{signature}"))
        },
        // In the clear.
        |_, document| text(good(document)),
        |_, _| text(""),
        |_, _| text("eyJhbGciOiJub25lIn0.e30."),
    ];
    for bad in bad {
        let (written, notes) = resolved_by_the_list(bad).await;
        assert_eq!(written.requests("R").len(), 1, "{notes:?}");
        let one_form = "2C2P's answer is not a message that 2C2P signed and encrypted for this merchant";
        assert!(notes.iter().any(|note| note == one_form), "{notes:?}");
    }
}

#[tokio::test]
async fn an_authentic_answer_about_something_else_is_not_ours() {
    let bad: [(Bad, &str); 9] = [
        (|s, d| swapped(s, d, "INV7001", "INV7002"), "another invoice"),
        (
            |s, d| swapped(s, d, "<invoiceNo>INV7001</invoiceNo>", ""),
            "another invoice",
        ),
        (|s, d| swapped(s, d, "25.00", "100.00"), "another amount"),
        (|s, d| swapped(s, d, "25.00", "2.5e1"), "another amount"),
        (|s, d| swapped(s, d, ">R<", ">V<"), "another process type"),
        (
            |s, d| swapped(s, d, "<amount>", "<merchantID>OTHER</merchantID><amount>"),
            "another merchant",
        ),
        (
            |s, d| swapped(s, d, "<amount>", "<idempotencyID>other</idempotencyID><amount>"),
            "another operation",
        ),
        (|s, _| sealed(s, "<RecurringMaintenanceResponse/>"), "another document"),
        (|s, _| sealed(s, "<PaymentProcessResponse><respCode>"), "cannot be read"),
    ];
    for (bad, expected) in bad {
        let (written, notes) = resolved_by_the_list(bad).await;
        assert_eq!(written.requests("R").len(), 1, "{expected}");
        assert!(
            notes.iter().any(|note| note.contains(expected)),
            "{expected}: {notes:?}"
        );
    }
}

#[tokio::test]
async fn pages_and_floods_in_the_place_of_an_answer_are_no_answer() {
    let bad: [Bad; 6] = [
        |_, _| Reply::new(401).html("<html><title>401 - Unauthorized: Access is denied</title></html>"),
        |_, _| Reply::new(400).html("<h2>Bad Request</h2>"),
        |_, _| Reply::new(200).html("<html>maintenance</html>"),
        |_, _| Reply::new(503).html("<html>busy</html>"),
        |_, _| Reply::new(302).header("Location", "https://pgw.example/").body(""),
        |_, _| text("x".repeat(32 * 1024 * 1024)),
    ];
    for bad in bad {
        let (written, notes) = resolved_by_the_list(bad).await;
        assert!((1..=3).contains(&written.requests("R").len()), "{notes:?}");
    }
}

#[tokio::test]
async fn c34_success_in_the_word_of_another_table_is_not_success() {
    let (written, notes) = resolved_by_the_list(|s, d| swapped(s, d, "<respCode>00<", "<respCode>0000<")).await;
    assert_eq!(written.requests("R").len(), 3, "{notes:?}");
    // And without a list to find it in, it stays open.
    let written = Written::new();
    written.answers(|sealer, process, document| match process {
        "I" => sealed(sealer, &settled(document)),
        "RS" => sealed(sealer, &response("0000", "RS", "INV7001", "")),
        _ => swapped(sealer, document, "<respCode>00<", "<respCode>0000<"),
    });
    assert_is(&written.shop.pay(&refund("INV7001")).await, "unknown");
    // The right word with another status is open too.
    let written = Written::new();
    written.answers(|sealer, process, document| match process {
        "I" => sealed(sealer, &settled(document)),
        "RS" => sealed(sealer, &response("00", "RS", "INV7001", "")),
        _ => swapped(sealer, document, ">RF<", ">T<"),
    });
    assert_is(&written.shop.pay(&refund("INV7001")).await, "unknown");
}

/// The samples of the case, with its keys.
fn of_the_case() -> Written {
    Written::with_keys(
        "jose_test_provider_private.pem",
        "jose_test_provider_public.pem",
        "jose_test_merchant_private.pem",
        "jose_test_merchant_public.pem",
    )
}

#[tokio::test]
async fn c43_other_algorithms_are_refused_and_the_list_of_refunds_is_asked() {
    let merchant = Sealer::new(
        &fixture("jose_test_merchant_private.pem"),
        &fixture("jose_test_provider_public.pem"),
    );
    let sample = merchant.open(fixture("jose_01_refund_ok.txt").trim());
    let invoice = element(&sample, "invoiceNo").unwrap();
    for (file, expected, lists) in [
        ("jose_01_refund_ok.txt", "succeeded", 0),
        ("jose_03_oaep256.txt", "unknown", 1),
        ("jose_04_rsa1_5.txt", "unknown", 1),
    ] {
        let written = of_the_case();
        let number = invoice.clone();
        written.answers(move |sealer, process, document| match process {
            "I" => sealed(sealer, &settled(document)),
            "RS" => sealed(sealer, &response("00", "RS", &number, "")),
            _ => text(fixture(file)),
        });
        let outcome = written.shop.pay(&refund(&invoice)).await;
        assert_is(&outcome, expected);
        assert_eq!(written.requests("R").len(), 1, "{file}");
        assert_eq!(written.requests("RS").len(), lists, "{file}");
        if let Outcome::Succeeded(succeeded) = outcome {
            assert_eq!(succeeded.amount, Some(thb("25.00")));
            assert_eq!(succeeded.evidence.code.as_deref(), Some("00"));
            assert_eq!(succeeded.evidence.details.get("status"), Some("RF"));
        }
    }
}

#[tokio::test]
async fn c44_what_is_sent_is_escaped_and_a_dtd_is_not_read() {
    let written = of_the_case();
    let odd = "]]> \" ' é";
    let invoice = "A&B<1>";
    let operation = refund(invoice).metadata("note", odd);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    written.answers(move |sealer, process, _| match process {
        "I" => sealed(
            sealer,
            &response(
                "00",
                "I",
                "A&amp;B&lt;1&gt;",
                "<amount>100.00</amount><status>S</status>",
            ),
        ),
        "RS" => {
            counted.fetch_add(1, Ordering::SeqCst);
            sealed(sealer, &response("00", "RS", "A&amp;B&lt;1&gt;", ""))
        }
        _ => text(fixture("jose_13_xml_dtd.txt")),
    });
    assert_is(&written.shop.pay(&operation).await, "unknown");
    let sent = written.requests("R");
    assert_eq!(sent.len(), 1);
    assert!(
        sent[0].contains("<invoiceNo>A&amp;B&lt;1&gt;</invoiceNo>"),
        "{}",
        sent[0]
    );
    assert!(sent[0].contains("note=]]&gt; "), "{}", sent[0]);
    assert!(sent[0].contains('é'));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the list of refunds was asked");
    let history = written.shop.history(&operation).await;
    assert!(
        history.iter().any(|line| line.note.contains("cannot be read")),
        "{history:?}"
    );
}

#[tokio::test]
async fn a_refusal_that_2c2p_has_signed_because_of_keys_lets_the_same_refund_be_sent_later() {
    let written = Written::new();
    let wrong = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wrong);
    written.answers(move |sealer, process, document| match process {
        "I" => sealed(sealer, &settled(document)),
        _ if counted.fetch_add(1, Ordering::SeqCst) == 0 => sealed(
            sealer,
            "<PaymentProcessResponse><respCode>96</respCode></PaymentProcessResponse>",
        ),
        _ => sealed(sealer, &good(document)),
    });
    let refund = refund("INV7001");
    let error = written.shop.try_pay(&refund).await.unwrap_err();
    assert!(matches!(error, payonce::Error::Refused { .. }), "{error:?}");
    assert_is(&written.shop.pay(&refund).await, "succeeded");
}

#[tokio::test]
async fn a_look_that_fails_before_a_refund_sends_no_refund() {
    let written = Written::new();
    written.answers(|_, _, _| Reply::new(503).html("<html>busy</html>"));
    let error = written.shop.try_pay(&refund("INV7001")).await.unwrap_err();
    assert!(error.is_retryable(), "{error:?}");
    assert!(written.requests("R").is_empty());
    let written = Written::new();
    written.answers(|sealer, _, document| {
        let invoice = element(document, "invoiceNo").unwrap();
        sealed(sealer, &response("16", "I", &invoice, ""))
    });
    let Outcome::Failed(failed) = written.shop.pay(&refund("INV7001")).await else {
        panic!("not failed")
    };
    assert_eq!(failed.category, FailureCategory::NoSuchPayment);
    assert!(written.requests("R").is_empty());
}

#[tokio::test]
async fn invoice_numbers_that_cannot_be_are_refused_before_anything_is_sent() {
    let written = Written::new();
    for invoice in ["", " ", "a b", "\u{1}", "ใบ", &"x".repeat(51)] {
        let target = Target::Gateway(payonce::operation::GatewayRef::new(invoice));
        let refund = Operation::refund("r-1", thb("25.00"), target).unwrap();
        let error = written.shop.try_pay(&refund).await.unwrap_err();
        assert!(matches!(error, payonce::Error::Invalid(_)), "{error:?}");
    }
    assert!(written.server.requests().is_empty());
}
