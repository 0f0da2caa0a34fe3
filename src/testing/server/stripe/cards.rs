//! The payment methods that Stripe's test mode knows by name, and what each does.

use super::form::Params;
use super::refusal::Refusal;
use serde_json::{Value, json};

/// What happens when a payment method is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Approves,
    /// The issuer refuses, with this code and this reason.
    Declines {
        code: &'static str,
        reason: &'static str,
    },
    /// The payer has to pass 3-D Secure on another page.
    Authenticates,
    /// The payer has to scan a code.
    ShowsQrCode,
    /// It takes days.
    Processes,
}

/// A payment method, and what it does.
#[derive(Clone, Debug)]
pub(super) struct PaymentMethod {
    pub(super) id: String,
    pub(super) behaviour: Behaviour,
}

/// The one that the parameters name, if they name one.
pub(super) fn chosen(params: &Params) -> Result<Option<PaymentMethod>, Refusal> {
    if let Some(id) = params.text(&["payment_method"]) {
        return by_name(id).map(Some);
    }
    if let Some(kind) = params.text(&["payment_method_data", "type"]) {
        let behaviour = match kind {
            "promptpay" => Behaviour::ShowsQrCode,
            "card" => Behaviour::Approves,
            _ => {
                let message = format!("The fake does not know payment methods of type {kind}");
                return Err(Refusal::invalid(Some("payment_method_data[type]"), message));
            }
        };
        let id = format!("pm_3Fake{kind}");
        return Ok(Some(PaymentMethod { id, behaviour }));
    }
    Ok(params.text(&["confirmation_token"]).map(|_| PaymentMethod {
        id: "pm_3Faketoken".to_owned(),
        behaviour: Behaviour::Approves,
    }))
}

/// The payment method of this name.
pub(super) fn by_name(id: &str) -> Result<PaymentMethod, Refusal> {
    let declines = |code, reason| Behaviour::Declines { code, reason };
    let plain = id.replace("pm_card_visa_", "pm_card_");
    let behaviour = match plain.as_str() {
        "pm_card_visa" | "pm_card_mastercard" | "pm_card_amex" | "pm_card_jcb" | "pm_card_unionpay" => {
            Behaviour::Approves
        }
        "pm_card_chargeDeclined" => declines("card_declined", "generic_decline"),
        "pm_card_chargeDeclinedInsufficientFunds" => declines("card_declined", "insufficient_funds"),
        "pm_card_chargeDeclinedLostCard" => declines("card_declined", "lost_card"),
        "pm_card_chargeDeclinedStolenCard" => declines("card_declined", "stolen_card"),
        "pm_card_chargeDeclinedExpiredCard" => declines("expired_card", "expired_card"),
        "pm_card_chargeDeclinedIncorrectCvc" => declines("incorrect_cvc", "incorrect_cvc"),
        "pm_card_chargeDeclinedProcessingError" => declines("processing_error", "processing_error"),
        "pm_card_authenticationRequired" => Behaviour::Authenticates,
        "pm_card_processing" => Behaviour::Processes,
        // What a payment method made by the parameters above is called afterwards.
        "pm_3Fakecard" | "pm_3Faketoken" => Behaviour::Approves,
        "pm_3Fakepromptpay" => Behaviour::ShowsQrCode,
        _ => return Err(Refusal::no_such("PaymentMethod", id, "payment_method")),
    };
    Ok(PaymentMethod {
        id: id.to_owned(),
        behaviour,
    })
}

/// The error of a declined charge, as it stands in `last_payment_error` and in the answer.
pub(super) fn decline(code: &str, reason: &str, charge: Option<&str>, method: &str) -> Value {
    let advice = match reason {
        "lost_card" | "stolen_card" => "do_not_try_again",
        "expired_card" | "incorrect_cvc" => "confirm_card_data",
        _ => "try_again_later",
    };
    let mut error = json!({
        "advice_code": advice,
        "code": code,
        "decline_code": reason,
        "doc_url": format!("https://docs.stripe.com/error-codes#{}", code.replace('_', "-")),
        "message": "Your card was declined.",
        "payment_method": { "id": method, "object": "payment_method", "type": "card" },
        "type": "card_error",
    });
    if let Some(charge) = charge {
        error["charge"] = charge.into();
    }
    error
}
