//! One member of a message: its value, and what 2C2P takes there.

use crate::gateway::twoc2p::amount;
use crate::gateway::twoc2p::json::{Object, array, quote};
use crate::money::{Currency, Money};
use crate::operation::{Canonical, Invalid};
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::fmt;

/// Members by their names on the wire, which is also the order in which they are written.
#[derive(Clone, Default)]
pub(in crate::gateway::twoc2p) struct Members(BTreeMap<&'static str, (Value, Rule)>);

#[derive(Clone)]
pub(super) enum Value {
    Text(String),
    /// One of the letters that the page lists.
    Code(&'static str),
    Secret(Secret),
    Flag(bool),
    Number(u32),
    Amount(Money),
    /// JSON written by the caller.
    Json(String),
    Object(Members),
    List(Vec<Self>),
}

/// What a value must be, each entry of a list for itself.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Nothing beyond its type.
    Free,
    /// So many characters, at least and at most.
    Chars(usize, usize),
    /// Exactly so many ASCII digits.
    Digits(usize),
    /// At most this number.
    UpTo(u32),
    /// 5 to 20 characters, some excluded: it appears on statements.
    Descriptor,
    /// An amount that need not be in the operation's currency.
    AnyCurrency,
    /// An absolute http or https address.
    Url,
}

impl Members {
    pub(super) fn put(&mut self, name: &'static str, value: Value, rule: Rule) {
        self.0.insert(name, (value, rule));
    }

    /// A text of at most `most` characters, where there is one.
    pub(super) fn text(&mut self, name: &'static str, text: Option<&str>, most: usize) {
        if let Some(text) = text {
            self.put(name, Value::Text(text.to_owned()), Rule::Chars(1, most));
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn is_code(&self, name: &str, letter: &str) -> bool {
        matches!(self.0.get(name), Some((Value::Code(code), _)) if *code == letter)
    }

    pub(super) fn is_flag(&self, name: &str, flag: bool) -> bool {
        matches!(self.0.get(name), Some((Value::Flag(value), _)) if *value == flag)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Only the members of these names.
    pub(super) fn only(&self, names: &[&str]) -> Self {
        let wanted = self.0.iter().filter(|(name, _)| names.contains(name));
        Self(wanted.map(|(name, member)| (*name, member.clone())).collect())
    }

    /// Checks every member and writes it. `currency` is the operation's.
    pub(super) fn write(&self, out: &mut Object, currency: Currency) -> Result<(), Invalid> {
        for (name, (value, rule)) in &self.0 {
            out.raw(name, &value.json(name, *rule, currency)?);
        }
        Ok(())
    }

    pub(super) fn canonical(&self, out: &mut Canonical) {
        for (name, (value, _)) in &self.0 {
            value.canonical(name, out);
        }
        out.put("", "");
    }
}

/// Names only: the values are the payer's, or secret.
impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Value {
    fn json(&self, name: &'static str, rule: Rule, currency: Currency) -> Result<String, Invalid> {
        let refuse = |reason: &str| Err(Invalid::new(name, reason));
        match self {
            Self::Text(text) => checked(name, text, rule).map(quote),
            Self::Secret(secret) => checked(name, secret.expose(), rule).map(quote),
            Self::Code(letter) => Ok(quote(letter)),
            Self::Flag(flag) => Ok(flag.to_string()),
            Self::Number(number) => {
                if let Rule::UpTo(most) = rule
                    && *number > most
                {
                    return Err(Invalid::new(name, format!("must be at most {most}")));
                }
                Ok(number.to_string())
            }
            Self::Amount(money) if money.currency() != currency && !matches!(rule, Rule::AnyCurrency) => {
                refuse("must be in the currency of the operation")
            }
            Self::Amount(money) => amount::to_wire(name, *money),
            Self::Json(json) => match serde_json::from_str::<&serde_json::value::RawValue>(json) {
                Ok(value) => Ok(value.get().to_owned()),
                Err(_) => refuse("is not JSON"),
            },
            Self::Object(members) => {
                let mut object = Object::new();
                members.write(&mut object, currency)?;
                Ok(object.finish())
            }
            Self::List(values) if values.is_empty() => refuse("must not be an empty list"),
            Self::List(values) => {
                let items: Result<Vec<_>, _> = values.iter().map(|value| value.json(name, rule, currency)).collect();
                Ok(array(items?))
            }
        }
    }

    fn canonical(&self, name: &str, out: &mut Canonical) {
        match self {
            Self::Text(text) | Self::Json(text) => out.put(name, text),
            Self::Secret(secret) => out.put(name, secret.expose()),
            Self::Code(letter) => out.put(name, letter),
            Self::Flag(flag) => out.put(name, if *flag { "true" } else { "false" }),
            Self::Number(number) => out.number(name, i64::from(*number)),
            Self::Amount(money) => out.put(name, &money.to_string()),
            Self::Object(members) => {
                out.put(name, "{");
                members.canonical(out);
            }
            Self::List(values) => {
                out.put(name, "[");
                values.iter().for_each(|value| value.canonical("-", out));
                out.put("", "");
            }
        }
    }
}

fn checked<'a>(name: &'static str, text: &'a str, rule: Rule) -> Result<&'a str, Invalid> {
    let length = text.chars().count();
    let (fits, what) = match rule {
        Rule::Chars(least, most) => (
            (least..=most).contains(&length),
            format!("must have {least} to {most} characters"),
        ),
        Rule::Digits(exactly) => (
            length == exactly && text.bytes().all(|byte| byte.is_ascii_digit()),
            format!("must be {exactly} digits"),
        ),
        Rule::Descriptor => (
            (5..=20).contains(&length) && !text.contains(['<', '>', '\\', '\'', '"', '*']),
            "must have 5 to 20 characters, none of < > \\ ' \" *".to_owned(),
        ),
        Rule::Url => (is_web_address(text), "must be an absolute http or https URL".to_owned()),
        Rule::Free | Rule::UpTo(_) | Rule::AnyCurrency => (true, String::new()),
    };
    if fits { Ok(text) } else { Err(Invalid::new(name, what)) }
}

/// An address that a browser opens as a page, and nothing that it would run.
pub(in crate::gateway::twoc2p) fn is_web_address(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
}
