//! All gateways keep the contract.

use crate::shop::{NOW, charge, usd};
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::TwoC2p;
use payonce::gateway::{Gateway, RawNotification};
use payonce::money::{Currency, Money};
use payonce::operation::{Namespace, Operation};
use payonce::testing::conformance::Wire;
use payonce::testing::server::{FakeStripe, FakeTwoC2p};
use payonce::testing::{Bank, MockGateway, conformance, reserved};
use payonce::transport::{Http, Transport};
use std::sync::Arc;

const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";

#[tokio::test]
async fn the_mock_keeps_it() {
    let mock = MockGateway::new();
    mock.always_succeeds();
    conformance::gateway(&mock, mock.bank(), "order-", charge, &[]).await;
}

#[tokio::test]
async fn stripe_keeps_it() {
    let bank = Bank::new();
    let fake = FakeStripe::start(bank.clone());
    let key = "sk_test_TESTONLYcases0001";
    let stripe = Stripe::builder(key).base_url(fake.base_url()).build().unwrap();
    let card = |reference: &str| charge(reference).with(StripeOptions::payment_method("pm_card_visa"));
    conformance::gateway(&stripe, &bank, "order-", card, &[key]).await;
}

#[tokio::test]
async fn twoc2p_keeps_it() {
    let bank = Bank::new();
    let fake = FakeTwoC2p::start(bank.clone(), "TESTM01", SECRET);
    fake.set_pays_at_once(true);
    let twoc2p = TwoC2p::builder("TESTM01", SECRET)
        .base_url(fake.base_url())
        .build()
        .unwrap();
    conformance::gateway(&twoc2p, &bank, "order-", charge, &[SECRET]).await;
}

fn http() -> Arc<dyn Transport> {
    Arc::new(Http::new().unwrap())
}

fn thb(minor: i64) -> Money {
    Money::from_minor(minor, Currency::THB)
}

#[tokio::test]
async fn stripe_keeps_it_on_a_bad_network() {
    let bank = Bank::new();
    let fake = FakeStripe::start(bank.clone());
    let key = "sk_test_TESTONLYcases0001";
    let url = fake.base_url();
    let wire = Wire::new(
        http(),
        bank,
        move |network| {
            let stripe = Stripe::builder(key).base_url(&url).transport(network);
            Arc::new(stripe.build().unwrap())
        },
        |reference, amount| {
            let charge = Operation::charge(reference, amount).unwrap();
            charge.with(StripeOptions::payment_method("pm_card_visa"))
        },
    );
    wire.amounts([
        thb(123_456),
        usd("0.57"),
        usd("999999.99"),
        Money::parse("500", Currency::JPY).unwrap(),
    ])
    .secret(key)
    .check()
    .await;
}

#[tokio::test]
async fn twoc2p_keeps_it_on_a_bad_network() {
    let bank = Bank::new();
    let fake = FakeTwoC2p::start(bank.clone(), "TESTM01", SECRET);
    fake.set_pays_at_once(true);
    let url = fake.base_url();
    let build = move |network| -> Arc<dyn Gateway> {
        let twoc2p = TwoC2p::builder("TESTM01", SECRET).base_url(&url).transport(network);
        Arc::new(twoc2p.build().unwrap())
    };
    // A backend callback about a charge of its own.
    let paid = build(http());
    let order = charge("callback1");
    let key = Namespace::new("conformance/test").unwrap();
    let (_, instruction) = reserved(paid.as_ref(), &key, &order, NOW).unwrap();
    let _ = paid.send(&instruction).await.unwrap();
    let callback = RawNotification::new(Vec::new(), fake.callback("callback1"), NOW);
    let wire = Wire::new(http(), bank, build, |reference, amount| {
        Operation::charge(reference, amount).unwrap()
    });
    wire.amounts([
        thb(123_456),
        usd("0.57"),
        usd("1234567.89"),
        Money::parse("500", Currency::JPY).unwrap(),
    ])
    .secret(SECRET)
    .notification(callback)
    .check()
    .await;
}
