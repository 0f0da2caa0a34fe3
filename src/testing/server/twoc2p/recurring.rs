//! `RecurringMaintenanceRequest`, version 2.4: the plans of recurring payments, to look at, change and end. It moves no
//! money by itself and knows no `idempotencyID`: a change states the whole plan anew, so that repeating it is harmless.

use super::FakeTwoC2p;
use super::invoices::{Books, local};
use super::maintenance::{day_first, description};
use super::xml::{Document, Element};
use crate::money::{Currency, Money};
use std::collections::HashMap;

pub(super) const ROOT: &str = "RecurringMaintenanceRequest";

/// The elements of the parameter page, and the most characters that each may have.
const ELEMENTS: [(&str, usize); 13] = [
    ("version", 5),
    ("timeStamp", 22),
    ("merchantID", 15),
    ("recurringUniqueID", 20),
    ("processType", 1),
    ("recurringStatus", 1),
    ("amount", 12),
    ("allowAccumulate", 1),
    ("maxAccumulateAmount", 12),
    ("recurringInterval", 5),
    ("recurringCount", 5),
    ("chargeNextDate", 8),
    ("chargeOnDate", 4),
];
const LONGEST_INTERVAL: u32 = 365;

pub(super) type Plans = HashMap<String, RecurringPlan>;

/// A plan of recurring payments, as the gateway keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecurringPlan {
    /// `recurringUniqueID`: at most 20 digits.
    pub id: String,
    /// `recurringStatus` Y: it charges when its next date comes.
    pub active: bool,
    /// Ended for good, by C.
    pub cancelled: bool,
    /// How much it charges each time.
    pub amount: Money,
    /// Are failed amounts added to the next charge, and up to which sum?
    pub accumulates_to: Option<Money>,
    /// Every so many days, where it does not charge on a day of the month.
    pub interval_days: Option<u32>,
    /// How many charges are allowed; 0 for no end.
    pub count: u32,
    /// The next charge, `ddMMyyyy`, where it is known.
    pub next_date: Option<String>,
    /// `ddMM` of the charge of each cycle, instead of an interval.
    pub on_date: Option<String>,
}

impl RecurringPlan {
    /// An active plan that charges every so many days, without an end.
    pub fn new(id: impl Into<String>, amount: Money, interval_days: u32) -> Self {
        Self {
            id: id.into(),
            active: true,
            cancelled: false,
            amount,
            accumulates_to: None,
            interval_days: Some(interval_days),
            count: 0,
            next_date: None,
            on_date: None,
        }
    }

    /// Allows so many charges.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.count = count;
        self
    }

    /// Sets the date of the next charge, `ddMMyyyy`.
    #[must_use]
    pub fn next_date(mut self, date: impl Into<String>) -> Self {
        self.next_date = Some(date.into());
        self
    }
}

/// What a request asks for.
#[derive(Debug)]
struct Asked<'a> {
    process: &'a str,
    id: &'a str,
    root: &'a Element,
}

impl<'a> Asked<'a> {
    fn read(root: &'a Element, merchant: &str) -> Result<Self, &'static str> {
        let mandatory = |name| root.text_of(name).ok_or("10");
        let version = mandatory("version")?;
        if mandatory("merchantID")? != merchant {
            return Err("14");
        }
        let (process, id) = (mandatory("processType")?, mandatory("recurringUniqueID")?);
        if !["I", "U", "C"].contains(&process) {
            return Err("17");
        }
        let well_made = root.children.iter().enumerate().all(|(at, child)| {
            let fits = |&(name, most): &(&str, usize)| name == child.name && child.text.chars().count() <= most;
            let again = root.children.iter().take(at).any(|earlier| earlier.name == child.name);
            ELEMENTS.iter().any(fits) && child.children.is_empty() && !again
        });
        if version != "2.4" || !well_made || !is_digits(id) {
            return Err("11");
        }
        Ok(Self { process, id, root })
    }

    /// The plan as it is stated anew. What U leaves out or leaves empty is kept: no page says that it is cleared.
    fn changed(&self, plan: &RecurringPlan) -> Result<RecurringPlan, &'static str> {
        let mut new = plan.clone();
        let text = |name| self.root.text_of(name);
        let amount = text("amount").ok_or("10")?;
        new.amount = units(amount, plan.amount.currency())
            .filter(|amount| amount.minor() > 0)
            .ok_or("18")?;
        new.count = number(text("recurringCount").ok_or("10")?)?;
        if let Some(interval) = text("recurringInterval") {
            let days = Some(number(interval)?).filter(|days| (1..=LONGEST_INTERVAL).contains(days));
            (new.interval_days, new.on_date) = (Some(days.ok_or("11")?), None);
        }
        if let Some(date) = text("chargeOnDate") {
            let date = Some(date).filter(|date| is_date(date, "2000")).ok_or("11")?;
            new.on_date = Some(date.to_owned());
            new.interval_days = None;
        }
        if text("recurringInterval").is_none() && text("chargeOnDate").is_none() {
            return Err("10");
        }
        if let Some(date) = text("chargeNextDate") {
            new.next_date = Some(Some(date).filter(|date| is_date(date, "")).ok_or("11")?.to_owned());
        }
        if let Some(status) = text("recurringStatus") {
            new.active = flag(status)?;
        }
        if let Some(accumulates) = text("allowAccumulate") {
            new.accumulates_to = match (flag(accumulates)?, text("maxAccumulateAmount")) {
                (false, _) => None,
                (true, None) => return Err("10"),
                (true, Some(most)) => Some(units(most, plan.amount.currency()).ok_or("18")?),
            };
        }
        Ok(new)
    }
}

impl Books {
    /// The answer to a request, as XML.
    pub(super) fn recurring(&mut self, root: &Element, merchant: &str) -> String {
        let done = Asked::read(root, merchant).and_then(|asked| {
            let plan = self.plans.get_mut(asked.id).ok_or("16")?;
            match asked.process {
                "U" if plan.cancelled => return Err("12"),
                "U" => *plan = asked.changed(plan)?,
                "C" => (plan.active, plan.cancelled) = (false, true),
                _ => {}
            }
            Ok((asked.process == "C", plan.clone()))
        });
        match done {
            Ok((true, plan)) => self.recurring_answer("2.4", "00", &plan.id).finish(),
            Ok((false, plan)) => self.plan_answer(&plan, merchant),
            Err(code) => {
                let id = root.text_of("recurringUniqueID").unwrap_or_default();
                self.recurring_answer("2.4", code, id).finish()
            }
        }
    }

    /// An answer that has nothing to say but its code, as the sample of C.
    pub(super) fn recurring_answer(&self, version: &str, code: &str, id: &str) -> Document {
        let mut document = Document::new("RecurringMaintenanceResponse");
        document.put("version", version);
        document.put("timeStamp", &day_first(&local(self.clock.now(), self.settings.zone)));
        document.put("respCode", code);
        document.put("respReason", description(code));
        document.put("recurringUniqueID", id);
        document
    }

    /// As the sample of I: with another version than that of the request.
    fn plan_answer(&self, plan: &RecurringPlan, merchant: &str) -> String {
        let mut document = self.recurring_answer("2.1", "00", &plan.id);
        let days = plan.interval_days.map(|days| days.to_string()).unwrap_or_default();
        let accumulates = plan.accumulates_to.map(twelve_digits).unwrap_or_default();
        let yes = |yes| if yes { "Y" } else { "N" };
        document.put("merchantID", merchant);
        document.put("recurringStatus", yes(plan.active));
        document.put("invoicePrefix", &format!("RPP{}", plan.id));
        document.put("currency", numeric(plan.amount.currency()));
        document.put("amount", &twelve_digits(plan.amount));
        document.put("maskedCardNo", "XXXXXXXXXXXX1111");
        document.put("allowAccumulate", yes(plan.accumulates_to.is_some()));
        document.put("maxAccumulateAmount", &accumulates);
        document.put("recurringInterval", &days);
        document.put("recurringCount", &plan.count.to_string());
        document.put(
            "chargeNextDate",
            &year_first(plan.next_date.as_deref().unwrap_or_default()),
        );
        document.put("chargeOnDate", plan.on_date.as_deref().unwrap_or_default());
        document.finish()
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|_| is_digits(text)).ok_or("11")
}

fn flag(text: &str) -> Result<bool, &'static str> {
    match text {
        "Y" => Ok(true),
        "N" => Ok(false),
        _ => Err("11"),
    }
}

/// Twelve digits of minor units, zeros in front: `99.90` is no such amount.
fn units(text: &str, currency: Currency) -> Option<Money> {
    let units = text.parse().ok().filter(|_| text.len() == 12 && is_digits(text))?;
    Some(Money::from_minor(units, currency))
}

fn twelve_digits(amount: Money) -> String {
    format!("{:012}", amount.minor())
}

/// Is it a date `ddMMyyyy`? What is missing of the year is given.
fn is_date(text: &str, year: &str) -> bool {
    let whole = format!("{text}{year}");
    whole.len() == 8 && is_digits(&whole) && jiff::civil::Date::strptime("%d%m%Y", &whole).is_ok()
}

/// `yyyyMMdd` of `ddMMyyyy`: requests and answers differ.
fn year_first(date: &str) -> String {
    let part = |from: usize, to: usize| date.get(from..to).unwrap_or_default();
    format!("{}{}{}", part(4, 8), part(2, 4), part(0, 2))
}

/// The number of a currency of ISO 4217, for those that 2C2P's merchants have most.
fn numeric(currency: Currency) -> &'static str {
    match currency.code() {
        "AUD" => "036",
        "CNY" => "156",
        "EUR" => "978",
        "GBP" => "826",
        "HKD" => "344",
        "IDR" => "360",
        "JPY" => "392",
        "KHR" => "116",
        "KWD" => "414",
        "LAK" => "418",
        "MMK" => "104",
        "MYR" => "458",
        "PHP" => "608",
        "SGD" => "702",
        "THB" => "764",
        "TWD" => "901",
        "USD" => "840",
        "VND" => "704",
        _ => "999",
    }
}

/// Plans of recurring payments.
impl FakeTwoC2p {
    /// Keeps a plan, as if a first payment had made it. One with the same id is replaced.
    pub fn add_plan(&self, plan: RecurringPlan) {
        self.merchant.books().plans.insert(plan.id.clone(), plan);
    }

    /// A plan as it stands.
    ///
    /// # Panics
    /// When there is no such plan.
    #[must_use]
    #[track_caller]
    #[allow(clippy::panic, reason = "a test that asks for it must hear so at that line")]
    pub fn plan(&self, id: &str) -> RecurringPlan {
        match self.merchant.books().plans.get(id) {
            Some(plan) => plan.clone(),
            None => panic!("FakeTwoC2p has no plan {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_twelve_digits_and_dates_turn_round() {
        assert_eq!(twelve_digits(Money::from_minor(9990, Currency::THB)), "000000009990");
        assert_eq!(
            units("000000009990", Currency::THB),
            Some(Money::from_minor(9990, Currency::THB))
        );
        for text in ["99.90", "9990", "0000000099900", "00000000999x", "+00000009990"] {
            assert_eq!(units(text, Currency::THB), None, "{text}");
        }
        assert_eq!(year_first("07032021"), "20210307");
        assert!(is_date("07032021", "") && is_date("2902", "2000") && !is_date("31022021", "") && !is_date("", ""));
    }

    proptest! {
        #[test]
        fn no_request_makes_it_panic(at in 0_usize..ELEMENTS.len(), text in "[0-9YN]{0,14}|.{0,20}") {
            let mut root = Element { name: ROOT.to_owned(), ..Element::default() };
            for (name, good) in [
                ("version", "2.4"),
                ("merchantID", "TESTM01"),
                ("recurringUniqueID", "1"),
                ("processType", "U"),
                ("amount", "000000000100"),
                ("recurringInterval", "30"),
                ("recurringCount", "0"),
                ("chargeNextDate", "07032021"),
            ] {
                let text = if ELEMENTS[at].0 == name { &text } else { good };
                root.children.push(Element { name: name.to_owned(), text: text.to_owned(), children: Vec::new() });
            }
            let plan = RecurringPlan::new("1", Money::from_minor(1, Currency::THB), 1);
            if let Ok(changed) = Asked::read(&root, "TESTM01").and_then(|asked| asked.changed(&plan)) {
                prop_assert!(changed.amount.minor() > 0);
                prop_assert!(changed.interval_days.is_some_and(|days| days <= LONGEST_INTERVAL));
            }
            let _ = year_first(&text);
        }
    }
}
