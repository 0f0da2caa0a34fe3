//! A network that does one kind of harm.

use crate::failure::{Failure, FailureKind};
use crate::transport::{Request, Response, Transport};
use async_trait::async_trait;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// In every page that the suite sends in the place of an answer, and in no text of an adapter's.
pub(super) const CANARIES: [&str; 2] = ["4111111111111111", "sk_live_TESTONLYcanary"];

/// What becomes of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mischief {
    None,
    /// No connection: nothing has left.
    Unconnected,
    /// It was read, and never executed; no answer.
    LostBefore,
    /// It was executed; no answer.
    LostAfter,
    /// It was executed; half of the answer arrives, as if it were all of it.
    CutOff,
    /// An answer with this status and the body of this number, and nothing executed.
    Answer(u16, usize),
    /// A redirect, and nothing executed.
    Redirect(u16),
    /// One of the others, by chance.
    Seeded(u64),
}

/// Bodies that no gateway writes.
const BODIES: [&str; 8] = [
    "",
    "{}",
    "null",
    "[]",
    "<html><body>4111111111111111 sk_live_TESTONLYcanary</body></html>",
    "{\"card\":\"4111111111111111\",\"key\":\"sk_live_TESTONLYcanary\"",
    "{\"id\":\"unheard_1\",\"object\":\"unheard\",\"status\":\"odd\",\"respCode\":\"odd\"}",
    "\u{feff}ok",
];

impl Mischief {
    /// Answers that say nothing, whatever their status.
    pub(super) fn unreadable() -> Vec<Self> {
        let bodies = 0..BODIES.len();
        bodies
            .flat_map(|body| [200, 201, 500, 502, 504].map(|status| Self::Answer(status, body)))
            .collect()
    }
}

#[derive(Debug)]
pub(super) struct Network {
    inner: Arc<dyn Transport>,
    mischief: Mischief,
    healed: AtomicBool,
    random: AtomicU64,
    sent: Mutex<Vec<Sent>>,
}

/// A request as it left: address, headers, body.
type Sent = (String, Vec<(&'static str, String)>, Vec<u8>);

impl Network {
    pub(super) fn new(inner: Arc<dyn Transport>, mischief: Mischief) -> Arc<Self> {
        let seed = if let Mischief::Seeded(seed) = mischief { seed } else { 0 };
        Arc::new(Self {
            inner,
            mischief,
            healed: AtomicBool::new(false),
            random: AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            sent: Mutex::default(),
        })
    }

    /// From now on nothing goes wrong.
    pub(super) fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
    }

    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self) -> Mischief {
        if self.healed.load(Ordering::SeqCst) {
            return Mischief::None;
        }
        let Mischief::Seeded(_) = self.mischief else {
            return self.mischief;
        };
        // An old generator, and good enough to choose one of eight.
        let step = |state: u64| {
            Some(
                state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        };
        let state = self
            .random
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, step)
            .unwrap_or_default();
        match (state >> 33) % 8 {
            0 => Mischief::Unconnected,
            1 => Mischief::LostBefore,
            2 | 3 => Mischief::LostAfter,
            4 => Mischief::CutOff,
            5 => Mischief::Answer(502, 4),
            _ => Mischief::None,
        }
    }
}

fn lost() -> Failure {
    Failure::maybe_executed(FailureKind::Timeout, "no answer in time")
}

#[async_trait]
impl Transport for Network {
    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let headers = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.expose().to_owned()));
        let sent = (request.url.clone(), headers.collect(), request.body.clone());
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(sent);
        match self.next() {
            Mischief::None | Mischief::Seeded(_) => self.inner.exchange(request).await,
            Mischief::Unconnected => Err(Failure::not_executed(FailureKind::Connect, "no connection")),
            Mischief::LostBefore => Err(lost()),
            Mischief::LostAfter => {
                self.inner.exchange(request).await?;
                Err(lost())
            }
            Mischief::CutOff => {
                let mut response = self.inner.exchange(request).await?;
                response.body.truncate(response.body.len() / 2);
                Ok(response)
            }
            Mischief::Answer(status, body) => {
                let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
                Ok(Response::new(status, headers, BODIES[body].as_bytes().to_vec()))
            }
            Mischief::Redirect(status) => {
                let location = vec![("location".to_owned(), request.url.clone())];
                Ok(Response::new(status, location, Vec::new()))
            }
        }
    }
}
