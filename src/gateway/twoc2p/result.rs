//! What an inquiry or a backend callback reports about a payment, and what follows from it for the operation.

use super::amount;
use super::codes::{Api, Class, class, meaning};
use super::date::LocalTime;
use super::json::Members;
use crate::failure::FailureKind;
use crate::money::{Currency, Money};
use crate::operation::GatewayRef;
use crate::outcome::{
    Conflict, ConflictKind, Evidence, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded,
};
use crate::secret::Secret;
use crate::transport::scrub;
use std::fmt;

/// The state of a payment as 2C2P reported it, signed (pages `api-payment-inquiry-response-parameter` and
/// `api-payment-response-backend`).
///
/// 2C2P sends numbers as strings and strings as numbers; texts are kept as they were written, leading zeros included.
/// Null, the empty string and an absent member are all `None`.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentResult {
    /// `respCode`, four digits. A JSON number is filled up with zeros in front (0 becomes `0000`), since the copies of
    /// 2C2P's tables that lose the zeros are where such numbers come from. `None` when there is no usable code.
    pub code: Option<String>,
    /// What the code says; [`Class::Unknown`] without one.
    pub class: Class,
    /// `respDesc`, scrubbed.
    pub description: Option<String>,
    /// `merchantID`.
    pub merchant_id: Option<String>,
    /// `childMerchantID`.
    pub child_merchant_id: Option<String>,
    /// `invoiceNo`.
    pub invoice_no: Option<String>,
    /// `amount` in `currencyCode`; `None` when either cannot be read exactly.
    pub amount: Option<Money>,
    /// `amount` as the JSON text that came.
    pub amount_text: Option<String>,
    /// `currencyCode`.
    pub currency_code: Option<String>,
    /// `transactionDateTime`, where it is fourteen digits that are a date.
    pub transaction_time: Option<LocalTime>,
    /// `transactionDateTime` as it came.
    pub transaction_time_text: Option<String>,
    /// `agentCode`: the bank or agent.
    pub agent_code: Option<String>,
    /// `channelCode`.
    pub channel_code: Option<String>,
    /// `approvalCode`.
    pub approval_code: Option<String>,
    /// `referenceNo`.
    pub reference_no: Option<String>,
    /// `tranRef`: 2C2P's id of the payment.
    pub tran_ref: Option<String>,
    /// `accountNo` (older `cardNo`, `pan`): the masked number, scrubbed in case it is not.
    pub account_no: Option<String>,
    /// `customerToken` (older `cardToken`): pays again without the card.
    pub customer_token: Option<Secret>,
    /// `customerTokenExpiry`, `yyyyMMdd`.
    pub customer_token_expiry: Option<String>,
    /// `cardType`.
    pub card_type: Option<String>,
    /// `issuerCountry`, ISO 3166.
    pub issuer_country: Option<String>,
    /// `issuerBank`.
    pub issuer_bank: Option<String>,
    /// `eci`.
    pub eci: Option<String>,
    /// `installmentPeriod`, months.
    pub installment_period: Option<String>,
    /// `interestType`.
    pub interest_type: Option<String>,
    /// `interestRate`, per cent.
    pub interest_rate: Option<String>,
    /// `installmentMerchantAbsorbRate`, per cent.
    pub installment_merchant_absorb_rate: Option<String>,
    /// `monthlyPayment`, as it came.
    pub monthly_payment: Option<String>,
    /// `recurringUniqueID`.
    pub recurring_unique_id: Option<String>,
    /// `recurringSequenceNo`.
    pub recurring_sequence_no: Option<String>,
    /// `fxAmount` in `fxCurrencyCode`.
    pub fx_amount: Option<Money>,
    /// `fxRate`, as it came.
    pub fx_rate: Option<String>,
    /// `fxCurrencyCode`.
    pub fx_currency_code: Option<String>,
    /// `userDefined1` to `userDefined5`. The first is the operation's key, the others its metadata as `name=value`.
    pub user_defined: [Option<String>; 5],
    /// `acquirerReferenceNo`.
    pub acquirer_reference_no: Option<String>,
    /// `acquirerMerchantId`.
    pub acquirer_merchant_id: Option<String>,
    /// `acquirerResponseCode`: the issuer's own code.
    pub acquirer_response_code: Option<String>,
    /// `idempotencyID`: the operation's key.
    pub idempotency_id: Option<String>,
    /// `paymentScheme`.
    pub payment_scheme: Option<String>,
    /// `processBy`.
    pub process_by: Option<String>,
    /// `paymentID` (`ccpp_...`).
    pub payment_id: Option<String>,
    /// `schemePaymentID`.
    pub scheme_payment_id: Option<String>,
    /// `uniqueAccountReference`.
    pub unique_account_reference: Option<String>,
    /// `loyaltyPoints`, as the JSON text that came.
    pub loyalty_points: Option<String>,
}

/// What a result says about the operation.
#[allow(clippy::large_enum_variant, reason = "returned once and taken apart at once")]
pub(super) enum Conclusion {
    /// This.
    Says(Outcome),
    /// 2C2P does not know the payment.
    Absent,
    /// Nothing.
    Nothing(FailureKind),
}

/// What a code means in an authentic answer about one payment: what follows from its class, and the exceptions that the
/// class cannot tell (page `response-code-payment`).
enum Meaning {
    Paid,
    Irregular,
    Waiting,
    Refused(FailureCategory),
    Absent,
    Nothing(FailureKind),
}

impl PaymentResult {
    pub(super) fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let first = |names: &[&str]| names.iter().find_map(|name| members.text(name));
        let code = code(members);
        let currency_code = text("currencyCode");
        let fx_currency_code = text("fxCurrencyCode");
        let transaction_time_text = text("transactionDateTime");
        Self {
            class: code.as_deref().map_or(Class::Unknown, |code| class(Api::Payment, code)),
            code,
            description: text("respDesc").map(|text| scrub(&text)),
            merchant_id: text("merchantID"),
            child_merchant_id: text("childMerchantID"),
            invoice_no: text("invoiceNo"),
            amount: money(members.raw("amount"), currency_code.as_deref()),
            amount_text: members.raw("amount").map(str::to_owned),
            currency_code,
            transaction_time: transaction_time_text.as_deref().and_then(LocalTime::parse),
            transaction_time_text,
            agent_code: text("agentCode"),
            channel_code: text("channelCode"),
            approval_code: text("approvalCode"),
            reference_no: text("referenceNo"),
            tran_ref: text("tranRef"),
            account_no: first(&["accountNo", "cardNo", "pan"]).map(|text| scrub(&text)),
            customer_token: first(&["customerToken", "cardToken"]).map(Secret::from),
            customer_token_expiry: text("customerTokenExpiry"),
            card_type: text("cardType"),
            issuer_country: text("issuerCountry"),
            issuer_bank: text("issuerBank"),
            eci: text("eci"),
            installment_period: text("installmentPeriod"),
            interest_type: text("interestType"),
            interest_rate: text("interestRate"),
            installment_merchant_absorb_rate: text("installmentMerchantAbsorbRate"),
            monthly_payment: text("monthlyPayment"),
            recurring_unique_id: text("recurringUniqueID"),
            recurring_sequence_no: text("recurringSequenceNo"),
            fx_amount: money(members.raw("fxAmount"), fx_currency_code.as_deref()),
            fx_rate: text("fxRate"),
            fx_currency_code,
            user_defined: [1, 2, 3, 4, 5].map(|n| members.text(&format!("userDefined{n}"))),
            acquirer_reference_no: text("acquirerReferenceNo"),
            acquirer_merchant_id: text("acquirerMerchantId"),
            acquirer_response_code: text("acquirerResponseCode"),
            idempotency_id: text("idempotencyID"),
            payment_scheme: text("paymentScheme"),
            process_by: text("processBy"),
            payment_id: text("paymentID"),
            scheme_payment_id: text("schemePaymentID"),
            unique_account_reference: text("uniqueAccountReference"),
            loyalty_points: members
                .raw("loyaltyPoints")
                .filter(|json| *json != "null")
                .map(str::to_owned),
        }
    }

    /// What follows for the operation. `payer_may_retry` when the payer may hold a page on which another try can
    /// still succeed.
    ///
    /// Only a result that names its invoice can end an operation, and only one that names the merchant too can end it
    /// well: other signed messages (an issued token) carry the same codes and neither of the two.
    pub(super) fn conclude(&self, payer_may_retry: bool, http_status: Option<u16>) -> Conclusion {
        let named = self.invoice_no.is_some();
        match self.meaning() {
            // What expired unpaid has no payment that an answer could name. So it is "not found" said in other words,
            // and is believed as that is: late, and twice.
            Meaning::Refused(FailureCategory::Expired) if !named => Conclusion::Absent,
            Meaning::Paid | Meaning::Irregular | Meaning::Refused(_) if !named => {
                Conclusion::Nothing(FailureKind::Unreadable)
            }
            Meaning::Paid | Meaning::Irregular if self.merchant_id.is_none() => {
                Conclusion::Nothing(FailureKind::Unreadable)
            }
            Meaning::Paid => Conclusion::Says(self.paid(http_status)),
            Meaning::Irregular => {
                let detail = format!("money arrived, and 2C2P marks it as irregular: {}", self.explain());
                Conclusion::Says(self.conflict(ConflictKind::Irregular, detail, http_status))
            }
            Meaning::Waiting => {
                let mut pending = Pending::new(NextStep::Wait);
                pending.gateway_ref = self.gateway_ref();
                pending.evidence = self.evidence(http_status);
                Conclusion::Says(Outcome::Pending(pending))
            }
            Meaning::Refused(category) => {
                let mut failed = Failed::new(category);
                failed.decline_code = self.acquirer_response_code.as_deref().map(scrub);
                failed.gateway_ref = self.gateway_ref();
                failed.payer_may_retry = payer_may_retry && category != FailureCategory::Expired;
                failed.evidence = self.evidence(http_status);
                Conclusion::Says(Outcome::Failed(failed))
            }
            Meaning::Absent => Conclusion::Absent,
            Meaning::Nothing(kind) => Conclusion::Nothing(kind),
        }
    }

    /// Can it be otherwise, although it says something? "In progress" is said of unpaid pages as well, and what has
    /// expired can still be paid through a counter.
    pub(super) fn is_vague(&self) -> bool {
        matches!(self.class, Class::InProgress | Class::Expired)
    }

    /// The code and its meaning in our words, for a person.
    pub(super) fn explain(&self) -> String {
        explain(Api::Payment, self.code.as_deref())
    }

    fn meaning(&self) -> Meaning {
        let Some(code) = self.code.as_deref() else {
            return Meaning::Nothing(FailureKind::Unreadable);
        };
        match code {
            "0000" | "4110" | "4120" => return Meaning::Paid,
            "5015" | "5016" | "5017" => return Meaning::Irregular,
            // No money yet, and none without the payer's authentication.
            "0004" => return Meaning::Refused(FailureCategory::AuthenticationRequired),
            // About the settlement or the search of a payment that may well have been executed.
            "4049" | "4070" => return Meaning::Nothing(FailureKind::ServerFault),
            _ => {}
        }
        // Codes of the hosts (4xxx, 5xxx) are about the payment, the others about our request.
        let by_host = code.starts_with(['4', '5']);
        match self.class {
            Class::Pending | Class::InProgress => Meaning::Waiting,
            Class::Declined => Meaning::Refused(FailureCategory::Declined),
            Class::Cancelled => Meaning::Refused(FailureCategory::Cancelled),
            Class::Expired => Meaning::Refused(FailureCategory::Expired),
            Class::NotFound => Meaning::Absent,
            Class::InvalidRequest if by_host => Meaning::Refused(FailureCategory::Invalid),
            Class::Auth if by_host => Meaning::Refused(FailureCategory::Refused),
            Class::Auth => Meaning::Nothing(FailureKind::Credentials),
            // Further successes are of cards checked or stored, or of settlements: "paid" is 0000 and what follows it.
            Class::Success | Class::Duplicate | Class::InvalidRequest | Class::GatewayError | Class::Unknown => {
                Meaning::Nothing(FailureKind::ServerFault)
            }
        }
    }

    fn paid(&self, http_status: Option<u16>) -> Outcome {
        let Some(amount) = self.amount else {
            let raw = self.amount_text.as_deref().unwrap_or("none");
            let currency = self.currency_code.as_deref().unwrap_or("without a currency");
            let detail = format!("2C2P reports success over an amount that cannot be read: {raw} {currency}");
            return self.conflict(ConflictKind::Amount, scrub(&detail), http_status);
        };
        let mut succeeded = Succeeded::new(Some(amount));
        succeeded.gateway_ref = self.gateway_ref();
        succeeded.evidence = self.evidence(http_status);
        match self.code.as_deref() {
            Some("4110") => succeeded.notes.push("settled since".to_owned()),
            Some("4120") => succeeded
                .notes
                .push("given back since: do not deliver, do not charge again".to_owned()),
            _ => {}
        }
        Outcome::Succeeded(succeeded)
    }

    fn conflict(&self, kind: ConflictKind, detail: String, http_status: Option<u16>) -> Outcome {
        let mut conflict = Conflict::new(kind, detail);
        conflict.reported = self.amount;
        conflict.gateway_ref = self.gateway_ref();
        conflict.evidence = self.evidence(http_status);
        Outcome::Conflict(conflict)
    }

    fn gateway_ref(&self) -> Option<GatewayRef> {
        self.tran_ref.as_deref().map(GatewayRef::new)
    }

    fn evidence(&self, http_status: Option<u16>) -> Evidence {
        let mut evidence = Evidence {
            http_status,
            code: self.code.as_deref().map(scrub),
            message: self.description.clone(),
            ..Evidence::default()
        };
        let mut detail = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                evidence.details.insert(name, text);
            }
        };
        detail(
            "transactionDateTime",
            self.transaction_time.map(|time| time.to_string()),
        );
        for (name, text) in [
            ("acquirerResponseCode", &self.acquirer_response_code),
            ("agentCode", &self.agent_code),
            ("approvalCode", &self.approval_code),
            ("channelCode", &self.channel_code),
            ("eci", &self.eci),
            ("paymentScheme", &self.payment_scheme),
            ("referenceNo", &self.reference_no),
        ] {
            detail(name, text.as_deref().map(scrub));
        }
        evidence
    }
}

/// Only what a log may hold: the rest is the payer's, or pays.
impl fmt::Debug for PaymentResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentResult")
            .field("code", &self.code.as_deref().map(scrub))
            .field("class", &self.class)
            .field("description", &self.description)
            .field("amount", &self.amount)
            .field("customer_token", &self.customer_token)
            .finish_non_exhaustive()
    }
}

/// `respCode`: a string as it is, a number of up to four digits with the zeros it has lost.
pub(super) fn code(members: &Members) -> Option<String> {
    if let Some(text) = members.string("respCode") {
        return (!text.is_empty()).then_some(text);
    }
    let number = members.raw("respCode")?;
    let digits = number.len() <= 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{number:0>4}"))
}

/// A code and its meaning in our words.
pub(super) fn explain(api: Api, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{} ({})", scrub(code), meaning(api, code).unwrap_or("not listed")),
        None => "no code".to_owned(),
    }
}

/// An amount and its currency, where both can be read exactly.
pub(super) fn money(json: Option<&str>, currency: Option<&str>) -> Option<Money> {
    amount::from_wire(json?, Currency::parse(currency?).ok()?)
}
