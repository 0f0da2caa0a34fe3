//! What a call through `Payments` costs beside the same request written by hand with reqwest.
//!
//! `cargo bench --bench overhead`: CPU time of this process alone (the server is a process of its own), both ways in
//! turns within one run, at concurrency 1 and 32. The figure to keep is a ratio of at most 1.10.

#![allow(
    clippy::unwrap_used,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement stops at whatever is unexpected, and prints figures"
)]

use cpu_time::ProcessTime;
use payonce::engine::Payments;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::journal::MemoryJournal;
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const ROUNDS: usize = 15;
const CALLS: usize = 1_024;

fn main() {
    if std::env::args().any(|argument| argument == "--serve") {
        return serve();
    }
    let (mut server, base_url) = start_server();
    for concurrency in [1, 32] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let (by_hand, through) = runtime.block_on(measure(&base_url, concurrency));
        let ratio = through.as_secs_f64() / by_hand.as_secs_f64();
        println!(
            "concurrency {concurrency:>2}: by hand {:>6.1} us, through Payments {:>6.1} us of CPU a call, ratio {ratio:.3} (at most 1.10)",
            micros(by_hand),
            micros(through),
        );
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

fn micros(of_a_round: Duration) -> f64 {
    of_a_round.as_secs_f64() * 1e6 / CALLS as f64
}

/// The medians of both ways, taken in turns so that the machine's moods hit both.
async fn measure(base_url: &str, concurrency: usize) -> (Duration, Duration) {
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(3))
        .build()
        .unwrap();
    let stripe = Stripe::builder("sk_test_bench").base_url(base_url).build().unwrap();
    let payments = Payments::builder()
        .namespace("bench/test")
        .gateway(Arc::new(stripe))
        .journal(Arc::new(MemoryJournal::new()))
        .build()
        .unwrap();
    let (mut hand, mut through) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let started = ProcessTime::now();
        crowd(concurrency, round, |id| {
            by_hand(client.clone(), base_url.to_owned(), id)
        })
        .await;
        let first = started.elapsed();
        let started = ProcessTime::now();
        crowd(concurrency, round, |id| through_payments(payments.clone(), id)).await;
        let second = started.elapsed();
        // The first round opens connections and warms caches.
        if round > 0 {
            hand.push(first);
            through.push(second);
        }
    }
    hand.sort_unstable();
    through.sort_unstable();
    (hand[ROUNDS / 2], through[ROUNDS / 2])
}

async fn crowd<F>(concurrency: usize, round: usize, call: impl Fn(String) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut under_way = JoinSet::new();
    for number in 0..CALLS {
        if under_way.len() >= concurrency {
            under_way.join_next().await.unwrap().unwrap();
        }
        under_way.spawn(call(format!("order-{concurrency}-{round}-{number}")));
    }
    while let Some(done) = under_way.join_next().await {
        done.unwrap();
    }
}

/// What a careful caller reads of the answer, and no more.
#[derive(serde::Deserialize)]
struct Intent {
    id: String,
    status: String,
    amount_received: i64,
    currency: String,
    latest_charge: Option<String>,
    metadata: HashMap<String, String>,
}

async fn by_hand(client: reqwest::Client, base_url: String, id: String) {
    let key = format!("charge-{id}");
    let body = format!(
        "amount=2000&currency=usd&payment_method=pm_card_visa&confirm=true&metadata[payonce_key]={key}&metadata[payonce_reference]={id}&payment_method_types[0]=card"
    );
    let response = client
        .post(format!("{base_url}/v1/payment_intents"))
        .header("authorization", "Bearer sk_test_bench")
        .header("idempotency-key", &key)
        .header("stripe-version", "2026-09-30.endive")
        .header("content-type", "application/x-www-form-urlencoded")
        .timeout(Duration::from_secs(15))
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let intent: Intent = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert!(intent.id.starts_with("pi_") && intent.status == "succeeded" && intent.latest_charge.is_some());
    assert!(intent.amount_received == 2000 && intent.currency == "usd");
    assert_eq!(intent.metadata.get("payonce_key"), Some(&key));
}

async fn through_payments(payments: Payments, id: String) {
    let order = Operation::charge(id, Money::from_minor(2000, Currency::USD))
        .unwrap()
        .with(StripeOptions::payment_method("pm_card_visa"));
    let outcome = payments.execute(&order).await.unwrap();
    assert!(matches!(outcome, Outcome::Succeeded(_)), "{outcome:?}");
}

fn start_server() -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("--serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    (child, format!("http://{}", line.trim()))
}

/// A PaymentIntent with all its fields, as Stripe sends it.
const SUCCEEDED: &str = include_str!("../tests/fixtures/stripe/payment_intent/succeeded.json");

/// Answers every request as a succeeded PaymentIntent with the key that it carried. Ends when its parent is gone.
fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{}", listener.local_addr().unwrap());
        std::io::stdout().flush().unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(connection(stream));
        }
    });
}

async fn connection(mut stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    loop {
        let (head, length) = loop {
            if let Some(request) = complete(&buffer) {
                break request;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let key = header(&head, "idempotency-key").unwrap_or_default();
        let mark = format!("\"payonce_key\": \"{key}\"");
        let body = SUCCEEDED.replacen("\"operation_id\": \"op-0001\"", &mark, 1);
        buffer.drain(..length);
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nrequest-id: req_1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The head of a complete request at the front of `buffer`, and the request's length.
fn complete(buffer: &[u8]) -> Option<(String, usize)> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
    let body: usize = header(&head, "content-length").map_or(0, |length| length.parse().unwrap());
    (buffer.len() >= end + body).then_some((head, end + body))
}

fn header(head: &str, name: &str) -> Option<String> {
    head.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(':')
            .map(|value| value.trim().to_owned())
    })
}
