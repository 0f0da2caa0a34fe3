//! The fake gateways, spoken to with a plain HTTP client: nothing of the crate's adapters is in between.

pub(crate) mod sealing;
mod stripe;
mod twoc2p;
mod twoc2p_cards;
mod twoc2p_maintenance;
mod twoc2p_page;
mod twoc2p_plans;
mod twoc2p_refunds;
mod wire;

use payonce::clock::{Clock, Timestamp};
use payonce::testing::ManualClock;
use serde_json::Value;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

const NOW: Timestamp = Timestamp::from_unix_seconds(1_767_225_600);

/// A client without a will of its own: no retry, no redirect, no proxy.
fn client() -> reqwest::Client {
    client_with_timeout(Duration::from_secs(10))
}

fn client_with_timeout(timeout: Duration) -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout)
        .build()
        .unwrap()
}

/// Every wait has an end.
async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("what the test waits for must come within 20 s")
}

fn manual_clock() -> (ManualClock, Arc<dyn Clock>) {
    let clock = ManualClock::at(NOW);
    (clock.clone(), Arc::new(clock))
}

/// An answer, complete.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder) -> Result<Self, reqwest::Error> {
        let response = request.send().await?;
        Ok(Self {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.text().await?,
        })
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// The innermost cause of an error.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
