//! Whose refund is it?

use super::*;
use crate::gateway::twoc2p::maintenance::refunds::{Match, Sought, find, refused};
use crate::operation::{GatewayRef, OperationKey};
use crate::outcome::FailureCategory;
use proptest::prelude::*;

const KEY: &str = "8f10df748daf5b1aa4df9c5a547818a2";
const OTHER: &str = "e130cebe37775561a1877ef4bbf5840b";

fn row(amount: &str, status: &str, id: &str, mark: &str) -> String {
    format!("<refund amount=\"{amount}\" status=\"{status}\" referenceNo=\"{id}\">{mark}</refund>")
}

fn marked(key: &str) -> String {
    format!("<userDefined1>{key}</userDefined1>")
}

fn list(rows: &[String]) -> PaymentStatus {
    answer(
        "00",
        &format!(
            "<amount>100.00</amount><status>S</status><refundList>{}</refundList>",
            rows.concat()
        ),
    )
}

fn found(rows: &[String], id: Option<&str>) -> String {
    let id = id.map(GatewayRef::new);
    let sought = Sought {
        key: OperationKey::parse(KEY).unwrap(),
        id: id.as_ref(),
        amount: thb("25.00"),
    };
    let ours = |outcome: &Outcome| {
        let id = outcome.gateway_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {id}", of_outcome(outcome))
    };
    match find(&list(rows), sought) {
        Match::Ours(outcome) => format!("ours {}", ours(&outcome)),
        Match::Alike(outcome) => format!("alike {}", ours(&outcome)),
        Match::Ambiguous => "ambiguous".to_owned(),
        Match::None => "none".to_owned(),
        Match::Unreadable => "unreadable".to_owned(),
    }
}

#[test]
fn by_the_id_then_by_the_key_then_by_the_amount_where_nothing_else_can_be_it() {
    let bare = |id: &str| row("25.00", "RF", id, "");
    let with = |id: &str, key: &str| row("25.00", "RF", id, &marked(key));
    for (rows, id, expected) in [
        (vec![], None, "none"),
        (vec![bare("1")], None, "alike succeeded 1"),
        (vec![bare("1"), bare("2")], None, "ambiguous"),
        (vec![bare("1"), row("30.00", "RF", "2", "")], None, "alike succeeded 1"),
        (vec![row("30.00", "RF", "2", "")], None, "none"),
        // An amount that cannot be read could be any.
        (vec![bare("1"), row("?", "RF", "2", "")], None, "ambiguous"),
        (vec![row("?", "RF", "2", "")], None, "ambiguous"),
        // The id decides, whatever else there is.
        (vec![bare("1"), bare("2")], Some("2"), "ours succeeded 2"),
        (vec![with("1", KEY), with("2", OTHER)], Some("2"), "ours succeeded 2"),
        (vec![bare("1")], Some("2"), "ambiguous"),
        (vec![], Some("2"), "none"),
        // Then the key.
        (vec![bare("1"), with("2", KEY)], None, "ours succeeded 2"),
        (vec![with("1", OTHER), with("2", KEY)], None, "ours succeeded 2"),
        (vec![with("1", KEY), with("2", KEY)], None, "conflict two_payments"),
        // A row with somebody else's mark is somebody else's.
        (vec![with("1", OTHER)], None, "none"),
        (vec![with("1", OTHER), bare("2")], None, "alike succeeded 2"),
        // How it stands.
        (vec![row("25.00", "RP", "1", &marked(KEY))], None, "ours pending 1"),
        (
            vec![row("25.00", "RR2", "1", &marked(KEY))],
            None,
            "ours failed declined 1",
        ),
        (vec![row("25.00", "XX", "1", &marked(KEY))], None, "unreadable"),
        (vec![row("?", "RF", "1", &marked(KEY))], None, "unreadable"),
        (vec![row("25.00", "XX", "1", "")], None, "ambiguous"),
        (vec![row("25.00", "RF", "", "")], None, "ambiguous"),
    ] {
        let found = found(&rows, id);
        let expected = expected
            .strip_prefix("conflict")
            .map_or(expected.to_owned(), |kind| format!("ours conflict{kind} "));
        assert_eq!(found, expected, "{rows:?} {id:?}");
    }
}

#[test]
fn a_mark_is_read_wherever_it_stands() {
    for mark in [
        row("25.00", "RF", "1", &marked(KEY)),
        row("25.00", "RF", "1", &format!("<idempotencyID>{KEY}</idempotencyID>")),
        format!("<refund amount=\"25.00\" status=\"RF\" referenceNo=\"1\" userDefined1=\"{KEY}\"/>"),
        format!("<refund amount=\"25.00\" status=\"RF\" referenceNo=\"1\" idempotencyID=\"{KEY}\"/>"),
        format!(
            "<refund><amount>25.00</amount><status>RF</status><referenceNo>1</referenceNo>{}</refund>",
            marked(KEY)
        ),
    ] {
        assert_eq!(found(&[mark], None), "ours succeeded 1");
    }
}

#[test]
fn c55_a_refused_refund_shows_what_was_given_back() {
    let answer = answer("40", "<respDesc>too much</respDesc>");
    let told = |rows: &[String]| {
        let failed = refused(&answer, &list(rows), thb("80.00"));
        assert_eq!(failed.category, FailureCategory::Invalid);
        assert_eq!(failed.evidence.message.as_deref(), Some("too much"));
        failed.evidence.details.get("amount_refunded").map(str::to_owned)
    };
    assert_eq!(told(&[]), None);
    assert_eq!(told(&[row("30.00", "RP", "1", "")]), None);
    assert_eq!(told(&[row("?", "RF", "1", "")]), None);
    let two = [
        row("30.00", "RF", "1", ""),
        row("0.50", "RF", "2", ""),
        row("9.00", "RR", "3", ""),
    ];
    assert_eq!(told(&two).as_deref(), Some("30.50"));
}

#[test]
fn the_documented_samples_are_read() {
    let status = read(include_str!(
        "../../../../../tests/fixtures/twoc2p/maintenance/RS-response.xml"
    ));
    assert_eq!((status.status.as_deref(), status.refunds.len()), (Some("S"), 1));
    assert_eq!(status.refunds[0].reference_no.as_deref(), Some("3598743"));
    assert_eq!(status.refunds[0].amount(Currency::THB), Some(thb("25.00")));
    let status = read(include_str!(
        "../../../../../tests/fixtures/twoc2p/maintenance/R-response.xml"
    ));
    assert_eq!(status.refund_reference_no.as_deref(), Some("3598743"));
    let shown = format!("{status:?}");
    assert!(!shown.contains("411111"), "{shown}");
}

proptest! {
    #[test]
    fn two_rows_that_could_be_it_are_never_taken_by_the_amount(
        rows in prop::collection::vec((0_u8..3, 0_u8..3, any::<bool>()), 0..6),
    ) {
        let rows: Vec<String> = rows
            .iter()
            .enumerate()
            .map(|(nth, (amount, mark, done))| {
                let amount = ["25.00", "30.00", "25.0"][usize::from(*amount)];
                let mark = ["", OTHER, ""][usize::from(*mark)];
                let mark = if mark.is_empty() { String::new() } else { marked(mark) };
                row(amount, if *done { "RF" } else { "RP" }, &format!("id{nth}"), &mark)
            })
            .collect();
        let could_be = rows.iter().filter(|row| row.contains("\"25.0") && !row.contains(OTHER)).count();
        let found = found(&rows, None);
        match could_be {
            0 => prop_assert_eq!(found, "none"),
            1 => prop_assert!(found.starts_with("alike "), "{}", found),
            _ => prop_assert_eq!(found, "ambiguous"),
        }
    }
}
