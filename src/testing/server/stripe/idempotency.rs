//! The layer that gives the first answer again.
//!
//! As documented for API v1: the first result, status and body, is kept for 24 hours once the endpoint has begun to
//! execute, failures and 500s included; other parameters or another endpoint under the same key are an error; a key
//! whose first request is still running is a conflict. Keys are those of an account.

use super::form::Params;
use super::refusal::Refusal;
use crate::clock::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// Keys *may* be removed when they are this old. The fake removes them at once: the client must not rely on more.
const KEPT: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<(String, String), Entry>);

#[derive(Debug)]
struct Entry {
    path: String,
    params: Params,
    since: Timestamp,
    /// `None` while the first request is running.
    answer: Option<Stored>,
}

/// The first answer.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// The request that executed.
    pub(super) request_id: String,
}

/// What a request with a key may do.
#[derive(Debug)]
pub(super) enum Turn {
    /// Execute: it is the first.
    First,
    /// Give this answer again.
    Replay(Stored),
}

impl Keys {
    /// A request with a key comes in.
    pub(super) fn begin(
        &mut self,
        account: &str,
        key: &str,
        path: &str,
        params: &Params,
        now: Timestamp,
    ) -> Result<Turn, Refusal> {
        if key.is_empty() || key.len() > 255 {
            return Err(Refusal::invalid(
                None,
                "Idempotency keys must have 1 to 255 characters.",
            ));
        }
        let id = (account.to_owned(), key.to_owned());
        let known = self.0.get(&id).filter(|entry| now.since(entry.since) < KEPT);
        let Some(entry) = known else {
            let entry = Entry {
                path: path.to_owned(),
                params: params.clone(),
                since: now,
                answer: None,
            };
            self.0.insert(id, entry);
            return Ok(Turn::First);
        };
        if entry.path != path {
            return Err(Refusal::idempotency(format!(
                "Keys for idempotent requests can only be used for the same endpoint they were first used for \
                 ('{}' vs '{path}').",
                entry.path
            )));
        }
        if entry.params != *params {
            return Err(Refusal::idempotency(
                "Keys for idempotent requests can only be used with the same parameters they were first used with.",
            ));
        }
        match &entry.answer {
            None => Err(Refusal::key_in_use(key)),
            Some(stored) => Ok(Turn::Replay(stored.clone())),
        }
    }

    /// The first request with a key is done. Without an answer to keep, the key is free again.
    pub(super) fn end(&mut self, account: &str, key: &str, answer: Option<Stored>) {
        let id = (account.to_owned(), key.to_owned());
        match answer {
            None => {
                self.0.remove(&id);
            }
            Some(answer) => {
                if let Some(entry) = self.0.get_mut(&id) {
                    entry.answer = Some(answer);
                }
            }
        }
    }
}
