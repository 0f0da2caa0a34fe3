//! Whose refund is it? Finding one among those that 2C2P lists for a payment. Pure.

use super::answer::{PaymentStatus, RefundRow};
use super::decision::{RefundState, failure, refund_state};
use crate::gateway::twoc2p::codes::Class;
use crate::money::Money;
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::{Conflict, ConflictKind, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded};
use crate::transport::scrub;

/// A refund as we know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'a> {
    pub(super) key: OperationKey,
    /// 2C2P's id of it, where an answer has brought one.
    pub(super) id: Option<&'a GatewayRef>,
    pub(super) amount: Money,
}

/// What a list of refunds says about one of them.
#[allow(clippy::large_enum_variant, reason = "returned once and taken apart at once")]
pub(super) enum Match {
    /// It is in the list.
    Ours(Outcome),
    /// One row, and only one, has its amount and no name of anybody's.
    Alike(Outcome),
    /// Several could be it.
    Ambiguous,
    /// None can be it.
    None,
    /// It is in the list, and how it stands cannot be read.
    Unreadable,
}

/// Finds a refund: by 2C2P's id, then by the key that it was sent with. By the amount alone only where a single row is
/// of that amount and carries no mark: two refunds of one amount are legal, and cannot be told apart by it.
pub(super) fn find(list: &PaymentStatus, sought: Sought<'_>) -> Match {
    let rows = &list.refunds;
    let by_id = |row: &&RefundRow| {
        sought
            .id
            .is_some_and(|id| row.reference_no.as_deref() == Some(id.as_str()))
    };
    if let Some(row) = rows.iter().find(by_id) {
        return ours(row, list, sought);
    }
    let key = sought.key.to_string();
    let marked: Vec<&RefundRow> = rows.iter().filter(|row| row.mark() == Some(key.as_str())).collect();
    match marked.as_slice() {
        [] => {}
        [row] => return ours(row, list, sought),
        several => {
            let detail = format!("2C2P lists {} refunds with this operation's key", several.len());
            let mut conflict = Conflict::new(ConflictKind::TwoPayments, detail);
            conflict.evidence = list.evidence();
            return Match::Ours(Outcome::Conflict(conflict));
        }
    }
    // One whose amount cannot be read could be of any.
    let could_be = |row: &&RefundRow| {
        row.mark().is_none()
            && row
                .amount(sought.amount.currency())
                .is_none_or(|amount| amount == sought.amount)
    };
    let alike: Vec<&RefundRow> = rows.iter().filter(could_be).collect();
    match alike.as_slice() {
        [] => Match::None,
        // An id that we know and that no row has: the list lags, or it is another list.
        _ if sought.id.is_some() => Match::Ambiguous,
        [row] if row.reference_no.is_some() => match outcome(row, list, sought) {
            Some(mut outcome) => {
                if let Outcome::Succeeded(succeeded) = &mut outcome {
                    succeeded.notes.push("found by its amount alone".to_owned());
                }
                Match::Alike(outcome)
            }
            None => Match::Ambiguous,
        },
        _ => Match::Ambiguous,
    }
}

/// The outcome of a refund that was refused although none of ours is in the list: with how much others have given back.
pub(super) fn refused(answer: &PaymentStatus, list: &PaymentStatus, asked: Money) -> Failed {
    let category = match answer.code.as_deref() {
        Some("12" | "30" | "40") => FailureCategory::Invalid,
        Some("49") => FailureCategory::AlreadyDone,
        _ if answer.class() == Class::Expired => FailureCategory::Expired,
        _ => FailureCategory::Declined,
    };
    let mut failed = failure(category, answer);
    let done = list
        .refunds
        .iter()
        .filter(|row| refund_state(row.status.as_deref()) == Some(RefundState::Done));
    let mut amounts = done.map(|row| row.amount(asked.currency()));
    let sum = amounts.try_fold(0_i64, |sum, amount| sum.checked_add(amount?.minor()));
    if let Some(minor) = sum.filter(|minor| *minor > 0) {
        let sum = Money::from_minor(minor, asked.currency());
        failed.evidence.details.insert("amount_refunded", sum.to_decimal());
    }
    failed
}

fn ours(row: &RefundRow, list: &PaymentStatus, sought: Sought<'_>) -> Match {
    outcome(row, list, sought).map_or(Match::Unreadable, Match::Ours)
}

fn outcome(row: &RefundRow, list: &PaymentStatus, sought: Sought<'_>) -> Option<Outcome> {
    let mut evidence = list.evidence();
    // The status of the list is that of the payment.
    for (name, text) in [
        ("status", &row.status),
        ("refundReferenceNo", &row.reference_no),
        ("refundDateTime", &row.time_text),
    ] {
        if let Some(text) = text {
            evidence.details.insert(name, scrub(text));
        }
    }
    let id = row.reference_no.as_deref().map(GatewayRef::new);
    Some(match refund_state(row.status.as_deref())? {
        RefundState::Done => {
            let mut succeeded = Succeeded::new(Some(row.amount(sought.amount.currency())?));
            succeeded.gateway_ref = id;
            succeeded.evidence = evidence;
            Outcome::Succeeded(succeeded)
        }
        RefundState::Waiting => {
            let mut pending = Pending::new(NextStep::Wait);
            pending.gateway_ref = id;
            pending.evidence = evidence;
            Outcome::Pending(pending)
        }
        RefundState::Refused => {
            let mut failed = Failed::new(FailureCategory::Declined);
            failed.decline_code = row.status.as_deref().map(scrub);
            failed.gateway_ref = id;
            failed.evidence = evidence;
            Outcome::Failed(failed)
        }
    })
}
