//! Field cases at 2C2P's maintenance API: voids, settlements, refunds and second opinions, from `execute` down to the
//! bytes on a socket. The fake's bank judges, and what it could open of the requests.

mod bad_input;
mod opinions;
mod refunds;
mod sealed;
mod settlements;
mod voids;

use crate::wired::{MERCHANT, MERCHANT_SECRET, Wired};
use payonce::engine::Builder;
use payonce::gateway::twoc2p::TwoC2pOptions;
use payonce::money::{Currency, Money};
use payonce::operation::{Operation, Target};
use payonce::outcome::{Failed, Outcome};
use payonce::testing::Bank;
use payonce::testing::server::FakeTwoC2p;
use std::sync::Arc;
use std::time::Duration;

const ACTION: &str = "POST /PaymentAction/2.0/action";
const MINUTE: Duration = Duration::from_secs(60);

fn thb(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

/// A shop with maintenance keys at the fake of 2C2P, on one clock.
struct Desk {
    twoc2p: FakeTwoC2p,
    shop: Wired,
}

impl Desk {
    fn new() -> Self {
        Self::with(|builder| builder)
    }

    fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
        let shop = Wired::maintained(&twoc2p).with(change);
        twoc2p.set_clock(Arc::clone(&shop.clock) as _);
        Self { twoc2p, shop }
    }

    fn bank(&self) -> Bank {
        self.twoc2p.bank()
    }

    /// A charge of 100.00 for INV7001, paid by card on the page and not settled yet.
    async fn paid(&self) -> Operation {
        let charge = Operation::charge("INV7001", thb("100.00")).unwrap();
        self.pay(charge).await
    }

    /// The same, and settled.
    async fn settled(&self) -> Operation {
        let charge = self.paid().await;
        assert!(self.twoc2p.settle("INV7001"));
        charge
    }

    /// An authorization of 100.00 for INV7001.
    async fn authorized(&self) -> Operation {
        let authorize = Operation::authorize("INV7001", thb("100.00")).unwrap();
        self.pay(authorize.with(TwoC2pOptions::new().transaction_mode("PREAUTH")))
            .await
    }

    async fn pay(&self, operation: Operation) -> Operation {
        crate::shop::assert_is(&self.shop.pay(&operation).await, "pending");
        assert!(self.twoc2p.pay("INV7001"));
        crate::shop::assert_is(&self.shop.resolve(&operation).await, "succeeded");
        operation
    }

    fn on(&self, payment: &Operation) -> Target {
        Target::Operation(self.shop.payments.key(payment))
    }

    fn refund(&self, reference: &str, amount: &str, payment: &Operation) -> Operation {
        Operation::refund(reference, thb(amount), self.on(payment)).unwrap()
    }

    fn void(&self, payment: &Operation) -> Operation {
        Operation::void("void-1", self.on(payment)).unwrap()
    }

    fn capture(&self, amount: &str, payment: &Operation) -> Operation {
        Operation::capture("capture-1", thb(amount), self.on(payment)).unwrap()
    }

    /// The process types of the requests so far, in order.
    fn processes(&self) -> Vec<String> {
        let requests = self.twoc2p.maintenance_requests();
        requests
            .iter()
            .map(|xml| element(xml, "processType").unwrap_or_default())
            .collect()
    }

    /// The requests of one process type.
    fn requests(&self, process: &str) -> Vec<String> {
        let requests = self.twoc2p.maintenance_requests().into_iter();
        requests
            .filter(|xml| element(xml, "processType").as_deref() == Some(process))
            .collect()
    }
}

/// The text of the first element of this name.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.to_owned())
}

#[track_caller]
fn failed(outcome: Outcome) -> Failed {
    match outcome {
        Outcome::Failed(failed) => failed,
        other => panic!("not failed: {other:?}"),
    }
}
