//! Payment plans (RPP): read, changed and ended by `RecurringMaintenanceRequest`, version 2.4 (pages
//! `api-payment-action-recurring-maintenance` and `payment-maintenance-recurring-payment-guide`). A plan begins with a
//! payment, never here.
//!
//! How the promise of this crate is kept there:
//!
//! * Reading takes no operation and no journal. What changes a plan is an [`Operation::update`] with a [`PlanChange`].
//! * Each change states the whole new state, and 2C2P has no id for the request: to repeat one is harmless until
//!   somebody makes another. So it is sent again within ten minutes only.
//! * An answer is held to the merchant and the plan that it names; 2C2P echoes nothing else.
//! * After a lost answer the plan is read. That it is inactive is what a cancel wanted. An update is proven by a plan
//!   that has all of the terms, and by nothing else; one that has others may have been changed since.
//!
//! [`Operation::update`]: crate::operation::Operation::update

mod change;
mod date;
mod plan;

pub use change::{PlanChange, PlanSchedule, PlanTerms};
pub use date::{ChargeDate, ChargeDay};
pub use plan::{PaymentPlan, PlanStatus};

use super::exchange::{about_another, unreadable};
use super::updates::{asked_for, no_name};
use super::xml::{XmlError, XmlWriter};
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::codes::{Api, Class};
use crate::gateway::twoc2p::response::doubtful;
use crate::gateway::{Inquiry, Prepared, Refusal};
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::{Conflict, ConflictKind, Failed, FailureCategory, Outcome, Succeeded};
use crate::record::{Instruction, Record};
use crate::transport::scrub;
use change::{What, check_id, letter};
use std::time::Duration;

/// The version that the page prints. Answers are seen with 2.1 as well.
const VERSION: &str = "2.4";

impl TwoC2p {
    /// Reads the payment plan `recurring_unique_id` (processType `I`). Nothing is recorded.
    ///
    /// An answer with another code than `00` is an answer too: look at [`PaymentPlan::code`] before the rest.
    ///
    /// # Errors
    /// A [`Failure`]: no keys, no answer, or none that 2C2P has made for this merchant about this plan. Nothing was
    /// changed.
    pub async fn payment_plan(&self, recurring_unique_id: &str) -> Result<PaymentPlan, Failure> {
        check_id(recurring_unique_id)
            .map_err(|invalid| Failure::not_executed(FailureKind::Unsupported, invalid.to_string()))?;
        let question = self.plan_request(recurring_unique_id, "I").finish();
        self.exchange_plan(recurring_unique_id, question, None).await
    }

    /// The identity says all that an inquiry needs; see `updates`.
    pub(super) fn prepare_plan_change(&self, key: OperationKey, change: &PlanChange) -> Result<Prepared, Refusal> {
        change.check()?;
        if let What::Update(terms) = &change.what {
            self.check_currency(terms.amount.currency())?;
        }
        Ok(Prepared::new(format!("plan/{}/{}/{key}", change.id, change.word())))
    }

    /// One request that changes, and before an update a look at the plan: an update names no currency, so that terms in
    /// another one would be taken at their bare number. `timeStamp` is left out, which is optional, so that a repeat has
    /// the same bytes inside.
    pub(super) async fn change_plan(&self, change: &PlanChange, instruction: &Instruction) -> Result<Outcome, Failure> {
        let request = match &change.what {
            What::Cancel => self.plan_request(&change.id, "C"),
            What::Update(terms) => {
                let plan = self.payment_plan(&change.id).await.map_err(unlooked)?;
                if plan
                    .currency
                    .is_some_and(|currency| currency != terms.amount.currency())
                {
                    let mut failed = Failed::new(FailureCategory::Invalid);
                    failed.evidence = plan.evidence();
                    failed.evidence.message = Some("the terms are not in the currency of the plan".to_owned());
                    return Ok(Outcome::Failed(failed));
                }
                let begun = self.begin_plan_request(&change.id, "U");
                terms.write(begun.element("recurringStatus", letter(terms.active)))
            }
        };
        let answer = self
            .exchange_plan(&change.id, request.finish(), Some(instruction.timeout()))
            .await?;
        on_answer(change, &answer)
    }

    /// What became of a change: `rest` is the identity after `plan/`.
    pub(super) async fn look_at_plan(&self, rest: &str, record: &Record) -> Result<Inquiry, Failure> {
        let mut parts = rest.split('/');
        let (Some(id), Some(word)) = (parts.next(), parts.next()) else {
            return Err(no_name());
        };
        let plan = self.payment_plan(id).await?;
        let vague = |kind| Err(doubtful(kind, Api::Maintenance, plan.code.as_deref(), 200));
        if plan.code.as_deref() != Some("00") {
            // "No such plan" as well: whether an ended plan is one, no page says.
            return vague(if plan.class() == Class::Auth {
                FailureKind::Credentials
            } else {
                FailureKind::ServerFault
            });
        }
        match (word, plan.status) {
            ("cancel", Some(PlanStatus::Inactive)) => {
                let note = "found inactive: 2C2P does not tell a cancelled plan from a stopped one";
                Ok(Inquiry::Found(done(id, &plan, Some(note))))
            }
            ("cancel", Some(PlanStatus::Active)) => Ok(Inquiry::Absent { consistent: true }),
            ("cancel", None) => vague(FailureKind::Unreadable),
            ("update", _) => {
                let is_wanted = |terms| asked_for(record, PlanChange::update(id, terms));
                Ok(if plan.terms().is_some_and(is_wanted) {
                    Inquiry::Found(done(id, &plan, None))
                } else {
                    // It may have had them, and others since.
                    Inquiry::Absent { consistent: false }
                })
            }
            _ => Err(no_name()),
        }
    }

    fn begin_plan_request(&self, id: &str, process_type: &str) -> XmlWriter {
        XmlWriter::new("RecurringMaintenanceRequest")
            .element("version", VERSION)
            .element("merchantID", &self.merchant_id)
            .element("recurringUniqueID", id)
            .element("processType", process_type)
    }

    /// A question or a cancel. The samples have `Y` in both, where it asks for nothing.
    fn plan_request(&self, id: &str, process_type: &str) -> XmlWriter {
        self.begin_plan_request(id, process_type)
            .element("recurringStatus", letter(true))
    }

    async fn exchange_plan(
        &self,
        id: &str,
        document: Result<String, XmlError>,
        timeout: Option<Duration>,
    ) -> Result<PaymentPlan, Failure> {
        let root = self.exchange_document(document, timeout).await?;
        let plan = PaymentPlan::read(&root).ok_or_else(|| unreadable("another document than was asked for"))?;
        match self.names_another(id, &plan) {
            None => Ok(plan),
            Some(what) => {
                let what = format!("names another {what}, or none");
                Err(about_another(&what, plan.code.as_deref()))
            }
        }
    }

    /// The merchant is missing in one printed sample. An answer that could not place the request names no plan.
    fn names_another(&self, id: &str, plan: &PaymentPlan) -> Option<&'static str> {
        if plan
            .merchant_id
            .as_ref()
            .is_some_and(|merchant| *merchant != self.merchant_id)
        {
            return Some("merchant");
        }
        let placed = !matches!(plan.class(), Class::Auth | Class::GatewayError | Class::InProgress);
        match plan.recurring_unique_id.as_deref() {
            Some(named) => (named != id).then_some("plan"),
            None => placed.then_some("plan"),
        }
    }
}

/// What the answer to a change says (page `response-code-payment-maintenance-result-code`, which the plan's pages
/// refer to).
///
/// Whatever is refused is [`FailureCategory::Invalid`] or [`FailureCategory::NoSuchPayment`]: after an earlier send
/// that may have been executed, the engine takes neither for an end and looks at the plan.
fn on_answer(change: &PlanChange, answer: &PaymentPlan) -> Result<Outcome, Failure> {
    let code = answer.code.as_deref();
    let open = |kind| Err(doubtful(kind, Api::Maintenance, code, 200));
    let refused = |category| {
        let mut failed = Failed::new(category);
        failed.evidence = answer.evidence();
        Ok(Outcome::Failed(failed))
    };
    match (code, answer.class()) {
        (None, _) => open(FailureKind::Unreadable),
        (Some("00"), _) => on_success(change, answer),
        (Some("16"), _) => refused(FailureCategory::NoSuchPayment),
        (_, Class::InvalidRequest | Class::Declined | Class::Expired) => refused(FailureCategory::Invalid),
        // Signed by 2C2P: it could not read the request, or does not know the merchant. Nothing was executed.
        (Some(code), Class::Auth) => {
            let detail = doubtful(FailureKind::Credentials, Api::Maintenance, Some(code), 200);
            let failure = Failure::not_executed(FailureKind::Credentials, detail.detail());
            Err(failure.with_http_status(200).with_code(scrub(code)))
        }
        (_, Class::Duplicate) => open(FailureKind::Duplicate),
        (_, Class::InProgress) => open(FailureKind::StillRunning),
        (
            _,
            Class::Success | Class::Pending | Class::Cancelled | Class::NotFound | Class::GatewayError | Class::Unknown,
        ) => open(FailureKind::ServerFault),
    }
}

/// Code 00. What else such an answer reports, no page says for certain: it is not needed, and not passed over either.
fn on_success(change: &PlanChange, answer: &PaymentPlan) -> Result<Outcome, Failure> {
    match &change.what {
        What::Cancel if answer.status == Some(PlanStatus::Active) => {
            Err(doubtful(FailureKind::Unreadable, Api::Maintenance, Some("00"), 200))
        }
        What::Cancel => Ok(done(&change.id, answer, None)),
        What::Update(terms) => {
            let other_currency = answer
                .currency
                .is_some_and(|currency| currency != terms.amount.currency());
            if other_currency || answer.amount.is_some_and(|amount| amount != terms.amount) {
                let detail = "2C2P reports another amount or currency of the plan than it was to have";
                let mut conflict = Conflict::new(ConflictKind::Amount, detail);
                conflict.expected = Some(terms.amount);
                conflict.reported = answer.amount;
                conflict.gateway_ref = Some(GatewayRef::new(change.id.as_str()));
                conflict.evidence = answer.evidence();
                return Ok(Outcome::Conflict(conflict));
            }
            let others = answer.terms().is_some_and(|reported| reported != *terms);
            let note = others.then_some("2C2P reports other terms than were asked for: read the plan");
            Ok(done(&change.id, answer, note))
        }
    }
}

/// The look before an update failed, and no update was sent.
fn unlooked(failure: Failure) -> Failure {
    let detail = format!(
        "the plan could not be looked at before its update: {}",
        failure.detail()
    );
    let unsent = Failure::not_executed(failure.kind(), detail);
    match failure.http_status() {
        Some(status) => unsent.with_http_status(status),
        None => unsent,
    }
}

fn done(id: &str, plan: &PaymentPlan, note: Option<&str>) -> Outcome {
    let mut succeeded = Succeeded::new(None);
    succeeded.gateway_ref = Some(GatewayRef::new(id));
    succeeded.notes.extend(note.map(str::to_owned));
    succeeded.evidence = plan.evidence();
    Outcome::Succeeded(succeeded)
}

#[cfg(test)]
mod tests;
