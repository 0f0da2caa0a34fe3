//! Members that are objects of their own (page `api-payment-token-request-parameter`).

use super::member::{Members, Rule, Value};
use crate::money::Money;
use std::fmt;

/// A share of the payment for a sub-merchant (`subMerchants`). The shares must add up to the amount, or 2C2P answers
/// 9095.
#[derive(Clone, Debug)]
pub struct SubMerchant(Members);

impl SubMerchant {
    /// `invoice_no` (at most 20 characters) is unique per sub-merchant for ever, as the operation's own number is: it
    /// must come from the order, never from a clock or a random source.
    #[must_use]
    pub fn new(
        merchant_id: impl Into<String>,
        invoice_no: impl Into<String>,
        amount: Money,
        description: impl Into<String>,
    ) -> Self {
        let mut members = Members::default();
        members.put("merchantID", Value::Text(merchant_id.into()), Rule::Chars(1, 25));
        members.put("invoiceNo", Value::Text(invoice_no.into()), Rule::Chars(1, 20));
        members.put("amount", Value::Amount(amount), Rule::Free);
        members.put("description", Value::Text(description.into()), Rule::Chars(1, 255));
        Self(members)
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// A line of the order (`paymentItems`).
#[derive(Clone, Debug)]
pub struct PaymentItem(Members);

impl PaymentItem {
    /// `code` at most 25 characters, `name` at most 50, `quantity` at most 9999.
    #[must_use]
    pub fn new(code: impl Into<String>, name: impl Into<String>, quantity: u32, price: Money) -> Self {
        let mut members = Members::default();
        members.put("code", Value::Text(code.into()), Rule::Chars(1, 25));
        members.put("name", Value::Text(name.into()), Rule::Chars(1, 50));
        members.put("quantity", Value::Number(quantity), Rule::UpTo(9999));
        members.put("price", Value::Amount(price), Rule::Free);
        Self(members)
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// What the page's form is filled with (`uiParams.userInfo`). Personal data: it goes to 2C2P and is stored nowhere here.
#[allow(
    clippy::exhaustive_structs,
    reason = "a struct to be written with ..Default::default()"
)]
#[derive(Clone, Default)]
pub struct PayerInfo {
    /// At most 50 characters.
    pub name: Option<String>,
    /// At most 150 characters.
    pub email: Option<String>,
    /// At most 15 characters.
    pub mobile_no: Option<String>,
    /// Country code of the telephone number, at most 2 digits.
    pub mobile_no_prefix: Option<String>,
    /// Two letters, ISO 3166.
    pub country_code: Option<String>,
    /// Three letters, ISO 4217.
    pub currency_code: Option<String>,
}

impl PayerInfo {
    pub(super) fn into_value(self) -> Value {
        let mut members = Members::default();
        members.text("name", self.name.as_deref(), 50);
        members.text("email", self.email.as_deref(), 150);
        members.text("mobileNo", self.mobile_no.as_deref(), 15);
        members.text("mobileNoPrefix", self.mobile_no_prefix.as_deref(), 2);
        members.text("countryCode", self.country_code.as_deref(), 2);
        members.text("currencyCode", self.currency_code.as_deref(), 3);
        Value::Object(members)
    }
}

impl fmt::Debug for PayerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayerInfo(***)")
    }
}

/// An address (`customerAddress`). The page gives no lengths; 255 characters a line are allowed here.
#[allow(
    clippy::exhaustive_structs,
    reason = "a struct to be written with ..Default::default()"
)]
#[derive(Clone, Default)]
pub struct Address {
    /// First line.
    pub address1: Option<String>,
    /// Second line.
    pub address2: Option<String>,
    /// Third line.
    pub address3: Option<String>,
    /// City.
    pub city: Option<String>,
    /// State or province.
    pub state: Option<String>,
    /// Postal code.
    pub postal_code: Option<String>,
    /// Two letters, ISO 3166.
    pub country_code: Option<String>,
}

impl Address {
    pub(super) fn into_value(self) -> Value {
        let mut members = Members::default();
        members.text("address1", self.address1.as_deref(), 255);
        members.text("address2", self.address2.as_deref(), 255);
        members.text("address3", self.address3.as_deref(), 255);
        members.text("city", self.city.as_deref(), 255);
        members.text("state", self.state.as_deref(), 255);
        members.text("postalCode", self.postal_code.as_deref(), 255);
        members.text("countryCode", self.country_code.as_deref(), 2);
        Value::Object(members)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(***)")
    }
}

/// Members with many parts that few merchants use; the caller writes their JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonMember {
    /// `loyaltyPoints`.
    LoyaltyPoints,
    /// `browserDetails`; goes with the direct payment too.
    BrowserDetails,
    /// `airlinePassengers`.
    AirlinePassengers,
    /// `3DSecure2Params`.
    ThreeDSecure2Params,
    /// `accountFunding`.
    AccountFunding,
}

impl JsonMember {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LoyaltyPoints => "loyaltyPoints",
            Self::BrowserDetails => "browserDetails",
            Self::AirlinePassengers => "airlinePassengers",
            Self::ThreeDSecure2Params => "3DSecure2Params",
            Self::AccountFunding => "accountFunding",
        }
    }
}
