//! 2C2P's addresses. Which of them is right depends on where the merchant account was opened.

/// A set of 2C2P's addresses.
///
/// | | payment API | maintenance API | customer token API |
/// |---|---|---|---|
/// | [`Production`](Self::Production) | published | published | published |
/// | [`Sandbox`](Self::Sandbox) | published | published | published |
/// | [`Indonesia`](Self::Indonesia) | not published | published | not published |
/// | [`Vietnam`](Self::Vietnam) | seen in clients | seen in clients | not known |
///
/// What is not published has to be given to the builder:
/// [`base_url`](super::TwoC2pBuilder::base_url) and its neighbours win over the host's own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Host {
    /// All merchants but those below.
    Production,
    /// For tests: test cards, no money.
    Sandbox,
    /// Production of merchants in Indonesia.
    Indonesia,
    /// Production of merchants in Vietnam (MPay). The addresses stand on no page of 2C2P's; two public test tools for
    /// Vietnamese merchants use them, with 4.1 as well as 4.3 in the payment API's path. Check them with 2C2P.
    Vietnam,
}

struct Addresses {
    payment: Option<&'static str>,
    maintenance: Option<&'static str>,
    customer_token: Option<&'static str>,
}

impl Host {
    /// The address before `/paymentToken`.
    #[must_use]
    pub const fn payment_url(self) -> Option<&'static str> {
        self.addresses().payment
    }

    /// The one address of the maintenance API.
    #[must_use]
    pub const fn maintenance_url(self) -> Option<&'static str> {
        self.addresses().maintenance
    }

    /// The address before `/add`, `/update`, `/get` and `/delete` of the customer token API.
    #[must_use]
    pub const fn customer_token_url(self) -> Option<&'static str> {
        self.addresses().customer_token
    }

    const fn addresses(self) -> Addresses {
        match self {
            // Pages `api-payment-token`, `payment-maintenance-refund-guide`, `customer-token-maintenance`.
            Self::Production => Addresses {
                payment: Some("https://pgw.2c2p.com/payment/4.3/"),
                maintenance: Some("https://t.2c2p.com/PaymentAction/2.0/action"),
                customer_token: Some("https://pgw.2c2p.com/customertoken/3.0/CustomerToken"),
            },
            // The same pages. Some lists have the maintenance address without `/2C2PFrontend`; the guides have it.
            Self::Sandbox => Addresses {
                payment: Some("https://sandbox-pgw.2c2p.com/payment/4.3/"),
                maintenance: Some("https://demo2.2c2p.com/2C2PFrontend/PaymentAction/2.0/action"),
                customer_token: Some("https://sandbox-pgw.2c2p.com/customertoken/3.0/CustomerToken"),
            },
            // 2C2P's repository agent-skills, payment-maintenance.md; it names no address for the other two.
            Self::Indonesia => Addresses {
                payment: None,
                maintenance: Some("https://pgwcore.dp.alipay.com/PaymentAction/2.0/action"),
                customer_token: None,
            },
            Self::Vietnam => Addresses {
                payment: Some("https://pgw.m-pay.vn/payment/4.3/"),
                maintenance: Some("https://pgwcore.m-pay.vn/PaymentActionV2/2.0/action"),
                customer_token: None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::base_url;

    #[test]
    fn every_address_is_one_that_the_builder_takes() {
        let mut seen = Vec::new();
        for host in [Host::Production, Host::Sandbox, Host::Indonesia, Host::Vietnam] {
            let urls = [host.payment_url(), host.maintenance_url(), host.customer_token_url()];
            seen.extend(urls.into_iter().flatten().map(|url| base_url(url).unwrap()));
        }
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((all, seen.len()), (9, 9), "no two hosts share an address");
    }
}
