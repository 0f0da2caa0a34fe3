//! The one place that can send: bytes out, bytes in, within limits.

mod classify;
mod http;
mod redact;
mod retry_after;

pub use http::{Http, HttpBuilder, HttpError, base_url};
pub use redact::{excerpt, scrub};
pub use retry_after::retry_after;

use crate::failure::Failure;
use crate::secret::Secret;
use async_trait::async_trait;
use std::fmt;
use std::time::Duration;

/// Bytes out, bytes in: the network as the gateways' adapters see it. [`Http`] is the real one; users can bring
/// their own HTTP client, and tests their own network.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// One exchange. No retry, no redirect, no cookie: whatever answer comes is returned as it is.
    ///
    /// # Errors
    /// [`Failure::not_executed`] only when no connection came about; every other failure is
    /// [`Failure::maybe_executed`], since the server may have read it all.
    async fn exchange(&self, request: Request) -> Result<Response, Failure>;
}

/// One request, serialised.
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole address, query included.
    pub url: String,
    /// Headers. Values are secrets to the printer, since some of them are.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body, empty for [`Method::Get`] and [`Method::Delete`].
    pub body: Vec<u8>,
    /// How long the exchange may take; `None` for the transport's own default.
    pub timeout: Option<Duration>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: None,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<Secret>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The methods that payment gateways use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Reads.
    Get,
    /// Does.
    Post,
    /// Removes.
    Delete,
}

/// One answer, complete and within the limit.
#[non_exhaustive]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Header names in lower case, with their values; what is not text is left out.
    pub headers: Vec<(String, String)>,
    /// The body, inflated.
    pub body: Vec<u8>,
}

impl Response {
    /// An answer.
    #[must_use]
    pub fn new(status: u16, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        Self { status, headers, body }
    }

    /// The first value of a header; `name` in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(candidate, _)| candidate == name)
            .map(|(_, value)| value.as_str())
    }

    /// All values of a header; `name` in lower case.
    pub fn header_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(candidate, _)| candidate == name)
            .map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
