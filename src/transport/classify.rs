//! Was it sent? The only proof that it was not is a failure to connect.

use crate::failure::{Failure, FailureKind};

/// What an error of reqwest says about the request.
///
/// `is_connect` is asked first: a connect time-out is both a connect and a time-out error, and only the first reading
/// proves that nothing left. `is_request` says nothing: it is true when the server read everything and then died.
pub(super) fn classify(error: reqwest::Error) -> Failure {
    // The address may carry a payment token; reqwest prints it with the error.
    let error = error.without_url();
    if error.is_connect() {
        Failure::not_executed(FailureKind::Connect, "no connection to the gateway").with_source(error)
    } else if error.is_builder() {
        Failure::not_executed(FailureKind::Unsupported, "the request could not be built").with_source(error)
    } else if error.is_timeout() {
        Failure::maybe_executed(FailureKind::Timeout, "no answer in time").with_source(error)
    } else {
        Failure::maybe_executed(FailureKind::Broken, "the connection broke before a complete answer").with_source(error)
    }
}

/// An error while the body of an answer was read: the request was read, and answered, by somebody.
pub(super) fn broken_body(error: reqwest::Error, status: u16) -> Failure {
    let error = error.without_url();
    let (kind, detail) = if error.is_timeout() {
        (FailureKind::Timeout, "the answer was not complete in time")
    } else {
        (FailureKind::Broken, "the connection broke within the answer")
    };
    Failure::maybe_executed(kind, detail)
        .with_http_status(status)
        .with_source(error)
}
