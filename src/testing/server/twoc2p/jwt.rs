//! Compact JWTs with HS256, and claims whose numbers are read as they were written.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The claims of a message, each as its JSON text. Amounts never pass through a float.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Claims(BTreeMap<String, Box<RawValue>>);

impl Claims {
    /// Reads a JSON object.
    pub(super) fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    /// A text that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let raw = self.0.get(name)?.get();
        serde_json::from_str::<String>(raw).ok().filter(|text| !text.is_empty())
    }

    /// A decimal number as it was written, as a JSON number or as a text.
    pub(super) fn decimal(&self, name: &str) -> Option<String> {
        self.text(name).or_else(|| {
            let raw = self.0.get(name)?.get();
            raw.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                .then(|| raw.to_owned())
        })
    }

    /// The object of this name.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }

    /// Is this text among the values of an array?
    pub(super) fn contains(&self, name: &str, text: &str) -> bool {
        let values: Option<Vec<String>> = self.0.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        values.is_some_and(|values| values.iter().any(|value| value == text))
    }

    /// All claims as they were written, by name.
    pub(super) fn fingerprint(&self) -> Vec<(String, String)> {
        self.0
            .iter()
            .map(|(name, raw)| (name.clone(), raw.get().to_owned()))
            .collect()
    }

    /// Is there a value of this name that says something?
    pub(super) fn has(&self, name: &str) -> bool {
        self.0
            .get(name)
            .is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"" | "[]" | "{}"))
    }
}

/// The claims of `{"payload": "<JWT>"}`, when it is signed with `secret`.
pub(super) fn open(body: &[u8], secret: &str) -> Result<Claims, Rejected> {
    let envelope = Claims::parse(body).ok_or(Rejected::Unreadable)?;
    let token = envelope.text("payload").ok_or(Rejected::Unreadable)?;
    let (signed, signature) = token.rsplit_once('.').ok_or(Rejected::Unreadable)?;
    let (header, payload) = signed.split_once('.').ok_or(Rejected::Unreadable)?;
    let header = decode(header)
        .and_then(|json| Claims::parse(&json))
        .ok_or(Rejected::Unreadable)?;
    if header.text("alg").as_deref() != Some("HS256") {
        return Err(Rejected::Signature);
    }
    let signature = decode(signature).ok_or(Rejected::Signature)?;
    hmac::verify(&key(secret), signed.as_bytes(), &signature).map_err(|_| Rejected::Signature)?;
    decode(payload)
        .and_then(|json| Claims::parse(&json))
        .ok_or(Rejected::Unreadable)
}

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    Unreadable,
    Signature,
}

/// `{"payload": "<JWT>"}` over claims that are JSON already.
pub(super) fn seal(claims: &str, secret: &str) -> Vec<u8> {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims));
    let signature = hmac::sign(&key(secret), signed.as_bytes());
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
    format!("{{\"payload\":\"{token}\"}}").into_bytes()
}

/// The secret's printed text is the key, not what it stands for in hexadecimal.
fn key(secret: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes())
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";

    #[test]
    fn numbers_are_kept_as_they_were_written() {
        let sealed = seal(
            r#"{"amount":1000.0000000001,"text":"000000001000.00000","none":null}"#,
            SECRET,
        );
        let claims = open(&sealed, SECRET).unwrap();
        assert_eq!(claims.decimal("amount").as_deref(), Some("1000.0000000001"));
        assert_eq!(claims.decimal("text").as_deref(), Some("000000001000.00000"));
        assert!(claims.decimal("none").is_none() && !claims.has("none"));
    }

    #[test]
    fn opens_what_others_have_signed_and_nothing_else() {
        // A sample of the field cases: amount 1000.00 for TESTM01, signed with its secret as text.
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjEwMDAuMDAsImN1cnJlbmN5Q29kZSI6IlRIQiIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyJ9.QOOjczK-c804iqD666_0OHov6ptFcVgolTklsNqxtUo";
        let body = format!("{{\"payload\":\"{token}\"}}");
        let claims = open(body.as_bytes(), SECRET).unwrap();
        assert_eq!(claims.decimal("amount").as_deref(), Some("1000.00"));
        assert_eq!(open(body.as_bytes(), "another").unwrap_err(), Rejected::Signature);
        let other = seal("{}", SECRET);
        let none = String::from_utf8(other)
            .unwrap()
            .replacen("eyJhbGciOiJIUzI1NiIs", "eyJhbGciOiJub25lIiwi", 1);
        assert!(open(none.as_bytes(), SECRET).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,80}") {
            let _ = open(&bytes, SECRET);
            let _ = open(format!("{{\"payload\":{text:?}}}").as_bytes(), SECRET);
        }
    }
}
