//! A payment made at once from the server, without 2C2P's page ("Do Payment", page `api-do-payment`).

use super::member::{Members, Rule, Value};
use super::{TwoC2pOptions, up_to};
use crate::gateway::twoc2p::json::Object;
use crate::money::Currency;
use crate::operation::Invalid;
use crate::secret::Secret;

/// Each of these makes the payment a direct one.
///
/// A direct payment is two requests: the token, then the payment with it. So that a repeated send can never pay with
/// a second token, it goes without `idempotencyID`: 2C2P then answers a second request for the same invoice number
/// with 9015, and an inquiry decides.
impl TwoC2pOptions {
    /// Pays at once with a stored card (`payment.data.customerToken`).
    #[must_use]
    pub fn customer_token(mut self, token: impl Into<Secret>) -> Self {
        self.data.put("customerToken", Value::Secret(token.into()), up_to(255));
        self
    }

    /// Pays at once with card data that 2C2P's library encrypted in the payer's browser.
    #[must_use]
    pub fn secure_pay_token(mut self, token: impl Into<Secret>) -> Self {
        self.data.put("securePayToken", Value::Secret(token.into()), up_to(255));
        self
    }

    /// Begins a payment through this channel at once; without it, a card's channel `CC`.
    #[must_use]
    pub fn direct_channel(mut self, channel_code: impl Into<String>) -> Self {
        self.code
            .put("channelCode", Value::Text(channel_code.into()), up_to(10));
        self
    }

    /// The agent, and its channel, through which a direct payment is made.
    #[must_use]
    pub fn direct_agent(mut self, agent_code: impl Into<String>, agent_channel_code: impl Into<String>) -> Self {
        self.code.put("agentCode", Value::Text(agent_code.into()), up_to(10));
        self.code
            .put("agentChannelCode", Value::Text(agent_channel_code.into()), up_to(10));
        self
    }

    /// Name and e-mail address of the payer of a direct payment. They go to 2C2P and are stored nowhere here.
    #[must_use]
    pub fn direct_payer(mut self, name: impl Into<String>, email: impl Into<String>) -> Self {
        self.data.put("name", Value::Text(name.into()), up_to(50));
        self.data.put("email", Value::Text(email.into()), up_to(150));
        self
    }

    /// Telephone number of the payer of a direct payment.
    #[must_use]
    pub fn direct_mobile_no(mut self, number: impl Into<String>) -> Self {
        self.data.put("mobileNo", Value::Text(number.into()), up_to(15));
        self
    }

    /// Page to which the payer comes back from an authentication with the issuer (`responseReturnUrl`).
    #[must_use]
    pub fn direct_return_url(mut self, url: impl Into<String>) -> Self {
        self.direct.put("responseReturnUrl", Value::Text(url.into()), Rule::Url);
        self
    }

    /// Months of the instalments of a direct payment, at most 99.
    #[must_use]
    pub fn direct_installment_period(mut self, months: u32) -> Self {
        self.data
            .put("installmentPeriod", Value::Number(months), Rule::UpTo(99));
        self
    }

    /// Form of the QR code that a direct payment brings: `ALL`, `RAW`, `BASE64` or `URL`.
    #[must_use]
    pub fn direct_qr_type(mut self, form: impl Into<String>) -> Self {
        self.data.put("qrType", Value::Text(form.into()), up_to(10));
        self
    }

    pub(in crate::gateway::twoc2p) fn is_direct(&self) -> bool {
        !self.direct.is_empty() || !self.code.is_empty() || !self.data.is_empty()
    }

    /// A card pays, and no payer has to come to a page: what is declined stays declined.
    pub(in crate::gateway::twoc2p) fn pays_by_card(&self) -> bool {
        self.data.has("customerToken") || self.data.has("securePayToken")
    }

    /// The body of the direct payment: plain JSON, not signed.
    pub(in crate::gateway::twoc2p) fn direct_body(
        &self,
        payment_token: &Secret,
        client_id: &str,
        currency: Currency,
    ) -> Result<String, Invalid> {
        if self.data.has("customerToken") && self.data.has("securePayToken") {
            return Err(Invalid::new(
                "securePayToken",
                "cannot go with customerToken: which card is to pay?",
            ));
        }
        let mut code = self.code.clone();
        if !code.has("channelCode") {
            code.put("channelCode", Value::Code("CC"), Rule::Free);
        }
        let mut data = self.data.clone();
        data.extend(self.token.only(&["interestType"]));
        let mut payment = Members::default();
        payment.put("code", Value::Object(code), Rule::Free);
        payment.put("data", Value::Object(data), Rule::Free);
        let mut body = Object::new();
        body.text("paymentToken", payment_token.expose())
            .text("clientID", client_id);
        self.token
            .only(&["locale", "clientIP", "browserDetails"])
            .write(&mut body, currency)?;
        self.direct.write(&mut body, currency)?;
        let mut inner = Object::new();
        payment.write(&mut inner, currency)?;
        body.raw("payment", &inner.finish());
        Ok(body.finish())
    }
}
