//! Refunds and cancellations at 2C2P under losses that a seed chooses, from two processes at once. The bank judges.

use crate::shop::NOW;
use crate::wired::{MERCHANT, MERCHANT_SECRET, Wired, bounded, impatient};
use payonce::money::{Currency, Money};
use payonce::operation::{GatewayRef, Operation, OperationKind, Target};
use payonce::outcome::Outcome;
use payonce::reconcile::Reconciler;
use payonce::testing::server::{FakeTwoC2p, RefundRows};
use payonce::testing::{Bank, Fault, FaultPlan};
use std::sync::Arc;
use std::time::Duration;

const SEEDS: u64 = 40;
const MINUTE: Duration = Duration::from_secs(60);

const LOSSES: [Fault; 9] = [
    Fault::CloseAfterReading,
    Fault::ResetAfterReading,
    Fault::CloseAfterEffect,
    Fault::ResetAfterEffect,
    Fault::HalfBodyAfterEffect,
    Fault::HtmlBeforeEffect,
    Fault::HtmlAfterEffect,
    Fault::ErrorBeforeEffect,
    Fault::ErrorAfterEffect,
];

fn thb(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

/// INV7001 over 100.00, paid by card.
struct Desk {
    twoc2p: FakeTwoC2p,
    shop: Wired,
    charge: Operation,
}

impl Desk {
    async fn new() -> Self {
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
        let shop = Wired::maintained(&twoc2p);
        twoc2p.set_clock(Arc::clone(&shop.clock) as _);
        assert_eq!(payonce::clock::Clock::now(&*shop.clock), NOW);
        let charge = Operation::charge("INV7001", thb("100.00")).unwrap();
        assert!(matches!(shop.pay(&charge).await, Outcome::Pending(_)));
        assert!(twoc2p.pay("INV7001"));
        assert!(matches!(shop.resolve(&charge).await, Outcome::Succeeded(_)));
        Self { twoc2p, shop, charge }
    }

    fn break_things(&self, seed: u64, per_mille: u16) {
        let plan = FaultPlan::seeded(seed, per_mille).choosing(LOSSES);
        // Looks get lost as well, in every other seed.
        self.twoc2p.set_faults(if seed.is_multiple_of(2) {
            plan.inquiries_too()
        } else {
            plan
        });
    }

    fn another_process(&self) -> Wired {
        self.shop.another_process(|builder| builder.policy(impatient(2)))
    }

    /// How often the refund of this operation was made.
    fn made(&self, operation: &Operation) -> usize {
        self.twoc2p.bank().refunded(&self.shop.key(operation))
    }
}

#[tokio::test]
async fn refunds_of_one_amount_from_two_processes_are_each_made_once_and_told_apart() {
    for seed in 0..SEEDS {
        let desk = Desk::new().await;
        assert!(desk.twoc2p.settle("INV7001"));
        let rows = [RefundRows::Bare, RefundRows::WithUserDefined];
        desk.twoc2p.set_refund_rows(rows[usize::from(seed % 3 == 0)]);
        let by_key = Target::Operation(desk.shop.payments.key(&desk.charge));
        let by_invoice = Target::Gateway(GatewayRef::new("INV7001"));
        let refunds = [
            Operation::refund("r-1", thb("25.00"), by_key.clone()).unwrap(),
            Operation::refund("r-2", thb("25.00"), by_invoice).unwrap(),
            Operation::refund("r-3", thb("25.00"), by_key).unwrap(),
        ];
        let (one, two) = (desk.another_process(), desk.another_process());
        desk.break_things(seed, 500);
        for round in 0..3 {
            let (first, second, third) = tokio::join!(
                one.payments.execute(&refunds[0]),
                two.payments.execute(&refunds[1]),
                one.payments.execute(&refunds[2]),
            );
            for (refund, told) in refunds.iter().zip([first, second, third]) {
                let made = desk.made(refund);
                assert!(made <= 1, "seed {seed}, round {round}: made {made} times");
                match told {
                    Ok(Outcome::Succeeded(_)) => assert_eq!(made, 1, "seed {seed}, round {round}: {refund:?}"),
                    Ok(Outcome::Failed(failed)) => panic!("seed {seed}, round {round}: {failed:?}"),
                    Ok(Outcome::Conflict(conflict)) => panic!("seed {seed}, round {round}: {conflict:?}"),
                    Ok(Outcome::Pending(_) | Outcome::Unknown(_)) | Err(_) => {}
                }
            }
            desk.shop.clock.advance(MINUTE);
        }
        // The network is whole again: everything is known in the end, and to the amount.
        desk.twoc2p.set_faults(FaultPlan::none());
        for (refund, shop) in refunds.iter().zip([&one, &two, &one]) {
            let outcome = shop.pay(refund).await;
            assert!(matches!(outcome, Outcome::Succeeded(_)), "seed {seed}: {outcome:?}");
            assert_eq!(desk.made(refund), 1, "seed {seed}");
        }
        let bank = desk.twoc2p.bank();
        assert_eq!(
            bank.total(OperationKind::Refund, "INV7001"),
            7500,
            "seed {seed}: {bank:?}"
        );
        let mut ids: Vec<_> = Vec::new();
        for refund in &refunds {
            let outcome = one.look_up(refund).await.unwrap();
            ids.push(outcome.gateway_ref().unwrap().to_string());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "seed {seed}: a row was taken for two refunds");
    }
}

#[tokio::test]
async fn a_payment_that_is_cancelled_from_everywhere_is_given_back_once_one_way_or_the_other() {
    for seed in 0..SEEDS {
        let desk = Desk::new().await;
        let target = Target::Operation(desk.shop.payments.key(&desk.charge));
        let void = Operation::void("void-1", target).unwrap();
        let (one, two) = (desk.another_process(), desk.another_process());
        desk.break_things(seed, 400);
        if seed % 4 == 0 {
            desk.twoc2p.next_maintenance_code("V", "21");
        }
        for round in 0..3 {
            // The acquirer's batch runs in between.
            if round == seed % 3 {
                desk.twoc2p.settle("INV7001");
            }
            let cancelled = tokio::join!(
                one.payments.cancel(&void),
                two.payments.cancel(&void),
                one.payments.cancel(&void),
                two.payments.execute(&void),
            );
            drop(cancelled);
            let bank = desk.twoc2p.bank();
            let back = bank.voided("INV7001") + bank.refunded("INV7001");
            assert!(back <= 1, "seed {seed}, round {round}: {bank:?}");
            desk.shop.clock.advance(MINUTE * 3);
        }
        desk.twoc2p.set_faults(FaultPlan::none());
        for _ in 0..3 {
            let _whatever = one.payments.cancel(&void).await.unwrap();
            bounded(Reconciler::new(two.payments.clone()).run_once()).await.unwrap();
            desk.shop.clock.advance(MINUTE * 20);
        }
        let outcome = one.payments.cancel(&void).await.unwrap();
        let bank = desk.twoc2p.bank();
        let back = bank.voided("INV7001") + bank.refunded("INV7001");
        assert_eq!(back, 1, "seed {seed}: {outcome:?} {bank:?}");
        assert!(matches!(outcome, Outcome::Succeeded(_)), "seed {seed}: {outcome:?}");
        assert!(bank.total(OperationKind::Refund, "INV7001") <= 10_000);
    }
}
