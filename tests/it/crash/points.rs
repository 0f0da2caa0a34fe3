//! Where a process can be killed: before and after every commit, send and answer. They are at the ports, so that nothing
//! in the crate itself knows of them.

use async_trait::async_trait;
use payonce::clock::Timestamp;
use payonce::error::JournalError;
use payonce::failure::Failure;
use payonce::journal::{Journal, Pruned, Replaced, Reservation, Wanted};
use payonce::operation::OperationKey;
use payonce::record::{HistoryLine, Lease, Record};
use payonce::transport::{Request, Response, Transport};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    BeforeReserve,
    AfterReserve,
    BeforeReplace,
    AfterReplace,
    BeforeSend,
    AfterAnswer,
}

pub(super) const POINTS: [Point; 6] = [
    Point::BeforeReserve,
    Point::AfterReserve,
    Point::BeforeReplace,
    Point::AfterReplace,
    Point::BeforeSend,
    Point::AfterAnswer,
];

impl Point {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::BeforeReserve => "before reserve",
            Self::AfterReserve => "after reserve",
            Self::BeforeReplace => "before replace",
            Self::AfterReplace => "after replace",
            Self::BeforeSend => "before send",
            Self::AfterAnswer => "after answer",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        POINTS.into_iter().find(|point| point.as_str() == word)
    }
}

/// Kills the process when a point is passed for the so-manieth time.
#[derive(Debug)]
pub(super) struct Reaper {
    point: Point,
    pass: usize,
    passed: AtomicUsize,
}

impl Reaper {
    pub(super) fn new(point: Point, pass: usize) -> Arc<Self> {
        Arc::new(Self {
            point,
            pass,
            passed: AtomicUsize::new(0),
        })
    }

    fn pass(&self, point: Point) {
        if point != self.point || self.passed.fetch_add(1, Ordering::SeqCst) + 1 != self.pass {
            return;
        }
        // SIGKILL, which nothing can catch; where there is none, the next worst.
        let _ = Command::new("kill")
            .args(["-KILL", &std::process::id().to_string()])
            .status();
        std::process::abort();
    }
}

/// A journal beside which the reaper stands.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) journal: Arc<dyn Journal>,
    pub(super) reaper: Arc<Reaper>,
}

#[async_trait]
impl Journal for Watched {
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError> {
        self.reaper.pass(Point::BeforeReserve);
        let answer = self.journal.reserve(record, line).await;
        self.reaper.pass(Point::AfterReserve);
        answer
    }

    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError> {
        self.journal.load(key).await
    }

    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError> {
        self.reaper.pass(Point::BeforeReplace);
        let answer = self.journal.replace(expected, next, line, event).await;
        self.reaper.pass(Point::AfterReplace);
        answer
    }

    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError> {
        self.journal.claim_due(namespace, now, lease, limit).await
    }

    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError> {
        self.journal.find(wanted, limit).await
    }

    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError> {
        self.journal.history(key).await
    }

    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError> {
        self.journal.prune(namespace, before, limit).await
    }
}

/// A network at whose ends the reaper stands.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) network: Arc<dyn Transport>,
    pub(super) reaper: Arc<Reaper>,
}

#[async_trait]
impl Transport for Wire {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        self.reaper.pass(Point::BeforeSend);
        let answer = self.network.exchange(request).await;
        self.reaper.pass(Point::AfterAnswer);
        answer
    }
}
