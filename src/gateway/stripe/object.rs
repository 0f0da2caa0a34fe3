//! What Stripe's objects say about an operation: PaymentIntent, Refund and Checkout Session (docs/payments/
//! paymentintents/lifecycle, docs/refunds, api/checkout/sessions/object).
//!
//! Everything but the id, the status and the amounts may be missing: older versions and stand-ins leave much out, and
//! newer ones add. A status that is not known here is never taken for success or failure.

use super::amount;
use super::codes;
use super::json::Json;
use super::options::{Flow, is_id};
use crate::clock::Timestamp;
use crate::money::{Currency, Money};
use crate::operation::{GatewayRef, OperationKey, OperationKind};
use crate::outcome::{
    Conflict, ConflictKind, Evidence, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded,
};
use crate::secret::Secret;
use crate::transport::scrub;

/// Metadata with which every payment and refund is marked as ours: the operation's key, and the caller's reference.
pub(super) const KEY_MARK: &str = "payonce_key";
pub(super) const REFERENCE_MARK: &str = "payonce_reference";
/// A capture writes into the metadata of the payment that it captures, so it has names of its own.
pub(super) const CAPTURE_KEY_MARK: &str = "payonce_capture_key";
pub(super) const CAPTURE_REFERENCE_MARK: &str = "payonce_capture_reference";

/// For whom an object is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) kind: OperationKind,
    /// `None` where it is not known: in a notification.
    pub(super) flow: Option<Flow>,
    pub(super) key: Option<OperationKey>,
    /// The payment that a capture, void or refund acts on.
    pub(super) target: Option<&'a str>,
}

/// Why an object says nothing that can be relied on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unclear(pub(super) String);

fn unclear<T>(why: impl Into<String>) -> Result<T, Unclear> {
    Err(Unclear(why.into()))
}

/// What the answer to a send, or the object of an operation's own, says about it.
pub(super) fn read(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Unclear> {
    let kind = text(object, "object");
    let outcome = match (view.kind, kind) {
        (OperationKind::Charge | OperationKind::Authorize, Some("payment_intent")) => {
            return payment(object, view, evidence);
        }
        (OperationKind::Charge | OperationKind::Authorize, Some("checkout.session")) => {
            return session(object, view, evidence);
        }
        (OperationKind::Refund, Some("refund")) => return refund(object, view, evidence),
        (OperationKind::Capture, Some("payment_intent")) => captured(object, view, evidence)?,
        (OperationKind::Void, Some("payment_intent" | "checkout.session")) => voided(object, view, evidence)?,
        (_, other) => return unclear(format!("the object {} was not expected", scrub(other.unwrap_or("?")))),
    };
    outcome.ok_or_else(|| Unclear("the payment is in a state that the answer does not explain".to_owned()))
}

/// A PaymentIntent, for the operation that created it.
pub(super) fn payment(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Unclear> {
    let id = id_of(object, &["pi_"])?;
    check_mark(object, KEY_MARK, view.key)?;
    let evidence = with_payment_details(evidence, object);
    let status = text(object, "status").unwrap_or("");
    let whole = integer(object, "amount");
    let received = integer(object, "amount_received");
    let last_error = object.get("last_payment_error").filter(|error| error.is_object());
    let units = match (status, view.kind) {
        // Stand-ins that keep no separate figures take and reserve the whole amount.
        ("succeeded", OperationKind::Authorize) => whole,
        ("succeeded", _) => received.or(whole),
        ("requires_capture", OperationKind::Authorize) => match integer(object, "amount_capturable") {
            // What was captured already had been reserved too.
            Some(capturable) => capturable.checked_add(received.unwrap_or(0)),
            None => whole,
        },
        ("requires_capture" | "processing", _) => return Ok(pending(NextStep::Wait, id, evidence)),
        ("requires_action", _) => {
            let (next, expires_at) = next_action(object);
            let mut outcome = Pending::new(next);
            outcome.expires_at = expires_at;
            outcome.gateway_ref = Some(id);
            outcome.evidence = evidence;
            return Ok(Outcome::Pending(outcome));
        }
        ("requires_payment_method", _) if last_error.is_some() => {
            let mut failed = declined(last_error.unwrap_or(&Json::Null), evidence);
            failed.gateway_ref = Some(id);
            failed.payer_may_retry = view.flow != Some(Flow::AtOnce);
            return Ok(Outcome::Failed(failed));
        }
        ("requires_payment_method" | "requires_confirmation", _) => {
            // Who holds no client secret cannot go on from here, and is given none by an inquiry either.
            let next = if view.flow == Some(Flow::Client) {
                confirm(object)
            } else {
                NextStep::Wait
            };
            return Ok(pending(next, id, evidence));
        }
        ("canceled", _) => return Ok(cancelled(object, id, evidence)),
        (other, _) => return unknown_status("PaymentIntent", other),
    };
    success(object, units, id, evidence)
}

/// A PaymentIntent, for a capture of it. `None`: it does not say that it was captured.
pub(super) fn captured(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Option<Outcome>, Unclear> {
    let id = id_of(object, &["pi_"])?;
    check_target(&id, view)?;
    let evidence = with_payment_details(evidence, object);
    match text(object, "status").unwrap_or("") {
        "succeeded" => {
            let other =
                mark(object, CAPTURE_KEY_MARK).is_some_and(|mark| view.key.is_some_and(|key| key.to_string() != mark));
            if other {
                return Ok(Some(already_done(id, evidence)));
            }
            success(object, captured_units(object), id, evidence).map(Some)
        }
        "processing" => Ok(Some(pending(NextStep::Wait, id, evidence))),
        "canceled" => Ok(Some(cancelled(object, id, evidence))),
        "requires_capture" | "requires_payment_method" | "requires_confirmation" | "requires_action" => Ok(None),
        other => unknown_status("PaymentIntent", other),
    }
}

/// A PaymentIntent or Checkout Session, for a void of it. `None`: it does not say that it was voided.
pub(super) fn voided(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Option<Outcome>, Unclear> {
    let id = id_of(object, &["pi_", "cs_"])?;
    check_target(&id, view)?;
    let evidence = with_payment_details(evidence, object);
    match text(object, "status").unwrap_or("") {
        "canceled" | "expired" => {
            let mut succeeded = Succeeded::new(None);
            succeeded.gateway_ref = Some(id);
            succeeded.evidence = evidence;
            Ok(Some(Outcome::Succeeded(succeeded)))
        }
        // Captured, or paid on the page: to give money back is a refund, which is another decision.
        "succeeded" | "complete" => {
            let mut failed = Failed::new(FailureCategory::Settled);
            failed.gateway_ref = Some(id);
            failed.settled = received(object);
            failed.evidence = evidence;
            Ok(Some(Outcome::Failed(failed)))
        }
        "requires_capture"
        | "requires_payment_method"
        | "requires_confirmation"
        | "requires_action"
        | "processing"
        | "open" => Ok(None),
        other => unknown_status("payment", other),
    }
}

/// A Refund. `succeeded` may still become `failed`, up to about 30 days later (docs/refunds).
pub(super) fn refund(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Unclear> {
    let id = id_of(object, &["re_", "pyr_"])?;
    check_mark(object, KEY_MARK, view.key)?;
    if let Some(target) = view.target {
        let field = if target.starts_with("pi_") {
            "payment_intent"
        } else {
            "charge"
        };
        if id_in(object, field).is_some_and(|payment| payment != target) {
            return unclear("the refund is of another payment");
        }
    }
    let mut evidence = evidence;
    for name in ["status", "charge", "payment_intent", "failure_reason", "pending_reason"] {
        detail(&mut evidence, name, id_in(object, name));
    }
    match text(object, "status").unwrap_or("") {
        "succeeded" => success(object, integer(object, "amount"), id, evidence),
        "pending" | "requires_action" => Ok(pending(NextStep::Wait, id, evidence)),
        status @ ("failed" | "canceled") => {
            let category = if status == "failed" {
                FailureCategory::Declined
            } else {
                FailureCategory::Cancelled
            };
            let mut failed = Failed::new(category);
            failed.decline_code = text(object, "failure_reason").map(scrub);
            // The money is back on the merchant's balance, and the payer still waits for it.
            failed.advice = Some("refund_another_way".to_owned());
            failed.gateway_ref = Some(id);
            failed.evidence = evidence;
            Ok(Outcome::Failed(failed))
        }
        other => unknown_status("Refund", other),
    }
}

/// A Checkout Session, for the operation that opened it. With its PaymentIntent expanded the latter decides, once
/// the payer has acted.
pub(super) fn session(object: &Json<'_>, view: &View<'_>, evidence: Evidence) -> Result<Outcome, Unclear> {
    let id = id_of(object, &["cs_"])?;
    check_mark(object, KEY_MARK, view.key)?;
    let status = text(object, "status").unwrap_or("");
    let intent = object.get("payment_intent").filter(|intent| intent.is_object());
    let acted = |intent: &&Json<'_>| {
        matches!(
            text(intent, "status"),
            Some("succeeded" | "requires_capture" | "processing")
        ) || status == "complete"
    };
    if let Some(intent) = intent.filter(acted) {
        let mut outcome = payment(intent, view, evidence)?;
        if let Outcome::Failed(failed) = &mut outcome {
            failed.payer_may_retry = status == "open";
        }
        return Ok(outcome);
    }
    let payment = id_in(object, "payment_intent").filter(|id| id.starts_with("pi_"));
    let evidence = with_payment_details(evidence, object);
    let paid = matches!(text(object, "payment_status"), Some("paid" | "no_payment_required"));
    match status {
        "open" => {
            let url = text(object, "url").map(Secret::from);
            let mut outcome = Pending::new(url.map_or(NextStep::Wait, |url| NextStep::Redirect { url }));
            outcome.expires_at = integer(object, "expires_at").map(Timestamp::from_unix_seconds);
            outcome.gateway_ref = Some(id);
            outcome.evidence = evidence;
            Ok(Outcome::Pending(outcome))
        }
        "complete" => {
            let id = payment.map_or(id, GatewayRef::new);
            if paid {
                return success(object, integer(object, "amount_total"), id, evidence);
            }
            Ok(pending(NextStep::Wait, id, evidence))
        }
        "expired" => {
            let mut failed = Failed::new(FailureCategory::Expired);
            failed.gateway_ref = Some(id);
            failed.evidence = evidence;
            Ok(Outcome::Failed(failed))
        }
        other => unknown_status("Checkout Session", other),
    }
}

/// A decline, from `error` of an answer or `last_payment_error` of a PaymentIntent, which have the same fields.
pub(super) fn declined(error: &Json<'_>, mut evidence: Evidence) -> Failed {
    let code = text(error, "code");
    let decline_code = text(error, "decline_code");
    let rows = [
        decline_code.and_then(codes::decline_code),
        code.and_then(codes::error_code),
    ];
    let class = |class| rows.iter().flatten().any(|row| row.class == class);
    let category = if class(codes::Class::Authenticate) {
        FailureCategory::AuthenticationRequired
    } else if class(codes::Class::Expired) {
        FailureCategory::Expired
    } else {
        FailureCategory::Declined
    };
    let ours = rows.iter().flatten().find_map(|row| row.advice);
    let mut failed = Failed::new(category);
    failed.decline_code = decline_code.map(scrub);
    failed.advice = text(error, "advice_code").or(ours).map(scrub);
    evidence.code = code.map(scrub).or(evidence.code);
    evidence.message = text(error, "message").map(scrub).or(evidence.message);
    for name in ["charge", "network_decline_code", "network_advice_code"] {
        detail(&mut evidence, name, id_in(error, name));
    }
    failed.evidence = evidence;
    failed
}

/// A payment that is in another state for good, in which the operation has no place.
fn already_done(id: GatewayRef, evidence: Evidence) -> Outcome {
    let mut failed = Failed::new(FailureCategory::AlreadyDone);
    failed.gateway_ref = Some(id);
    failed.evidence = evidence;
    Outcome::Failed(failed)
}

fn cancelled(object: &Json<'_>, id: GatewayRef, evidence: Evidence) -> Outcome {
    // `automatic` and `expired` are Stripe's own: an authorization that was not captured in time, a page that closed.
    let category = match text(object, "cancellation_reason") {
        Some("automatic" | "expired") => FailureCategory::Expired,
        _ => FailureCategory::Cancelled,
    };
    let mut failed = Failed::new(category);
    failed.gateway_ref = Some(id);
    failed.evidence = evidence;
    detail(
        &mut failed.evidence,
        "cancellation_reason",
        text(object, "cancellation_reason"),
    );
    Outcome::Failed(failed)
}

fn pending(next: NextStep, id: GatewayRef, evidence: Evidence) -> Outcome {
    let mut pending = Pending::new(next);
    pending.gateway_ref = Some(id);
    pending.evidence = evidence;
    Outcome::Pending(pending)
}

/// Success needs an amount that can be compared with what was asked for: without one there is no success, and with
/// one that the currency cannot hold there is a disagreement.
/// How much of a payment or of what was paid on a page has arrived.
fn received(object: &Json<'_>) -> Option<Money> {
    let units = integer(object, "amount_received").or_else(|| integer(object, "amount_total"))?;
    let currency = Currency::parse(text(object, "currency")?).ok()?;
    amount::from_wire(units, currency).ok()
}

fn success(object: &Json<'_>, units: Option<i64>, id: GatewayRef, evidence: Evidence) -> Result<Outcome, Unclear> {
    let Some(units) = units else {
        return unclear("it reports success without an amount");
    };
    let Some(code) = text(object, "currency") else {
        return unclear("it reports success without a currency");
    };
    match Currency::parse(code).and_then(|currency| amount::from_wire(units, currency)) {
        Ok(money) => {
            let mut succeeded = Succeeded::new(Some(money));
            succeeded.gateway_ref = Some(id);
            succeeded.evidence = evidence;
            Ok(Outcome::Succeeded(succeeded))
        }
        Err(error) => {
            let detail = format!("Stripe reports {units} units of {}: {error}", scrub(code));
            let mut conflict = Conflict::new(ConflictKind::Amount, detail);
            conflict.gateway_ref = Some(id);
            conflict.evidence = evidence;
            Ok(Outcome::Conflict(conflict))
        }
    }
}

/// How much a capture took. Stand-ins without `amount_received` show it on the charge; those of the oldest kind show
/// what was not captured as refunded.
fn captured_units(object: &Json<'_>) -> Option<i64> {
    let on_charge = || {
        let charge = object.get("latest_charge").filter(|charge| charge.is_object())?;
        integer(charge, "amount_captured")
            .or_else(|| integer(charge, "amount")?.checked_sub(integer(charge, "amount_refunded")?))
    };
    integer(object, "amount_received").or_else(on_charge)
}

fn confirm(object: &Json<'_>) -> NextStep {
    text(object, "client_secret").map_or(NextStep::Wait, |secret| NextStep::Confirm {
        client_secret: secret.into(),
    })
}

/// What the payer has to do. The kinds of `next_action` grow with the payment methods; what they carry does not, so
/// it is read by the names of the fields inside.
fn next_action(object: &Json<'_>) -> (NextStep, Option<Timestamp>) {
    let action = object.get("next_action").unwrap_or(&Json::Null);
    let kind = text(action, "type").unwrap_or("");
    let step = action.get(kind).unwrap_or(&Json::Null);
    let next = match kind {
        "use_stripe_sdk" => confirm(object),
        // The payer answers in the bank's own app.
        "card_await_notification" | "blik_authorize" => NextStep::Wait,
        _ => shown(step).unwrap_or_else(|| confirm(object)),
    };
    (next, integer(step, "expires_at").map(Timestamp::from_unix_seconds))
}

/// What can be shown to the payer without Stripe's library.
fn shown(step: &Json<'_>) -> Option<NextStep> {
    let find = |name| text(step, name).map(Secret::from);
    let qr_code = || {
        let code = step.get("qr_code")?;
        text(code, "data").or(text(code, "image_url_svg")).map(Secret::from)
    };
    let instructions = || find("hosted_instructions_url");
    if let Some(url) = find("url").or_else(|| find("hosted_verification_url")) {
        Some(NextStep::Redirect { url })
    } else if let Some(url) = find("hosted_voucher_url") {
        Some(NextStep::PaySlip { url })
    } else if let Some(data) = find("data").or_else(qr_code) {
        Some(NextStep::QrCode { data })
    } else if let Some(url) = find("native_url").or_else(|| find("mobile_auth_url")) {
        let fallback = instructions();
        Some(NextStep::OpenApp { url, fallback })
    } else {
        instructions().map(|url| NextStep::Redirect { url })
    }
}

fn with_payment_details(mut evidence: Evidence, object: &Json<'_>) -> Evidence {
    for name in ["status", "payment_status", "latest_charge"] {
        detail(&mut evidence, name, id_in(object, name));
    }
    if let Some(types) = object.get("payment_method_types").and_then(Json::as_array) {
        let types: Vec<&str> = types.iter().filter_map(Json::as_str).collect();
        detail(&mut evidence, "payment_method_types", Some(types.join(",").as_str()));
    }
    let paid_with = object
        .get("latest_charge")
        .and_then(|charge| charge.get("payment_method_details"))
        .and_then(|details| text(details, "type"));
    detail(&mut evidence, "payment_method_type", paid_with);
    evidence
}

pub(super) fn detail(evidence: &mut Evidence, name: &str, value: Option<&str>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        evidence.details.insert(name, scrub(value));
    }
}

/// The object of another operation than the one asked about is no answer at all. An object without a mark is judged
/// by how it was reached.
fn check_mark(object: &Json<'_>, name: &str, key: Option<OperationKey>) -> Result<(), Unclear> {
    match (mark(object, name), key) {
        (Some(mark), Some(key)) if mark != key.to_string() => unclear("it is about another operation"),
        _ => Ok(()),
    }
}

fn check_target(id: &GatewayRef, view: &View<'_>) -> Result<(), Unclear> {
    if view.target.is_some_and(|target| target != id.as_str()) {
        return unclear("it is about another payment");
    }
    Ok(())
}

fn unknown_status<T>(object: &str, status: &str) -> Result<T, Unclear> {
    if status.is_empty() {
        return unclear(format!("the {object} has no status"));
    }
    unclear(format!("the {object} has the unknown status {}", scrub(status)))
}

/// A mark of ours in the metadata.
pub(super) fn mark<'a>(object: &'a Json<'_>, name: &str) -> Option<&'a str> {
    object.get("metadata").and_then(|metadata| text(metadata, name))
}

/// The object's own id, which must have one of the prefixes of its kind.
pub(super) fn id_of(object: &Json<'_>, prefixes: &[&str]) -> Result<GatewayRef, Unclear> {
    match text(object, "id") {
        Some(id) if is_id(id) && prefixes.iter().any(|prefix| id.starts_with(prefix)) => Ok(GatewayRef::new(id)),
        Some(_) => unclear("its id is not of the expected kind"),
        None => unclear("it has no id"),
    }
}

/// A field that holds a text, or an id that may be expanded to the object itself (api/expanding_objects).
pub(super) fn id_in<'a>(object: &'a Json<'_>, name: &str) -> Option<&'a str> {
    let field = object.get(name)?;
    field.as_str().or_else(|| text(field, "id"))
}

pub(super) fn text<'a>(object: &'a Json<'_>, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

/// A whole number, exactly: a fraction, an exponent or a text is none.
pub(super) fn integer(object: &Json<'_>, name: &str) -> Option<i64> {
    object.get(name)?.as_i64()
}
