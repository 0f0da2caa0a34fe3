//! What 2C2P posts when a refund that took time is over (`notifyResponse`, section on asynchronous refunds of the
//! refund guide).

use super::answer::PaymentStatus;
use super::decision::{RefundState, failure, refund_state};
use super::xml;
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::notification::event_id;
use crate::gateway::{About, Notification, NotificationError};
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::{FailureCategory, Outcome};
use crate::transport::scrub;

/// The token in a form that has one.
pub(in crate::gateway::twoc2p) fn refund_notice_token(body: &[u8]) -> Option<String> {
    // JSON is the other kind of callback.
    if body.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let mut fields = url::form_urlencoded::parse(body);
    let (_, token) = fields.find(|(name, _)| name == "notifyResponse")?;
    Some(token.into_owned())
}

impl TwoC2p {
    /// Reads a notice of a refund. It names no currency, so that a success only leads to an inquiry; a refusal says so.
    pub(in crate::gateway::twoc2p) fn refund_notice(&self, token: &str) -> Result<Notification, NotificationError> {
        let malformed = |what: &str| NotificationError::Malformed(what.to_owned());
        let Some(maintenance) = &self.maintenance else {
            return Err(malformed(
                "a notice of a refund, and the account has no maintenance keys",
            ));
        };
        let document = maintenance
            .keys
            .open(token.as_bytes())
            .map_err(|_| NotificationError::Signature)?;
        let root = xml::parse(&document).map_err(|_| malformed("the notice is authentic and cannot be read"))?;
        let status = PaymentStatus::read(&root).ok_or_else(|| malformed("the notice is of another kind"))?;
        if status
            .merchant_id
            .as_ref()
            .is_some_and(|merchant| *merchant != self.merchant_id)
        {
            return Err(NotificationError::OtherMerchant);
        }
        if status
            .process_type
            .as_deref()
            .is_some_and(|kind| !matches!(kind, "R" | "RS"))
        {
            return Err(malformed("the notice is not about a refund"));
        }
        let state = scrub(status.status.as_deref().unwrap_or_default());
        let invoice_no = status.invoice_no.as_deref().unwrap_or_default();
        let id = status.refund_reference_no.as_deref().unwrap_or_default();
        let mut notification = Notification::new(
            event_id([&self.merchant_id, invoice_no, id, &state]),
            format!("refund {state}"),
        );
        notification.about = about(&status);
        if refund_state(status.status.as_deref()) == Some(RefundState::Refused) {
            let mut failed = failure(FailureCategory::Declined, &status);
            failed.decline_code = Some(state);
            failed.gateway_ref = status.refund_reference_no.as_deref().map(GatewayRef::new);
            notification.says = Some(Outcome::Failed(failed));
        }
        Ok(notification)
    }
}

/// One that carries somebody else's mark is not ours.
fn about(status: &PaymentStatus) -> Vec<About> {
    let mark = status.idempotency_id.as_ref().or(status.user_defined[0].as_ref());
    let by_id = status
        .refund_reference_no
        .as_deref()
        .map(|id| About::GatewayRef(GatewayRef::new(id)));
    match mark {
        None => by_id.into_iter().collect(),
        Some(mark) => OperationKey::parse(mark).map(About::Key).into_iter().collect(),
    }
}
