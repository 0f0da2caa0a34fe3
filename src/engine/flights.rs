//! The calls of this process that are under way: one a key, whoever asks.

use crate::error::Error;
use crate::operation::{Fingerprint, OperationKey};
use crate::outcome::Outcome;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

pub(super) type Landed = Option<Result<Outcome, Error>>;

/// A table of calls under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    table: Arc<Mutex<Table>>,
    empty: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    under_way: HashMap<OperationKey, Flight>,
    closed: bool,
}

#[derive(Debug)]
struct Flight {
    fingerprint: Fingerprint,
    landed: watch::Receiver<Landed>,
}

/// What boarding led to.
#[derive(Debug)]
pub(super) enum Boarding {
    /// Nobody else is at it: whoever got this makes the call and lands it.
    Lead(Lead),
    /// Somebody is: wait for the result.
    Join(watch::Receiver<Landed>),
}

/// The right and duty to make one call. However it ends, the table is cleaned.
#[derive(Debug)]
pub(super) struct Lead {
    key: OperationKey,
    sender: watch::Sender<Landed>,
    table: Arc<Mutex<Table>>,
    empty: Arc<Notify>,
}

impl Flights {
    /// Leads the call of `key`, or joins the one under way.
    pub(super) fn board(&self, key: OperationKey, fingerprint: Fingerprint) -> Result<Boarding, Error> {
        let mut table = lock(&self.table);
        if let Some(flight) = table.under_way.get(&key) {
            if flight.fingerprint != fingerprint {
                return Err(Error::KeyReused { key });
            }
            return Ok(Boarding::Join(flight.landed.clone()));
        }
        if table.closed {
            return Err(Error::ShuttingDown);
        }
        let (sender, landed) = watch::channel(None);
        table.under_way.insert(key, Flight { fingerprint, landed });
        Ok(Boarding::Lead(Lead {
            key,
            sender,
            table: Arc::clone(&self.table),
            empty: Arc::clone(&self.empty),
        }))
    }

    /// Closes the table for new calls and waits until those under way have landed.
    pub(super) async fn land(&self) {
        loop {
            let landed = self.empty.notified();
            tokio::pin!(landed);
            // Registered before the table is read, so that the last landing cannot slip between the two.
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
    /// The result, for whoever joins or waits.
    pub(super) fn subscribe(&self) -> watch::Receiver<Landed> {
        self.sender.subscribe()
    }

    /// Ends the call with `result`.
    pub(super) fn land(self, result: Result<Outcome, Error>) {
        self.sender.send_replace(Some(result));
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        table.under_way.remove(&self.key);
        if table.under_way.is_empty() {
            self.empty.notify_waiters();
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    // No step under this lock can panic half way.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
