//! Set-up of a merchant account.

use super::TwoC2p;
use super::date::UtcOffset;
use super::host::Host;
use super::invoice::InvoiceProfile;
use super::jwt::Signer;
#[cfg(feature = "twoc2p-maintenance")]
use super::maintenance::Settings;
use super::options::is_web_address;
use crate::clock::{Clock, SystemClock};
use crate::money::Currency;
use crate::operation::Invalid;
use crate::secret::Secret;
use crate::transport::{Http, HttpError, Transport, base_url};
use std::fmt;
use std::sync::Arc;

/// Settings of a [`TwoC2p`].
#[derive(Clone)]
pub struct TwoC2pBuilder {
    merchant_id: String,
    secret_key: Secret,
    child_merchant_id: Option<String>,
    host: Option<Host>,
    base_url: Option<String>,
    #[cfg(feature = "twoc2p-maintenance")]
    pub(super) maintenance: Settings,
    profile: InvoiceProfile,
    currency: Option<Currency>,
    frontend_return_url: Option<String>,
    backend_return_url: Option<String>,
    utc_offset_minutes: Option<i32>,
    accept_forms: bool,
    transport: Option<Arc<dyn Transport>>,
    clock: Arc<dyn Clock>,
}

/// A [`TwoC2p`] could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting does not fit; its value is not repeated.
    #[error("2C2P cannot be set up like this")]
    Invalid(
        #[from]
        #[source]
        Invalid,
    ),
    /// No transport was given, and the default one could not be built.
    #[error("2C2P cannot be set up without a transport")]
    Transport(
        #[from]
        #[source]
        HttpError,
    ),
}

impl TwoC2pBuilder {
    pub(super) fn new(merchant_id: String, secret_key: Secret) -> Self {
        Self {
            merchant_id,
            secret_key,
            child_merchant_id: None,
            host: None,
            base_url: None,
            #[cfg(feature = "twoc2p-maintenance")]
            maintenance: Settings::default(),
            profile: InvoiceProfile::default(),
            currency: None,
            frontend_return_url: None,
            backend_return_url: None,
            utc_offset_minutes: None,
            accept_forms: false,
            transport: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Whose addresses are used; [`Host::Production`] by default.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.host = Some(host);
        self
    }

    /// [`Host::Sandbox`].
    #[must_use]
    pub fn sandbox(self) -> Self {
        self.host(Host::Sandbox)
    }

    /// The address before `/paymentToken`, instead of the host's.
    ///
    /// With this and without a [`host`](Self::host), no other address is assumed either: whoever points an account at
    /// a test server must not find its refunds in production.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// A sub-account of the merchant, in requests and inquiries.
    #[must_use]
    pub fn child_merchant_id(mut self, id: impl Into<String>) -> Self {
        self.child_merchant_id = Some(id.into());
        self
    }

    /// What the merchant's channels allow as an invoice number. Part of every operation's identity: do not change it
    /// while operations are open.
    #[must_use]
    pub fn invoice_profile(mut self, profile: InvoiceProfile) -> Self {
        self.profile = profile;
        self
    }

    /// The account's only currency; an operation in another one is refused before anything is sent. Without it every
    /// currency is passed on.
    #[must_use]
    pub fn currency(mut self, currency: Currency) -> Self {
        self.currency = Some(currency);
        self
    }

    /// Where the payer's browser goes after the page; without it, the merchant portal's setting.
    #[must_use]
    pub fn frontend_return_url(mut self, url: impl Into<String>) -> Self {
        self.frontend_return_url = Some(url.into());
        self
    }

    /// Where 2C2P posts backend callbacks; without it, the merchant portal's setting.
    #[must_use]
    pub fn backend_return_url(mut self, url: impl Into<String>) -> Self {
        self.backend_return_url = Some(url.into());
        self
    }

    /// The merchant's local time, in minutes east of UTC (420 for Thailand). 2C2P reads `paymentExpiry` in it, and
    /// names no zone; so an operation with an expiry is refused until this is set. -840 to 840.
    #[must_use]
    pub fn utc_offset_minutes(mut self, minutes: i32) -> Self {
        self.utc_offset_minutes = Some(minutes);
        self
    }

    /// Accepts backend callbacks as a form (`payload=...`) besides JSON. Off by default: 2C2P documents JSON alone.
    #[must_use]
    pub fn accept_form_callbacks(mut self) -> Self {
        self.accept_forms = true;
        self
    }

    /// The network; [`Http::new`] by default.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The clock by which "not found" is judged; [`SystemClock`] by default.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`BuildError::Invalid`] names the setting at fault; [`BuildError::Transport`] as [`Http::new`].
    pub fn build(self) -> Result<TwoC2p, BuildError> {
        check_id("merchant_id", &self.merchant_id)?;
        if let Some(child) = &self.child_merchant_id {
            check_id("child_merchant_id", child)?;
        }
        let secret = self.secret_key.expose();
        if secret.is_empty() || secret.contains(char::is_whitespace) {
            return Err(Invalid::new("secret_key", "must not be empty or contain white space").into());
        }
        for (field, url) in [
            ("frontend_return_url", &self.frontend_return_url),
            ("backend_return_url", &self.backend_return_url),
        ] {
            if url.as_deref().is_some_and(|url| !is_web_address(url)) {
                return Err(Invalid::new(field, "must be an absolute http or https URL").into());
            }
        }
        let host = match (self.host, &self.base_url) {
            (None, None) => Some(Host::Production),
            (chosen, _) => chosen,
        };
        let published = host.and_then(Host::payment_url);
        let base_url = address("base_url", self.base_url.as_deref(), published)?
            .ok_or_else(|| Invalid::new("base_url", "is not published for this host, and must be given"))?;
        Ok(TwoC2p {
            signer: Signer::new(&self.secret_key),
            base_url,
            #[cfg(feature = "twoc2p-maintenance")]
            maintenance: self.maintenance.build(host)?,
            utc_offset: self.utc_offset_minutes.map(UtcOffset::from_minutes).transpose()?,
            transport: match self.transport {
                Some(transport) => transport,
                None => Arc::new(Http::new()?),
            },
            merchant_id: self.merchant_id,
            child_merchant_id: self.child_merchant_id,
            profile: self.profile,
            currency: self.currency,
            frontend_return_url: self.frontend_return_url,
            backend_return_url: self.backend_return_url,
            accept_forms: self.accept_forms,
            clock: self.clock,
        })
    }
}

/// The addresses are not printed: they have not been checked for credentials yet.
impl fmt::Debug for TwoC2pBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwoC2pBuilder")
            .field("merchant_id", &self.merchant_id)
            .field("secret_key", &self.secret_key)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// The address that was given, or else the published one, checked.
pub(super) fn address(
    field: &'static str,
    given: Option<&str>,
    published: Option<&'static str>,
) -> Result<Option<String>, Invalid> {
    let checked = given.or(published).map(base_url).transpose();
    checked.map_err(|invalid| Invalid::new(field, invalid.reason()))
}

/// Type AN 25 of the pages.
fn check_id(field: &'static str, id: &str) -> Result<(), Invalid> {
    if id.is_empty() || id.len() > 25 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Invalid::new(field, "must be 1 to 25 letters and digits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::twoc2p::tests::{SECRET, Scripted};

    #[test]
    fn an_account_has_the_addresses_of_its_host_unless_others_are_given() {
        let base = || TwoC2p::builder("TESTM01", SECRET).transport(Arc::new(Scripted::default()));
        let of = |builder: TwoC2pBuilder| builder.build().unwrap().base_url;
        assert_eq!(of(base()), "https://pgw.2c2p.com/payment/4.3");
        assert_eq!(of(base().sandbox()), "https://sandbox-pgw.2c2p.com/payment/4.3");
        assert_eq!(of(base().host(Host::Vietnam)), "https://pgw.m-pay.vn/payment/4.3");
        assert_eq!(
            of(base().base_url("http://127.0.0.1:1/a/").sandbox()),
            "http://127.0.0.1:1/a"
        );
        let error = base().host(Host::Indonesia).build().unwrap_err();
        assert!(matches!(error, BuildError::Invalid(invalid) if invalid.field() == "base_url"));
        assert!(
            base()
                .host(Host::Indonesia)
                .base_url("https://pgw.example/")
                .build()
                .is_ok()
        );
    }
}
