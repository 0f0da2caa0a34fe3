//! The calls of this process that are under way: one a key, whoever asks.

use crate::error::Error;
use crate::operation::{Fingerprint, OperationKey};
use crate::outcome::Outcome;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

/// A table of calls under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    table: Arc<Mutex<Table>>,
    empty: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    under_way: HashMap<OperationKey, Arc<Flight>>,
    closed: bool,
}

/// One call, as those see it who wait for it.
#[derive(Debug)]
pub(super) struct Flight {
    fingerprint: Fingerprint,
    /// `None` inside when the call ended without a result, by a panic or with its runtime.
    landed: OnceLock<Option<Result<Outcome, Error>>>,
    over: Notify,
}

/// What boarding led to.
#[derive(Debug)]
pub(super) enum Boarding {
    /// Nobody else is at it: whoever got this makes the call and lands it.
    Lead(Lead),
    /// Somebody is: wait for the result.
    Join(Arc<Flight>),
}

/// The right and duty to make one call. However it ends, the table is cleaned and nobody waits in vain.
#[derive(Debug)]
pub(super) struct Lead {
    key: OperationKey,
    flight: Arc<Flight>,
    table: Arc<Mutex<Table>>,
    empty: Arc<Notify>,
}

impl Flight {
    /// Waits for the result.
    pub(super) async fn landed(&self) -> Option<Result<Outcome, Error>> {
        loop {
            let mut over = pin!(self.over.notified());
            // Registered before the result is read, so that the landing cannot slip between the two.
            over.as_mut().enable();
            if let Some(result) = self.landed.get() {
                return result.clone();
            }
            over.await;
        }
    }

    fn land(&self, result: Option<Result<Outcome, Error>>) {
        let _ = self.landed.set(result);
        self.over.notify_waiters();
    }
}

impl Flights {
    /// Leads the call of `key`, or joins the one under way.
    pub(super) fn board(&self, key: OperationKey, fingerprint: Fingerprint) -> Result<Boarding, Error> {
        let mut table = lock(&self.table);
        if let Some(flight) = table.under_way.get(&key) {
            if flight.fingerprint != fingerprint {
                return Err(Error::KeyReused { key });
            }
            return Ok(Boarding::Join(Arc::clone(flight)));
        }
        if table.closed {
            return Err(Error::ShuttingDown);
        }
        let flight = Arc::new(Flight {
            fingerprint,
            landed: OnceLock::new(),
            over: Notify::new(),
        });
        table.under_way.insert(key, Arc::clone(&flight));
        Ok(Boarding::Lead(Lead {
            key,
            flight,
            table: Arc::clone(&self.table),
            empty: Arc::clone(&self.empty),
        }))
    }

    /// Closes the table for new calls and waits until those under way have landed.
    pub(super) async fn close(&self) {
        loop {
            let mut landed = pin!(self.empty.notified());
            landed.as_mut().enable();
            {
                let mut table = lock(&self.table);
                table.closed = true;
                if table.under_way.is_empty() {
                    return;
                }
            }
            landed.await;
        }
    }
}

impl Lead {
    /// The call, for whoever waits for it.
    pub(super) fn flight(&self) -> Arc<Flight> {
        Arc::clone(&self.flight)
    }

    /// Ends the call with `result`.
    pub(super) fn land(self, result: Result<Outcome, Error>) {
        self.leave();
        self.flight.land(Some(result));
    }

    fn leave(&self) {
        let mut table = lock(&self.table);
        table.under_way.remove(&self.key);
        if table.under_way.is_empty() {
            self.empty.notify_waiters();
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.flight.landed.get().is_none() {
            self.leave();
            self.flight.land(None);
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // No step under this lock can panic half way.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
