//! What 2C2P, or whoever claims to be 2C2P, tells us unasked.

use super::TwoC2p;
use super::json::Members;
use super::jwt::Rejected;
use super::result::{Conclusion, PaymentResult, code};
use crate::gateway::{About, Notification, NotificationError, RawNotification};
use crate::operation::OperationKey;
use crate::transport::scrub;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is documented, and often lost.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl TwoC2p {
    /// Reads a backend callback (page `api-payment-response-backend`). Whatever is wrong with it, the web layer must
    /// not answer 200, or the callback is lost.
    pub(super) fn backend_callback(&self, raw: &RawNotification) -> Result<Notification, NotificationError> {
        let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
        let token = self.payload(&raw.body)?;
        let claims = self.signer.verify(&token).map_err(|rejected| match rejected {
            Rejected::Form => malformed("the payload is not a token"),
            Rejected::Signature => NotificationError::Signature,
        })?;
        let members = Members::parse(&claims).ok_or_else(|| malformed("the signed claims are no object"))?;
        let result = PaymentResult::read(&members);
        match &result.merchant_id {
            Some(merchant) if *merchant == self.merchant_id => {}
            Some(_) => return Err(NotificationError::OtherMerchant),
            None => return Err(malformed("the claims name no merchant")),
        }
        let Some(invoice_no) = result.invoice_no.clone() else {
            return Err(malformed("the claims name no invoice"));
        };
        // The event's id is stored, so that it is held to what may be printed.
        let code = scrub(result.code.as_deref().unwrap_or_default());
        let tran_ref = result.tran_ref.as_deref().unwrap_or_default();
        let mut notification = Notification::new(
            event_id([&self.merchant_id, &invoice_no, tran_ref, &code]),
            format!("payment {code}"),
        );
        notification.about.extend(about(&result, invoice_no));
        if notification.about.is_empty() {
            return Ok(notification);
        }
        // Another card may follow on the payer's page; where there is no page, the record knows.
        notification.says = match result.conclude(true, None) {
            Conclusion::Says(outcome) => Some(outcome),
            Conclusion::Absent | Conclusion::Nothing(_) => None,
        };
        Ok(notification)
    }

    fn payload(&self, body: &[u8]) -> Result<String, NotificationError> {
        let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
        if let Some(members) = Members::parse(body) {
            return members
                .string("payload")
                .ok_or_else(|| malformed("the body has no payload that is a text"));
        }
        if self.accept_forms {
            let field = url::form_urlencoded::parse(body).find(|(name, _)| name == "payload");
            return field
                .map(|(_, token)| token.into_owned())
                .ok_or_else(|| malformed("the body is neither JSON nor a form with a payload"));
        }
        Err(malformed("the body is not JSON"))
    }
}

/// By what the operation can be found. Every payment of ours carries its key; one that carries something else was
/// begun by another system of the merchant, and says nothing about ours even where the invoice number is the same.
fn about(result: &PaymentResult, invoice_no: String) -> Option<About> {
    let mut echoes = [&result.user_defined[0], &result.idempotency_id].into_iter().flatten();
    match echoes.next() {
        None => Some(About::WireIdentity(invoice_no)),
        Some(echo) => OperationKey::parse(echo).map(About::Key),
    }
}

/// What makes a delivery recognisable as a repeat. A JSON array, so that no value can run into the next.
pub(super) fn event_id(parts: [&str; 4]) -> String {
    serde_json::Value::from(parts.to_vec()).to_string()
}

/// What the payer's browser brought back from 2C2P's page (page `api-payment-response-frontend`).
///
/// It is not signed: anybody can write it, and code 2000 comes after failed payments too. Use the invoice number to
/// find your own operation and ask 2C2P about it; conclude nothing from the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrowserReturn {
    /// `invoiceNo`, as claimed: [`Payments::find_sent`](crate::Payments::find_sent) has the operation, if it is one.
    pub invoice_no: String,
    /// `respCode`, a flow code, as claimed.
    pub code: Option<String>,
    /// `respDesc`, scrubbed.
    pub description: Option<String>,
    /// `channelCode`, as claimed.
    pub channel_code: Option<String>,
    /// `locale`, as claimed.
    pub locale: Option<String>,
}

/// Reads the body of the form that the payer's browser posts to the return page: field `paymentResponse`, base64 in
/// either alphabet.
///
/// # Errors
/// [`NotificationError::Malformed`] when the body is not such a form, or names no invoice.
pub fn read_browser_return(body: &[u8]) -> Result<BrowserReturn, NotificationError> {
    let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
    let (_, encoded) = url::form_urlencoded::parse(body)
        .find(|(name, _)| name == "paymentResponse")
        .ok_or_else(|| malformed("the form has no paymentResponse"))?;
    // A plus sign that was not percent-encoded arrives as a space.
    let standard: String = encoded.chars().map(standard_alphabet).collect();
    let json = BASE64
        .decode(standard)
        .map_err(|_| malformed("paymentResponse is not base64"))?;
    let members = Members::parse(&json).ok_or_else(|| malformed("paymentResponse is no JSON object"))?;
    let text = |name| members.text(name).map(|text| scrub(&text));
    Ok(BrowserReturn {
        invoice_no: members
            .text("invoiceNo")
            .filter(|number| number.chars().count() <= 50)
            .ok_or_else(|| malformed("paymentResponse names no invoice"))?,
        code: code(&members).map(|code| scrub(&code)),
        description: text("respDesc"),
        channel_code: text("channelCode"),
        locale: text("locale"),
    })
}

const fn standard_alphabet(character: char) -> char {
    match character {
        '-' | ' ' => '+',
        '_' => '/',
        other => other,
    }
}
