//! What can be done with stored cards, as options of an operation.

use super::store::CARDS;
use crate::gateway::twoc2p::NAME;
use crate::gateway::twoc2p::json::Object;
use crate::operation::{Canonical, GatewayOptions, Invalid};
use crate::secret::Secret;
use std::fmt;

/// Type AN 255 of tokens and account numbers.
const LONGEST: usize = 255;

/// From this length on, the last four characters of an account number say as little of it as a receipt does.
const NUMBER: usize = 12;

/// A change of the cards that 2C2P stores for the merchant. It moves no money.
///
/// An [`add`](Self::add) goes through the gateway [`CardStore`](super::CardStore), the others through
/// [`TwoC2p`](crate::gateway::twoc2p::TwoC2p) itself.
#[derive(Clone)]
pub struct StoredCardChange(pub(super) What);

#[derive(Clone)]
pub(super) enum What {
    Add(NewStoredCard),
    Update(Secret, StoredCardTerms),
    Delete(Secret),
}

impl StoredCardChange {
    /// Stores a card. The outcome's `gateway_ref` is its token.
    #[must_use]
    pub fn add(card: NewStoredCard) -> Self {
        Self(What::Add(card))
    }

    /// Gives a stored card these terms, in the place of all that it had.
    #[must_use]
    pub fn update(token: impl Into<Secret>, terms: StoredCardTerms) -> Self {
        Self(What::Update(token.into(), terms))
    }

    /// Deletes a stored card.
    #[must_use]
    pub fn delete(token: impl Into<Secret>) -> Self {
        Self(What::Delete(token.into()))
    }

    /// The last part of the address, and the word in the identity.
    pub(super) fn word(&self) -> &'static str {
        match self.0 {
            What::Add(_) => "add",
            What::Update(..) => "update",
            What::Delete(_) => "delete",
        }
    }

    /// The token that it is about, where there is one already.
    pub(super) fn token(&self) -> Option<&Secret> {
        match &self.0 {
            What::Add(_) => None,
            What::Update(token, _) | What::Delete(token) => Some(token),
        }
    }

    pub(super) fn check(&self) -> Result<(), Invalid> {
        match &self.0 {
            What::Add(card) => {
                card.terms.check()?;
                check_text("accountNo", card.account_no.expose())
            }
            What::Update(token, terms) => {
                terms.check()?;
                check_text("token", token.expose())
            }
            What::Delete(token) => check_text("token", token.expose()),
        }
    }

    /// The request, members in the order of the samples.
    pub(super) fn json(&self, merchant_id: &str) -> String {
        let mut out = Object::new();
        out.text("merchantID", merchant_id);
        match &self.0 {
            What::Add(card) => {
                out.text("accountNo", card.account_no.expose());
                card.terms.write(&mut out);
                out.text("tokenProvider", card.provider.as_str());
            }
            What::Update(token, terms) => {
                out.text("token", token.expose());
                terms.write(&mut out);
            }
            What::Delete(token) => {
                out.text("token", token.expose());
            }
        }
        out.finish()
    }
}

impl GatewayOptions for StoredCardChange {
    fn gateway(&self) -> &'static str {
        match self.0 {
            What::Add(_) => CARDS,
            What::Update(..) | What::Delete(_) => NAME,
        }
    }

    /// Of a new card's number its length and its last four digits alone: the fingerprint is stored, and of a hash with
    /// all of the number the number could be found by trying. So two cards that share both look alike under one
    /// reference. Tokens are in the record's identity anyway.
    fn canonical(&self, out: &mut Canonical) {
        out.put("storedCard", self.word());
        match &self.0 {
            What::Add(card) => {
                let number = card.account_no.expose();
                out.put("accountNo.length", &number.len().to_string());
                out.optional("accountNo.last", last_four(number));
                out.put("tokenProvider", card.provider.as_str());
                card.terms.canonical(out);
            }
            What::Update(token, terms) => {
                out.put("token", token.expose());
                terms.canonical(out);
            }
            What::Delete(token) => out.put("token", token.expose()),
        }
    }
}

/// What is done, and nothing of the card.
impl fmt::Debug for StoredCardChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoredCardChange").field(&self.word()).finish()
    }
}

/// A card to be stored. Whoever handles its number is in the scope of PCI DSS; 2C2P's page, on which the payer stores a
/// card with a payment, keeps you out of it.
#[derive(Clone)]
pub struct NewStoredCard {
    account_no: Secret,
    terms: StoredCardTerms,
    provider: TokenProvider,
}

impl NewStoredCard {
    /// `account_no` (`accountNo`) is the whole number of the card, or a token of somebody else's: at most 255
    /// characters.
    #[must_use]
    pub fn new(account_no: impl Into<Secret>, terms: StoredCardTerms) -> Self {
        Self {
            account_no: account_no.into(),
            terms,
            provider: TokenProvider::Card,
        }
    }

    /// What kind of number it is; that of a card without this.
    #[must_use]
    pub const fn provider(mut self, provider: TokenProvider) -> Self {
        self.provider = provider;
        self
    }

    pub(super) fn last_four(&self) -> Option<&str> {
        last_four(self.account_no.expose())
    }
}

/// Nothing of the card.
impl fmt::Debug for NewStoredCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewStoredCard")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// `tokenProvider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenProvider {
    /// `CC`: the number of a card.
    Card,
    /// `MA`: a token of Mastercard's.
    Mastercard,
}

impl TokenProvider {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Card => "CC",
            Self::Mastercard => "MA",
        }
    }
}

/// What 2C2P keeps with a card. An update states all of it: whether 2C2P keeps or clears what a request leaves out, no
/// page says; [`StoredCard::terms`](super::StoredCard::terms) has what is there. Personal data: it goes to 2C2P and is
/// stored nowhere here.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredCardTerms {
    /// `name` of the holder, at most 50 characters.
    pub name: String,
    /// `expiry` of the card.
    pub expiry: CardExpiry,
    /// `email` of the holder, at most 50 characters.
    pub email: Option<String>,
    /// `accountIssuer`: the bank, at most 50 characters.
    pub issuer: Option<String>,
    /// `accountIssuerCountry`: two letters, ISO 3166.
    pub issuer_country: Option<String>,
    /// `accountCurrency`: three letters, ISO 4217.
    pub currency: Option<String>,
}

impl StoredCardTerms {
    /// Holder and expiry; the rest is set on the fields.
    #[must_use]
    pub fn new(name: impl Into<String>, expiry: CardExpiry) -> Self {
        Self {
            name: name.into(),
            expiry,
            email: None,
            issuer: None,
            issuer_country: None,
            currency: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let chars = |field, text: Option<&str>| match text.map(|text| text.chars().count()) {
            Some(0 | 51..) => Err(Invalid::new(field, "must have 1 to 50 characters")),
            _ => Ok(()),
        };
        let letters = |field, text: Option<&str>, count: usize| {
            let fits = |text: &str| text.len() == count && text.bytes().all(|byte| byte.is_ascii_uppercase());
            let refuse = || Invalid::new(field, format!("must be {count} capital letters"));
            text.is_none_or(fits).then_some(()).ok_or_else(refuse)
        };
        chars("name", Some(&self.name))?;
        chars("email", self.email.as_deref())?;
        chars("accountIssuer", self.issuer.as_deref())?;
        letters("accountIssuerCountry", self.issuer_country.as_deref(), 2)?;
        letters("accountCurrency", self.currency.as_deref(), 3)?;
        CardExpiry::new(self.expiry.year, self.expiry.month).map(|_| ())
    }

    fn write(&self, out: &mut Object) {
        out.text("name", &self.name)
            .optional("email", self.email.as_deref())
            .text("expiry", &self.expiry.to_wire())
            .optional("accountIssuer", self.issuer.as_deref())
            .optional("accountIssuerCountry", self.issuer_country.as_deref())
            .optional("accountCurrency", self.currency.as_deref());
    }

    fn canonical(&self, out: &mut Canonical) {
        out.put("name", &self.name);
        out.put("expiry", &self.expiry.to_wire());
        out.optional("email", self.email.as_deref());
        out.optional("accountIssuer", self.issuer.as_deref());
        out.optional("accountIssuerCountry", self.issuer_country.as_deref());
        out.optional("accountCurrency", self.currency.as_deref());
    }
}

/// Nothing of the holder.
impl fmt::Debug for StoredCardTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCardTerms").finish_non_exhaustive()
    }
}

/// The month in which a card expires. It is sent as the last day of that month, to which 2C2P moves any other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct CardExpiry {
    /// 2000 to 2099.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
}

impl CardExpiry {
    /// That month.
    ///
    /// # Errors
    /// [`Invalid`] for a month that does not exist, or not in this century.
    pub fn new(year: u16, month: u8) -> Result<Self, Invalid> {
        let known = (2000..=2099).contains(&year) && (1..=12).contains(&month);
        let refuse = || Invalid::new("expiry", "is no month of the years 2000 to 2099");
        known.then_some(Self { year, month }).ok_or_else(refuse)
    }

    /// Reads `yyyy-MM-dd`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let date: Vec<&str> = text.split('-').collect();
        let [year, month, day] = date[..] else { return None };
        let sizes = (year.len(), month.len(), day.len()) == (4, 2, 2);
        let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let expiry = Self::new(year.parse().ok()?, month.parse().ok()?).ok()?;
        (sizes && digits && (1..=expiry.last_day()).contains(&day.parse().ok()?)).then_some(expiry)
    }

    fn to_wire(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.last_day())
    }

    /// Every fourth year of these hundred is a leap year, 2000 as well.
    const fn last_day(self) -> u8 {
        match self.month {
            2 if self.year.is_multiple_of(4) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

/// A card's expiry is card data.
impl fmt::Debug for CardExpiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CardExpiry(..)")
    }
}

/// Of what is long enough to be a card number.
fn last_four(number: &str) -> Option<&str> {
    let from = number.len().checked_sub(4)?;
    (number.len() >= NUMBER).then(|| number.get(from..)).flatten()
}

pub(super) fn check_text(field: &'static str, text: &str) -> Result<(), Invalid> {
    let fits = (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    let refuse = || Invalid::new(field, "must be 1 to 255 printable ASCII characters");
    fits.then_some(()).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_expiry_is_the_last_day_of_its_month() {
        for (year, month, text) in [
            (2024, 2, "2024-02-29"),
            (2023, 2, "2023-02-28"),
            (2030, 4, "2030-04-30"),
            (2030, 12, "2030-12-31"),
        ] {
            let expiry = CardExpiry::new(year, month).unwrap();
            assert_eq!(expiry.to_wire(), text);
            assert_eq!(CardExpiry::read(text), Some(expiry));
        }
        assert_eq!(CardExpiry::read("2024-02-01"), CardExpiry::new(2024, 2).ok());
        for text in [
            "2023-02-29",
            "2024-2-01",
            "2024-13-01",
            "02/24",
            "1999-01-01",
            "+024-02-01",
            "2024-02-0๑",
            "",
        ] {
            assert_eq!(CardExpiry::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,12}", date in "[0-9]{4}-[0-9]{2}-[0-9]{2}") {
            let _ = (CardExpiry::read(&text), CardExpiry::read(&date), last_four(&text));
        }
    }
}
