//! Checkout Sessions: Stripe's own payment page.

use super::amount;
use super::cards::{Behaviour, PaymentMethod};
use super::intents::{self, one_of};
use super::objects::{Intent, Row, Session};
use super::refusal::Refusal;
use super::world::{Call, REFERENCE, World};
use crate::clock::Timestamp;
use crate::money::Currency;
use serde_json::Value;
use std::time::Duration;

const CREATE: [&str; 21] = [
    "after_expiration",
    "allow_promotion_codes",
    "automatic_tax",
    "billing_address_collection",
    "cancel_url",
    "client_reference_id",
    "currency",
    "customer",
    "customer_creation",
    "customer_email",
    "expires_at",
    "line_items",
    "locale",
    "metadata",
    "mode",
    "payment_intent_data",
    "payment_method_options",
    "payment_method_types",
    "submit_type",
    "success_url",
    "ui_mode",
];
const DAY: Duration = Duration::from_secs(24 * 3600);
const SHORTEST: Duration = Duration::from_secs(30 * 60);

/// `POST /v1/checkout/sessions`, for payments on the hosted page.
pub(super) fn create(world: &mut World, call: &Call) -> Result<Value, Refusal> {
    let params = &call.params;
    params.only(&CREATE)?;
    if params.required("mode")? != "payment" {
        return Err(Refusal::invalid(Some("mode"), "The fake knows mode=payment only."));
    }
    one_of(call, "ui_mode", &["hosted", "hosted_page"])?;
    params.required("success_url")?;
    let (units, currency) = sum(call)?;
    amount::check(units, currency)?;
    let capture_method = params
        .text(&["payment_intent_data", "capture_method"])
        .unwrap_or("automatic_async");
    let text = |path: &[&str]| params.text(path).map(str::to_owned);
    let session = Session {
        amount: units,
        currency,
        account: call.account.clone(),
        status: "open".to_owned(),
        payment_status: "unpaid".to_owned(),
        intent: None,
        success_url: text(&["success_url"]),
        cancel_url: text(&["cancel_url"]),
        client_reference_id: text(&["client_reference_id"]),
        metadata: params.metadata(&["metadata"])?,
        intent_metadata: params.metadata(&["payment_intent_data", "metadata"])?,
        intent_description: text(&["payment_intent_data", "description"]),
        capture_method: capture_method.to_owned(),
        created: world.now(),
        expires_at: expiry(world, call)?,
        id: world.id("cs_test"),
    };
    // The answer is that of the moment at which the page opened.
    let answer = session.json();
    world.sessions.put(session.clone());
    if world.settings.sessions_pay_at_once {
        pay(world, session);
    }
    Ok(answer)
}

/// `POST /v1/checkout/sessions/{id}/expire`
pub(super) fn expire(world: &mut World, call: &Call, id: &str) -> Result<Value, Refusal> {
    call.params.only(&[])?;
    let mut session = retrieve(world, call, id)?;
    if session.status != "open" {
        let message = format!("Only open sessions can be expired; this one is {}.", session.status);
        return Err(Refusal::against_rules(message));
    }
    session.status = "expired".to_owned();
    let answer = session.json();
    world.emit("checkout.session.expired", answer.clone(), call);
    world.sessions.put(session);
    Ok(answer)
}

/// The session with this id.
pub(super) fn retrieve(world: &World, call: &Call, id: &str) -> Result<Session, Refusal> {
    let found = world.sessions.get(id).filter(|session| session.account == call.account);
    found
        .cloned()
        .ok_or_else(|| Refusal::no_such("checkout.session", id, "session"))
}

/// The payer pays on the page. Returns `false`, and moves nothing, when the page is closed.
pub(super) fn pay(world: &mut World, mut session: Session) -> bool {
    if session.status != "open" {
        return false;
    }
    let payer = Call::nobody(&session.account);
    let now = world.now();
    let mut page_metadata = session.metadata.clone();
    if let Some(reference) = &session.client_reference_id {
        page_metadata
            .entry(REFERENCE.to_owned())
            .or_insert_with(|| reference.clone());
    }
    let mut intent = Intent {
        id: world.id("pi"),
        account: session.account.clone(),
        amount: session.amount,
        amount_capturable: 0,
        amount_received: 0,
        currency: session.currency,
        status: "requires_confirmation".to_owned(),
        capture_method: session.capture_method.clone(),
        confirmation_method: "automatic".to_owned(),
        payment_method: None,
        payment_method_types: vec!["card".to_owned()],
        customer: None,
        description: session.intent_description.clone(),
        return_url: None,
        metadata: session.intent_metadata.clone(),
        page_metadata,
        latest_charge: None,
        last_payment_error: Value::Null,
        next_action: Value::Null,
        canceled_at: None,
        cancellation_reason: None,
        created: now,
        authorized_at: now,
        indexed: Vec::new(),
    };
    world.emit("payment_intent.created", intent.json(), &payer);
    let card = PaymentMethod {
        id: "pm_card_visa".to_owned(),
        behaviour: Behaviour::Approves,
    };
    if intents::pay(world, &mut intent, &card, &payer).is_err() {
        return false;
    }
    session.status = "complete".to_owned();
    session.payment_status = "paid".to_owned();
    session.intent = Some(intent.id);
    world.emit("checkout.session.completed", session.json(), &payer);
    world.sessions.put(session);
    true
}

/// What the lines add up to. They must be priced in place, in one currency.
fn sum(call: &Call) -> Result<(i64, Currency), Refusal> {
    let params = &call.params;
    let missing = |param: String| {
        Refusal::invalid(Some(&param), format!("Missing required param: {param}.")).code("parameter_missing")
    };
    let mut total: Option<(i64, Currency)> = None;
    for index in params.indexes("line_items") {
        let unit = params
            .integer(&["line_items", &index, "price_data", "unit_amount"])?
            .ok_or_else(|| missing(format!("line_items[{index}][price_data][unit_amount]")))?;
        let quantity = params.integer(&["line_items", &index, "quantity"])?.unwrap_or(1);
        let code = params
            .text(&["line_items", &index, "price_data", "currency"])
            .ok_or_else(|| missing(format!("line_items[{index}][price_data][currency]")))?;
        let currency = amount::currency(code)?;
        let (so_far, first) = total.unwrap_or((0, currency));
        if first != currency {
            return Err(Refusal::invalid(
                Some("line_items"),
                "All prices must be in one currency.",
            ));
        }
        let line = unit.checked_mul(quantity).and_then(|line| line.checked_add(so_far));
        let line = line.ok_or_else(|| Refusal::invalid(Some("line_items"), "The sum is too large."))?;
        total = Some((line, currency));
    }
    total.ok_or_else(|| missing("line_items".to_owned()))
}

fn expiry(world: &World, call: &Call) -> Result<Timestamp, Refusal> {
    let now = world.now();
    let Some(seconds) = call.params.integer(&["expires_at"])? else {
        return Ok(now.after(DAY));
    };
    let expires_at = Timestamp::from_unix_seconds(seconds);
    // A second of grace, since the stamp has no fractions.
    if expires_at < now.after(SHORTEST).before(Duration::from_secs(1)) || expires_at > now.after(DAY) {
        let message =
            "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.";
        return Err(Refusal::invalid(Some("expires_at"), message));
    }
    Ok(expires_at)
}
