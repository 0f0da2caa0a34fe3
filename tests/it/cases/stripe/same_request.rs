//! The same operation is the same request, in whatever order, place or language; and what Stripe says when it is not.

use crate::shop::{assert_is, usd};
use crate::wired::{INTENTS, K1, Wired, finds_nothing, in_a_child, is_child, listing, of, op_a, pi_1, say};
use payonce::operation::Operation;
use payonce::outcome::{ConflictKind, Outcome, UnknownReason};
use payonce::testing::Bank;
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The body of op A with the metadata of case C05: whatever sends it, wherever, sends this.
const GOLDEN: &str = "amount=2000&currency=usd&payment_method=pm_card_visa&confirm=true&payment_method_types[0]=card&metadata[a]=1&metadata[b]=2&metadata[c]=3&metadata[payonce_key]=402f04607e0a5d329f51fdc342460021&metadata[payonce_reference]=order-7001";

fn plain() -> Operation {
    use payonce::gateway::stripe::StripeOptions;
    Operation::charge("order-7001", usd("20.00"))
        .unwrap()
        .with(StripeOptions::payment_method("pm_card_visa"))
}

/// What identifies a request: the key, the fingerprint, and the body on the wire.
async fn identity(stripe: &FakeStripe, operation: &Operation) -> String {
    let shop = Wired::stripe(stripe.base_url());
    assert_is(&shop.pay(operation).await, "succeeded");
    let post = of(stripe.requests(), INTENTS).pop().unwrap();
    let key = shop.key(operation);
    assert_eq!(post.header("Idempotency-Key"), Some(key.as_str()));
    format!("{key} {} {}", operation.fingerprint(), post.text())
}

/// A map that is iterated in another order each time.
fn from_a_map(order: &mut Vec<&'static str>) -> Operation {
    let pairs: HashMap<&str, &str> = [("b", "2"), ("a", "1"), ("c", "3")].into();
    pairs.into_iter().fold(plain(), |operation, (name, value)| {
        order.push(name);
        operation.metadata(name, value)
    })
}

#[tokio::test]
async fn c05_the_order_of_a_map_changes_nothing() {
    let stripe = FakeStripe::start(Bank::new());
    let call_1 = plain().metadata("b", "2").metadata("a", "1").metadata("c", "3");
    let call_2 = plain().metadata("c", "3").metadata("a", "1").metadata("b", "2");
    let first = identity(&stripe, &call_1).await;
    assert_eq!(identity(&stripe, &call_2).await, first);
    let mut orders = BTreeSet::new();
    for _ in 0..200 {
        let mut order = Vec::new();
        assert_eq!(identity(&stripe, &from_a_map(&mut order)).await, first);
        orders.insert(order);
    }
    assert!(orders.len() > 1, "the maps were not in different orders");
    let (head, body) = first.split_at(first.len() - GOLDEN.len());
    assert_eq!(body, GOLDEN);
    assert!(head.starts_with(K1));
    assert_eq!(stripe.bank().charged("order-7001"), 1);
    for _ in 0..2 {
        let test = "cases::stripe::same_request::child_that_says_what_it_sends_for_a_map";
        assert_eq!(in_a_child(test, &[]), [first.as_str()]);
    }
}

/// In a child: hash seeds are those of a process.
#[tokio::test]
async fn child_that_says_what_it_sends_for_a_map() {
    if is_child() {
        let stripe = FakeStripe::start(Bank::new());
        say(&identity(&stripe, &from_a_map(&mut Vec::new())).await);
    }
}

/// In the order in which case C06 gives them.
const NAMES: [&str; 7] = ["z", "ä", "a", "Z", "_", "A1", "a-b"];

fn with_names() -> Operation {
    NAMES
        .iter()
        .fold(plain(), |operation, name| operation.metadata(*name, "x"))
}

#[tokio::test]
async fn c06_the_order_of_names_is_that_of_their_bytes_in_every_locale() {
    let here = identity(&FakeStripe::start(Bank::new()), &with_names()).await;
    let (_, body) = here.rsplit_once(' ').unwrap();
    let names: Vec<String> = url::form_urlencoded::parse(body.as_bytes())
        .filter_map(|(name, _)| Some(name.strip_prefix("metadata[")?.strip_suffix(']')?.to_owned()))
        .filter(|name| !name.starts_with("payonce_"))
        .collect();
    assert_eq!(names, ["A1", "Z", "_", "a", "a-b", "z", "ä"]);
    for language in ["C", "en_US.UTF-8", "sv_SE.UTF-8"] {
        let test = "cases::stripe::same_request::child_that_says_what_it_sends_for_names";
        let said = in_a_child(test, &[("LANG", language), ("LC_ALL", language)]);
        assert_eq!(said, [here.as_str()], "{language}");
    }
}

/// In a child, which has its language from its environment.
#[tokio::test]
async fn child_that_says_what_it_sends_for_names() {
    if is_child() {
        say(&identity(&FakeStripe::start(Bank::new()), &with_names()).await);
    }
}

/// Another use of K1 is remembered; Stripe's advice is to take another key.
const MISMATCH: &str = r#"{"error":{"type":"idempotency_error","message":"other parameters; take another key than K1 for a new request"}}"#;

/// pi_1, marked as op A's own, over so many cents.
fn marked(cents: &str) -> String {
    pi_1("succeeded")
        .replace("2000", cents)
        .replace(r#""op":"#, &format!(r#""payonce_key":"{K1}","op":"#))
}

/// A server for which K1 has been used with other parameters, before our journal began.
fn remembers_k1() -> ScriptedServer {
    let server = ScriptedServer::start();
    finds_nothing(&server);
    server.always(INTENTS, |_| Reply::new(400).json(MISMATCH));
    server
}

#[tokio::test]
async fn c07_a_payment_of_an_earlier_journal_is_found_and_taken_over() {
    for (route, kind) in [
        ("GET /v1/payment_intents", "list"),
        ("GET /v1/payment_intents/search", "search_result"),
    ] {
        let server = remembers_k1();
        server.always(route, move |_| Reply::new(200).json(listing(kind, &[&marked("2000")])));
        let shop = Wired::stripe(server.url());
        for _ in 0..2 {
            let outcome = shop.pay(&op_a()).await;
            assert_is(&outcome, "succeeded");
            assert_eq!(outcome.gateway_ref().unwrap().as_str(), "pi_1", "{route}");
        }
        let posts = of(server.requests(), INTENTS);
        assert_eq!(posts.len(), 1, "not sent again");
        assert_eq!(posts[0].header("Idempotency-Key"), Some(K1));
        assert!(shop.history(&op_a()).await.iter().all(|line| line.to != "failed"));
    }
}

#[tokio::test]
async fn c07_a_payment_over_another_amount_is_a_conflict() {
    let server = remembers_k1();
    server.always("GET /v1/payment_intents/search", |_| {
        Reply::new(200).json(listing("search_result", &[&marked("2100")]))
    });
    let shop = Wired::stripe(server.url());
    let Outcome::Conflict(conflict) = shop.pay(&op_a()).await else {
        panic!("not a conflict")
    };
    assert_eq!(conflict.kind, ConflictKind::Amount);
    assert_eq!(
        (conflict.expected, conflict.reported),
        (Some(usd("20.00")), Some(usd("21.00")))
    );
    assert_eq!(server.count(INTENTS), 1);
}

#[tokio::test]
async fn c07_the_advice_to_take_another_key_is_never_followed() {
    let server = remembers_k1();
    let shop = Wired::stripe(server.url());
    for hours in 0..30 {
        let Outcome::Unknown(unknown) = shop.pay(&op_a()).await else {
            panic!("decided after {hours} h")
        };
        assert_eq!(unknown.reason, UnknownReason::NotFoundYet);
        shop.clock.advance(Duration::from_secs(3600));
    }
    let keys: BTreeSet<_> = of(server.requests(), INTENTS)
        .iter()
        .map(|post| post.header("Idempotency-Key").unwrap().to_owned())
        .collect();
    assert_eq!(keys, BTreeSet::from([K1.to_owned()]));
}

#[tokio::test]
async fn c07_other_content_under_a_key_that_only_stripe_remembers_makes_no_second_payment() {
    let stripe = FakeStripe::start(Bank::new());
    let first = Wired::stripe(stripe.base_url());
    assert_is(&first.pay(&plain().metadata("a", "1")).await, "succeeded");
    let forgetful = Wired::stripe(stripe.base_url());
    let other = plain().metadata("a", "2");
    assert_ne!(other.fingerprint(), plain().metadata("a", "1").fingerprint());
    let outcome = forgetful.pay(&other).await;
    assert_is(&outcome, "succeeded");
    assert_eq!(outcome.gateway_ref().unwrap().as_str(), stripe.payment_intents()[0]);
    assert_eq!(stripe.bank().charged("order-7001"), 1);
    assert_eq!(stripe.payment_intents().len(), 1);
}
