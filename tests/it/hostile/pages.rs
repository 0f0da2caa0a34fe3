//! Payers who pay on every page that they were ever given.

use crate::shop::{NOW, assert_is, charge};
use payonce::clock::Clock;
use payonce::engine::Payments;
use payonce::error::Error;
use payonce::gateway::RawNotification;
use payonce::gateway::twoc2p::TwoC2p;
use payonce::inbound::Intake;
use payonce::journal::MemoryJournal;
use payonce::outcome::Outcome;
use payonce::reconcile::Reconciler;
use payonce::retry::RetryPolicy;
use payonce::testing::server::FakeTwoC2p;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";
const MINUTE: Duration = Duration::from_secs(60);

/// A shop at 2C2P, whose inquiries know of payments and not of pages.
struct Pages {
    payments: Payments,
    fake: FakeTwoC2p,
    clock: Arc<ManualClock>,
}

impl Pages {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let fake = FakeTwoC2p::start(Bank::new(), "TESTM01", SECRET);
        fake.set_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        fake.set_unpaid_code("2002");
        fake.set_expired_code("2002");
        let gateway = TwoC2p::builder("TESTM01", SECRET)
            .base_url(fake.base_url())
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .build()
            .unwrap();
        let payments = Payments::builder()
            .namespace("shop1")
            .gateway(Arc::new(gateway))
            .journal(Arc::new(MemoryJournal::new()))
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .policy(RetryPolicy {
                attempts: 1,
                ..RetryPolicy::default()
            })
            .build()
            .unwrap();
        Self { payments, fake, clock }
    }

    /// The payer pays on the first page, after having been given a second one where that is allowed.
    async fn pay_all_pages(&self) -> usize {
        let second = charge("INV7001").attempt(NonZeroU32::new(2).unwrap());
        if let Err(error) = self.payments.execute(&second).await {
            assert!(matches!(error, Error::AttemptOpen { attempt: 1, .. }), "{error:?}");
        }
        for invoice in self.fake.invoices() {
            self.fake.pay(&invoice);
        }
        self.fake.bank().movements().len()
    }
}

#[tokio::test]
async fn a_page_that_a_late_send_opened_is_not_called_expired_while_the_payer_can_pay() {
    let shop = Pages::new();
    shop.fake.set_faults(FaultPlan::script([Fault::CloseAfterReading]));
    assert_is(&shop.payments.execute(&charge("INV7001")).await.unwrap(), "unknown");
    shop.clock.advance(MINUTE * 60);
    let Outcome::Pending(page) = shop.payments.execute(&charge("INV7001")).await.unwrap() else {
        panic!("no page was opened");
    };
    assert_eq!(page.expires_at, Some(shop.clock.now().after(MINUTE * 30)));
    let reconciler = Reconciler::new(shop.payments.clone());
    for _ in 0..6 {
        shop.clock.advance(MINUTE * 3);
        reconciler.run_once().await.unwrap();
    }
    let key = shop.payments.key(&charge("INV7001"));
    assert_is(&shop.payments.look_up(key).await.unwrap().unwrap(), "pending");
    assert_eq!(shop.pay_all_pages().await, 1);
}

#[tokio::test]
async fn an_old_decline_that_comes_after_the_page_has_closed_is_asked_about() {
    let shop = Pages::new();
    assert_is(&shop.payments.execute(&charge("INV7001")).await.unwrap(), "pending");
    assert!(shop.fake.decline("INV7001", "4051"));
    let declined = shop.fake.callback("INV7001");
    shop.clock.advance(MINUTE * 29);
    assert!(shop.fake.pay("INV7001"));
    shop.clock.advance(MINUTE * 20);
    let raw = RawNotification::new(Vec::new(), declined, shop.clock.now());
    let Intake::Taken { outcome, .. } = shop.payments.notify("2c2p", &raw).await.unwrap() else {
        panic!("not taken");
    };
    assert_is(&outcome, "succeeded");
    assert_eq!(shop.pay_all_pages().await, 1);
}
