//! Notifications that contradict, come late, or are about something else.

use crate::shop::{NOW, Shop, assert_is, charge, usd};
use async_trait::async_trait;
use payonce::clock::Clock;
use payonce::engine::Payments;
use payonce::failure::{Failure, FailureKind};
use payonce::gateway::{About, Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use payonce::inbound::{InboundError, Intake};
use payonce::journal::MemoryJournal;
use payonce::operation::{GatewayRef, Operation, OperationKey, OperationKind, Target};
use payonce::outcome::{Failed, FailureCategory, Outcome, Succeeded};
use payonce::record::{Instruction, Record, Recorded};
use payonce::retry::{Absence, Promise, RetryPolicy, SameKey};
use payonce::testing::MockGateway;
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn a_contradiction_that_could_not_be_asked_about_is_asked_about_when_it_comes_again() {
    let shop = Shop::new();
    shop.gateway.succeeds("order-1").inquiries_fail(1);
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "succeeded");
    let body = format!("failed {}", shop.payments.key(&charge("order-1")));
    let raw = RawNotification::new(Vec::new(), body.into_bytes(), NOW);
    let error = shop.payments.notify("mock", &raw).await.unwrap_err();
    assert!(matches!(error, InboundError::TryAgain(_)), "{error:?}");
    let Intake::Taken { outcome, .. } = shop.payments.notify("mock", &raw).await.unwrap() else {
        panic!("not taken");
    };
    assert_is(&outcome, "succeeded");
    assert_eq!(shop.gateway.inquiries().len(), 2);
}

/// A gateway that refuses to void what was paid meanwhile, and then says by its own id alone that it was paid.
#[derive(Debug)]
struct PaidMeanwhile;

#[async_trait]
impl Gateway for PaidMeanwhile {
    fn name(&self) -> &'static str {
        "paid"
    }

    fn prepare(&self, key: OperationKey, _operation: &Operation) -> Result<Prepared, Refusal> {
        Ok(Prepared::new(key.to_string()))
    }

    fn promise(&self, _kind: OperationKind) -> Promise {
        Promise::new(SameKey::Executes, Absence::Inconclusive)
    }

    async fn send(&self, _instruction: &Instruction) -> Result<Outcome, Failure> {
        let mut failed = Failed::new(FailureCategory::AlreadyDone);
        failed.gateway_ref = Some(GatewayRef::new("pi_1"));
        Ok(Outcome::Failed(failed))
    }

    async fn inquire(&self, _record: &Record) -> Result<Inquiry, Failure> {
        Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time"))
    }

    fn read_notification(&self, _raw: &RawNotification) -> Result<Notification, NotificationError> {
        let mut notification = Notification::new("evt_1", "payment.succeeded");
        notification.about.push(About::GatewayRef(GatewayRef::new("pi_1")));
        let mut succeeded = Succeeded::new(Some(usd("20.00")));
        succeeded.gateway_ref = Some(GatewayRef::new("pi_1"));
        notification.says = Some(Outcome::Succeeded(succeeded));
        Ok(notification)
    }
}

#[tokio::test]
async fn what_is_said_of_a_payment_is_not_taken_for_the_void_that_acts_on_it() {
    let payments = Payments::builder()
        .namespace("shop1")
        .gateway(Arc::new(PaidMeanwhile))
        .journal(Arc::new(MemoryJournal::new()))
        .build()
        .unwrap();
    let void = Operation::void("void-1", Target::Gateway(GatewayRef::new("pi_1"))).unwrap();
    assert_is(&payments.execute(&void).await.unwrap(), "failed");
    let raw = RawNotification::new(Vec::new(), Vec::new(), NOW);
    let intake = payments.notify("paid", &raw).await;
    assert!(matches!(intake, Ok(Intake::Ignored { .. })), "{intake:?}");
    let key = payments.key(&void);
    assert_is(&payments.look_up(key).await.unwrap().unwrap(), "failed");
}

/// A gateway that tells somebody else what it knows while it is being asked.
#[derive(Debug)]
struct TellsOthersFirst {
    mock: MockGateway,
    other: Mutex<Option<Payments>>,
    told: Mutex<Option<Recorded>>,
}

#[async_trait]
impl Gateway for TellsOthersFirst {
    fn name(&self) -> &'static str {
        self.mock.name()
    }

    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        self.mock.prepare(key, operation)
    }

    fn promise(&self, kind: OperationKind) -> Promise {
        self.mock.promise(kind)
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        self.mock.send(instruction).await
    }

    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure> {
        let other = self.other.lock().unwrap().take();
        if let Some(other) = other {
            let raw = RawNotification::new(Vec::new(), format!("succeeded {}", record.key()).into_bytes(), NOW);
            let Ok(Intake::Taken { recorded, .. }) = other.notify("mock", &raw).await else {
                panic!("not taken");
            };
            *self.told.lock().unwrap() = Some(recorded);
        }
        self.mock.inquire(record).await
    }

    fn read_notification(&self, raw: &RawNotification) -> Result<Notification, NotificationError> {
        self.mock.read_notification(raw)
    }
}

#[tokio::test]
async fn of_two_who_hear_of_a_change_at_a_time_one_is_told_that_it_is_the_first() {
    let shop = Shop::with(|builder| {
        builder.policy(RetryPolicy {
            attempts: 1,
            ..RetryPolicy::default()
        })
    });
    shop.gateway.answer_lost_after_effect("order-1").inquiries_fail(1);
    assert_is(&shop.payments.execute(&charge("order-1")).await.unwrap(), "unknown");
    let gateway = Arc::new(TellsOthersFirst {
        mock: shop.gateway.clone(),
        other: Mutex::new(Some(shop.payments.clone())),
        told: Mutex::default(),
    });
    let asking = Payments::builder()
        .namespace("shop1")
        .gateway(Arc::clone(&gateway) as Arc<dyn Gateway>)
        .journal(Arc::clone(&shop.journal))
        .clock(Arc::clone(&shop.clock) as Arc<dyn Clock>)
        .build()
        .unwrap();
    let hint = format!("look {}", shop.payments.key(&charge("order-1")));
    let raw = RawNotification::new(Vec::new(), hint.into_bytes(), NOW);
    let Intake::Taken { outcome, recorded, .. } = asking.notify("mock", &raw).await.unwrap() else {
        panic!("not taken");
    };
    assert_is(&outcome, "succeeded");
    let told = gateway.told.lock().unwrap().take().unwrap();
    assert_eq!((told, recorded), (Recorded::First, Recorded::Already));
}

#[tokio::test]
async fn who_hears_first_that_money_moved_is_told_so_although_the_gateway_cannot_be_asked() {
    let shop = Shop::new();
    shop.gateway.declines("order-1", "do_not_honor").inquiries_fail(1);
    let declined = shop.payments.execute(&charge("order-1")).await.unwrap();
    assert_is(&declined, "failed");
    let body = format!("succeeded {}", shop.payments.key(&charge("order-1")));
    let raw = RawNotification::new(Vec::new(), body.into_bytes(), NOW);
    let Intake::Taken { outcome, recorded, .. } = shop.payments.notify("mock", &raw).await.unwrap() else {
        panic!("ignored")
    };
    assert_is(&outcome, "succeeded");
    assert_eq!(recorded, Recorded::First);
}
