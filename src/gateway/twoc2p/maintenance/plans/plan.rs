//! What 2C2P reports about a payment plan, verified and decrypted.

use super::change::{PlanSchedule, PlanTerms, exact};
use super::date::{ChargeDate, ChargeDay};
use crate::gateway::twoc2p::codes::{Api, Class, class};
use crate::gateway::twoc2p::maintenance::xml::Element;
use crate::money::{Currency, Money};
use crate::outcome::Evidence;
use crate::transport::scrub;
use std::fmt;

/// The currencies of 2C2P's markets by their ISO 4217 numbers, as far as they have two decimals: only of those is it
/// plain what twelve digits of minor units are. Rupiah are left out, which 2C2P counts whole elsewhere.
const CURRENCIES: [(&str, &str); 19] = [
    ("036", "AUD"),
    ("096", "BND"),
    ("104", "MMK"),
    ("116", "KHR"),
    ("124", "CAD"),
    ("156", "CNY"),
    ("344", "HKD"),
    ("356", "INR"),
    ("418", "LAK"),
    ("446", "MOP"),
    ("458", "MYR"),
    ("554", "NZD"),
    ("608", "PHP"),
    ("702", "SGD"),
    ("756", "CHF"),
    ("764", "THB"),
    ("826", "GBP"),
    ("840", "USD"),
    ("978", "EUR"),
];

/// Does the plan charge?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanStatus {
    /// `Y`: it goes on charging.
    Active,
    /// `N`: it does not, because it was cancelled or stopped. 2C2P has one letter for both.
    Inactive,
}

/// A payment plan as 2C2P reported it (`RecurringMaintenanceResponse`, page
/// `payment-maintenance-recurring-payment-guide`).
///
/// Texts are kept as they came; an empty element is `None`, and so is a number, an amount or a day that cannot be read
/// exactly. Only where [`code`](Self::code) is `00` is the rest about a plan.
#[derive(Clone)]
#[non_exhaustive]
pub struct PaymentPlan {
    /// `respCode`, two digits.
    pub code: Option<String>,
    /// `respReason`, scrubbed.
    pub description: Option<String>,
    /// `merchantID`.
    pub merchant_id: Option<String>,
    /// `recurringUniqueID`.
    pub recurring_unique_id: Option<String>,
    /// `recurringStatus`.
    pub status: Option<PlanStatus>,
    /// `invoicePrefix`: what the invoice numbers of the plan's charges begin with.
    pub invoice_prefix: Option<String>,
    /// `currency` as it came: three digits.
    pub currency_text: Option<String>,
    /// `currency`, where it is known here and has two decimals.
    pub currency: Option<Currency>,
    /// `amount` as it came: twelve digits of minor units.
    pub amount_text: Option<String>,
    /// What each charge takes.
    pub amount: Option<Money>,
    /// `maskedCardNo`, scrubbed in case it is not masked.
    pub masked_card_no: Option<String>,
    /// `allowAccumulate`: what could not be charged is added to the next charge.
    pub accumulates: Option<bool>,
    /// `maxAccumulateAmount` as it came.
    pub max_accumulate_text: Option<String>,
    /// The sum at which a plan that accumulates ends.
    pub max_accumulate: Option<Money>,
    /// `recurringInterval`: days from charge to charge.
    pub interval_days: Option<u32>,
    /// `recurringCount`: charges in all; 0 for no end.
    pub count: Option<u32>,
    /// `currentCount`: charges made.
    pub current_count: Option<u32>,
    /// `chargeNextDate` as it came.
    pub next_charge_text: Option<String>,
    /// The day of the next charge.
    pub next_charge: Option<ChargeDate>,
    /// `chargeOnDate` as it came.
    pub charge_day_text: Option<String>,
    /// The day of each month on which it charges, instead of an interval.
    pub charge_day: Option<ChargeDay>,
}

impl PaymentPlan {
    /// `None` when the document is another one.
    pub(super) fn read(root: &Element) -> Option<Self> {
        if root.name() != "RecurringMaintenanceResponse" {
            return None;
        }
        let text = |name: &str| root.text_of(name);
        let number = |name: &str| text(name).as_deref().and_then(number);
        let currency_text = text("currency");
        let currency = currency_text.as_deref().and_then(currency);
        let money = |text: &Option<String>| minor_units(text.as_deref()?, currency?);
        let (amount_text, max_accumulate_text) = (text("amount"), text("maxAccumulateAmount"));
        let (next_charge_text, charge_day_text) = (text("chargeNextDate"), text("chargeOnDate"));
        Some(Self {
            code: text("respCode"),
            description: text("respReason").map(|text| scrub(&text)),
            merchant_id: text("merchantID"),
            recurring_unique_id: text("recurringUniqueID"),
            status: text("recurringStatus").and_then(|letter| flag(&letter)).map(|active| {
                if active {
                    PlanStatus::Active
                } else {
                    PlanStatus::Inactive
                }
            }),
            invoice_prefix: text("invoicePrefix"),
            currency,
            amount: money(&amount_text),
            masked_card_no: text("maskedCardNo").map(|text| scrub(&text)),
            accumulates: text("allowAccumulate").and_then(|letter| flag(&letter)),
            max_accumulate: money(&max_accumulate_text),
            interval_days: number("recurringInterval"),
            count: number("recurringCount"),
            current_count: number("currentCount"),
            next_charge: next_charge_text.as_deref().and_then(ChargeDate::read),
            charge_day: charge_day_text.as_deref().and_then(ChargeDay::read),
            currency_text,
            amount_text,
            max_accumulate_text,
            next_charge_text,
            charge_day_text,
        })
    }

    /// What [`code`](Self::code) says; [`Class::Unknown`] without one.
    #[must_use]
    pub fn class(&self) -> Class {
        let code = self.code.as_deref();
        code.map_or(Class::Unknown, |code| class(Api::Maintenance, code))
    }

    /// The plan's terms, to change some and send all; `None` when one of them is not reported or cannot be read.
    #[must_use]
    pub fn terms(&self) -> Option<PlanTerms> {
        let interval = self.interval_days.filter(|days| *days > 0);
        let schedule = match (interval, self.charge_day) {
            (Some(days), None) if self.charge_day_text.is_none() => PlanSchedule::EveryDays(days),
            (None, Some(day)) => PlanSchedule::MonthlyOn(day),
            (_, _) => return None,
        };
        let mut terms = PlanTerms::new(self.amount?, schedule, self.count?, self.next_charge?);
        terms.active = self.status? == PlanStatus::Active;
        if self.accumulates? {
            terms.accumulates_to = Some(self.max_accumulate?);
        }
        Some(terms)
    }

    pub(super) fn evidence(&self) -> Evidence {
        let mut evidence = Evidence {
            http_status: Some(200),
            code: self.code.as_deref().map(scrub),
            message: self.description.clone(),
            ..Evidence::default()
        };
        let status = self.status.map(|status| format!("{status:?}"));
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        for (name, text) in [
            ("amount", self.amount_text.clone()),
            ("chargeNextDate", self.next_charge_text.clone()),
            ("chargeOnDate", self.charge_day_text.clone()),
            ("currency", self.currency_text.clone()),
            ("currentCount", number(self.current_count)),
            ("recurringCount", number(self.count)),
            ("recurringInterval", number(self.interval_days)),
            ("recurringStatus", status),
            ("recurringUniqueID", self.recurring_unique_id.clone()),
        ] {
            if let Some(text) = text {
                evidence.details.insert(name, scrub(&text));
            }
        }
        evidence
    }
}

/// Only what a log may hold.
impl fmt::Debug for PaymentPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PaymentPlan")
            .field("code", &self.code.as_deref().map(scrub))
            .field("recurring_unique_id", &self.recurring_unique_id.as_deref().map(scrub))
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

fn flag(letter: &str) -> Option<bool> {
    match letter {
        "Y" => Some(true),
        "N" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn currency(number: &str) -> Option<Currency> {
    let (_, letters) = CURRENCIES.iter().find(|(known, _)| *known == number)?;
    Currency::parse(letters).ok()
}

/// Twelve digits, and nothing else: `99.90`, which one sample of a request has, could be either.
fn minor_units(text: &str, currency: Currency) -> Option<Money> {
    let digits = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    let minor = digits.then(|| text.parse().ok()).flatten()?;
    exact(currency).then_some(Money::from_minor(minor, currency))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_currency_of_the_table_has_two_decimals_and_stands_once() {
        for (digits, letters) in CURRENCIES {
            let known = currency(digits).unwrap();
            assert_eq!((known.code(), known.exponent()), (letters, 2));
            assert!(exact(known) && digits.len() == 3);
        }
        assert!(CURRENCIES.is_sorted() && CURRENCIES.windows(2).all(|pair| pair[0].0 != pair[1].0));
        for other in ["392", "360", "704", "36", "SGD", ""] {
            assert_eq!(currency(other), None, "{other}");
        }
    }

    #[test]
    fn only_twelve_digits_are_minor_units() {
        let read = |text| minor_units(text, Currency::SGD).map(Money::minor);
        assert_eq!(read("000000009990"), Some(9990));
        assert_eq!(read("999999999999"), Some(999_999_999_999));
        for text in [
            "99.90",
            "9990",
            "0000000000990.",
            "-00000009990",
            "+00000009990",
            "0000000009990",
            "๑๑๑๑",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(minor_units("000000009990", Currency::JPY), None);
    }
}
