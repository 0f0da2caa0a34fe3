//! Stripe: PaymentIntents, Checkout Sessions and Refunds of API v1.
//!
//! The operation's key is the `Idempotency-Key` of each request, and stands in the metadata of what the request
//! creates, so that an operation whose answer was lost can be found again by what was sent. Facts about Stripe are
//! given with the page they are from: `docs/x` is docs.stripe.com/x, `api/x` is docs.stripe.com/api/x.

mod amount;
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

pub use options::StripeOptions;

use crate::clock::{Clock, SystemClock};
use crate::failure::Failure;
use crate::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use crate::operation::{Invalid, Operation, OperationKey, OperationKind};
use crate::outcome::{FailureCategory, Outcome};
use crate::record::{Instruction, Record};
use crate::retry::{Absence, AfterAbsence, Promise, SameKey, Since};
use crate::secret::Secret;
use crate::transport::{Http, HttpError, Method, Request, Transport, base_url};
use async_trait::async_trait;
use response::Answer;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The name under which operations are stored unless another is set.
const NAME: &str = "stripe";
/// Sent with each request, so that a change of the account's default changes nothing here (api/versioning).
const API_VERSION: &str = "2026-09-30.endive";
const BASE_URL: &str = "https://api.stripe.com";
/// docs/webhooks: the default of Stripe's own libraries.
const TOLERANCE: Duration = Duration::from_secs(300);

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

/// Settings of a [`Stripe`].
#[derive(Clone)]
pub struct StripeBuilder {
    name: &'static str,
    secret_key: Secret,
    base_url: String,
    account: Option<String>,
    webhook_secrets: Vec<Secret>,
    tolerance: Duration,
    transport: Option<Arc<dyn Transport>>,
    clock: Arc<dyn Clock>,
}

/// Why a [`Stripe`] could not be built. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting is not usable; named, and not repeated.
    #[error("a setting of the Stripe gateway is not usable")]
    Invalid(#[from] Invalid),
    /// The default transport could not be built.
    #[error("the transport of the Stripe gateway could not be built")]
    Transport(#[from] HttpError),
}

impl Stripe {
    /// Settings, from the account's secret (`sk_...`) or a restricted (`rk_...`) key. A restricted key needs to write
    /// PaymentIntents, Checkout Sessions and Refunds, and to read Events and Charges.
    pub fn builder(secret_key: impl Into<Secret>) -> StripeBuilder {
        StripeBuilder {
            name: NAME,
            secret_key: secret_key.into(),
            base_url: BASE_URL.to_owned(),
            account: None,
            webhook_secrets: Vec::new(),
            tolerance: TOLERANCE,
            transport: None,
            clock: Arc::new(SystemClock),
        }
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

impl StripeBuilder {
    /// The name under which operations are stored, where one `Payments` holds several Stripe accounts.
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Another address than Stripe's: a proxy, or a stand-in on loopback.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Acts for this connected account (`acct_...`, api/connected-accounts).
    #[must_use]
    pub fn account(mut self, id: impl Into<String>) -> Self {
        self.account = Some(id.into());
        self
    }

    /// Accepts notifications signed with this secret (`whsec_...`), besides those given before: while a secret is
    /// rolled, both the old and the new one count (docs/webhooks).
    #[must_use]
    pub fn webhook_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.webhook_secrets.push(secret.into());
        self
    }

    /// How far the time stamp of a notification may be from the time of receipt, in both directions. 300 s unless
    /// set; it cannot be switched off.
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sends through this transport; without it, through [`Http::new`].
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Takes the present from this clock, which a `Retry-After` with a date is measured by.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the gateway. Nothing is sent.
    ///
    /// # Errors
    /// [`BuildError::Invalid`] names the setting at fault; [`BuildError::Transport`] comes from [`Http::new`].
    pub fn build(self) -> Result<Stripe, BuildError> {
        check_secret("secret_key", &self.secret_key, &["sk_", "rk_"])?;
        for secret in &self.webhook_secrets {
            check_secret("webhook_secret", secret, &["whsec_"])?;
        }
        if let Some(account) = &self.account
            && !(options::is_id(account) && account.starts_with("acct_"))
        {
            return Err(Invalid::new("account", "must begin with acct_").into());
        }
        if self.tolerance.is_zero() {
            return Err(Invalid::new("tolerance", "must be greater than zero").into());
        }
        if self.name.is_empty() {
            return Err(Invalid::new("name", "must not be empty").into());
        }
        let base_url = base_url(&self.base_url)?;
        let transport = match self.transport {
            Some(transport) => transport,
            None => Arc::new(Http::new()?),
        };
        Ok(Stripe {
            name: self.name,
            secret_key: self.secret_key,
            base_url,
            account: self.account,
            webhook_secrets: self.webhook_secrets,
            tolerance: self.tolerance,
            transport,
            clock: self.clock,
        })
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

/// The address is not printed: it has not been checked for credentials yet.
impl fmt::Debug for StripeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StripeBuilder")
            .field("name", &self.name)
            .field("secret_key", &self.secret_key)
            .field("account", &self.account)
            .field("webhook_secrets", &self.webhook_secrets)
            .field("tolerance", &self.tolerance)
            .finish_non_exhaustive()
    }
}

/// A secret must have the prefix of its kind, something after it, and fit into a header.
fn check_secret(field: &'static str, secret: &Secret, prefixes: &[&str]) -> Result<(), Invalid> {
    let text = secret.expose();
    let rest = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    if rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic())) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        format!("must begin with {}", prefixes.join(" or ")),
    ))
}
