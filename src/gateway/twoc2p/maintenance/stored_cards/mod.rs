//! Stored cards: the customer token API 3.0 (pages `customer-token-maintenance` and its parameters), JSON in the same
//! envelope as the rest of the maintenance API. Nothing of it moves money.
//!
//! How the promise of this crate is kept there:
//!
//! * Reading a card takes no operation and no journal. What changes one is an operation with a [`StoredCardChange`].
//! * 2C2P has no id for a request here and lists no tokens. So a lost answer to an add may leave a token that nobody
//!   knows, and nobody can find out; whether a second add makes a second token, no page says. An add that may have been
//!   executed is never sent again: it stays unknown, and whoever needs the token stores the card under another
//!   reference. The port lets a gateway promise one thing for all updates, so that adds have a gateway of their own, the
//!   [`CardStore`].
//! * An update and a delete name a token. To repeat one is harmless until somebody makes another change, and so it is
//!   sent again within ten minutes only. After a lost answer the card is read.
//! * Of the response codes only `0000` is published. No other ends an operation or proves anything.
//! * The number of a card is in the request, sealed, and nowhere else: not in the journal, and in its fingerprint only
//!   with its last four digits. The token that an add returns is the outcome's `gateway_ref`, and that of a change is in
//!   the record's identity. It is 2C2P's own id of the card, and pays nothing without the merchant's keys.

mod card;
mod change;
mod store;

pub use card::StoredCard;
pub use change::{CardExpiry, NewStoredCard, StoredCardChange, StoredCardTerms, TokenProvider};
pub use store::CardStore;

use super::updates::{asked_for, no_name};
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::TwoC2p;
use crate::gateway::twoc2p::codes::Api;
use crate::gateway::twoc2p::json::{Members, Object};
use crate::gateway::twoc2p::response::doubtful;
use crate::gateway::{Inquiry, Prepared, Refusal};
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::{Evidence, Outcome, Succeeded};
use crate::record::{Instruction, Record};
use crate::secret::Secret;
use crate::transport::scrub;
use change::{What, check_text};
use std::time::Duration;

impl TwoC2p {
    /// Reads the stored card behind `token` (`/get`). Nothing is recorded.
    ///
    /// # Errors
    /// A [`Failure`]: no keys or no address for the customer token API, no answer, none that 2C2P has made for this
    /// merchant about this token, or one with another code than `0000`, which [`Failure::code`] then has. Nothing was
    /// changed.
    pub async fn stored_card(&self, token: &Secret) -> Result<StoredCard, Failure> {
        check_text("token", token.expose())
            .map_err(|invalid| Failure::not_executed(FailureKind::Unsupported, invalid.to_string()))?;
        let mut question = Object::new();
        question
            .text("merchantID", &self.merchant_id)
            .text("token", token.expose());
        let members = self.exchange_card("get", question.finish(), None).await?;
        about(&members, token)?;
        Ok(StoredCard::read(&members))
    }

    /// For a change of a card that is there. The identity has its token, by which it can be read.
    pub(super) fn prepare_card_change(
        &self,
        key: OperationKey,
        change: &StoredCardChange,
    ) -> Result<Prepared, Refusal> {
        let Some(token) = change.token() else {
            let what = "a new card is stored through the gateway CardStore";
            return Err(Refusal::Unsupported(what.to_owned()));
        };
        self.check_card_change(change)?;
        Ok(Prepared::new(format!(
            "card/{}/{}/{key}",
            token.expose(),
            change.word()
        )))
    }

    fn check_card_change(&self, change: &StoredCardChange) -> Result<(), Refusal> {
        let url = self
            .maintenance
            .as_ref()
            .map(|maintenance| &maintenance.customer_token_url);
        match url {
            Some(Some(_)) => Ok(change.check()?),
            Some(None) => Err(Refusal::Unsupported(NO_ADDRESS.to_owned())),
            None => Err(Refusal::Unsupported("the account has no maintenance keys".to_owned())),
        }
    }

    /// One request.
    pub(super) async fn change_card(
        &self,
        change: &StoredCardChange,
        instruction: &Instruction,
    ) -> Result<Outcome, Failure> {
        let unsent = || Failure::not_executed(FailureKind::Unsupported, "a new card is stored through CardStore");
        let token = change.token().ok_or_else(unsent)?;
        let timeout = Some(instruction.timeout());
        let members = self
            .exchange_card(change.word(), change.json(&self.merchant_id), timeout)
            .await?;
        about(&members, token)?;
        Ok(done(&members, token))
    }

    /// What became of a change: `rest` is the identity after `card/`.
    pub(super) async fn look_at_card(&self, rest: &str, record: &Record) -> Result<Inquiry, Failure> {
        let mut parts = rest.rsplitn(3, '/').skip(1);
        let (Some(word), Some(token)) = (parts.next(), parts.next()) else {
            return Err(no_name());
        };
        // Any code but 0000 is a failure here. That of a token which is not there is not published.
        let card = self.stored_card(&Secret::from(token)).await?;
        match word {
            "delete" => Ok(Inquiry::Absent { consistent: true }),
            "update" => {
                let is_wanted = |terms| asked_for(record, StoredCardChange::update(token, terms));
                let wanted = card.terms().is_some_and(is_wanted);
                Ok(if wanted {
                    let mut succeeded = Succeeded::new(None);
                    succeeded.gateway_ref = Some(GatewayRef::new(token));
                    Inquiry::Found(Outcome::Succeeded(succeeded))
                } else {
                    // It may have had them, and others since.
                    Inquiry::Absent { consistent: false }
                })
            }
            _ => Err(no_name()),
        }
    }

    /// Stores a new card. Only [`CardStore`] may call this, whose promise keeps the engine from doing so twice.
    async fn add_card(&self, change: &StoredCardChange, instruction: &Instruction) -> Result<Outcome, Failure> {
        let What::Add(card) = &change.0 else {
            return Err(Failure::not_executed(FailureKind::Unsupported, "not a new card"));
        };
        let timeout = Some(instruction.timeout());
        let members = self
            .exchange_card("add", change.json(&self.merchant_id), timeout)
            .await?;
        let unreadable = |what: &str| {
            let detail = format!("2C2P's answer is authentic and {what}");
            Err(Failure::maybe_executed(FailureKind::Unreadable, detail)
                .with_http_status(200)
                .with_code("0000"))
        };
        // Of what was sent, this is all that the answer gives back: the token of another card must not be taken for it.
        let masked = members.text("accountNo");
        if let (Some(masked), Some(last)) = (masked, card.last_four())
            && !masked.ends_with(last)
        {
            return unreadable("about another card");
        }
        match members.text("token") {
            Some(token) if check_text("token", &token).is_ok() => Ok(done(&members, &Secret::from(token))),
            _ => unreadable("names no token"),
        }
    }

    /// Sends `body` to `/{path}` and returns the members of an answer with code 0000 for this merchant.
    async fn exchange_card(&self, path: &str, body: String, timeout: Option<Duration>) -> Result<Members, Failure> {
        let unsent = |detail: &str| Failure::not_executed(FailureKind::Unsupported, detail);
        let missing = || unsent("the account has no maintenance keys");
        let maintenance = self.maintenance.as_ref().ok_or_else(missing)?;
        let url = maintenance
            .customer_token_url
            .as_ref()
            .ok_or_else(|| unsent(NO_ADDRESS))?;
        let url = format!("{}/{path}", url.trim_end_matches('/'));
        let answer = self.exchange_sealed(&url, body.as_bytes(), timeout).await?;
        let unreadable = |what: &str| {
            let detail = format!("2C2P's answer is authentic and {what}");
            Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200)
        };
        let members = Members::parse(&answer).ok_or_else(|| unreadable("cannot be read"))?;
        let merchant = members.text("merchantID");
        match members.text("responseCode").as_deref() {
            None => Err(doubtful(FailureKind::Unreadable, Api::CustomerToken, None, 200)),
            Some("0000") if merchant.as_ref() == Some(&self.merchant_id) => Ok(members),
            Some("0000") => Err(unreadable("names another merchant, or none").with_code("0000")),
            // The same request would bring the same answer.
            Some(code) => {
                let failure = doubtful(FailureKind::ServerFault, Api::CustomerToken, Some(code), 200);
                Err(failure.with_retry_advice(Some(false)))
            }
        }
    }
}

const NO_ADDRESS: &str = "the account has no address of the customer token API";

/// Is the answer about this token?
fn about(members: &Members, token: &Secret) -> Result<(), Failure> {
    if members.text("token").as_deref() == Some(token.expose()) {
        return Ok(());
    }
    let detail = "2C2P's answer is authentic and names another token, or none";
    let failure = Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200);
    Err(failure.with_code("0000"))
}

fn done(members: &Members, token: &Secret) -> Outcome {
    let mut succeeded = Succeeded::new(None);
    succeeded.gateway_ref = Some(GatewayRef::new(token.expose()));
    succeeded.evidence = Evidence {
        http_status: Some(200),
        code: members.text("responseCode").map(|code| scrub(&code)),
        message: members.text("responseDesc").map(|text| scrub(&text)),
        ..Evidence::default()
    };
    Outcome::Succeeded(succeeded)
}

#[cfg(test)]
mod tests;
