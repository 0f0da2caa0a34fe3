//! What is computed for each call: the key with the fingerprint of a 20-field charge (under 5 microseconds), and
//! verifying and reading a 2C2P inquiry answer (under 50 microseconds). `cargo bench --bench derivation`.

#![allow(
    clippy::unwrap_used,
    clippy::float_arithmetic,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "a measurement stops at whatever is unexpected, and prints figures"
)]

use payonce::clock::Timestamp;
use payonce::gateway::twoc2p::TwoC2p;
use payonce::gateway::{Gateway, RawNotification};
use payonce::money::{Currency, Money};
use payonce::operation::{Namespace, Operation};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Printed by 2C2P for its shared demo merchant JT01.
const JT01_SECRET: &str = "ECC4E54DBA738857B84A7EBC6B5DC7187B8DA68750E88AB53AAA41F548D6F2D9";

fn main() {
    let namespace = Namespace::new("shop-th/live").unwrap();
    let mut charge = Operation::charge("order-1042", Money::from_minor(200_000, Currency::THB))
        .unwrap()
        .description("Two tickets for the evening show");
    for number in 0..15 {
        charge = charge.metadata(format!("field_{number:02}"), format!("value of field {number}"));
    }
    let twoc2p = TwoC2p::builder("JT01", JT01_SECRET).build().unwrap();
    let body = include_bytes!("../tests/fixtures/twoc2p/callback/backend-failed-4081.real43.resigned.json");
    let answer = RawNotification::new(Vec::new(), body.to_vec(), Timestamp::from_unix_seconds(0));
    report("key and fingerprint of a 20-field charge", 5.0, || {
        black_box((black_box(&charge).key(&namespace), charge.fingerprint()));
    });
    // A callback has the claims of an inquiry's answer, and is verified and read by the same code.
    report("verifying and reading a 2C2P inquiry answer", 50.0, || {
        black_box(twoc2p.read_notification(black_box(&answer)).unwrap());
    });
}

/// The fastest of many short runs: what the code costs when the machine lets it.
fn report(what: &str, limit: f64, mut run: impl FnMut()) {
    const BATCH: u32 = 1_000;
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let started = Instant::now();
        for _ in 0..BATCH {
            run();
        }
        best = best.min(started.elapsed());
    }
    let micros = best.as_secs_f64() * 1e6 / f64::from(BATCH);
    println!("{what}: {micros:.2} us (under {limit} us)");
}
