//! What 2C2P reports about a stored card, verified and decrypted.

use super::change::{CardExpiry, StoredCardTerms};
use crate::gateway::twoc2p::json::Members;
use crate::secret::Secret;
use crate::transport::scrub;
use std::fmt;

/// A stored card as 2C2P reported it (pages `customer-token-maintenance` and its parameters). Texts are kept as they
/// came, except where it says so; an empty one is `None`.
#[derive(Clone)]
#[non_exhaustive]
pub struct StoredCard {
    /// `token`: pays without the card, for whoever has the merchant's keys.
    pub token: Option<Secret>,
    /// `tokenReference`.
    pub token_reference: Option<String>,
    /// `accountNo`: masked by 2C2P, and scrubbed in case it is not.
    pub account_no: Option<String>,
    /// `name` of the holder.
    pub name: Option<String>,
    /// `email` of the holder.
    pub email: Option<String>,
    /// `expiry` as it came: `2024-02-29`.
    pub expiry_text: Option<String>,
    /// The month in which the card expires.
    pub expiry: Option<CardExpiry>,
    /// `accountIssuer`: the bank.
    pub issuer: Option<String>,
    /// `accountIssuerCountry`: two letters.
    pub issuer_country: Option<String>,
    /// `accountCurrency`: three letters.
    pub currency: Option<String>,
    /// `channelCode`.
    pub channel_code: Option<String>,
    /// `subChannelCode`.
    pub sub_channel_code: Option<String>,
}

impl StoredCard {
    pub(super) fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let expiry_text = text("expiry");
        Self {
            token: text("token").map(Secret::from),
            token_reference: text("tokenReference"),
            account_no: text("accountNo").map(|text| scrub(&text)),
            name: text("name"),
            email: text("email"),
            expiry: expiry_text.as_deref().and_then(CardExpiry::read),
            expiry_text,
            issuer: text("accountIssuer"),
            issuer_country: text("accountIssuerCountry"),
            currency: text("accountCurrency"),
            channel_code: text("channelCode"),
            sub_channel_code: text("subChannelCode"),
        }
    }

    /// What an update would have to state to leave the card as it is, to change some and send all; `None` without a
    /// name or an expiry that can be read.
    #[must_use]
    pub fn terms(&self) -> Option<StoredCardTerms> {
        let mut terms = StoredCardTerms::new(self.name.clone()?, self.expiry?);
        terms.email.clone_from(&self.email);
        terms.issuer.clone_from(&self.issuer);
        terms.issuer_country.clone_from(&self.issuer_country);
        terms.currency.clone_from(&self.currency);
        Some(terms)
    }
}

/// Neither the holder's data nor the token.
impl fmt::Debug for StoredCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCard")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
