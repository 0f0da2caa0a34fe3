//! The stored cards and accounts that a payment may use.

use super::super::TwoC2p;
use super::super::json::Members;
use super::nested::objects;
use super::prints_only;
use super::token::{PaymentToken, Viewer};
use crate::failure::Failure;
use crate::secret::Secret;
use crate::transport::scrub;

impl TwoC2p {
    /// Lists the stored cards and accounts that the token request named in `customerToken`, for a payer to choose from
    /// (page `api-card-tokens-information`).
    ///
    /// The page speaks of signed messages, while its sample and 2C2P's interface description are plain JSON: the
    /// question is sent plain, and the answer is taken in either form and trusted in neither.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none with code 0000; [`Failure::code`] has 2C2P's. Nothing was changed.
    pub async fn card_token_info(&self, token: &PaymentToken, viewer: &Viewer) -> Result<CardTokenInfo, Failure> {
        let members = self.ask("cardtokeninfo", viewer.body(token).finish()).await?.good()?;
        Ok(CardTokenInfo::read(&members))
    }
}

/// Stored cards and accounts (page `api-card-tokens-information-response-parameter`). Not signed.
#[derive(Clone)]
#[non_exhaustive]
pub struct CardTokenInfo {
    /// `customerToken`, or `cardTokenDetails` before version 4.3.
    pub tokens: Vec<CardToken>,
}

/// One stored card or account.
#[derive(Clone)]
#[non_exhaustive]
pub struct CardToken {
    /// `token` (older `cardToken`): pays without the card.
    pub token: Option<Secret>,
    /// `channelCode`: `CC`, `TRUEMONEY` and others.
    pub channel_code: Option<String>,
    /// `subChannelCode`.
    pub sub_channel_code: Option<String>,
    /// `cardBrand`.
    pub card_brand: Option<String>,
    /// `accountNo` (older `pan`): the masked number, scrubbed in case it is not.
    pub account_no: Option<String>,
    /// `name` (older `cardholderName`).
    pub name: Option<String>,
    /// `email` (older `cardholderEmail`), masked by 2C2P.
    pub email: Option<String>,
    /// `expiry` (older `expiryDate`), as it came: `2021-12-31`, `11/20`, or masked with X.
    pub expiry: Option<String>,
    /// `status`: `A` good, `EX` expires within six months, `ED` expired or disabled.
    pub status: Option<String>,
    /// `iconUrl`.
    pub icon_url: Option<String>,
    /// `logoUrl`.
    pub logo_url: Option<String>,
}

impl CardTokenInfo {
    fn read(members: &Members) -> Self {
        let mut tokens = objects(members, "customerToken", CardToken::read);
        if tokens.is_empty() {
            tokens = objects(members, "cardTokenDetails", CardToken::read);
        }
        Self { tokens }
    }
}

impl CardToken {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        Self {
            token: text("token").or(text("cardToken")).map(Secret::from),
            channel_code: text("channelCode"),
            sub_channel_code: text("subChannelCode"),
            card_brand: text("cardBrand"),
            account_no: text("accountNo").or(text("pan")).map(|text| scrub(&text)),
            name: text("name").or(text("cardholderName")),
            email: text("email").or(text("cardholderEmail")),
            expiry: text("expiry").or(text("expiryDate")),
            status: text("status"),
            icon_url: text("iconUrl"),
            logo_url: text("logoUrl"),
        }
    }
}

prints_only!(CardTokenInfo: tokens);
prints_only!(CardToken: token);
