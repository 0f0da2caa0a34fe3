//! Form bodies and query strings as Stripe reads them: `a[b][c]=v`, lists with explicit indexes, order as written.
//!
//! An empty value *unsets* a field at Stripe (api/metadata), so what is absent must leave no trace: absent values and
//! empty lists are dropped when they are put in.

use std::fmt;
use url::form_urlencoded::byte_serialize;

/// Named fields in the order in which they were put. The same fields in the same order give the same bytes.
#[derive(Clone, Default)]
pub(super) struct Form {
    fields: Vec<(String, Field)>,
}

/// What a field holds.
#[derive(Clone)]
pub(super) enum Field {
    /// Left out.
    Nothing,
    Text(String),
    List(Vec<Self>),
    Hash(Form),
}

impl Form {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a field, unless it is absent.
    pub(super) fn put(mut self, name: impl Into<String>, field: impl Into<Field>) -> Self {
        let field = field.into();
        if !field.is_nothing() {
            self.fields.push((name.into(), field));
        }
        self
    }

    /// Adds the fields of another form after those of this one.
    pub(super) fn append(mut self, other: Self) -> Self {
        self.fields.extend(other.fields);
        self
    }

    /// The encoded bytes, which are ASCII.
    pub(super) fn encode(&self) -> String {
        let (mut out, mut name) = (String::with_capacity(256), String::new());
        self.walk(&mut out, &mut name);
        out
    }

    /// Both official encoders leave the brackets of the structure as they are and escape everything else.
    fn walk(&self, out: &mut String, name: &mut String) {
        let outer = name.len();
        for (inner, field) in &self.fields {
            if outer == 0 {
                name.extend(byte_serialize(inner.as_bytes()));
            } else {
                name.push('[');
                name.extend(byte_serialize(inner.as_bytes()));
                name.push(']');
            }
            field.walk(out, name);
            name.truncate(outer);
        }
    }
}

impl Field {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(_) => false,
            Self::List(fields) => fields.iter().all(Self::is_nothing),
            Self::Hash(form) => form.fields.is_empty(),
        }
    }

    fn walk(&self, out: &mut String, name: &mut String) {
        match self {
            Self::Nothing => {}
            Self::Text(text) => {
                if !out.is_empty() {
                    out.push('&');
                }
                out.push_str(name);
                out.push('=');
                out.extend(byte_serialize(text.as_bytes()));
            }
            Self::List(fields) => {
                let outer = name.len();
                for (index, field) in fields.iter().filter(|field| !field.is_nothing()).enumerate() {
                    name.push_str(&format!("[{index}]"));
                    field.walk(out, name);
                    name.truncate(outer);
                }
            }
            Self::Hash(form) => form.walk(out, name),
        }
    }
}

/// Names only: values may be tokens.
impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.fields.iter().map(|(name, _)| name))
            .finish()
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Field {
    fn from(number: i64) -> Self {
        Self::Text(number.to_string())
    }
}

impl From<bool> for Field {
    fn from(flag: bool) -> Self {
        Self::Text(flag.to_string())
    }
}

impl From<Form> for Field {
    fn from(form: Form) -> Self {
        Self::Hash(form)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Field {
    fn from(fields: Vec<T>) -> Self {
        Self::List(fields.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Self>> From<Option<T>> for Field {
    fn from(field: Option<T>) -> Self {
        field.map_or(Self::Nothing, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn decode(form: &Form) -> Vec<(String, String)> {
        url::form_urlencoded::parse(form.encode().as_bytes())
            .into_owned()
            .collect()
    }

    fn field(value: &Value) -> Field {
        match value {
            Value::Null => Field::Nothing,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number) => number.to_string().into(),
            Value::String(text) => text.as_str().into(),
            Value::Array(items) => Field::List(items.iter().map(field).collect()),
            Value::Object(map) => map
                .iter()
                .fold(Form::new(), |form, (name, value)| form.put(name, field(value)))
                .into(),
        }
    }

    /// From the official encoders of Python and Node; compared on decoded pairs. A JSON object has no order here, so
    /// both sides are sorted; that the order is kept is the next test's subject.
    #[test]
    fn agrees_with_the_official_encoders() {
        let vectors = include_str!("../../../tests/fixtures/stripe/form_encoding.json");
        let vectors: Value = serde_json::from_str(vectors).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 13);
        for case in cases {
            let Field::Hash(form) = field(&case["params"]) else {
                panic!("{case}");
            };
            let mut ours = decode(&form);
            let mut theirs: Vec<(String, String)> = serde_json::from_value(case["decoded_pairs"].clone()).unwrap();
            ours.sort();
            theirs.sort();
            assert_eq!(ours, theirs, "{}", case["name"]);
        }
    }

    #[test]
    fn c44_what_base64_has_is_percent_encoded() {
        assert_eq!(Form::new().put("token", "ab+/cd==").encode(), "token=ab%2B%2Fcd%3D%3D");
    }

    #[test]
    fn keeps_the_order_and_leaves_no_trace_of_what_is_absent() {
        let form = Form::new()
            .put("b", 2000)
            .put("nothing", None::<&str>)
            .put("empty_list", Vec::<&str>::new())
            .put("gap", vec![None, Some("after")])
            .put("empty_hash", Form::new())
            .put(
                "a",
                Form::new()
                    .put("z", true)
                    .put("y", None::<i64>)
                    .put("x", vec!["1 2", "&"]),
            )
            .put("unset", "");
        assert_eq!(
            form.encode(),
            "b=2000&gap[0]=after&a[z]=true&a[x][0]=1+2&a[x][1]=%26&unset="
        );
        assert!(!format!("{form:?}").contains("2000"));
    }

    proptest! {
        #[test]
        fn any_text_survives(name in "[^\\[\\]]{1,20}", value in ".{0,60}") {
            let form = Form::new().put("m", Form::new().put(name.clone(), value.clone()));
            prop_assert_eq!(decode(&form), vec![(format!("m[{name}]"), value)]);
            prop_assert!(form.encode().is_ascii());
        }
    }
}
