//! What answers mean: the tables, without a network.

mod codes;
mod lists;
mod standings;

use super::answer::PaymentStatus;
use super::decision::Verdict;
use super::xml;
use crate::gateway::twoc2p::result::Conclusion;
use crate::money::{Currency, Money};
use crate::outcome::Outcome;

fn read(document: &str) -> PaymentStatus {
    PaymentStatus::read(&xml::parse(document.as_bytes()).unwrap()).unwrap()
}

fn answer(code: &str, more: &str) -> PaymentStatus {
    read(&format!(
        "<PaymentProcessResponse><respCode>{code}</respCode>{more}</PaymentProcessResponse>"
    ))
}

/// A payment of 100.00 that stands so.
fn payment(status: &str) -> PaymentStatus {
    answer("00", &format!("<amount>100.00</amount><status>{status}</status>"))
}

fn thb(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

fn of_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(failed) => format!("failed {}", failed.category.as_str()),
        Outcome::Conflict(conflict) => format!("conflict {}", conflict.kind.as_str()),
        Outcome::Succeeded(_) | Outcome::Pending(_) | Outcome::Unknown(_) => outcome.as_str().to_owned(),
    }
}

fn of_verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Says(outcome) => of_outcome(outcome),
        Verdict::Look => "look".to_owned(),
        Verdict::Fails(failure) if failure.may_have_executed() => format!("maybe {:?}", failure.kind()),
        Verdict::Fails(failure) => format!("not executed {:?}", failure.kind()),
    }
}

fn of_conclusion(conclusion: &Conclusion) -> String {
    match conclusion {
        Conclusion::Says(outcome) => of_outcome(outcome),
        Conclusion::Absent => "absent".to_owned(),
        Conclusion::Nothing(kind) => format!("nothing {kind:?}"),
    }
}
