//! Objects and lists inside an answer. What has another form than expected is left out, never an error: the rest of a
//! screen can still be shown.

use super::super::json::Members;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A member that is an object.
pub(super) fn object(members: &Members, name: &str) -> Option<Members> {
    Members::parse(members.raw(name)?.as_bytes())
}

/// The objects of a member that is a list; other elements are passed over.
pub(super) fn objects<T>(members: &Members, name: &str, read: impl Fn(&Members) -> T) -> Vec<T> {
    let elements = elements(members, name).unwrap_or_default();
    let objects = elements.iter().filter_map(|json| Members::parse(json.get().as_bytes()));
    objects.map(|object| read(&object)).collect()
}

/// The texts of a member that is a list, or that is one text; numbers as they were written.
pub(super) fn texts(members: &Members, name: &str) -> Vec<String> {
    let Some(elements) = elements(members, name) else {
        return members.text(name).into_iter().collect();
    };
    let text = |json: &RawValue| match serde_json::from_str::<String>(json.get()) {
        Ok(text) => Some(text),
        Err(_) => json
            .get()
            .starts_with(|first: char| first.is_ascii_digit())
            .then(|| json.get().to_owned()),
    };
    elements.iter().filter_map(|json| text(json)).collect()
}

/// Whether a member is a list at all.
pub(super) fn is_list(members: &Members, name: &str) -> bool {
    elements(members, name).is_some()
}

/// The members of an object whose names are not fixed, where they are texts.
pub(super) fn text_map(members: &Members, name: &str) -> BTreeMap<String, String> {
    let Some(object) = members.raw(name) else {
        return BTreeMap::new();
    };
    let object: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).unwrap_or_default();
    let texts = object.into_iter().filter_map(|(name, json)| {
        let text = serde_json::from_str(json.get()).ok()?;
        Some((name, text))
    });
    texts.collect()
}

/// A number of things: digits, as a number or a text.
pub(super) fn count(members: &Members, name: &str) -> Option<u32> {
    members.text(name)?.parse().ok()
}

/// True or false, as JSON or as a text.
pub(super) fn flag(members: &Members, name: &str) -> Option<bool> {
    members.text(name)?.parse().ok()
}

/// The JSON text of a member that says something.
pub(super) fn json(members: &Members, name: &str) -> Option<String> {
    let raw = members.raw(name)?;
    (!matches!(raw, "null" | "\"\"")).then(|| raw.to_owned())
}

fn elements(members: &Members, name: &str) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(members.raw(name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_form_is_left_out() {
        let members = Members::parse(
            br#"{"list":[{"a":"1"},null,3,"x",{"a":2},[{}]],"texts":["4",54,null,{},"","x"],"one":"SGD",
                "map":{"cardNo":"M","x":null,"y":1},"n":"07","big":4294967296,"minus":-1,"yes":true,"no":"false",
                "word":"maybe","null":null,"empty":"","object":{"a":1}}"#,
        )
        .unwrap();
        let read = |object: &Members| object.text("a").unwrap();
        assert_eq!(objects(&members, "list", read), ["1", "2"]);
        for name in ["one", "null", "object", "absent"] {
            assert!(objects(&members, name, read).is_empty(), "{name}");
            assert!(!is_list(&members, name), "{name}");
        }
        assert_eq!(texts(&members, "texts"), ["4", "54", "", "x"]);
        assert_eq!(texts(&members, "one"), ["SGD"]);
        assert!(texts(&members, "object").is_empty());
        assert_eq!(
            text_map(&members, "map"),
            BTreeMap::from([("cardNo".to_owned(), "M".to_owned())])
        );
        assert!(text_map(&members, "list").is_empty());
        assert_eq!(count(&members, "n"), Some(7));
        assert_eq!((count(&members, "big"), count(&members, "minus")), (None, None));
        assert_eq!((flag(&members, "yes"), flag(&members, "no")), (Some(true), Some(false)));
        assert_eq!(flag(&members, "word"), None);
        assert_eq!((json(&members, "null"), json(&members, "empty")), (None, None));
        assert_eq!(json(&members, "object").unwrap(), "{\"a\":1}");
        assert_eq!(object(&members, "object").unwrap().text("a").unwrap(), "1");
        assert!(object(&members, "list").is_none());
    }
}
