//! Field cases at Stripe, from `execute` down to the bytes on a socket.

mod flows;
mod follow_ups;
mod lost;
mod notifications;
mod same_request;

use crate::wired::{INTENTS, pi_1};
use payonce::testing::server::{LoggedRequest, Reply, ScriptedServer};
use std::sync::{Arc, Mutex};

/// What a server of the cases remembers: the keys that it has created an intent for.
#[derive(Clone, Default)]
pub(super) struct Intents(Arc<Mutex<Vec<String>>>);

impl Intents {
    /// Executes a request: a new key creates an intent, a known one finds its own. Returns its number, from 1, and
    /// whether it was there before.
    pub(super) fn execute(&self, request: &LoggedRequest) -> (usize, bool) {
        let key = request.header("Idempotency-Key").unwrap_or("none").to_owned();
        let mut keys = self.0.lock().unwrap();
        if let Some(at) = keys.iter().position(|known| *known == key) {
            return (at + 1, true);
        }
        keys.push(key);
        (keys.len(), false)
    }

    /// How many intents there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Every POST that is not written down otherwise is answered with the intent of its key, succeeded.
    pub(super) fn answer_at(&self, server: &ScriptedServer) {
        let intents = self.clone();
        server.always(INTENTS, move |request| {
            let (number, replayed) = intents.execute(request);
            let reply = Reply::new(200).json(pi_1("succeeded").replace("pi_1", &format!("pi_{number}")));
            if replayed {
                reply.header("Idempotent-Replayed", "true")
            } else {
                reply
            }
        });
    }

    /// The next POST is executed, and `reply` is what comes of it.
    pub(super) fn next(&self, server: &ScriptedServer, reply: Reply) {
        let intents = self.clone();
        server.reply(
            INTENTS,
            reply.effect(move |request| {
                intents.execute(request);
            }),
        );
    }
}
