//! What becomes of a payment once the payer has paid: settled at the cut-off, captured, voided.

use super::invoices::{Books, Invoice, State};
use super::process::Asked;
use super::refunds::Refund;
use super::{FakeTwoC2p, existing};
use crate::clock::Timestamp;
use crate::money::Money;
use crate::operation::OperationKind;
use std::time::Duration;

/// What is known of an invoice beside its payment.
#[derive(Clone, Debug, Default)]
pub(super) struct After {
    /// `PREAUTH`: the payment only reserves the money.
    pub(super) preauth: bool,
    pub(super) paid_at: Option<Timestamp>,
    pub(super) voided: bool,
    pub(super) capture: Option<Capture>,
    /// A test has brought the cut-off forward.
    pub(super) settled: bool,
    pub(super) refunds: Vec<Refund>,
    /// What is reported instead of the truth.
    pub(super) said_status: Option<String>,
    pub(super) said_amount: Option<String>,
}

/// A settlement that was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capture {
    pub(super) amount: Money,
    at: Timestamp,
}

/// Where an invoice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Unpaid,
    Failed,
    Expired,
    /// Paid, before the cut-off.
    Approved,
    /// A settlement was asked for, before the cut-off.
    Ready,
    Settled,
    /// All of it.
    GivenBack,
    Voided,
}

impl Stage {
    /// The letters of the page response-code-payment-maintenance-status-code.
    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::Unpaid => "AP",
            Self::Failed => "PF",
            Self::Expired => "EX",
            Self::Approved => "A",
            Self::Ready => "RS",
            Self::Settled => "S",
            Self::GivenBack => "RF",
            Self::Voided => "V",
        }
    }
}

impl Books {
    pub(super) fn stage(&self, invoice: &Invoice) -> Stage {
        let (after, now) = (&invoice.after, self.clock.now());
        if after.voided {
            return Stage::Voided;
        }
        match &invoice.state {
            State::Issued if now >= invoice.expires_at => return Stage::Expired,
            State::Issued => return Stage::Unpaid,
            State::Failed { .. } => return Stage::Failed,
            State::Paid { .. } => {}
        }
        let begun = match after.capture {
            Some(capture) => Some(capture.at),
            None if after.preauth => return Stage::Approved,
            None => after.paid_at,
        };
        let cut_off = begun.map(|begun| begun.after(self.maintenance.settlement_delay));
        if after.settled || cut_off.is_some_and(|cut_off| now >= cut_off) {
            return if invoice.left_to_refund().minor() == 0 && after.refunds.iter().all(Refund::is_final) {
                Stage::GivenBack
            } else {
                Stage::Settled
            };
        }
        match after.capture {
            Some(_) => Stage::Ready,
            None => Stage::Approved,
        }
    }

    /// The status of the payment as answers carry it. Money that came late stays *approved after expiry* (AE) until it
    /// is given back.
    pub(super) fn status(&self, invoice: &Invoice) -> String {
        if let Some(said) = &invoice.after.said_status {
            return said.clone();
        }
        let stage = self.stage(invoice);
        let late = matches!(&invoice.state, State::Paid { code, .. } if code == "5017");
        let kept = matches!(stage, Stage::Approved | Stage::Ready | Stage::Settled);
        if late && kept { "AE" } else { stage.letter() }.to_owned()
    }

    /// V: a payment before the cut-off, or a page that nobody has paid yet.
    pub(super) fn void(&mut self, asked: &Asked) -> Result<Invoice, &'static str> {
        let invoice = self.invoice(&asked.invoice)?;
        let amount = asked.amount_in(&invoice)?;
        match self.stage(&invoice) {
            Stage::Unpaid | Stage::Approved | Stage::Ready => {}
            Stage::Voided => return Err("29"),
            Stage::Settled | Stage::GivenBack => return Err("21"),
            Stage::Failed | Stage::Expired => return Err("61"),
        }
        if amount != Some(invoice.amount) {
            return Err("18");
        }
        let movement = asked.movement(OperationKind::Void, &invoice.number, invoice.tran_ref(), invoice.amount);
        self.bank.record(movement);
        self.change(&asked.invoice, |after| after.voided = true)
    }

    /// S: takes the money that was reserved.
    pub(super) fn capture(&mut self, asked: &Asked) -> Result<Invoice, &'static str> {
        let invoice = self.invoice(&asked.invoice)?;
        let amount = asked.amount_in(&invoice)?.unwrap_or(invoice.amount);
        match self.stage(&invoice) {
            Stage::Approved if !invoice.after.preauth => return Err("32"),
            Stage::Approved => {}
            Stage::Ready => return Err("34"),
            Stage::Settled | Stage::GivenBack => return Err("39"),
            Stage::Unpaid | Stage::Failed | Stage::Expired | Stage::Voided => return Err("31"),
        }
        if amount.minor() > invoice.amount.minor() {
            return Err("30");
        }
        if amount != invoice.amount && self.maintenance.refuses_partial_settlements {
            return Err("33");
        }
        let movement = asked.movement(OperationKind::Capture, &invoice.number, invoice.tran_ref(), amount);
        self.bank.record(movement);
        let at = self.clock.now();
        self.change(&asked.invoice, |after| after.capture = Some(Capture { amount, at }))
    }

    pub(super) fn invoice(&self, number: &str) -> Result<Invoice, &'static str> {
        self.invoices.get(number).cloned().ok_or("16")
    }

    pub(super) fn change(&mut self, number: &str, step: impl FnOnce(&mut After)) -> Result<Invoice, &'static str> {
        let invoice = self.invoices.get_mut(number).ok_or("16")?;
        step(&mut invoice.after);
        Ok(invoice.clone())
    }
}

impl Invoice {
    /// What was taken: what was captured, where less than all was.
    pub(super) fn taken(&self) -> Money {
        self.after.capture.map_or(self.amount, |capture| capture.amount)
    }

    pub(super) fn tran_ref(&self) -> &str {
        match &self.state {
            State::Issued => "",
            State::Failed { tran_ref, .. } | State::Paid { tran_ref, .. } => tran_ref,
        }
    }
}

/// Settlement: when payments become final, and what is reported of them.
impl FakeTwoC2p {
    /// How long after a payment, or after a settlement was asked for, the cut-off comes, by the fake's clock: then a
    /// payment is settled (status `S`) and can no longer be voided, only refunded. 24 hours at first. An authorization
    /// that was not captured never settles.
    pub fn set_settlement_delay(&self, delay: Duration) {
        self.merchant.books().maintenance.settlement_delay = delay;
    }

    /// The cut-off comes now for this invoice. `false` when there is nothing to settle: not paid, voided, settled
    /// already, or an authorization that nobody has captured.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn settle(&self, invoice: &str) -> bool {
        let mut books = self.merchant.books();
        let found = existing(books.invoices.get(invoice).cloned(), invoice);
        let settles = match books.stage(&found) {
            Stage::Approved => !found.after.preauth,
            Stage::Ready => true,
            Stage::Unpaid | Stage::Failed | Stage::Expired | Stage::Settled | Stage::GivenBack | Stage::Voided => false,
        };
        if settles {
            let _ = books.change(invoice, |after| after.settled = true);
        }
        settles
    }

    /// A settlement of less than was authorized is refused (33). At first it is accepted.
    pub fn set_refuses_partial_settlements(&self, yes: bool) {
        self.merchant.books().maintenance.refuses_partial_settlements = yes;
    }

    /// The letters that the maintenance API reports as the status of a payment: `AP`, `A`, `RS`, `S`, `V`, `RF`, `PF`,
    /// `EX`, `AE`.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[must_use]
    #[track_caller]
    pub fn status(&self, invoice: &str) -> String {
        let books = self.merchant.books();
        let found = existing(books.invoices.get(invoice).cloned(), invoice);
        books.status(&found)
    }

    /// From now on maintenance inquiries (I and RS) report this status and amount for the payment, whatever the books
    /// say: `Some("AL")` and `Some("1500.00")`. What V, S and R do is not changed. `None` is the truth again.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn override_status(&self, invoice: &str, status: Option<&str>, amount: Option<&str>) {
        let mut books = self.merchant.books();
        let changed = books.change(invoice, |after| {
            after.said_status = status.map(str::to_owned);
            after.said_amount = amount.map(str::to_owned);
        });
        existing(changed.ok(), invoice);
    }
}
