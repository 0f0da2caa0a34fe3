//! Set-up of an account.

use super::options::is_id;
use super::{NAME, Stripe};
use crate::clock::{Clock, SystemClock};
use crate::operation::Invalid;
use crate::secret::Secret;
use crate::transport::{Http, HttpError, Transport, base_url};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const BASE_URL: &str = "https://api.stripe.com";

/// docs/webhooks: the default of Stripe's own libraries.
const TOLERANCE: Duration = Duration::from_secs(300);

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

impl StripeBuilder {
    pub(super) fn new(secret_key: Secret) -> Self {
        Self {
            name: NAME,
            secret_key,
            base_url: BASE_URL.to_owned(),
            account: None,
            webhook_secrets: Vec::new(),
            tolerance: TOLERANCE,
            transport: None,
            clock: Arc::new(SystemClock),
        }
    }

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
            && !(is_id(account) && account.starts_with("acct_"))
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
