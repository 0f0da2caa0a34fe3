//! Voids, settlements and refunds.

use super::answer::PaymentStatus;
use super::decision::{Standing, Verdict, disagree, failure, on_answer, on_standing};
use super::refunds::{self, Match, Sought};
use super::request::ProcessRequest;
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::codes::Api;
use crate::gateway::twoc2p::response::doubtful;
use crate::gateway::twoc2p::result::Conclusion;
use crate::money::{Currency, Money};
use crate::operation::OperationKind;
use crate::outcome::{FailureCategory, Outcome};
use crate::record::Instruction;

impl TwoC2p {
    /// One request that acts, and the looks before and after it that its meaning needs.
    pub(in crate::gateway::twoc2p) async fn act(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let kind = instruction.operation().kind();
        if kind == OperationKind::Update {
            return self.send_update(instruction).await;
        }
        let request = ProcessRequest::action(instruction)
            .map_err(|invalid| Failure::not_executed(FailureKind::Unsupported, invalid.to_string()))?;
        if kind == OperationKind::Refund
            && let Some(outcome) = self.too_early(&request, instruction).await?
        {
            return Ok(outcome);
        }
        let currency = request.amount.map(Money::currency);
        let answer = self.process(&request, Some(instruction.timeout())).await?;
        match on_answer(kind, &answer, currency) {
            Verdict::Says(outcome) => Ok(outcome),
            Verdict::Fails(failure) => Err(failure),
            Verdict::Look if kind == OperationKind::Refund => self.look_for_it(&request, instruction, &answer).await,
            Verdict::Look => self.look_at_payment(&request, instruction, &answer, currency).await,
        }
    }

    /// A refund of what is not settled would be refused at best. Looked at before each send: what is said here is about
    /// the payment, and a repeat finds it settled.
    async fn too_early(&self, request: &ProcessRequest, instruction: &Instruction) -> Result<Option<Outcome>, Failure> {
        let payment = self.process(&request.about("I"), Some(instruction.timeout())).await;
        let payment = payment.map_err(|failure| {
            let detail = format!(
                "the payment could not be looked at before its refund: {}",
                failure.detail()
            );
            let unsent = Failure::not_executed(failure.kind(), detail).with_retry_after(failure.retry_after());
            match failure.http_status() {
                Some(status) => unsent.with_http_status(status),
                None => unsent,
            }
        })?;
        let fails = |category| Ok(Some(Outcome::Failed(failure(category, &payment))));
        match payment.code.as_deref() {
            Some("00") => {}
            Some("16") => return fails(FailureCategory::NoSuchPayment),
            code => {
                let detail = format!("before a refund the payment could not be seen: {}", payment.explain());
                let failure = Failure::not_executed(FailureKind::ServerFault, detail).with_http_status(200);
                return Err(failure.with_code(code.unwrap_or_default()));
            }
        }
        match Standing::of(payment.status.as_deref()) {
            Standing::Waiting | Standing::Approved | Standing::Settling => fails(FailureCategory::NotSettled),
            Standing::Voided | Standing::Voiding | Standing::Expired | Standing::Refused => {
                fails(FailureCategory::AlreadyDone)
            }
            Standing::Settled | Standing::GivenBack | Standing::Irregular | Standing::Unclear => Ok(None),
        }
    }

    /// After a code that can hide a success of the same void or settlement.
    async fn look_at_payment(
        &self,
        request: &ProcessRequest,
        instruction: &Instruction,
        answer: &PaymentStatus,
        currency: Option<Currency>,
    ) -> Result<Outcome, Failure> {
        let kind = instruction.operation().kind();
        let code = answer.code.as_deref();
        let open = |kind| doubtful(kind, Api::Maintenance, code, 200);
        let payment = self.process(&request.about("I"), Some(instruction.timeout())).await;
        let payment = payment.map_err(|_| open(FailureKind::Duplicate))?;
        match on_standing(kind, code, &payment, currency) {
            Conclusion::Says(outcome) => Ok(outcome),
            Conclusion::Absent => Err(open(FailureKind::ServerFault)),
            Conclusion::Nothing(kind) => Err(open(kind)),
        }
    }

    /// After a code that can hide a success of the same refund.
    async fn look_for_it(
        &self,
        request: &ProcessRequest,
        instruction: &Instruction,
        answer: &PaymentStatus,
    ) -> Result<Outcome, Failure> {
        let code = answer.code.as_deref();
        let open = || doubtful(FailureKind::Duplicate, Api::Maintenance, code, 200);
        let asked = instruction.operation().amount().ok_or_else(open)?;
        let list = self.process(&request.about("RS"), Some(instruction.timeout())).await;
        let list = list
            .ok()
            .filter(|list| list.code.as_deref() == Some("00"))
            .ok_or_else(open)?;
        let sought = Sought {
            key: instruction.key(),
            id: None,
            amount: asked,
        };
        let given_back = code == Some("49");
        match refunds::find(&list, sought) {
            Match::Ours(outcome) => Ok(outcome),
            // One like it may be the shadow of its own first send: whose it is, the journal knows.
            Match::Alike(_) | Match::Ambiguous | Match::Unreadable => Err(open()),
            Match::None if given_back && list.refunds.is_empty() => {
                let said = "2C2P says that all is given back already";
                Ok(disagree(said, &list, Some(asked.currency())))
            }
            Match::None => Ok(Outcome::Failed(refunds::refused(answer, &list, asked))),
        }
    }
}
