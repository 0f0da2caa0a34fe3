//! What the servers do to a connection, and what they remember of it.

use super::{Answer, bounded, client, client_with_timeout, innermost};
use payonce::money::{Currency, Money};
use payonce::operation::OperationKind;
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use payonce::testing::{Bank, Fault, FaultPlan, Movement};
use std::time::Duration;

const BODY: &str = "amount=2000&currency=usd&confirm=true&payment_method=pm_card_visa\
                    &metadata[payonce_reference]=order-1&metadata[payonce_key]=k1";

async fn charge(client: &reqwest::Client, server: &FakeStripe) -> Result<Answer, reqwest::Error> {
    let request = client
        .post(format!("{}/v1/payment_intents", server.base_url()))
        .header("Authorization", "Bearer sk_test_TESTONLY")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Idempotency-Key", "k1")
        .body(BODY);
    Answer::of(request).await
}

/// How an exchange ended for the client.
#[derive(Debug, PartialEq)]
enum Seen {
    Status(u16),
    Closed,
    Reset,
    TimedOut,
    HalfBody,
}

fn seen(result: &Result<Answer, reqwest::Error>) -> Seen {
    match result {
        Ok(answer) => Seen::Status(answer.status),
        Err(error) if error.is_timeout() => Seen::TimedOut,
        Err(error) => match innermost(error).to_ascii_lowercase() {
            text if text.contains("before message completed") => Seen::Closed,
            text if text.contains("reset") => Seen::Reset,
            text if text.contains("end of file") => Seen::HalfBody,
            text => panic!("{text}"),
        },
    }
}

#[tokio::test]
async fn each_fault_is_seen_by_the_client_and_the_bank_as_it_says() {
    for (fault, expected, then) in [
        (Fault::CloseAfterReading, Seen::Closed, 200),
        (Fault::ResetAfterReading, Seen::Reset, 200),
        (Fault::StallAfterReading, Seen::TimedOut, 200),
        (Fault::CloseAfterEffect, Seen::Closed, 200),
        (Fault::ResetAfterEffect, Seen::Reset, 200),
        (Fault::StallAfterEffect, Seen::TimedOut, 200),
        (Fault::HalfHeadersAfterEffect, Seen::Closed, 200),
        (Fault::HalfBodyAfterEffect, Seen::HalfBody, 200),
        (Fault::ErrorBeforeEffect, Seen::Status(500), 200),
        (Fault::ErrorAfterEffect, Seen::Status(500), 500),
        (Fault::HtmlBeforeEffect, Seen::Status(502), 200),
        (Fault::HtmlAfterEffect, Seen::Status(502), 200),
        (Fault::Throttle, Seen::Status(429), 200),
        (Fault::StillRunning, Seen::Status(409), 200),
    ] {
        let server = FakeStripe::start(Bank::new());
        server.set_faults(FaultPlan::script([fault]));
        let patience = Duration::from_millis(if fault.stalls() { 300 } else { 10_000 });
        let client = client_with_timeout(patience);
        let first = bounded(charge(&client, &server)).await;
        assert_eq!(seen(&first), expected, "{fault:?}");
        let moved = usize::from(fault.has_effect());
        assert_eq!(server.bank().charged("order-1"), moved, "{fault:?}");
        assert_eq!(server.requests()[0].fault, Some(fault));
        assert_eq!(server.requests()[0].text(), BODY);

        let second = bounded(charge(&client, &server)).await.unwrap();
        assert_eq!(second.status, then, "{fault:?}");
        let replayed = second.header("Idempotent-Replayed") == Some("true");
        assert_eq!(replayed, fault.has_effect(), "{fault:?}");
        assert_eq!(server.bank().charged("order-1"), 1, "{fault:?}");
        assert!(server.bank().moved_twice().is_empty());
        assert_eq!(server.requests()[1].fault, None);
    }
}

#[tokio::test]
async fn connections_are_kept_and_counted() {
    let server = FakeStripe::start(Bank::new());
    let client = client();
    server.set_faults(FaultPlan::script([None, None, Some(Fault::CloseAfterReading), None]));
    for _ in 0..4 {
        let _ = bounded(charge(&client, &server)).await;
    }
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [1, 1, 1, 2]);
}

#[tokio::test]
async fn a_server_that_does_not_listen_refuses_and_comes_back_on_the_same_port() {
    let server = FakeStripe::start(Bank::new());
    let client = client();
    let url = server.base_url();
    assert_eq!(bounded(charge(&client, &server)).await.unwrap().status, 200);
    bounded(server.stop_listening()).await;
    let error = bounded(charge(&client, &server)).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    bounded(server.listen_again()).await.unwrap();
    assert_eq!(server.base_url(), url);
    assert_eq!(bounded(charge(&client, &server)).await.unwrap().status, 200);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn dropping_the_server_ends_a_stall_and_closes_the_port() {
    let server = FakeStripe::start(Bank::new());
    server.set_faults(FaultPlan::script([Fault::StallAfterReading]));
    let url = format!("{}/v1/payment_intents", server.base_url());
    let pending = {
        let request = client().post(&url).header("Authorization", "Bearer sk_test_x");
        tokio::spawn(request.send())
    };
    bounded(async {
        while server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(server);
    assert!(bounded(pending).await.unwrap().is_err());
    bounded(async { while client().get(&url).send().await.is_ok() {} }).await;
}

#[tokio::test]
async fn what_is_being_executed_goes_on_when_its_client_has_gone() {
    let server = FakeStripe::start(Bank::new());
    let hold = server.hold("POST /v1/payment_intents");
    let first = bounded(charge(&client_with_timeout(Duration::from_millis(300)), &server)).await;
    assert_eq!(seen(&first), Seen::TimedOut);
    bounded(hold.reached(1)).await;
    assert_eq!(server.bank().charged("order-1"), 0);
    assert_eq!(bounded(charge(&client(), &server)).await.unwrap().status, 409);
    hold.release();
    bounded(async {
        while server.bank().charged("order-1") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let replay = bounded(charge(&client(), &server)).await.unwrap();
    assert_eq!(
        (replay.status, replay.header("Idempotent-Replayed")),
        (200, Some("true"))
    );
}

#[tokio::test]
async fn a_seeded_plan_hits_the_same_requests_again() {
    let run = async |seed| {
        let server = FakeStripe::start(Bank::new());
        server.set_faults(FaultPlan::seeded(seed, 400));
        let client = client();
        for number in 0..40 {
            let request = client
                .post(format!("{}/v1/payment_intents", server.base_url()))
                .header("Authorization", "Bearer sk_test_TESTONLY")
                .header("Content-Type", "application/x-www-form-urlencoded")
                .header("Idempotency-Key", format!("k{number}"))
                .body(BODY);
            let _ = bounded(Answer::of(request)).await;
        }
        let faults: Vec<_> = server.requests().iter().map(|request| request.fault).collect();
        let expected = faults
            .iter()
            .filter(|fault| fault.is_none_or(Fault::has_effect))
            .count();
        assert_eq!(server.bank().charged("order-1"), expected);
        faults
    };
    let first = run(5).await;
    assert_eq!(first, run(5).await);
    assert_ne!(first, run(6).await);
    assert!(first.iter().flatten().count() > 5);
}

#[tokio::test]
async fn inquiries_go_wrong_only_when_asked_to() {
    let server = FakeStripe::start(Bank::new());
    let client = client();
    let list = || {
        let request = client.get(format!("{}/v1/refunds", server.base_url()));
        Answer::of(request.header("Authorization", "Bearer sk_test_x"))
    };
    server.set_faults(FaultPlan::script([Fault::HtmlBeforeEffect]));
    assert_eq!(bounded(list()).await.unwrap().status, 200);
    server.set_faults(FaultPlan::script([Fault::HtmlBeforeEffect]).inquiries_too());
    assert_eq!(bounded(list()).await.unwrap().status, 502);
    server.set_faults(FaultPlan::none().on("GET /v1/refunds", Fault::ErrorAfterEffect));
    assert_eq!(bounded(list()).await.unwrap().status, 500);
    assert_eq!(bounded(list()).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_script_is_answered_word_for_word_and_everything_else_is_loud() {
    let (server, bank) = (ScriptedServer::start(), Bank::new());
    let client = client();
    let moved = bank.clone();
    let lost = Reply::new(200)
        .json("{}")
        .fault(Fault::HalfBodyAfterEffect)
        .effect(move |request| {
            let money = Money::from_minor(2000, Currency::USD);
            let movement = Movement::new(OperationKind::Charge, request.text(), "script", "pi_1", money);
            moved.record(movement);
        });
    server
        .reply("POST /v1/payment_intents", lost)
        .reply(
            "POST /v1/payment_intents",
            Reply::new(200).json("<nil>").header("X-Odd", "yes"),
        )
        .reply("GET /never", Reply::new(204))
        .always("GET /v1/events/*", |request| Reply::new(200).body(request.path.clone()));
    let post = || {
        Answer::of(
            client
                .post(format!("{}/v1/payment_intents", server.url()))
                .body("order-1"),
        )
    };
    let get = |path: &str| Answer::of(client.get(format!("{}{path}", server.url())));

    assert_eq!(seen(&bounded(post()).await), Seen::HalfBody);
    assert_eq!(bank.charged("order-1"), 1);
    let second = bounded(post()).await.unwrap();
    assert_eq!((second.text.as_str(), second.header("X-Odd")), ("<nil>", Some("yes")));
    for _ in 0..2 {
        assert_eq!(
            bounded(get("/v1/events/evt_1?a=b")).await.unwrap().text,
            "/v1/events/evt_1?a=b"
        );
    }
    let third = bounded(post()).await.unwrap();
    assert_eq!(third.status, 501);
    assert!(third.text.contains("POST /v1/payment_intents"), "{}", third.text);
    assert_eq!(server.unexpected(), ["POST /v1/payment_intents"]);
    assert_eq!(server.left_over(), ["GET /never"]);
    assert_eq!(server.count("POST /v1/payment_intents"), 3);
    bounded(server.stop_listening()).await;
    assert!(bounded(post()).await.unwrap_err().is_connect());
}
