//! Three hundred orders over both gateways and a network that loses a quarter of everything, judged by the bank.

use crate::shop::usd;
use crate::wired::{MERCHANT, MERCHANT_SECRET, STRIPE_KEY, thb};
use payonce::engine::Payments;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::{TwoC2p, TwoC2pOptions};
use payonce::journal::MemoryJournal;
use payonce::operation::{Operation, OperationKey, Target};
use payonce::outcome::Outcome;
use payonce::retry::RetryPolicy;
use payonce::testing::server::{FakeStripe, FakeTwoC2p};
use payonce::testing::{Bank, FaultPlan};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const ORDERS: usize = 300;
const AT_ONCE: usize = 16;
/// More rounds than any seed has needed; each asks about, or sends again, what is still open.
const ROUNDS: usize = 60;
const FAULTS_PER_MILLE: u16 = 250;

struct Soak {
    seed: u64,
    bank: Bank,
    payments: Payments,
    /// Their sockets live as long as they do.
    _gateways: (FakeStripe, FakeTwoC2p),
}

impl Soak {
    fn new(seed: u64) -> Self {
        let bank = Bank::new();
        let stripe = FakeStripe::start(bank.clone());
        let twoc2p = FakeTwoC2p::start(bank.clone(), MERCHANT, MERCHANT_SECRET);
        twoc2p.set_pays_at_once(true);
        stripe.set_faults(FaultPlan::seeded(seed, FAULTS_PER_MILLE).inquiries_too());
        twoc2p.set_faults(FaultPlan::seeded(seed.wrapping_add(1), FAULTS_PER_MILLE).inquiries_too());
        let at_stripe = Stripe::builder(STRIPE_KEY).base_url(stripe.base_url()).build();
        let at_2c2p = TwoC2p::builder(MERCHANT, MERCHANT_SECRET)
            .base_url(twoc2p.base_url())
            .build();
        let payments = Payments::builder()
            .namespace("soak/test")
            .gateway(Arc::new(at_stripe.unwrap()))
            .gateway(Arc::new(at_2c2p.unwrap()))
            .journal(Arc::new(MemoryJournal::new()))
            .policy(RetryPolicy {
                base: Duration::from_millis(1),
                cap: Duration::from_millis(4),
                ..RetryPolicy::default()
            })
            .inquiries(1_000_000, 1_000_000)
            .jitter_seed(seed)
            .build();
        Self {
            seed,
            bank,
            payments: payments.unwrap(),
            _gateways: (stripe, twoc2p),
        }
    }

    /// Runs the whole job, from the first operation to the last, until nothing of it is open. The job does not know
    /// what it has done before, and need not.
    async fn run(&self, job: &[Operation]) {
        for _ in 0..ROUNDS {
            let mut under_way: JoinSet<bool> = JoinSet::new();
            let mut again = 0;
            for operation in job {
                if under_way.len() >= AT_ONCE {
                    again += usize::from(!under_way.join_next().await.unwrap().unwrap());
                }
                let (payments, operation) = (self.payments.clone(), operation.clone());
                under_way.spawn(async move {
                    // An error is an operation of which nothing was executed: it is for the next round as well.
                    let result = payments.execute(&operation).await;
                    result.is_ok_and(|outcome| outcome.is_settled())
                });
            }
            while let Some(settled) = under_way.join_next().await {
                again += usize::from(!settled.unwrap());
            }
            if again == 0 {
                return;
            }
        }
        let open = self.payments.unresolved(ORDERS).await.unwrap();
        panic!("seed {}: still open after {ROUNDS} rounds: {open:#?}", self.seed);
    }

    async fn is_paid(&self, key: OperationKey) -> bool {
        let outcome = self.payments.look_up(key).await.unwrap();
        matches!(outcome, Some(Outcome::Succeeded(_)))
    }
}

fn order(number: usize) -> Operation {
    let reference = format!("order{number}");
    match number % 4 {
        0 | 1 => {
            let declined = number.is_multiple_of(20);
            let card = if declined {
                "pm_card_chargeDeclined"
            } else {
                "pm_card_visa"
            };
            Operation::charge(reference, usd("20.00"))
                .unwrap()
                .with(StripeOptions::payment_method(card))
        }
        2 => Operation::charge(reference, thb("2000.00")).unwrap().through("2c2p"),
        _ => Operation::charge(reference, thb("2000.00"))
            .unwrap()
            .with(TwoC2pOptions::new().payment_channels(["CC"]))
            .through("2c2p"),
    }
}

async fn soak(seed: u64) {
    let soak = Soak::new(seed);
    let orders: Vec<Operation> = (0..ORDERS).map(order).collect();
    soak.run(&orders).await;

    let mut refunds = Vec::new();
    for (number, order) in orders.iter().enumerate() {
        let key = soak.payments.key(order);
        let (paid, charged) = (soak.is_paid(key).await, soak.bank.charged(&key.to_string()));
        assert_eq!(
            usize::from(paid),
            charged,
            "seed {seed}: order {number}, {:?}",
            soak.bank
        );
        assert_eq!(paid, !number.is_multiple_of(20), "seed {seed}: order {number}");
        if paid && number.is_multiple_of(4) {
            let refund = Operation::refund(format!("refund{number}"), usd("5.00"), Target::Operation(key));
            refunds.push(refund.unwrap());
        }
    }
    soak.run(&refunds).await;
    for refund in &refunds {
        let key = soak.payments.key(refund);
        let given_back = soak.bank.refunded(refund.reference().as_str());
        assert!(soak.is_paid(key).await && given_back == 1, "seed {seed}: {refund:?}");
    }
    let (twice, moved) = (soak.bank.moved_twice(), soak.bank.movements().len());
    assert!(twice.is_empty(), "seed {seed}: {twice:?}");
    assert_eq!(
        moved,
        ORDERS - ORDERS / 20 + refunds.len(),
        "seed {seed}: {:?}",
        soak.bank
    );
    assert!(soak.payments.unresolved(1).await.unwrap().is_empty(), "seed {seed}");
}

macro_rules! seeds {
    ($($name:ident $seed:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            tokio::time::timeout(Duration::from_secs(120), soak($seed)).await.expect(stringify!($seed));
        }
    )*};
}

seeds! {
    three_hundred_orders_move_money_once_with_seed_11 11;
    three_hundred_orders_move_money_once_with_seed_22 22;
    three_hundred_orders_move_money_once_with_seed_33 33;
    three_hundred_orders_move_money_once_with_seed_44 44;
    three_hundred_orders_move_money_once_with_seed_55 55;
}
