//! The engine: reserve, send, record; and ask where nothing is known.

mod cancel;
mod execute;
mod flights;
mod prune;
mod record;
mod resolve;

use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::gateway::Gateway;
use crate::journal::{Journal, Pruned, Wanted};
use crate::operation::{Invalid, Namespace, Operation, OperationKey};
use crate::outcome::Outcome;
use crate::record::{HistoryLine, Record};
use crate::retry::{InquiryBudget, RetryBudget, RetryPolicy};
use flights::Flights;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Executes operations so that each takes effect once. Cheap to clone; all clones are one.
///
/// ```
/// use payonce::journal::MemoryJournal;
/// use payonce::testing::MockGateway;
/// use payonce::{Currency, Money, Operation, Outcome, Payments};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = MockGateway::new();
/// gateway.succeeds("order-1042");
/// let payments = Payments::builder()
///     .namespace("shop-th/live")
///     .gateway(Arc::new(gateway.clone()))
///     .journal(Arc::new(MemoryJournal::new()))
///     .build()?;
///
/// let order = Operation::charge("order-1042", Money::parse("20.00", Currency::THB)?)?;
/// match payments.execute(&order).await? {
///     Outcome::Succeeded(paid) => println!("paid, {:?}", paid.gateway_ref),
///     Outcome::Pending(pending) => println!("the payer has to act: {:?}", pending.next),
///     Outcome::Failed(failed) => println!("not paid: {:?}", failed.category),
///     Outcome::Unknown(unknown) => println!("nobody knows yet, ask again later: {}", unknown.detail),
///     Outcome::Conflict(conflict) => println!("a person decides: {}", conflict.detail),
/// }
/// assert_eq!(gateway.bank().charged("order-1042"), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Payments {
    inner: Arc<Inner>,
}

/// How much longer a lease lasts than the call that it protects may take.
const LEASE_MARGIN: Duration = Duration::from_secs(30);

/// What all clones of a [`Payments`] share.
pub(crate) struct Inner {
    namespace: Namespace,
    gateways: Vec<Arc<dyn Gateway>>,
    journal: Arc<dyn Journal>,
    policy: RetryPolicy,
    clock: Arc<dyn Clock>,
    retry_budget: RetryBudget,
    inquiry_budget: InquiryBudget,
    lease_margin: Duration,
    flights: Flights,
    jitter_seed: Option<u64>,
    /// Who this is among the processes that share a journal: the owner of its leases.
    owner: Arc<str>,
}

/// Collects the parts of a [`Payments`].
#[derive(Default)]
pub struct Builder {
    namespace: Option<String>,
    gateways: Vec<Arc<dyn Gateway>>,
    journal: Option<Arc<dyn Journal>>,
    policy: RetryPolicy,
    clock: Option<Arc<dyn Clock>>,
    inquiry_budget: Option<InquiryBudget>,
    lease_margin: Option<Duration>,
    jitter_seed: Option<u64>,
    #[cfg(feature = "testing")]
    another_derivation: bool,
}

impl Builder {
    /// Merchant account and mode, such as `shop-th/live`. It enters every key: choose it once, and never let sandbox
    /// and live share one.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// Adds a gateway. The first one serves operations that name none.
    #[must_use]
    pub fn gateway(mut self, gateway: Arc<dyn Gateway>) -> Self {
        self.gateways.push(gateway);
        self
    }

    /// The durable memory.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// How hard one call tries.
    #[must_use]
    pub fn policy(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The clock; the machine's own without it.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How many inquiries may leave, over all operations: on average a second, and at once. 10 and 20 without it.
    #[must_use]
    pub fn inquiries(mut self, per_second: u32, burst: u32) -> Self {
        self.inquiry_budget = Some(InquiryBudget::new(per_second, burst));
        self
    }

    /// How much longer than the longest call its lease lasts: 30 s without it. It has to cover the difference between
    /// the clocks of the machines that share a journal. Until a lease ends, nobody else sends an operation whose
    /// process has died.
    #[must_use]
    pub fn lease_margin(mut self, margin: Duration) -> Self {
        self.lease_margin = Some(margin);
        self
    }

    /// Makes the random waits between sends repeatable, for tests and simulations.
    #[must_use]
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Derives keys as another version of this crate might: to test that operations open over an upgrade keep theirs.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn another_derivation(mut self) -> Self {
        self.another_derivation = true;
        self
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`Invalid`], naming what is missing or wrong.
    pub fn build(self) -> Result<Payments, Invalid> {
        let name = self.namespace.ok_or_else(|| Invalid::new("namespace", "is missing"))?;
        let journal = self.journal.ok_or_else(|| Invalid::new("journal", "is missing"))?;
        if self.gateways.is_empty() {
            return Err(Invalid::new("gateway", "is missing"));
        }
        let mut names: Vec<_> = self.gateways.iter().map(|gateway| gateway.name()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Invalid::new("gateway", "two gateways have the same name"));
        }
        if self.policy.attempts == 0 {
            return Err(Invalid::new("policy", "attempts must be at least 1"));
        }
        let namespace = Namespace::new(name)?;
        #[cfg(feature = "testing")]
        let namespace = if self.another_derivation {
            namespace.of_another_derivation()
        } else {
            namespace
        };
        let mut owner = [0; 16];
        aws_lc_rs::rand::fill(&mut owner).map_err(|_| Invalid::new("clock", "the system gives no random bytes"))?;
        Ok(Payments {
            inner: Arc::new(Inner {
                namespace,
                gateways: self.gateways,
                journal,
                policy: self.policy,
                clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock)),
                retry_budget: RetryBudget::default(),
                inquiry_budget: self.inquiry_budget.unwrap_or_default(),
                lease_margin: self.lease_margin.unwrap_or(LEASE_MARGIN),
                flights: Flights::default(),
                jitter_seed: self.jitter_seed,
                owner: format!("{:032x}", u128::from_be_bytes(owner)).into(),
            }),
        })
    }
}

impl Payments {
    /// Collects namespace, gateway and journal.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Executes `operation`, once, however often and from wherever this is called with the same operation.
    ///
    /// The call runs on its own task: dropping the returned future does not cancel a payment that was begun. A call
    /// that meets the same operation under way waits for it and returns the same outcome.
    ///
    /// # Errors
    /// [`Error`]: this call sent nothing that the gateway can have executed. Fix the cause and call again with the same
    /// operation.
    pub async fn execute(&self, operation: &Operation) -> Result<Outcome, Error> {
        execute::execute(&self.inner, operation).await
    }

    /// Cancels a payment by any means: voids it, and where it has been settled meanwhile gives the settled amount back.
    ///
    /// The refund is an operation of its own, with a key of its own, under the reference and attempt of the void; so it
    /// is found again by whoever calls again, and happens once. Nothing is refunded while it is not known that the void
    /// failed for this reason. Where the gateway does not say how much was settled, the outcome is that of the void.
    ///
    /// # Errors
    /// As [`Payments::execute`]; [`Error::Invalid`] for an operation that is not a void.
    pub async fn cancel(&self, void: &Operation) -> Result<Outcome, Error> {
        cancel::cancel(self, void).await
    }

    /// Asks the gateway about an open operation, now, and returns what is known afterwards. Never causes an effect.
    ///
    /// What is settled, or being sent by a call at this moment, is not asked about; neither is anything while the limit
    /// of [`Builder::inquiries`] is reached. Then the outcome is what the journal says.
    ///
    /// # Errors
    /// [`Error::NotFound`], or [`Error::Journal`] when the journal could not be read, or what was learned could not be
    /// stored. Nothing that could move money was sent.
    pub async fn resolve(&self, key: OperationKey) -> Result<Outcome, Error> {
        let record = self.inner.journal.load(key).await?.ok_or(Error::NotFound { key })?;
        Ok(self.inner.resolve(Box::new(record)).await?.record.outcome())
    }

    /// What the journal says about `key`, without asking anybody; `None` when it holds no such operation.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn look_up(&self, key: OperationKey) -> Result<Option<Outcome>, Error> {
        Ok(self.inner.journal.load(key).await?.map(|record| record.outcome()))
    }

    /// All that the journal keeps of `key`, without asking anybody.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn record(&self, key: OperationKey) -> Result<Option<Record>, Error> {
        Ok(self.inner.journal.load(key).await?)
    }

    /// The operation that was sent to `gateway` under this identity, such as the invoice number that a payer's browser
    /// brings back from 2C2P's page.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn find_sent(&self, gateway: &str, wire_identity: &str) -> Result<Option<Record>, Error> {
        let wanted = Wanted::WireIdentity {
            namespace: self.inner.namespace.as_str().to_owned(),
            gateway: gateway.to_owned(),
            identity: wire_identity.to_owned(),
        };
        Ok(self.inner.journal.find(&wanted, 1).await?.pop())
    }

    /// The key of `operation`: a pure function, known before anything is sent.
    #[must_use]
    pub fn key(&self, operation: &Operation) -> OperationKey {
        operation.key(&self.inner.namespace)
    }

    /// Every step of an operation, oldest first.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, Error> {
        Ok(self.inner.journal.history(key).await?)
    }

    /// Up to `limit` operations that are under way, pending or unknown, oldest first.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn unresolved(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let namespace = self.inner.namespace.as_str().to_owned();
        Ok(self.inner.journal.find(&Wanted::Open { namespace }, limit).await?)
    }

    /// Up to `limit` operations that wait for a person, oldest first: gateway and journal disagree, or days of looks have
    /// brought nothing. The open ones among them are looked at once a day all the same.
    ///
    /// # Errors
    /// [`Error::Journal`].
    pub async fn review_queue(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let namespace = self.inner.namespace.as_str().to_owned();
        Ok(self.inner.journal.find(&Wanted::InReview { namespace }, limit).await?)
    }

    /// Forgets operations that were settled or released longer than `older_than` ago, with their history, and events that
    /// were seen before then; in small steps, between which others write. What is open, and what waits for a person, stays,
    /// and so does whatever is younger than a day or than the memory of a gateway.
    ///
    /// **An operation that is called again after it was forgotten is a new one.** At a gateway that refuses identities for
    /// ever (2C2P) the true result is found again; at one that has forgotten the key as well (Stripe) the money moves again.
    /// So `older_than` is longer than anybody may call again: months.
    ///
    /// # Errors
    /// [`Error::Journal`]; what was forgotten before it stays forgotten.
    pub async fn prune(&self, older_than: Duration) -> Result<Pruned, Error> {
        prune::prune(&self.inner, older_than).await
    }

    /// Refuses new operations and returns when those under way are over and recorded.
    pub async fn shutdown(&self) {
        self.inner.flights.close().await;
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Inner {
    pub(crate) fn gateway(&self, name: &str) -> Option<&Arc<dyn Gateway>> {
        self.gateways.iter().find(|gateway| gateway.name() == name)
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn inquiries_left(&self) -> usize {
        self.inquiry_budget.available(self.clock.now())
    }

    pub(crate) fn owner(&self) -> Arc<str> {
        Arc::clone(&self.owner)
    }
}

impl fmt::Debug for Payments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payments")
            .field("namespace", &self.inner.namespace)
            .field("gateways", &self.inner.gateways)
            .field("journal", &self.inner.journal)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("namespace", &self.namespace)
            .field("gateways", &self.gateways)
            .finish_non_exhaustive()
    }
}

/// An error with its causes, for a log; put together only when somebody listens.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn StdError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
