//! What 2C2P can be told beyond the operation itself (page `api-payment-token-request-parameter`, and `api-do-payment`
//! for a direct payment).

mod direct;
mod member;
mod nested;

#[cfg(test)]
mod tests;

pub use nested::{Address, JsonMember, PayerInfo, PaymentItem, SubMerchant};

pub(super) use member::is_web_address;

use super::NAME;
use super::json::Object;
use crate::money::{Currency, Money};
use crate::operation::{Canonical, GatewayOptions, Invalid};
use crate::secret::Secret;
use member::{Members, Rule, Value};

/// Options of a payment through 2C2P. Every one is optional, and is sent only when given.
///
/// Values are checked when the operation is prepared, before anything is written or sent; the error names the member
/// by 2C2P's own name.
///
/// ```
/// use payonce::gateway::twoc2p::{Request3ds, TwoC2pOptions};
/// use payonce::money::{Currency, Money};
/// use payonce::operation::Operation;
///
/// let options = TwoC2pOptions::new().payment_channels(["CC", "QR"]).request_3ds(Request3ds::Force);
/// let order = Operation::charge("order1042", Money::parse("2000.00", Currency::THB)?)?.with(options);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Not offered: `tokenizeOnly`, under which no money moves and a charge would not be one; and card numbers in the
/// clear, which belong in 2C2P's page or its browser library.
#[derive(Clone, Debug, Default)]
pub struct TwoC2pOptions {
    token: Members,
    ui: Members,
    direct: Members,
    code: Members,
    data: Members,
}

/// Whether the payer has to authenticate with the issuer (`request3DS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request3ds {
    /// `Y`, 2C2P's default.
    Yes,
    /// `F`.
    Force,
    /// `N`.
    No,
}

/// Use of stored credentials (`storeCredentials`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreCredentials {
    /// `F`: stored with this payment.
    First,
    /// `S`: used again.
    Subsequent,
    /// `N`: not used.
    No,
}

/// Who bears the interest of an instalment plan (`interestType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterestType {
    /// `A`: plans of both kinds.
    All,
    /// `C`.
    Customer,
    /// `M`.
    Merchant,
}

/// Who began the payment (`transactionInitiator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionInitiator {
    /// `C`, 2C2P's default.
    Customer,
    /// `M`; needs [`TwoC2pOptions::previous_payment_id`].
    Merchant,
}

/// One setter a line: the member it fills, and what 2C2P takes there.
macro_rules! text_setters {
    ($map:ident: $($(#[$doc:meta])* $setter:ident $wire:literal $rule:expr;)*) => {
        impl TwoC2pOptions {
            $($(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, text: impl Into<String>) -> Self {
                self.$map.put($wire, Value::Text(text.into()), $rule);
                self
            })*
        }
    };
}

macro_rules! flag_setters {
    ($($(#[$doc:meta])* $setter:ident $wire:literal;)*) => {
        impl TwoC2pOptions {
            $($(#[$doc])*
            #[must_use]
            pub fn $setter(mut self, flag: bool) -> Self {
                self.token.put($wire, Value::Flag(flag), Rule::Free);
                self
            })*
        }
    };
}

/// A text of at most so many characters. The pages' "alphanumeric" is not taken at its word: samples have dots and
/// dashes in such members.
const fn up_to(most: usize) -> Rule {
    Rule::Chars(1, most)
}

text_setters! { token:
    /// Sub-merchant known to the acquirer by its own id.
    external_sub_merchant_id "externalSubMerchantID" up_to(50);
    /// Product code of an instalment plan.
    product_code "productCode" up_to(50);
    /// First part of the invoice numbers of recurring payments; 2C2P adds five digits. Those payments are not
    /// operations of this crate.
    invoice_prefix "invoicePrefix" up_to(15);
    /// Date of the next recurring charge, `ddMMyyyy`.
    charge_next_date "chargeNextDate" Rule::Digits(8);
    /// Day of recurring charges, `ddMM`.
    charge_on_date "chargeOnDate" Rule::Digits(4);
    /// Promotion code.
    promotion_code "promotionCode" up_to(20);
    /// Routing rule of the merchant.
    payment_route_id "paymentRouteID" up_to(255);
    /// Provider of exchange rates.
    fx_provider_code "fxProviderCode" up_to(20);
    /// Exchange rate; goes with [`TwoC2pOptions::original_amount`].
    fx_rate_id "fxRateId" up_to(50);
    /// Text on the payer's statement: 5 to 20 characters, none of `< > \\ ' " *`.
    statement_descriptor "statementDescriptor" Rule::Descriptor;
    /// Version of a 3-D Secure authentication that the merchant ran itself; 2C2P's default is 2.1.0.
    protocol_version "protocolVersion" up_to(10);
    /// Electronic commerce indicator of such an authentication, two digits.
    eci "eci" Rule::Digits(2);
    /// Directory server's id of such an authentication.
    ds_transaction_id "dsTransactionId" up_to(36);
    /// A text that goes into the signed request and has no meaning. It must be the same in each retry.
    nonce_str "nonceStr" up_to(32);
    /// Language of page and texts, such as `en` or `th`; goes with the direct payment too.
    locale "locale" up_to(10);
    /// Page for the payer's return, instead of the one of the gateway's set-up.
    frontend_return_url "frontendReturnUrl" Rule::Url;
    /// Address for backend callbacks, instead of the one of the gateway's set-up.
    backend_return_url "backendReturnUrl" Rule::Url;
    /// Address that opens the merchant's own app; needs [`TwoC2pOptions::app_bundle_id`].
    scheme_return_url "schemeReturnUrl" up_to(512);
    /// Bundle of the merchant's own app.
    app_bundle_id "appBundleID" up_to(255);
    /// Mode of manual settlement. An authorization must give it and a charge must not, since it leaves the money to
    /// be captured. No page lists its values; `PREAUTH` has been seen: ask 2C2P.
    transaction_mode "transactionMode" up_to(20);
    /// The `paymentID` (`ccpp_...`) of the payer's first payment, for one that the merchant begins.
    previous_payment_id "previousPaymentID" up_to(255);
    /// The payer's IP address; goes with the direct payment too.
    client_ip "clientIP" up_to(45);
    /// Id of the payer's app.
    client_app_id "clientAppID" up_to(45);
    /// The payer's browser.
    user_agent "userAgent" up_to(2048);
    /// Reason for not authenticating the payer, such as `low_value`.
    sca_exemption_indicator "scaExemptionIndicator" up_to(255);
}

flag_setters! {
    /// Offers to store the card.
    tokenize "tokenize";
    /// Takes the given stored cards and no new one.
    customer_token_only "customerTokenOnly";
    /// Makes this the first of recurring payments.
    recurring "recurring";
    /// Adds what failed to the next recurring charge.
    allow_accumulate "allowAccumulate";
    /// Begins the payment without waiting for the payer. Money may then move before the page is opened, so that no
    /// refusal of the request is believed without an inquiry.
    immediate_payment "immediatePayment";
    /// Makes the page fit into a frame.
    iframe_mode "iframeMode";
    /// Asks the payer to authenticate once more.
    request_reauthentication "requestReauthentication";
}

impl TwoC2pOptions {
    /// No options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ways to pay that are offered, such as `CC`, `IPP`, `QR`, `123`; without it, all of the merchant's.
    #[must_use]
    pub fn payment_channels<T: Into<String>>(self, channels: impl IntoIterator<Item = T>) -> Self {
        self.texts("paymentChannel", channels, 6)
    }

    /// Agents that are offered within channel `123`.
    #[must_use]
    pub fn agent_channels<T: Into<String>>(self, channels: impl IntoIterator<Item = T>) -> Self {
        self.texts("agentChannel", channels, 6)
    }

    /// Banks that instalments are offered from.
    #[must_use]
    pub fn installment_banks<T: Into<String>>(self, banks: impl IntoIterator<Item = T>) -> Self {
        self.texts("installmentBankFilter", banks, 255)
    }

    /// Numbers of months that instalments are offered over, each at most 99.
    #[must_use]
    pub fn installment_periods(mut self, months: impl IntoIterator<Item = u32>) -> Self {
        let months = months.into_iter().map(Value::Number).collect();
        self.token
            .put("installmentPeriodFilter", Value::List(months), Rule::UpTo(99));
        self
    }

    /// Stored cards (`customerToken`) that the page offers. To pay with one at once, see
    /// [`TwoC2pOptions::customer_token`].
    #[must_use]
    pub fn offered_customer_tokens<T: Into<Secret>>(mut self, tokens: impl IntoIterator<Item = T>) -> Self {
        let tokens = tokens.into_iter().map(|token| Value::Secret(token.into())).collect();
        self.token.put("customerToken", Value::List(tokens), up_to(255));
        self
    }

    /// A token of another provider (`externalToken`).
    #[must_use]
    pub fn external_token(mut self, token: impl Into<Secret>) -> Self {
        self.token.put("externalToken", Value::Secret(token.into()), up_to(255));
        self
    }

    /// Cardholder authentication value of an authentication that the merchant ran itself.
    #[must_use]
    pub fn cavv(mut self, value: impl Into<Secret>) -> Self {
        self.token.put("cavv", Value::Secret(value.into()), up_to(40));
        self
    }

    /// Whether the payer has to authenticate with the issuer.
    #[must_use]
    pub fn request_3ds(self, request: Request3ds) -> Self {
        self.letter(
            "request3DS",
            match request {
                Request3ds::Yes => "Y",
                Request3ds::Force => "F",
                Request3ds::No => "N",
            },
        )
    }

    /// Whether a soft decline may be followed by an authentication.
    #[must_use]
    pub fn allow_3ds_upgrade(self, allow: bool) -> Self {
        self.letter("allow3DSUpgrade", if allow { "Y" } else { "N" })
    }

    /// Use of stored credentials.
    #[must_use]
    pub fn store_credentials(self, credentials: StoreCredentials) -> Self {
        self.letter(
            "storeCredentials",
            match credentials {
                StoreCredentials::First => "F",
                StoreCredentials::Subsequent => "S",
                StoreCredentials::No => "N",
            },
        )
    }

    /// Who bears the interest of an instalment plan; goes with the direct payment too.
    #[must_use]
    pub fn interest_type(self, interest: InterestType) -> Self {
        self.letter(
            "interestType",
            match interest {
                InterestType::All => "A",
                InterestType::Customer => "C",
                InterestType::Merchant => "M",
            },
        )
    }

    /// Who began the payment.
    #[must_use]
    pub fn transaction_initiator(self, initiator: TransactionInitiator) -> Self {
        self.letter(
            "transactionInitiator",
            match initiator {
                TransactionInitiator::Customer => "C",
                TransactionInitiator::Merchant => "M",
            },
        )
    }

    /// Amount of each recurring charge, in the operation's currency; without it, the operation's amount.
    #[must_use]
    pub fn recurring_amount(mut self, amount: Money) -> Self {
        self.token.put("recurringAmount", Value::Amount(amount), Rule::Free);
        self
    }

    /// Accumulated amount at which recurring charges end, in the operation's currency.
    #[must_use]
    pub fn max_accumulate_amount(mut self, amount: Money) -> Self {
        self.token.put("maxAccumulateAmount", Value::Amount(amount), Rule::Free);
        self
    }

    /// Amount in the original currency of an exchange.
    #[must_use]
    pub fn original_amount(mut self, amount: Money) -> Self {
        self.token
            .put("originalAmount", Value::Amount(amount), Rule::AnyCurrency);
        self
    }

    /// Days between recurring charges, at most 999.
    #[must_use]
    pub fn recurring_interval(mut self, days: u32) -> Self {
        self.token
            .put("recurringInterval", Value::Number(days), Rule::UpTo(999));
        self
    }

    /// Number of recurring charges, at most 99999; 0 for no end.
    #[must_use]
    pub fn recurring_count(mut self, count: u32) -> Self {
        self.token
            .put("recurringCount", Value::Number(count), Rule::UpTo(99_999));
        self
    }

    /// Shares for sub-merchants.
    #[must_use]
    pub fn sub_merchants(mut self, shares: impl IntoIterator<Item = SubMerchant>) -> Self {
        let shares = shares.into_iter().map(SubMerchant::into_value).collect();
        self.token.put("subMerchants", Value::List(shares), Rule::Free);
        self
    }

    /// Lines of the order.
    #[must_use]
    pub fn payment_items(mut self, items: impl IntoIterator<Item = PaymentItem>) -> Self {
        let items = items.into_iter().map(PaymentItem::into_value).collect();
        self.token.put("paymentItems", Value::List(items), Rule::Free);
        self
    }

    /// What the page's form is filled with.
    #[must_use]
    pub fn payer_info(mut self, info: PayerInfo) -> Self {
        self.ui.put("userInfo", info.into_value(), Rule::Free);
        self
    }

    /// Whether the payer can leave a note.
    #[must_use]
    pub fn allow_customer_note(mut self, allow: bool) -> Self {
        self.ui.put("allowCustomerNote", Value::Flag(allow), Rule::Free);
        self
    }

    /// The payer's addresses.
    #[must_use]
    pub fn customer_address(mut self, billing: Option<Address>, shipping: Option<Address>) -> Self {
        let mut address = Members::default();
        for (name, part) in [("billing", billing), ("shipping", shipping)] {
            if let Some(part) = part {
                address.put(name, part.into_value(), Rule::Free);
            }
        }
        self.token.put("customerAddress", Value::Object(address), Rule::Free);
        self
    }

    /// A member whose JSON the caller writes. It is checked to be JSON and sent as it is, so it must be the same in
    /// each retry.
    #[must_use]
    pub fn json(mut self, member: JsonMember, json: impl Into<String>) -> Self {
        self.token.put(member.name(), Value::Json(json.into()), Rule::Free);
        self
    }

    fn texts<T: Into<String>>(mut self, name: &'static str, texts: impl IntoIterator<Item = T>, most: usize) -> Self {
        let texts = texts.into_iter().map(|text| Value::Text(text.into())).collect();
        self.token.put(name, Value::List(texts), up_to(most));
        self
    }

    fn letter(mut self, name: &'static str, letter: &'static str) -> Self {
        self.token.put(name, Value::Code(letter), Rule::Free);
        self
    }
}

impl GatewayOptions for TwoC2pOptions {
    fn gateway(&self) -> &'static str {
        NAME
    }

    fn canonical(&self, out: &mut Canonical) {
        for members in [&self.token, &self.ui, &self.direct, &self.code, &self.data] {
            members.canonical(out);
        }
    }
}

impl TwoC2pOptions {
    /// Checks what only the members together can tell.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let merchant_begins = self.token.is_code("transactionInitiator", "M");
        if merchant_begins && !self.token.has("previousPaymentID") {
            return Err(Invalid::new(
                "previousPaymentID",
                "is needed when the merchant begins the payment",
            ));
        }
        if self.token.has("schemeReturnUrl") && !self.token.has("appBundleID") {
            return Err(Invalid::new("appBundleID", "is needed with schemeReturnUrl"));
        }
        if self.token.has("fxRateId") != self.token.has("originalAmount") {
            return Err(Invalid::new("fxRateId", "goes with originalAmount"));
        }
        Ok(())
    }

    /// Writes the members of a token request.
    pub(super) fn write_token(&self, out: &mut Object, currency: Currency) -> Result<(), Invalid> {
        self.check()?;
        self.token.write(out, currency)?;
        if !self.ui.is_empty() {
            let mut ui = Object::new();
            self.ui.write(&mut ui, currency)?;
            out.raw("uiParams", &ui.finish());
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.token.has(name)
    }

    /// May money move by the token request itself?
    pub(super) fn pays_immediately(&self) -> bool {
        self.token.is_flag("immediatePayment", true)
    }
}
