//! What became of an operation: asked by what *we* sent, by reads alone (api/pagination, api/events, docs/search).
//!
//! Top-level lists of API v1 are immediately consistent (docs/api-v2-overview), so a list that was read to its end
//! proves absence. The search index lags by up to an hour: a hit is worth having, a miss is worth nothing.

use super::Stripe;
use super::form::Form;
use super::json::Json;
use super::object::{self, Unclear, View, id_in, integer, text};
use super::options::{Flow, is_id};
use super::request::refund_field;
use super::response::{Answer, Found};
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::gateway::Inquiry;
use crate::operation::{GatewayRef, OperationKind};
use crate::outcome::{Conflict, ConflictKind, Evidence, Failed, FailureCategory, Outcome, Succeeded};
use crate::record::{Record, State};
use crate::transport::{Method, Request};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where an operation is looked for first: how far the clocks may differ before the first send, and how long a request
/// may take after the last.
const NEAR: (Duration, Duration) = (Duration::from_secs(5 * 60), Duration::from_secs(10 * 60));
/// Where it has to be missing before that proves something. Our clock may have been wrong by hours when it was sent, and
/// been set right since.
const FAR: (Duration, Duration) = (Duration::from_secs(24 * 3600), Duration::from_secs(24 * 3600));
/// Pages of 100, so that one inquiry stays a bounded number of reads.
const PAGES: u32 = 20;

impl Stripe {
    /// See [`Gateway::inquire`](crate::gateway::Gateway::inquire).
    pub(super) async fn look(&self, record: &Record) -> Result<Inquiry, Failure> {
        match record.kind() {
            OperationKind::Charge | OperationKind::Authorize => self.look_for_payment(record).await,
            OperationKind::Refund => self.look_for_refund(record).await,
            OperationKind::Capture | OperationKind::Void => self.look_at_target(record).await,
            OperationKind::Update => Err(Failure::maybe_executed(
                FailureKind::Unsupported,
                "this adapter sends no updates to Stripe",
            )),
        }
    }

    async fn look_for_payment(&self, record: &Record) -> Result<Inquiry, Failure> {
        let view = view(record);
        if let Some(id) = known_id(record) {
            let (path, query) = if id.starts_with("cs_") {
                (format!("/v1/checkout/sessions/{id}"), expand("payment_intent"))
            } else {
                (format!("/v1/payment_intents/{id}"), Form::new())
            };
            let outcome = self.read_own(&path, &query, &view).await?;
            return Ok(Inquiry::Found(still_authorized(record, outcome)));
        }
        let (path, query) = match view.flow {
            Some(Flow::Page) => ("/v1/checkout/sessions", expand("data.payment_intent")),
            _ => ("/v1/payment_intents", Form::new()),
        };
        let ours = |object: &Json<'_>| is_ours(object, record);
        let near = window(query.clone(), record, NEAR);
        let (listing, whole) = match self.list(path, &near, &ours).await {
            // Stand-ins refuse the filter. The whole list, where it is short enough to be read, proves as much.
            Err(failure) if failure.http_status() == Some(400) => {
                let all = query.clone().put("limit", 100_i64);
                (self.list(path, &all, &ours).await?, true)
            }
            listing => (listing?, false),
        };
        if let Some(outcome) = adopt(&listing, &view)? {
            return Ok(Inquiry::Found(outcome));
        }
        // What was created outside of the window, or among more than was read.
        if let Some(listing) = self.search(record, &ours).await?
            && let Some(outcome) = adopt(&listing, &view)?
        {
            return Ok(Inquiry::Found(outcome));
        }
        if whole || !listing.complete {
            return Ok(Inquiry::Absent {
                consistent: listing.complete,
            });
        }
        let listing = self.list(path, &window(query, record, FAR), &ours).await?;
        Ok(match adopt(&listing, &view)? {
            Some(outcome) => Inquiry::Found(outcome),
            None => Inquiry::Absent {
                consistent: listing.complete,
            },
        })
    }

    async fn look_for_refund(&self, record: &Record) -> Result<Inquiry, Failure> {
        let view = view(record);
        if let Some(id) = known_id(record) {
            let path = format!("/v1/refunds/{id}");
            return Ok(Inquiry::Found(self.read_own(&path, &Form::new(), &view).await?));
        }
        let target = known_target(&view)?;
        let query = Form::new().put(refund_field(target), target).put("limit", 100_i64);
        let listing = self
            .list("/v1/refunds", &query, &|object| is_ours(object, record))
            .await?;
        if listing.missing {
            return Ok(Inquiry::Found(no_such_payment(None)));
        }
        Ok(match adopt(&listing, &view)? {
            Some(outcome) => Inquiry::Found(outcome),
            None => Inquiry::Absent {
                consistent: listing.complete,
            },
        })
    }

    /// A capture or void shows in the state of the payment, which a read by id gives without lag.
    async fn look_at_target(&self, record: &Record) -> Result<Inquiry, Failure> {
        let view = view(record);
        let target = known_target(&view)?;
        let path = if target.starts_with("cs_") {
            format!("/v1/checkout/sessions/{target}")
        } else {
            format!("/v1/payment_intents/{target}")
        };
        let answer = self.get(&path, &Form::new(), None).await?;
        let (object, evidence) = match answer.found()? {
            Found::Object(object, evidence) => (object, evidence),
            Found::Missing => return Ok(Inquiry::Found(no_such_payment(Some(GatewayRef::new(target))))),
        };
        let capture = record.kind() == OperationKind::Capture;
        let read = if capture {
            object::captured(&object, &view, evidence)
        } else {
            object::voided(&object, &view, evidence)
        };
        let marked = object::mark(&object, object::CAPTURE_KEY_MARK).is_some();
        match read.map_err(|why| unreadable(&why))? {
            Some(Outcome::Succeeded(mut succeeded)) => {
                // Another operation's mark has been told apart already, so a mark here is our own.
                if !(capture && marked) {
                    succeeded.notes.extend(self.doubt(record, target).await);
                }
                Ok(Inquiry::Found(Outcome::Succeeded(succeeded)))
            }
            Some(outcome) => Ok(Inquiry::Found(outcome)),
            None => Ok(Inquiry::Absent { consistent: true }),
        }
    }

    /// The effect is there, once: a payment is captured or cancelled only one time. Whether this operation caused it
    /// shows in the event, which carries the key of the request (api/events/object); if not, that is worth a remark.
    async fn doubt(&self, record: &Record, target: &str) -> Option<String> {
        let kind = if record.kind() == OperationKind::Capture {
            "payment_intent.succeeded"
        } else if target.starts_with("cs_") {
            "checkout.session.expired"
        } else {
            "payment_intent.canceled"
        };
        let caused = |event: &Json<'_>| {
            let key = event
                .get("request")
                .and_then(|request| text(request, "idempotency_key"));
            let object = event.get("data").and_then(|data| data.get("object"));
            key == Some(record.wire_identity()) && object.and_then(|object| text(object, "id")) == Some(target)
        };
        let query = window(Form::new().put("type", kind), record, NEAR);
        match self.list("/v1/events", &query, &caused).await {
            Ok(listing) if !listing.found.is_empty() => None,
            Ok(_) => Some(format!(
                "no {kind} event names this operation: another request may have caused it"
            )),
            Err(failure) => Some(format!(
                "whether this operation caused it could not be asked: {failure}"
            )),
        }
    }

    /// After a refund was refused without a code: how much of the payment has been refunded, by whomever. A read that
    /// fails changes nothing about the refusal.
    pub(super) async fn explain_refusal(&self, failed: &mut Failed, target: &str, timeout: Duration) {
        let (path, query) = if target.starts_with("pi_") {
            (format!("/v1/payment_intents/{target}"), expand("latest_charge"))
        } else {
            (format!("/v1/charges/{target}"), Form::new())
        };
        let Ok(answer) = self.get(&path, &query, Some(timeout)).await else {
            return;
        };
        let Ok(Found::Object(object, _)) = answer.found() else {
            return;
        };
        let charge = object.get("latest_charge").unwrap_or(&object);
        for name in ["amount_captured", "amount_refunded"] {
            let units = integer(charge, name).map(|units| units.to_string());
            object::detail(&mut failed.evidence, name, units.as_deref());
        }
    }

    /// An object by the id that Stripe gave this operation. Its absence says that something is wrong with the
    /// question (another account, deleted test data), not that the operation never was.
    async fn read_own(&self, path: &str, query: &Form, view: &View<'_>) -> Result<Outcome, Failure> {
        match self.get(path, query, None).await?.found()? {
            Found::Object(object, evidence) => object::read(&object, view, evidence).map_err(|why| unreadable(&why)),
            Found::Missing => Err(Failure::maybe_executed(
                FailureKind::Unreadable,
                "Stripe does not know an id that it gave: another account or mode?",
            )),
        }
    }

    /// `None` where there is no search to be had.
    async fn search(
        &self,
        record: &Record,
        wanted: &(dyn Fn(&Json<'_>) -> bool + Sync),
    ) -> Result<Option<Listing>, Failure> {
        // The key is 32 hex digits, so nothing in it needs escaping in the query language (docs/search).
        let query = format!("metadata['{}']:'{}'", object::KEY_MARK, record.key());
        let query = Form::new().put("query", query).put("limit", 100_i64);
        let answer = self.get("/v1/payment_intents/search", &query, None).await?;
        if answer.refuses_the_way() {
            return Ok(None);
        }
        let mut listing = Listing::default();
        match answer.found()? {
            Found::Object(page, evidence) => listing.add(&page, evidence, wanted)?,
            Found::Missing => return Ok(None),
        };
        Ok(Some(listing))
    }

    /// Reads a list to its end, or to the bound.
    async fn list(
        &self,
        path: &str,
        query: &Form,
        wanted: &(dyn Fn(&Json<'_>) -> bool + Sync),
    ) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let query = query.clone().put("starting_after", cursor.take());
            match self.get(path, &query, None).await?.found()? {
                Found::Missing => {
                    listing.missing = true;
                    break;
                }
                Found::Object(page, evidence) => cursor = listing.add(&page, evidence, wanted)?,
            }
            if listing.complete || cursor.is_none() {
                break;
            }
        }
        Ok(listing)
    }

    async fn get(&self, path: &str, query: &Form, timeout: Option<Duration>) -> Result<Answer<'static>, Failure> {
        let query = query.encode();
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{}{path}{separator}{query}", self.base_url);
        let mut request = self.authorized(Request::new(Method::Get, url));
        request.timeout = timeout;
        let response = self.transport.exchange(request).await?;
        Ok(Answer::new(&response, self.clock.now()).into_owned())
    }
}

/// What a list brought that was looked for.
#[derive(Debug, Default)]
struct Listing {
    /// By id, so that a page that shifted between two reads shows nothing twice.
    found: BTreeMap<String, Json<'static>>,
    evidence: Evidence,
    /// Read to its end.
    complete: bool,
    /// What the list is about does not exist.
    missing: bool,
}

impl Listing {
    /// Adds a page, and says after which id the next one begins.
    fn add(
        &mut self,
        page: &Json<'static>,
        evidence: Evidence,
        wanted: &(dyn Fn(&Json<'_>) -> bool + Sync),
    ) -> Result<Option<String>, Failure> {
        let shape = matches!(text(page, "object"), Some("list" | "search_result"));
        let Some(data) = page.get("data").and_then(Json::as_array).filter(|_| shape) else {
            return Err(unreadable(&Unclear("a list was asked for".to_owned())));
        };
        for object in data.iter().filter(|object| wanted(object)) {
            if let Some(id) = text(object, "id") {
                self.found.insert(id.to_owned(), object.clone());
            }
        }
        self.evidence = evidence;
        match page.get("has_more").and_then(Json::as_bool) {
            Some(false) => self.complete = true,
            Some(true) => return Ok(data.last().and_then(|object| text(object, "id")).map(str::to_owned)),
            None => {}
        }
        Ok(None)
    }
}

/// How far an object has come, whatever its kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It took no money and never will.
    Dead,
    /// The payer may still act on it.
    Waiting,
    /// Money moved, is moving or is held.
    Moving,
}

fn stage(object: &Json<'_>) -> Stage {
    let refund = text(object, "object") == Some("refund");
    match text(object, "status").unwrap_or("") {
        "canceled" | "expired" | "failed" => Stage::Dead,
        "succeeded" | "processing" | "requires_capture" | "complete" | "pending" => Stage::Moving,
        "requires_action" if refund => Stage::Moving,
        _ => Stage::Waiting,
    }
}

/// Takes the one object that stands for the operation: the one with money in it, else the earliest that is not dead.
/// Two with money in them are for a person to look at.
fn adopt(listing: &Listing, view: &View<'_>) -> Result<Option<Outcome>, Failure> {
    let mut objects: Vec<&Json<'_>> = listing.found.values().collect();
    objects.sort_by_key(|object| {
        let created = integer(object, "created").unwrap_or(i64::MAX);
        (std::cmp::Reverse(stage(object)), created)
    });
    let Some(first) = objects.first() else {
        return Ok(None);
    };
    let moving: Vec<&str> = objects
        .iter()
        .filter(|object| stage(object) == Stage::Moving)
        .filter_map(|object| id_in(object, "id"))
        .collect();
    if let [one, _, ..] = moving.as_slice() {
        let detail = format!(
            "Stripe holds {} for this operation: {}",
            moving.len(),
            moving.join(", ")
        );
        let mut conflict = Conflict::new(ConflictKind::TwoPayments, detail);
        conflict.gateway_ref = Some(GatewayRef::new(*one));
        conflict.evidence = listing.evidence.clone();
        return Ok(Some(Outcome::Conflict(conflict)));
    }
    let mut outcome = object::read(first, view, listing.evidence.clone()).map_err(|why| unreadable(&why))?;
    let waiting = objects.iter().filter(|object| stage(object) == Stage::Waiting).count();
    if let Outcome::Succeeded(succeeded) = &mut outcome
        && waiting > 0
    {
        let note = format!("{waiting} more of this operation at Stripe could still be paid: cancel them");
        succeeded.notes.push(note);
    }
    Ok(Some(outcome))
}

/// An authorization that took effect and was released since is no failure of the authorization, and no contradiction.
fn still_authorized(record: &Record, outcome: Outcome) -> Outcome {
    let (State::Known(Outcome::Succeeded(known)), Outcome::Failed(failed)) = (record.state(), &outcome) else {
        return outcome;
    };
    let released = matches!(failed.category, FailureCategory::Cancelled | FailureCategory::Expired);
    if record.kind() != OperationKind::Authorize || !released {
        return outcome;
    }
    let mut succeeded: Succeeded = known.clone();
    succeeded
        .notes
        .push("the authorization has been released since".to_owned());
    succeeded.evidence.clone_from(&failed.evidence);
    Outcome::Succeeded(succeeded)
}

fn view(record: &Record) -> View<'_> {
    // What `prepare` said about the payer, as the record kept it.
    let flow = match record.payable_until() {
        None => Flow::AtOnce,
        Some(Timestamp::NEVER) => Flow::Client,
        Some(_) => Flow::Page,
    };
    let target = record.target().and_then(|target| target.gateway_ref.as_ref());
    View {
        kind: record.kind(),
        flow: Some(flow),
        key: Some(record.key()),
        target: target.map(GatewayRef::as_str),
    }
}

/// By our own key alone: a reference or an amount may be another attempt's.
fn is_ours(object: &Json<'_>, record: &Record) -> bool {
    object::mark(object, object::KEY_MARK).is_some_and(|mark| mark == record.key().to_string())
}

fn window(query: Form, record: &Record, (before, after): (Duration, Duration)) -> Form {
    let created = Form::new()
        .put("gte", record.first_sent_at().before(before).unix_seconds())
        .put("lte", record.last_sent_at().after(after).unix_seconds());
    query.put("created", created).put("limit", 100_i64)
}

fn expand(path: &str) -> Form {
    Form::new().put("expand", vec![path])
}

/// The id that Stripe gave the operation. It goes into a path, so its alphabet is checked.
fn known_id(record: &Record) -> Option<&str> {
    record.gateway_ref().map(GatewayRef::as_str).filter(|id| is_id(id))
}

fn known_target<'a>(view: &View<'a>) -> Result<&'a str, Failure> {
    view.target.filter(|id| is_id(id)).ok_or_else(|| {
        let detail = "the target has no known payment at Stripe, so there is nothing to ask by";
        Failure::not_executed(FailureKind::Unsupported, detail)
    })
}

fn no_such_payment(id: Option<GatewayRef>) -> Outcome {
    let mut failed = Failed::new(FailureCategory::NoSuchPayment);
    failed.gateway_ref = id;
    failed.evidence.http_status = Some(404);
    Outcome::Failed(failed)
}

fn unreadable(why: &Unclear) -> Failure {
    let detail = format!("an answer that cannot be relied on: {}", why.0);
    Failure::maybe_executed(FailureKind::Unreadable, detail)
}
