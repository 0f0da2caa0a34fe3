//! The state machine as tables: every state meets every observation.

use super::*;
use crate::failure::FailureKind;
use crate::journal::row::Row;
use crate::outcome::{Conflict, ConflictKind, NextStep, Pending, Succeeded};
use crate::testing::conformance::sample::{NOW, Sample};
use proptest::prelude::*;

/// The columns of the tables. `again` is a second send, while the first may have been executed.
const STATES: [&str; 8] = [
    "sending",
    "again",
    "released",
    "unknown",
    "pending",
    "succeeded",
    "failed",
    "conflict",
];

const ANSWER: &[Source] = &[Source::Answer];
const INQUIRY: &[Source] = &[Source::Inquiry];
const ANY: &[Source] = &[Source::Answer, Source::Inquiry, Source::Notification];

/// The rows of the tables.
fn facts(record: &Record) -> Vec<(&'static str, &'static [Source], Fact)> {
    let said = |outcome| Fact::Said(outcome);
    let mut may_retry = failed("pi_1");
    may_retry.payer_may_retry = true;
    let other_amount = record
        .amount
        .map(|amount| Money::from_minor(amount.minor() + 1, amount.currency()));
    let mut irregular = Conflict::new(ConflictKind::Irregular, "too late");
    irregular.gateway_ref = Some(GatewayRef::new("pi_1"));
    vec![
        (
            "success",
            ANY,
            said(Outcome::Succeeded(succeeded("pi_1", record.amount))),
        ),
        ("success, bare", ANY, said(Outcome::Succeeded(Succeeded::new(None)))),
        (
            "success of another",
            ANY,
            said(Outcome::Succeeded(succeeded("pi_2", record.amount))),
        ),
        (
            "success, other amount",
            ANY,
            said(Outcome::Succeeded(succeeded("pi_1", other_amount))),
        ),
        ("pending", ANY, said(Outcome::Pending(pending("pi_1")))),
        ("failure", ANY, said(Outcome::Failed(failed("pi_1")))),
        ("failure of another", ANY, said(Outcome::Failed(failed("pi_2")))),
        ("failure, may retry", ANY, said(Outcome::Failed(may_retry))),
        ("conflict", ANY, said(Outcome::Conflict(irregular))),
        ("unknown", ANY, said(Outcome::Unknown(unknown()))),
        (
            "ended, maybe",
            ANSWER,
            Fact::Ended(Failure::maybe_executed(FailureKind::Timeout, "lost")),
        ),
        (
            "ended, not executed",
            ANSWER,
            Fact::Ended(Failure::not_executed(FailureKind::Connect, "refused")),
        ),
        ("absent, counts", INQUIRY, Fact::Absent { counts: true }),
        ("absent, no proof", INQUIRY, Fact::Absent { counts: false }),
        ("never happened", INQUIRY, Fact::NeverHappened),
        ("closed", INQUIRY, Fact::Closed(FailureCategory::Expired)),
        (
            "blind",
            INQUIRY,
            Fact::Blind(Failure::maybe_executed(FailureKind::Timeout, "no answer")),
        ),
    ]
}

fn succeeded(id: &str, amount: Option<Money>) -> Succeeded {
    let mut succeeded = Succeeded::new(amount);
    succeeded.gateway_ref = Some(GatewayRef::new(id));
    succeeded
}

fn pending(id: &str) -> Pending {
    let mut pending = Pending::new(NextStep::Wait);
    pending.gateway_ref = Some(GatewayRef::new(id));
    pending
}

fn failed(id: &str) -> Failed {
    let mut failed = Failed::new(FailureCategory::Declined);
    failed.gateway_ref = Some(GatewayRef::new(id));
    failed
}

fn unknown() -> Unknown {
    Unknown::new(UnknownReason::AnswerLost, "no answer", NOW)
}

/// `base` in a state, as it comes about.
fn in_state(base: &Record, state: &str) -> Record {
    let mut record = base.clone();
    let lost = |record: &mut Record| record.maybe_executed = true;
    let known = |record: &mut Record, outcome: Outcome| {
        record.gateway_ref = outcome.gateway_ref().cloned();
        record.state = State::Known(outcome);
        record.lease = None;
    };
    match state {
        "sending" => {}
        "again" => lost(&mut record),
        "released" => record.state = State::Released,
        "unknown" => {
            lost(&mut record);
            known(&mut record, Outcome::Unknown(unknown()));
        }
        "pending" => known(&mut record, Outcome::Pending(pending("pi_1"))),
        "succeeded" => known(&mut record, Outcome::Succeeded(succeeded("pi_1", base.amount))),
        "failed" => known(&mut record, Outcome::Failed(failed("pi_1"))),
        "conflict" => known(
            &mut record,
            Outcome::Conflict(Conflict::new(ConflictKind::Irregular, "late")),
        ),
        other => panic!("{other}"),
    }
    record
}

/// One line a fact and source. A cell is the state after it, `.` where that is the one before; `?` where the gateway
/// is to be asked, since two final answers contradict each other.
fn table(base: &Record, at: Timestamp) -> String {
    let mut lines = vec![format!("{:21} {:12}", "", "") + &row(&STATES.map(str::to_owned))];
    for (name, sources, fact) in facts(base) {
        let cells = |source: Source| {
            STATES.map(|state| cell(&in_state(base, state), &Observation::new(source, at, fact.clone())))
        };
        let all: Vec<_> = sources.iter().map(|source| (source.as_str(), cells(*source))).collect();
        let alike = all.len() > 1 && all.iter().all(|(_, cells)| *cells == all[0].1);
        for (source, cells) in all.iter().take(if alike { 1 } else { all.len() }) {
            let source = if alike { "any" } else { source };
            lines.push(format!("{name:21} {source:12}") + &row(cells));
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn row(cells: &[String; 8]) -> String {
    cells.iter().map(|cell| format!(" {cell:10}")).collect()
}

fn cell(before: &Record, observation: &Observation) -> String {
    let learned = before.learn(observation);
    let same = before.state_word() == learned.record.state_word();
    assert_eq!(learned.recorded == Recorded::Already, same);
    assert_eq!(learned.record.version, before.version + 1);
    let word = if same { "." } else { learned.record.state_word() };
    let ask = if learned.contradiction { "?" } else { "" };
    format!("{word}{ask}")
}

#[test]
fn a_charge_without_an_open_page() {
    check(&no_page(), soon(), CHARGE);
}

#[test]
fn a_charge_whose_page_is_closed_is_like_one_without_but_that_old_failures_may_come() {
    let after = soon().after(Duration::from_secs(1800)).after(PAGE_GRACE);
    check(&Sample::charge("shop", "order-1").record(), after, &closed());
}

fn closed() -> String {
    let line = |line: &str| match line.starts_with("failure, may retry    notification") {
        true => CLOSED_PAGE.to_owned(),
        false => format!("{line}\n"),
    };
    CHARGE.lines().map(line).collect()
}

#[test]
fn a_page_that_a_later_send_opened_closes_later() {
    let first = Sample::charge("shop", "order-1").record();
    let hour = Duration::from_secs(3600);
    let again = first.send_again(NOW.after(hour), Lease::new("worker/1", soon()), None);
    assert_eq!(again.payable_until, first.payable_until);
    assert_eq!(
        again.page_closes(),
        first.page_closes().map(|closes| closes.after(hour))
    );
}

#[test]
fn c22_while_the_page_is_open_a_failed_try_fails_nothing() {
    let mut open = String::new();
    for line in CHARGE.lines() {
        if line.starts_with("failure, may retry    answer") {
            open += OPEN_PAGE;
        } else if !line.starts_with("failure, may retry") {
            open += line;
            open += "\n";
        }
    }
    let charge = Sample::charge("shop", "order-1").record();
    check(&charge, soon(), &open);
    let last = charge.payable_until.unwrap().after(PAGE_GRACE);
    check(&charge, last, &open);
    check(&charge, last.after(Duration::from_millis(1)), &closed());
}

/// A refund that succeeded can fail later, and a failed one comes back only by an inquiry (C57).
#[test]
fn a_failure_can_be_told_more_of_by_an_inquiry_alone() {
    let declined = in_state(&no_page(), "failed");
    let mut settled = Failed::new(FailureCategory::Settled);
    settled.settled = Some(Money::from_minor(1500, crate::money::Currency::THB));
    for (source, expected) in [
        (Source::Notification, FailureCategory::Declined),
        (Source::Answer, FailureCategory::Declined),
        (Source::Inquiry, FailureCategory::Settled),
    ] {
        let fact = Fact::Said(Outcome::Failed(settled.clone()));
        let learned = declined.learn(&Observation::new(source, soon(), fact));
        let Outcome::Failed(failed) = learned.record.outcome() else {
            panic!("{:?}", learned.record)
        };
        assert_eq!((failed.category, learned.recorded), (expected, Recorded::Already));
    }
}

#[test]
fn c57_a_refund_can_fail_after_it_succeeded() {
    let mut refund = Sample::refund("shop", "refund-1").record();
    refund.payable_until = None;
    check(&refund, soon(), REFUND);
}

#[track_caller]
fn check(base: &Record, at: Timestamp, expected: &str) {
    let actual = table(base, at);
    for (actual, expected) in actual.lines().zip(expected.trim_start_matches('\n').lines()) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.trim(), expected.trim());
}

fn soon() -> Timestamp {
    NOW.after(Duration::from_secs(1))
}

fn no_page() -> Record {
    let mut record = Sample::charge("shop", "order-1").record();
    record.payable_until = None;
    record
}

/// C15: one success and two copies that were told that it was still running, in any order.
#[test]
fn c15_a_success_stands_whatever_the_other_copies_were_told() {
    let running = || Fact::Ended(Failure::maybe_executed(FailureKind::StillRunning, "in progress"));
    let success = |record: &Record| Fact::Said(Outcome::Succeeded(succeeded("pi_1", record.amount)));
    for place in 0..3 {
        let mut record = no_page();
        let mut firsts = 0;
        for turn in 0..3 {
            let fact = if turn == place { success(&record) } else { running() };
            let learned = record.learn(&Observation::new(Source::Answer, soon(), fact));
            firsts += u32::from(learned.recorded == Recorded::First && learned.record.state_word() == "succeeded");
            assert!(!learned.contradiction);
            record = learned.record;
        }
        assert_eq!((record.state_word(), firsts), ("succeeded", 1));
    }
}

/// C18: two notifications of one second that contradict each other, in both orders, and the fetch that decides.
#[test]
fn c18_contradicting_notifications_lead_to_one_fetch_that_decides() {
    let record = in_state(&no_page(), "pending");
    let success = Fact::Said(Outcome::Succeeded(succeeded("pi_1", record.amount)));
    let cancelled = Fact::Said(Outcome::Failed(failed("pi_1")));
    for both in [[&success, &cancelled], [&cancelled, &success]] {
        let one = record.learn(&Observation::new(Source::Notification, soon(), both[0].clone()));
        let two = one
            .record
            .learn(&Observation::new(Source::Notification, soon(), both[1].clone()));
        assert_eq!((one.contradiction, two.contradiction), (false, true));
        let fetched = two
            .record
            .learn(&Observation::new(Source::Inquiry, soon(), success.clone()));
        assert_eq!(fetched.record.state_word(), "succeeded");
        assert!(!fetched.contradiction);
    }
}

#[test]
fn the_first_to_tell_of_a_success_need_not_tell_all() {
    let bare = Fact::Said(Outcome::Succeeded(Succeeded::new(None)));
    let record = no_page().learn(&Observation::new(Source::Answer, soon(), bare)).record;
    let full = Fact::Said(Outcome::Succeeded(succeeded("pi_1", record.amount)));
    let later = soon().after(Duration::from_secs(9));
    let learned = record.learn(&Observation::new(Source::Notification, later, full));
    assert_eq!(learned.recorded, Recorded::Already);
    let Outcome::Succeeded(known) = learned.record.outcome() else {
        panic!("{learned:?}");
    };
    assert_eq!(known.gateway_ref, Some(GatewayRef::new("pi_1")));
    assert_eq!((known.amount, known.at), (record.amount, Some(soon())));
    assert_eq!(learned.record.gateway_ref, known.gateway_ref);
}

#[test]
fn absences_count_only_since_the_last_send_and_until_something_is_heard() {
    let absent = |counts| Observation::new(Source::Inquiry, soon(), Fact::Absent { counts });
    let one = in_state(&no_page(), "unknown").learn(&absent(true)).record;
    let two = one.learn(&absent(false)).record.learn(&absent(true)).record;
    assert_eq!(
        (one.absences.count, two.absences.count, two.absences.last),
        (1, 2, Some(soon()))
    );
    let lease = Lease::new("worker/1", soon());
    assert_eq!(two.send_again(soon(), lease, None).absences, Absences::default());
    let heard = Observation::new(Source::Inquiry, soon(), Fact::Said(Outcome::Pending(pending("pi_1"))));
    assert_eq!(two.learn(&heard).record.absences, Absences::default());
    assert_eq!(
        in_state(&no_page(), "succeeded").learn(&absent(true)).record.absences,
        Absences::default()
    );
}

/// The page that the payer has open is not forgotten when the gateway only says that it is still waiting.
#[test]
fn what_is_pending_keeps_its_page_and_its_beginning() {
    let page = NextStep::Redirect {
        url: "https://pay.example/1".into(),
    };
    let mut opened = pending("pi_1");
    opened.next = page;
    opened.expires_at = Some(NOW.after(Duration::from_secs(1800)));
    let told = |record: &Record, at, pending| {
        let said = Fact::Said(Outcome::Pending(pending));
        record.learn(&Observation::new(Source::Inquiry, at, said)).record
    };
    let first = told(&no_page(), soon(), opened);
    let second = told(
        &first,
        soon().after(Duration::from_secs(9)),
        Pending::new(NextStep::Wait),
    );
    let third = told(&second, soon().after(Duration::from_secs(9)), pending("pi_2"));
    let Outcome::Pending(known) = third.outcome() else {
        panic!("{third:?}");
    };
    assert!(matches!(&known.next, NextStep::Redirect { url } if url.expose() == "https://pay.example/1"));
    assert_eq!(
        (known.expires_at, known.at),
        (Some(NOW.after(Duration::from_secs(1800))), Some(soon()))
    );
    assert_eq!(known.gateway_ref, Some(GatewayRef::new("pi_2")));
    assert_eq!(
        (first.looks, second.looks, third.looks),
        (0, 1, 2),
        "looks without a new state come later and later"
    );
}

#[test]
fn a_second_send_remembers_whether_an_earlier_one_may_have_been_executed() {
    let refused = Failure::not_executed(FailureKind::Connect, "refused");
    let lost = Failure::maybe_executed(FailureKind::Timeout, "lost");
    for (state, failure, maybe) in [
        ("sending", Some(&refused), false),
        ("sending", Some(&lost), true),
        ("sending", None, true),
        ("again", Some(&refused), true),
        ("released", None, false),
        ("unknown", None, true),
    ] {
        let before = in_state(&no_page(), state);
        let next = before.send_again(soon(), Lease::new("worker/1", soon()), failure);
        assert_eq!(
            (next.maybe_executed, next.state_word()),
            (maybe, "sending"),
            "{state} {failure:?}"
        );
        assert_eq!((next.sends, next.version), (before.sends + 1, before.version + 1));
        assert_eq!((next.first_sent_at, next.last_sent_at), (NOW, soon()));
    }
}

/// A record and what is then heard: the index of a fact, that of a source, and how many seconds later (or
/// earlier: clocks do that).
#[derive(Clone, Debug)]
struct Story {
    base: Record,
    heard: Vec<(usize, usize, i64)>,
}

impl Story {
    fn observations(&self) -> impl Iterator<Item = Observation> {
        let facts = facts(&self.base);
        let mut at = NOW;
        self.heard.iter().map(move |(fact, source, seconds)| {
            at = Timestamp::from_unix_millis(at.unix_millis() + seconds * 1000);
            let (_, sources, fact) = &facts[fact % facts.len()];
            Observation::new(sources[source % sources.len()], at, fact.clone())
        })
    }
}

fn story() -> impl Strategy<Value = Story> {
    let bases = vec![
        no_page(),
        Sample::charge("shop", "order-1").record(),
        Sample::refund("shop", "refund-1").record(),
    ];
    let heard = prop::collection::vec((0..99_usize, 0..3_usize, -60..900_i64), 0..24);
    (prop::sample::select(bases), heard).prop_map(|(base, heard)| Story { base, heard })
}

fn is_success_as_asked(record: &Record, fact: &Fact) -> bool {
    matches!(fact, Fact::Said(Outcome::Succeeded(heard)) if heard.amount.is_none() || heard.amount == record.amount)
}

proptest! {
    #[test]
    fn a_success_of_a_charge_is_never_forgotten(story in story().prop_filter("charge", |story| story.base.kind == OperationKind::Charge)) {
        let (mut record, mut paid) = (story.base.clone(), false);
        for observation in story.observations() {
            paid |= is_success_as_asked(&record, &observation.fact);
            record = record.learn(&observation).record;
            if paid {
                prop_assert!(["succeeded", "conflict"].contains(&record.state_word()), "{}", record.state_word());
            }
        }
    }

    #[test]
    fn what_is_unknown_becomes_failed_or_released_by_proof_alone(story in story()) {
        let mut record = story.base.clone();
        for observation in story.observations() {
            let next = record.learn(&observation).record;
            if record.state_word() == "unknown" {
                let proven = match next.state_word() {
                    "failed" => matches!(observation.fact, Fact::Said(Outcome::Failed(_)) | Fact::Closed(_)),
                    "released" => matches!(observation.fact, Fact::NeverHappened),
                    _ => true,
                };
                prop_assert!(proven, "{:?}", observation.fact);
            }
            if record.state_word() == "conflict" {
                prop_assert_eq!(next.state_word(), "conflict");
            }
            record = next;
        }
    }

    #[test]
    fn the_same_observation_a_second_time_changes_nothing(story in story()) {
        let mut record = story.base.clone();
        for observation in story.observations() {
            let once = record.learn(&observation).record;
            let twice = once.learn(&observation);
            prop_assert_eq!(twice.recorded, Recorded::Already);
            prop_assert_eq!(format!("{:?}", once.state), format!("{:?}", twice.record.state));
            prop_assert_eq!(&once.gateway_ref, &twice.record.gateway_ref);
            record = once;
        }
    }

    #[test]
    fn every_step_leaves_a_record_that_holds_together(story in story()) {
        let mut record = story.base.clone();
        for observation in story.observations() {
            let learned = record.learn(&observation);
            let next = learned.record;
            prop_assert_eq!(next.version, record.version + 1);
            prop_assert!(next.updated_at >= record.updated_at);
            prop_assert_eq!(learned.recorded == Recorded::First, record.state_word() != next.state_word());
            prop_assert_eq!((&*learned.line.from, &*learned.line.to), (record.state_word(), next.state_word()));
            // What cannot change by itself is not looked at, and nobody may send it.
            prop_assert!(next.is_open() || next.lease.is_none());
            prop_assert!(next.is_open() || next.due_at.is_none());
            prop_assert!(next.state_word() != "unknown" || next.maybe_executed);
            // It can be written and read.
            let read = Row::write(&next).unwrap().read().unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{:?}", Row::kept(next.clone())));
            record = next;
        }
    }

    /// Nothing here contradicts the success, so whoever comes first, it ends in the same.
    #[test]
    fn the_order_in_which_a_success_and_its_delays_are_heard_does_not_matter(
        heard in prop::collection::vec(prop::sample::select(vec![4_usize, 9, 10, 11, 12, 13, 16]), 0..12),
        place in 0..12_usize,
        source in 0..3_usize,
    ) {
        let mut heard: Vec<_> = heard.into_iter().map(|fact| (fact, source, 1)).collect();
        heard.insert(place.min(heard.len()), (0, source, 1));
        let story = Story { base: no_page(), heard };
        let record = story.observations().fold(no_page(), |record, it| record.learn(&it).record);
        prop_assert_eq!(record.state_word(), "succeeded");
    }
}

#[rustfmt::skip]
const CHARGE: &str = "
                                   sending    again      released   unknown    pending    succeeded  failed     conflict
success               answer       succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded? .
success               inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded  .
success               notification succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded? .
success, bare         answer       succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded? .
success, bare         inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded  .
success, bare         notification succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded? .
success of another    answer       succeeded  succeeded  succeeded  succeeded  succeeded  conflict   succeeded? .
success of another    inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  conflict   succeeded  .
success of another    notification succeeded  succeeded  succeeded  succeeded  succeeded  conflict   succeeded? .
success, other amount any          conflict   conflict   conflict   conflict   conflict   conflict   conflict   .
pending               any          pending    pending    pending    pending    .          .          .          .
failure               answer       failed     failed     failed     failed     failed     .?         .          .
failure               inquiry      failed     failed     failed     failed     failed     conflict   .          .
failure               notification failed     failed     failed     failed     failed     .?         .          .
failure of another    answer       failed     failed     failed     failed     failed     .?         .          .
failure of another    inquiry      failed     failed     failed     failed     failed     conflict   .          .
failure of another    notification failed     failed     failed     failed     failed     .?         .          .
failure, may retry    answer       failed     failed     failed     failed     failed     .?         .          .
failure, may retry    inquiry      failed     failed     failed     failed     failed     conflict   .          .
failure, may retry    notification failed     failed     failed     failed     failed     .?         .          .
conflict              any          conflict   conflict   conflict   conflict   conflict   conflict   conflict   .
unknown               any          unknown    unknown    unknown    .          .          .          .          .
ended, maybe          answer       unknown    unknown    unknown    .          .          .          .          .
ended, not executed   answer       released   unknown    .          .          .          .          .          .
absent, counts        inquiry      unknown    unknown    .          .          .          .          .          .
absent, no proof      inquiry      unknown    unknown    .          .          .          .          .          .
never happened        inquiry      released   released   .          released   released   .          .          .
closed                inquiry      failed     failed     .          failed     failed     .          .          .
blind                 inquiry      .          .          .          .          .          .          .          .
";

#[rustfmt::skip]
const OPEN_PAGE: &str = "\
failure, may retry    any          pending    pending    pending    pending    .          .          .          .
";

#[rustfmt::skip]
const CLOSED_PAGE: &str = "\
failure, may retry    notification .?         .?         .?         .?         .?         .?         .          .
";

#[rustfmt::skip]
const REFUND: &str = "
                                   sending    again      released   unknown    pending    succeeded  failed     conflict
success               answer       succeeded  succeeded  succeeded  succeeded  succeeded  .          .?         .
success               inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded  .
success               notification succeeded  succeeded  succeeded  succeeded  succeeded  .          .?         .
success, bare         answer       succeeded  succeeded  succeeded  succeeded  succeeded  .          .?         .
success, bare         inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  .          succeeded  .
success, bare         notification succeeded  succeeded  succeeded  succeeded  succeeded  .          .?         .
success of another    answer       succeeded  succeeded  succeeded  succeeded  succeeded  conflict   .?         .
success of another    inquiry      succeeded  succeeded  succeeded  succeeded  succeeded  conflict   succeeded  .
success of another    notification succeeded  succeeded  succeeded  succeeded  succeeded  conflict   .?         .
success, other amount any          conflict   conflict   conflict   conflict   conflict   conflict   conflict   .
pending               any          pending    pending    pending    pending    .          .          .          .
failure               answer       failed     failed     failed     failed     failed     .?         .          .
failure               inquiry      failed     failed     failed     failed     failed     failed     .          .
failure               notification failed     failed     failed     failed     failed     failed     .          .
failure of another    answer       failed     failed     failed     failed     failed     .?         .          .
failure of another    inquiry      failed     failed     failed     failed     failed     failed     .          .
failure of another    notification failed     failed     failed     failed     failed     .?         .          .
failure, may retry    answer       failed     failed     failed     failed     failed     .?         .          .
failure, may retry    inquiry      failed     failed     failed     failed     failed     failed     .          .
failure, may retry    notification failed     failed     failed     failed     failed     failed     .          .
conflict              any          conflict   conflict   conflict   conflict   conflict   conflict   conflict   .
unknown               any          unknown    unknown    unknown    .          .          .          .          .
ended, maybe          answer       unknown    unknown    unknown    .          .          .          .          .
ended, not executed   answer       released   unknown    .          .          .          .          .          .
absent, counts        inquiry      unknown    unknown    .          .          .          .          .          .
absent, no proof      inquiry      unknown    unknown    .          .          .          .          .          .
never happened        inquiry      released   released   .          released   released   .          .          .
closed                inquiry      failed     failed     .          failed     failed     .          .          .
blind                 inquiry      .          .          .          .          .          .          .          .
";
