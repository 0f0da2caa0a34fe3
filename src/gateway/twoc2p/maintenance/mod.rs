//! 2C2P's maintenance API: what can be done with a payment after it was made, and with what 2C2P keeps for later ones.
//! XML, encrypted and signed with RSA keys. Payment [`plans`] and [`stored_cards`] have notes of their own.
//!
//! How the promise of this crate is kept there:
//!
//! * Every void, settlement and refund carries the operation's key as `idempotencyID`; 2C2P gives the first answer again
//!   when it is repeated (page `payment-maintenance-refund-guide`). How long it remembers, no page says: so a key is sent
//!   again within an hour only, and a process that comes upon another's operation looks first.
//! * Only what 2C2P has signed and encrypted for this merchant is an answer, and only one about this payment.
//! * Where a code can hide an earlier success, the payment or its list of refunds is looked at before anything is
//!   concluded. Looking moves no money.
//! * A refund is sent only for a payment that 2C2P reports as settled, and a payment is never voided in its place.

mod act;
mod answer;
mod decision;
mod der;
mod envelope;
mod exchange;
mod keys;
mod look;
mod notice;
mod options;
mod passphrase;
mod plans;
mod refunds;
mod request;
mod settings;
mod stored_cards;
mod updates;
mod xml;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use answer::{PaymentStatus, RefundRow};
pub use keys::{KeyError, KeyFault, MaintenanceKeys};
pub use options::ActionOptions;
pub use plans::{ChargeDate, ChargeDay, PaymentPlan, PlanChange, PlanSchedule, PlanStatus, PlanTerms};
pub use stored_cards::{
    CardExpiry, CardStore, NewStoredCard, StoredCard, StoredCardChange, StoredCardTerms, TokenProvider,
};

pub(super) use notice::refund_notice_token;
pub(super) use settings::Settings;

use super::TwoC2p;
use crate::gateway::{Prepared, Refusal};
use crate::operation::{Operation, OperationKey, OperationKind};
use crate::retry::{Absence, AfterAbsence, InquiryBudget, Promise, SameKey, Since};
use std::fmt;
use std::time::Duration;

/// How long a key is sent again. The pages name no end of 2C2P's memory, and no beginning of its forgetting.
const RESENDS: Duration = Duration::from_secs(3600);

/// What is done with a payment can be seen there from then on. Without a source: half an hour of 2C2P's own time-outs
/// and of acquirers' would be long.
const QUIET: Duration = Duration::from_secs(30 * 60);

/// The part of a merchant account that needs RSA keys.
pub(super) struct Maintenance {
    keys: MaintenanceKeys,
    url: String,
    customer_token_url: Option<String>,
    refund_notify_url: Option<String>,
    /// Second opinions have a limit of their own, so that a wave of vague answers does not become a wave of decryptions.
    second_opinions: InquiryBudget,
}

/// What holds when the same key is sent again. A void is always of the whole, and a second one is told so (29). A
/// second settlement or refund of a part would be another one, if the key were forgotten.
pub(super) fn promise(kind: OperationKind) -> Promise {
    let same_key = match kind {
        OperationKind::Update => return updates::promise(),
        OperationKind::Void => SameKey::Refuses,
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Capture | OperationKind::Refund => {
            SameKey::LatestState { within: RESENDS }
        }
    };
    let absence = Absence::After {
        since: Since::LastSend,
        quiet: QUIET,
        looks: 2,
        apart: Duration::from_secs(60),
        then: AfterAbsence::SendAgain,
    };
    Promise::new(same_key, absence)
}

impl TwoC2p {
    pub(super) fn prepare_action(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        if self.maintenance.is_none() {
            let what = format!("{} at 2C2P needs the maintenance API's keys", operation.kind());
            return Err(Refusal::Unsupported(what));
        }
        if operation.kind() == OperationKind::Update {
            return self.prepare_update(key, operation);
        }
        if let Some(amount) = operation.amount() {
            self.check_currency(amount.currency())?;
        }
        let payment_amount = request::check(operation)?;
        // 2C2P keeps `idempotencyID` and invoice numbers apart; the journal does not have to.
        let mut prepared = Prepared::new(key.to_string());
        prepared.payment_amount = payment_amount;
        Ok(prepared)
    }
}

impl fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maintenance")
            .field("url", &self.url)
            .field("customer_token_url", &self.customer_token_url)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
