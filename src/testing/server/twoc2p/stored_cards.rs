//! The customer token API, version 3.0: JSON in the envelope of the maintenance API, to store cards and manage them.
//! It moves no money, and knows no `idempotencyID`: a card that is added twice is there twice.

use super::FakeTwoC2p;
use super::endpoints::Merchant;
use super::envelope::GATEWAY;
use super::invoices::description;
use super::jwt::Claims;
use crate::testing::server::{LoggedRequest, Reply};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

const PREFIX: &str = "/customertoken/3.0/CustomerToken";

/// The members of the parameter page beside `merchantID`, and the most characters that each may have.
const MEMBERS: [(&str, usize); 9] = [
    ("token", 255),
    ("tokenProvider", 15),
    ("accountNo", 255),
    ("name", 50),
    ("expiry", 10),
    ("email", 50),
    ("accountIssuer", 50),
    ("accountIssuerCountry", 2),
    ("accountCurrency", 3),
];
/// What an answer repeats of a card, beside its masked number.
const ECHOED: [&str; 6] = [
    "name",
    "email",
    "expiry",
    "accountIssuer",
    "accountIssuerCountry",
    "accountCurrency",
];

#[derive(Debug, Default)]
pub(super) struct Cards {
    /// By token. Numbers are kept masked.
    by_token: BTreeMap<String, BTreeMap<&'static str, String>>,
    added: u32,
    told: VecDeque<(String, String)>,
}

/// What is done with a stored card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Add,
    Update,
    Get,
    Delete,
}

impl Action {
    const ALL: [(Self, &str); 4] = [
        (Self::Add, "add"),
        (Self::Update, "update"),
        (Self::Get, "get"),
        (Self::Delete, "delete"),
    ];

    fn of(path: &str) -> Option<(Self, &'static str)> {
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let (folder, name) = path.rsplit_once('/')?;
        Self::ALL
            .into_iter()
            .find(|(_, known)| folder.eq_ignore_ascii_case(PREFIX) && known.eq_ignore_ascii_case(name))
    }

    fn mandatory(self) -> &'static [&'static str] {
        match self {
            Self::Add => &["tokenProvider"],
            Self::Update => &["token", "name", "expiry"],
            Self::Get | Self::Delete => &["token"],
        }
    }
}

impl Cards {
    fn do_it(&mut self, action: Action, claims: &Claims) -> Result<String, &'static str> {
        let members = read(action, claims)?;
        let token = claims.text("token").unwrap_or_default();
        match action {
            Action::Add => {
                self.added += 1;
                let token = format!("26102015500318{:04}", self.added);
                self.by_token.insert(token.clone(), members);
                Ok(token)
            }
            Action::Update => {
                // What is left out is kept: no page says that it is cleared.
                self.by_token.get_mut(&token).ok_or("9202")?.extend(members);
                Ok(token)
            }
            Action::Get if self.by_token.contains_key(&token) => Ok(token),
            Action::Get => Err("9202"),
            Action::Delete => self.by_token.remove(&token).map(|_| token).ok_or("9202"),
        }
    }

    fn take_told(&mut self, action: &str) -> Option<String> {
        let at = self.told.iter().position(|(told, _)| told == action)?;
        self.told.remove(at).map(|(_, code)| code)
    }
}

impl Merchant {
    /// A request to one of the four addresses; `None` when it is to another.
    pub(super) fn stored_cards(&self, request: &LoggedRequest, breaks: bool) -> Option<Reply> {
        let (action, name) = Action::of(&request.path).filter(|_| request.method == "POST")?;
        let Some(json) = GATEWAY.open(&request.body) else {
            // Not described; the maintenance API's addresses answer so when keys are not registered.
            return Some(Reply::new(401).html("<html><head><title>401 - Unauthorized</title></head></html>"));
        };
        let mut books = self.books();
        let told = books.cards.take_told(name);
        let done = match told.as_deref() {
            Some(code) => Err(code),
            None => self.claims(&json).and_then(|claims| books.cards.do_it(action, &claims)),
        };
        if breaks {
            return Some(
                Reply::new(500)
                    .header("Content-Type", "text/plain")
                    .body("Internal Server Error"),
            );
        }
        let mut answer = Map::new();
        let mut put = |name: &str, value: &str| answer.insert(name.to_owned(), Value::from(value));
        put("merchantID", &self.id);
        let code = match &done {
            Ok(token) => {
                put("token", token);
                if let Some(card) = books.cards.by_token.get(token) {
                    put("tokenReference", "");
                    put("accountNo", card.get("accountNo").map_or("", String::as_str));
                    for name in ECHOED {
                        put(name, card.get(name).map_or("", String::as_str));
                    }
                    put("channelCode", "");
                    put("subChannelCode", "");
                }
                "0000"
            }
            Err(code) => code,
        };
        put("responseCode", code);
        put("responseDesc", description(code));
        let sealed = GATEWAY.seal(&Value::Object(answer).to_string());
        Some(
            Reply::new(200)
                .header("Content-Type", "text/plain; charset=utf-8")
                .body(sealed),
        )
    }

    fn claims(&self, json: &str) -> Result<Claims, &'static str> {
        let claims = Claims::parse(json.as_bytes()).ok_or("9900")?;
        match claims.text("merchantID") {
            None => Err("9005"),
            Some(merchant) if merchant != self.id => Err("9007"),
            Some(_) => Ok(claims),
        }
    }
}

/// Does a request to this path only look?
pub(super) fn only_looks(path: &str) -> bool {
    Action::of(path).is_some_and(|(action, _)| action == Action::Get)
}

/// The members of a request but its token, checked.
fn read(action: Action, claims: &Claims) -> Result<BTreeMap<&'static str, String>, &'static str> {
    if action.mandatory().iter().any(|name| claims.text(name).is_none()) {
        return Err("9005");
    }
    let mut members = BTreeMap::new();
    for (name, most) in MEMBERS {
        let Some(text) = claims.text(name) else {
            continue;
        };
        if text.chars().count() > most {
            return Err("9006");
        }
        match name {
            "token" => continue,
            "expiry" => members.insert(name, last_of_month(&text).ok_or("9004")?),
            "accountNo" => members.insert(name, masked(&text)),
            _ => members.insert(name, text),
        };
    }
    Ok(members)
}

/// Cards expire on the last day of the month, whichever day was sent: `2024-02-01` comes back as `2024-02-29`.
fn last_of_month(text: &str) -> Option<String> {
    let date = jiff::civil::Date::strptime("%Y-%m-%d", text)
        .ok()
        .filter(|_| text.len() == 10)?;
    Some(date.last_of_month().strftime("%Y-%m-%d").to_string())
}

/// `411111XXXXXX1111`. What is too short for that is hidden as a whole.
fn masked(number: &str) -> String {
    let characters: Vec<char> = number.chars().collect();
    let hidden = |at: usize| at >= 6 && at + 4 < characters.len() || characters.len() < 12;
    let mask = |(at, character): (usize, &char)| if hidden(at) { 'X' } else { *character };
    characters.iter().enumerate().map(mask).collect()
}

/// Stored cards.
impl FakeTwoC2p {
    /// What stands in the place of `https://pgw.2c2p.com/customertoken/3.0/CustomerToken`, before `/add`, `/update`,
    /// `/get` and `/delete`. The keys are those of the maintenance API.
    #[must_use]
    pub fn customer_token_url(&self) -> String {
        format!("{}{PREFIX}", self.server.url())
    }

    /// The tokens of the cards that are stored now, oldest first.
    #[must_use]
    pub fn stored_cards(&self) -> Vec<String> {
        self.merchant.books().cards.by_token.keys().cloned().collect()
    }

    /// The next request of this action (`add`, `update`, `get`, `delete`) is answered with this `responseCode` and
    /// *not* executed. Several are used up in their order.
    pub fn next_stored_card_code(&self, action: &str, code: &str) {
        let told = (action.to_owned(), code.to_owned());
        self.merchant.books().cards.told.push_back(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_masked_and_cards_last_to_the_end_of_their_month() {
        assert_eq!(masked("4111111111111111"), "411111XXXXXX1111");
        assert_eq!(masked("12345"), "XXXXX");
        assert_eq!(last_of_month("2024-02-01").as_deref(), Some("2024-02-29"));
        for text in ["2024-02", "2024-02-30", "01-02-2024", ""] {
            assert_eq!(last_of_month(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_no_number_is_kept(text in ".{0,40}", number in "[0-9]{0,19}") {
            let _ = last_of_month(&text);
            let _ = Action::of(&text);
            prop_assert_eq!(masked(&text).chars().count(), text.chars().count());
            prop_assert!(number.len() < 6 || masked(&number) != number);
        }
    }
}
