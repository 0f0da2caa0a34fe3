//! The worker that resolves what is unknown or was left by a dead process. It only ever reads from gateways.

use crate::engine::{Chain, Inner, Payments};
use crate::error::JournalError;
use crate::record::{Lease, Record};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::{debug, error, warn};

/// How long a worker keeps what it has claimed to itself.
const LEASE: Duration = Duration::from_secs(120);

/// Claims what is due, inquires, records, and schedules the next look. Any number may run, in any process.
///
/// What is unknown is looked at within seconds, then less and less often, for days; what waits for a payer or a bank less
/// often, and when the payer's page has closed; what a dead process left when its lease ends. After the last look it waits
/// for a person ([`Payments::review_queue`]) and is looked at once a day. Inquiries that fail are not looks: they are tried
/// again, less and less often too.
#[derive(Clone, Debug)]
pub struct Reconciler {
    payments: Payments,
    batch: usize,
    pause: Duration,
}

/// What one round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Round {
    /// Operations that were due and claimed by this round.
    pub looked_at: usize,
    /// Of these, how many are settled now.
    pub settled: usize,
}

impl Reconciler {
    /// A worker for the operations of `payments`.
    #[must_use]
    pub fn new(payments: Payments) -> Self {
        Self {
            payments,
            batch: 32,
            pause: Duration::from_secs(1),
        }
    }

    /// How many operations one round takes, at most, and asks about at once. 32 without it.
    #[must_use]
    pub fn batch(mut self, operations: usize) -> Self {
        self.batch = operations;
        self
    }

    /// How long to rest after a round that found nothing due.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// One round: what is due now, once.
    ///
    /// # Errors
    /// [`JournalError`] when nothing could be claimed. A claimed operation whose result cannot be stored is looked at
    /// again when its lease ends.
    pub async fn run_once(&self) -> Result<Round, JournalError> {
        let inner = self.payments.inner();
        let now = inner.clock().now();
        let lease = Lease::new(inner.owner(), now.after(LEASE));
        let namespace = inner.namespace().as_str();
        // No more than may be asked about: what is claimed and not asked would lie idle until its lease ends.
        let batch = self.batch.min(inner.inquiries_left());
        let claimed = inner.journal().claim_due(namespace, now, &lease, batch).await?;
        let mut round = Round::default();
        if !claimed.is_empty() {
            debug!(claimed = claimed.len(), "payonce.claimed");
        }
        // At once, so that a gateway that answers slowly does not hold up the others until the leases end; each on a task
        // of its own, so that an adapter that panics ends no more than its own look.
        let mut looks = JoinSet::new();
        for record in claimed {
            round.looked_at += 1;
            let inner = Arc::clone(inner);
            looks.spawn(async move { look(&inner, record).await });
        }
        while let Some(look) = looks.join_next().await {
            match look {
                Ok(settled) => round.settled += usize::from(settled),
                Err(error) => error!(%error, "payonce.look_panicked"),
            }
        }
        Ok(round)
    }

    /// Rounds until `shutdown` completes. A journal that fails is tried again after the pause.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = pin!(shutdown);
        loop {
            let idle = match self.run_once().await {
                Ok(round) => round.looked_at == 0,
                Err(error) => {
                    warn!(error = %Chain(&error), "payonce.round_failed");
                    true
                }
            };
            let pause = if idle { self.pause } else { Duration::ZERO };
            let rest = self.payments.inner().clock().sleep(pause);
            if first_of(shutdown.as_mut(), rest).await {
                return;
            }
        }
    }
}

/// Whether the operation is settled now.
async fn look(inner: &Inner, record: Record) -> bool {
    let key = record.key();
    match inner.ask(Box::new(record)).await {
        Ok(asked) => !asked.record.is_open(),
        Err(error) => {
            warn!(%key, error = %Chain(&error), "payonce.look_not_recorded");
            false
        }
    }
}

/// `true` when `stop` is done first, `false` when `rest` is.
async fn first_of(
    mut stop: std::pin::Pin<&mut (impl Future<Output = ()> + Send)>,
    rest: impl Future<Output = ()> + Send,
) -> bool {
    let mut rest = pin!(rest);
    std::future::poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(true);
        }
        rest.as_mut().poll(context).map(|()| false)
    })
    .await
}
