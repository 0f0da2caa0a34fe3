//! Changes of what 2C2P keeps for the merchant: payment plans and stored cards. Neither API has an id of its own for a
//! request, so that the record has to say what was asked, and of whom.
//!
//! The identity on the wire is ours alone here and is not sent: it names the plan or the token and what becomes of it,
//! for the inquiry, and ends in the operation's key, which makes it unique. Of the rest, the journal has a fingerprint.
//! So an inquiry proves a change by turning 2C2P's answer into the operation that would ask for what it reports: when
//! that one has the fingerprint of the record, what was wanted is what is there. No personal data is stored for it.

use super::plans::PlanChange;
use super::stored_cards::StoredCardChange;
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::{Inquiry, Prepared, Refusal};
use crate::operation::{GatewayOptions, Invalid, Operation, OperationKey};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::{Absence, AfterAbsence, Promise, SameKey, Since};
use std::num::NonZeroU32;
use std::time::Duration;

/// How long a change is sent again. To repeat one is harmless while nobody has made another; a stale one would undo it.
const RESENDS: Duration = Duration::from_secs(10 * 60);

/// What was changed can be seen from then on. Without a source; nothing but 2C2P's own database is involved.
const QUIET: Duration = Duration::from_secs(5 * 60);

/// What holds for a change of a plan or a token that exists. Each states the whole new state, so that a second one of
/// the same is none. A new card is another matter, and has a [gateway of its own](super::CardStore).
pub(super) fn promise() -> Promise {
    let absence = Absence::After {
        since: Since::LastSend,
        quiet: QUIET,
        looks: 2,
        apart: Duration::from_secs(60),
        then: AfterAbsence::SendAgain,
    };
    Promise::new(SameKey::LatestState { within: RESENDS }, absence)
}

impl TwoC2p {
    pub(super) fn prepare_update(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        bare(operation)?;
        if let Some(change) = operation.options::<PlanChange>() {
            return self.prepare_plan_change(key, change);
        }
        match operation.options::<StoredCardChange>() {
            Some(change) => self.prepare_card_change(key, change),
            None => Err(Refusal::Unsupported(
                "an update at 2C2P is a PlanChange or a StoredCardChange".to_owned(),
            )),
        }
    }

    pub(super) async fn send_update(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let operation = instruction.operation();
        if let Some(change) = operation.options::<PlanChange>() {
            return self.change_plan(change, instruction).await;
        }
        match operation.options::<StoredCardChange>() {
            Some(change) => self.change_card(change, instruction).await,
            None => Err(Failure::not_executed(
                FailureKind::Unsupported,
                "the operation says no change",
            )),
        }
    }

    pub(super) async fn look_at_update(&self, record: &Record) -> Result<Inquiry, Failure> {
        match record.wire_identity().split_once('/') {
            Some(("plan", rest)) => self.look_at_plan(rest, record).await,
            Some(("card", rest)) => self.look_at_card(rest, record).await,
            _ => Err(no_name()),
        }
    }
}

/// Neither API has a place for these: to drop them without a word would be worse.
pub(super) fn bare(operation: &Operation) -> Result<(), Invalid> {
    let refuse = |field| {
        Err(Invalid::new(
            field,
            "has no place in a change of a plan or a stored card",
        ))
    };
    if operation.description_text().is_some() {
        return refuse("description");
    }
    if !operation.metadata_pairs().is_empty() {
        return refuse("metadata");
    }
    if operation.expiry().is_some() {
        return refuse("expires_at");
    }
    Ok(())
}

/// Would the operation of `record` have asked for this?
pub(super) fn asked_for(record: &Record, change: impl GatewayOptions) -> bool {
    let attempt = NonZeroU32::new(record.attempt());
    let operation = Operation::update(record.reference().as_str(), change);
    operation
        .ok()
        .zip(attempt)
        .is_some_and(|(operation, attempt)| operation.attempt(attempt).fingerprint() == record.fingerprint())
}

/// The failure for a record whose identity was not made here.
pub(super) fn no_name() -> Failure {
    let detail = "the record names no payment plan and no stored card of 2C2P";
    Failure::maybe_executed(FailureKind::Unsupported, detail)
}

#[cfg(test)]
pub(super) mod network;
