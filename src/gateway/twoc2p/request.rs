//! What is sent: a pure function of set-up and operation, so that a retry sends the same bytes.

use super::TwoC2p;
use super::amount;
use super::date::expiry_to_wire;
use super::json::Object;
use super::options::TwoC2pOptions;
use crate::gateway::Refusal;
use crate::money::Currency;
use crate::operation::{Invalid, Operation, OperationKey, OperationKind};
use crate::secret::Secret;

/// The longest `description`, after special characters have been written as HTML entities.
const DESCRIPTION: usize = 250;

/// The longest `userDefined1` to `userDefined5`.
const USER_DEFINED: usize = 150;

/// `userDefined2` to `userDefined5`: the first one carries the key.
const PAIRS: [&str; 4] = ["userDefined2", "userDefined3", "userDefined4", "userDefined5"];

impl TwoC2p {
    /// The claims of a token request (page `api-payment-token-request-parameter`). Checks all of the operation.
    pub(super) fn token_claims(
        &self,
        key: OperationKey,
        invoice_no: &str,
        operation: &Operation,
    ) -> Result<String, Refusal> {
        let none = TwoC2pOptions::new();
        let options = operation.options::<TwoC2pOptions>().unwrap_or(&none);
        supported(operation, options)?;
        #[cfg(feature = "twoc2p-maintenance")]
        if operation.options::<super::ActionOptions>().is_some() {
            return Err(Invalid::new("options", "are those of a void, a capture or a refund").into());
        }
        let amount = operation.amount().ok_or_else(|| Invalid::new("amount", "is needed"))?;
        self.check_currency(amount.currency())?;
        if options.is_direct() {
            // Built only to have all its members checked before anything is written or sent.
            direct_body(key, operation, &Secret::from(""))?;
        }
        let mut claims = Object::new();
        claims.text("merchantID", &self.merchant_id);
        claims.optional("childMerchantID", self.child_merchant_id.as_deref());
        claims.text("invoiceNo", invoice_no);
        if !options.is_direct() {
            claims.text("idempotencyID", &key.to_string());
        }
        claims.text("description", &description(operation, invoice_no)?);
        claims.raw("amount", &amount::to_wire("amount", amount)?);
        claims.text("currencyCode", amount.currency().code());
        claims.optional("paymentExpiry", self.expiry(operation, options)?.as_deref());
        claims.text("userDefined1", &key.to_string());
        for (name, text) in user_defined(operation)? {
            claims.text(name, &text);
        }
        for (name, default) in [
            ("frontendReturnUrl", &self.frontend_return_url),
            ("backendReturnUrl", &self.backend_return_url),
        ] {
            if !options.has(name) {
                claims.optional(name, default.as_deref());
            }
        }
        options.write_token(&mut claims, amount.currency())?;
        Ok(claims.finish())
    }

    /// The claims of an inquiry (page `api-payment-inquiry-request-parameter`). By invoice number, which is known
    /// before the first request; a token may be lost with its answer.
    pub(super) fn inquiry_claims(&self, invoice_no: &str) -> String {
        let mut claims = Object::new();
        claims.text("merchantID", &self.merchant_id);
        claims.optional("childMerchantID", self.child_merchant_id.as_deref());
        claims.text("invoiceNo", invoice_no);
        claims.finish()
    }

    /// The body of a request: the claims, signed.
    pub(super) fn signed(&self, claims: &str) -> String {
        Object::new().text("payload", &self.signer.sign(claims)).finish()
    }

    pub(super) fn check_currency(&self, currency: Currency) -> Result<(), Invalid> {
        match self.currency {
            Some(only) if only != currency => {
                Err(Invalid::new("amount", "is not in the currency of the merchant account"))
            }
            _ => Ok(()),
        }
    }

    fn expiry(&self, operation: &Operation, options: &TwoC2pOptions) -> Result<Option<String>, Invalid> {
        let Some(instant) = operation.expiry() else {
            return Ok(None);
        };
        if options.pays_by_card() {
            return Err(Invalid::new(
                "expires_at",
                "has no meaning for a card that is charged directly",
            ));
        }
        let Some(offset) = self.utc_offset else {
            let reason = "cannot be sent: 2C2P reads it in the merchant's local time, and no UTC offset is configured";
            return Err(Invalid::new("expires_at", reason));
        };
        expiry_to_wire(instant, offset).map(Some)
    }
}

/// The body of a direct payment (page `api-do-payment`).
pub(super) fn direct_body(key: OperationKey, operation: &Operation, token: &Secret) -> Result<String, Invalid> {
    let (Some(options), Some(amount)) = (operation.options::<TwoC2pOptions>(), operation.amount()) else {
        return Err(Invalid::new("options", "are needed for a direct payment"));
    };
    options.direct_body(token, &key.to_string(), amount.currency())
}

fn supported(operation: &Operation, options: &TwoC2pOptions) -> Result<(), Refusal> {
    let manual = options.has("transactionMode");
    match operation.kind() {
        OperationKind::Charge if manual => {
            let reason = "leaves the money to be captured: make it an authorization";
            Err(Invalid::new("transactionMode", reason).into())
        }
        OperationKind::Authorize if !manual => Err(Refusal::Unsupported(
            "an authorization at 2C2P needs the option transaction_mode, whose values no page lists".to_owned(),
        )),
        OperationKind::Charge | OperationKind::Authorize => Ok(()),
        OperationKind::Capture | OperationKind::Void | OperationKind::Refund | OperationKind::Update => Err(
            Refusal::Unsupported(format!("{} at 2C2P needs the maintenance API", operation.kind())),
        ),
    }
}

/// Mandatory at 2C2P. Without one of the caller's it is `Payment` and the reference, or the invoice number where the
/// reference is too long.
fn description(operation: &Operation, invoice_no: &str) -> Result<String, Invalid> {
    let fits = |text: &str| text.chars().count() <= DESCRIPTION;
    let Some(text) = operation.description_text() else {
        let text = html(&format!("Payment {}", operation.reference()));
        return Ok(if fits(&text) {
            text
        } else {
            format!("Payment {invoice_no}")
        });
    };
    let text = html(text);
    if text.is_empty() || !fits(&text) {
        let reason = "must have 1 to 250 characters, special ones counted as HTML entities";
        return Err(Invalid::new("description", reason));
    }
    Ok(text)
}

/// Special characters are to be written as HTML entities (page `api-payment-token-request-parameter`).
fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// The merchant's pairs as `name=value`, in the order of their names, each with the member that it goes into.
pub(super) fn user_defined(operation: &Operation) -> Result<Vec<(&'static str, String)>, Invalid> {
    let pairs = operation.metadata_pairs();
    if pairs.len() > PAIRS.len() {
        return Err(Invalid::new("metadata", "2C2P has room for four pairs"));
    }
    let mut members = Vec::with_capacity(pairs.len());
    for (field, (name, value)) in PAIRS.into_iter().zip(pairs) {
        let text = format!("{name}={value}");
        if text.chars().count() > USER_DEFINED {
            return Err(Invalid::new(
                "metadata",
                "a pair is longer than 150 characters with its name",
            ));
        }
        members.push((field, text));
    }
    Ok(members)
}
