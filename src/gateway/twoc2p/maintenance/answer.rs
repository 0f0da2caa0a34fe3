//! What 2C2P reports about a payment through the maintenance API, verified and decrypted.

use super::xml::Element;
use crate::gateway::twoc2p::amount;
use crate::gateway::twoc2p::codes::{Api, Class, class};
use crate::gateway::twoc2p::json::quote;
use crate::gateway::twoc2p::result::explain;
use crate::money::{Currency, Money};
use crate::outcome::Evidence;
use crate::transport::scrub;
use std::fmt;

/// The state of a payment, and of its refunds where they were asked for, as 2C2P reported it (`PaymentProcessResponse`,
/// pages `payment-maintenance-inquiry-guide` and `payment-maintenance-refund-status-guide`).
///
/// Two codes say two things: [`code`](Self::code) whether the *request* worked, [`status`](Self::status) how the
/// *payment* stands. No answer names a currency. Texts are kept as they came; an empty element is `None`.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentStatus {
    /// `respCode`, two digits: `00` and not `0000`.
    pub code: Option<String>,
    /// `respDesc`, scrubbed.
    pub description: Option<String>,
    /// `merchantID`; no printed sample has one.
    pub merchant_id: Option<String>,
    /// `processType`: `I`, `V`, `S`, `R` or `RS`.
    pub process_type: Option<String>,
    /// `invoiceNo`.
    pub invoice_no: Option<String>,
    /// `amount` as it came, in major units of a currency that is not named.
    pub amount_text: Option<String>,
    /// `status` of the payment, such as `A` (approved) or `S` (settled); page
    /// `response-code-payment-maintenance-status-code`.
    pub status: Option<String>,
    /// `approvalCode`.
    pub approval_code: Option<String>,
    /// `referenceNo` of the payment.
    pub reference_no: Option<String>,
    /// `refundReferenceNo`: 2C2P's id of the refund, in the answer to it.
    pub refund_reference_no: Option<String>,
    /// `transactionDateTime`, in a zone that is not named.
    pub transaction_time_text: Option<String>,
    /// `paidAgent`.
    pub paid_agent: Option<String>,
    /// `paidChannel`.
    pub paid_channel: Option<String>,
    /// `maskedPan`, scrubbed in case it is not masked.
    pub masked_pan: Option<String>,
    /// `eci`.
    pub eci: Option<String>,
    /// `paymentScheme`.
    pub payment_scheme: Option<String>,
    /// `processBy`.
    pub process_by: Option<String>,
    /// `refundList`: every refund of the payment that 2C2P knows of.
    pub refunds: Vec<RefundRow>,
    /// `userDefined1` to `userDefined5`.
    pub user_defined: [Option<String>; 5],
    /// `idempotencyID` of the request, where it is echoed.
    pub idempotency_id: Option<String>,
}

/// One refund of a payment.
#[derive(Clone)]
#[non_exhaustive]
pub struct RefundRow {
    /// `amount` as it came, in major units.
    pub amount_text: Option<String>,
    /// `status`, such as `RF` (refunded) or `RP` (pending).
    pub status: Option<String>,
    /// `referenceNo`: 2C2P's id of the refund.
    pub reference_no: Option<String>,
    /// `dateTime`, in a zone that is not named.
    pub time_text: Option<String>,
    /// `userDefined1` to `userDefined5`, where 2C2P lists them; no page shows how.
    pub user_defined: [Option<String>; 5],
    /// `idempotencyID`, where 2C2P lists it.
    pub idempotency_id: Option<String>,
}

impl PaymentStatus {
    /// `None` when the document is another one.
    pub(super) fn read(root: &Element) -> Option<Self> {
        if root.name() != "PaymentProcessResponse" {
            return None;
        }
        let text = |name: &str| root.text_of(name);
        let rows = root.child("refundList").into_iter();
        Some(Self {
            code: text("respCode"),
            description: text("respDesc").map(|text| scrub(&text)),
            merchant_id: text("merchantID"),
            process_type: text("processType"),
            invoice_no: text("invoiceNo"),
            amount_text: text("amount"),
            status: text("status"),
            approval_code: text("approvalCode"),
            reference_no: text("referenceNo"),
            refund_reference_no: text("refundReferenceNo"),
            transaction_time_text: text("transactionDateTime"),
            paid_agent: text("paidAgent"),
            paid_channel: text("paidChannel"),
            masked_pan: text("maskedPan").map(|text| scrub(&text)),
            eci: text("eci"),
            payment_scheme: text("paymentScheme"),
            process_by: text("processBy"),
            refunds: rows
                .flat_map(|list| list.children("refund"))
                .map(RefundRow::read)
                .collect(),
            user_defined: [1, 2, 3, 4, 5].map(|n| text(&format!("userDefined{n}"))),
            idempotency_id: text("idempotencyID"),
        })
    }

    /// What [`code`](Self::code) says; [`Class::Unknown`] without one.
    #[must_use]
    pub fn class(&self) -> Class {
        let code = self.code.as_deref();
        code.map_or(Class::Unknown, |code| class(Api::Maintenance, code))
    }

    /// The amount, in the currency of the payment; `None` when it is absent or cannot be read exactly.
    #[must_use]
    pub fn amount(&self, currency: Currency) -> Option<Money> {
        money(self.amount_text.as_deref(), currency)
    }

    /// Code and status with their meanings in our words, for a person.
    pub(super) fn explain(&self) -> String {
        let code = explain(Api::Maintenance, self.code.as_deref());
        match self.status.as_deref() {
            Some(status) => format!("{code}, status {}", explain(Api::MaintenanceStatus, Some(status))),
            None => code,
        }
    }

    pub(super) fn evidence(&self) -> Evidence {
        let mut evidence = Evidence {
            http_status: Some(200),
            code: self.code.as_deref().map(scrub),
            message: self.description.clone(),
            ..Evidence::default()
        };
        for (name, text) in [
            ("approvalCode", &self.approval_code),
            ("eci", &self.eci),
            ("paidAgent", &self.paid_agent),
            ("paidChannel", &self.paid_channel),
            ("paymentScheme", &self.payment_scheme),
            ("processType", &self.process_type),
            ("referenceNo", &self.reference_no),
            ("status", &self.status),
            ("transactionDateTime", &self.transaction_time_text),
        ] {
            if let Some(text) = text {
                evidence.details.insert(name, scrub(text));
            }
        }
        evidence
    }
}

impl RefundRow {
    fn read(row: &Element) -> Self {
        // Attributes in the sample; what else 2C2P lists for a row, no page shows.
        let text = |name: &str| {
            let attribute = row.attribute(name).map(str::trim).filter(|text| !text.is_empty());
            attribute.map(str::to_owned).or_else(|| row.text_of(name))
        };
        Self {
            amount_text: text("amount"),
            status: text("status"),
            reference_no: text("referenceNo"),
            time_text: text("dateTime"),
            user_defined: [1, 2, 3, 4, 5].map(|n| text(&format!("userDefined{n}"))),
            idempotency_id: text("idempotencyID"),
        }
    }

    /// The amount, in the currency of the payment; `None` when it is absent or cannot be read exactly.
    #[must_use]
    pub fn amount(&self, currency: Currency) -> Option<Money> {
        money(self.amount_text.as_deref(), currency)
    }

    /// The key that the refund was sent with, or whatever another system wrote in its place.
    pub(super) fn mark(&self) -> Option<&str> {
        self.idempotency_id.as_deref().or(self.user_defined[0].as_deref())
    }
}

fn money(text: Option<&str>, currency: Currency) -> Option<Money> {
    amount::from_wire(&quote(text?), currency)
}

/// Only what a log may hold.
impl fmt::Debug for PaymentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentStatus")
            .field("code", &self.code.as_deref().map(scrub))
            .field("process_type", &self.process_type.as_deref().map(scrub))
            .field("status", &self.status.as_deref().map(scrub))
            .field("refunds", &self.refunds)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RefundRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefundRow")
            .field("status", &self.status.as_deref().map(scrub))
            .field("reference_no", &self.reference_no.as_deref().map(scrub))
            .finish_non_exhaustive()
    }
}
