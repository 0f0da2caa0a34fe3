//! The only way a call fails: nothing was executed by it.

use crate::failure::{Failure, FailureKind};
use crate::operation::{Invalid, OperationKey};
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// *This call* sent nothing that the gateway can have executed. Fix the cause and call again with the same operation.
///
/// Whatever may have been executed is an [`Outcome`](crate::outcome::Outcome), never an `Error`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operation is not valid for the gateway. Nothing was written and nothing was sent.
    #[error("invalid operation, nothing was sent")]
    Invalid(#[source] Invalid),
    /// The gateway, or this version of its adapter, does not offer the operation. Nothing was written or sent.
    #[error("not supported: {0}; nothing was sent")]
    Unsupported(String),
    /// The operation was executed before with other content. Nothing was sent. For a new decision of the payer use
    /// the next attempt number; never change what a retry asks for.
    #[error("operation {key} was used before with other content; nothing was sent")]
    KeyReused {
        /// The key of the operation.
        key: OperationKey,
    },
    /// Another attempt of the same operation has taken money, or may still take it. Nothing was sent.
    #[error("attempt {attempt} of this operation is {state}; nothing was sent")]
    AttemptOpen {
        /// The number of that attempt.
        attempt: u32,
        /// Its key, to look it up or resolve it.
        key: OperationKey,
        /// Its state, in a word.
        state: &'static str,
    },
    /// The operation was begun at another gateway, which may have executed it. Nothing was sent.
    #[error("operation {key} was begun at gateway {gateway}, which may have executed it; nothing was sent")]
    OtherGateway {
        /// The key of the operation.
        key: OperationKey,
        /// The gateway where it was begun.
        gateway: String,
    },
    /// Another operation already uses the same identity at the gateway (2C2P: the same invoice number). Nothing was sent.
    #[error("operation {other} already uses the same identity at the gateway; nothing was sent")]
    IdentityTaken {
        /// The operation that has it.
        other: OperationKey,
    },
    /// The operation that a capture, void or refund acts on is not in the journal, or has no known payment yet.
    #[error("the target of the operation has no known payment; nothing was sent")]
    NoTarget {
        /// The target's key.
        target: OperationKey,
    },
    /// The journal holds no such operation. Nothing was asked and nothing was sent.
    #[error("the journal holds no operation {key}")]
    NotFound {
        /// The key asked for.
        key: OperationKey,
    },
    /// The journal could not be read or written before the request was due. Nothing was sent.
    #[error("the journal failed; nothing was sent")]
    Journal(#[source] JournalError),
    /// The gateway could not be reached, however often it was tried; proven, nothing was sent. The operation may be
    /// executed again.
    #[error("gateway unreachable after {attempts} attempts, {stopped}; nothing was executed")]
    Unreachable {
        /// How many sends this call tried. The attempt of the *operation* is still the same one.
        attempts: u32,
        /// Why the loop stopped.
        stopped: &'static str,
        /// The last failure.
        #[source]
        failure: Failure,
    },
    /// The gateway turned the request away before executing it: credentials, permissions, rate limit.
    #[error("the gateway refused the request after {attempts} attempts, {stopped}; nothing was executed")]
    Refused {
        /// How many sends this call tried. The attempt of the *operation* is still the same one.
        attempts: u32,
        /// Why the loop stopped.
        stopped: &'static str,
        /// The last failure.
        #[source]
        failure: Failure,
    },
    /// [`Payments::shutdown`](crate::engine::Payments::shutdown) has begun. Nothing was sent.
    #[error("shutting down; nothing was sent")]
    ShuttingDown,
}

impl Error {
    /// Is the same call worth making again without changing anything?
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Journal(error) => error.is_transient(),
            Self::Unreachable { .. } | Self::ShuttingDown => true,
            Self::Refused { failure, .. } => {
                failure.retry_after().is_some()
                    || failure.http_status() == Some(429)
                    || failure.kind() == FailureKind::ServerFault
            }
            Self::Invalid(_)
            | Self::Unsupported(_)
            | Self::KeyReused { .. }
            | Self::AttemptOpen { .. }
            | Self::OtherGateway { .. }
            | Self::IdentityTaken { .. }
            | Self::NoTarget { .. }
            | Self::NotFound { .. } => false,
        }
    }

    /// How long to wait before calling again, where the gateway or the journal gives a hint.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { failure, .. } | Self::Refused { failure, .. } => failure.retry_after(),
            Self::Journal(error) => error.is_transient().then_some(Duration::from_secs(1)),
            Self::ShuttingDown
            | Self::Invalid(_)
            | Self::Unsupported(_)
            | Self::KeyReused { .. }
            | Self::AttemptOpen { .. }
            | Self::OtherGateway { .. }
            | Self::IdentityTaken { .. }
            | Self::NoTarget { .. }
            | Self::NotFound { .. } => None,
        }
    }

    /// The field at fault, for [`Error::Invalid`].
    #[must_use]
    pub fn invalid_field(&self) -> Option<&'static str> {
        if let Self::Invalid(invalid) = self {
            Some(invalid.field())
        } else {
            None
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

/// A journal could not do its work.
#[derive(Clone)]
pub struct JournalError {
    transient: bool,
    detail: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl JournalError {
    /// Worth trying again: locked, full for now, connection lost.
    pub fn transient(detail: impl Into<String>) -> Self {
        Self::new(true, detail.into())
    }

    /// Not worth trying again without a person: a newer schema, a damaged file, no permission.
    pub fn permanent(detail: impl Into<String>) -> Self {
        Self::new(false, detail.into())
    }

    fn new(transient: bool, detail: String) -> Self {
        Self {
            transient,
            detail,
            source: None,
        }
    }

    /// The cause underneath.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Is the same step worth trying again?
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.transient
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl fmt::Debug for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalError")
            .field("transient", &self.transient)
            .field("detail", &self.detail)
            .finish_non_exhaustive()
    }
}

impl StdError for JournalError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
