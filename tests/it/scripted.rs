//! A gateway that a test writes as two functions, and that keeps what was sent.

use async_trait::async_trait;
use payonce::Payments;
use payonce::failure::Failure;
use payonce::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use payonce::journal::MemoryJournal;
use payonce::operation::{Operation, OperationKey, OperationKind};
use payonce::outcome::Outcome;
use payonce::record::{Instruction, Record};
use payonce::retry::{Absence, Promise, RetryPolicy, SameKey};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Send = dyn Fn(&Instruction) -> Result<Outcome, Failure> + std::marker::Send + Sync;
type Inquire = dyn Fn(&Record) -> Result<Inquiry, Failure> + std::marker::Send + Sync;

pub(crate) struct Scripted {
    send: Box<Send>,
    inquire: Box<Inquire>,
    sent: Mutex<Vec<Operation>>,
}

impl Scripted {
    pub(crate) fn new(
        send: impl Fn(&Instruction) -> Result<Outcome, Failure> + std::marker::Send + Sync + 'static,
        inquire: impl Fn(&Record) -> Result<Inquiry, Failure> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self {
            send: Box::new(send),
            inquire: Box::new(inquire),
            sent: Mutex::default(),
        }
    }

    /// A shop at it, with a journal in memory and one attempt a call.
    pub(crate) fn shop(self: &Arc<Self>) -> Payments {
        Payments::builder()
            .namespace("shop/test")
            .gateway(Arc::<Self>::clone(self))
            .journal(Arc::new(MemoryJournal::new()))
            .policy(RetryPolicy {
                attempts: 1,
                ..RetryPolicy::default()
            })
            .build()
            .unwrap()
    }

    /// Every operation that was sent, in order.
    pub(crate) fn sent(&self) -> Vec<Operation> {
        self.sent.lock().unwrap().clone()
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

#[async_trait]
impl Gateway for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn prepare(&self, key: OperationKey, _operation: &Operation) -> Result<Prepared, Refusal> {
        Ok(Prepared::new(key.to_string()))
    }

    fn promise(&self, _kind: OperationKind) -> Promise {
        let within = Duration::from_secs(3600);
        Promise::new(SameKey::Replays { within }, Absence::Inconclusive)
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        self.sent.lock().unwrap().push(instruction.operation().clone());
        (self.send)(instruction)
    }

    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure> {
        (self.inquire)(record)
    }

    fn read_notification(&self, _raw: &RawNotification) -> Result<Notification, NotificationError> {
        Err(NotificationError::Signature)
    }
}
