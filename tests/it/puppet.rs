//! A gateway whose answers the test gives by hand, in the order it likes.

use async_trait::async_trait;
use payonce::failure::Failure;
use payonce::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use payonce::operation::{GatewayRef, Operation, OperationKey, OperationKind};
use payonce::outcome::{Outcome, Succeeded};
use payonce::record::{Instruction, Record};
use payonce::retry::{Absence, Promise, SameKey};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

type Answer = Result<Outcome, Failure>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Puppet {
    waiting: Arc<Mutex<Vec<oneshot::Sender<Answer>>>>,
    sends: Arc<Mutex<Vec<OperationKey>>>,
    inquiries: Arc<Mutex<VecDeque<oneshot::Receiver<Outcome>>>>,
    asked: Arc<AtomicUsize>,
}

impl Puppet {
    /// Every send so far.
    pub(crate) fn sends(&self) -> usize {
        self.sends.lock().unwrap().len()
    }

    /// Waits until so many sends have come in all.
    pub(crate) async fn sent(&self, times: usize) {
        for _ in 0..2_000 {
            if self.sends() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("only {} sends", self.sends());
    }

    /// Answers the oldest send that has no answer yet.
    pub(crate) fn answer(&self, answer: Answer) {
        let waiting = self.waiting.lock().unwrap().remove(0);
        waiting.send(answer).unwrap();
    }

    /// The next inquiry is answered when the test says so. Those that nothing is said of find nothing.
    pub(crate) fn next_inquiry(&self) -> oneshot::Sender<Outcome> {
        let (sender, answer) = oneshot::channel();
        self.inquiries.lock().unwrap().push_back(answer);
        sender
    }

    /// Waits until so many inquiries have come in all.
    pub(crate) async fn asked(&self, times: usize) {
        for _ in 0..2_000 {
            if self.asked.load(Ordering::SeqCst) >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("not asked");
    }

    /// Answers the newest send.
    pub(crate) fn answer_last(&self, answer: Answer) {
        let waiting = self.waiting.lock().unwrap().pop().unwrap();
        waiting.send(answer).unwrap();
    }

    pub(crate) fn paid(id: &str, amount: payonce::money::Money) -> Outcome {
        let mut succeeded = Succeeded::new(Some(amount));
        succeeded.gateway_ref = Some(GatewayRef::new(id));
        Outcome::Succeeded(succeeded)
    }
}

#[async_trait]
impl Gateway for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn prepare(&self, key: OperationKey, _operation: &Operation) -> Result<Prepared, Refusal> {
        Ok(Prepared::new(key.to_string()))
    }

    fn promise(&self, _kind: OperationKind) -> Promise {
        Promise::new(
            SameKey::Replays {
                within: Duration::from_secs(23 * 3600),
            },
            Absence::Inconclusive,
        )
    }

    async fn send(&self, instruction: &Instruction) -> Answer {
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap().push(sender);
        self.sends.lock().unwrap().push(instruction.key());
        answer.await.unwrap()
    }

    async fn inquire(&self, _record: &Record) -> Result<Inquiry, Failure> {
        let answer = self.inquiries.lock().unwrap().pop_front();
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(match answer {
            Some(answer) => Inquiry::Found(answer.await.unwrap()),
            None => Inquiry::Absent { consistent: false },
        })
    }

    fn read_notification(&self, _raw: &RawNotification) -> Result<Notification, NotificationError> {
        Err(NotificationError::Signature)
    }
}
