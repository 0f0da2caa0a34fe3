//! Each rule, fed with a text that breaks it: a rule that cannot complain proves nothing.

use super::source::Tree;
use super::*;

const MANIFEST: &str = "[package]\nname = \"x\"\n\n[dependencies]\nreqwest = \"1\"\nrusqlite = \"1\"\naws-lc-rs = \"1\"\n\
                        tokio = { version = \"1\" }\nserde_json = \"1\"\n\n[dev-dependencies]\nproptest = \"1\"\n";

fn tree(files: &[(&str, &str)]) -> Tree {
    // Enough of the crate for paths to lead somewhere.
    let rest = [
        ("src/lib.rs", "pub mod clock; pub use engine::Payments;"),
        ("src/clock.rs", "pub struct Timestamp;"),
        ("src/record/mod.rs", "pub struct Record;"),
        (
            "src/gateway/mod.rs",
            "pub mod stripe; pub mod twoc2p; pub trait Gateway {}",
        ),
        ("src/gateway/stripe/mod.rs", "pub struct Stripe;"),
        ("src/gateway/twoc2p/mod.rs", "pub struct TwoC2p;"),
        (
            "src/journal/mod.rs",
            "mod memory; pub use memory::MemoryJournal; pub trait Journal {}",
        ),
        ("src/journal/memory.rs", "pub struct MemoryJournal;"),
        ("src/engine/mod.rs", "pub struct Payments;"),
        ("src/testing/mod.rs", "pub struct Bank;"),
    ];
    let given = files.iter().copied();
    let rest = rest
        .into_iter()
        .filter(|(path, _)| !files.iter().any(|(given, _)| given == path));
    let files: Vec<_> = given
        .chain(rest)
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect();
    Tree::new(MANIFEST, &files)
}

/// `rule` complains about `text` in the file `path`, once, in words that contain `words`.
#[track_caller]
fn complains(rule: fn(&Tree) -> Vec<String>, path: &str, text: &str, words: &str) {
    let complaints = rule(&tree(&[(path, text)]));
    assert!(complaints.len() == 1, "about {text:?}: {complaints:#?}");
    assert!(complaints[0].starts_with(path), "{}", complaints[0]);
    assert!(complaints[0].contains(words), "{}", complaints[0]);
}

#[track_caller]
fn is_silent(rule: fn(&Tree) -> Vec<String>, path: &str, text: &str) {
    assert_eq!(rule(&tree(&[(path, text)])), Vec::<String>::new(), "about {text:?}");
}

#[test]
fn a_module_without_a_layer() {
    complains(homeless, "src/utils.rs", "", "utils has no layer");
    complains(homeless, "src/utils/strings.rs", "", "utils::strings has no layer");
    is_silent(homeless, "src/gateway/omise/codes.rs", "");
    is_silent(homeless, "src/operation/key.rs", "");
}

#[test]
fn a_use_of_a_higher_layer_or_of_a_sibling() {
    for text in [
        "use crate::record::Record;",
        "use crate::{record::{Record as R}};",
        "use super::record;",
        "fn f(r: &crate::record::Record) {}",
        "fn f() { let _: super::record::Record; }",
        "#[doc(alias)] mod inner { use super::super::record::*; }",
    ] {
        complains(
            upward_uses,
            "src/outcome.rs",
            text,
            "outcome (layer 2) uses record (layer 3)",
        );
    }
    complains(
        upward_uses,
        "src/money.rs",
        "use crate::clock::Timestamp;",
        "uses clock (layer 0)",
    );
    complains(
        upward_uses,
        "src/record/learn.rs",
        "use crate::gateway::Gateway;",
        "uses gateway (layer 5)",
    );
    complains(
        upward_uses,
        "src/record/learn.rs",
        "\n\nuse crate::Payments;",
        ":3: record (layer 3) uses engine",
    );
    complains(
        upward_uses,
        "src/gateway/http.rs",
        "use super::stripe::Stripe;",
        "uses gateway::stripe",
    );
    complains(
        upward_uses,
        "src/journal/row.rs",
        "use super::MemoryJournal;",
        "uses journal::memory",
    );
    complains(
        upward_uses,
        "src/clock.rs",
        "use crate::nobody::knows;",
        "name its module",
    );
    for text in [
        "use crate::clock::Timestamp; use super::Record; use std::fmt;",
        "//! See [`crate::gateway::Gateway`].\n/* crate::gateway /* ::x */ */ const X: &str = r#\"crate::gateway\"#;",
        "#[cfg(test)]\nmod tests { use crate::testing::Bank; fn f<'a>(c: &'a char) { '\\''; } }",
        "#[cfg(test)] use crate::testing::Bank; #[cfg(all(test, feature = \"x\"))] fn f() { crate::testing::f() }",
    ] {
        is_silent(upward_uses, "src/record/learn.rs", text);
    }
}

#[test]
fn a_use_of_a_child_unless_it_is_only_handed_on() {
    is_silent(
        upward_uses,
        "src/journal/mod.rs",
        "mod memory; pub use memory::MemoryJournal;",
    );
    complains(
        upward_uses,
        "src/journal/mod.rs",
        "mod memory; use memory::MemoryJournal;",
        "uses journal::memory",
    );
}

#[test]
fn only_what_is_marked_as_test_code_is_left_out() {
    for text in [
        "struct X { #[cfg(test)] a: u8 } fn f() { crate::gateway::f() }",
        "struct X { #[cfg(test)] #[doc(hidden)] pub(super) a: Map<u8>, b: crate::gateway::Gateway }",
        "fn f() { X { #[cfg(test)] a: None, b: crate::gateway::f() } }",
        "fn f() { #[cfg(test)] if x { y(); } crate::gateway::f() }",
        "#[cfg(test)] pub(crate) fn g<A, B>(a: [u8; 2]) where A: X, B: Y {} fn f() { crate::gateway::f() }",
        "#[cfg(not(test))] fn f() { crate::gateway::f() }",
        "mod inner { #[cfg(test)] use a::{b, c}; } fn f() { crate::gateway::f() }",
    ] {
        complains(upward_uses, "src/record/learn.rs", text, "uses gateway (layer 5)");
    }
}

#[test]
fn a_file_of_tests_alone_is_left_out() {
    let files = [
        ("src/record/mod.rs", "#[cfg(test)]\nmod tests;"),
        ("src/record/tests.rs", "use crate::testing::Bank;"),
    ];
    assert_eq!(upward_uses(&tree(&files)), Vec::<String>::new());
    assert_eq!(upward_uses(&tree(&[files[1]])).len(), 1);
}

#[test]
fn an_engine_that_sees_an_adapter() {
    for (path, text) in [
        ("src/engine/execute.rs", "use crate::journal::MemoryJournal;"),
        (
            "src/inbound.rs",
            "use crate::journal as memory; fn f() -> memory::MemoryJournal {}",
        ),
        ("src/reconcile.rs", "fn f() { crate::journal::memory::open() }"),
    ] {
        complains(sighted_uses, path, text, "names the adapter journal::memory");
    }
    complains(
        sighted_uses,
        "src/engine/mod.rs",
        "fn f(n: &str) -> bool { n == \"Stripe\" }",
        "the word stripe",
    );
    complains(
        sighted_uses,
        "src/engine/mod.rs",
        "fn is_twoc2p() {}",
        "the word twoc2p",
    );
    is_silent(
        sighted_uses,
        "src/engine/mod.rs",
        "/// Not only Stripe.\nuse crate::gateway::Gateway;",
    );
}

#[test]
fn an_adapter_that_knows_another_or_the_engine() {
    let rule = adapters_that_know_too_much;
    complains(
        rule,
        "src/gateway/stripe/codes.rs",
        "use super::super::twoc2p::TwoC2p;",
        "names gateway::twoc2p",
    );
    complains(
        rule,
        "src/gateway/stripe/codes.rs",
        "use crate::Payments;",
        "names engine",
    );
    complains(
        rule,
        "src/journal/memory.rs",
        "use crate::gateway::stripe;",
        "names gateway::stripe",
    );
    is_silent(
        rule,
        "src/gateway/stripe/codes.rs",
        "use super::Stripe; use crate::gateway::Gateway;",
    );
}

#[test]
fn waiting_and_io_in_the_lower_layers() {
    complains(
        waiting_below,
        "src/retry/decide.rs",
        "async fn f() {}",
        "async below layer 5",
    );
    complains(
        waiting_below,
        "src/record/mod.rs",
        "fn f() { g.await }",
        "async below layer 5",
    );
    is_silent(waiting_below, "src/clock.rs", "async fn sleep() {}");
    complains(
        world_in_the_wrong_room,
        "src/money.rs",
        "fn f() { std::fs::read(x) }",
        "names std::fs",
    );
    complains(
        world_in_the_wrong_room,
        "src/record/mod.rs",
        "use std::{fmt, net::TcpStream};",
        "names std::net",
    );
    complains(
        world_in_the_wrong_room,
        "src/engine/mod.rs",
        "fn f() { std::time::SystemTime::now() }",
        "names std::time::SystemTime",
    );
    is_silent(world_in_the_wrong_room, "src/journal/sqlite/mod.rs", "use std::fs;");
}

#[test]
fn an_outside_crate_in_the_wrong_room() {
    for (path, text, words) in [
        ("src/engine/mod.rs", "use reqwest::Client;", "names reqwest::Client"),
        (
            "src/engine/mod.rs",
            "fn f() { ::reqwest::get(x) }",
            "names reqwest::get",
        ),
        (
            "src/engine/mod.rs",
            "use reqwest as http; fn f() { http::get(x) }",
            "names reqwest::get",
        ),
        (
            "src/gateway/stripe/mod.rs",
            "#[derive(rusqlite::Row)] struct X;",
            "names rusqlite::Row",
        ),
        (
            "src/operation/key.rs",
            "use aws_lc_rs::{digest, hmac};",
            "names aws_lc_rs::hmac",
        ),
        ("src/operation/key.rs", "use aws_lc_rs::*;", "names aws_lc_rs"),
        (
            "src/engine/execute.rs",
            "fn f() { tokio::time::sleep(x) }",
            "names tokio::time",
        ),
    ] {
        complains(foreign_names, path, text, words);
    }
    is_silent(foreign_names, "src/transport/http.rs", "use reqwest::Client;");
    is_silent(
        foreign_names,
        "src/operation/key.rs",
        "use aws_lc_rs::digest::SHA256; struct X { reqwest: u8 }",
    );
    let missing = unknown_crates(&tree(&[]));
    assert!(
        missing.contains(&"TABLE names hyper, which is not a dependency".to_owned()),
        "{missing:?}"
    );
}

#[test]
fn another_sender_or_learner() {
    complains(
        other_senders,
        "src/gateway/stripe/mod.rs",
        "use tokio::net::TcpStream;",
        "can send",
    );
    complains(
        other_senders,
        "src/journal/sqlite/mod.rs",
        "fn f() { std::net::TcpStream::connect(x) }",
        "can send",
    );
    is_silent(other_senders, "src/transport/http.rs", "use reqwest::Client;");
    complains(
        other_learners,
        "src/inbound.rs",
        "fn f() { record.learn(&seen) }",
        "only engine::record",
    );
    complains(
        other_learners,
        "src/engine/execute.rs",
        "fn f() { Record::learn(r, s) }",
        "only engine::record",
    );
    is_silent(other_learners, "src/engine/record.rs", "fn f() { record.learn(&seen) }");
}

#[test]
fn a_dependency_s_type_in_the_public_interface() {
    for text in [
        "pub fn f(c: &reqwest::Client) {}",
        "pub async fn f() -> Result<(), reqwest::Error> {}",
        "use reqwest::Error as E; pub const fn f(g: impl Iterator<Item = E>) {}",
        "pub struct X(u8, pub reqwest::Client);",
        "pub struct X { a: u8, pub b: HashMap<u8, Option<reqwest::Client>>, }",
        "pub enum X { A, B { source: reqwest::Error } }",
        "pub trait X { fn f(&self) -> reqwest::Error; }",
        "pub type X = reqwest::Error;",
        "pub const X: Option<reqwest::Error> = None;",
        "pub struct X; impl From<reqwest::Error> for X { }",
        "pub use reqwest::Error;",
    ] {
        complains(leaked_types, "src/transport/http.rs", text, "reqwest::");
    }
    for text in [
        "pub struct X { client: reqwest::Client, pub size: usize } pub(crate) fn f(e: reqwest::Error) {}",
        "pub struct X(reqwest::Client); impl X { pub fn f(&self) { reqwest::get(x) } }",
        "pub const X: X = X(reqwest::X); enum Y { Z(reqwest::Error) } impl From<reqwest::Error> for Y { }",
        "pub enum X { A } fn f(e: reqwest::Error) {} pub fn g(s: &str) -> std::io::Result<()> { reqwest::get() }",
    ] {
        is_silent(leaked_types, "src/transport/http.rs", text);
    }
}

#[test]
fn testing_outside_of_tests_and_logic_in_the_root() {
    complains(
        uses_of_testing,
        "src/engine/mod.rs",
        "use crate::testing::Bank;",
        "engine uses testing",
    );
    is_silent(
        uses_of_testing,
        "src/engine/mod.rs",
        "#[cfg(test)] mod tests { use crate::testing::Bank; }",
    );
    complains(
        logic_in_the_root,
        "src/lib.rs",
        "pub mod clock; pub fn f() {}",
        "only declares",
    );
    is_silent(
        logic_in_the_root,
        "src/lib.rs",
        "//! fn f() {}\npub mod clock; pub use clock::Timestamp;",
    );
}

#[test]
fn a_test_that_is_not_run() {
    let text = ["#[test]", concat!("#[", "ignore = \"slow\"]"), "fn f() {}"].join("\n");
    assert_eq!(
        left_out("tests/it/x.rs", &text),
        ["tests/it/x.rs:2: a test that is not run"]
    );
    assert_eq!(
        left_out("tests/it/x.rs", "#[test] fn ignore() {}"),
        Vec::<String>::new()
    );
}

#[test]
fn a_long_file() {
    assert_eq!(too_long("src/x.rs", 600), None);
    assert_eq!(too_long("src/x.rs", 601).unwrap(), "src/x.rs: 601 lines, at most 600");
}
