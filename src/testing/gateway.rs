//! A gateway in process, scripted in one line a behaviour.

use super::{Bank, Movement};
use crate::failure::{Failure, FailureKind};
use crate::gateway::{About, Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use crate::money::Money;
use crate::operation::{Fingerprint, GatewayRef, Operation, OperationKey, OperationKind};
use crate::outcome::{Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded};
use crate::record::{Instruction, Record};
use crate::retry::{Absence, AfterAbsence, Promise, SameKey, Since};
use async_trait::async_trait;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// A [`Gateway`] that does what the test says, and nothing that it does not say.
///
/// Each script is for one reference; several for the same reference follow each other, one a send. A send with a key
/// that the gateway has executed is answered with the stored outcome, as Stripe does. A send that nothing was
/// scripted for panics and says so. Behind it stands a [`Bank`] that counts.
///
/// ```
/// use payonce::testing::MockGateway;
///
/// let gateway = MockGateway::new();
/// gateway.declines("order-1", "insufficient_funds");
/// gateway.answer_lost_after_effect("order-2");
/// gateway.answer_lost_before_effect("order-3").succeeds("order-3");
/// ```
#[derive(Clone)]
pub struct MockGateway {
    shared: Arc<Shared>,
}

struct Shared {
    bank: Bank,
    state: Mutex<Script>,
}

/// What is scripted, what was executed, and what was asked.
struct Script {
    steps: HashMap<String, VecDeque<Step>>,
    always: Option<Step>,
    executed: HashMap<OperationKey, Executed>,
    hidden: HashMap<String, u32>,
    blind: u32,
    blind_always: bool,
    promise: Promise,
    sends: Vec<Asked>,
    inquiries: Vec<Asked>,
}

/// What one send does.
#[derive(Clone, Debug)]
enum Step {
    Succeeds,
    Declines(String),
    WaitsForPayer,
    LostAfterEffect,
    LostBeforeEffect,
    Unreachable,
    Throttled(Option<Duration>),
    StillRunning,
    Duplicate,
    ServerFault(u16),
    Slow(Arc<Semaphore>),
}

#[derive(Clone, Debug)]
struct Executed {
    outcome: Outcome,
    gateway_ref: GatewayRef,
}

/// A question that the gateway was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The idempotency key.
    pub key: OperationKey,
    /// The merchant's reference.
    pub reference: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The fingerprint of the content.
    pub fingerprint: Fingerprint,
}

/// Lets a slow answer go; see [`MockGateway::slow`]. The money moves when it does.
#[derive(Debug)]
pub struct Release(Arc<Semaphore>);

impl Release {
    /// Lets one answer go.
    pub fn release(&self) {
        self.0.add_permits(1);
    }
}

impl Default for MockGateway {
    fn default() -> Self {
        Self::with_bank(Bank::new())
    }
}

impl MockGateway {
    /// A gateway with a bank of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A gateway before this bank.
    #[must_use]
    pub fn with_bank(bank: Bank) -> Self {
        let promise = Promise::new(
            SameKey::Replays {
                within: Duration::from_secs(23 * 3600),
            },
            Absence::After {
                since: Since::LastSend,
                quiet: Duration::from_secs(600),
                looks: 2,
                apart: Duration::from_secs(60),
                then: AfterAbsence::SendAgain,
            },
        );
        let script = Script {
            steps: HashMap::new(),
            always: None,
            executed: HashMap::new(),
            hidden: HashMap::new(),
            blind: 0,
            blind_always: false,
            promise,
            sends: Vec::new(),
            inquiries: Vec::new(),
        };
        Self {
            shared: Arc::new(Shared {
                bank,
                state: Mutex::new(script),
            }),
        }
    }

    /// The money moves, and the answer says so.
    pub fn succeeds(&self, reference: &str) -> &Self {
        self.then(reference, Step::Succeeds)
    }

    /// The issuer declines with this code.
    pub fn declines(&self, reference: &str, code: &str) -> &Self {
        self.then(reference, Step::Declines(code.to_owned()))
    }

    /// A page opens; the money moves when the test calls [`MockGateway::pay`].
    pub fn waits_for_payer(&self, reference: &str) -> &Self {
        self.then(reference, Step::WaitsForPayer)
    }

    /// The money moves, and the answer is lost.
    pub fn answer_lost_after_effect(&self, reference: &str) -> &Self {
        self.then(reference, Step::LostAfterEffect)
    }

    /// Nothing happens, and the answer that would say so is lost.
    pub fn answer_lost_before_effect(&self, reference: &str) -> &Self {
        self.then(reference, Step::LostBeforeEffect)
    }

    /// No connection comes about.
    pub fn unreachable(&self, reference: &str) -> &Self {
        self.then(reference, Step::Unreachable)
    }

    /// A rate limiter turns the request away, with or without a time to wait.
    pub fn throttled(&self, reference: &str, retry_after: Option<Duration>) -> &Self {
        self.then(reference, Step::Throttled(retry_after))
    }

    /// The gateway says that the first request with this key is still running.
    pub fn still_running(&self, reference: &str) -> &Self {
        self.then(reference, Step::StillRunning)
    }

    /// The gateway says that it has seen this identity before.
    pub fn duplicate(&self, reference: &str) -> &Self {
        self.then(reference, Step::Duplicate)
    }

    /// The gateway reports a fault of its own; nothing was executed, but nobody can know that.
    pub fn server_fault(&self, reference: &str, status: u16) -> &Self {
        self.then(reference, Step::ServerFault(status))
    }

    /// The answer comes, and the money moves, when the returned handle lets it go.
    #[must_use]
    pub fn slow(&self, reference: &str) -> Release {
        let gate = Arc::new(Semaphore::new(0));
        self.then(reference, Step::Slow(Arc::clone(&gate)));
        Release(gate)
    }

    /// Every send for which nothing is scripted succeeds.
    pub fn always_succeeds(&self) -> &Self {
        self.script().always = Some(Step::Succeeds);
        self
    }

    /// Every send for which nothing is scripted meets a fault of the gateway.
    pub fn always_faults(&self, status: u16) -> &Self {
        self.script().always = Some(Step::ServerFault(status));
        self
    }

    /// The next `times` inquiries about `reference` find nothing, whatever happened.
    pub fn hidden_from_inquiries(&self, reference: &str, times: u32) -> &Self {
        self.script().hidden.insert(reference.to_owned(), times);
        self
    }

    /// The next `times` inquiries fail.
    pub fn inquiries_fail(&self, times: u32) -> &Self {
        self.script().blind = times;
        self
    }

    /// All inquiries fail, until told otherwise.
    pub fn inquiries_fail_always(&self, fail: bool) -> &Self {
        self.script().blind_always = fail;
        self
    }

    /// What the gateway promises about repeated keys and about "not found", for all kinds.
    pub fn promises(&self, promise: Promise) -> &Self {
        self.script().promise = promise;
        self
    }

    /// The payer pays on the page that `reference` opened.
    ///
    /// # Panics
    /// When no page is open for it.
    pub fn pay(&self, reference: &str) {
        let mut script = self.script();
        let asked = script
            .sends
            .iter()
            .rev()
            .find(|asked| asked.reference == reference)
            .cloned();
        let open = asked.and_then(|asked| {
            let executed = script.executed.get_mut(&asked.key)?;
            matches!(executed.outcome, Outcome::Pending(_)).then_some((asked, executed))
        });
        let Some((asked, executed)) = open else {
            fail(&format!("no page is open for {reference:?}"));
        };
        let amount = executed
            .outcome
            .evidence()
            .and_then(|evidence| evidence.details.get("amount").map(str::to_owned));
        let amount = amount.and_then(|text| read_amount(&text));
        executed.outcome = success(amount, &executed.gateway_ref);
        if let Some(amount) = amount {
            self.shared.bank.record(
                Movement::new(
                    OperationKind::Charge,
                    &*asked.reference,
                    "mock",
                    executed.gateway_ref.as_str(),
                    amount,
                )
                .with_key(Some(asked.key.to_string())),
            );
        }
    }

    /// The bank behind the gateway.
    #[must_use]
    pub fn bank(&self) -> &Bank {
        &self.shared.bank
    }

    /// Every send, in order.
    #[must_use]
    pub fn sends(&self) -> Vec<Asked> {
        self.script().sends.clone()
    }

    /// Every inquiry, in order.
    #[must_use]
    pub fn inquiries(&self) -> Vec<Asked> {
        self.script().inquiries.clone()
    }

    fn then(&self, reference: &str, step: Step) -> &Self {
        self.script()
            .steps
            .entry(reference.to_owned())
            .or_default()
            .push_back(step);
        self
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The step for this send: the scripted one, the stored answer, or a loud failure.
    fn next_step(&self, instruction: &Instruction) -> Result<Step, Box<Outcome>> {
        let operation = instruction.operation();
        let reference = operation.reference().as_str();
        let mut script = self.script();
        script.sends.push(Asked {
            key: instruction.key(),
            reference: reference.to_owned(),
            attempt: operation.attempt_number(),
            fingerprint: operation.fingerprint(),
        });
        let scripted = script.steps.get_mut(reference).and_then(VecDeque::pop_front);
        if let Some(executed) = script.executed.get(&instruction.key()) {
            // What was executed stays executed: only a fault can stand between it and its answer.
            return match scripted {
                Some(step @ (Step::LostBeforeEffect | Step::LostAfterEffect | Step::Unreachable)) => Ok(step),
                Some(step @ (Step::Throttled(_) | Step::StillRunning | Step::Duplicate | Step::ServerFault(_))) => {
                    Ok(step)
                }
                Some(Step::Succeeds | Step::Declines(_) | Step::WaitsForPayer | Step::Slow(_)) | None => {
                    Err(Box::new(replayed(executed.outcome.clone())))
                }
            };
        }
        let always = script.always.clone();
        drop(script);
        Ok(scripted.or(always).unwrap_or_else(|| {
            fail(&format!(
                "unscripted send: {} {reference:?}, attempt {}; say before it what the gateway does, such as \
                 gateway.succeeds({reference:?})",
                operation.kind(),
                operation.attempt_number(),
            ))
        }))
    }

    /// The effect: once a key.
    fn execute(&self, instruction: &Instruction, outcome: impl FnOnce(&GatewayRef) -> Outcome) -> Outcome {
        let operation = instruction.operation();
        let mut script = self.script();
        if let Some(executed) = script.executed.get(&instruction.key()) {
            return replayed(executed.outcome.clone());
        }
        let gateway_ref = GatewayRef::new(format!("mock_{}", script.executed.len() + 1));
        let outcome = outcome(&gateway_ref);
        if let (Outcome::Succeeded(_), Some(amount)) = (&outcome, movement_amount(operation)) {
            self.shared.bank.record(
                Movement::new(
                    operation.kind(),
                    operation.reference().as_str(),
                    "mock",
                    gateway_ref.as_str(),
                    amount,
                )
                .with_key(Some(instruction.key().to_string())),
            );
        }
        script.executed.insert(
            instruction.key(),
            Executed {
                outcome: outcome.clone(),
                gateway_ref,
            },
        );
        outcome
    }
}

#[async_trait]
impl Gateway for MockGateway {
    fn name(&self) -> &'static str {
        "mock"
    }

    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        let mut prepared = Prepared::new(key.to_string());
        let script = self.script();
        let steps = script.steps.get(operation.reference().as_str());
        let opens_page = steps.is_some_and(|steps| steps.iter().any(|step| matches!(step, Step::WaitsForPayer)));
        prepared.payable_for = opens_page.then_some(Duration::from_secs(30 * 60));
        Ok(prepared)
    }

    fn promise(&self, _kind: OperationKind) -> Promise {
        self.script().promise.clone()
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let step = match self.next_step(instruction) {
            Ok(step) => step,
            Err(replayed) => return Ok(*replayed),
        };
        let amount = instruction.operation().amount();
        let succeed = |gateway_ref: &GatewayRef| success(amount, gateway_ref);
        match step {
            Step::Succeeds => Ok(self.execute(instruction, succeed)),
            Step::Declines(code) => Ok(self.execute(instruction, |gateway_ref| declined(&code, gateway_ref))),
            Step::WaitsForPayer => Ok(self.execute(instruction, |gateway_ref| page(amount, gateway_ref))),
            Step::LostAfterEffect => {
                let _nobody_hears_it = self.execute(instruction, succeed);
                Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time"))
            }
            Step::LostBeforeEffect => Err(Failure::maybe_executed(FailureKind::Timeout, "no answer in time")),
            Step::Unreachable => Err(Failure::not_executed(
                FailureKind::Connect,
                "no connection to the gateway",
            )),
            Step::Throttled(wait) => {
                let failure = Failure::not_executed(FailureKind::Throttled, "too many requests");
                Err(failure.with_http_status(429).with_retry_after(wait))
            }
            Step::StillRunning => {
                let failure = Failure::maybe_executed(FailureKind::StillRunning, "the first request is still running");
                Err(failure.with_http_status(409))
            }
            Step::Duplicate => {
                Err(Failure::maybe_executed(FailureKind::Duplicate, "seen before").with_code("duplicate"))
            }
            Step::ServerFault(status) => {
                let failure = Failure::maybe_executed(FailureKind::ServerFault, "the gateway reports a fault");
                Err(failure.with_http_status(status))
            }
            Step::Slow(gate) => {
                // A gate that is gone lets go, so that no test hangs on it.
                let _permit = gate.acquire().await.map(tokio::sync::SemaphorePermit::forget);
                Ok(self.execute(instruction, succeed))
            }
        }
    }

    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure> {
        let mut script = self.script();
        let reference = record.reference().as_str();
        script.inquiries.push(Asked {
            key: record.key(),
            reference: reference.to_owned(),
            attempt: record.attempt(),
            fingerprint: record.fingerprint(),
        });
        if script.blind_always || script.blind > 0 {
            script.blind = script.blind.saturating_sub(1);
            let failure = Failure::maybe_executed(FailureKind::ServerFault, "the inquiry failed");
            return Err(failure.with_http_status(503));
        }
        if let Some(times) = script.hidden.get_mut(reference).filter(|times| **times > 0) {
            *times -= 1;
            return Ok(Inquiry::Absent { consistent: true });
        }
        Ok(match script.executed.get(&record.key()) {
            Some(executed) => Inquiry::Found(executed.outcome.clone()),
            None => Inquiry::Absent { consistent: true },
        })
    }

    /// Reads `succeeded <key>`, `failed <key>` and anything else followed by a key; the event's id is the whole body.
    fn read_notification(&self, raw: &RawNotification) -> Result<Notification, NotificationError> {
        let malformed = || NotificationError::Malformed("want a word and a key".to_owned());
        let body = std::str::from_utf8(&raw.body).map_err(|_| malformed())?;
        let (word, key) = body.split_once(' ').ok_or_else(malformed)?;
        let key = OperationKey::parse(key.split(' ').next().unwrap_or_default()).ok_or_else(malformed)?;
        let mut notification = Notification::new(body, word);
        notification.about.push(About::Key(key));
        let executed = self.script().executed.get(&key).cloned();
        let gateway_ref = executed.map_or_else(|| GatewayRef::new("mock_0"), |executed| executed.gateway_ref);
        notification.says = match word {
            "succeeded" => Some(success(None, &gateway_ref)),
            "failed" => Some(declined("notified", &gateway_ref)),
            _ => None,
        };
        Ok(notification)
    }
}

impl fmt::Debug for MockGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockGateway")
            .field("bank", &self.shared.bank)
            .finish_non_exhaustive()
    }
}

#[allow(
    clippy::panic,
    reason = "a test that asks for what it did not script must hear of it at once"
)]
fn fail(message: &str) -> ! {
    panic!("MockGateway: {message}")
}

fn movement_amount(operation: &Operation) -> Option<Money> {
    let nothing = Money::from_minor(0, crate::money::Currency::USD);
    operation
        .amount()
        .or((operation.kind() == OperationKind::Void).then_some(nothing))
}

fn success(amount: Option<Money>, gateway_ref: &GatewayRef) -> Outcome {
    let mut succeeded = Succeeded::new(amount);
    succeeded.gateway_ref = Some(gateway_ref.clone());
    Outcome::Succeeded(succeeded)
}

fn declined(code: &str, gateway_ref: &GatewayRef) -> Outcome {
    let mut failed = Failed::new(FailureCategory::Declined);
    failed.gateway_ref = Some(gateway_ref.clone());
    failed.decline_code = Some(code.to_owned());
    failed.evidence.code = Some("card_declined".to_owned());
    Outcome::Failed(failed)
}

fn page(amount: Option<Money>, gateway_ref: &GatewayRef) -> Outcome {
    let url = format!("https://mock.invalid/pay/{gateway_ref}").into();
    let mut pending = Pending::new(NextStep::Redirect { url });
    pending.gateway_ref = Some(gateway_ref.clone());
    let amount = amount.map(|amount| amount.to_string()).unwrap_or_default();
    pending.evidence.details.insert("amount", amount);
    Outcome::Pending(pending)
}

fn read_amount(text: &str) -> Option<Money> {
    let (amount, currency) = text.split_once(' ')?;
    Money::parse(amount, crate::money::Currency::parse(currency).ok()?).ok()
}

fn replayed(outcome: Outcome) -> Outcome {
    let mut outcome = outcome;
    match &mut outcome {
        Outcome::Succeeded(payload) => payload.evidence.replayed = true,
        Outcome::Failed(payload) => payload.evidence.replayed = true,
        Outcome::Pending(payload) => payload.evidence.replayed = true,
        Outcome::Conflict(_) | Outcome::Unknown(_) => {}
    }
    outcome
}
