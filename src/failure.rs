//! One exchange went wrong. The one question that matters: may the gateway have executed it?

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What went wrong with one exchange, in the words a decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection came about: refused, no such name, TLS refused, connect time-out.
    Connect,
    /// No complete answer within the time given.
    Timeout,
    /// The connection broke after it had been made.
    Broken,
    /// An answer came that is not in the gateway's form (HTML, half a body, a foreign signature, another identity).
    Unreadable,
    /// The answer was larger than the limit.
    TooLarge,
    /// The gateway, or something before it, reports a fault of its own (5xx, 424, a code that leaves it open).
    ServerFault,
    /// Turned away by a rate limiter, before execution.
    Throttled,
    /// The first request with this key is still running, or the object is locked by it.
    StillRunning,
    /// The gateway says that this key, invoice or token has been used before: reconcile by inquiry.
    Duplicate,
    /// The gateway does not accept our credentials or permissions.
    Credentials,
    /// The gateway does not offer what was asked.
    Unsupported,
}

/// One exchange that brought no outcome.
///
/// There are two constructors and no default, so that whoever reports a failure has to say whether the gateway can
/// have executed the request: [`Failure::not_executed`] only where that is *proven*, else [`Failure::maybe_executed`].
#[derive(Clone)]
pub struct Failure(Box<Particulars>);

#[derive(Clone)]
struct Particulars {
    maybe_executed: bool,
    kind: FailureKind,
    detail: String,
    http_status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    retry_advice: Option<bool>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Failure {
    /// The gateway has provably not executed the request: it was never connected, or it was turned away before.
    #[must_use]
    pub fn not_executed(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self::new(false, kind, detail.into())
    }

    /// The gateway may have executed the request, or may still do so.
    #[must_use]
    pub fn maybe_executed(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self::new(true, kind, detail.into())
    }

    fn new(maybe_executed: bool, kind: FailureKind, detail: String) -> Self {
        Self(Box::new(Particulars {
            maybe_executed,
            kind,
            detail,
            http_status: None,
            code: None,
            request_id: None,
            retry_after: None,
            retry_advice: None,
            source: None,
        }))
    }

    /// The HTTP status that came with it.
    #[must_use]
    pub fn with_http_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// The gateway's own code.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<String>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// The gateway's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<String>) -> Self {
        self.0.request_id = request_id;
        self
    }

    /// The gateway asks not to be called again before this has passed.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.0.retry_after = retry_after;
        self
    }

    /// The gateway says that the same request is worth sending again (`true`) or is not (`false`).
    #[must_use]
    pub fn with_retry_advice(mut self, advice: Option<bool>) -> Self {
        self.0.retry_advice = advice;
        self
    }

    /// The cause underneath. Its text is reached by walking [`std::error::Error::source`], never through ours.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// May the gateway have executed the request? `false` is proof, `true` is not.
    #[must_use]
    pub fn may_have_executed(&self) -> bool {
        self.0.maybe_executed
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// One sentence for a person, free of secrets.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The HTTP status, where there was an answer.
    #[must_use]
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// The gateway's own code, where there was one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The gateway's id of the request, where it gave one.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the gateway asks us to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether the gateway advises sending the same request again.
    #[must_use]
    pub fn retry_advice(&self) -> Option<bool> {
        self.0.retry_advice
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)?;
        if let Some(status) = self.0.http_status {
            write!(f, " (HTTP {status}")?;
            if let Some(code) = &self.0.code {
                write!(f, ", code {code}")?;
            }
            if let Some(id) = &self.0.request_id {
                write!(f, ", request {id}")?;
            }
            f.write_str(")")?;
        }
        f.write_str(if self.0.maybe_executed {
            "; the gateway may have executed it"
        } else {
            "; the gateway has not executed it"
        })
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("kind", &self.0.kind)
            .field("maybe_executed", &self.0.maybe_executed)
            .field("detail", &self.0.detail)
            .field("http_status", &self.0.http_status)
            .field("code", &self.0.code)
            .field("request_id", &self.0.request_id)
            .field("retry_after", &self.0.retry_after)
            .finish_non_exhaustive()
    }
}

impl StdError for Failure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
