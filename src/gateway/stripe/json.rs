//! JSON as it stands in an answer: borrowed from its bytes, fields in their order, nothing copied that is not asked for.
//!
//! A PaymentIntent has some fifty fields, of which an outcome needs five. A tree of owned maps would cost more than the
//! exchange of the bytes leaves room for.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A value within a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    /// A fraction, or a whole number that no amount, time or count of Stripe's can be.
    OtherNumber,
    Text(Cow<'a, str>),
    List(Vec<Self>),
    Hash(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Json<'a> {
    /// The value of a field; the last one where a name is repeated.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Hash(fields) = self else { return None };
        fields
            .iter()
            .rev()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value)
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_i64(&self) -> Option<i64> {
        if let Self::Integer(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        if let Self::List(values) = self {
            Some(values)
        } else {
            None
        }
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Hash(_))
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The same value, free of the bytes that it was read from.
    pub(super) fn into_owned(self) -> Json<'static> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Null => Json::Null,
            Self::Bool(flag) => Json::Bool(flag),
            Self::Integer(number) => Json::Integer(number),
            Self::OtherNumber => Json::OtherNumber,
            Self::Text(text) => Json::Text(own(text)),
            Self::List(values) => Json::List(values.into_iter().map(Self::into_owned).collect()),
            Self::Hash(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (own(name), value.into_owned()));
                Json::Hash(fields.collect())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Json::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(Json::OtherNumber, Json::Integer))
    }

    fn visit_f64<E>(self, _number: f64) -> Result<Self::Value, E> {
        Ok(Json::OtherNumber)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = access.next_element()? {
            values.push(value);
        }
        Ok(Json::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Name(name), value)) = access.next_entry()? {
            fields.push((name, value));
        }
        Ok(Json::Hash(fields))
    }
}

/// The name of a field. `Cow` on its own is always read into an owned text.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Text(text) => Ok(Self(text)),
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::OtherNumber | Json::List(_) | Json::Hash(_) => {
                Err(serde::de::Error::custom("a name that is not a text"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_stands_there() {
        let text = r#"{"a":1,"b":[true,null,"x\u00e9",-2,1.5,18446744073709551615],"a":"last","c":{"d":{}}}"#;
        let json: Json<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(json.get("a").unwrap().as_str(), Some("last"));
        let list = json.get("b").unwrap().as_array().unwrap();
        assert_eq!(list[0].as_bool(), Some(true));
        assert!(list[1].is_null());
        assert_eq!(list[2].as_str(), Some("xé"));
        assert_eq!(list[3].as_i64(), Some(-2));
        assert_eq!((list[4].as_i64(), list[5].as_i64()), (None, None));
        assert!(json.get("c").unwrap().get("d").unwrap().is_object());
        assert_eq!(json.clone().into_owned(), json);
        assert!(
            serde_json::from_str::<Json<'_>>(&"[".repeat(10_000)).is_err(),
            "depth is bounded"
        );
    }

    proptest! {
        #[test]
        fn reads_the_same_as_serde_json_and_never_panics(text in ".*") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            prop_assert_eq!(serde_json::from_str::<Json<'_>>(&text).is_ok(), theirs.is_ok());
        }
    }
}
