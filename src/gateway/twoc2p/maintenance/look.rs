//! Questions: how a payment stands, and which refunds it has.

use super::answer::PaymentStatus;
use super::decision::{on_payment, on_standing};
use super::refunds::{self, Match, Sought};
use super::request::{Payment, ProcessRequest};
use crate::failure::{Failure, FailureKind};
use crate::gateway::Inquiry;
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::codes::Api;
use crate::gateway::twoc2p::response::doubtful;
use crate::gateway::twoc2p::result::Conclusion;
use crate::money::Money;
use crate::operation::OperationKind;
use crate::outcome::Outcome;
use crate::record::{Record, State};
use tracing::debug;

impl TwoC2p {
    /// Asks the maintenance API how the payment `invoice_no` stands (processType `I`, page
    /// `payment-maintenance-inquiry-guide`). `amount` is that of the payment, which the guide sends along.
    ///
    /// # Errors
    /// A [`Failure`]: no keys, no answer, or none that 2C2P has made for this merchant about this payment. Nothing was
    /// changed.
    pub async fn payment_status(&self, invoice_no: &str, amount: Option<Money>) -> Result<PaymentStatus, Failure> {
        self.question("I", invoice_no, amount).await
    }

    /// Asks the maintenance API for the refunds of the payment `invoice_no` (processType `RS`, page
    /// `payment-maintenance-refund-status-guide`).
    ///
    /// # Errors
    /// As [`TwoC2p::payment_status`].
    pub async fn refund_status(&self, invoice_no: &str, amount: Option<Money>) -> Result<PaymentStatus, Failure> {
        self.question("RS", invoice_no, amount).await
    }

    async fn question(
        &self,
        process_type: &'static str,
        invoice_no: &str,
        amount: Option<Money>,
    ) -> Result<PaymentStatus, Failure> {
        let request = ProcessRequest::question(process_type, invoice_no, amount)
            .map_err(|invalid| Failure::not_executed(FailureKind::Unsupported, invalid.to_string()))?;
        self.process(&request, None).await
    }

    /// What became of a void, a settlement or a refund.
    pub(in crate::gateway::twoc2p) async fn look(&self, record: &Record) -> Result<Inquiry, Failure> {
        if record.kind() == OperationKind::Update {
            return self.look_at_update(record).await;
        }
        let missing = || Failure::maybe_executed(FailureKind::Unsupported, "the record names no payment at 2C2P");
        let payment = Payment::of(record).ok_or_else(missing)?;
        let amount = payment.amount.or(record.amount());
        if record.kind() == OperationKind::Refund {
            let list = self.refund_status(&payment.invoice_no, amount).await?;
            return found_in(&list, record);
        }
        let status = self.payment_status(&payment.invoice_no, amount).await?;
        let currency = amount.map(Money::currency);
        match on_standing(record.kind(), None, &status, currency) {
            Conclusion::Says(outcome) => Ok(Inquiry::Found(outcome)),
            Conclusion::Absent => Ok(Inquiry::Absent {
                consistent: !was_accepted(record),
            }),
            Conclusion::Nothing(kind) => Err(doubtful(kind, Api::Maintenance, status.code.as_deref(), 200)),
        }
    }

    /// What the maintenance API says where the payment inquiry came to no certain conclusion (`first`), and whether a
    /// "not found" may count. `ours` when that inquiry has shown that the payment is the operation's own.
    ///
    /// Without keys the first opinion stands. With keys, absence takes both.
    pub(in crate::gateway::twoc2p) async fn second_opinion(
        &self,
        record: &Record,
        first: Conclusion,
        ours: bool,
    ) -> Result<(Conclusion, bool), Failure> {
        let Some(maintenance) = &self.maintenance else {
            return Ok((first, true));
        };
        if !maintenance.second_opinions.withdraw(self.clock.now()) {
            debug!(key = %record.key(), "payonce.no_second_opinion");
            return Ok((first, false));
        }
        let Ok(status) = self.payment_status(record.wire_identity(), record.amount()).await else {
            return Ok((first, false));
        };
        let key = record.key().to_string();
        let mark = status.user_defined[0].as_ref();
        if mark.is_some_and(|mark| *mark != key) {
            let detail = "2C2P's maintenance API answers about the payment of another operation";
            return Err(Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200));
        }
        // No printed answer of this API has a mark. Then it is enough that 2C2P gave us the page of this invoice.
        let issued = matches!(record.state(), State::Known(Outcome::Pending(_)));
        let currency = record.amount().map(Money::currency);
        let second = on_payment(&status, currency, record.payable_until().is_some());
        Ok(weigh(first, second, ours || issued || mark.is_some()))
    }
}

/// The two opinions together. Somebody else's payment under the same invoice number, at a shared account, must not be
/// taken for ours: so what the second one says holds only for a payment that is known to be ours.
fn weigh(first: Conclusion, second: Conclusion, ours: bool) -> (Conclusion, bool) {
    match (first, second) {
        (first, Conclusion::Says(_)) if !ours => (first, false),
        // It may be waiting for a payer who no longer comes.
        (Conclusion::Says(Outcome::Failed(first)), Conclusion::Says(Outcome::Pending(_))) => {
            (Conclusion::Says(Outcome::Failed(first)), true)
        }
        (_, Conclusion::Says(outcome)) => (Conclusion::Says(outcome), true),
        (Conclusion::Says(outcome), Conclusion::Absent | Conclusion::Nothing(_)) => (Conclusion::Says(outcome), true),
        (_, Conclusion::Absent) => (Conclusion::Absent, true),
        (first, Conclusion::Nothing(_)) => (first, false),
    }
}

/// What 2C2P has accepted, it has: that nothing is to be seen of it, for however long, does not undo that.
fn was_accepted(record: &Record) -> bool {
    matches!(record.state(), State::Known(Outcome::Pending(_)))
}

fn found_in(list: &PaymentStatus, record: &Record) -> Result<Inquiry, Failure> {
    let vague = |kind| doubtful(kind, Api::Maintenance, list.code.as_deref(), 200);
    match list.code.as_deref() {
        Some("00") => {}
        Some("16") => {
            return Ok(Inquiry::Absent {
                consistent: !was_accepted(record),
            });
        }
        _ => return Err(vague(FailureKind::ServerFault)),
    }
    let amount = record.amount().ok_or_else(|| vague(FailureKind::Unsupported))?;
    let sought = Sought {
        key: record.key(),
        id: record.gateway_ref(),
        amount,
    };
    Ok(match refunds::find(list, sought) {
        Match::Ours(outcome) => Inquiry::Found(outcome),
        Match::Alike(outcome) => Inquiry::Similar(outcome),
        Match::Ambiguous => Inquiry::Absent { consistent: false },
        Match::None => Inquiry::Absent {
            consistent: !was_accepted(record),
        },
        Match::Unreadable => return Err(vague(FailureKind::Unreadable)),
    })
}
