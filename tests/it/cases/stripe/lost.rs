//! Answers that are lost, unreadable, stored ones, or of an earlier request that still runs.

use super::Intents;
use crate::shop::assert_is;
use crate::wired::{INTENTS, K1, Wired, finds_nothing, impatient, listing, of, op_a, pi_1, policy, reads_fail, steps};
use payonce::clock::Clock;
use payonce::outcome::{FailureCategory, Outcome, UnknownReason};
use payonce::reconcile::Reconciler;
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::sync::Arc;
use std::time::Duration;

const DECLINE: &str = r#"{"error":{"type":"card_error","code":"card_declined","decline_code":"generic_decline"}}"#;

#[tokio::test]
async fn c01_a_lost_answer_is_found_by_the_same_bytes_under_the_same_key() {
    for lost in [
        Fault::StallAfterEffect,
        Fault::ResetAfterEffect,
        Fault::CloseAfterEffect,
        Fault::HalfHeadersAfterEffect,
        Fault::HalfBodyAfterEffect,
    ] {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        intents.next(&server, Reply::new(200).json(pi_1("succeeded")).fault(lost));
        let shop = Wired::stripe(server.url()).with(|builder| builder.policy(impatient(3)));

        let outcome = shop.pay(&op_a()).await;
        assert_is(&outcome, "succeeded");
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
        assert!(outcome.evidence().unwrap().replayed);
        let posts = of(server.requests(), INTENTS);
        assert_eq!(posts.len(), 2, "{lost:?}");
        assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
        assert_eq!(posts[0].body, posts[1].body, "byte for byte");
        assert_eq!(intents.count(), 1);
        assert_eq!(server.requests().len(), 2, "nothing had to be asked");
        assert_eq!(
            steps(&shop.history(&op_a()).await),
            [
                ("", "sending", 1),
                ("sending", "sending", 2),
                ("sending", "succeeded", 2)
            ]
        );
    }
}

#[tokio::test]
async fn c02_the_whole_call_again_from_two_processes_charges_once() {
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.answer_at(&server);
    intents.next(&server, Reply::new(200).fault(Fault::StallAfterEffect));
    reads_fail(&server);
    let shop = Wired::stripe(server.url()).with(|builder| builder.policy(impatient(1)));
    assert_is(&shop.pay(&op_a()).await, "unknown");
    finds_nothing(&server);
    shop.clock.advance(Duration::from_secs(3));
    let other = shop.another_process(|builder| builder.policy(policy(1)));
    for process in [&shop, &other] {
        let outcome = process.pay(&op_a()).await;
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
        assert_eq!(process.key(&op_a()), K1);
    }
    assert_eq!(intents.count(), 1);
    assert_eq!(server.count(INTENTS), 2, "the third call knew");
}

#[tokio::test]
async fn c03_a_page_of_the_edge_says_nothing_about_the_charge() {
    let long = format!("<html><body>edge error{}</body></html>", " and so on".repeat(10_000));
    for page in ["<html><body>edge error</body></html>", &long] {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        intents.next(&server, Reply::new(502).html(page));
        let shop = Wired::stripe(server.url());
        let outcome = shop.pay(&op_a()).await;
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
        let keys = of(server.requests(), INTENTS);
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
        assert_eq!(intents.count(), 1);
    }
}

#[tokio::test]
async fn c03_until_it_is_asked_about_the_outcome_is_unknown() {
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.answer_at(&server);
    let page = format!("<html><body>edge error{}</body></html>", " and so on".repeat(10_000));
    intents.next(&server, Reply::new(502).html(page));
    reads_fail(&server);
    let shop = Wired::stripe(server.url()).with_one_attempt();
    let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
        panic!("the edge has decided")
    };
    assert_eq!(unknown.reason, UnknownReason::AnswerLost);
    assert!(unknown.detail.contains("HTTP 502"), "{}", unknown.detail);
    assert!(unknown.detail.contains("text/html"), "{}", unknown.detail);
    assert!(unknown.detail.len() < 512, "{} bytes", unknown.detail.len());
    for line in shop.history(&op_a()).await {
        assert!(line.note.len() < 512);
    }

    // What was sent can be asked for by what was sent, and is.
    server.always("GET /v1/payment_intents", |_| {
        let marked = pi_1("succeeded").replace(r#""op":"#, &format!(r#""payonce_key":"{K1}","op":"#));
        Reply::new(200).json(listing("list", &[&marked]))
    });
    let outcome = shop.pay(&op_a()).await;
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    assert_eq!((server.count(INTENTS), intents.count()), (1, 1));
}

#[tokio::test]
async fn c11_after_a_day_nothing_is_sent_under_a_key_that_stripe_has_forgotten() {
    for (lost, charged, expected) in [
        (Fault::CloseAfterEffect, 1, "succeeded"),
        (Fault::CloseAfterReading, 0, "unknown"),
    ] {
        let stripe = FakeStripe::start(Bank::new());
        let shop = Wired::stripe(stripe.base_url()).with_one_attempt();
        stripe.set_clock(Arc::clone(&shop.clock) as Arc<dyn Clock>);
        stripe.set_faults(
            FaultPlan::none()
                .on(INTENTS, lost)
                .on("GET /v1/payment_intents", Fault::HtmlBeforeEffect),
        );
        assert_is(&shop.pay(&op_a()).await, "unknown");

        shop.clock.advance(Duration::from_secs(90_000));
        let restarted = shop.another_process(|builder| builder);
        let reconciler = Reconciler::new(restarted.payments.clone());
        for _ in 0..3 {
            reconciler.run_once().await.unwrap();
            assert_is(&restarted.pay(&op_a()).await, expected);
            shop.clock.advance(Duration::from_secs(6 * 3600));
        }
        assert_eq!(stripe.count(INTENTS), 1, "zero POSTs after the key has expired");
        assert_eq!(stripe.bank().charged("order-7001"), charged);
        assert_eq!(stripe.payment_intents().len(), charged);
    }
}

#[tokio::test]
async fn c13_a_decline_given_again_is_known_for_a_replay() {
    for (header, replayed) in [(Some("true"), true), (Some("false"), false), (None, false)] {
        let server = ScriptedServer::start();
        let again = Reply::new(402).json(DECLINE);
        server
            .reply(INTENTS, Reply::new(402).json(DECLINE).fault(Fault::CloseAfterEffect))
            .reply(
                INTENTS,
                match header {
                    Some(value) => again.header("Idempotent-Replayed", value),
                    None => again,
                },
            );
        let shop = Wired::stripe(server.url());
        let Outcome::Failed(failed) = shop.pay(&op_a()).await else {
            panic!("not declined")
        };
        assert_eq!(failed.category, FailureCategory::Declined);
        assert_eq!(failed.evidence.code.as_deref(), Some("card_declined"));
        assert_eq!(failed.decline_code.as_deref(), Some("generic_decline"));
        assert_eq!(failed.evidence.replayed, replayed);
        let lines = shop.history(&op_a()).await;
        let declines: Vec<_> = lines.iter().filter(|line| line.to == "failed").collect();
        assert_eq!(declines.len(), 1, "one decline is counted");
        assert_eq!(declines[0].replayed, replayed);
        let posts = of(server.requests(), INTENTS);
        assert_eq!(posts.len(), 2);
        assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
    }
}

#[tokio::test]
async fn c14_a_request_that_was_turned_away_is_sent_again_under_its_key() {
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.answer_at(&server);
    let limited = r#"{"error":{"type":"invalid_request_error","code":"rate_limit"}}"#;
    server.reply(INTENTS, Reply::new(429).json(limited));
    let shop = Wired::stripe(server.url());
    let outcome = shop.pay(&op_a()).await;
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    let posts = of(server.requests(), INTENTS);
    assert_eq!(posts.len(), 2);
    assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
    assert_eq!(intents.count(), 1);
}

#[tokio::test]
async fn c14_a_bad_parameter_fails_at_once_and_a_correction_is_a_new_attempt() {
    use payonce::error::Error;
    use std::num::NonZeroU32;
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.answer_at(&server);
    let refusal = r#"{"error":{"type":"invalid_request_error","code":"parameter_invalid_integer","param":"amount"}}"#;
    server.reply(INTENTS, Reply::new(400).json(refusal));
    let shop = Wired::stripe(server.url());
    for _ in 0..2 {
        let Outcome::Failed(failed) = shop.pay(&op_a()).await else {
            panic!("not failed")
        };
        assert_eq!(failed.category, FailureCategory::Invalid);
        assert_eq!(failed.evidence.details.get("param"), Some("amount"));
    }
    assert_eq!(server.requests().len(), 1, "one POST, and no retry");

    let corrected = op_a().description("corrected");
    let silently = shop.try_pay(&corrected).await.unwrap_err();
    assert!(matches!(silently, Error::KeyReused { .. }), "{silently:?}");
    assert_eq!(server.requests().len(), 1, "no silent re-send");
    let second = corrected.attempt(NonZeroU32::new(2).unwrap());
    assert_is(&shop.pay(&second).await, "succeeded");
    let posts = of(server.requests(), INTENTS);
    assert_eq!(posts.len(), 2);
    assert_ne!(posts[1].header("Idempotency-Key"), Some(K1));
}

#[tokio::test]
async fn c16_a_lock_time_out_is_no_error_of_the_client() {
    let body = r#"{"error":{"code":"lock_timeout","type":"invalid_request_error","message":"object busy"}}"#;
    for (status, advice) in [(429, Some("true")), (429, None), (409, None)] {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        let busy = Reply::new(status).json(body);
        server.reply(
            INTENTS,
            match advice {
                Some(value) => busy.header("Stripe-Should-Retry", value),
                None => busy,
            },
        );
        let shop = Wired::stripe(server.url());
        let outcome = shop.pay(&op_a()).await;
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1", "{status} {advice:?}");
        let posts = of(server.requests(), INTENTS);
        assert_eq!(posts.len(), 2, "{status} {advice:?}");
        assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
        let lines = shop.history(&op_a()).await;
        assert_eq!(lines.last().unwrap().sends, 2);
        assert_eq!(lines[1].code.as_deref(), Some("lock_timeout"));
    }
}

const IN_USE: &str = r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#;

#[tokio::test]
async fn c17_an_unreadable_success_is_asked_about() {
    let server = ScriptedServer::start();
    finds_nothing(&server);
    server
        .reply(INTENTS, Reply::new(409).json(IN_USE))
        .reply(INTENTS, Reply::new(200).json("<nil>").header("Request-Id", "req_17"))
        .always("GET /v1/payment_intents/search", |_| {
            let marked = pi_1("succeeded").replace(r#""op":"#, &format!(r#""payonce_key":"{K1}","op":"#));
            Reply::new(200).json(listing("search_result", &[&marked]))
        });
    let shop = Wired::stripe(server.url());
    let outcome = shop.pay(&op_a()).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1");
    assert_eq!(server.count(INTENTS), 2);
    assert_eq!(server.unexpected(), [""; 0]);
    let lines = shop.history(&op_a()).await;
    let words: Vec<_> = lines.iter().map(|line| &*line.to).collect();
    assert_eq!(words, ["sending", "sending", "unknown", "succeeded"]);
    assert_eq!(lines[2].http_status, Some(200));
    assert_eq!(lines[2].request_id.as_deref(), Some("req_17"));
}

#[tokio::test]
async fn c17_while_nothing_can_be_asked_it_is_unknown_and_says_what_came() {
    let server = ScriptedServer::start();
    reads_fail(&server);
    server
        .reply(INTENTS, Reply::new(409).json(IN_USE))
        .reply(INTENTS, Reply::new(200).json("<nil>").header("Request-Id", "req_17"));
    let shop = Wired::stripe(server.url());
    let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
        panic!("neither failed nor succeeded is known")
    };
    for part in ["HTTP 200", "application/json", "req_17"] {
        assert!(unknown.detail.contains(part), "{}", unknown.detail);
    }
    assert!(!unknown.detail.contains("line 1"), "{}", unknown.detail);
    assert_eq!(server.count(INTENTS), 2);
}
