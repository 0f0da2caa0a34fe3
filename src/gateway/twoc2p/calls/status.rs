//! The state of a payment for the payer's screen.

use super::super::TwoC2p;
use super::super::codes::{Api, Class, class};
use super::super::date::LocalTime;
use super::super::json::Members;
use super::super::result::money;
use super::channels::MerchantDetails;
use super::nested::{count, flag, object};
use super::token::{PaymentToken, Viewer};
use super::{Answer, prints_only};
use crate::failure::Failure;
use crate::money::Money;
use crate::transport::scrub;

/// Code 2000: the payer's part is over.
const OVER: &str = "2000";

impl TwoC2p {
    /// Asks how far the payer has come (page `api-transaction-status-inquiry`), to move a waiting screen on.
    ///
    /// **The answer is not proof of payment.** Neither question nor answer is signed, 2C2P's page forbids to take it
    /// for an acknowledgement, and code 2000 comes after failed payments as well. When
    /// [`flow_is_over`](TransactionStatus::flow_is_over), ask by [`payment_inquiry`](Self::payment_inquiry) or
    /// `Payments::resolve`; deliver nothing before.
    ///
    /// Poll gently: 2C2P publishes no limit.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none that has a code. Every code is an answer, errors too. Nothing was changed.
    pub async fn transaction_status(
        &self,
        token: &PaymentToken,
        viewer: &Viewer,
    ) -> Result<TransactionStatus, Failure> {
        let body = viewer.body(token).raw("additionalInfo", "true").finish();
        Ok(TransactionStatus::read(&self.ask("transactionStatus", body).await?))
    }
}

/// How far a payer has come, for the payer's own screen (page `api-transaction-status-inquiry-response-parameter`).
///
/// **Not signed, and not proof of payment.** Anybody between 2C2P and you can write it, "Transaction is successful"
/// included. It may decide what a screen shows and when to ask again, and nothing else.
#[derive(Clone)]
#[non_exhaustive]
pub struct TransactionStatus {
    /// `respCode`, a flow code as a rule: 2000 over (well or badly), 2001 under way, 2002 not found, 2003 not known.
    /// Refused questions have the codes of the payment API.
    pub code: String,
    /// What the code says in the table of the flow; never [`Class::Success`].
    pub class: Class,
    /// `respDesc`, scrubbed.
    pub description: Option<String>,
    /// `invoiceNo`.
    pub invoice_no: Option<String>,
    /// `channelCode`: how the payer chose to pay.
    pub channel_code: Option<String>,
    /// `locale`: the language of the texts.
    pub locale: Option<String>,
    /// `merchantDetails`.
    pub merchant: Option<MerchantDetails>,
    /// `transactionDetails`.
    pub transaction: Option<StatusTransaction>,
    /// `paymentResultDetails`: what 2C2P's own page would show.
    pub result: Option<StatusResult>,
}

/// The payment as 2C2P's page would show it.
#[derive(Clone)]
#[non_exhaustive]
pub struct StatusTransaction {
    /// `dateTime`, where it is fourteen digits that are a date; no zone is named.
    pub time: Option<LocalTime>,
    /// `dateTime` as it came.
    pub time_text: Option<String>,
    /// `agentCode`: the bank or agent.
    pub agent_code: Option<String>,
    /// `channelCode`.
    pub channel_code: Option<String>,
    /// `data`: the masked account, scrubbed in case it is not.
    pub account_no: Option<String>,
    /// `amount` in `currencyCode`. `None` for an amount with group separators, which 2C2P writes here.
    pub amount: Option<Money>,
    /// `amount` as it came, made for the eye: `122,657.00`.
    pub amount_text: Option<String>,
    /// `currencyCode`.
    pub currency_code: Option<String>,
    /// `invoiceNo`.
    pub invoice_no: Option<String>,
    /// `description`: what is bought.
    pub description: Option<String>,
    /// `installmentPeriod`, months.
    pub installment_period: Option<u32>,
    /// `payLaterPeriod`, months.
    pub pay_later_period: Option<u32>,
    /// `interestType`.
    pub interest_type: Option<String>,
    /// `interestRate`, per cent.
    pub interest_rate: Option<String>,
    /// `monthlyPayment`, as it came.
    pub monthly_payment: Option<String>,
}

/// What 2C2P's page would tell the payer.
#[derive(Clone)]
#[non_exhaustive]
pub struct StatusResult {
    /// `code`: `00` or `01`. A claim like everything here: `00` is **not** proof of payment.
    pub code: Option<String>,
    /// `description`, for the payer.
    pub description: Option<String>,
    /// `autoRedirect`: whether the page leads back by itself.
    pub auto_redirect: Option<bool>,
    /// `redirectImmediately`.
    pub redirect_immediately: Option<bool>,
    /// `autoRedirectionTimer` (`autoRedirectTimer` in 2C2P's sample), milliseconds.
    pub auto_redirect_millis: Option<u32>,
    /// `frontendReturnUrl`: where the browser would go.
    pub frontend_return_url: Option<String>,
    /// `frontendReturnData`: what it would post there, base64; see
    /// [`read_browser_return`](crate::gateway::twoc2p::read_browser_return).
    pub frontend_return_data: Option<String>,
}

impl TransactionStatus {
    /// Whether the payer's part is over (2000), **well or badly**: time for an inquiry. Further polling would bring
    /// nothing new.
    #[must_use]
    pub fn flow_is_over(&self) -> bool {
        self.code == OVER
    }

    fn read(answer: &Answer) -> Self {
        let members = &answer.members;
        let more = object(members, "additionalInfo");
        let part = |name| object(more.as_ref()?, name);
        Self {
            code: answer.code.clone(),
            class: class(Api::PaymentFlow, &answer.code),
            description: members.text("respDesc").map(|text| scrub(&text)),
            invoice_no: members.text("invoiceNo"),
            channel_code: members.text("channelCode"),
            locale: members.text("locale"),
            merchant: part("merchantDetails").as_ref().map(MerchantDetails::read),
            transaction: part("transactionDetails").as_ref().map(StatusTransaction::read),
            result: part("paymentResultDetails").as_ref().map(StatusResult::read),
        }
    }
}

impl StatusTransaction {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let time_text = text("dateTime");
        let currency_code = text("currencyCode");
        Self {
            time: time_text.as_deref().and_then(LocalTime::parse),
            time_text,
            agent_code: text("agentCode"),
            channel_code: text("channelCode"),
            account_no: text("data").map(|text| scrub(&text)),
            amount: money(members.raw("amount"), currency_code.as_deref()),
            amount_text: text("amount"),
            currency_code,
            invoice_no: text("invoiceNo"),
            description: text("description"),
            installment_period: count(members, "installmentPeriod"),
            pay_later_period: count(members, "payLaterPeriod"),
            interest_type: text("interestType"),
            interest_rate: text("interestRate"),
            monthly_payment: text("monthlyPayment"),
        }
    }
}

impl StatusResult {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        Self {
            code: text("code"),
            description: text("description"),
            auto_redirect: flag(members, "autoRedirect"),
            redirect_immediately: flag(members, "redirectImmediately"),
            auto_redirect_millis: count(members, "autoRedirectionTimer").or(count(members, "autoRedirectTimer")),
            frontend_return_url: text("frontendReturnUrl"),
            frontend_return_data: text("frontendReturnData"),
        }
    }
}

prints_only!(TransactionStatus: class, description, transaction);
prints_only!(StatusTransaction: amount, time);
prints_only!(StatusResult: auto_redirect, redirect_immediately);
