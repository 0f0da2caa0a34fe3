//! A journal that fails at any one of its calls.

use crate::shop::{Shop, assert_is, charge};
use async_trait::async_trait;
use payonce::clock::Timestamp;
use payonce::error::JournalError;
use payonce::journal::{Journal, MemoryJournal, Pruned, Replaced, Reservation, Wanted};
use payonce::operation::OperationKey;
use payonce::record::{HistoryLine, Lease, Record};
use payonce::testing::MockGateway;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// A journal whose calls are counted: one of them fails, before or after it has taken effect, and before one of them
/// another process changes the record.
#[derive(Debug)]
struct Faulty {
    inner: MemoryJournal,
    calls: AtomicUsize,
    fails_at: usize,
    applied: bool,
    changed_at: usize,
}

impl Faulty {
    /// `true` when this call fails.
    async fn enters(&self) -> Result<bool, JournalError> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        if call == self.changed_at {
            let lease = Lease::new("another", Timestamp::from_unix_seconds(0));
            self.inner.claim_due("shop1", Timestamp::NEVER, &lease, 9).await?;
        }
        let fails = call == self.fails_at;
        if fails && !self.applied {
            return Err(Self::failure());
        }
        Ok(fails)
    }

    fn failure() -> JournalError {
        JournalError::transient("as told")
    }
}

#[async_trait]
impl Journal for Faulty {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        let fails = self.enters().await?;
        let done = self.inner.reserve(record, line).await;
        if fails { Err(Self::failure()) } else { done }
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        self.enters().await?;
        self.inner.load(key).await
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        let fails = self.enters().await?;
        let done = self.inner.replace(expected, next, line, event).await;
        if fails { Err(Self::failure()) } else { done }
    }

    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        self.inner.claim_due(namespace, now, lease, limit).await
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        self.inner.find(wanted, limit).await
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        self.inner.history(key).await
    }

    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        self.inner.prune(namespace, before, limit).await
    }
}

#[tokio::test]
async fn whichever_call_of_the_journal_fails_an_error_means_that_nothing_was_executed() {
    for (changed_at, fails_at, applied) in (0..7)
        .flat_map(|changed| (0..10).map(move |fails| (changed, fails)))
        .flat_map(|(changed, fails)| [(changed, fails, false), (changed, fails, true)])
    {
        let journal = Faulty {
            inner: MemoryJournal::new(),
            calls: AtomicUsize::new(0),
            fails_at,
            applied,
            changed_at,
        };
        let shop = Shop::on(Arc::new(journal), MockGateway::new(), |builder| builder);
        shop.gateway
            .answer_lost_after_effect("order-1")
            .answer_lost_after_effect("order-1")
            .inquiries_fail(1)
            .always_succeeds();
        let case = format!("changed before call {changed_at}, call {fails_at} fails, applied: {applied}");
        let first = shop.payments.execute(&charge("order-1")).await;
        if let Err(error) = first {
            assert_eq!(shop.bank().charged("order-1"), 0, "{case}: {error:?}");
        }
        shop.clock.advance(MINUTE * 5);
        // The one failure may come here as late as in the second of these.
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            outcomes.extend(shop.payments.execute(&charge("order-1")).await);
            shop.clock.advance(MINUTE * 5);
        }
        let outcome = outcomes.pop().unwrap();
        assert_is(&outcome, "succeeded");
        assert_eq!(shop.bank().charged("order-1"), 1, "{case}");
    }
}
