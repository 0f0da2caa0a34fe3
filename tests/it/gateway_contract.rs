//! All gateways keep the contract.

use crate::shop::charge;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::TwoC2p;
use payonce::testing::server::{FakeStripe, FakeTwoC2p};
use payonce::testing::{Bank, MockGateway, conformance};

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
