//! Every result code, for each of the three actions.

use super::*;
use crate::gateway::twoc2p::maintenance::decision::on_answer;
use crate::operation::OperationKind::{Capture, Refund, Void};

/// Code, and what it says of a void, a settlement and a refund. From the documentation's table, by hand.
#[rustfmt::skip]
const CODES: &[(&str, &str, &str, &str)] = &[
    ("01", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("02", "failed invalid", "failed invalid", "failed invalid"),
    ("03", "not executed Credentials", "not executed Credentials", "not executed Credentials"),
    ("04", "failed invalid", "failed invalid", "failed invalid"),
    ("05", "failed invalid", "failed invalid", "failed invalid"),
    ("10", "failed invalid", "failed invalid", "failed invalid"),
    ("11", "failed invalid", "failed invalid", "failed invalid"),
    ("12", "look", "look", "look"),
    ("13", "not executed Credentials", "not executed Credentials", "not executed Credentials"),
    ("14", "not executed Credentials", "not executed Credentials", "not executed Credentials"),
    ("15", "failed invalid", "failed invalid", "failed invalid"),
    ("16", "failed no_such_payment", "failed no_such_payment", "failed no_such_payment"),
    ("17", "failed invalid", "failed invalid", "failed invalid"),
    ("18", "failed invalid", "failed invalid", "failed invalid"),
    ("21", "look", "look", "look"),
    ("22", "look", "look", "look"),
    ("25", "look", "look", "maybe ServerFault"),
    ("29", "look", "look", "maybe Duplicate"),
    ("30", "look", "look", "look"),
    ("31", "look", "look", "look"),
    ("32", "look", "look", "look"),
    ("33", "look", "look", "look"),
    ("34", "look", "look", "maybe Duplicate"),
    ("35", "look", "look", "maybe ServerFault"),
    ("36", "look", "look", "look"),
    ("37", "failed invalid", "failed invalid", "failed invalid"),
    ("38", "look", "look", "look"),
    ("39", "look", "look", "maybe Duplicate"),
    ("40", "failed declined", "failed declined", "look"),
    ("41", "failed declined", "failed declined", "look"),
    ("42", "maybe ServerFault", "maybe ServerFault", "pending"),
    ("43", "failed declined", "failed declined", "look"),
    ("44", "failed declined", "failed declined", "look"),
    ("45", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("46", "failed declined", "failed declined", "look"),
    ("47", "failed declined", "failed declined", "look"),
    ("48", "failed declined", "failed declined", "look"),
    ("49", "maybe Duplicate", "maybe Duplicate", "look"),
    ("50", "failed invalid", "failed invalid", "failed invalid"),
    ("51", "maybe StillRunning", "maybe StillRunning", "maybe StillRunning"),
    ("52", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("53", "failed invalid", "failed invalid", "failed invalid"),
    ("54", "failed expired", "failed expired", "look"),
    ("58", "not executed Credentials", "not executed Credentials", "not executed Credentials"),
    ("61", "look", "look", "look"),
    ("65", "look", "look", "maybe ServerFault"),
    ("95", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("96", "not executed Credentials", "not executed Credentials", "not executed Credentials"),
    ("97", "failed invalid", "failed invalid", "failed invalid"),
    ("98", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("99", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    // Not in the table, or in another one's.
    ("0", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("0000", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("9015", "maybe ServerFault", "maybe ServerFault", "maybe ServerFault"),
    ("", "maybe Unreadable", "maybe Unreadable", "maybe Unreadable"),
];

#[test]
fn every_code_of_every_action() {
    for (code, void, capture, refund) in CODES {
        for (kind, expected) in [(Void, void), (Capture, capture), (Refund, refund)] {
            let verdict = on_answer(kind, &answer(code, ""), Some(Currency::THB));
            assert_eq!(of_verdict(&verdict), *expected, "{code} {kind}");
        }
    }
}

/// Code 00 with a status, for each action.
#[rustfmt::skip]
const WORKED: &[(&str, &str, &str, &str)] = &[
    ("V",   "succeeded",        "maybe Unreadable", "maybe Unreadable"),
    ("VP",  "pending",          "maybe Unreadable", "maybe Unreadable"),
    ("S",   "maybe Unreadable", "succeeded",        "maybe Unreadable"),
    ("PFC", "maybe Unreadable", "succeeded",        "maybe Unreadable"),
    ("PPC", "maybe Unreadable", "succeeded",        "maybe Unreadable"),
    ("RS",  "maybe Unreadable", "pending",          "maybe Unreadable"),
    ("A",   "maybe Unreadable", "pending",          "maybe Unreadable"),
    ("AP",  "maybe Unreadable", "pending",          "maybe Unreadable"),
    ("RF",  "maybe Unreadable", "maybe Unreadable", "succeeded"),
    ("RP",  "maybe Unreadable", "maybe Unreadable", "pending"),
    ("REFUND_PENDING", "maybe Unreadable", "maybe Unreadable", "pending"),
    ("RFF", "maybe Unreadable", "maybe Unreadable", "failed declined"),
    ("RR",  "maybe Unreadable", "maybe Unreadable", "failed declined"),
    ("RR1", "maybe Unreadable", "maybe Unreadable", "failed declined"),
    ("RR2", "maybe Unreadable", "maybe Unreadable", "failed declined"),
    ("RR3", "maybe Unreadable", "maybe Unreadable", "failed declined"),
    ("PF",  "maybe Unreadable", "maybe Unreadable", "maybe Unreadable"),
    ("AE",  "maybe Unreadable", "maybe Unreadable", "maybe Unreadable"),
    ("T",   "maybe Unreadable", "maybe Unreadable", "maybe Unreadable"),
    ("",    "maybe Unreadable", "maybe Unreadable", "maybe Unreadable"),
];

#[test]
fn a_request_that_worked_is_over_when_the_status_says_so() {
    for (status, void, capture, refund) in WORKED {
        let more = format!("<amount>25.00</amount><status>{status}</status><refundReferenceNo>7</refundReferenceNo>");
        for (kind, expected) in [(Void, void), (Capture, capture), (Refund, refund)] {
            let verdict = on_answer(kind, &answer("00", &more), Some(Currency::THB));
            assert_eq!(of_verdict(&verdict), *expected, "{status} {kind}");
        }
    }
}

#[test]
fn a_refund_has_an_id_and_an_amount_or_it_is_looked_for() {
    let without_id = answer("00", "<amount>25.00</amount><status>RF</status>");
    let verdict = on_answer(Refund, &without_id, Some(Currency::THB));
    assert_eq!(of_verdict(&verdict), "maybe Unreadable");
    let without_amount = answer("00", "<status>RF</status><refundReferenceNo>7</refundReferenceNo>");
    let verdict = on_answer(Refund, &without_amount, Some(Currency::THB));
    assert_eq!(of_verdict(&verdict), "conflict amount");
}
