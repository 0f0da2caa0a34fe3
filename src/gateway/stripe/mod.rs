//! Stripe: PaymentIntents, Checkout Sessions and Refunds of API v1.
//!
//! The operation's key is the `Idempotency-Key` of each request, and stands in the metadata of what the request
//! creates, so that an operation whose answer was lost can be found again by what was sent. Facts about Stripe are
//! given with the page they are from: `docs/x` is docs.stripe.com/x, `api/x` is docs.stripe.com/api/x.

mod amount;
mod builder;
mod codes;
mod form;
mod inquiry;
mod json;
mod notification;
mod object;
mod options;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use builder::{BuildError, StripeBuilder};
pub use options::StripeOptions;

use crate::clock::Clock;
use crate::failure::Failure;
use crate::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use crate::operation::{Operation, OperationKey, OperationKind};
use crate::outcome::{FailureCategory, Outcome};
use crate::record::{Instruction, Record};
use crate::retry::{Absence, AfterAbsence, Promise, SameKey, Since};
use crate::secret::Secret;
use crate::transport::{Method, Request, Transport};
use async_trait::async_trait;
use response::Answer;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The name under which operations are stored unless another is set.
const NAME: &str = "stripe";
/// Sent with each request, so that a change of the account's default changes nothing here (api/versioning).
const API_VERSION: &str = "2026-09-30.endive";

/// One Stripe account, or one connected account of a platform, in one mode.
///
/// What it adds to [`Operation`] is in [`StripeOptions`]. A charge without options is confirmed by the payer's
/// browser or app ([`StripeOptions::client_side`]).
///
/// ```
/// use payonce::gateway::stripe::Stripe;
///
/// let stripe = Stripe::builder("sk_test_4eC39H").webhook_secret("whsec_4eC39H").build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Stripe {
    name: &'static str,
    secret_key: Secret,
    base_url: String,
    account: Option<String>,
    webhook_secrets: Vec<Secret>,
    tolerance: Duration,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
}

impl Stripe {
    /// Settings, from the account's secret (`sk_...`) or a restricted (`rk_...`) key. A restricted key needs to write
    /// PaymentIntents, Checkout Sessions and Refunds, and to read Events and Charges.
    pub fn builder(secret_key: impl Into<Secret>) -> StripeBuilder {
        StripeBuilder::new(secret_key.into())
    }

    fn authorized(&self, request: Request) -> Request {
        let request = request
            .header("Authorization", format!("Bearer {}", self.secret_key.expose()))
            .header("Stripe-Version", API_VERSION);
        match &self.account {
            Some(account) => request.header("Stripe-Account", account.as_str()),
            None => request,
        }
    }

    /// Live or test, as the key says (docs/keys); `None` for keys of another form.
    fn is_live(&self) -> Option<bool> {
        let rest = self.secret_key.expose().get(3..)?;
        if rest.starts_with("live_") {
            Some(true)
        } else {
            rest.starts_with("test_").then_some(false)
        }
    }
}

#[async_trait]
impl Gateway for Stripe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        let payable_for = request::prepare(operation)?;
        let mut prepared = Prepared::new(key.to_string());
        prepared.payable_for = payable_for;
        Ok(prepared)
    }

    fn promise(&self, _kind: OperationKind) -> Promise {
        Promise::new(
            // To create a payment once more is to pay once more, and so it is with a partial refund: nothing but the
            // key protects charges, authorizations and refunds. Captures and voids are protected by the state of the
            // payment too, but past the key's life a refusal would tell less than a look does. Answers are kept for
            // at least 24 hours (api/idempotent_requests); the hour is for clocks and requests still on their way.
            SameKey::Replays {
                within: Duration::from_secs(23 * 60 * 60),
            },
            // Charges, authorizations and refunds are looked for in lists that do not lag, captures and voids in the
            // payment itself. So what is missing is on its way or was never executed, and ten minutes is far longer
            // than a request of Stripe's runs. Absence does not burn the key: what executed nothing stored nothing.
            Absence::After {
                since: Since::LastSend,
                quiet: Duration::from_secs(10 * 60),
                looks: 2,
                apart: Duration::from_secs(60),
                then: AfterAbsence::SendAgain,
            },
        )
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let call = request::call(instruction)?;
        let request = self
            .authorized(Request::new(Method::Post, format!("{}{}", self.base_url, call.path)))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .header("Idempotency-Key", instruction.wire_identity())
            .body(call.form.encode())
            .timeout(instruction.timeout());
        let response = self.transport.exchange(request).await?;
        let view = request::view(instruction);
        let mut outcome = Answer::new(&response, self.clock.now()).judge(&view)?;
        if let (Outcome::Failed(failed), OperationKind::Refund, Some(target)) = (&mut outcome, view.kind, view.target)
            && failed.category == FailureCategory::Invalid
            && failed.evidence.code.is_none()
        {
            self.explain_refusal(failed, target, instruction.timeout()).await;
        }
        Ok(outcome)
    }

    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure> {
        self.look(record).await
    }

    fn read_notification(&self, raw: &RawNotification) -> Result<Notification, NotificationError> {
        notification::verify(raw, &self.webhook_secrets, self.tolerance)?;
        notification::read(&raw.body, self.account.as_deref(), self.is_live())
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("account", &self.account)
            .field("webhook_secrets", &self.webhook_secrets.len())
            .finish_non_exhaustive()
    }
}
