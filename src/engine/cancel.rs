//! Cancelling by any means: a void, and a refund where the void came too late.

use super::Payments;
use crate::error::Error;
use crate::money::Money;
use crate::operation::{Invalid, Operation, OperationKind, Target};
use crate::outcome::{FailureCategory, Outcome};
use std::num::NonZeroU32;
use tracing::info;

pub(super) async fn cancel(payments: &Payments, void: &Operation) -> Result<Outcome, Error> {
    let Some(target) = void.target().filter(|_| void.kind() == OperationKind::Void) else {
        return Err(Invalid::new("operation", "is not a void").into());
    };
    let outcome = still_so(payments, void, payments.execute(void).await?).await?;
    let Some(settled) = settled_meanwhile(&outcome) else {
        return Ok(outcome);
    };
    let refund = refund_instead(void, target.clone(), settled)?;
    info!(key = %payments.key(void), refund = %payments.key(&refund), "payonce.refunding_instead");
    payments.execute(&refund).await
}

/// A void that was refused while the payment was on its way to the acquirer, which no status showed: by now it may have
/// arrived there. One look more, since nobody else would ever look at what has failed.
async fn still_so(payments: &Payments, void: &Operation, outcome: Outcome) -> Result<Outcome, Error> {
    if !matches!(outcome, Outcome::Failed(_)) || settled_meanwhile(&outcome).is_some() {
        return Ok(outcome);
    }
    match payments.record(payments.key(void)).await? {
        Some(record) => Ok(payments.inner().ask(Box::new(record)).await?.record.outcome()),
        None => Ok(outcome),
    }
}

/// How much there is to give back, where that is what the void failed for.
fn settled_meanwhile(outcome: &Outcome) -> Option<Money> {
    match outcome {
        Outcome::Failed(failed) if failed.category == FailureCategory::Settled => failed.settled,
        Outcome::Failed(_)
        | Outcome::Succeeded(_)
        | Outcome::Pending(_)
        | Outcome::Unknown(_)
        | Outcome::Conflict(_) => None,
    }
}

/// A function of the void and of what the journal keeps of it: the same in each call. The options of a void are not
/// those of a refund, and stay behind.
fn refund_instead(void: &Operation, target: Target, settled: Money) -> Result<Operation, Invalid> {
    let attempt = NonZeroU32::new(void.attempt_number()).unwrap_or(NonZeroU32::MIN);
    let refund = Operation::refund(void.reference().as_str(), settled, target)?.attempt(attempt);
    Ok(match void.gateway_name() {
        Some(gateway) => refund.through(gateway),
        None => refund,
    })
}
