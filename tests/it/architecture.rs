//! The layers of the crate as a table, and the rules of ARCHITECTURE.md as tests. What cannot be seen in the code is an
//! absence: here it is written down, and a new edge has to be added to the table on purpose.

mod complaints;
mod source;

use source::{Source, Target, Token, Tree, What, is_within, paths};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// A part of the crate: a module with all that lies in it, as far as no other line of the table says otherwise.
struct Room {
    /// `*` stands for any one name: a new gateway needs no line here.
    module: &'static str,
    /// It may use rooms of lower layers, and itself.
    layer: u8,
    /// The outside crates that it may name, or parts of them.
    may_name: &'static [&'static str],
}

const fn room(layer: u8, module: &'static str, may_name: &'static [&'static str]) -> Room {
    Room {
        module,
        layer,
        may_name,
    }
}

/// What an adapter to a gateway works with: JSON, forms, signatures, dates; no network.
const WIRE: &[&str] = &[
    "async_trait",
    "aws_lc_rs::hmac",
    "base64",
    "httpdate",
    "jiff",
    "serde",
    "serde_json",
    "thiserror",
    "tracing",
    "url",
];

#[rustfmt::skip]
const TABLE: &[Room] = &[
    room(0, "money",            &["iso_currency", "thiserror"]),
    room(0, "secret",           &["secrecy"]),
    room(0, "clock",            &["async_trait", "jiff", "tokio::time"]),
    room(0, "failure",          &["thiserror"]),
    room(1, "operation",        &["uuid", "aws_lc_rs::digest", "thiserror"]),
    room(2, "outcome",          &["thiserror"]),
    room(2, "error",            &["thiserror"]),
    room(3, "record",           &[]),
    room(4, "retry",            &[]),
    room(4, "retry::schedule",  &["backoff", "aws_lc_rs::rand"]),
    room(5, "gateway",          &["async_trait", "thiserror"]),
    room(5, "gateway::notification", &["base64", "serde", "serde_json"]),
    room(5, "journal",          &["async_trait", "thiserror"]),
    room(5, "journal::row",     &["serde", "serde_json"]),
    room(5, "transport",        &["async_trait", "flate2", "httpdate", "reqwest", "thiserror", "tracing", "url", "webpki_root_certs"]),
    room(6, "engine",           &["aws_lc_rs::rand", "thiserror", "tokio::pin", "tokio::spawn", "tokio::sync", "tracing"]),
    room(6, "gateway::*",       WIRE),
    room(6, "gateway::twoc2p::maintenance", &["aws_lc_rs", "quick_xml", "rustls_pki_types", "secrecy"]),
    room(6, "journal::*",       &["async_trait", "thiserror"]),
    room(6, "journal::sqlite",  &["rusqlite", "tokio::sync", "tokio::task", "tracing"]),
    room(7, "inbound",          &["thiserror", "tracing"]),
    room(7, "reconcile",        &["tokio::task", "tracing"]),
    room(8, "testing",          &["async_trait", "aws_lc_rs", "base64", "bytes", "http_body_util", "httpdate", "hyper", "hyper_util",
                                  "jiff", "quick_xml", "rustls_pki_types", "serde", "serde_json", "thiserror", "tokio", "tracing", "url", "uuid"]),
];

/// These know gateways and journals only through their ports.
const BLIND: &[&str] = &["engine", "inbound", "reconcile"];

/// What reaches out of the process, or knows the date, in the standard library: where it may be named.
const WORLD: &[(&str, &[&str])] = &[
    ("std::env", &["testing"]),
    ("std::fs", &["journal", "testing"]),
    ("std::net", &["transport", "testing"]),
    ("std::process", &["engine", "testing"]),
    ("std::thread", &["journal", "testing"]),
    ("std::time::SystemTime", &["clock", "testing"]),
];

const LONGEST_FILE: usize = 600;

#[test]
fn every_module_has_a_layer() {
    holds(homeless);
}

#[test]
fn modules_use_lower_layers_only() {
    holds(upward_uses);
}

#[test]
fn engine_inbound_and_reconcile_name_no_gateway_and_no_journal() {
    holds(sighted_uses);
}

#[test]
fn adapters_name_neither_each_other_nor_the_engine() {
    holds(adapters_that_know_too_much);
}

#[test]
fn the_lower_layers_do_no_io_and_do_not_wait() {
    holds(waiting_below);
    holds(world_in_the_wrong_room);
}

#[test]
fn outside_crates_are_named_where_the_table_says() {
    holds(foreign_names);
    holds(unknown_crates);
}

#[test]
fn only_transport_sends_and_only_the_engine_s_record_learns() {
    holds(other_senders);
    holds(other_learners);
}

#[test]
fn no_type_of_a_dependency_is_in_the_public_interface() {
    holds(leaked_types);
}

#[test]
fn testing_is_used_by_tests_only() {
    holds(uses_of_testing);
}

#[test]
fn the_crate_root_only_declares() {
    holds(logic_in_the_root);
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let mut complaints = Vec::new();
    for folder in ["src", "tests", "examples", "benches"] {
        for (path, text) in rust_files(folder) {
            complaints.extend(too_long(&path, text.lines().count()));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn no_test_is_left_out() {
    let files = ["src", "tests"].into_iter().flat_map(rust_files);
    let complaints: Vec<String> = files.flat_map(|(path, text)| left_out(&path, &text)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

// The rules. Each returns its complaints.

fn homeless(tree: &Tree) -> Vec<String> {
    let modules = tree.sources.iter().filter(|source| !source.module.is_empty());
    modules
        .filter(|source| home(&source.module).is_none())
        .map(|source| {
            format!(
                "{}: module {} has no layer: add it to TABLE",
                source.path, source.module
            )
        })
        .collect()
}

fn upward_uses(tree: &Tree) -> Vec<String> {
    own_uses(tree, |user, used| {
        let (from, to) = (home(user)?, home(used)?);
        let allowed = from.family == to.family || to.layer < from.layer;
        (!allowed).then(|| {
            format!(
                "{} (layer {}) uses {} (layer {})",
                from.family, from.layer, to.family, to.layer
            )
        })
    })
}

fn sighted_uses(tree: &Tree) -> Vec<String> {
    let mut complaints = own_uses(tree, |user, used| {
        (is_blind(user) && is_adapter(used)).then(|| format!("{user} names the adapter {used}"))
    });
    // Not even by a word: a text that is compared with a gateway's name would be a name all the same.
    let adapters: BTreeSet<&str> = tree
        .sources
        .iter()
        .filter(|source| is_adapter(&source.module))
        .filter_map(|source| source.module.split("::").nth(1))
        .chain(["stripe", "2c2p", "sqlite"])
        .filter(|name| *name != "memory")
        .collect();
    for source in tree.sources.iter().filter(|source| is_blind(&source.module)) {
        for token in &source.tokens {
            let (What::Word(text) | What::Text(text)) = &token.what else {
                continue;
            };
            let text = text.to_ascii_lowercase();
            for adapter in adapters.iter().filter(|adapter| text.contains(*adapter)) {
                complaints.push(at(source, token.line, &format!("the word {adapter}")));
            }
        }
    }
    complaints
}

fn adapters_that_know_too_much(tree: &Tree) -> Vec<String> {
    own_uses(tree, |user, used| {
        let other_adapter = is_adapter(used) && home(user)?.family != home(used)?.family;
        (is_adapter(user) && (other_adapter || is_blind(used))).then(|| format!("the adapter {user} names {used}"))
    })
}

fn waiting_below(tree: &Tree) -> Vec<String> {
    let low = |source: &&Source| home(&source.module).is_some_and(|home| home.layer <= 4 && home.family != "clock");
    let mut complaints = Vec::new();
    for source in tree.sources.iter().filter(low) {
        for token in &source.tokens {
            if token.is("async") || token.is("await") {
                complaints.push(at(source, token.line, "async below layer 5"));
            }
        }
    }
    complaints
}

fn world_in_the_wrong_room(tree: &Tree) -> Vec<String> {
    outside_uses(tree, |user, used| {
        let (part, _) = WORLD
            .iter()
            .filter(|(part, _)| is_within(used, part))
            .find(|(_, rooms)| !rooms.iter().any(|room| is_within(user, room)))?;
        Some(format!("{user} names {part}"))
    })
}

fn foreign_names(tree: &Tree) -> Vec<String> {
    outside_uses(tree, |user, used| {
        let name = used.split("::").next()?;
        if !tree.crates.contains(name) {
            return None;
        }
        // A path like `aws_lc_rs::digest` allows that part alone; a star import of the whole crate is no part.
        let allowed = may_name(user).iter().any(|part| is_within(used, part));
        (!allowed).then(|| format!("{user} names {used}, which TABLE does not allow"))
    })
}

/// A line of the table that outlived its dependency.
fn unknown_crates(tree: &Tree) -> Vec<String> {
    let named = TABLE.iter().flat_map(|room| room.may_name);
    named
        .filter_map(|part| part.split("::").next())
        .filter(|name| !tree.crates.contains(*name))
        .map(|name| format!("TABLE names {name}, which is not a dependency"))
        .collect()
}

fn other_senders(tree: &Tree) -> Vec<String> {
    outside_uses(tree, |user, used| {
        let sends = ["reqwest", "tokio::net", "std::net::TcpStream"]
            .iter()
            .any(|network| is_within(used, network));
        let may = is_within(user, "transport") || is_within(user, "testing");
        (sends && !may).then(|| format!("{user} can send: it names {used}"))
    })
}

fn other_learners(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in &tree.sources {
        let may = ["record", "engine::record", "testing"]
            .iter()
            .any(|room| is_within(&source.module, room));
        if may {
            continue;
        }
        for pair in source.tokens.windows(2) {
            if (pair[0].mark('.') || pair[0].what == What::Path) && pair[1].is("learn") {
                complaints.push(at(source, pair[1].line, "only engine::record may call Record::learn"));
            }
        }
    }
    complaints
}

fn leaked_types(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in &tree.sources {
        let mut look_at = |tokens: &[Token]| {
            for (path, token) in paths(tokens) {
                if let Some(Target::Outside(used)) = tree.resolve(&token.module, &path)
                    && tree.crates.contains(used.split("::").next().unwrap_or_default())
                {
                    complaints.push(at(source, token.line, &format!("{used} is in the public interface")));
                }
            }
        };
        for at in 0..source.tokens.len() {
            look_at(public_part(&source.tokens, at));
        }
        for import in source.imports.iter().filter(|import| import.public) {
            if let Some(Target::Outside(used)) = tree.resolve(&import.module, &import.path)
                && tree.crates.contains(used.split("::").next().unwrap_or_default())
            {
                complaints.push(at(source, import.line, &format!("{used} is handed on")));
            }
        }
    }
    complaints
}

fn uses_of_testing(tree: &Tree) -> Vec<String> {
    own_uses(tree, |user, used| {
        (is_within(used, "testing") && !is_within(user, "testing")).then(|| format!("{user} uses {used}"))
    })
}

fn logic_in_the_root(tree: &Tree) -> Vec<String> {
    let root = tree.sources.iter().filter(|source| source.module.is_empty());
    root.flat_map(|source| {
        let logic = |token: &&Token| token.is("fn") || token.is("impl") || token.is("struct") || token.is("enum");
        let found = source.tokens.iter().filter(logic);
        found.map(|token| {
            at(
                source,
                token.line,
                "the crate root only declares modules and hands names on",
            )
        })
    })
    .collect()
}

fn too_long(path: &str, lines: usize) -> Option<String> {
    (lines > LONGEST_FILE).then(|| format!("{path}: {lines} lines, at most {LONGEST_FILE}"))
}

fn left_out(path: &str, text: &str) -> Vec<String> {
    // Put together here, so that this line is no case of it.
    let attribute = concat!("#[", "ignore");
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains(attribute));
    lines
        .map(|(at, _)| format!("{path}:{}: a test that is not run", at + 1))
        .collect()
}

// What the rules stand on.

/// The line of the table that a module belongs to.
struct Home {
    /// The outermost module of the same layer around it: the parts of a room may use each other.
    family: String,
    layer: u8,
}

fn home(module: &str) -> Option<Home> {
    let rooms = rooms_around(module);
    let layer = rooms.last()?.layer;
    let outermost = rooms.iter().find(|room| room.layer == layer)?;
    let depth = outermost.module.split("::").count();
    let family: Vec<&str> = module.split("::").take(depth).collect();
    Some(Home {
        family: family.join("::"),
        layer,
    })
}

/// What a module may name: its own line of the table, and those around it in the same layer.
fn may_name(module: &str) -> Vec<&'static str> {
    let rooms = rooms_around(module);
    let layer = rooms.last().map(|room| room.layer);
    let family = rooms.into_iter().filter(|room| Some(room.layer) == layer);
    family.flat_map(|room| room.may_name.iter().copied()).collect()
}

/// The lines of the table that a module lies in, the closest last.
fn rooms_around(module: &str) -> Vec<&'static Room> {
    let around = |room: &&Room| {
        let mut names = module.split("::");
        room.module
            .split("::")
            .all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
    };
    let mut rooms: Vec<&Room> = TABLE.iter().filter(around).collect();
    rooms.sort_by_key(|room| (room.module.split("::").count(), !room.module.contains('*')));
    rooms
}

fn is_adapter(module: &str) -> bool {
    let kind = module.split("::").next().unwrap_or_default();
    ["gateway", "journal"].contains(&kind) && home(module).is_some_and(|home| home.layer == 6)
}

fn is_blind(module: &str) -> bool {
    BLIND.iter().any(|room| is_within(module, room))
}

/// What `judge` says of each use of one module of ours by another. A parent that hands on what its own children
/// offer is not a use.
fn own_uses(tree: &Tree, judge: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    every_use(tree, |user, target, hands_on| match target {
        Target::Own { module, .. } if hands_on && is_within(&module, user) => None,
        Target::Own { module, name } if module.is_empty() => {
            (!user.is_empty() && !name.is_empty()).then(|| format!("{user} names crate::{name}: name its module"))
        }
        Target::Own { module, .. } if user.is_empty() || module == user => None,
        Target::Own { module, .. } => judge(user, &module),
        Target::Outside(_) => None,
    })
}

fn outside_uses(tree: &Tree, judge: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    every_use(tree, |user, target, _| match target {
        Target::Outside(used) => judge(user, &used),
        Target::Own { .. } => None,
    })
}

fn every_use(tree: &Tree, judge: impl Fn(&str, Target, bool) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in &tree.sources {
        let imports = source.imports.iter().map(|import| {
            let target = tree.resolve(&import.module, &import.path);
            (target, import.line, import.handed_on)
        });
        let names = paths(&source.tokens).into_iter().map(|(path, token)| {
            // A word that is a module's name but leads nowhere is a declaration, a variable or a field.
            let alone = path.len() == 1;
            let target = tree.resolve(&token.module, &path);
            let target = target.filter(|to| !(alone && matches!(to, Target::Own { name, .. } if name.is_empty())));
            (target, token.line, false)
        });
        for (target, line, hands_on) in imports.chain(names) {
            let complaint = target.and_then(|target| judge(&source.module, target, hands_on));
            complaints.extend(complaint.map(|complaint| at(source, line, &complaint)));
        }
    }
    complaints
}

/// What others see of the item that begins at `at`: a signature, a field's type, the whole of an enum or trait, the
/// header of a conversion for a public type. Empty where no such item begins.
fn public_part(tokens: &[Token], at: usize) -> &[Token] {
    let here = &tokens[at..];
    if here[0].is("impl") {
        let header = until(here, &['{']);
        let converts = header.iter().any(|token| token.is("From") || token.is("TryFrom"));
        let about = header.iter().rev().find(|token| matches!(token.what, What::Word(_)));
        let declared = |name: &Token| {
            tokens
                .windows(3)
                .any(|item| item[0].is("pub") && item[2].what == name.what)
        };
        return if converts && about.is_some_and(declared) {
            header
        } else {
            &[]
        };
    }
    let (true, Some(keyword)) = (here[0].is("pub"), here.get(1)) else {
        return &[];
    };
    let qualifier = |token: &&Token| ["pub", "const", "async", "extern"].iter().any(|word| token.is(word));
    let function = here
        .iter()
        .find(|token| !qualifier(token))
        .is_some_and(|token| token.is("fn"));
    let is = |words: &[&str]| words.iter().any(|word| keyword.is(word));
    match () {
        () if keyword.mark('(') => &[],
        () if function => until(here, &['{', ';']),
        () if is(&["enum", "trait"]) => through(here, '}'),
        () if is(&["struct", "mod"]) => until(here, &['{', '(', ';']),
        () if is(&["const", "static"]) => until(here, &['=']),
        () if is(&["type", "use"]) => until(here, &[';']),
        () => until(here, &[',', '}', ')']),
    }
}

/// The tokens before the first of `marks` that stands in no bracket.
fn until<'a>(tokens: &'a [Token], marks: &[char]) -> &'a [Token] {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let What::Mark(mark) = token.what else { continue };
        let arrow = at > 0 && (tokens[at - 1].mark('-') || tokens[at - 1].mark('='));
        match mark {
            mark if depth == 0 && marks.contains(&mark) => return &tokens[..at],
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' if !arrow => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    tokens
}

/// The tokens up to the `closing` bracket of the first block.
fn through(tokens: &[Token], closing: char) -> &[Token] {
    let block = until(tokens, &['{']).len();
    let inside = until(tokens.get(block + 1..).unwrap_or_default(), &[closing]).len();
    &tokens[..(block + 1 + inside).min(tokens.len())]
}

fn at(source: &Source, line: usize, complaint: &str) -> String {
    format!("{}:{line}: {complaint}", source.path)
}

#[track_caller]
fn holds(rule: impl Fn(&Tree) -> Vec<String>) {
    let manifest = fs::read_to_string(project().join("Cargo.toml")).unwrap();
    let files = rust_files("src");
    assert!(files.len() > 15, "the sources were not found");
    let complaints = rule(&Tree::new(&manifest, &files));
    let mut text = String::new();
    for complaint in &complaints {
        let _ = writeln!(text, "{complaint}");
    }
    assert!(complaints.is_empty(), "\n{text}");
}

fn project() -> PathBuf {
    // Cargo says it again when it runs the tests; a binary that is run by hand falls back on where it was built.
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Paths from the project's root, and texts, of the Rust files in `folder`.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&project().join(folder), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(project()).unwrap().to_string_lossy().into_owned();
            (path, text)
        })
        .collect()
}
