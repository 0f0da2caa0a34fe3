//! What broken and strange networks look like through the default transport: was it sent?

mod classification;
mod exchange;
mod limits;
mod server;
#[cfg(feature = "rustls")]
mod tls;

use payonce::failure::Failure;
use payonce::transport::{Http, HttpBuilder, Method, Request, Response, Transport};
use std::error::Error;
use std::future::Future;
use std::time::Duration;

/// Part of every address here. It must be in no error.
const TOKEN: &str = "TESTONLYtokenInTheAddress";

/// Far longer than anything here takes; a test that hangs fails by it.
const BOUND: Duration = Duration::from_secs(60);

async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(BOUND, future).await.expect("took too long")
}

fn patient() -> HttpBuilder {
    Http::builder().connect_timeout(BOUND / 4).timeout(BOUND / 2)
}

fn post(base: &str) -> Request {
    Request::new(Method::Post, format!("{base}/pay/{TOKEN}?token={TOKEN}")).body("{\"amount\":2000}")
}

async fn exchange(http: &Http, request: Request) -> Result<Response, Failure> {
    let result = bounded(http.exchange(request)).await;
    if let Err(failure) = &result {
        assert_no_token(failure);
    }
    result
}

#[track_caller]
fn assert_no_token(failure: &Failure) {
    let mut error: Option<&dyn Error> = Some(failure);
    while let Some(link) = error {
        let text = format!("{link} {link:?} {link:#?}");
        assert!(!text.contains(TOKEN), "{text}");
        error = link.source();
    }
}
