//! Refunds: made at once or decided later, listed by RS, announced by the notify form.

use super::envelope::GATEWAY as PARTY;
use super::invoices::{Books, Invoice, local};
use super::maintenance::{Answer, two_decimals};
use super::process::Asked;
use super::settlement::Stage;
use super::{FakeTwoC2p, callbacks};
use crate::clock::Timestamp;
use crate::money::Money;
use crate::operation::OperationKind;
use crate::testing::Movement;
use quick_xml::escape::escape;
use std::fmt::Write as _;

/// A request to give money back, that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Refund {
    reference_no: String,
    amount: Money,
    /// `RP`, `RF`, or how it was rejected.
    status: String,
    at: Timestamp,
    asked: Asked,
}

/// How refund-status answers (RS) write the user-defined values of a refund. Their parameter page lists them for each
/// refund, and no page shows their form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefundRows {
    /// As in the documented sample: `<refund amount="" status="" referenceNo="" dateTime=""/>`.
    #[default]
    Bare,
    /// With `<userDefined1>` to `<userDefined5>` inside of each `<refund>`, as far as the request had them.
    WithUserDefined,
}

impl Refund {
    pub(super) fn is_final(&self) -> bool {
        self.status != "RP"
    }

    /// Given back, or about to be.
    fn counts(&self) -> bool {
        matches!(self.status.as_str(), "RF" | "RP")
    }

    /// Known to the bank by its own number: several refunds of one invoice are no mistake.
    fn movement(&self) -> Movement {
        let (reference, amount) = (&self.reference_no, self.amount);
        self.asked.movement(OperationKind::Refund, reference, reference, amount)
    }

    fn row(&self, zone: i32, rows: RefundRows) -> String {
        let mut row = format!(
            "<refund amount=\"{}\" status=\"{}\" referenceNo=\"{}\" dateTime=\"{}\"",
            two_decimals(self.amount),
            escape(self.status.as_str()),
            self.reference_no,
            local(self.at, zone)
        );
        let values = match rows {
            RefundRows::Bare => &[],
            RefundRows::WithUserDefined => self.asked.user_defined.as_slice(),
        };
        if values.is_empty() {
            row.push_str("/>");
            return row;
        }
        row.push('>');
        for (name, value) in values {
            let _ = write!(row, "<{name}>{}</{name}>", escape(value.as_str()));
        }
        row.push_str("</refund>");
        row
    }
}

impl Invoice {
    /// What was taken, less what was given back or is about to be.
    pub(super) fn left_to_refund(&self) -> Money {
        let refunds = self.after.refunds.iter().filter(|refund| refund.counts());
        refunds.fold(self.taken(), |left, refund| {
            left.checked_sub(refund.amount).unwrap_or(left)
        })
    }
}

impl Books {
    /// R: settled payments only; in parts and repeatedly up to what was taken.
    pub(super) fn refund(&mut self, asked: &Asked) -> Result<Answer, &'static str> {
        let invoice = self.invoice(&asked.invoice)?;
        let amount = asked.amount_in(&invoice)?.ok_or("10")?;
        match self.stage(&invoice) {
            Stage::Settled => {}
            Stage::GivenBack => return Err("49"),
            Stage::Unpaid | Stage::Failed | Stage::Expired | Stage::Approved | Stage::Ready | Stage::Voided => {
                return Err("41");
            }
        }
        if amount.minor() > invoice.left_to_refund().minor() {
            return Err("40");
        }
        let later = self.maintenance.refunds_asynchronous;
        let refund = Refund {
            reference_no: self.tran_ref(),
            amount,
            status: if later { "RP" } else { "RF" }.to_owned(),
            at: self.clock.now(),
            asked: asked.clone(),
        };
        if !later {
            self.bank.record(refund.movement());
        }
        let invoice = self.change(&asked.invoice, |after| after.refunds.push(refund.clone()))?;
        let answer =
            Answer::new(if later { "42" } else { "00" }, &invoice, two_decimals(amount)).status(&refund.status);
        // What is not done yet has no number yet, as far as the samples show.
        Ok(if later {
            answer
        } else {
            answer.refund_reference(&refund.reference_no)
        })
    }

    /// The `refundList` of an RS answer.
    pub(super) fn refund_list(&self, invoice: &Invoice) -> String {
        let (zone, rows) = (self.settings.zone, self.maintenance.refund_rows);
        let refunds: String = invoice
            .after
            .refunds
            .iter()
            .map(|refund| refund.row(zone, rows))
            .collect();
        if refunds.is_empty() {
            "<refundList/>".to_owned()
        } else {
            format!("<refundList>{refunds}</refundList>")
        }
    }

    fn find_refund(&self, reference_no: &str) -> Option<(Invoice, Refund)> {
        self.invoices.values().find_map(|invoice| {
            let refund = invoice
                .after
                .refunds
                .iter()
                .find(|refund| refund.reference_no == reference_no)?;
            Some((invoice.clone(), refund.clone()))
        })
    }

    /// Ends a refund that is pending; `false` when it is not.
    fn decide_refund(&mut self, reference_no: &str, status: &str) -> bool {
        let Some((invoice, mut refund)) = self.find_refund(reference_no).filter(|(_, refund)| !refund.is_final())
        else {
            return false;
        };
        status.clone_into(&mut refund.status);
        if status == "RF" {
            self.bank.record(refund.movement());
        }
        let changed = self.change(&invoice.number, |after| {
            for known in &mut after.refunds {
                if known.reference_no == reference_no {
                    *known = refund.clone();
                }
            }
        });
        changed.is_ok()
    }

    /// The notify form: a `PaymentProcessResponse` in the envelope of any answer. A base64url token needs no
    /// percent-encoding; what is special in a form is encoded all the same.
    fn notice(&self, invoice: &Invoice, refund: &Refund) -> Vec<u8> {
        let code = match refund.status.as_str() {
            "RF" => "00",
            "RP" => "42",
            _ => "44",
        };
        let answer = Answer::new(code, invoice, two_decimals(refund.amount))
            .status(&refund.status)
            .refund_reference(&refund.reference_no);
        let token = PARTY.seal(&answer.write(self, &refund.asked));
        let form: String = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("notifyResponse", &token)
            .finish();
        form.into_bytes()
    }
}

/// Refunds: how they are made, and what becomes of those that take their time.
impl FakeTwoC2p {
    /// Refunds made from now on are only accepted (respCode 42, status `RP`): the money is given back when a test
    /// [confirms](Self::confirm_refund) one.
    pub fn set_refunds_asynchronous(&self, yes: bool) {
        self.merchant.books().maintenance.refunds_asynchronous = yes;
    }

    /// How RS answers write refunds.
    pub fn set_refund_rows(&self, rows: RefundRows) {
        self.merchant.books().maintenance.refund_rows = rows;
    }

    /// The numbers (`refundReferenceNo`) of the refunds of an invoice, oldest first.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[must_use]
    #[track_caller]
    pub fn refunds(&self, invoice: &str) -> Vec<String> {
        let books = self.merchant.books();
        let found = super::existing(books.invoices.get(invoice), invoice);
        let refunds = found.after.refunds.iter();
        refunds.map(|refund| refund.reference_no.clone()).collect()
    }

    /// The money of a pending refund is given back (`RF`), and the notice is POSTed to its `notifyURL`, if it has one
    /// on this machine. `false`, and nothing happens, when it is not pending.
    pub async fn confirm_refund(&self, reference_no: &str) -> bool {
        self.decide_refund(reference_no, "RF").await
    }

    /// A pending refund is rejected with this status (`RR`, `RR1`, `RR2`, `RR3`, `RFF`), and the notice is POSTed as
    /// by [`confirm_refund`](Self::confirm_refund). `false`, and nothing happens, when it is not pending.
    pub async fn reject_refund(&self, reference_no: &str, status: &str) -> bool {
        self.decide_refund(reference_no, status).await
    }

    /// The body of the notice about a refund as it stands: the form `notifyResponse=<sealed answer>`.
    ///
    /// # Panics
    /// When there is no such refund.
    #[must_use]
    #[track_caller]
    #[allow(clippy::panic, reason = "a test that asks for it must hear so at that line")]
    pub fn refund_notice(&self, reference_no: &str) -> Vec<u8> {
        let books = self.merchant.books();
        match books.find_refund(reference_no) {
            Some((invoice, refund)) => books.notice(&invoice, &refund),
            None => panic!("FakeTwoC2p has no refund {reference_no}"),
        }
    }

    async fn decide_refund(&self, reference_no: &str, status: &str) -> bool {
        let notice = {
            let mut books = self.merchant.books();
            if !books.decide_refund(reference_no, status) {
                return false;
            }
            books.find_refund(reference_no).and_then(|(invoice, refund)| {
                let to = refund.asked.notify_url.clone()?;
                Some((to, books.notice(&invoice, &refund)))
            })
        };
        if let Some((to, body)) = notice {
            callbacks::post(&to, callbacks::FORM, body).await;
        }
        true
    }
}
