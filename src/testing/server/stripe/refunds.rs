//! Refunds.

use super::intents::one_of;
use super::objects::{Charge, Refund, Row};
use super::refusal::Refusal;
use super::world::{Call, World};
use crate::operation::OperationKind;
use serde_json::Value;
use std::collections::BTreeMap;

const CREATE: [&str; 10] = [
    "amount",
    "charge",
    "currency",
    "customer",
    "instructions_email",
    "metadata",
    "payment_intent",
    "reason",
    "refund_application_fee",
    "reverse_transfer",
];

/// `POST /v1/refunds`
pub(super) fn create(world: &mut World, call: &Call) -> Result<Value, Refusal> {
    let params = &call.params;
    params.only(&CREATE)?;
    let asked = params.integer(&["amount"])?;
    let metadata = params.metadata(&["metadata"])?;
    let reason = one_of(call, "reason", &["duplicate", "fraudulent", "requested_by_customer"])?;
    let mut charge = target(world, call)?;
    if charge.amount_captured == 0 {
        return reverse(world, call, charge, metadata);
    }
    let left = charge.amount_captured - charge.amount_refunded;
    if left == 0 {
        let message = format!("Charge {} has already been refunded.", charge.id);
        return Err(Refusal::against_rules(message).code("charge_already_refunded"));
    }
    let units = asked.unwrap_or(left);
    if units <= 0 {
        return Err(Refusal::invalid(Some("amount"), "Invalid positive integer").code("parameter_invalid_integer"));
    }
    if units > left {
        // It has no code: see the samples.
        let message = format!("Refund amount ({units}) is greater than unrefunded amount on charge ({left})");
        return Err(Refusal::against_rules(message).with("param", "amount"));
    }
    let status = world.settings.refund_status.clone();
    let refund = Refund {
        reason: reason.map(str::to_owned),
        ..refund(world, &charge, units, metadata, &status, call)
    };
    if status != "failed" && status != "canceled" {
        charge.amount_refunded += units;
        world.emit("charge.refunded", charge.json(), call);
        world.charges.put(charge);
    }
    world.emit("refund.created", refund.json(), call);
    if status == "succeeded" {
        moved(world, &refund);
    }
    let answer = refund.json();
    world.refunds.put(refund);
    Ok(answer)
}

/// `POST /v1/refunds/{id}/cancel`
pub(super) fn cancel(world: &mut World, call: &Call, id: &str) -> Result<Value, Refusal> {
    call.params.only(&[])?;
    let refund = retrieve(world, call, id)?;
    if refund.status != "requires_action" {
        let message = format!("A refund with a status of {} cannot be canceled.", refund.status);
        return Err(Refusal::against_rules(message));
    }
    Ok(finish(world, refund, "canceled", call))
}

/// The refund with this id.
pub(super) fn retrieve(world: &World, call: &Call, id: &str) -> Result<Refund, Refusal> {
    let found = world.refunds.get(id).filter(|refund| refund.account == call.account);
    found.cloned().ok_or_else(|| Refusal::no_such("refund", id, "id"))
}

/// A bank takes the refund to its next status. A succeeded one can still fail, days later.
pub(super) fn finish(world: &mut World, mut refund: Refund, status: &str, call: &Call) -> Value {
    let moves = status == "succeeded" && refund.status != "succeeded";
    let returns = matches!(status, "failed" | "canceled") && !matches!(refund.status.as_str(), "failed" | "canceled");
    refund.status = status.to_owned();
    if status == "failed" {
        refund.failure_reason = Some("expired_or_canceled_card".to_owned());
    }
    if moves {
        moved(world, &refund);
    }
    if let Some(mut charge) = world.charges.get(&refund.charge).filter(|_| returns).cloned() {
        charge.amount_refunded -= refund.amount;
        world.charges.put(charge);
    }
    let answer = refund.json();
    world.emit("refund.updated", answer.clone(), call);
    if status == "failed" {
        world.emit("refund.failed", answer.clone(), call);
    }
    world.refunds.put(refund);
    answer
}

/// A refund of an uncaptured payment cancels it.
fn reverse(
    world: &mut World,
    call: &Call,
    charge: Charge,
    metadata: BTreeMap<String, String>,
) -> Result<Value, Refusal> {
    let mut intent = world.intent(&charge.intent, call)?;
    if intent.status != "requires_capture" {
        return Err(Refusal::against_rules(
            "This payment was not taken and cannot be refunded.",
        ));
    }
    if call
        .params
        .integer(&["amount"])?
        .is_some_and(|units| units != charge.amount)
    {
        let message = "An uncaptured payment can only be refunded whole.";
        return Err(Refusal::against_rules(message).with("param", "amount"));
    }
    let refund = refund(world, &charge, charge.amount, metadata, "succeeded", call);
    world.release(&mut intent, "", call);
    let answer = refund.json();
    world.emit("refund.created", answer.clone(), call);
    world.refunds.put(refund);
    Ok(answer)
}

fn target(world: &World, call: &Call) -> Result<Charge, Refusal> {
    let params = &call.params;
    match (params.text(&["payment_intent"]), params.text(&["charge"])) {
        (Some(id), None) => {
            let intent = world
                .intent(id, call)
                .map_err(|_| Refusal::no_such("payment_intent", id, "payment_intent"))?;
            let charge = intent.latest_charge.as_ref().and_then(|id| world.charges.get(id));
            let taken = charge.filter(|charge| charge.status == "succeeded").cloned();
            taken.ok_or_else(|| {
                Refusal::against_rules("This PaymentIntent does not have a successful charge to refund.")
            })
        }
        (None, Some(id)) => world.charge(id, call),
        (Some(_), Some(_)) => Err(Refusal::invalid(None, "Give either payment_intent or charge.")),
        (None, None) => {
            let message = "One of the following params should be provided: payment_intent or charge.";
            Err(Refusal::invalid(Some("payment_intent"), message).code("parameter_missing"))
        }
    }
}

fn refund(
    world: &mut World,
    charge: &Charge,
    amount: i64,
    metadata: BTreeMap<String, String>,
    status: &str,
    call: &Call,
) -> Refund {
    Refund {
        id: world.id("re"),
        account: call.account.clone(),
        charge: charge.id.clone(),
        intent: charge.intent.clone(),
        amount,
        currency: charge.currency,
        status: status.to_owned(),
        reason: None,
        failure_reason: (status == "failed").then(|| "expired_or_canceled_card".to_owned()),
        metadata,
        key: call.key.clone(),
        created: world.now(),
    }
}

/// The money is back with the payer.
fn moved(world: &World, refund: &Refund) {
    let by = Call {
        key: refund.key.clone(),
        ..Call::nobody(&refund.account)
    };
    if let Ok(intent) = world.intent(&refund.intent, &by) {
        // A refund is an operation of its own: without metadata it is known by its id, never by the payment's reference.
        let unnamed = super::objects::Intent {
            metadata: BTreeMap::new(),
            ..intent
        };
        world.moves(
            OperationKind::Refund,
            &unnamed,
            &refund.metadata,
            refund.amount,
            &refund.id,
            &by,
        );
    }
}
