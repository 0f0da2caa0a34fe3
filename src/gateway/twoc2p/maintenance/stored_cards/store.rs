//! The gateway of new cards.

use super::StoredCardChange;
use super::change::What;
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::maintenance::updates::bare;
use crate::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use crate::operation::{Operation, OperationKey, OperationKind};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::{Absence, Promise, SameKey};
use async_trait::async_trait;
use std::sync::Arc;

/// The name in [`Gateway::name`] and in the journal.
pub(super) const CARDS: &str = "2c2p-cards";

/// The part of a merchant account at 2C2P that stores new cards: a gateway beside the account's own, named
/// `2c2p-cards`, because its promise is another. An add whose answer was lost is never sent again, and nobody can be
/// asked what became of it: it stays unknown.
///
/// ```
/// use payonce::gateway::twoc2p::{CardExpiry, CardStore, NewStoredCard, StoredCardChange, StoredCardTerms, TwoC2p};
/// use payonce::journal::MemoryJournal;
/// use payonce::secret::Secret;
/// use payonce::{Operation, Outcome, Payments};
/// use std::sync::Arc;
///
/// # fn set_up(account: TwoC2p) -> Result<Payments, payonce::operation::Invalid> {
/// let account = Arc::new(account);
/// Payments::builder()
///     .namespace("shop-th/live")
///     .gateway(Arc::clone(&account) as _)
///     .gateway(Arc::new(CardStore::of(account)))
///     .journal(Arc::new(MemoryJournal::new()))
///     .build()
/// # }
///
/// # async fn store(payments: Payments, number: Secret) -> Result<(), Box<dyn std::error::Error>> {
/// let terms = StoredCardTerms::new("A Holder", CardExpiry::new(2030, 12)?);
/// let change = StoredCardChange::add(NewStoredCard::new(number, terms));
/// if let Outcome::Succeeded(stored) = payments.execute(&Operation::update("customer-7/card-1", change)?).await? {
///     let _token = stored.gateway_ref;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CardStore(Arc<TwoC2p>);

impl CardStore {
    /// That of `account`, which needs maintenance keys.
    #[must_use]
    pub const fn of(account: Arc<TwoC2p>) -> Self {
        Self(account)
    }
}

#[async_trait]
impl Gateway for CardStore {
    fn name(&self) -> &'static str {
        CARDS
    }

    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        let change = match (operation.kind(), operation.options::<StoredCardChange>()) {
            (OperationKind::Update, Some(change)) if matches!(change.0, What::Add(_)) => change,
            _ => return Err(Refusal::Unsupported("this gateway stores new cards only".to_owned())),
        };
        bare(operation)?;
        self.0.check_card_change(change)?;
        Ok(Prepared::new(format!("card/add/{key}")))
    }

    /// A second add may be a second token, and nothing finds the first.
    fn promise(&self, _kind: OperationKind) -> Promise {
        Promise::new(SameKey::Executes, Absence::Inconclusive)
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let unsent = || Failure::not_executed(FailureKind::Unsupported, "the operation names no new card");
        let change = instruction
            .operation()
            .options::<StoredCardChange>()
            .ok_or_else(unsent)?;
        self.0.add_card(change, instruction).await.map_err(for_good)
    }

    /// There is no call that could tell.
    async fn inquire(&self, _record: &Record) -> Result<Inquiry, Failure> {
        Ok(Inquiry::Absent { consistent: false })
    }

    fn read_notification(&self, _raw: &RawNotification) -> Result<Notification, NotificationError> {
        Err(NotificationError::Malformed(
            "2C2P announces no stored cards".to_owned(),
        ))
    }
}

/// A failure that may hide a stored card says that it stays so.
fn for_good(failure: Failure) -> Failure {
    if !failure.may_have_executed() {
        return failure;
    }
    let detail = "no usable answer came, and whether the card is stored no call of 2C2P's tells: it is not sent again";
    let mut told = Failure::maybe_executed(failure.kind(), detail)
        .with_retry_after(failure.retry_after())
        .with_retry_advice(Some(false))
        .with_source(failure.clone());
    if let Some(status) = failure.http_status() {
        told = told.with_http_status(status);
    }
    if let Some(code) = failure.code() {
        told = told.with_code(code);
    }
    told
}
