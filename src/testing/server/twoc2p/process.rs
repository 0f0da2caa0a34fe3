//! A `PaymentProcessRequest`, read and checked.

use super::invoices::Invoice;
use super::xml::Element;
use crate::money::Money;
use crate::operation::OperationKind;
use crate::testing::Movement;

/// The elements of the parameter page, and the most characters that each may have.
const ELEMENTS: &[(&str, usize)] = &[
    ("version", 5),
    ("timeStamp", 22),
    ("merchantID", 15),
    ("childMerchantID", 15),
    ("processType", 2),
    ("invoiceNo", 50),
    ("actionAmount", 13),
    ("bankCode", 10),
    ("accountName", 50),
    ("accountNumber", 50),
    ("subMerchantList", 0),
    ("notifyURL", 250),
    ("userDefined1", 150),
    ("userDefined2", 150),
    ("userDefined3", 150),
    ("userDefined4", 150),
    ("userDefined5", 150),
    ("idempotencyID", 100),
    ("loyaltyPayments", 0),
    ("notes", 150),
];

/// What a request asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) process: Process,
    pub(super) invoice: String,
    /// As it was written; it has the form of an amount.
    amount: Option<String>,
    pub(super) notify_url: Option<String>,
    pub(super) user_defined: Vec<(String, String)>,
    pub(super) idempotency_id: Option<String>,
}

/// The process types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Inquire,
    Void,
    Settle,
    Refund,
    RefundStatus,
}

impl Process {
    fn parse(text: &str) -> Option<Self> {
        [
            Self::Inquire,
            Self::Void,
            Self::Settle,
            Self::Refund,
            Self::RefundStatus,
        ]
        .into_iter()
        .find(|process| process.as_str() == text)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Inquire => "I",
            Self::Void => "V",
            Self::Settle => "S",
            Self::Refund => "R",
            Self::RefundStatus => "RS",
        }
    }
}

impl Asked {
    /// The harsher reading: an element that no page names is refused, since a misspelt `idempotencyID` would protect
    /// nothing; so is one that comes twice.
    pub(super) fn read(root: &Element, merchant: &str) -> Result<Self, &'static str> {
        let mandatory = |name| root.text_of(name).ok_or("10");
        let version = mandatory("version")?;
        if mandatory("merchantID")? != merchant {
            return Err("14");
        }
        let process = Process::parse(mandatory("processType")?).ok_or("17")?;
        let invoice = mandatory("invoiceNo")?.to_owned();
        let amount = match process {
            Process::Settle => root.text_of("actionAmount"),
            Process::Inquire | Process::Void | Process::Refund | Process::RefundStatus => {
                Some(mandatory("actionAmount")?)
            }
        };
        if amount.is_some_and(|amount| !is_amount(amount)) {
            return Err("18");
        }
        if version != "4.3" || !is_well_made(root) {
            return Err("11");
        }
        let names = (1..=5).map(|number| format!("userDefined{number}"));
        let user_defined = names
            .filter_map(|name| Some((name.clone(), root.text_of(&name)?.to_owned())))
            .collect();
        Ok(Self {
            process,
            invoice,
            amount: amount.map(str::to_owned),
            notify_url: root.text_of("notifyURL").map(str::to_owned),
            user_defined,
            idempotency_id: root.text_of("idempotencyID").map(str::to_owned),
        })
    }

    /// The amount in the invoice's currency, which requests do not name.
    pub(super) fn amount_in(&self, invoice: &Invoice) -> Result<Option<Money>, &'static str> {
        let Some(text) = &self.amount else {
            return Ok(None);
        };
        let amount = Money::parse(text, invoice.amount.currency()).map_err(|_| "18")?;
        if amount.minor() > 0 {
            Ok(Some(amount))
        } else {
            Err("18")
        }
    }

    /// The id under which the request is executed once. Inquiries need none.
    pub(super) fn guarding_id(&self) -> Option<&str> {
        match self.process {
            Process::Void | Process::Settle | Process::Refund => self.idempotency_id.as_deref(),
            Process::Inquire | Process::RefundStatus => None,
        }
    }

    /// A movement that the bank knows by the id, the invoice and the user-defined values of the request.
    pub(super) fn movement(&self, kind: OperationKind, reference: &str, gateway_ref: &str, amount: Money) -> Movement {
        let movement = Movement::new(kind, reference, super::GATEWAY, gateway_ref, amount)
            .with_key(self.idempotency_id.clone())
            .with_identity(self.invoice.as_str());
        let values = self.user_defined.iter().map(|(_, value)| value.as_str());
        values.fold(movement, Movement::with_identity)
    }
}

/// `D 10,2`: digits, and a point with one or two more.
fn is_amount(text: &str) -> bool {
    let (whole, digits) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits =
        |text: &str, most: usize| (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole, 10) && is_digits(digits, 2)
}

fn is_well_made(root: &Element) -> bool {
    let mut seen = Vec::new();
    root.children.iter().all(|child| {
        let name = child.name.as_str();
        let known = ELEMENTS.iter().find(|(known, _)| *known == name);
        let fits = known
            .is_some_and(|(_, most)| child.text.chars().count() <= *most && (child.children.is_empty() || *most == 0));
        let first = !seen.contains(&name);
        seen.push(name);
        fits && first
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;
    use proptest::prelude::*;

    #[test]
    fn amounts_have_ten_digits_and_two_more_at_most() {
        for text in ["25.00", "25", "25.5", "0.01", "1234567890.99"] {
            assert!(is_amount(text), "{text}");
        }
        for text in [
            "",
            ".5",
            "5.",
            "1.234",
            "12345678901",
            "-1.00",
            "+1",
            "1e2",
            "1,000.00",
            "\u{661}.00",
        ] {
            assert!(!is_amount(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_request_makes_it_panic(process in "I|V|S|R|RS|.{0,3}", amount in "[0-9.+-]{0,14}|.{0,8}", other in "[a-zA-Z0-9]{0,14}", text in ".{0,200}") {
            let element = |name: &str, text: &str| Element { name: name.to_owned(), text: text.to_owned(), children: Vec::new() };
            let root = Element {
                children: vec![
                    element("version", "4.3"),
                    element("merchantID", "TESTM01"),
                    element("processType", &process),
                    element("invoiceNo", "INV1"),
                    element("actionAmount", &amount),
                    element(&other, &text),
                ],
                ..Element::default()
            };
            if let Ok(asked) = Asked::read(&root, "TESTM01") {
                prop_assert!(asked.amount.as_deref().is_none_or(|amount| Money::parse(amount, Currency::THB).is_ok()));
                prop_assert!(ELEMENTS.iter().any(|(name, _)| *name == other));
            }
        }
    }
}
