//! What is sent: the business fields of a request, a pure function of set-up and instruction. A resend differs from the
//! first send in nothing but the randomness of its envelope.

use super::decision::process_type;
use super::options::ActionOptions;
use super::xml::{XmlError, XmlWriter};
use crate::gateway::twoc2p::request::user_defined;
use crate::gateway::twoc2p::{TwoC2p, TwoC2pOptions};
use crate::money::Money;
use crate::operation::{Invalid, Operation, OperationKey, OperationKind, Target};
use crate::record::{Instruction, PaymentTarget, Record};

/// The version that the guides print.
const VERSION: &str = "4.3";

/// The most digits before the point (type D 10,2 of the refund request's parameters).
const INTEGER_DIGITS: usize = 8;

/// The longest `notes`.
const NOTES: usize = 150;

/// One `PaymentProcessRequest`.
#[derive(Debug)]
pub(super) struct ProcessRequest {
    pub(super) process_type: &'static str,
    pub(super) invoice_no: String,
    /// `actionAmount`.
    pub(super) amount: Option<Money>,
    /// The amount of the payment, where it is known.
    payment_amount: Option<Money>,
    /// What goes with a request that acts, and not with one that asks.
    pub(super) action: Option<Action>,
}

/// The part of a request that acts on a payment.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) key: OperationKey,
    options: ActionOptions,
    pairs: Vec<(&'static str, String)>,
    notes: Option<String>,
    refund: bool,
}

impl ProcessRequest {
    /// A question: processType `I` about a payment, `RS` about its refunds.
    pub(super) fn question(
        process_type: &'static str,
        invoice_no: &str,
        amount: Option<Money>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            process_type,
            invoice_no: invoice_no.to_owned(),
            amount: checked(amount)?,
            payment_amount: amount,
            action: None,
        })
    }

    /// The question about the payment that this request acts on.
    pub(super) fn about(&self, process_type: &'static str) -> Self {
        Self {
            process_type,
            invoice_no: self.invoice_no.clone(),
            amount: self.payment_amount.or(self.amount),
            payment_amount: self.payment_amount,
            action: None,
        }
    }

    /// The request for an instruction.
    pub(super) fn action(instruction: &Instruction) -> Result<Self, Invalid> {
        let operation = instruction.operation();
        let options = options(operation);
        let payment = payment(instruction.target(), operation, &options)?;
        Ok(Self {
            process_type: process_type(operation.kind())
                .ok_or_else(|| Invalid::new("operation", "does not act on a payment"))?,
            amount: checked(operation.amount().or(payment.amount))?,
            payment_amount: payment.amount,
            action: Some(Action {
                key: instruction.key(),
                pairs: user_defined(operation)?,
                notes: operation.description_text().map(str::to_owned),
                refund: operation.kind() == OperationKind::Refund,
                options,
            }),
            invoice_no: payment.invoice_no,
        })
    }

    /// The document, its elements in the order of the documented template.
    pub(super) fn xml(&self, account: &TwoC2p, refund_notify_url: Option<&str>) -> Result<String, XmlError> {
        let amount = self.amount.and_then(|amount| action_amount(amount).ok());
        let xml = XmlWriter::new("PaymentProcessRequest")
            .element("version", VERSION)
            .element("merchantID", &account.merchant_id)
            .optional("childMerchantID", account.child_merchant_id.as_deref())
            .element("processType", self.process_type)
            .element("invoiceNo", &self.invoice_no)
            .optional("actionAmount", amount.as_deref());
        match &self.action {
            None => xml.finish(),
            Some(action) => action.write(xml, refund_notify_url).finish(),
        }
    }
}

impl Action {
    fn write(&self, mut xml: XmlWriter, refund_notify_url: Option<&str>) -> XmlWriter {
        if let Some(bank) = &self.options.bank_account {
            xml = xml
                .element("bankCode", &bank.bank_code)
                .element("accountName", bank.name.expose())
                .element("accountNumber", bank.number.expose());
        }
        if !self.options.sub_merchants.is_empty() {
            xml = xml.group("subMerchantList", |mut xml| {
                for (merchant_id, share) in &self.options.sub_merchants {
                    let amount = share.to_decimal();
                    xml = xml.empty("subMerchant", &[("subMID", merchant_id), ("subAmount", &amount)]);
                }
                xml
            });
        }
        if self.refund {
            xml = xml.optional("notifyURL", self.options.notify_url.as_deref().or(refund_notify_url));
        }
        let key = self.key.to_string();
        xml = xml.element("userDefined1", &key);
        for (name, text) in &self.pairs {
            xml = xml.element(name, text);
        }
        xml.element("idempotencyID", &key)
            .optional("notes", self.notes.as_deref())
    }
}

/// The payment that an operation acts on, as the maintenance API knows it.
pub(super) struct Payment {
    pub(super) invoice_no: String,
    pub(super) amount: Option<Money>,
}

impl Payment {
    pub(super) fn of(record: &Record) -> Option<Self> {
        named(record.target()?).map(|invoice_no| Self {
            invoice_no,
            amount: record.target().and_then(|target| target.amount),
        })
    }
}

/// Checks all of an operation that needs no payment, before anything is written or sent. Returns what its options say
/// of the payment's amount.
pub(super) fn check(operation: &Operation) -> Result<Option<Money>, Invalid> {
    if operation.options::<TwoC2pOptions>().is_some() {
        return Err(Invalid::new("options", "are those of a payment"));
    }
    let options = options(operation);
    options.check(operation.amount())?;
    user_defined(operation)?;
    if let Some(amount) = operation.amount().or(options.payment_amount) {
        action_amount(amount)?;
    }
    if operation
        .description_text()
        .is_some_and(|text| !(1..=NOTES).contains(&text.chars().count()))
    {
        return Err(Invalid::new(
            "description",
            "must have 1 to 150 characters at 2C2P's maintenance API",
        ));
    }
    if operation.expiry().is_some() {
        return Err(Invalid::new("expires_at", "has no meaning for what acts on a payment"));
    }
    let Some(Target::Gateway(id)) = operation.target() else {
        return Ok(options.payment_amount);
    };
    if !is_invoice_no(id.as_str()) {
        return Err(Invalid::new(
            "target",
            "at 2C2P is the payment's invoice number: 1 to 50 printable characters",
        ));
    }
    if operation.kind() == OperationKind::Void && options.payment_amount.is_none() {
        let reason = "is needed to void a payment that was not made through this journal";
        return Err(Invalid::new("payment_amount", reason));
    }
    Ok(options.payment_amount)
}

/// Two decimals whatever the currency (type D 10,2); digits and one point only.
pub(super) fn action_amount(amount: Money) -> Result<String, Invalid> {
    let refuse = |reason: &str| Err(Invalid::new("amount", reason));
    if amount.minor() <= 0 {
        return refuse("must be greater than zero");
    }
    let Ok(hundredths) = amount.to_scale(2) else {
        return refuse("has more decimals than the two of 2C2P's maintenance API");
    };
    let whole = (hundredths / 100).to_string();
    if whole.len() > INTEGER_DIGITS {
        return refuse("has more than 8 digits before the point");
    }
    Ok(format!("{whole}.{:02}", hundredths % 100))
}

/// The amount, if it can be written.
fn checked(amount: Option<Money>) -> Result<Option<Money>, Invalid> {
    amount.map(action_amount).transpose()?;
    Ok(amount)
}

fn payment(target: Option<&PaymentTarget>, operation: &Operation, options: &ActionOptions) -> Result<Payment, Invalid> {
    let target = target.ok_or_else(|| Invalid::new("target", "is needed"))?;
    let invoice_no = named(target).ok_or_else(|| Invalid::new("target", "has no invoice number at 2C2P"))?;
    let amount = target.amount.or(options.payment_amount);
    if operation.kind() == OperationKind::Void && amount.is_none() {
        return Err(Invalid::new("payment_amount", "is not known"));
    }
    Ok(Payment { invoice_no, amount })
}

fn options(operation: &Operation) -> ActionOptions {
    operation.options::<ActionOptions>().cloned().unwrap_or_default()
}

/// A payment of this journal has its invoice number as its identity; of another one the caller says it.
fn named(target: &PaymentTarget) -> Option<String> {
    let told = || target.gateway_ref.as_ref().map(|id| id.as_str().to_owned());
    target.wire_identity.as_deref().map(str::to_owned).or_else(told)
}

fn is_invoice_no(text: &str) -> bool {
    (1..=50).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    #[test]
    fn c49_amounts_have_two_decimals_and_nothing_else() {
        let dinar = Currency::parse("KWD").unwrap();
        for (text, currency, expected) in [
            ("1234.5", Currency::THB, "1234.50"),
            ("1234567.00", Currency::THB, "1234567.00"),
            ("25", Currency::THB, "25.00"),
            ("0.05", Currency::THB, "0.05"),
            ("99999999.99", Currency::THB, "99999999.99"),
            ("500", Currency::JPY, "500.00"),
            ("1.230", dinar, "1.23"),
        ] {
            assert_eq!(action_amount(Money::parse(text, currency).unwrap()).unwrap(), expected);
        }
        for (text, currency) in [("100000000", Currency::THB), ("1.234", dinar), ("0", Currency::THB)] {
            assert!(action_amount(Money::parse(text, currency).unwrap()).is_err(), "{text}");
        }
    }
}
