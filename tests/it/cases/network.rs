//! Cases C68, C69 and C71: answers that are too large, that ask for patience, or that come from a box in between.

use super::stripe::Intents;
use crate::shop::{NOW, assert_is};
use crate::wired::{
    INQUIRY, INTENTS, K1, TOKEN, Wired, finds_nothing, impatient, invoice, of, op_a, policy, reads_fail,
};
use payonce::clock::Clock;
use payonce::error::Error;
use payonce::failure::FailureKind;
use payonce::journal::MemoryJournal;
use payonce::outcome::Outcome;
use payonce::testing::server::{Reply, ScriptedServer};
use payonce::testing::{Fault, ManualClock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BOMB: &[u8] = include_bytes!("../../fixtures/transport/bomb_32MiB.json.gz");
const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn c68_a_small_answer_that_inflates_is_no_answer() {
    for (encoding, reason) in [(Some("gzip"), "larger than the limit"), (None, "not in Stripe's form")] {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        let bomb = Reply::new(200).header("Content-Type", "application/json").body(BOMB);
        let bomb = match encoding {
            Some(encoding) => bomb.header("Content-Encoding", encoding),
            None => bomb,
        };
        intents.next(&server, bomb);
        reads_fail(&server);
        let shop = Wired::stripe(server.url());
        let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
            panic!("taken for an answer")
        };
        assert!(unknown.detail.contains(reason), "{}", unknown.detail);
        assert!(unknown.detail.len() < 512);
        assert_eq!(server.count(INTENTS), 1, "it would only come again");

        finds_nothing(&server);
        assert_is(&shop.pay(&op_a()).await, "succeeded");
        assert_eq!(intents.count(), 1);
    }
}

/// Answers every POST with spaces, a mebibyte at a time and with a pause after each, and everything else with 503.
/// Returns its address and the number of bytes that were taken.
async fn start_flood(pause: Duration) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that hangs up is what is wanted here.
            tokio::spawn(flood(stream, pause, Arc::clone(&counter)));
        }
    });
    (url, taken)
}

async fn flood(mut stream: TcpStream, pause: Duration, taken: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut request = vec![0; 16 * 1024];
    let read = stream.read(&mut request).await?;
    if !request[..read].starts_with(b"POST") {
        let busy = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(busy).await;
    }
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).await?;
    let spaces = vec![b' '; MIB];
    for _ in 0..64 {
        stream.write_all(format!("{MIB:x}\r\n").as_bytes()).await?;
        stream.write_all(&spaces).await?;
        stream.write_all(b"\r\n").await?;
        taken.fetch_add(MIB, Ordering::SeqCst);
        tokio::time::sleep(pause).await;
    }
    stream.write_all(b"0\r\n\r\n").await
}

#[tokio::test]
async fn c68_an_answer_without_end_ends_by_the_limit_or_by_the_deadline() {
    for (pause, reason) in [
        (Duration::ZERO, "larger than the limit"),
        // A mebibyte a second: the time for the exchange is over before the limit is reached.
        (Duration::from_secs(1), "not complete in time"),
    ] {
        let (url, taken) = start_flood(pause).await;
        let shop = Wired::stripe(url).with(|builder| builder.policy(impatient(1)));
        let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
            panic!("taken for an answer")
        };
        assert!(unknown.detail.contains(reason), "{}", unknown.detail);
        // What the system's own buffers hold comes on top.
        assert!(taken.load(Ordering::SeqCst) < 32 * MIB);
    }
}

const LIMITED: &str = r#"{"error":{"type":"invalid_request_error","code":"rate_limit"}}"#;

fn limited(values: &[&str]) -> Reply {
    let reply = Reply::new(429).json(LIMITED);
    values
        .iter()
        .fold(reply, |reply, value| reply.header("Retry-After", *value))
}

/// A shop at 2026-01-01T00:00:00.400Z.
fn shop_at_400_ms(server: &ScriptedServer) -> Wired {
    let clock = ManualClock::at(NOW.after(Duration::from_millis(400)));
    let site = crate::wired::Site {
        stripe: Some(server.url()),
        ..crate::wired::Site::default()
    };
    Wired::on(site, Arc::new(MemoryJournal::new()), clock, |builder| builder)
}

#[tokio::test]
async fn c69_retry_after_is_waited_for_in_whatever_form_it_comes() {
    let (backoff, asked) = (0..=500, |millis: u64| millis..=millis);
    for (values, expected) in [
        (&["2"][..], asked(2000)),
        (&["0"], backoff.clone()),
        (&[" 2 "], asked(2000)),
        (&["Thu, 01 Jan 2026 00:00:05 GMT"], asked(4600)),
        (&["Thursday, 01-Jan-26 00:00:05 GMT"], asked(4600)),
        (&["Thu Jan  1 00:00:05 2026"], asked(4600)),
        (&["Wed, 31 Dec 2025 23:59:00 GMT"], backoff.clone()),
        (&["-5"], backoff.clone()),
        (&["+5"], backoff.clone()),
        (&["1.5"], backoff.clone()),
        (&["abc"], backoff.clone()),
        (&["999999999999999999999"], backoff.clone()),
        (&["2", "9"], asked(9000)),
        (&["60"], asked(60_000)),
        (&[], backoff.clone()),
    ] {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        server.reply(INTENTS, limited(values));
        let shop = shop_at_400_ms(&server).with(|builder| {
            builder.policy(payonce::retry::RetryPolicy {
                deadline: Duration::from_secs(120),
                ..policy(3)
            })
        });
        assert_is(&shop.pay(&op_a()).await, "succeeded");
        let waits: Vec<_> = shop.clock.sleeps().iter().map(Duration::as_millis).collect();
        assert_eq!(waits.len(), 1, "{values:?}");
        let wait = u64::try_from(waits[0]).unwrap();
        assert!(expected.contains(&wait), "{values:?}: {wait} ms");
        assert_eq!(intents.count(), 1);
    }
}

#[tokio::test]
async fn c69_nobody_sleeps_a_day() {
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.answer_at(&server);
    server.reply(INTENTS, limited(&["86400"]));
    let shop = shop_at_400_ms(&server);
    let error = shop.try_pay(&op_a()).await.unwrap_err();
    assert!(matches!(error, Error::Refused { attempts: 1, .. }), "{error:?}");
    assert!(error.is_retryable());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(86_400)));
    assert!(shop.clock.sleeps().is_empty());

    shop.clock.advance(Duration::from_secs(86_400));
    assert_is(&shop.pay(&op_a()).await, "succeeded");
    let posts = of(server.requests(), INTENTS);
    assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
    assert_eq!((posts.len(), intents.count()), (2, 1));
}

#[tokio::test]
async fn c69_after_a_lost_answer_a_day_s_patience_leaves_it_unknown() {
    let (server, intents) = (ScriptedServer::start(), Intents::default());
    intents.next(&server, Reply::new(200).fault(Fault::CloseAfterEffect));
    server.reply(INTENTS, limited(&["86400"]));
    reads_fail(&server);
    let shop = shop_at_400_ms(&server);
    let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
        panic!("decided")
    };
    assert!(unknown.detail.contains("asks to wait too long"), "{}", unknown.detail);
    assert!(shop.clock.sleeps().iter().all(|wait| *wait < Duration::from_secs(60)));
    assert_eq!((server.count(INTENTS), intents.count()), (2, 1));
}

/// What proxies, portals and firewalls answer in the place of a gateway.
fn boxes() -> [Reply; 6] {
    [
        Reply::new(403).html("Access denied"),
        Reply::new(407)
            .header("Proxy-Authenticate", "Basic")
            .body("Proxy Authentication Required"),
        Reply::new(200).html("<html>Login to WiFi</html>"),
        Reply::new(200).json(r#"{"ok":true}"#),
        Reply::new(451).body("Unavailable For Legal Reasons"),
        Reply::new(302).header("Location", "https://portal.example/login"),
    ]
}

#[tokio::test]
async fn c71_a_box_in_front_of_stripe_decides_nothing() {
    for (number, reply) in boxes().into_iter().enumerate() {
        let (server, intents) = (ScriptedServer::start(), Intents::default());
        intents.answer_at(&server);
        server.reply(INTENTS, reply);
        for lookup in boxes() {
            server.reply("GET /v1/payment_intents", lookup);
        }
        let shop = Wired::stripe(server.url());
        assert_is(&shop.pay(&op_a()).await, "unknown");
        assert_eq!(
            server.count(INTENTS),
            1,
            "box {number}: not sent again before it was asked about"
        );

        // The box is gone, and nothing had reached Stripe.
        finds_nothing(&server);
        let mut outcome = shop.pay(&op_a()).await;
        for _ in 0..6 {
            if outcome.is_settled() {
                break;
            }
            outcome = shop.pay(&op_a()).await;
        }
        assert_is(&outcome, "succeeded");
        let posts = of(server.requests(), INTENTS);
        assert!(posts.iter().all(|post| post.header("Idempotency-Key") == Some(K1)));
        assert_eq!(intents.count(), 1);
    }
}

#[tokio::test]
async fn c71_a_box_in_front_of_2c2p_decides_nothing() {
    for (number, reply) in boxes().into_iter().enumerate() {
        let server = ScriptedServer::start();
        server.reply(TOKEN, reply);
        for inquiry in boxes() {
            server.reply(INQUIRY, inquiry);
        }
        let shop = Wired::twoc2p(format!("{}/payment/4.3", server.url()));
        for _ in 0..2 {
            assert_is(&shop.resolve_or_pay(&invoice("2000.00")).await, "unknown");
        }
        assert_eq!(server.count(TOKEN), 1, "box {number}");
        let words: Vec<_> = shop.history(&invoice("2000.00")).await;
        assert!(words.iter().all(|line| line.to == "sending" || line.to == "unknown"));
    }
}

#[tokio::test]
async fn c71_without_a_tls_connection_nothing_is_sent() {
    let server = ScriptedServer::start();
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let shop = Wired::stripe(format!("https://localhost:{port}"));
    let error = shop.try_pay(&op_a()).await.unwrap_err();
    let Error::Unreachable {
        failure, attempts: 3, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (failure.kind(), failure.may_have_executed()),
        (FailureKind::Connect, false)
    );
    assert!(error.is_retryable());
    assert!(server.requests().is_empty());
    assert!(shop.clock.now() > NOW, "it did wait between its attempts");
}
