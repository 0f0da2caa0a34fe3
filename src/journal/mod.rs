//! The port to the durable memory, and the journals behind it.

mod memory;
pub mod row;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use memory::MemoryJournal;

use crate::clock::Timestamp;
use crate::error::JournalError;
use crate::operation::{GatewayRef, OperationKey, OperationKind};
use crate::record::{HistoryLine, Lease, Record};
use async_trait::async_trait;
use std::fmt;

/// One row an operation, its history, and the notifications seen.
///
/// A journal decides nothing: it is storage with compare-and-swap. The contract, which `testing::conformance` checks:
///
/// * Each method is one atomic step, for all processes that share the journal.
/// * When a method has returned `Ok`, its effect survives a crash of the process and of the machine.
/// * `Err` means that the step had no effect, or that its effect is not known; the engine reads again after it.
/// * Nothing is stored beyond what [`row::Row`] holds.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Stores `record` and `line` as a new operation, unless the operation exists or must not begin.
    ///
    /// In this order, and atomically: an existing row of the same namespace, kind, reference and attempt is returned,
    /// unless it is released, in which case `record` takes its place ([`Record::in_place_of`]); another attempt of the
    /// same namespace, kind and reference that [blocks others](Record::blocks_other_attempts) is returned; an operation
    /// with the same namespace, gateway and wire identity is returned.
    ///
    /// The key is not what is compared: an older version may have derived another one, and the stored one counts.
    async fn reserve(&self, record: &Record, line: &HistoryLine) -> Result<Reservation, JournalError>;

    /// The record of `key`.
    async fn load(&self, key: OperationKey) -> Result<Option<Record>, JournalError>;

    /// Stores `next`, `line` and the seen `event` in one step, if the stored version is still `expected` and the
    /// event has not been seen before (by this namespace and gateway).
    async fn replace(
        &self,
        expected: u64,
        next: &Record,
        line: &HistoryLine,
        event: Option<&str>,
    ) -> Result<Replaced, JournalError>;

    /// Takes up to `limit` open records that are due at `now` in `namespace` and puts them under `lease`
    /// ([`Record::leased`]), so that no other worker takes them before it ends. The longest due come first.
    async fn claim_due(
        &self,
        namespace: &str,
        now: Timestamp,
        lease: &Lease,
        limit: usize,
    ) -> Result<Vec<Record>, JournalError>;

    /// The records that `wanted` describes, oldest first, at most `limit`.
    async fn find(&self, wanted: &Wanted, limit: usize) -> Result<Vec<Record>, JournalError>;

    /// The history of `key`, oldest line first.
    async fn history(&self, key: OperationKey) -> Result<Vec<HistoryLine>, JournalError>;

    /// Forgets up to `limit` operations of `namespace` that last changed before `before`, with their history, and up to
    /// `limit` events that were seen before then. The longest unchanged go first. What is open, and what
    /// [waits for a person](Record::needs_review), stays.
    async fn prune(&self, namespace: &str, before: Timestamp, limit: usize) -> Result<Pruned, JournalError>;
}

/// What [`Journal::prune`] has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Operations, each with its history.
    pub operations: usize,
    /// Seen events.
    pub events: usize,
}

impl Pruned {
    /// So many of each.
    #[must_use]
    pub const fn new(operations: usize, events: usize) -> Self {
        Self { operations, events }
    }
}

/// What [`Journal::reserve`] did.
#[allow(clippy::exhaustive_enums, reason = "the engine decides for each")]
#[derive(Clone, Debug)]
pub enum Reservation {
    /// The operation is reserved, as the record given back says (its version may differ from the one offered).
    New(Record),
    /// The operation existed.
    Existing(Record),
    /// This other attempt blocks it.
    Blocked(Record),
    /// This other operation has the same identity at the gateway.
    IdentityTaken(Record),
}

/// What [`Journal::replace`] did.
#[allow(clippy::exhaustive_enums, reason = "the engine decides for each")]
#[allow(clippy::large_enum_variant, reason = "made once a write, and matched at once")]
#[derive(Clone, Debug)]
pub enum Replaced {
    /// Stored.
    Stored,
    /// Not stored: somebody else changed the record, which is now this.
    Stale(Record),
    /// Not stored: the event has been seen before.
    Seen,
}

/// What [`Journal::find`] looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// Operations of this gateway with this id of its.
    GatewayRef {
        /// Namespace.
        namespace: String,
        /// The gateway's name.
        gateway: String,
        /// Its id.
        id: GatewayRef,
    },
    /// The operation of this gateway with this wire identity.
    WireIdentity {
        /// Namespace.
        namespace: String,
        /// The gateway's name.
        gateway: String,
        /// The identity.
        identity: String,
    },
    /// All attempts of one operation.
    Attempts {
        /// Namespace.
        namespace: String,
        /// Kind.
        kind: OperationKind,
        /// Reference.
        reference: String,
    },
    /// Operations that are open: sending, pending or unknown.
    Open {
        /// Namespace.
        namespace: String,
    },
    /// Operations that wait for a person ([`Record::needs_review`]).
    InReview {
        /// Namespace.
        namespace: String,
    },
}
