//! 2C2P's response codes: what each one says about an operation.
//!
//! The rows stand in `codes.tsv`, each with the page it comes from. The same number means different things in different
//! tables (2001, 00 and 0000 above all), so nothing is ever looked up without saying whose table it is.

use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("codes.tsv");

static ROWS: LazyLock<HashMap<(&'static str, &'static str), Row>> = LazyLock::new(|| rows().collect());

/// Whose table a code is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// `respCode` of the payment API: token, inquiry, backend callback. Page `response-code-payment`.
    Payment,
    /// `respCode` of Do Payment and of the browser return. Page `response-code-payment-flow`.
    PaymentFlow,
    /// `respCode` of the maintenance API: did the *request* work? Page `response-code-payment-maintenance-result-code`.
    Maintenance,
    /// `status` of the maintenance API: the state of the payment or refund. Page
    /// `response-code-payment-maintenance-status-code`.
    MaintenanceStatus,
    /// `resCode` of QuickPay.
    QuickPay,
    /// Result codes of payouts; the table is known in part only.
    Payout,
    /// `responseCode` of the customer token API.
    CustomerToken,
}

impl Api {
    /// The word by which the table names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payment => "payment",
            Self::PaymentFlow => "payment-flow",
            Self::Maintenance => "maintenance",
            Self::MaintenanceStatus => "maintenance-status",
            Self::QuickPay => "quickpay",
            Self::Payout => "payout",
            Self::CustomerToken => "customer-token",
        }
    }
}

/// What a code says, coarsely. What follows from it depends on the message that carried it and on its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Done. For a payment only some of these mean that money was taken.
    Success,
    /// Accepted, and waiting for the payer or a bank.
    Pending,
    /// Being processed.
    InProgress,
    /// Refused by issuer, acquirer or risk rules; no money moved.
    Declined,
    /// Given up by the payer or the merchant; no money moved.
    Cancelled,
    /// Ran out unpaid.
    Expired,
    /// Not known there, which by itself proves nothing.
    NotFound,
    /// The identity was used before: reconcile by inquiry.
    Duplicate,
    /// The request was not accepted as it was.
    InvalidRequest,
    /// Credentials, signature or merchant set-up.
    Auth,
    /// Trouble on their side or behind it; after a mutation the outcome is unknown.
    GatewayError,
    /// Too vague to conclude anything, on purpose for some codes; and every code that is not listed.
    Unknown,
}

impl Class {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "success" => Self::Success,
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "declined" => Self::Declined,
            "cancelled" => Self::Cancelled,
            "expired" => Self::Expired,
            "not_found" => Self::NotFound,
            "duplicate" => Self::Duplicate,
            "invalid_request" => Self::InvalidRequest,
            "auth" => Self::Auth,
            "gateway_error" => Self::GatewayError,
            "unknown" => Self::Unknown,
            _ => return None,
        })
    }
}

/// The class of `code` in the table of `api`. The code is compared as it is: `00` is not `0000`.
///
/// ```
/// use payonce::gateway::twoc2p::codes::{Api, Class, class};
///
/// assert_eq!(class(Api::Maintenance, "00"), Class::Success);
/// assert_eq!(class(Api::Maintenance, "0000"), Class::Unknown);
/// assert_eq!(class(Api::Payment, "2001"), Class::InProgress);
/// ```
#[must_use]
pub fn class(api: Api, code: &str) -> Class {
    ROWS.get(&(api.as_str(), code)).map_or(Class::Unknown, |row| row.class)
}

/// What `code` means in the table of `api`, in a few words of ours; `None` for a code that is not listed.
#[must_use]
pub fn meaning(api: Api, code: &str) -> Option<&'static str> {
    ROWS.get(&(api.as_str(), code)).map(|row| row.meaning)
}

struct Row {
    class: Class,
    meaning: &'static str,
}

/// A row that cannot be read is left out, and its code is `Unknown` like any other that is not listed; the test below
/// sees to it that there is none.
fn rows() -> impl Iterator<Item = ((&'static str, &'static str), Row)> {
    TABLE.lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        let (api, code) = (fields.next()?, fields.next()?);
        let class = Class::parse(fields.next()?)?;
        let (_source, meaning) = (fields.next()?, fields.next()?);
        fields.next().is_none().then_some(((api, code), Row { class, meaning }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_read_once_and_names_its_source() {
        let lines = TABLE.lines().count() - 1;
        assert_eq!(lines, 371);
        assert_eq!(rows().count(), lines, "a row cannot be read");
        assert_eq!(ROWS.len(), lines, "a code stands twice");
        let apis: HashSet<_> = rows().map(|((api, _), _)| api).collect();
        assert_eq!(apis.len(), 7);
        assert!(
            TABLE
                .lines()
                .all(|line| line.split('\t').all(|field| !field.trim().is_empty()))
        );
    }

    #[test]
    fn every_api_finds_its_own_rows() {
        for (api, code, expected) in [
            (Api::Payment, "0000", Class::Success),
            (Api::PaymentFlow, "1000", Class::Pending),
            (Api::Maintenance, "51", Class::InProgress),
            (Api::MaintenanceStatus, "AP", Class::Pending),
            (Api::QuickPay, "013", Class::Duplicate),
            (Api::Payout, "8105", Class::Duplicate),
            (Api::CustomerToken, "0000", Class::Success),
        ] {
            assert_eq!(class(api, code), expected, "{api:?} {code}");
            assert!(meaning(api, code).is_some());
        }
    }

    #[test]
    fn a_code_that_is_not_listed_is_unknown() {
        for code in ["", "0", "00", "000", "00000", " 0000", "9043", "api", "code", "ทดสอบ"] {
            assert_eq!(class(Api::Payment, code), Class::Unknown, "{code}");
            assert_eq!(meaning(Api::Payment, code), None);
        }
    }

    #[test]
    fn duplicates_and_their_near_neighbours_are_told_apart() {
        for code in ["9015", "9093", "5005", "9041", "4094", "4026"] {
            assert_eq!(class(Api::Payment, code), Class::Duplicate, "{code}");
        }
        for code in ["9035", "9042", "9057", "9058", "9089", "9108"] {
            assert_ne!(class(Api::Payment, code), Class::Duplicate, "{code}");
        }
    }
}
