//! Rates of exchange that a payer may choose to pay at.

use super::super::TwoC2p;
use super::super::json::{Members, Object};
use super::super::result::money;
use super::nested::{count, is_list, objects};
use super::token::{PaymentToken, Viewer};
use super::{foreign, prints_only};
use crate::clock::Timestamp;
use crate::failure::{Failure, FailureKind};
use crate::money::{Currency, Money};

/// A time in milliseconds since 1970 has as many digits until the year 2286.
const MILLIS_DIGITS: usize = 13;

impl TwoC2p {
    /// Asks what a payment would cost in other currencies (page `api-exchange-rate-with-token`). `bin` is the beginning
    /// of the payer's card number, six to eight digits, and gets the offer for that card.
    ///
    /// Not signed, so good for a screen alone: the rate that holds is the one that the payment reports.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none with code 0000; [`Failure::code`] has 2C2P's. A `bin` of another form is
    /// refused, and nothing is sent then. Nothing was changed.
    pub async fn exchange_rates(
        &self,
        token: &PaymentToken,
        bin: Option<&str>,
        viewer: &Viewer,
    ) -> Result<ExchangeRates, Failure> {
        if bin.is_some_and(|bin| !(6..=8).contains(&bin.len()) || !bin.bytes().all(|byte| byte.is_ascii_digit())) {
            let detail = "bin: must be the first six to eight digits of a card number";
            return Err(Failure::not_executed(FailureKind::Unsupported, detail));
        }
        let body = viewer.body(token).optional("bin", bin).finish();
        let members = self.ask("exchangerate", body).await?.good()?;
        Ok(ExchangeRates::read(&members))
    }

    /// Asks for a provider's rates from `currency` (page `api-exchange-rate`, path `ExchangeRate/secure`), without a
    /// payment. Provider codes stand on the page `reference-codes`.
    ///
    /// Question and answer are signed. An older answer to the same question is signed as well: mind
    /// [`expires_at`](ExchangeRates::expires_at).
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none that is signed, about this merchant and currency, and good; [`Failure::code`]
    /// has 2C2P's. Nothing was changed.
    pub async fn exchange_rates_signed(
        &self,
        provider_code: &str,
        currency: Currency,
    ) -> Result<ExchangeRates, Failure> {
        let mut claims = Object::new();
        claims.text("merchantID", &self.merchant_id);
        claims.text("providerCode", provider_code);
        claims.text("currencyCode", currency.code());
        let members = self.ask_signed("ExchangeRate/secure", &claims.finish()).await?;
        let rates = ExchangeRates::read(&members);
        // The provider is not compared: in 2C2P's own sample the answer names another one than the question.
        let other = rates
            .currency_code
            .as_deref()
            .is_some_and(|theirs| theirs != currency.code());
        if other || !is_list(&members, "fxRates") {
            return Err(foreign("another currency"));
        }
        Ok(rates)
    }
}

/// Rates of exchange (pages `api-exchange-rate-with-token-response-parameter` and
/// `api-exchange-rate-response-parameter`). Signed by 2C2P if they come from
/// [`exchange_rates_signed`](TwoC2p::exchange_rates_signed), and not if from
/// [`exchange_rates`](TwoC2p::exchange_rates).
#[derive(Clone)]
#[non_exhaustive]
pub struct ExchangeRates {
    /// `providerCode`.
    pub provider_code: Option<String>,
    /// `currencyCode`: what the rates convert from. Signed rates alone have it; the others are of the payment's own.
    pub currency_code: Option<String>,
    /// `expire`: until when the offer holds. `None` unless it is thirteen digits, milliseconds since 1970 as in 2C2P's
    /// sample; the page does not name the unit.
    pub expires_at: Option<Timestamp>,
    /// `expire` as it came.
    pub expires_text: Option<String>,
    /// `fxRates`.
    pub rates: Vec<FxRate>,
}

/// One currency.
#[derive(Clone)]
#[non_exhaustive]
pub struct FxRate {
    /// `sequenceNo`: the place in a list on screen.
    pub sequence_no: Option<u32>,
    /// `id`: the offer, for the payment option `fxRateId`.
    pub id: Option<String>,
    /// `name`, for the payer.
    pub name: Option<String>,
    /// `iconUrl`.
    pub icon_url: Option<String>,
    /// `amount` in `currencyCode`: what the payer would pay. Rates without a payment have none.
    pub amount: Option<Money>,
    /// `amount` as it came.
    pub amount_text: Option<String>,
    /// `fx`: the rate, the digits as they came.
    pub rate: Option<String>,
    /// `currencyCode`: what the rate converts to.
    pub currency_code: Option<String>,
}

impl ExchangeRates {
    fn read(members: &Members) -> Self {
        let expires_text = members.text("expire");
        Self {
            provider_code: members.text("providerCode"),
            currency_code: members.text("currencyCode"),
            expires_at: expires_text.as_deref().and_then(instant),
            expires_text,
            rates: objects(members, "fxRates", FxRate::read),
        }
    }
}

impl FxRate {
    fn read(members: &Members) -> Self {
        let text = |name| members.text(name);
        let currency_code = text("currencyCode");
        Self {
            sequence_no: count(members, "sequenceNo"),
            id: text("id"),
            name: text("name"),
            icon_url: text("iconUrl"),
            amount: money(members.raw("amount"), currency_code.as_deref()),
            amount_text: text("amount"),
            rate: text("fx"),
            currency_code,
        }
    }
}

fn instant(text: &str) -> Option<Timestamp> {
    let digits = text.len() == MILLIS_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok().map(Timestamp::from_unix_millis))?
}

prints_only!(ExchangeRates: expires_at, rates);
prints_only!(FxRate: sequence_no, amount);
