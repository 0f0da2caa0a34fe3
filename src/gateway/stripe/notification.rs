//! Webhooks: the signature over the raw body (docs/webhooks#verify-manually), and what an event says.

use super::json::Json;
use super::object::{self, View, id_of, text};
use crate::clock::Timestamp;
use crate::gateway::{About, Notification, NotificationError, RawNotification};
use crate::operation::{GatewayRef, OperationKey, OperationKind};
use crate::outcome::{Evidence, FailureCategory, Outcome};
use crate::secret::Secret;
use crate::transport::scrub;
use aws_lc_rs::hmac;
use std::time::Duration;

const HEADER: &str = "stripe-signature";
/// Stripe sends a few hundred bytes; what is longer is not read.
const LONGEST_HEADER: usize = 4096;
/// One signature for each active secret, and Stripe has at most two of those at a time.
const MOST_SIGNATURES: usize = 16;

/// Checks that the body, byte for byte, was signed with one of the secrets, not too far from the time of receipt.
///
/// Only the scheme `v1` counts, and of several signatures any one is enough. The time stamp is looked at after the
/// signature that covers it, in both directions: Stripe's own libraries accept any in the future, we do not.
pub(super) fn verify(raw: &RawNotification, secrets: &[Secret], tolerance: Duration) -> Result<(), NotificationError> {
    let header = Header::read(raw)?;
    let mut message = Vec::with_capacity(raw.body.len() + 16);
    message.extend_from_slice(header.stamp.as_bytes());
    message.push(b'.');
    message.extend_from_slice(&raw.body);
    let signed = secrets.iter().any(|secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        header
            .signatures
            .iter()
            .any(|signature| hmac::verify(&key, &message, signature).is_ok())
    });
    if !signed {
        return Err(NotificationError::Signature);
    }
    // Whole seconds on both sides, as Stripe counts: an age of exactly the tolerance passes.
    let received = Timestamp::from_unix_seconds(raw.received_at.unix_seconds());
    let distance = received.since(header.signed_at).max(header.signed_at.since(received));
    if distance > tolerance {
        return Err(NotificationError::Stale);
    }
    Ok(())
}

/// The header `Stripe-Signature`: `t=...,v1=...[,v1=...]`, in any order, with unknown schemes among them.
struct Header {
    /// As it was written, since the signature covers the text.
    stamp: String,
    signed_at: Timestamp,
    signatures: Vec<[u8; 32]>,
}

impl Header {
    fn read(raw: &RawNotification) -> Result<Self, NotificationError> {
        let malformed = |what: &str| NotificationError::Malformed(format!("the header Stripe-Signature {what}"));
        let mut stamps = Vec::new();
        let mut signatures = Vec::new();
        let mut length = 0;
        // A header that was split into several is one list (RFC 9110, section 5.3).
        for value in raw.header(HEADER) {
            length += value.len();
            if length > LONGEST_HEADER {
                return Err(malformed("is too long"));
            }
            for part in value.split(',') {
                match part.trim_matches([' ', '\t']).split_once('=') {
                    Some(("t", stamp)) => stamps.push(stamp),
                    Some(("v1", signature)) => signatures.extend(digest(signature)),
                    // Never another scheme: `v0` on test events is a fake, and accepting one would open a downgrade.
                    _ => {}
                }
            }
        }
        // With two stamps, one could be used for the age and the other for the signature.
        let [stamp] = stamps.as_slice() else {
            return Err(malformed("must have exactly one time stamp"));
        };
        let digits = (1..=12).contains(&stamp.len()) && stamp.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = stamp.parse().ok().filter(|_| digits);
        let seconds = seconds.ok_or_else(|| malformed("has a time stamp that is not a number of seconds"))?;
        if signatures.len() > MOST_SIGNATURES {
            return Err(malformed("has too many signatures"));
        }
        Ok(Self {
            stamp: (*stamp).to_owned(),
            signed_at: Timestamp::from_unix_seconds(seconds),
            signatures,
        })
    }
}

/// 64 lower-case hex digits. Whatever else stands there can match nothing, and is left out.
fn digest(hex: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let hex: &[u8; 64] = hex.as_bytes().try_into().ok()?;
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        if let [high, low] = pair {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
    }
    Some(digest)
}

/// Reads a verified body. An event of an unknown type, or about something that is not ours, says nothing and is no
/// error: Stripe would repeat it for days.
pub(super) fn read(body: &[u8], account: Option<&str>, live: Option<bool>) -> Result<Notification, NotificationError> {
    let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
    let event: Json<'_> = serde_json::from_slice(body).map_err(|_| malformed("the body is not JSON"))?;
    let id = text(&event, "id").ok_or_else(|| malformed("the body is not an event: it has no id"))?;
    let mode = event.get("livemode").and_then(Json::as_bool);
    let other_mode = matches!((mode, live), (Some(event), Some(ours)) if event != ours);
    // Present on events of connected accounts alone (api/events/object).
    let other_account = text(&event, "account").is_some_and(|id| account != Some(id));
    if other_mode || other_account {
        return Err(NotificationError::OtherMerchant);
    }
    let name = text(&event, "type").unwrap_or("");
    let mut notification = Notification::new(id, scrub(name));
    let object = event
        .get("data")
        .and_then(|data| data.get("object"))
        .unwrap_or(&Json::Null);
    let caused_by = event
        .get("request")
        .and_then(|request| text(request, "idempotency_key"))
        .and_then(OperationKey::parse);
    let is = |kind| text(object, "object").is_none_or(|given| given == kind);
    if text(&event, "object") == Some("v2.core.event") {
        thin(&event, &mut notification);
    } else if name.starts_with("payment_intent.") && is("payment_intent") {
        payment_event(object, caused_by, &mut notification);
    } else if (name.starts_with("refund.") || name.starts_with("charge.refund.")) && is("refund") {
        refund_event(object, caused_by, &mut notification);
    } else if name.starts_with("checkout.session.") && is("checkout.session") {
        session_event(name, object, &mut notification);
    } else if name == "charge.refunded" {
        // The charge does not say which refund it was: that has events of its own. Only who caused it is known.
        notification.about.extend(caused_by.map(About::Key));
    }
    Ok(notification)
}

fn payment_event(object: &Json<'_>, caused_by: Option<OperationKey>, notification: &mut Notification) {
    let created_by = key_in(object, object::KEY_MARK);
    let captured_by = key_in(object, object::CAPTURE_KEY_MARK);
    let authorization = text(object, "capture_method") == Some("manual");
    if text(object, "status") == Some("succeeded") && captured_by.is_some() {
        notification.about.extend(captured_by.map(About::Key));
        let view = view(OperationKind::Capture, captured_by);
        notification.says = object::captured(object, &view, Evidence::default()).ok().flatten();
    } else if caused_by.is_some() && caused_by != created_by {
        // A capture, void or refund that was made with a key: what it means for that operation, a look will tell.
        notification
            .about
            .extend([caused_by, created_by].into_iter().flatten().map(About::Key));
    } else {
        let kind = if authorization {
            OperationKind::Authorize
        } else {
            OperationKind::Charge
        };
        notification.about.extend(created_by.map(About::Key));
        notification
            .about
            .extend(id_of(object, &["pi_"]).ok().map(About::GatewayRef));
        notification.says = object::payment(object, &view(kind, created_by), Evidence::default()).ok();
    }
}

fn refund_event(object: &Json<'_>, caused_by: Option<OperationKey>, notification: &mut Notification) {
    let key = key_in(object, object::KEY_MARK);
    notification.about.extend(key.or(caused_by).map(About::Key));
    notification
        .about
        .extend(id_of(object, &["re_", "pyr_"]).ok().map(About::GatewayRef));
    notification.says = object::refund(object, &view(OperationKind::Refund, key), Evidence::default()).ok();
}

fn session_event(name: &str, object: &Json<'_>, notification: &mut Notification) {
    let key = key_in(object, object::KEY_MARK);
    notification.about.extend(key.map(About::Key));
    let payment = object::id_in(object, "payment_intent").filter(|id| id.starts_with("pi_"));
    notification
        .about
        .extend(payment.map(|id| About::GatewayRef(GatewayRef::new(id))));
    notification
        .about
        .extend(id_of(object, &["cs_"]).ok().map(About::GatewayRef));
    let says = object::session(object, &view(OperationKind::Charge, key), Evidence::default()).ok();
    // The session stays `complete` and `unpaid` when a delayed payment fails; only the event's name says so
    // (docs/payments/checkout/fulfill-orders). Nobody can pay on a completed page again.
    notification.says = match says {
        Some(Outcome::Pending(pending)) if name == "checkout.session.async_payment_failed" => {
            let mut failed = crate::outcome::Failed::new(FailureCategory::Declined);
            failed.gateway_ref = pending.gateway_ref;
            failed.evidence = pending.evidence;
            Some(Outcome::Failed(failed))
        }
        other => other,
    };
}

/// An event of API v2 carries no object, only whom it is about (docs/event-destinations).
fn thin(event: &Json<'_>, notification: &mut Notification) {
    let key = event
        .get("reason")
        .and_then(|reason| reason.get("request"))
        .and_then(|request| text(request, "idempotency_key"))
        .and_then(OperationKey::parse);
    notification.about.extend(key.map(About::Key));
    let related = event.get("related_object").unwrap_or(&Json::Null);
    let prefixes = ["pi_", "re_", "pyr_", "cs_"];
    notification
        .about
        .extend(id_of(related, &prefixes).ok().map(About::GatewayRef));
}

fn key_in(object: &Json<'_>, name: &str) -> Option<OperationKey> {
    object::mark(object, name).and_then(OperationKey::parse)
}

fn view(kind: OperationKind, key: Option<OperationKey>) -> View<'static> {
    View {
        kind,
        flow: None,
        key,
        target: None,
    }
}
