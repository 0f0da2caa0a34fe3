//! What can be done to a payment plan, as options of an operation.

use super::date::{ChargeDate, ChargeDay};
use crate::gateway::twoc2p::NAME;
use crate::gateway::{Refusal, twoc2p::maintenance::xml::XmlWriter};
use crate::money::{Currency, Money};
use crate::operation::{Canonical, GatewayOptions, Invalid};

/// The longest interval between two charges, in days.
const LONGEST_INTERVAL: u32 = 365;

/// Type N 5.
const MOST_CHARGES: u32 = 99_999;

/// Type N 12.
const AMOUNT_DIGITS: usize = 12;

/// A change of a payment plan at 2C2P. It moves no money by itself, and leaves charges that were made as they are.
///
/// ```
/// use payonce::Operation;
/// use payonce::gateway::twoc2p::PlanChange;
///
/// let cancel = Operation::update("plan-42/cancel", PlanChange::cancel("156142"))?;
/// # Ok::<(), payonce::operation::Invalid>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanChange {
    pub(super) id: String,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Cancel,
    Update(PlanTerms),
}

impl PlanChange {
    /// Ends the plan for good (processType `C`). `recurring_unique_id` is the number that 2C2P's answer about the
    /// plan's first payment names: 1 to 20 digits.
    #[must_use]
    pub fn cancel(recurring_unique_id: impl Into<String>) -> Self {
        Self {
            id: recurring_unique_id.into(),
            what: What::Cancel,
        }
    }

    /// Gives the plan these terms (processType `U`), in the place of all that it had.
    ///
    /// Make a change on what the plan is now: [`TwoC2p::payment_plan`](crate::gateway::twoc2p::TwoC2p::payment_plan)
    /// reads it and [`PaymentPlan::terms`](super::PaymentPlan::terms) has its terms. Two changes of one plan at the
    /// same time overwrite each other, in an order that nobody has promised.
    #[must_use]
    pub fn update(recurring_unique_id: impl Into<String>, terms: PlanTerms) -> Self {
        Self {
            id: recurring_unique_id.into(),
            what: What::Update(terms),
        }
    }

    /// The word for what is done, in the identity and in the journal.
    pub(super) fn word(&self) -> &'static str {
        match self.what {
            What::Cancel => "cancel",
            What::Update(_) => "update",
        }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_id(&self.id)?;
        match &self.what {
            What::Cancel => Ok(()),
            What::Update(terms) => terms.check(),
        }
    }
}

impl GatewayOptions for PlanChange {
    fn gateway(&self) -> &'static str {
        NAME
    }

    fn canonical(&self, out: &mut Canonical) {
        out.put("recurringUniqueID", &self.id);
        out.put("plan", self.word());
        if let What::Update(terms) = &self.what {
            terms.canonical(out);
        }
    }
}

/// All terms of a plan. An update states every one of them: whether 2C2P keeps or clears what a request leaves out, no
/// page says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanTerms {
    /// What each charge takes, in the plan's own currency; the request cannot name another. Only currencies with two
    /// decimals are taken, and no rupiah: how others are written, no page says.
    pub amount: Money,
    /// When it charges.
    pub schedule: PlanSchedule,
    /// How many charges, at most 99 999; 0 for no end. Whether 2C2P counts those already made, no page says.
    pub count: u32,
    /// What could not be charged is added to the next charge, up to this sum, at which 2C2P ends the plan. `None` adds
    /// nothing.
    pub accumulates_to: Option<Money>,
    /// The day of the next charge.
    pub next_charge: ChargeDate,
    /// Whether it goes on charging. `false` stops it; 2C2P's pages do not describe how it differs from a plan that was
    /// cancelled.
    pub active: bool,
}

impl PlanTerms {
    /// An active plan that accumulates nothing. Change the fields for another one.
    #[must_use]
    pub const fn new(amount: Money, schedule: PlanSchedule, count: u32, next_charge: ChargeDate) -> Self {
        Self {
            amount,
            schedule,
            count,
            accumulates_to: None,
            next_charge,
            active: true,
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        let currency = self.amount.currency();
        if !exact(currency) {
            let what = format!("how an amount in {currency} is written in a payment plan, no page of 2C2P's says");
            return Err(Refusal::Unsupported(what));
        }
        for (field, amount) in [("amount", Some(self.amount)), ("accumulates_to", self.accumulates_to)] {
            let Some(amount) = amount else { continue };
            if amount.minor() <= 0 || amount.minor().to_string().len() > AMOUNT_DIGITS {
                return Err(Invalid::new(field, "must be greater than zero and fit 12 digits of minor units").into());
            }
            if amount.currency() != currency {
                return Err(Invalid::new(field, "is not in the currency of the plan's amount").into());
            }
        }
        let days = match self.schedule {
            PlanSchedule::EveryDays(days) => days,
            PlanSchedule::MonthlyOn(day) => u32::from(ChargeDay::new(day.day, day.month)?.day),
        };
        if !(1..=LONGEST_INTERVAL).contains(&days) {
            return Err(Invalid::new("schedule", "must be every 1 to 365 days").into());
        }
        if self.count > MOST_CHARGES {
            return Err(Invalid::new("count", "is more than 99999").into());
        }
        let next = self.next_charge;
        ChargeDate::new(next.year, next.month, next.day)?;
        Ok(())
    }

    /// The elements of an update after its status, in the order of the documented template.
    pub(super) fn write(&self, xml: XmlWriter) -> XmlWriter {
        let max = self.accumulates_to.map(digits);
        let (interval, day) = match self.schedule {
            PlanSchedule::EveryDays(days) => (Some(days.to_string()), None),
            PlanSchedule::MonthlyOn(day) => (None, Some(day.to_wire())),
        };
        xml.element("amount", &digits(self.amount))
            .element("allowAccumulate", letter(max.is_some()))
            .optional("maxAccumulateAmount", max.as_deref())
            .optional("recurringInterval", interval.as_deref())
            .element("recurringCount", &self.count.to_string())
            .element("chargeNextDate", &self.next_charge.to_wire())
            .optional("chargeOnDate", day.as_deref())
    }

    fn canonical(&self, out: &mut Canonical) {
        let put_amount = |out: &mut Canonical, name, amount: Money| {
            out.number(name, amount.minor());
            out.put("currency", amount.currency().code());
        };
        put_amount(out, "amount", self.amount);
        if let Some(max) = self.accumulates_to {
            put_amount(out, "maxAccumulateAmount", max);
        }
        match self.schedule {
            PlanSchedule::EveryDays(days) => out.number("recurringInterval", days.into()),
            PlanSchedule::MonthlyOn(day) => out.put("chargeOnDate", &day.to_wire()),
        }
        out.number("recurringCount", self.count.into());
        out.put("chargeNextDate", &self.next_charge.to_wire());
        out.put("recurringStatus", letter(self.active));
    }
}

/// When a plan charges: 2C2P takes one of the two (codes 9904 and 9906 of the payment API).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanSchedule {
    /// Every so many days, 1 to 365 (`recurringInterval`).
    EveryDays(u32),
    /// On this day of every month (`chargeOnDate`).
    MonthlyOn(ChargeDay),
}

/// Are twelve digits of minor units, with two decimals, plainly an amount in this currency?
pub(super) fn exact(currency: Currency) -> bool {
    currency.exponent() == 2 && currency.code() != "IDR"
}

pub(super) fn check_id(id: &str) -> Result<(), Invalid> {
    let digits = (1..=20).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
    let refuse = || Invalid::new("recurring_unique_id", "must be 1 to 20 digits");
    digits.then_some(()).ok_or_else(refuse)
}

pub(super) const fn letter(yes: bool) -> &'static str {
    if yes { "Y" } else { "N" }
}

fn digits(amount: Money) -> String {
    format!("{:0AMOUNT_DIGITS$}", amount.minor())
}
