//! What the application does: a charge at one gateway, its refund, and a refund at the other.

use super::points::{Point, Reaper, Watched, Wire};
use crate::stores;
use crate::wired::{MERCHANT, MERCHANT_SECRET, policy};
use payonce::Payments;
use payonce::clock::Clock;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::money::{Currency, Money};
use payonce::operation::{Operation, Target};
use payonce::testing::Bank;
use payonce::testing::server::FakeTwoC2p;
use payonce::transport::{Http, Transport};
use std::sync::Arc;

/// Where everything is, for another process.
#[derive(Clone, Debug)]
pub(super) struct Doors {
    /// As [`stores`] names it.
    pub(super) journal: String,
    pub(super) stripe: String,
    pub(super) twoc2p: String,
    pub(super) maintenance: String,
}

impl Doors {
    pub(super) fn to_line(&self) -> String {
        [&self.journal, &self.stripe, &self.twoc2p, &self.maintenance]
            .map(String::as_str)
            .join("\n")
    }

    pub(super) fn parse(line: &str) -> Self {
        let mut parts = line.split('\n').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        Self {
            journal: next(),
            stripe: next(),
            twoc2p: next(),
            maintenance: next(),
        }
    }
}

pub(super) struct Job {
    pub(super) payments: Payments,
}

impl Job {
    /// With `death`, the process does not outlive that passing of that point.
    pub(super) async fn new(doors: &Doors, clock: Arc<dyn Clock>, death: Option<(Point, usize)>) -> Self {
        let mut journal = stores::open(&doors.journal).await;
        let mut network: Arc<dyn Transport> = Arc::new(Http::new().unwrap());
        if let Some((point, pass)) = death {
            let reaper = Reaper::new(point, pass);
            journal = Arc::new(Watched {
                journal,
                reaper: Arc::clone(&reaper),
            });
            network = Arc::new(Wire { network, reaper });
        }
        let stripe = Stripe::builder("sk_test_TESTONLYcrash0001")
            .base_url(&doors.stripe)
            .transport(Arc::clone(&network))
            .clock(Arc::clone(&clock));
        // The keys of every fake are the same.
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET)
            .account()
            .base_url(&doors.twoc2p)
            .maintenance_url(&doors.maintenance)
            .transport(network)
            .clock(Arc::clone(&clock));
        let payments = Payments::builder()
            .namespace("shop1")
            .gateway(Arc::new(stripe.build().unwrap()))
            .gateway(Arc::new(twoc2p.build().unwrap()))
            .journal(journal)
            .clock(clock)
            .policy(policy(3))
            .build()
            .unwrap();
        Self { payments }
    }

    /// The payment at 2C2P that the job gives a part of back.
    pub(super) fn page_order(&self) -> Operation {
        let amount = Money::parse("100.00", Currency::THB).unwrap();
        Operation::charge("INV7001", amount).unwrap().through("2c2p")
    }

    /// All of it, each step only when the one before has succeeded, and what each came to.
    pub(super) async fn run(&self) -> Vec<&'static str> {
        let usd = |text| Money::parse(text, Currency::USD).unwrap();
        let charge = Operation::charge("order-1", usd("20.00")).unwrap();
        let charge = charge.with(StripeOptions::payment_method("pm_card_visa"));
        let on = |payment: &Operation| Target::Operation(self.payments.key(payment));
        let refund = Operation::refund("refund-1", usd("5.00"), on(&charge)).unwrap();
        let part = Money::parse("30.00", Currency::THB).unwrap();
        let other = Operation::refund("refund-2", part, on(&self.page_order())).unwrap();
        let mut words = Vec::new();
        for operation in [charge, refund, other] {
            match self.payments.execute(&operation).await {
                Ok(outcome) => words.push(outcome.as_str()),
                Err(_) => words.push("error"),
            }
            if words.last() != Some(&"succeeded") {
                break;
            }
        }
        words
    }
}
