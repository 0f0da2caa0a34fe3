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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::twoc2p::maintenance::samples::merchant;
    use crate::gateway::twoc2p::tests::Scripted;
    use crate::gateway::twoc2p::{BuildError, TwoC2p};
    use std::sync::Arc;

    fn base() -> TwoC2pBuilder {
        let account = TwoC2p::builder("TESTM01", "TESTONLY").transport(Arc::new(Scripted::default()));
        account.maintenance_keys(merchant())
    }

    fn addresses(builder: TwoC2pBuilder) -> (String, Option<String>) {
        let maintenance = builder.build().unwrap().maintenance.unwrap();
        (maintenance.url, maintenance.customer_token_url)
    }

    #[track_caller]
    fn fault(builder: TwoC2pBuilder) -> Invalid {
        match builder.build() {
            Err(BuildError::Invalid(invalid)) => invalid,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn addresses_follow_the_host_and_never_a_test_server_s_account_into_production() {
        let production = "https://t.2c2p.com/PaymentAction/2.0/action";
        let tokens = "https://pgw.2c2p.com/customertoken/3.0/CustomerToken";
        assert_eq!(addresses(base()), (production.to_owned(), Some(tokens.to_owned())));
        let elsewhere = base().base_url("http://127.0.0.1:1/");
        assert_eq!(fault(elsewhere.clone()).field(), "maintenance_url");
        let here = addresses(elsewhere.maintenance_url("http://127.0.0.1:1/action/"));
        assert_eq!(here, ("http://127.0.0.1:1/action".to_owned(), None));
        let chosen = base().host(Host::Production).base_url("https://pgw.example/");
        assert_eq!(addresses(chosen).0, production);
        let indonesia = base().host(Host::Indonesia).base_url("https://pgw.example/");
        let indonesia = indonesia.customer_token_url("https://tokens.example/CustomerToken");
        let published = "https://pgwcore.dp.alipay.com/PaymentAction/2.0/action";
        let given = Some("https://tokens.example/CustomerToken".to_owned());
        assert_eq!(addresses(indonesia), (published.to_owned(), given));
    }

    #[test]
    fn a_setting_that_does_not_fit_is_named_and_not_repeated() {
        for (field, builder) in [
            ("maintenance_url", base().maintenance_url("http://t.2c2p.com/TESTONLY")),
            (
                "customer_token_url",
                base().customer_token_url("https://user:TESTONLY@tokens.example/"),
            ),
            ("refund_notify_url", base().refund_notify_url("javascript:TESTONLY")),
            (
                "refund_notify_url",
                base().refund_notify_url(format!("https://shop.example/{}", "x".repeat(250))),
            ),
        ] {
            let invalid = fault(builder);
            assert_eq!(invalid.field(), field);
            assert!(!invalid.to_string().contains("TESTONLY"), "{invalid}");
        }
    }
}
