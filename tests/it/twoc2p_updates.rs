//! Payment plans and stored cards at the fake of 2C2P, from `execute` down to the bytes on a socket. Its log of requests
//! judges, and what it keeps.

use crate::shop::{NOW, assert_is};
use crate::wired::{MERCHANT, MERCHANT_SECRET, bounded, policy};
use payonce::clock::Clock;
use payonce::engine::{Builder, Payments};
use payonce::error::Error;
use payonce::gateway::twoc2p::{
    CardExpiry, CardStore, ChargeDate, MaintenanceKeys, NewStoredCard, PlanChange, PlanTerms, StoredCardChange,
    StoredCardTerms, TwoC2p,
};
use payonce::journal::sqlite::SqliteJournal;
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::{FailureCategory, Outcome, UnknownReason};
use payonce::record::Source;
use payonce::secret::Secret;
use payonce::testing::server::{FakeTwoC2p, RecurringPlan};
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const ID: &str = "156142";
const NUMBER: &str = "4111111111111111";
const ADD: &str = "POST /customertoken/3.0/CustomerToken/add";
const UPDATE: &str = "POST /customertoken/3.0/CustomerToken/update";
const DELETE: &str = "POST /customertoken/3.0/CustomerToken/delete";
const GET: &str = "POST /customertoken/3.0/CustomerToken/get";

/// Every way to lose an answer to a request that was executed, but those that take their whole time-out.
const LOST: [Fault; 6] = [
    Fault::CloseAfterEffect,
    Fault::ResetAfterEffect,
    Fault::HalfHeadersAfterEffect,
    Fault::HalfBodyAfterEffect,
    Fault::ErrorAfterEffect,
    Fault::HtmlAfterEffect,
];

/// A shop with a journal in a file, at a 2C2P that keeps the plan 156142 over 99.90 baht.
struct Desk {
    twoc2p: FakeTwoC2p,
    folder: TempDir,
    journal: Arc<SqliteJournal>,
    clock: ManualClock,
}

impl Desk {
    fn new() -> Self {
        let twoc2p = FakeTwoC2p::start(Bank::new(), MERCHANT, MERCHANT_SECRET);
        let clock = ManualClock::at(NOW);
        twoc2p.set_clock(Arc::new(clock.clone()));
        twoc2p.add_plan(RecurringPlan::new(ID, thb(9990), 30).count(12).next_date("07032026"));
        let folder = tempfile::tempdir().unwrap();
        Self {
            journal: Arc::new(SqliteJournal::open(folder.path().join("journal")).unwrap()),
            twoc2p,
            folder,
            clock,
        }
    }

    fn account(&self) -> Arc<TwoC2p> {
        let keys = MaintenanceKeys::new(self.twoc2p.merchant_private_key(), self.twoc2p.gateway_certificate());
        let account = TwoC2p::builder(MERCHANT, MERCHANT_SECRET)
            .base_url(self.twoc2p.base_url())
            .maintenance_url(self.twoc2p.maintenance_url())
            .customer_token_url(self.twoc2p.customer_token_url())
            .maintenance_keys(keys.unwrap())
            .clock(self.clock());
        Arc::new(account.build().unwrap())
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    /// A process of the shop.
    fn process(&self, change: impl FnOnce(Builder) -> Builder) -> Payments {
        let account = self.account();
        let builder = Payments::builder()
            .namespace("shop1")
            .gateway(Arc::clone(&account) as _)
            .gateway(Arc::new(CardStore::of(account)))
            .journal(Arc::<SqliteJournal>::clone(&self.journal))
            .clock(self.clock())
            .inquiries(1000, 1000)
            .jitter_seed(1);
        change(builder).build().unwrap()
    }

    /// One that sends so often in a call.
    fn sending(&self, attempts: u32) -> Payments {
        self.process(|builder| builder.policy(policy(attempts)))
    }

    fn breaks(&self, faults: impl IntoIterator<Item = Fault>) {
        self.twoc2p.set_faults(FaultPlan::script(faults));
    }

    /// The process types of the requests about plans, in order.
    fn processes(&self) -> String {
        let requests = self.twoc2p.maintenance_requests();
        let types = requests.iter().map(|xml| {
            let (_, rest) = xml.split_once("<processType>").unwrap();
            rest.split_once('<').unwrap().0.to_owned()
        });
        types.collect()
    }

    /// What an update wants: 120.00 from the same day on.
    async fn terms(&self) -> PlanTerms {
        let plan = bounded(self.account().payment_plan(ID)).await.unwrap();
        let mut terms = plan.terms().unwrap();
        terms.amount = thb(12_000);
        terms
    }
}

fn thb(minor: i64) -> Money {
    Money::from_minor(minor, Currency::THB)
}

fn cancel() -> Operation {
    Operation::update("plan-42/cancel", PlanChange::cancel(ID)).unwrap()
}

fn update(terms: PlanTerms) -> Operation {
    Operation::update("plan-42/price-2026", PlanChange::update(ID, terms)).unwrap()
}

fn terms() -> StoredCardTerms {
    StoredCardTerms::new("A Holder", CardExpiry::new(2030, 12).unwrap())
}

fn add() -> Operation {
    let card = NewStoredCard::new(NUMBER, terms());
    Operation::update("customer-7/card-1", StoredCardChange::add(card)).unwrap()
}

async fn execute(payments: &Payments, operation: &Operation) -> Outcome {
    bounded(payments.execute(operation)).await.unwrap()
}

async fn resolve(payments: &Payments, operation: &Operation) -> Outcome {
    bounded(payments.resolve(payments.key(operation))).await.unwrap()
}

#[track_caller]
fn token_of(outcome: &Outcome) -> Secret {
    assert_is(outcome, "succeeded");
    Secret::from(outcome.gateway_ref().unwrap().as_str())
}

#[tokio::test]
async fn a_lost_answer_to_a_cancel_is_resolved_by_inquiry_and_one_plan_is_cancelled() {
    for fault in LOST {
        let desk = Desk::new();
        let payments = desk.sending(1);
        desk.breaks([fault]);
        assert_is(&execute(&payments, &cancel()).await, "succeeded");
        assert_eq!(desk.processes(), "CI", "{fault:?}");
        assert!(desk.twoc2p.plan(ID).cancelled);
        let history = payments.history(payments.key(&cancel())).await.unwrap();
        assert_eq!(history.last().unwrap().source, Source::Inquiry, "{fault:?}");
        // Whoever calls again is told so, and nothing is sent.
        assert_is(&execute(&desk.sending(3), &cancel()).await, "succeeded");
        assert_eq!(desk.processes(), "CI");
    }
}

#[tokio::test]
async fn a_cancel_is_repeated_with_the_same_bytes_while_nobody_knows() {
    let desk = Desk::new();
    desk.breaks([Fault::CloseAfterEffect, Fault::CloseAfterEffect]);
    assert_is(&execute(&desk.sending(3), &cancel()).await, "succeeded");
    let sent = desk.twoc2p.maintenance_requests();
    assert_eq!(desk.processes(), "CCC");
    assert!(sent.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn a_cancel_that_did_not_arrive_is_sent_again_within_ten_minutes_and_not_after() {
    let desk = Desk::new();
    let payments = desk.sending(1);
    desk.breaks([Fault::CloseAfterReading]);
    let Outcome::Unknown(unknown) = execute(&payments, &cancel()).await else {
        panic!("the plan is as it was, which proves nothing yet");
    };
    assert_eq!(unknown.reason, UnknownReason::NotFoundYet);
    desk.clock.advance(Duration::from_secs(600));
    assert_is(&execute(&payments, &cancel()).await, "unknown");
    assert_eq!(desk.processes(), "CII");

    let desk = Desk::new();
    let payments = desk.sending(1);
    desk.breaks([Fault::CloseAfterReading]);
    assert_is(&execute(&payments, &cancel()).await, "unknown");
    desk.clock.advance(Duration::from_secs(599));
    assert_is(&execute(&desk.sending(1), &cancel()).await, "succeeded");
    assert_eq!(desk.processes(), "CIIC");
}

#[tokio::test]
async fn a_plan_that_is_active_after_five_minutes_and_two_looks_was_not_cancelled() {
    let desk = Desk::new();
    let payments = desk.sending(1);
    desk.breaks([Fault::CloseAfterReading]);
    assert_is(&execute(&payments, &cancel()).await, "unknown");
    for (seconds, word) in [(299, "unknown"), (1, "unknown"), (59, "unknown"), (1, "failed")] {
        desk.clock.advance(Duration::from_secs(seconds));
        let outcome = resolve(&payments, &cancel()).await;
        assert_is(&outcome, word);
        if let Outcome::Failed(failed) = outcome {
            assert_eq!(failed.category, FailureCategory::NotExecuted);
        }
    }
    assert!(!desk.twoc2p.plan(ID).cancelled);
    assert_is(&execute(&payments, &cancel()).await, "succeeded");
    assert!(desk.twoc2p.plan(ID).cancelled);
}

#[tokio::test]
async fn an_update_is_proven_by_a_plan_that_has_its_terms() {
    for fault in LOST {
        let desk = Desk::new();
        let operation = update(desk.terms().await);
        desk.breaks([fault]);
        assert_is(&execute(&desk.sending(1), &operation).await, "succeeded");
        assert_eq!(desk.processes(), "IIUI", "{fault:?}");
        let plan = desk.twoc2p.plan(ID);
        assert_eq!(
            (plan.amount, plan.count, plan.interval_days),
            (thb(12_000), 12, Some(30))
        );
        assert_eq!(plan.next_date.as_deref(), Some("07032026"));
    }
}

#[tokio::test]
async fn an_old_update_does_not_overwrite_a_newer_one() {
    let desk = Desk::new();
    let operation = update(desk.terms().await);
    let payments = desk.process(|builder| builder.policy(policy(1)).inquiries(0, 0));
    desk.breaks([Fault::CloseAfterEffect]);
    assert_is(&execute(&payments, &operation).await, "unknown");
    let newer = RecurringPlan::new(ID, thb(15_000), 30).count(12).next_date("07032026");
    desk.twoc2p.add_plan(newer.clone());
    let payments = desk.sending(3);
    // However often the plan is seen with other terms: that proves nothing.
    for _ in 0..12 {
        desk.clock.advance(Duration::from_secs(61));
        assert_is(&resolve(&payments, &operation).await, "unknown");
    }
    assert_is(&execute(&payments, &operation).await, "unknown");
    assert_eq!(desk.twoc2p.plan(ID), newer);
    assert_eq!(desk.processes().matches('U').count(), 1);
}

#[tokio::test]
async fn changes_are_refused_by_2c2p_or_kept_from_it() {
    let desk = Desk::new();
    let unknown_plan = Operation::update("a", PlanChange::cancel("1")).unwrap();
    let Outcome::Failed(failed) = execute(&desk.sending(3), &unknown_plan).await else {
        panic!("there is no such plan");
    };
    assert_eq!(failed.category, FailureCategory::NoSuchPayment);
    assert_eq!(desk.processes(), "C");
    let mut yen = desk.terms().await;
    yen.amount = Money::from_minor(100, Currency::JPY);
    let refused = bounded(desk.sending(3).execute(&update(yen))).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
    let mut dollars = desk.terms().await;
    dollars.amount = Money::from_minor(100, Currency::USD);
    let before = desk.twoc2p.plan(ID);
    assert_is(&execute(&desk.sending(3), &update(dollars)).await, "failed");
    assert_eq!(desk.twoc2p.plan(ID), before, "baht are not dollars");
    let mut next = desk.terms().await;
    next.next_charge = ChargeDate::new(2026, 4, 1).unwrap();
    let reused = bounded(desk.sending(3).execute(&update(next))).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
}

#[tokio::test]
async fn a_card_whose_answer_was_lost_is_never_stored_twice() {
    for fault in LOST {
        let desk = Desk::new();
        desk.breaks([fault]);
        let payments = desk.sending(3);
        let Outcome::Unknown(unknown) = execute(&payments, &add()).await else {
            panic!("nobody can know, after {fault:?}");
        };
        assert!(unknown.detail.contains("no call of 2C2P's tells"), "{}", unknown.detail);
        // At once, later, from another process, after inquiries, and where none may be made.
        assert_is(&execute(&payments, &add()).await, "unknown");
        assert_is(&execute(&desk.sending(3), &add()).await, "unknown");
        let silent = desk.process(|builder| builder.inquiries(0, 0));
        assert_is(&execute(&silent, &add()).await, "unknown");
        for _ in 0..8 {
            desk.clock.advance(Duration::from_secs(100));
            assert_is(&resolve(&payments, &add()).await, "unknown");
            assert_is(&execute(&silent, &add()).await, "unknown");
        }
        assert_eq!(desk.twoc2p.count(ADD), 1, "{fault:?}");
        assert_eq!(desk.twoc2p.stored_cards().len(), 1);
        assert_eq!(desk.twoc2p.requests().len(), 1, "there is nothing to ask");
    }
}

#[tokio::test]
async fn a_card_that_another_process_is_storing_is_left_to_it_after_its_lease_as_well() {
    let desk = Desk::new();
    let hold = desk.twoc2p.hold(ADD);
    let first = desk.sending(3);
    let storing = tokio::spawn({
        let first = first.clone();
        async move { first.execute(&add()).await }
    });
    bounded(hold.reached(1)).await;
    desk.clock.advance(Duration::from_secs(300));
    assert_is(&execute(&desk.sending(3), &add()).await, "unknown");
    hold.release();
    assert_is(&bounded(storing).await.unwrap().unwrap(), "succeeded");
    assert_is(&execute(&desk.sending(3), &add()).await, "succeeded");
    assert_eq!((desk.twoc2p.count(ADD), desk.twoc2p.stored_cards().len()), (1, 1));
}

#[tokio::test]
async fn a_card_is_stored_after_all_where_no_connection_came_about() {
    let desk = Desk::new();
    desk.twoc2p.stop_listening().await;
    let refused = bounded(desk.sending(2).execute(&add())).await;
    assert!(matches!(refused, Err(Error::Unreachable { .. })), "{refused:?}");
    desk.twoc2p.listen_again().await.unwrap();
    let token = token_of(&execute(&desk.sending(2), &add()).await);
    assert_eq!(desk.twoc2p.stored_cards(), [token.expose()]);
    let card = bounded(desk.account().stored_card(&token)).await.unwrap();
    assert_eq!(card.account_no.as_deref(), Some("411111XXXXXX1111"));
    assert!(card.terms().unwrap() == terms());
}

#[tokio::test]
async fn a_lost_update_of_a_card_is_proven_by_the_card_and_a_delete_is_not_by_its_absence() {
    let desk = Desk::new();
    let payments = desk.sending(1);
    let token = token_of(&execute(&payments, &add()).await);
    let mut renewed = terms();
    renewed.expiry = CardExpiry::new(2034, 2).unwrap();
    let change = StoredCardChange::update(token.clone(), renewed);
    let update = Operation::update("customer-7/card-1/renewed", change).unwrap();
    desk.breaks([Fault::CloseAfterEffect]);
    assert_is(&execute(&payments, &update).await, "succeeded");
    assert_eq!((desk.twoc2p.count(UPDATE), desk.twoc2p.count(GET)), (1, 1));

    let delete = |reference| Operation::update(reference, StoredCardChange::delete(token.clone())).unwrap();
    // It did not arrive: the card is there, and the next call deletes it.
    desk.breaks([Fault::CloseAfterReading]);
    assert_is(&execute(&payments, &delete("d-1")).await, "unknown");
    assert_eq!(desk.twoc2p.stored_cards().len(), 1);
    assert_is(&execute(&payments, &delete("d-1")).await, "succeeded");
    assert_eq!((desk.twoc2p.count(DELETE), desk.twoc2p.stored_cards().len()), (2, 0));

    // It arrived: no published code says that a token is gone, so that nobody knows.
    let token = token_of(
        &execute(
            &payments,
            &Operation::update(
                "customer-7/card-2",
                StoredCardChange::add(NewStoredCard::new(NUMBER, terms())),
            )
            .unwrap(),
        )
        .await,
    );
    let delete = Operation::update("d-2", StoredCardChange::delete(token)).unwrap();
    desk.breaks([Fault::CloseAfterEffect]);
    assert_is(&execute(&payments, &delete).await, "unknown");
    assert_is(&execute(&payments, &delete).await, "unknown");
    assert!(desk.twoc2p.stored_cards().is_empty());
}

#[tokio::test]
async fn a_refusal_with_an_unpublished_code_ends_nothing_and_is_not_tried_again() {
    let desk = Desk::new();
    desk.twoc2p.next_stored_card_code("add", "4202");
    let Outcome::Unknown(unknown) = execute(&desk.sending(3), &add()).await else {
        panic!("no such code is published");
    };
    assert!(unknown.detail.contains("4202"), "{}", unknown.detail);
    assert_eq!(desk.twoc2p.count(ADD), 1);
}

#[tokio::test]
async fn no_card_is_stored_through_a_shop_without_a_card_store() {
    let desk = Desk::new();
    let payments = Payments::builder()
        .namespace("shop1")
        .gateway(desk.account())
        .journal(Arc::<SqliteJournal>::clone(&desk.journal))
        .build()
        .unwrap();
    let refused = bounded(payments.execute(&add())).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let refused = bounded(payments.execute(&add().through("2c2p"))).await;
    assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
    assert!(desk.twoc2p.requests().is_empty());
}

#[tokio::test]
async fn the_journal_s_file_has_nothing_of_the_card() {
    let desk = Desk::new();
    desk.breaks([Fault::CloseAfterEffect]);
    assert_is(&execute(&desk.sending(3), &add()).await, "unknown");
    let other = NewStoredCard::new(NUMBER, terms());
    let other = Operation::update("customer-7/card-2", StoredCardChange::add(other)).unwrap();
    let token = token_of(&execute(&desk.sending(3), &other).await);
    let change = StoredCardChange::update(token.clone(), terms());
    assert_is(
        &execute(&desk.sending(3), &Operation::update("u", change).unwrap()).await,
        "succeeded",
    );
    let mut bytes = Vec::new();
    for file in std::fs::read_dir(desk.folder.path()).unwrap() {
        bytes.extend(std::fs::read(file.unwrap().path()).unwrap());
    }
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(has(token.expose()), "the token is the outcome's id");
    for secret in [NUMBER, "411111", "A Holder", "2030-12"] {
        assert!(!has(secret), "{secret}");
    }
}
