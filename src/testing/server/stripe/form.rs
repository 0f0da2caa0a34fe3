//! Reads form-encoded parameters with brackets: `metadata[a]=1&expand[]=x&line_items[0][quantity]=2`.

use super::refusal::Refusal;
use std::collections::BTreeMap;

/// The parameters of one request. Equal when they say the same, in whatever order and encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Params(BTreeMap<String, Param>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Param {
    Text(String),
    Fields(BTreeMap<String, Self>),
}

/// Parameters that an empty value unsets; for all others it is an error.
const MAY_BE_EMPTY: [&str; 2] = ["description", "metadata"];

impl Params {
    /// Reads a body or a query.
    pub(super) fn parse(encoded: &[u8]) -> Result<Self, Refusal> {
        let mut fields = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(encoded) {
            let path = path(&name).ok_or_else(|| Refusal::invalid(Some(&name), "Invalid parameter name."))?;
            insert(&mut fields, &path, value.into_owned())
                .ok_or_else(|| Refusal::invalid(Some(&name), "The parameter is given twice, in two forms."))?;
        }
        for (name, param) in &fields {
            if *param == Param::Text(String::new()) && !MAY_BE_EMPTY.contains(&name.as_str()) {
                let message = format!("You passed an empty string for '{name}'.");
                return Err(Refusal::invalid(Some(name), message).code("parameter_invalid_empty"));
            }
        }
        Ok(Self(fields))
    }

    /// Refuses parameters that the endpoint does not have.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        match self
            .0
            .keys()
            .find(|name| !known.contains(&name.as_str()) && *name != "expand")
        {
            None => Ok(()),
            Some(name) => {
                let message = format!("Received unknown parameter: {name}");
                Err(Refusal::invalid(Some(name), message).code("parameter_unknown"))
            }
        }
    }

    /// The text at `path`: `["payment_method_data", "type"]`. An empty text counts as absent.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        match find(&self.0, path)? {
            Param::Text(text) => Some(text).filter(|text| !text.is_empty()).map(String::as_str),
            Param::Fields(_) => None,
        }
    }

    /// Is there anything at `path`?
    pub(super) fn has(&self, path: &[&str]) -> bool {
        find(&self.0, path).is_some()
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.text(&[name]).ok_or_else(|| {
            Refusal::invalid(Some(name), format!("Missing required param: {name}.")).code("parameter_missing")
        })
    }

    pub(super) fn integer(&self, path: &[&str]) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(path) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if !text.starts_with('+') => Ok(Some(number)),
            _ => {
                let message = format!("Invalid integer: {text}");
                Err(Refusal::invalid(Some(&written(path)), message).code("parameter_invalid_integer"))
            }
        }
    }

    pub(super) fn boolean(&self, path: &[&str]) -> Result<bool, Refusal> {
        match self.text(path) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(Refusal::invalid(
                Some(&written(path)),
                format!("Invalid boolean: {text}"),
            )),
        }
    }

    /// The values of an array, whether written `a[0]=x` or `a[]=x`.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let Some(Param::Fields(fields)) = self.0.get(name) else {
            return Vec::new();
        };
        let mut numbered: Vec<_> = fields
            .iter()
            .filter_map(|(index, param)| match param {
                Param::Text(text) => Some((index.parse::<usize>().ok()?, text.clone())),
                Param::Fields(_) => None,
            })
            .collect();
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, text)| text).collect()
    }

    /// The indexes of an array of hashes, as written.
    pub(super) fn indexes(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Param::Fields(fields)) => fields.keys().cloned().collect(),
            Some(Param::Text(_)) | None => Vec::new(),
        }
    }

    /// The pairs of `metadata` at `path`, within Stripe's limits: 50 of them, names of 40 and values of 500
    /// characters. An empty value is in the map: it unsets.
    pub(super) fn metadata(&self, path: &[&str]) -> Result<BTreeMap<String, String>, Refusal> {
        let mut pairs = BTreeMap::new();
        if let Some(Param::Fields(fields)) = find(&self.0, path) {
            for (name, param) in fields {
                let Param::Text(value) = param else {
                    return Err(Refusal::invalid(Some("metadata"), "Metadata values must be strings."));
                };
                if name.chars().count() > 40 || value.chars().count() > 500 {
                    return Err(Refusal::invalid(Some("metadata"), "Metadata name or value too long."));
                }
                pairs.insert(name.clone(), value.clone());
            }
        }
        if pairs.len() > 50 {
            return Err(Refusal::invalid(Some("metadata"), "More than 50 metadata keys."));
        }
        Ok(pairs)
    }
}

fn find<'a>(fields: &'a BTreeMap<String, Param>, path: &[&str]) -> Option<&'a Param> {
    let (first, rest) = path.split_first()?;
    let param = fields.get(*first)?;
    match param {
        _ if rest.is_empty() => Some(param),
        Param::Fields(fields) => find(fields, rest),
        Param::Text(_) => None,
    }
}

fn written(path: &[&str]) -> String {
    let mut out = String::new();
    for (depth, part) in path.iter().enumerate() {
        if depth == 0 {
            out.push_str(part);
        } else {
            out.push_str(&format!("[{part}]"));
        }
    }
    out
}

/// `a[b][]` as its parts: `a`, `b`, and an empty one.
fn path(name: &str) -> Option<Vec<&str>> {
    let (first, mut rest) = match name.find('[') {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    let mut path = vec![first];
    while !rest.is_empty() {
        let (part, after) = rest.strip_prefix('[')?.split_once(']')?;
        path.push(part);
        rest = after;
    }
    // Eight levels are more than any parameter has; the bound keeps hostile names cheap.
    (!first.is_empty() && path.len() <= 8).then_some(path)
}

fn insert(fields: &mut BTreeMap<String, Param>, path: &[&str], value: String) -> Option<()> {
    let (first, rest) = path.split_first()?;
    let name = if first.is_empty() {
        fields.len().to_string()
    } else {
        (*first).to_owned()
    };
    if rest.is_empty() {
        return fields.insert(name, Param::Text(value)).is_none().then_some(());
    }
    match fields.entry(name).or_insert_with(|| Param::Fields(BTreeMap::new())) {
        Param::Fields(inner) => insert(inner, rest, value),
        Param::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_brackets_in_every_spelling() {
        let params = Params::parse(
            b"amount=2000&metadata[order%5Fid]=o+1&metadata%5Bnote%5D=%E0%B8%A5%26&expand[]=a&expand[]=b&types[1]=y\
              &types[0]=x&line_items[0][price_data][unit_amount]=5&confirm=true&created[gte]=7&description=",
        )
        .unwrap();
        assert_eq!(params.integer(&["amount"]).unwrap(), Some(2000));
        assert_eq!(params.text(&["metadata", "order_id"]), Some("o 1"));
        assert_eq!(params.metadata(&["metadata"]).unwrap()["note"], "ล&");
        assert_eq!(params.list("expand"), ["a", "b"]);
        assert_eq!(params.list("types"), ["x", "y"]);
        assert!(params.boolean(&["confirm"]).unwrap());
        assert_eq!(params.integer(&["created", "gte"]).unwrap(), Some(7));
        assert_eq!(params.indexes("line_items"), ["0"]);
        assert_eq!(params.text(&["description"]), None);
        assert!(params.has(&["description"]));
    }

    #[test]
    fn equal_parameters_are_equal_in_any_order_and_encoding() {
        let one = Params::parse(b"a=1&m[x]=2&m[y]=a%20b").unwrap();
        assert_eq!(one, Params::parse(b"m%5By%5D=a+b&a=1&m[x]=2").unwrap());
        assert_ne!(one, Params::parse(b"a=1&m[x]=2&m[y]=ab").unwrap());
    }

    #[test]
    fn what_is_no_number_or_empty_or_unknown_is_refused_by_name() {
        let refused = |encoded: &[u8]| {
            let params = Params::parse(encoded)?;
            params.only(&["amount", "currency"])?;
            params.integer(&["amount"]).map(|_| ())
        };
        for encoded in [
            "amount=20.00",
            "amount=",
            "amount=1&q=1",
            "amount[a=1",
            "amount=1&amount[a]=1",
            "amount=+1",
        ] {
            assert!(refused(encoded.as_bytes()).is_err(), "{encoded}");
        }
        assert!(refused(b"amount=1&currency=usd&expand[]=x").is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Params::parse(&bytes);
        }
    }
}
