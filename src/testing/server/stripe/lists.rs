//! Lists with cursors, the search index, and expansion.

use super::form::Params;
use super::objects::{Intent, Row, Table};
use super::refusal::Refusal;
use super::world::{Call, World};
use serde_json::{Value, json};

const LIST: [&str; 4] = ["created", "ending_before", "limit", "starting_after"];

/// One page of a list, newest first, filtered by `created` and by `keep`.
pub(super) fn page<T: Row>(
    table: &Table<T>,
    url: &str,
    call: &Call,
    filters: &[&str],
    keep: impl Fn(&T) -> bool,
) -> Result<Value, Refusal> {
    let params = &call.params;
    let known: Vec<&str> = LIST.iter().chain(filters).copied().collect();
    params.only(&known)?;
    let created = Created::read(params)?;
    let limit = limit(params)?;
    let mut rows: Vec<&T> = table
        .all()
        .rev()
        .filter(|row| row.account() == call.account && created.contains(row.created().unix_seconds()) && keep(row))
        .collect();
    let position = |rows: &[&T], name: &'static str| match params.text(&[name]) {
        None => Ok(None),
        Some(id) => match rows.iter().position(|row| row.id() == id) {
            Some(at) => Ok(Some(at)),
            None => Err(Refusal::no_such("object", id, name)),
        },
    };
    let mut more = false;
    if let Some(at) = position(&rows, "ending_before")? {
        rows.truncate(at);
        let first = rows.len().saturating_sub(limit);
        more = first > 0;
        rows.drain(..first);
    } else if let Some(at) = position(&rows, "starting_after")? {
        rows.drain(..=at);
    }
    more = more || rows.len() > limit;
    rows.truncate(limit);
    let data: Vec<Value> = rows.into_iter().map(Row::json).collect();
    Ok(json!({ "object": "list", "url": url, "has_more": more, "data": data }))
}

/// `GET /v1/payment_intents/search`: what the index knew some time ago decides, and the present object is shown.
pub(super) fn search(world: &World, call: &Call) -> Result<Value, Refusal> {
    let params = &call.params;
    params.only(&["limit", "page", "query"])?;
    let query = Query::parse(params.required("query")?)?;
    let limit = limit(params)?;
    let known = world.now().before(world.settings.search_lag);
    let hit = |intent: &&Intent| {
        let indexed = intent.indexed.iter().rev().find(|(since, _)| *since <= known);
        intent.account == call.account && indexed.is_some_and(|(_, snapshot)| query.matches(snapshot))
    };
    let hits: Vec<Value> = world.intents.all().rev().filter(hit).map(Row::json).collect();
    let start = params
        .integer(&["page"])?
        .and_then(|page| usize::try_from(page).ok())
        .unwrap_or(0);
    let more = hits.len() > start.saturating_add(limit);
    let data: Vec<Value> = hits.into_iter().skip(start).take(limit).collect();
    Ok(json!({
        "object": "search_result",
        "url": "/v1/payment_intents/search",
        "has_more": more,
        "next_page": more.then(|| (start + limit).to_string()),
        "data": data,
    }))
}

/// What can be expanded. The last three can be at Stripe, and stay ids here.
const EXPANDABLE: [&str; 6] = [
    "charge",
    "latest_charge",
    "payment_intent",
    "balance_transaction",
    "customer",
    "payment_method",
];

/// Refuses what cannot be expanded, before anything is executed.
pub(super) fn check_expand(params: &Params) -> Result<(), Refusal> {
    for path in params.list("expand") {
        let parts: Vec<&str> = path.split('.').collect();
        let known = |part: &&str| *part == "data" || EXPANDABLE.contains(part);
        if parts.len() > 4 || !parts.iter().all(known) {
            let message = format!("This property cannot be expanded ({path}).");
            return Err(Refusal::invalid(Some("expand"), message));
        }
    }
    Ok(())
}

/// Puts objects in the place of their ids, as `expand` asks.
pub(super) fn expand(world: &World, call: &Call, answer: &mut Value) {
    for path in call.params.list("expand") {
        let parts: Vec<&str> = path.split('.').collect();
        expand_one(world, answer, &parts);
    }
}

fn expand_one(world: &World, value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let Some(field) = value.get_mut(*first) else {
        return;
    };
    if let Some(rows) = field.as_array_mut() {
        rows.iter_mut().for_each(|row| expand_one(world, row, rest));
        return;
    }
    let object = match (*first, field.as_str()) {
        ("latest_charge" | "charge", Some(id)) => world.charges.get(id).map(Row::json),
        ("payment_intent", Some(id)) => world.intents.get(id).map(Row::json),
        _ => None,
    };
    if let Some(object) = object {
        *field = object;
    }
    expand_one(world, field, rest);
}

fn limit(params: &Params) -> Result<usize, Refusal> {
    match params.integer(&["limit"])?.unwrap_or(10) {
        limit @ 1..=100 => Ok(usize::try_from(limit).unwrap_or(10)),
        _ => Err(Refusal::invalid(Some("limit"), "limit must be between 1 and 100")),
    }
}

/// A range of seconds.
struct Created {
    from: i64,
    to: i64,
}

impl Created {
    fn read(params: &Params) -> Result<Self, Refusal> {
        if let Some(exact) = params.integer(&["created"])? {
            return Ok(Self { from: exact, to: exact });
        }
        let bound = |name| params.integer(&["created", name]);
        let mut range = Self {
            from: bound("gte")?.unwrap_or(i64::MIN),
            to: bound("lte")?.unwrap_or(i64::MAX),
        };
        if let Some(after) = bound("gt")? {
            range.from = range.from.max(after.saturating_add(1));
        }
        if let Some(before) = bound("lt")? {
            range.to = range.to.min(before.saturating_sub(1));
        }
        Ok(range)
    }

    fn contains(&self, seconds: i64) -> bool {
        (self.from..=self.to).contains(&seconds)
    }
}

/// Clauses that must all hold: `metadata['order']:'1' AND status:'succeeded' AND created>1`.
struct Query(Vec<Clause>);

struct Clause {
    negated: bool,
    field: Vec<String>,
    operator: char,
    value: String,
}

impl Query {
    fn parse(text: &str) -> Result<Self, Refusal> {
        let mut rest = text.trim();
        let mut clauses = Vec::new();
        loop {
            let (clause, after) = Clause::parse(rest)
                .ok_or_else(|| Refusal::invalid(Some("query"), "The search query could not be read."))?;
            clauses.push(clause);
            let after = after.trim_start();
            if after.is_empty() {
                return Ok(Self(clauses));
            }
            rest = after
                .strip_prefix("AND ")
                .ok_or_else(|| Refusal::invalid(Some("query"), "The fake joins clauses of a search by AND only."))?;
        }
    }

    fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|clause| clause.matches(object) != clause.negated)
    }
}

impl Clause {
    fn parse(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start();
        let (negated, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let end = text.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
        let (name, mut rest) = text.split_at(end);
        let mut field = vec![name.to_owned()];
        if let Some(inner) = rest.strip_prefix('[') {
            let (part, after) = quoted(inner)?;
            field.push(part);
            rest = after.strip_prefix(']')?;
        }
        let operator = rest.chars().next().filter(|c| matches!(c, ':' | '~' | '>' | '<'))?;
        let rest = &rest[1..];
        let (value, rest) = match quoted(rest) {
            Some(found) => found,
            None => {
                let end = rest.find(' ').unwrap_or(rest.len());
                let (value, rest) = rest.split_at(end);
                (value.to_owned(), rest)
            }
        };
        let clause = Self {
            negated,
            field,
            operator,
            value,
        };
        (!name.is_empty()).then_some((clause, rest))
    }

    fn matches(&self, object: &Value) -> bool {
        let found = self.field.iter().try_fold(object, |value, part| value.get(part));
        let found = found.filter(|value| !value.is_null());
        let text = found.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let number = || Some((found?.as_i64()?, self.value.parse::<i64>().ok()?));
        match self.operator {
            ':' if self.value == "null" => text.is_none(),
            ':' => text.as_deref() == Some(self.value.as_str()),
            '~' => text.is_some_and(|text| text.contains(&self.value)),
            '>' => number().is_some_and(|(found, asked)| found > asked),
            _ => number().is_some_and(|(found, asked)| found < asked),
        }
    }
}

/// A text in single or double quotes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let (inner, rest) = text[1..].split_once(quote)?;
    Some((inner.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn queries_find_what_they_say() {
        let object = json!({ "status": "succeeded", "amount": 2000, "currency": "usd", "metadata": { "op": "o-1" } });
        for (query, expected) in [
            ("metadata['op']:'o-1'", true),
            ("metadata[\"op\"]:\"o-1\" AND currency:'usd'", true),
            ("metadata['op']:'o-2'", false),
            ("metadata['other']:null", true),
            ("-status:'succeeded'", false),
            ("metadata['op']~'o-' AND amount>1999 AND amount<2001", true),
            ("amount>2000", false),
            ("amount:2000", true),
        ] {
            let parsed = Query::parse(query).unwrap_or_else(|_| panic!("{query}"));
            assert_eq!(parsed.matches(&object), expected, "{query}");
        }
        for query in ["", "status", "status:'x' OR amount>1", "status:'x", "metadata[op]:'1'"] {
            let parsed = Query::parse(query).map(|query| query.matches(&object));
            assert!(!matches!(parsed, Ok(true)), "{query}");
        }
    }

    proptest! {
        #[test]
        fn no_query_makes_it_panic(text in ".{0,60}") {
            let _ = Query::parse(&text).map(|query| query.matches(&json!({})));
        }
    }
}
