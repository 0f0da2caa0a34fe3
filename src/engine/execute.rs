//! One call of `execute`, straight down: check, reserve, send, record.

use super::flights::Boarding;
use super::{Chain, Inner};
use crate::clock::{Timestamp, within};
use crate::error::{Error, JournalError};
use crate::failure::{Failure, FailureKind};
use crate::gateway::{Gateway, Refusal};
use crate::journal::{Replaced, Reservation};
use crate::money::Money;
use crate::operation::{Fingerprint, Invalid, Operation, OperationKey, OperationKind, Target};
use crate::outcome::{FailureCategory, Outcome, Unknown, UnknownReason};
use crate::record::{Fact, HistoryLine, Intent, Lease, PaymentTarget, Record, Source, State};
use crate::retry::{Decision, Schedule, Try, decide, may_send_again};
use std::sync::Arc;
use std::time::Duration;
use tracing::{Instrument as _, Span, debug, error, info, info_span, warn};

/// How often a call that meets an operation of another process looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often one call starts over because another process changed the record under it.
const MEETINGS: u32 = 8;

/// An operation with everything that is derived from it before the first write.
struct Plan {
    key: OperationKey,
    fingerprint: Fingerprint,
    operation: Arc<Operation>,
    gateway: Arc<dyn Gateway>,
    wire_identity: Arc<str>,
    payable_for: Option<Duration>,
    target: Option<PaymentTarget>,
}

/// One call under way.
struct Call {
    inner: Arc<Inner>,
    plan: Plan,
    deadline: Timestamp,
    /// Made for the first wait: most calls need none, and randomness has a price.
    schedule: Option<Schedule>,
    /// Sends of this call, in all its rounds.
    sends: u32,
    /// One of them may have been executed: from then on there is no error any more.
    maybe_executed: bool,
}

pub(super) async fn execute(inner: &Arc<Inner>, operation: &Operation) -> Result<Outcome, Error> {
    let plan = plan(inner, operation).await?;
    let key = plan.key;
    let flight = match inner.flights.board(key, plan.fingerprint)? {
        Boarding::Join(flight) => {
            debug!(%key, "payonce.joined");
            flight
        }
        Boarding::Lead(lead) => {
            let flight = lead.flight();
            let span = plan.span();
            let mut call = Call::new(Arc::clone(inner), plan);
            // Its own task: a caller who goes away must not leave a payment half recorded.
            // Boxed before it is spawned: the task would move the whole state machine several times.
            tokio::spawn(Box::pin(async move { lead.land(call.run().await) }).instrument(span));
            flight
        }
    };
    match within(inner.policy.deadline, flight.landed()).await.flatten() {
        Some(result) => result,
        None => Ok(in_flight(inner, key)),
    }
}

/// Everything that can be refused without touching the network or writing a row.
async fn plan(inner: &Inner, operation: &Operation) -> Result<Plan, Error> {
    let key = operation.key(&inner.namespace);
    let aimed = aim(inner, operation).await?;
    let gateway = match operation
        .gateway_name()
        .or(aimed.as_ref().map(|(gateway, _)| gateway.as_str()))
    {
        Some(name) => inner
            .gateway(name)
            .ok_or_else(|| Invalid::new("gateway", "no gateway of this name is configured"))?,
        None => &inner.gateways[0],
    };
    if aimed
        .as_ref()
        .is_some_and(|(name, _)| !name.is_empty() && name != gateway.name())
    {
        return Err(Invalid::new("gateway", "is not the one of the payment that the operation acts on").into());
    }
    let prepared = gateway.prepare(key, operation).map_err(|refusal| match refusal {
        Refusal::Invalid(invalid) => Error::Invalid(invalid),
        Refusal::Unsupported(what) => Error::Unsupported(what),
    })?;
    let target = aimed.map(|(_, target)| PaymentTarget {
        amount: target.amount.or(prepared.payment_amount),
        ..target
    });
    Ok(Plan {
        key,
        fingerprint: operation.fingerprint(),
        operation: Arc::new(operation.clone()),
        gateway: Arc::clone(gateway),
        wire_identity: prepared.wire_identity.into(),
        payable_for: prepared.payable_for,
        target,
    })
}

/// The payment that a capture, void or refund acts on, and the gateway that has it, where the journal knows.
async fn aim(inner: &Inner, operation: &Operation) -> Result<Option<(String, PaymentTarget)>, Error> {
    match operation.target() {
        None => Ok(None),
        Some(Target::Gateway(id)) => {
            let target = PaymentTarget {
                gateway_ref: Some(id.clone()),
                wire_identity: None,
                amount: None,
            };
            let name = operation.gateway_name().unwrap_or_else(|| inner.gateways[0].name());
            Ok(Some((name.to_owned(), target)))
        }
        Some(Target::Operation(target)) => {
            let unknown = Error::NoTarget { target: *target };
            let record = inner.journal.load(*target).await?.ok_or_else(|| unknown.clone())?;
            match &record.state {
                State::Known(Outcome::Succeeded(_) | Outcome::Pending(_)) => {}
                State::Sending
                | State::Released
                | State::Known(Outcome::Failed(_) | Outcome::Unknown(_) | Outcome::Conflict(_)) => return Err(unknown),
            }
            let currency = |amount: Option<Money>| amount.map(Money::currency);
            if let (Some(asked), Some(paid)) = (currency(operation.amount()), currency(record.amount))
                && asked != paid
            {
                return Err(Invalid::new("amount", "is not in the currency of the payment that it acts on").into());
            }
            let target = PaymentTarget {
                gateway_ref: record.gateway_ref.clone(),
                wire_identity: Some(Arc::clone(&record.wire_identity)),
                amount: record.amount,
            };
            Ok(Some((record.gateway.to_string(), target)))
        }
    }
}

impl Plan {
    fn span(&self) -> Span {
        let operation = &self.operation;
        info_span!(
            "payonce.execute", key = %self.key, kind = operation.kind().as_str(),
            attempt = operation.attempt_number(), gateway = self.gateway.name(),
        )
    }
}

fn in_flight(inner: &Inner, key: OperationKey) -> Outcome {
    let detail = format!("operation {key} is still under way");
    Outcome::Unknown(Unknown::new(UnknownReason::InFlight, detail, inner.clock.now()))
}

/// What the next step of a call is, after one round.
enum Step {
    /// The call is over.
    Done(Result<Outcome, Error>),
    /// The record is now this; look at it anew.
    Meet(Box<Record>),
}

impl Call {
    fn new(inner: Arc<Inner>, plan: Plan) -> Self {
        Self {
            deadline: inner.clock.now().after(inner.policy.deadline),
            schedule: None,
            inner,
            plan,
            sends: 0,
            maybe_executed: false,
        }
    }

    async fn run(&mut self) -> Result<Outcome, Error> {
        match self.rounds().await {
            // In whichever round it comes: what this call sent before may have been executed.
            Err(Error::Journal(error)) if self.maybe_executed => Ok(self.not_recorded(self.plan.key, &error)),
            Err(_) if self.maybe_executed => Ok(in_flight(&self.inner, self.plan.key)),
            result => result,
        }
    }

    async fn rounds(&mut self) -> Result<Outcome, Error> {
        let mut step = self.reserve().await?;
        for _ in 0..MEETINGS {
            match step {
                Step::Done(result) => return result,
                // The rare steps are boxed, so that the common one stays small.
                Step::Meet(record) => step = Box::pin(self.meet(record)).await?,
            }
        }
        match step {
            Step::Done(result) => result,
            Step::Meet(record) => Ok(record.outcome()),
        }
    }

    /// Commits the intent. Nothing leaves before it is on disk.
    async fn reserve(&mut self) -> Result<Step, Error> {
        let now = self.inner.clock.now();
        let intent = Intent {
            key: self.plan.key,
            namespace: self.inner.namespace.shared(),
            operation: &self.plan.operation,
            gateway: self.plan.gateway.name().into(),
            wire_identity: Arc::clone(&self.plan.wire_identity),
            fingerprint: self.plan.fingerprint,
            target: self.plan.target.clone(),
            payable_for: self.plan.payable_for,
        };
        let record = Record::reserve(intent, now, self.lease(now));
        let mut line = HistoryLine::new(now, Source::Engine, "", "sending");
        line.sends = 1;
        line.note = "reserved".into();
        match self.inner.journal.reserve(&record, &line).await? {
            Reservation::New(record) => {
                // The reference is the merchant's own, and stands in no other event.
                debug!(key = %record.key, reference = %record.reference, "payonce.reserved");
                self.send(Box::new(record)).await
            }
            Reservation::Existing(record) => Ok(Step::Meet(Box::new(record))),
            Reservation::Blocked(other) => Err(Error::AttemptOpen {
                attempt: other.attempt,
                key: other.key,
                state: other.state_word(),
            }),
            Reservation::IdentityTaken(other) => Err(Error::IdentityTaken { other: other.key }),
        }
    }

    /// The operation exists: replay what is known, join who is at it, or find out.
    async fn meet(&mut self, record: Box<Record>) -> Result<Step, Error> {
        debug!(key = %record.key, state = record.state_word(), sends = record.sends, "payonce.met");
        if record.fingerprint != self.plan.fingerprint {
            return Err(Error::KeyReused { key: record.key });
        }
        if *record.gateway != *self.plan.gateway.name() && record.is_open() {
            return Err(Error::OtherGateway {
                key: record.key,
                gateway: record.gateway.to_string(),
            });
        }
        match &record.state {
            State::Released => self.reserve().await,
            State::Known(Outcome::Succeeded(_) | Outcome::Failed(_) | Outcome::Conflict(_)) => {
                Ok(Step::Done(Ok(replayed(record.outcome()))))
            }
            State::Known(Outcome::Pending(_)) => Ok(Step::Done(Ok(self.inner.resolve(record).await?.record.outcome()))),
            State::Sending if self.somebody_else_sends(&record) => self.wait_for_other(record).await,
            State::Sending | State::Known(Outcome::Unknown(_)) => self.take_over(record).await,
        }
    }

    fn somebody_else_sends(&self, record: &Record) -> bool {
        // One call a key and process: a lease of our own is that of a call that is over.
        record
            .lease
            .as_ref()
            .is_some_and(|lease| lease.owner != self.inner.owner && lease.until > self.inner.clock.now())
    }

    /// A process that was stopped for minutes must not send on the strength of what it knew before.
    fn holds_lease(&self, record: &Record) -> bool {
        let now = self.inner.clock.now();
        record
            .lease
            .as_ref()
            .is_some_and(|lease| lease.owner == self.inner.owner && lease.until > now)
    }

    async fn reload(&self, record: Box<Record>) -> Result<Box<Record>, Error> {
        let key = record.key;
        self.inner
            .journal
            .load(key)
            .await?
            .map(Box::new)
            .ok_or(Error::NotFound { key })
    }

    /// Another process is sending: its outcome is ours too.
    async fn wait_for_other(&mut self, record: Box<Record>) -> Result<Step, Error> {
        let mut record = record;
        while self.somebody_else_sends(&record) && matches!(record.state, State::Sending) {
            if self.inner.clock.now().after(LOOK_EVERY) >= self.deadline {
                return Ok(Step::Done(Ok(record.outcome())));
            }
            self.inner.clock.sleep(LOOK_EVERY).await;
            record = self.reload(record).await?;
        }
        Ok(Step::Meet(record))
    }

    /// Nobody is at it and nobody knows: ask first, and send again only where the key makes that safe.
    async fn take_over(&mut self, record: Box<Record>) -> Result<Step, Error> {
        let asked = self.inner.ask(record).await?.record;
        if !matches!(asked.state, State::Sending | State::Known(Outcome::Unknown(_)))
            || self.somebody_else_sends(&asked)
        {
            return Ok(match asked.state {
                State::Known(_) => Step::Done(Ok(asked.outcome())),
                State::Sending | State::Released => Step::Meet(asked),
            });
        }
        let now = self.inner.clock.now();
        let promise = self.plan.gateway.promise(asked.kind);
        if self.sends >= self.inner.policy.attempts || !may_send_again(&asked, &promise, now) {
            return Ok(Step::Done(Ok(asked.outcome())));
        }
        let next = Box::new(asked.send_again(now, self.lease(now), None));
        match self.store_send(&asked, &next, "taken over").await? {
            None => self.send(next).await,
            Some(newer) => Ok(Step::Meet(newer)),
        }
    }

    /// Sends until there is an outcome or a reason to stop. The record says that we are sending.
    async fn send(&mut self, record: Box<Record>) -> Result<Step, Error> {
        let mut record = record;
        let mut last_failure: Option<FailureKind> = None;
        loop {
            let instruction = record.instruction(&self.plan.operation, self.inner.policy.attempt_timeout);
            let Some(instruction) = instruction.filter(|_| self.holds_lease(&record)) else {
                return Ok(Step::Meet(self.reload(record).await?));
            };
            self.sends += 1;
            debug!(key = %record.key, sends = record.sends, "payonce.sending");
            let failure = match self.plan.gateway.send(&instruction).await {
                Ok(outcome) if record.maybe_executed && is_fresh_refusal(record.kind, &outcome) => {
                    let detail = "refused, after an earlier send that may have been executed";
                    let failure = Failure::maybe_executed(FailureKind::Duplicate, detail);
                    let stopped = "a refusal of this send says nothing of the one before";
                    return Box::pin(self.stop(record, failure, stopped)).await;
                }
                Ok(outcome) => {
                    match last_failure {
                        Some(kind) => self.inner.retry_budget.refund(kind),
                        None => self.inner.retry_budget.earn(),
                    }
                    return Ok(Step::Done(Ok(self.said(record, outcome).await)));
                }
                Err(failure) => failure,
            };
            info!(
                key = %record.key, sends = record.sends, failure = ?failure.kind(),
                maybe_executed = failure.may_have_executed(), http_status = failure.http_status(),
                code = failure.code(), request_id = failure.request_id(), error = %Chain(&failure),
                "payonce.attempt_failed"
            );
            self.maybe_executed |= failure.may_have_executed();
            let wait = match self.decide(&record, &failure) {
                Ok(wait) => wait,
                Err(stopped) => return Box::pin(self.stop(record, failure, stopped)).await,
            };
            self.inner.clock.sleep(wait).await;
            let now = self.inner.clock.now();
            let next = Box::new(record.send_again(now, self.lease(now), Some(&failure)));
            let maybe = next.maybe_executed;
            record = match self.store_retry(&record, &next, &failure).await {
                Ok(None) => next,
                Ok(Some(newer)) => return Ok(Step::Meet(newer)),
                Err(error) if maybe => return Ok(Step::Done(Ok(self.not_recorded(next.key, &error)))),
                Err(error) => return Err(error.into()),
            };
            last_failure = Some(failure.kind());
        }
    }

    fn next_wait(&mut self) -> Duration {
        let inner = &self.inner;
        self.schedule
            .get_or_insert_with(|| Schedule::new(&inner.policy, inner.jitter_seed))
            .next_wait()
    }

    fn decide(&mut self, record: &Record, failure: &Failure) -> Result<Duration, &'static str> {
        let promise = self.plan.gateway.promise(record.kind);
        let wait = self.next_wait();
        let decision = decide(&Try {
            sends: self.sends,
            failure,
            promise: &promise,
            policy: &self.inner.policy,
            record,
            now: self.inner.clock.now(),
            deadline: self.deadline,
            wait,
        });
        match decision {
            Decision::Stop { because } => Err(because),
            Decision::SendAgain { wait } if self.inner.retry_budget.withdraw(failure.kind()) => Ok(wait),
            Decision::SendAgain { .. } => Err("the retry budget is empty"),
        }
    }

    /// The gateway answered: store it, and let an inquiry decide where it contradicts what is stored.
    async fn said(&self, record: Box<Record>, outcome: Outcome) -> Outcome {
        let key = record.key;
        let observed = match self
            .inner
            .observe(record, Source::Answer, Fact::Said(outcome), None)
            .await
        {
            Ok(observed) => observed,
            Err(error) => return self.not_recorded(key, &error),
        };
        if !observed.contradiction {
            return observed.record.outcome();
        }
        let known = observed.record.outcome();
        self.inner
            .ask(observed.record)
            .await
            .map_or(known, |asked| asked.record.outcome())
    }

    /// No further send in this call. Where something may have been executed, ask.
    async fn stop(&mut self, record: Box<Record>, failure: Failure, stopped: &'static str) -> Result<Step, Error> {
        let key = record.key;
        let maybe = record.maybe_executed || failure.may_have_executed();
        warn!(%key, sends = record.sends, maybe_executed = maybe, because = stopped, "payonce.stopped");
        let recorded = self
            .inner
            .observe(record, Source::Answer, Fact::Ended(failure.clone()), None)
            .await;
        let record = match recorded {
            Ok(observed) => observed.record,
            Err(error) if maybe => return Ok(Step::Done(Ok(self.not_recorded(key, &error)))),
            Err(error) => return Err(error.into()),
        };
        if matches!(record.state, State::Released) {
            return Err(self.nothing_executed(failure, stopped));
        }
        if !matches!(record.state, State::Known(Outcome::Unknown(_))) {
            return Ok(Step::Meet(record));
        }
        let record = self.ask_until_answered(record).await;
        Ok(Step::Done(Ok(explain(record.outcome(), self.sends, stopped))))
    }

    /// Inquiries are reads: one that fails is tried again within the call's attempts and deadline.
    async fn ask_until_answered(&mut self, record: Box<Record>) -> Box<Record> {
        let mut record = record;
        for round in 1..=self.inner.policy.attempts {
            let before = record.clone();
            let asked = match self.inner.ask(record).await {
                Ok(asked) => asked,
                Err(error) => {
                    warn!(key = %before.key, error = %Chain(&error), "payonce.inquiry_not_recorded");
                    return before;
                }
            };
            record = asked.record;
            let wait = self.next_wait();
            let last = round == self.inner.policy.attempts;
            if !asked.blind || last || self.inner.clock.now().after(wait) >= self.deadline {
                break;
            }
            self.inner.clock.sleep(wait).await;
        }
        record
    }

    fn nothing_executed(&self, failure: Failure, stopped: &'static str) -> Error {
        let attempts = self.sends;
        match failure.kind() {
            FailureKind::Unsupported => Error::Unsupported(failure.detail().to_owned()),
            FailureKind::Connect | FailureKind::Timeout | FailureKind::Broken => Error::Unreachable {
                attempts,
                stopped,
                failure,
            },
            FailureKind::Unreadable
            | FailureKind::TooLarge
            | FailureKind::ServerFault
            | FailureKind::Throttled
            | FailureKind::StillRunning
            | FailureKind::Duplicate
            | FailureKind::Credentials => Error::Refused {
                attempts,
                stopped,
                failure,
            },
        }
    }

    /// The gateway may know, the journal does not: the row still says that the operation is being sent.
    fn not_recorded(&self, key: OperationKey, error: &JournalError) -> Outcome {
        error!(%key, error = %Chain(error), "payonce.not_recorded");
        let detail = format!("the journal could not be written after operation {key} was sent; an inquiry will tell");
        Outcome::Unknown(Unknown::new(UnknownReason::NotRecorded, detail, self.inner.clock.now()))
    }

    async fn store_retry(
        &self,
        from: &Record,
        next: &Record,
        failure: &Failure,
    ) -> Result<Option<Box<Record>>, JournalError> {
        let mut line = HistoryLine::new(next.updated_at, Source::Answer, from.state_word(), "sending");
        line.sends = next.sends;
        line.http_status = failure.http_status();
        line.code = failure.code().map(str::to_owned);
        line.request_id = failure.request_id().map(str::to_owned);
        line.note = format!("{}; sending again", failure.detail()).into();
        self.store(from, next, &line).await
    }

    async fn store_send(
        &self,
        from: &Record,
        next: &Record,
        note: &'static str,
    ) -> Result<Option<Box<Record>>, JournalError> {
        let mut line = HistoryLine::new(next.updated_at, Source::Engine, from.state_word(), "sending");
        line.sends = next.sends;
        line.note = note.into();
        self.store(from, next, &line).await
    }

    /// `None` when stored, else what the record has become.
    async fn store(
        &self,
        from: &Record,
        next: &Record,
        line: &HistoryLine,
    ) -> Result<Option<Box<Record>>, JournalError> {
        match self.inner.journal.replace(from.version, next, line, None).await? {
            Replaced::Stored => Ok(None),
            Replaced::Stale(newer) => Ok(Some(Box::new(newer))),
            Replaced::Seen => Ok(Some(Box::new(from.clone()))),
        }
    }

    fn lease(&self, now: Timestamp) -> Lease {
        let policy = &self.inner.policy;
        Lease::new(
            Arc::clone(&self.inner.owner),
            now.after(policy.deadline)
                .after(policy.attempt_timeout)
                .after(self.inner.lease_margin),
        )
    }
}

/// Turned away at the door, and not out of the gateway's memory of this key: it is about this request alone.
fn is_fresh_refusal(kind: OperationKind, outcome: &Outcome) -> bool {
    let Outcome::Failed(failed) = outcome else {
        return false;
    };
    // A card is declined for good. That a payment can not be voided, captured or given back is about its state of the
    // moment, in which an earlier send may have left it.
    let acts_on_payment = match kind {
        OperationKind::Capture | OperationKind::Void | OperationKind::Refund => true,
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Update => false,
    };
    let at_the_door = matches!(
        failed.category,
        FailureCategory::Invalid
            | FailureCategory::Refused
            | FailureCategory::NoSuchPayment
            | FailureCategory::NotSettled
            | FailureCategory::AlreadyDone
    );
    let refused = at_the_door || (acts_on_payment && failed.category == FailureCategory::Declined);
    refused && !failed.evidence.replayed
}

fn replayed(outcome: Outcome) -> Outcome {
    let mut outcome = outcome;
    match &mut outcome {
        Outcome::Succeeded(payload) => payload.evidence.replayed = true,
        Outcome::Failed(payload) => payload.evidence.replayed = true,
        Outcome::Conflict(payload) => payload.evidence.replayed = true,
        Outcome::Pending(_) | Outcome::Unknown(_) => {}
    }
    outcome
}

fn explain(outcome: Outcome, sends: u32, stopped: &'static str) -> Outcome {
    let mut outcome = outcome;
    if let Outcome::Unknown(unknown) = &mut outcome {
        unknown.detail = format!("{} ({sends} sends in this call; {stopped})", unknown.detail);
    }
    outcome
}
