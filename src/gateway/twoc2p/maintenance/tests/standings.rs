//! Every state of a payment, for a void, a settlement, and a charge that is asked about.

use super::*;
use crate::gateway::twoc2p::maintenance::decision::{on_payment, on_standing};
use crate::operation::OperationKind::{Capture, Refund, Void};

fn standing(kind: crate::operation::OperationKind, code: Option<&str>, status: &str) -> String {
    of_conclusion(&on_standing(kind, code, &payment(status), Some(Currency::THB)))
}

/// Status, and what it says of a void: asked later, after "already voided", after a refusal.
#[rustfmt::skip]
const VOIDS: &[(&str, &str, &str, &str)] = &[
    ("V",   "succeeded",           "succeeded",              "succeeded"),
    ("VP",  "pending",             "pending",                "pending"),
    ("S",   "failed settled",      "conflict contradiction", "failed settled"),
    ("PFC", "failed settled",      "conflict contradiction", "failed settled"),
    ("PPC", "failed settled",      "conflict contradiction", "failed settled"),
    ("AE",  "failed settled",      "conflict contradiction", "failed settled"),
    ("AL",  "failed settled",      "conflict contradiction", "failed settled"),
    ("AM",  "failed settled",      "conflict contradiction", "failed settled"),
    ("RF",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("RP",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("RS",  "absent",              "nothing StillRunning",   "nothing StillRunning"),
    ("A",   "absent",              "nothing ServerFault",    "failed declined"),
    ("AP",  "absent",              "nothing ServerFault",    "failed declined"),
    ("EX",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("PF",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("T",   "nothing ServerFault", "nothing ServerFault",    "nothing ServerFault"),
    ("",    "nothing ServerFault", "nothing ServerFault",    "nothing ServerFault"),
];

#[test]
fn every_state_after_a_void() {
    for (status, later, already, refused) in VOIDS {
        for (code, expected) in [
            (None, later),
            (Some("29"), already),
            (Some("21"), refused),
            (Some("12"), refused),
        ] {
            assert_eq!(standing(Void, code, status), *expected, "{status} {code:?}");
        }
    }
}

/// The same of a settlement.
#[rustfmt::skip]
const CAPTURES: &[(&str, &str, &str, &str)] = &[
    ("S",   "succeeded",           "succeeded",              "succeeded"),
    ("PFC", "succeeded",           "succeeded",              "succeeded"),
    ("PPC", "succeeded",           "succeeded",              "succeeded"),
    ("RF",  "succeeded",           "succeeded",              "succeeded"),
    ("RS",  "pending",             "pending",                "pending"),
    ("A",   "absent",              "nothing ServerFault",    "failed declined"),
    ("AP",  "absent",              "nothing ServerFault",    "failed declined"),
    ("AE",  "conflict irregular",  "conflict irregular",     "conflict irregular"),
    ("V",   "failed cancelled",    "conflict contradiction", "failed cancelled"),
    ("VP",  "failed cancelled",    "conflict contradiction", "failed cancelled"),
    ("EX",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("PF",  "failed already_done", "conflict contradiction", "failed already_done"),
    ("T",   "nothing ServerFault", "nothing ServerFault",    "nothing ServerFault"),
];

#[test]
fn every_state_after_a_settlement() {
    for (status, later, already, refused) in CAPTURES {
        for (code, expected) in [
            (None, later),
            (Some("39"), already),
            (Some("34"), already),
            (Some("35"), refused),
        ] {
            assert_eq!(standing(Capture, code, status), *expected, "{status} {code:?}");
        }
    }
    assert_eq!(standing(Capture, Some("36"), "A"), "failed expired");
}

/// And of a charge of which the payment inquiry says nothing certain.
#[rustfmt::skip]
const PAYMENTS: &[(&str, &str)] = &[
    ("A", "succeeded"), ("RS", "succeeded"), ("S", "succeeded"), ("PPC", "succeeded"), ("PFC", "succeeded"),
    ("RF", "succeeded"), ("AP", "pending"), ("VP", "pending"), ("AE", "conflict irregular"),
    ("AL", "conflict irregular"), ("AM", "conflict irregular"), ("V", "failed cancelled"), ("EX", "failed expired"),
    ("PF", "failed declined"), ("AR", "failed declined"), ("FF", "failed declined"), ("IP", "failed declined"),
    ("ROE", "failed declined"), ("CTS", "nothing ServerFault"), ("T", "nothing ServerFault"),
    ("", "nothing ServerFault"), ("a", "nothing ServerFault"),
];

#[test]
fn c36_every_state_of_a_payment() {
    for (status, expected) in PAYMENTS {
        let conclusion = on_payment(&payment(status), Some(Currency::THB), true);
        assert_eq!(of_conclusion(&conclusion), *expected, "{status}");
        if let Conclusion::Says(Outcome::Failed(failed)) = conclusion {
            assert_eq!(failed.payer_may_retry, *expected == "failed declined", "{status}");
        }
    }
}

#[test]
fn an_answer_without_code_00_says_nothing_of_the_state_in_it() {
    for (code, later, asked) in [
        ("16", "absent", "absent"),
        ("99", "nothing ServerFault", "nothing ServerFault"),
        ("0000", "nothing ServerFault", "nothing ServerFault"),
        ("", "nothing ServerFault", "nothing ServerFault"),
    ] {
        let status = answer(code, "<amount>100.00</amount><status>S</status>");
        for kind in [Void, Capture] {
            let conclusion = on_standing(kind, None, &status, Some(Currency::THB));
            assert_eq!(of_conclusion(&conclusion), later, "{code} {kind}");
        }
        let conclusion = on_payment(&status, Some(Currency::THB), false);
        assert_eq!(of_conclusion(&conclusion), asked, "{code}");
    }
    let status = answer("16", "");
    let conclusion = on_standing(Void, Some("21"), &status, Some(Currency::THB));
    assert_eq!(of_conclusion(&conclusion), "nothing ServerFault");
    let conclusion = on_standing(Refund, None, &payment("S"), Some(Currency::THB));
    assert_eq!(of_conclusion(&conclusion), "nothing ServerFault");
}

#[test]
fn a_success_over_an_amount_that_cannot_be_read_is_for_a_person() {
    for amount in [
        "",
        "<amount/>",
        "<amount>1e2</amount>",
        "<amount>-1</amount>",
        "<amount>1,000.00</amount>",
    ] {
        let status = answer("00", &format!("{amount}<status>S</status>"));
        for conclusion in [
            on_standing(Capture, None, &status, Some(Currency::THB)),
            on_payment(&status, Some(Currency::THB), false),
        ] {
            assert_eq!(of_conclusion(&conclusion), "conflict amount", "{amount}");
        }
    }
}
