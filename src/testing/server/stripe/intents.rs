//! PaymentIntents: create, confirm, capture, cancel, and what their payers do.

use super::amount;
use super::cards::{self, Behaviour, PaymentMethod};
use super::objects::{Charge, Intent, Row};
use super::refusal::Refusal;
use super::world::{Call, World};
use crate::operation::OperationKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CREATE: [&str; 27] = [
    "amount",
    "application_fee_amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "confirmation_method",
    "confirmation_token",
    "currency",
    "customer",
    "description",
    "error_on_requires_action",
    "mandate",
    "mandate_data",
    "metadata",
    "off_session",
    "on_behalf_of",
    "payment_method",
    "payment_method_data",
    "payment_method_options",
    "payment_method_types",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "shipping",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_group",
];
const CONFIRM: [&str; 14] = [
    "amount_to_confirm",
    "capture_method",
    "confirmation_token",
    "error_on_requires_action",
    "mandate",
    "mandate_data",
    "off_session",
    "payment_method",
    "payment_method_data",
    "payment_method_options",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "shipping",
];
const CAPTURE: [&str; 7] = [
    "amount_to_capture",
    "application_fee_amount",
    "final_capture",
    "metadata",
    "statement_descriptor",
    "statement_descriptor_suffix",
    "transfer_data",
];

/// `POST /v1/payment_intents`
pub(super) fn create(world: &mut World, call: &Call) -> Result<Value, Refusal> {
    let params = &call.params;
    params.only(&CREATE)?;
    params.required("amount")?;
    let units = params.integer(&["amount"])?.unwrap_or_default();
    let currency = amount::currency(params.required("currency")?)?;
    amount::check(units, currency)?;
    let capture_method = one_of(call, "capture_method", &["automatic", "automatic_async", "manual"])?;
    let confirmation_method = one_of(call, "confirmation_method", &["automatic", "manual"])?;
    let confirm = params.boolean(&["confirm"])?;
    nobody_there(call)?;
    let method = cards::chosen(params)?;
    let metadata = params.metadata(&["metadata"])?;
    let text = |name| params.text(&[name]).map(str::to_owned);
    let mut types = params.list("payment_method_types");
    if types.is_empty() {
        types.push("card".to_owned());
    }
    let now = world.now();
    let mut intent = Intent {
        id: world.id("pi"),
        account: call.account.clone(),
        amount: units,
        amount_capturable: 0,
        amount_received: 0,
        currency,
        status: "requires_payment_method".to_owned(),
        capture_method: capture_method.unwrap_or("automatic_async").to_owned(),
        confirmation_method: confirmation_method.unwrap_or("automatic").to_owned(),
        payment_method: None,
        payment_method_types: types,
        customer: text("customer"),
        description: text("description"),
        return_url: text("return_url"),
        metadata: metadata.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        page_metadata: BTreeMap::new(),
        latest_charge: None,
        last_payment_error: Value::Null,
        next_action: Value::Null,
        canceled_at: None,
        cancellation_reason: None,
        created: now,
        authorized_at: now,
        indexed: Vec::new(),
    };
    if confirm && method.is_none() {
        return Err(Refusal::invalid(Some("payment_method"), "A payment method is missing.")
            .code("payment_intent_unexpected_state"));
    }
    if let Some(method) = &method {
        intent.payment_method = Some(method.id.clone());
        intent.status = "requires_confirmation".to_owned();
    }
    world.emit("payment_intent.created", intent.json(), call);
    world.save(&intent);
    if let Some(method) = method.filter(|_| confirm) {
        pay(world, &mut intent, &method, call)?;
    }
    Ok(intent.json())
}

/// `POST /v1/payment_intents/{id}/confirm`
pub(super) fn confirm(world: &mut World, call: &Call, id: &str) -> Result<Value, Refusal> {
    call.params.only(&CONFIRM)?;
    let mut intent = world.intent(id, call)?;
    nobody_there(call)?;
    let chosen = cards::chosen(&call.params)?;
    if !matches!(
        intent.status.as_str(),
        "requires_payment_method" | "requires_confirmation" | "requires_action"
    ) {
        let message = match intent.status.as_str() {
            "succeeded" => "it has already succeeded after being previously confirmed".to_owned(),
            other => format!("it has a status of {other}"),
        };
        let message = format!("You cannot confirm this PaymentIntent because {message}.");
        return Err(unexpected_state(message, &intent));
    }
    let method = match (chosen, &intent.payment_method) {
        (Some(method), _) => method,
        (None, Some(id)) => cards::by_name(id)?,
        (None, None) => return Err(unexpected_state("The PaymentIntent has no payment method.", &intent)),
    };
    if let Some(url) = call.params.text(&["return_url"]) {
        intent.return_url = Some(url.to_owned());
    }
    if let Some(capture_method) = one_of(call, "capture_method", &["automatic", "automatic_async", "manual"])? {
        intent.capture_method = capture_method.to_owned();
    }
    pay(world, &mut intent, &method, call)?;
    Ok(intent.json())
}

/// `POST /v1/payment_intents/{id}/capture`
pub(super) fn capture(world: &mut World, call: &Call, id: &str) -> Result<Value, Refusal> {
    let params = &call.params;
    params.only(&CAPTURE)?;
    let mut intent = world.intent(id, call)?;
    let own = params.metadata(&["metadata"])?;
    let asked = params.integer(&["amount_to_capture"])?;
    let is_final = !params.has(&["final_capture"]) || params.boolean(&["final_capture"])?;
    if intent.status != "requires_capture" {
        let message = format!(
            "This PaymentIntent could not be captured because it has a status of {}. Only a PaymentIntent with one of \
             the following statuses may be captured: requires_capture.",
            intent.status
        );
        return Err(unexpected_state(message, &intent));
    }
    let units = asked.unwrap_or(intent.amount_capturable);
    if units <= 0 || units > intent.amount_capturable {
        let message = "The amount to capture is not within the capturable amount.";
        return Err(Refusal::against_rules(message)
            .code("amount_too_large")
            .with("param", "amount_to_capture"));
    }
    world.moves(OperationKind::Capture, &intent, &own, units, id, call);
    merge(&mut intent.metadata, own);
    intent.amount_received += units;
    intent.amount_capturable = if is_final { 0 } else { intent.amount_capturable - units };
    if intent.amount_capturable == 0 {
        intent.status = "succeeded".to_owned();
    }
    if let Some(mut charge) = intent
        .latest_charge
        .as_ref()
        .and_then(|id| world.charges.get(id))
        .cloned()
    {
        charge.amount_captured += units;
        world.emit("charge.captured", charge.json(), call);
        world.charges.put(charge);
    }
    if intent.status == "succeeded" {
        world.emit("payment_intent.succeeded", intent.json(), call);
    }
    world.save(&intent);
    Ok(intent.json())
}

/// `POST /v1/payment_intents/{id}/cancel`
pub(super) fn cancel(world: &mut World, call: &Call, id: &str) -> Result<Value, Refusal> {
    const REASONS: [&str; 4] = ["abandoned", "duplicate", "fraudulent", "requested_by_customer"];
    call.params.only(&["cancellation_reason"])?;
    let mut intent = world.intent(id, call)?;
    let reason = one_of(call, "cancellation_reason", &REASONS)?;
    if matches!(intent.status.as_str(), "succeeded" | "canceled") {
        let message = format!(
            "You cannot cancel this PaymentIntent because it has a status of {}. Only a PaymentIntent with one of the \
             following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, \
             requires_action, processing.",
            intent.status
        );
        return Err(unexpected_state(message, &intent));
    }
    world.release(&mut intent, reason.unwrap_or_default(), call);
    Ok(intent.json())
}

/// Charges `method` for the intent.
pub(super) fn pay(world: &mut World, intent: &mut Intent, method: &PaymentMethod, call: &Call) -> Result<(), Refusal> {
    intent.payment_method = Some(method.id.clone());
    intent.next_action = Value::Null;
    let nobody_there = nobody_there(call)?;
    match method.behaviour {
        Behaviour::Approves => approve(world, intent, call),
        Behaviour::Declines { code, reason } => {
            let error = decline(world, intent, code, reason, call);
            return Err(Refusal::declined(&error, intent.json()));
        }
        Behaviour::Authenticates if nobody_there => {
            let code = "authentication_required";
            let error = decline(world, intent, code, code, call);
            return Err(Refusal::declined(&error, intent.json()));
        }
        Behaviour::Authenticates => {
            let page = format!(
                "https://hooks.stripe.com/3d_secure_2/hosted?payment_intent={}",
                intent.id
            );
            let redirect = json!({ "return_url": intent.return_url, "url": page });
            let next = json!({ "type": "redirect_to_url", "redirect_to_url": redirect });
            waits(world, intent, "requires_action", next, call);
        }
        Behaviour::ShowsQrCode => {
            let page = format!("https://payments.stripe.com/promptpay/instructions/{}", intent.id);
            let code = json!({ "data": format!("000201{}", intent.id), "hosted_instructions_url": page });
            let next = json!({ "type": "promptpay_display_qr_code", "promptpay_display_qr_code": code });
            waits(world, intent, "requires_action", next, call);
        }
        Behaviour::Processes => waits(world, intent, "processing", Value::Null, call),
    }
    Ok(())
}

/// The money moves, or is reserved.
pub(super) fn approve(world: &mut World, intent: &mut Intent, call: &Call) {
    let none = BTreeMap::new();
    let manual = intent.capture_method == "manual";
    intent.next_action = Value::Null;
    intent.last_payment_error = Value::Null;
    let charge = Charge {
        id: world.id("ch"),
        status: "succeeded".to_owned(),
        amount_captured: if manual { 0 } else { intent.amount },
        failure: None,
        ..charge(world, intent)
    };
    intent.latest_charge = Some(charge.id.clone());
    let event = if manual {
        world.moves(OperationKind::Authorize, intent, &none, intent.amount, &intent.id, call);
        intent.status = "requires_capture".to_owned();
        intent.amount_capturable = intent.amount;
        intent.authorized_at = world.now();
        "payment_intent.amount_capturable_updated"
    } else {
        world.moves(OperationKind::Charge, intent, &none, intent.amount, &intent.id, call);
        intent.status = "succeeded".to_owned();
        intent.amount_received = intent.amount;
        "payment_intent.succeeded"
    };
    world.emit("charge.succeeded", charge.json(), call);
    world.charges.put(charge);
    world.emit(event, intent.json(), call);
    world.save(intent);
}

/// The issuer says no. Returns the error; the intent is there all the same, and waits for another payment method.
pub(super) fn decline(world: &mut World, intent: &mut Intent, code: &str, reason: &str, call: &Call) -> Value {
    let charge = Charge {
        id: world.id("ch"),
        status: "failed".to_owned(),
        amount_captured: 0,
        failure: Some((code.to_owned(), reason.to_owned())),
        ..charge(world, intent)
    };
    let method = intent.payment_method.take().unwrap_or_default();
    let error = cards::decline(code, reason, Some(&charge.id), &method);
    intent.status = "requires_payment_method".to_owned();
    intent.next_action = Value::Null;
    intent.last_payment_error = error.clone();
    intent.latest_charge = Some(charge.id.clone());
    world.emit("charge.failed", charge.json(), call);
    world.charges.put(charge);
    world.emit("payment_intent.payment_failed", intent.json(), call);
    world.save(intent);
    error
}

fn waits(world: &mut World, intent: &mut Intent, status: &str, next_action: Value, call: &Call) {
    intent.status = status.to_owned();
    intent.next_action = next_action;
    world.emit(&format!("payment_intent.{status}"), intent.json(), call);
    world.save(intent);
}

/// Is there no payer who could authenticate?
fn nobody_there(call: &Call) -> Result<bool, Refusal> {
    let off_session = call.params.boolean(&["off_session"])?;
    Ok(call.params.boolean(&["error_on_requires_action"])? || off_session)
}

/// A charge for the whole intent, whose result its maker fills in.
fn charge(world: &World, intent: &Intent) -> Charge {
    Charge {
        id: String::new(),
        account: intent.account.clone(),
        intent: intent.id.clone(),
        payment_method: intent.payment_method.clone(),
        amount: intent.amount,
        amount_captured: 0,
        amount_refunded: 0,
        currency: intent.currency,
        status: String::new(),
        failure: None,
        metadata: intent.metadata.clone(),
        description: intent.description.clone(),
        created: world.now(),
    }
}

fn unexpected_state(message: impl Into<String>, intent: &Intent) -> Refusal {
    Refusal::against_rules(message)
        .code("payment_intent_unexpected_state")
        .with("payment_intent", intent.json())
}

/// The text of a parameter that has a fixed set of values.
pub(super) fn one_of<'a>(call: &'a Call, name: &str, values: &[&str]) -> Result<Option<&'a str>, Refusal> {
    match call.params.text(&[name]) {
        Some(text) if !values.contains(&text) => {
            let message = format!("Invalid {name}: must be one of {}", values.join(", "));
            Err(Refusal::invalid(Some(name), message))
        }
        found => Ok(found),
    }
}

/// Adds pairs to metadata; an empty value removes its name.
fn merge(metadata: &mut BTreeMap<String, String>, own: BTreeMap<String, String>) {
    for (name, value) in own {
        if value.is_empty() {
            metadata.remove(&name);
        } else {
            metadata.insert(name, value);
        }
    }
}
