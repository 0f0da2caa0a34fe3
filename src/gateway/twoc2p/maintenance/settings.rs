//! The part of an account's set-up that needs RSA keys.

use super::options::check_notify_url;
use super::{Maintenance, MaintenanceKeys};
use crate::gateway::twoc2p::builder::address;
use crate::gateway::twoc2p::{Host, TwoC2pBuilder};
use crate::operation::Invalid;
use crate::retry::InquiryBudget;

/// Second opinions a second on average, and at once.
const SECOND_OPINIONS: (u32, u32) = (2, 10);

#[derive(Clone, Default)]
pub(in crate::gateway::twoc2p) struct Settings {
    keys: Option<MaintenanceKeys>,
    url: Option<String>,
    customer_token_url: Option<String>,
    refund_notify_url: Option<String>,
    second_opinions: Option<(u32, u32)>,
}

impl TwoC2pBuilder {
    /// The keys with which 2C2P's maintenance API is spoken. With them the account can capture, void and refund, change
    /// payment plans and stored cards, and asks for a second opinion where a payment inquiry is vague.
    #[must_use]
    pub fn maintenance_keys(mut self, keys: MaintenanceKeys) -> Self {
        self.maintenance.keys = Some(keys);
        self
    }

    /// The one address of the maintenance API, instead of the host's.
    #[must_use]
    pub fn maintenance_url(mut self, url: impl Into<String>) -> Self {
        self.maintenance.url = Some(url.into());
        self
    }

    /// The address before `/add` of the customer token API, instead of the host's.
    #[must_use]
    pub fn customer_token_url(mut self, url: impl Into<String>) -> Self {
        self.maintenance.customer_token_url = Some(url.into());
        self
    }

    /// Where 2C2P posts the final state of a refund that takes time. Hand what arrives there to
    /// [`Payments::notify`](crate::Payments::notify), as you do with backend callbacks. At most 250 characters.
    #[must_use]
    pub fn refund_notify_url(mut self, url: impl Into<String>) -> Self {
        self.maintenance.refund_notify_url = Some(url.into());
        self
    }

    /// How often a vague payment inquiry is followed by one to the maintenance API: on average a second, and at once.
    /// 2 and 10 without it; with `(0, 0)` never, and then "not found" is never believed either.
    #[must_use]
    pub fn second_opinions(mut self, per_second: u32, burst: u32) -> Self {
        self.maintenance.second_opinions = Some((per_second, burst));
        self
    }
}

impl Settings {
    /// `None` without keys.
    pub(in crate::gateway::twoc2p) fn build(self, host: Option<Host>) -> Result<Option<Maintenance>, Invalid> {
        let published = host.and_then(Host::maintenance_url);
        let url = address("maintenance_url", self.url.as_deref(), published)?;
        let published = host.and_then(Host::customer_token_url);
        let customer_token_url = address("customer_token_url", self.customer_token_url.as_deref(), published)?;
        if let Some(url) = &self.refund_notify_url {
            check_notify_url("refund_notify_url", url)?;
        }
        let Some(keys) = self.keys else {
            return Ok(None);
        };
        let (per_second, burst) = self.second_opinions.unwrap_or(SECOND_OPINIONS);
        Ok(Some(Maintenance {
            keys,
            url: url
                .ok_or_else(|| Invalid::new("maintenance_url", "is not published for this host, and must be given"))?,
            customer_token_url,
            refund_notify_url: self.refund_notify_url,
            second_opinions: InquiryBudget::new(per_second, burst),
        }))
    }
}
