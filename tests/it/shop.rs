//! A shop with one gateway in process: what most tests of the engine start from.

use payonce::clock::{Clock, Timestamp};
use payonce::engine::{Builder, Payments};
use payonce::journal::{Journal, MemoryJournal};
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use payonce::testing::{Bank, ManualClock, MockGateway};
use std::sync::Arc;

/// 2026-01-01T00:00:00Z, the present of all tests.
pub(crate) const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) payments: Payments,
    pub(crate) gateway: MockGateway,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<ManualClock>,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        Self::on(Arc::new(MemoryJournal::new()), MockGateway::new(), change)
    }

    pub(crate) fn on(journal: Arc<dyn Journal>, gateway: MockGateway, change: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = Arc::new(ManualClock::at(NOW));
        let builder = Payments::builder()
            .namespace("shop1")
            .gateway(Arc::new(gateway.clone()))
            .journal(Arc::clone(&journal))
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .jitter_seed(1);
        Self {
            payments: change(builder).build().unwrap(),
            gateway,
            journal,
            clock,
        }
    }

    /// A second process on the same journal, at the same time and gateway.
    pub(crate) fn another_process(&self) -> Self {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let other = Self::on(Arc::clone(&self.journal), self.gateway.clone(), |builder| {
            builder.clock(clock)
        });
        Self {
            clock: Arc::clone(&self.clock),
            ..other
        }
    }

    pub(crate) fn bank(&self) -> &Bank {
        self.gateway.bank()
    }
}

pub(crate) fn usd(text: &str) -> Money {
    Money::parse(text, Currency::USD).unwrap()
}

/// Op A: a charge of 20.00 USD.
pub(crate) fn charge(reference: &str) -> Operation {
    Operation::charge(reference, usd("20.00")).unwrap()
}

#[track_caller]
pub(crate) fn assert_is(outcome: &Outcome, word: &str) {
    assert_eq!(outcome.as_str(), word, "{outcome:?}");
}
