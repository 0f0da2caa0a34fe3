//! Payment plans against a network that is a list of sealed answers.

use super::*;
use crate::gateway::twoc2p::maintenance::samples::sample;
use crate::gateway::twoc2p::maintenance::updates::network::{Account, Answer, no_answers, reserve, sealed};
use crate::gateway::{Gateway, twoc2p::TwoC2pOptions};
use crate::money::{Currency, Money};
use crate::operation::Operation;
use crate::retry::SameKey;
use proptest::prelude::*;

const ID: &str = "156142";

fn terms() -> PlanTerms {
    let next = ChargeDate::new(2021, 3, 7).unwrap();
    PlanTerms::new(
        Money::from_minor(9990, Currency::SGD),
        PlanSchedule::EveryDays(30),
        12,
        next,
    )
}

fn cancel() -> Operation {
    Operation::update("plan-42/cancel", PlanChange::cancel(ID)).unwrap()
}

fn update(terms: PlanTerms) -> Operation {
    Operation::update("plan-42/update-1", PlanChange::update(ID, terms)).unwrap()
}

/// The printed answer to a question, of this merchant.
fn printed() -> String {
    sample!("RPP-I-response.xml").replace("JT01", "TESTM01")
}

/// An answer that says only this.
fn says(code: &str, more: &str) -> String {
    format!(
        "<RecurringMaintenanceResponse><version>2.4</version><respCode>{code}</respCode>\
         <recurringUniqueID>{ID}</recurringUniqueID>{more}</RecurringMaintenanceResponse>"
    )
}

async fn read(xml: &str) -> PaymentPlan {
    Account::new([sealed(xml)]).twoc2p.payment_plan(ID).await.unwrap()
}

async fn cancelled(answer: Answer) -> Result<Outcome, Failure> {
    Account::new([answer]).send(&cancel()).await
}

#[track_caller]
fn succeeded(outcome: Result<Outcome, Failure>) -> Succeeded {
    match outcome {
        Ok(Outcome::Succeeded(succeeded)) => succeeded,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_open(outcome: Result<Outcome, Failure>, kind: FailureKind) {
    let failure = outcome.expect_err("an outcome where there was none");
    assert!(failure.may_have_executed(), "{failure}");
    assert_eq!(failure.kind(), kind, "{failure}");
}

#[tokio::test]
async fn a_plan_is_read_as_it_is_printed() {
    let account = Account::new([sealed(&printed())]);
    let plan = account.twoc2p.payment_plan(ID).await.unwrap();
    assert_eq!((plan.code.as_deref(), plan.class()), (Some("00"), Class::Success));
    assert_eq!(plan.status, Some(PlanStatus::Active));
    assert_eq!(plan.amount, Some(Money::from_minor(9990, Currency::SGD)));
    assert_eq!(plan.amount_text.as_deref(), Some("000000009990"));
    assert_eq!(plan.masked_card_no.as_deref(), Some("XXXXXXXXXXXX1111"));
    assert_eq!(
        (plan.interval_days, plan.count, plan.current_count),
        (Some(30), Some(12), None)
    );
    assert_eq!((plan.accumulates, plan.charge_day), (Some(false), None));
    assert_eq!(plan.next_charge, ChargeDate::new(2021, 3, 7).ok());
    assert_eq!(plan.terms(), Some(terms()));
    let sent = account.sent();
    assert_eq!(sent[0].0, "https://plans.example/action");
    assert_eq!(
        sent[0].1,
        "<RecurringMaintenanceRequest><version>2.4</version><merchantID>TESTM01</merchantID>\
         <recurringUniqueID>156142</recurringUniqueID><processType>I</processType>\
         <recurringStatus>Y</recurringStatus></RecurringMaintenanceRequest>"
    );
}

#[tokio::test]
async fn what_cannot_be_read_exactly_is_text_alone() {
    for (from, to) in [
        ("000000009990", "99.90"),
        (">702<", ">392<"),
        (">702<", ">360<"),
        (">702<", "><"),
        ("<recurringInterval>30", "<recurringInterval>-30"),
        ("<recurringCount>12", "<recurringCount>4294967296"),
        ("20210307", "20213107"),
        ("<recurringStatus>Y", "<recurringStatus>X"),
        ("<allowAccumulate>N", "<allowAccumulate>"),
        ("<chargeNextDate>", "<chargeOnDate>9999</chargeOnDate><chargeNextDate>"),
        ("<chargeNextDate>", "<chargeOnDate>0101</chargeOnDate><chargeNextDate>"),
    ] {
        let changed = printed().replace(from, to);
        assert_ne!(changed, printed());
        let plan = read(&changed).await;
        assert_eq!(plan.terms(), None, "{to}");
    }
    let plan = read(&printed().replace("XXXXXXXXXXXX1111", "4111111111111111")).await;
    assert_eq!(plan.masked_card_no.as_deref(), Some("***"));
    assert!(!format!("{plan:?}").contains("9990"));
}

#[tokio::test]
async fn a_cancel_is_one_request_that_is_the_same_each_time() {
    let printed = sample!("RPP-C-response.xml");
    let account = Account::new([sealed(printed), sealed(printed)]);
    let (record, instruction) = reserve(&*account.twoc2p, &cancel());
    assert_eq!(record.wire_identity(), format!("plan/156142/cancel/{}", record.key()));
    for _ in 0..2 {
        let succeeded = succeeded(account.twoc2p.send(&instruction).await);
        assert_eq!(succeeded.gateway_ref, Some(GatewayRef::new(ID)));
        assert_eq!(
            (succeeded.amount, succeeded.evidence.code.as_deref()),
            (None, Some("00"))
        );
    }
    let sent = account.sent();
    assert_eq!(sent[0], sent[1]);
    assert!(sent[0].1.contains("<processType>C</processType>"), "{}", sent[0].1);
}

#[tokio::test]
async fn an_update_states_all_terms_in_the_documented_order() {
    let account = Account::new([sealed(&printed()), sealed(&says("00", ""))]);
    succeeded(account.send(&update(terms())).await);
    assert_eq!(
        account.last_body(),
        "<RecurringMaintenanceRequest><version>2.4</version><merchantID>TESTM01</merchantID>\
         <recurringUniqueID>156142</recurringUniqueID><processType>U</processType>\
         <recurringStatus>Y</recurringStatus><amount>000000009990</amount><allowAccumulate>N</allowAccumulate>\
         <recurringInterval>30</recurringInterval><recurringCount>12</recurringCount>\
         <chargeNextDate>07032021</chargeNextDate></RecurringMaintenanceRequest>"
    );
    let mut other = terms();
    other.schedule = PlanSchedule::MonthlyOn(ChargeDay::new(31, 1).unwrap());
    other.accumulates_to = Some(Money::from_minor(100_000, Currency::SGD));
    other.active = false;
    let account = Account::new([sealed(&printed()), sealed(&says("00", ""))]);
    succeeded(account.send(&update(other)).await);
    let (_, rest) = account
        .last_body()
        .split_once("<processType>U</processType>")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert_eq!(
        rest,
        "<recurringStatus>N</recurringStatus><amount>000000009990</amount><allowAccumulate>Y</allowAccumulate>\
         <maxAccumulateAmount>000000100000</maxAccumulateAmount><recurringCount>12</recurringCount>\
         <chargeNextDate>07032021</chargeNextDate><chargeOnDate>3101</chargeOnDate></RecurringMaintenanceRequest>"
    );
}

#[test]
fn a_change_that_cannot_be_written_is_refused_before_anything_is_sent() {
    let account = Account::new([]);
    let refused = |operation: Operation| {
        let key = operation.key(&crate::operation::Namespace::new("shop1").unwrap());
        account.twoc2p.prepare(key, &operation).unwrap_err()
    };
    for id in ["", "12a", "123456789012345678901", "1/2", "๑"] {
        let operation = Operation::update("a", PlanChange::cancel(id)).unwrap();
        assert!(matches!(refused(operation), Refusal::Invalid(it) if it.field() == "recurring_unique_id"));
    }
    let mut bad = Vec::new();
    let mut with = |change: fn(&mut PlanTerms)| {
        let mut terms = terms();
        change(&mut terms);
        bad.push(terms);
    };
    with(|terms| terms.amount = Money::from_minor(0, Currency::SGD));
    with(|terms| terms.amount = Money::from_minor(1_000_000_000_000, Currency::SGD));
    with(|terms| terms.accumulates_to = Some(Money::from_minor(1, Currency::THB)));
    with(|terms| terms.schedule = PlanSchedule::EveryDays(0));
    with(|terms| terms.schedule = PlanSchedule::EveryDays(366));
    with(|terms| terms.schedule = PlanSchedule::MonthlyOn(ChargeDay { day: 32, month: 1 }));
    with(|terms| terms.count = 100_000);
    with(|terms| terms.next_charge.month = 13);
    for terms in bad {
        assert!(
            matches!(refused(update(terms.clone())), Refusal::Invalid(_)),
            "{terms:?}"
        );
    }
    for code in ["JPY", "KWD", "IDR"] {
        let mut terms = terms();
        terms.amount = Money::from_minor(100, Currency::parse(code).unwrap());
        assert!(matches!(refused(update(terms)), Refusal::Unsupported(_)), "{code}");
    }
    for (operation, field) in [
        (cancel().description("x"), "description"),
        (cancel().metadata("a", "b"), "metadata"),
        (cancel().expires_at(crate::clock::Timestamp::NEVER), "expires_at"),
    ] {
        assert!(matches!(refused(operation), Refusal::Invalid(it) if it.field() == field));
    }
    let other = Operation::update("a", TwoC2pOptions::new()).unwrap();
    assert!(matches!(refused(other), Refusal::Unsupported(_)));
    assert!(account.sent().is_empty());
}

#[tokio::test]
async fn a_refusal_is_final_only_where_the_engine_can_ask_before_it_believes() {
    for (code, category) in [
        ("02", FailureCategory::Invalid),
        ("10", FailureCategory::Invalid),
        ("61", FailureCategory::Invalid),
        ("16", FailureCategory::NoSuchPayment),
    ] {
        match cancelled(sealed(&says(code, ""))).await {
            Ok(Outcome::Failed(failed)) => assert_eq!(failed.category, category, "{code}"),
            other => panic!("{code}: {other:?}"),
        }
    }
    for (code, kind) in [
        ("", FailureKind::Unreadable),
        ("12", FailureKind::ServerFault),
        ("29", FailureKind::Duplicate),
        ("42", FailureKind::ServerFault),
        ("51", FailureKind::StillRunning),
        ("65", FailureKind::ServerFault),
        ("99", FailureKind::ServerFault),
        ("0000", FailureKind::ServerFault),
        ("ZZ", FailureKind::ServerFault),
    ] {
        is_open(cancelled(sealed(&says(code, ""))).await, kind);
    }
    let failure = cancelled(sealed(&says("14", ""))).await.unwrap_err();
    assert_eq!(
        (failure.may_have_executed(), failure.kind()),
        (false, FailureKind::Credentials)
    );
    // A cancel that worked leaves no active plan.
    is_open(
        cancelled(sealed(&says("00", "<recurringStatus>Y</recurringStatus>"))).await,
        FailureKind::Unreadable,
    );
}

#[tokio::test]
async fn an_answer_about_another_plan_or_merchant_is_none() {
    for (from, to) in [
        (ID, "156143"),
        (ID, ""),
        ("<version>", "<merchantID>OTHER</merchantID><version>"),
        ("RecurringMaintenanceResponse", "PaymentProcessResponse"),
        ("<respCode>", "<recurringUniqueID>156142</recurringUniqueID><respCode>"),
    ] {
        for code in ["00", "02", "16"] {
            let xml = says(code, "").replace(from, to);
            is_open(cancelled(sealed(&xml)).await, FailureKind::Unreadable);
            let account = Account::new([sealed(&xml)]);
            is_open(
                account.twoc2p.payment_plan(ID).await.map(|_| unreachable!("{xml}")),
                FailureKind::Unreadable,
            );
        }
    }
}

#[tokio::test]
async fn what_2c2p_did_not_seal_for_us_says_nothing() {
    for (answer, kind) in no_answers(&says("00", "")) {
        is_open(cancelled(answer).await, kind);
    }
    for (answer, kind) in no_answers(&says("00", "<recurringStatus>N</recurringStatus>")) {
        let account = Account::new([answer]);
        let failure = account.inquire(&cancel()).await.unwrap_err();
        assert_eq!(failure.kind(), kind);
        assert!(!format!("{failure} {failure:?}").contains("4111"), "{failure:?}");
    }
}

#[tokio::test]
async fn an_update_over_another_amount_or_currency_is_for_a_person() {
    for xml in [printed().replace("9990", "9991"), printed().replace(">702<", ">764<")] {
        let account = Account::new([sealed(&printed()), sealed(&xml)]);
        match account.send(&update(terms())).await {
            Ok(Outcome::Conflict(conflict)) => assert_eq!(conflict.expected, Some(terms().amount)),
            other => panic!("{other:?}"),
        }
    }
    let account = Account::new([
        sealed(&printed()),
        sealed(&printed().replace("<recurringCount>12", "<recurringCount>13")),
    ]);
    assert_eq!(succeeded(account.send(&update(terms())).await).notes.len(), 1);
    let account = Account::new([sealed(&printed()), sealed(&printed())]);
    assert!(succeeded(account.send(&update(terms())).await).notes.is_empty());
}

#[tokio::test]
async fn terms_in_another_currency_than_the_plan_s_are_not_sent() {
    let account = Account::new([sealed(&printed().replace(">702<", ">764<"))]);
    match account.send(&update(terms())).await {
        Ok(Outcome::Failed(failed)) => assert_eq!(failed.category, FailureCategory::Invalid),
        other => panic!("{other:?}"),
    }
    assert!(
        account.body().contains("<processType>I</processType>"),
        "a look, and nothing else"
    );
}

#[tokio::test]
async fn an_update_is_not_sent_when_the_plan_cannot_be_looked_at() {
    let lost = Failure::maybe_executed(FailureKind::Timeout, "no answer in time");
    let failure = Account::new([Err(lost)]).send(&update(terms())).await.unwrap_err();
    assert!(!failure.may_have_executed(), "{failure}");
}

#[tokio::test]
async fn an_inquiry_proves_what_the_plan_shows_and_no_more() {
    let found = |xml: String, operation: Operation| async move {
        let account = Account::new([sealed(&xml)]);
        let inquiry = account.inquire(&operation).await;
        assert!(account.body().contains("<processType>I</processType>"));
        match inquiry {
            Ok(Inquiry::Found(Outcome::Succeeded(_))) => "succeeded",
            Ok(Inquiry::Absent { consistent: true }) => "not yet",
            Ok(Inquiry::Absent { consistent: false }) => "open",
            Err(failure) if failure.may_have_executed() => "nothing",
            other => panic!("{other:?}"),
        }
    };
    let inactive = printed().replace("<recurringStatus>Y", "<recurringStatus>N");
    let unclear = printed().replace("<recurringStatus>Y", "<recurringStatus>Q");
    assert_eq!(found(inactive.clone(), cancel()).await, "succeeded");
    assert_eq!(found(printed(), cancel()).await, "not yet");
    assert_eq!(found(unclear, cancel()).await, "nothing");
    for code in ["16", "14", "99", "02"] {
        assert_eq!(
            found(says(code, "<recurringStatus>N</recurringStatus>"), cancel()).await,
            "nothing"
        );
        assert_eq!(found(says(code, ""), update(terms())).await, "nothing");
    }
    assert_eq!(found(printed(), update(terms())).await, "succeeded");
    assert_eq!(found(inactive, update(terms())).await, "open");
    assert_eq!(found(printed().replace("9990", "9991"), update(terms())).await, "open");
    assert_eq!(
        found(printed().replace(">702<", ">764<"), update(terms())).await,
        "open"
    );
    assert_eq!(
        found(printed().replace("20210307", "20210406"), update(terms())).await,
        "open"
    );
    let second = update(terms()).attempt(std::num::NonZeroU32::new(2).unwrap());
    assert_eq!(found(printed(), second).await, "succeeded");
}

#[test]
fn a_change_is_sent_again_for_ten_minutes() {
    let promise = Account::new([]).twoc2p.promise(crate::operation::OperationKind::Update);
    let within = Duration::from_secs(600);
    assert_eq!(promise.same_key, SameKey::LatestState { within });
}

#[test]
fn anything_that_is_asked_for_is_in_the_fingerprint() {
    let mut all = vec![cancel().fingerprint()];
    let mut with = |change: fn(&mut PlanTerms)| {
        let mut terms = terms();
        change(&mut terms);
        all.push(
            Operation::update("plan-42/cancel", PlanChange::update(ID, terms))
                .unwrap()
                .fingerprint(),
        );
    };
    with(|_| {});
    with(|terms| terms.amount = Money::from_minor(9991, Currency::SGD));
    with(|terms| terms.amount = Money::from_minor(9990, Currency::THB));
    with(|terms| terms.accumulates_to = Some(terms.amount));
    with(|terms| terms.schedule = PlanSchedule::EveryDays(31));
    with(|terms| terms.schedule = PlanSchedule::MonthlyOn(ChargeDay { day: 31, month: 1 }));
    with(|terms| terms.count = 0);
    with(|terms| terms.next_charge.day = 8);
    with(|terms| terms.active = false);
    all.push(
        Operation::update("plan-42/cancel", PlanChange::cancel("156143"))
            .unwrap()
            .fingerprint(),
    );
    for (at, one) in all.iter().enumerate() {
        assert_eq!(all.iter().filter(|other| *other == one).count(), 1, "{at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever 2C2P seals: it is about this plan and says 00, or a cancel has not succeeded.
    #[test]
    fn no_answer_makes_it_panic_or_guess(
        code in "00|16|0|[0-9]{2}|.{0,3}",
        id in "156142|[0-9]{1,20}|.{0,5}",
        status in "Y|N|.{0,2}",
        rest in "[<>&;a-zA-Z0-9/ ]{0,60}",
    ) {
        let escaped = |text: &str| quick_xml::escape::escape(text).into_owned();
        let xml = format!(
            "<RecurringMaintenanceResponse><respCode>{}</respCode><recurringUniqueID>{}</recurringUniqueID>\
             <recurringStatus>{}</recurringStatus><amount>{rest}</amount></RecurringMaintenanceResponse>",
            escaped(&code), escaped(&id), escaped(&status),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (sent, looked) = runtime.block_on(async {
            let account = Account::new([sealed(&xml), sealed(&xml)]);
            (account.send(&cancel()).await, account.inquire(&cancel()).await)
        });
        let good = code.trim() == "00" && id.trim() == ID;
        prop_assert!(good || !matches!(sent, Ok(Outcome::Succeeded(_))), "{sent:?}");
        prop_assert!((good && status.trim() == "N") || !matches!(looked, Ok(Inquiry::Found(_))), "{looked:?}");
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(root) = crate::gateway::twoc2p::maintenance::xml::parse(&bytes) {
            let _ = PaymentPlan::read(&root);
        }
    }
}
