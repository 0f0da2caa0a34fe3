//! From a request to the endpoint that answers it.

use super::form::Params;
use super::idempotency::{Keys, Stored, Turn};
use super::objects::{Event, Row};
use super::refusal::Refusal;
use super::world::{Call, World};
use super::{VERSION, intents, lists, refunds, sessions};
use crate::testing::server::http::{Gate, Handler, TurnedAway};
use crate::testing::server::{LoggedRequest, Reply};
use async_trait::async_trait;
use base64::Engine as _;
use serde_json::Value;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Events are kept this long.
const EVENTS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The account at Stripe: what it remembers, and the keys it has seen.
#[derive(Debug)]
pub(super) struct Account {
    world: Mutex<World>,
    keys: Mutex<Keys>,
    requests: Mutex<u64>,
}

impl Account {
    pub(super) fn new(world: World) -> Self {
        Self {
            world: Mutex::new(world),
            keys: Mutex::default(),
            requests: Mutex::new(0),
        }
    }

    /// What it remembers, with everything that the passing of time has changed.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.pass_time();
        world
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request_id(&self) -> String {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests += 1;
        format!("req_Fake{:06}", *requests)
    }

    /// Runs a request without a key; also a `GET`, on which a key has no effect.
    async fn run(&self, request: &LoggedRequest, call: &Call, gate: Gate, breaks: bool) -> Stored {
        gate.pass().await;
        let result = dispatch(&mut self.world(), request, call);
        let broken = breaks && result.as_ref().map_or_else(|refusal| refusal.executed, |_| true);
        stored(&if broken { Err(Refusal::internal()) } else { result }, call)
    }

    /// Runs a request with a key: the first answer is kept, and given again.
    async fn run_once(
        &self,
        request: &LoggedRequest,
        key: &str,
        call: &Call,
        gate: Gate,
        breaks: bool,
    ) -> Result<Reply, Refusal> {
        let path = path(request);
        let now = self.world().now();
        let turn = self.keys().begin(&call.account, key, path, &call.params, now)?;
        let stored = match turn {
            Turn::Replay(stored) => {
                let reply = reply(&stored).header("Idempotent-Replayed", "true");
                return Ok(with_key(reply, key, &stored));
            }
            Turn::First => {
                gate.pass().await;
                let result = dispatch(&mut self.world(), request, call);
                let executed = result.as_ref().map_or_else(|refusal| refusal.executed, |_| true);
                if !executed {
                    self.keys().end(&call.account, key, None);
                    return result.map(|_| Reply::new(200));
                }
                stored(&if breaks { Err(Refusal::internal()) } else { result }, call)
            }
        };
        self.keys().end(&call.account, key, Some(stored.clone()));
        Ok(with_key(reply(&stored), key, &stored).header("Stripe-Should-Retry", "false"))
    }
}

#[async_trait]
impl Handler for Account {
    fn is_inquiry(&self, method: &str, _path: &str, _body: &[u8]) -> bool {
        method == "GET"
    }

    async fn execute(&self, request: &LoggedRequest, gate: Gate, breaks: bool) -> Reply {
        let request_id = self.request_id();
        let version = request.header("Stripe-Version").unwrap_or(VERSION).to_owned();
        let finish = |reply: Reply| {
            reply
                .header("Request-Id", request_id.clone())
                .header("Stripe-Version", version.clone())
        };
        let call = match read(request, &request_id) {
            Ok(call) => call,
            Err(refusal) => return finish(refusal.reply()),
        };
        if !is_known(request) {
            let line = format!("{} {}", request.method, request.path);
            let text = format!("FakeStripe has no {line}");
            self.world().unexpected.push(line);
            return finish(Reply::new(501).header("Content-Type", "text/plain").body(text));
        }
        match &call.key {
            None => finish(reply(&self.run(request, &call, gate, breaks).await)),
            Some(key) => match self.run_once(request, key, &call, gate, breaks).await {
                Ok(reply) => finish(reply),
                Err(refusal) if refusal.status == 409 => finish(refusal.reply().header("Stripe-Should-Retry", "true")),
                Err(refusal) => finish(refusal.reply()),
            },
        }
    }

    fn turn_away(&self, request: &LoggedRequest, why: TurnedAway) -> Reply {
        let reply = match why {
            TurnedAway::Error => Refusal::internal().reply(),
            TurnedAway::Throttled => Refusal::rate_limit()
                .reply()
                .header("Stripe-Rate-Limited-Reason", "global-rate"),
            TurnedAway::StillRunning => Refusal::key_in_use(request.header("Idempotency-Key").unwrap_or_default())
                .reply()
                .header("Stripe-Should-Retry", "true"),
        };
        reply.header("Request-Id", self.request_id())
    }
}

/// Does what the endpoint does. The request is known to have one.
fn dispatch(world: &mut World, request: &LoggedRequest, call: &Call) -> Result<Value, Refusal> {
    lists::check_expand(&call.params)?;
    let path = path(request);
    let segments: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    let mut answer = match (request.method.as_str(), segments.as_slice()) {
        ("POST", ["payment_intents"]) => intents::create(world, call),
        ("POST", ["payment_intents", id, "confirm"]) => intents::confirm(world, call, id),
        ("POST", ["payment_intents", id, "capture"]) => intents::capture(world, call, id),
        ("POST", ["payment_intents", id, "cancel"]) => intents::cancel(world, call, id),
        ("GET", ["payment_intents", "search"]) => lists::search(world, call),
        ("GET", ["payment_intents", id]) => world.intent(id, call).map(|intent| intent.json()),
        ("GET", ["payment_intents"]) => {
            let customer = call.params.text(&["customer"]);
            let keep = |intent: &super::objects::Intent| customer.is_none() || intent.customer.as_deref() == customer;
            lists::page(&world.intents, path, call, &["customer"], keep)
        }
        ("POST", ["refunds"]) => refunds::create(world, call),
        ("POST", ["refunds", id, "cancel"]) => refunds::cancel(world, call, id),
        ("GET", ["refunds", id]) => refunds::retrieve(world, call, id).map(|refund| refund.json()),
        ("GET", ["refunds"]) => {
            let (intent, charge) = (call.params.text(&["payment_intent"]), call.params.text(&["charge"]));
            let keep = |refund: &super::objects::Refund| {
                intent.is_none_or(|id| id == refund.intent) && charge.is_none_or(|id| id == refund.charge)
            };
            lists::page(&world.refunds, path, call, &["charge", "payment_intent"], keep)
        }
        ("GET", ["charges", id]) => world.charge(id, call).map(|charge| charge.json()),
        ("POST", ["checkout", "sessions"]) => sessions::create(world, call),
        ("POST", ["checkout", "sessions", id, "expire"]) => sessions::expire(world, call, id),
        ("GET", ["checkout", "sessions", id]) => sessions::retrieve(world, call, id).map(|session| session.json()),
        ("GET", ["checkout", "sessions"]) => {
            let intent = call.params.text(&["payment_intent"]);
            let keep = |session: &super::objects::Session| intent.is_none() || session.intent.as_deref() == intent;
            lists::page(&world.sessions, path, call, &["payment_intent"], keep)
        }
        ("GET", ["events"]) => events(world, path, call),
        ("GET", ["events", id]) => {
            let found = world
                .events
                .get(id)
                .filter(|event| is_shown(world, event) && event.account == call.account);
            found.map(Row::json).ok_or_else(|| Refusal::no_such("event", id, "id"))
        }
        (method, _) => Err(Refusal::invalid(
            None,
            format!("Unrecognized request URL ({method}: {path})."),
        )),
    }?;
    lists::expand(world, call, &mut answer);
    Ok(answer)
}

/// Has the fake an endpoint for it?
fn is_known(request: &LoggedRequest) -> bool {
    let Some(path) = path(request).strip_prefix("/v1/") else {
        return false;
    };
    let segments: Vec<&str> = path.split('/').collect();
    match request.method.as_str() {
        "POST" => matches!(
            segments.as_slice(),
            ["payment_intents" | "refunds"]
                | ["payment_intents", _, "confirm" | "capture" | "cancel"]
                | ["refunds", _, "cancel"]
                | ["checkout", "sessions"]
                | ["checkout", "sessions", _, "expire"]
        ),
        "GET" => matches!(
            segments.as_slice(),
            ["payment_intents" | "refunds" | "events"]
                | ["payment_intents" | "refunds" | "events" | "charges", _]
                | ["checkout", "sessions"]
                | ["checkout", "sessions", _]
        ),
        _ => false,
    }
}

fn events(world: &World, path: &str, call: &Call) -> Result<Value, Refusal> {
    let kind = call.params.text(&["type"]);
    let kinds = call.params.list("types");
    if kind.is_some() && !kinds.is_empty() {
        return Err(Refusal::invalid(
            Some("types"),
            "You may pass either type or types, not both.",
        ));
    }
    let keep = |event: &Event| {
        kind.is_none_or(|kind| kind == event.kind)
            && (kinds.is_empty() || kinds.contains(&event.kind))
            && is_shown(world, event)
    };
    lists::page(&world.events, path, call, &["type", "types", "delivery_success"], keep)
}

fn is_shown(world: &World, event: &Event) -> bool {
    let now = world.now();
    event.created <= now.before(world.settings.event_lag) && now.since(event.created) < EVENTS_KEPT
}

/// Reads who asks, and for what.
fn read(request: &LoggedRequest, request_id: &str) -> Result<Call, Refusal> {
    authenticate(request)?;
    let encoded = if request.method == "POST" {
        let kind = request.header("Content-Type").unwrap_or_default();
        if !request.body.is_empty() && !kind.starts_with("application/x-www-form-urlencoded") {
            let message = format!("Invalid request: unsupported content type {kind}.");
            return Err(Refusal::invalid(None, message));
        }
        request.body.as_slice()
    } else {
        request.path.split_once('?').map_or("", |(_, query)| query).as_bytes()
    };
    let key = request.header("Idempotency-Key").filter(|_| request.method == "POST");
    Ok(Call {
        params: Params::parse(encoded)?,
        key: key.map(str::to_owned),
        account: request.header("Stripe-Account").unwrap_or_default().to_owned(),
        request_id: Some(request_id.to_owned()),
    })
}

/// Any secret or restricted key of test mode will do, as Bearer or as the user of Basic.
fn authenticate(request: &LoggedRequest) -> Result<(), Refusal> {
    let header = request.header("Authorization").unwrap_or_default();
    let basic = |encoded: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        text.split_once(':').map(|(user, _)| user.to_owned())
    };
    let key = match header.split_once(' ') {
        Some(("Bearer", key)) => Some(key.to_owned()),
        Some(("Basic", encoded)) => basic(encoded),
        _ => None,
    };
    let Some(key) = key else {
        return Err(Refusal::unauthorized("You did not provide an API key."));
    };
    if ["sk_test_", "rk_test_"]
        .iter()
        .any(|prefix| key.len() > prefix.len() && key.starts_with(prefix))
    {
        return Ok(());
    }
    // The answer repeats a part of the key, as Stripe's does: clients must not pass it on.
    let shown: String = key.chars().take(8).collect();
    Err(Refusal::unauthorized(format!("Invalid API Key provided: {shown}****")))
}

fn path(request: &LoggedRequest) -> &str {
    request.path.split_once('?').map_or(&request.path, |(path, _)| path)
}

fn stored(result: &Result<Value, Refusal>, call: &Call) -> Stored {
    let (status, body) = match result {
        Ok(answer) => (200, answer.to_string().into_bytes()),
        Err(refusal) => (refusal.status, refusal.body()),
    };
    Stored {
        status,
        body,
        request_id: call.request_id.clone().unwrap_or_default(),
    }
}

fn reply(stored: &Stored) -> Reply {
    Reply::new(stored.status)
        .header("Content-Type", "application/json")
        .body(stored.body.clone())
}

fn with_key(reply: Reply, key: &str, stored: &Stored) -> Reply {
    reply
        .header("Idempotency-Key", key)
        .header("Original-Request", stored.request_id.clone())
}
