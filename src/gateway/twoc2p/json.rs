//! JSON as it goes to 2C2P, byte for byte the same each time, and as it comes from there, where numbers and strings
//! stand for each other.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Writes one object, members in the order of the calls.
#[derive(Debug)]
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    /// A member whose value is JSON already.
    pub(super) fn raw(&mut self, name: &str, json: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quote(name));
        self.0.push(':');
        self.0.push_str(json);
        self
    }

    pub(super) fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.raw(name, &quote(text))
    }

    pub(super) fn optional(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(name, text);
        }
        self
    }

    pub(super) fn finish(&self) -> String {
        format!("{}}}", self.0)
    }
}

/// `text` as a JSON string.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `items`, each JSON already, as a JSON array.
pub(super) fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// An object from outside: each member as the JSON text that came.
#[derive(Debug)]
pub(super) struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    /// Reads an object; a UTF-8 byte order mark in front, which some services add, is passed over.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        serde_json::from_slice(bytes).ok().map(Self)
    }

    /// The JSON text of a member; `None` where it is absent. A null is `null`.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get())
    }

    /// A string as it is, a number as it was written. Null, the empty string and whatever else is `None`: 2C2P sends
    /// all three for "no value".
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        match raw.as_bytes().first()? {
            b'"' => serde_json::from_str(raw).ok().filter(|text: &String| !text.is_empty()),
            b'-' | b'0'..=b'9' | b't' | b'f' => Some(raw.to_owned()),
            _ => None,
        }
    }

    /// A string, and nothing that is not one.
    pub(super) fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn writes_members_in_the_order_of_the_calls() {
        let mut object = Object::new();
        assert_eq!(object.finish(), "{}");
        object
            .text("b", "\"\n\u{e9}")
            .raw("a", "1.50")
            .optional("c", None)
            .optional("d", Some(""));
        assert_eq!(object.finish(), "{\"b\":\"\\\"\\n\u{e9}\",\"a\":1.50,\"d\":\"\"}");
        assert_eq!(array(["1".to_owned(), quote("x")]), "[1,\"x\"]");
    }

    #[test]
    fn reads_texts_and_numbers_alike() {
        let members = Members::parse(
            b"\xEF\xBB\xBF{\"a\":\"05\",\"b\":9100001,\"c\":null,\"d\":\"\",\"e\":{},\"f\":false,\"g\":0.30000,\"h\":1e3}",
        )
        .unwrap();
        let text = |name| members.text(name);
        assert_eq!(text("a").unwrap(), "05");
        assert_eq!(text("b").unwrap(), "9100001");
        assert_eq!(text("f").unwrap(), "false");
        assert_eq!(text("g").unwrap(), "0.30000");
        assert_eq!(text("h").unwrap(), "1e3");
        for name in ["c", "d", "e", "z"] {
            assert_eq!(text(name), None, "{name}");
        }
        assert_eq!(members.raw("c"), Some("null"));
        assert_eq!(members.string("b"), None);
        for bytes in [
            b"[]".as_slice(),
            b"null",
            b"\"a\"",
            b"{",
            b"",
            b"{}{}",
            b"\xFF\xFE{\0}\0",
        ] {
            assert!(Members::parse(bytes).is_none(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(members) = Members::parse(&bytes) {
                let _ = members.text("a");
            }
        }

        #[test]
        fn every_text_survives(name in ".{0,20}", text in ".{1,200}") {
            let mut object = Object::new();
            object.text(&name, &text);
            let members = Members::parse(object.finish().as_bytes()).unwrap();
            prop_assert_eq!(members.text(&name), Some(text));
        }
    }
}
