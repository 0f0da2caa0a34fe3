//! FakeTwoC2p's plans of recurring payments, against what 2C2P's documentation says.

use super::bounded;
use super::twoc2p_maintenance::{Desk, element};
use payonce::money::{Currency, Money};
use payonce::testing::server::RecurringPlan;
use payonce::testing::{Fault, FaultPlan};

async fn desk() -> Desk {
    let desk = Desk::new().await;
    let price = Money::from_minor(9990, Currency::THB);
    let plan = RecurringPlan::new("156142", price, 30).count(12).next_date("07032021");
    desk.shop.server.add_plan(plan);
    desk
}

fn request(process: &str, more: &str) -> String {
    format!(
        "<RecurringMaintenanceRequest><version>2.4</version><timeStamp>010126070000</timeStamp>\
         <merchantID>TESTM01</merchantID><recurringUniqueID>156142</recurringUniqueID>\
         <processType>{process}</processType>{more}</RecurringMaintenanceRequest>"
    )
}

const CHANGE: &str = "<recurringStatus>N</recurringStatus><amount>000000012345</amount>\
    <allowAccumulate>Y</allowAccumulate><maxAccumulateAmount>000000020000</maxAccumulateAmount>\
    <recurringInterval>7</recurringInterval><recurringCount>3</recurringCount>\
    <chargeNextDate>29022028</chargeNextDate><chargeOnDate></chargeOnDate>";

#[tokio::test]
async fn a_plan_is_looked_at_in_the_form_of_the_sample() {
    let desk = desk().await;
    let answer = desk.ask(&request("I", "<amount>99.90</amount>")).await;
    assert!(answer.starts_with("<RecurringMaintenanceResponse>"), "{answer}");
    for (name, value) in [
        ("version", "2.1"),
        ("merchantID", "TESTM01"),
        ("recurringUniqueID", "156142"),
        ("respCode", "00"),
        ("respReason", "Success"),
        ("recurringStatus", "Y"),
        ("currency", "764"),
        ("amount", "000000009990"),
        ("allowAccumulate", "N"),
        ("recurringInterval", "30"),
        ("recurringCount", "12"),
        ("chargeNextDate", "20210307"),
        ("chargeOnDate", ""),
    ] {
        assert_eq!(element(&answer, name), value, "{name} in {answer}");
    }
}

#[tokio::test]
async fn a_change_states_the_plan_anew_and_can_be_repeated() {
    let desk = desk().await;
    desk.shop
        .server
        .set_faults(FaultPlan::script([Fault::CloseAfterEffect]));
    let sealed = desk.sealer.seal(&request("U", CHANGE));
    assert!(bounded(desk.post(sealed)).await.is_err());
    let changed = desk.shop.server.plan("156142");
    let answer = desk.ask(&request("U", CHANGE)).await;
    assert_eq!(
        (element(&answer, "respCode"), element(&answer, "amount")),
        ("00".into(), "000000012345".into())
    );
    assert_eq!(desk.shop.server.plan("156142"), changed);
    assert_eq!(
        (changed.active, changed.interval_days, changed.count),
        (false, Some(7), 3)
    );
    assert_eq!(changed.next_date.as_deref(), Some("29022028"));
    assert_eq!(changed.accumulates_to, Some(Money::from_minor(20_000, Currency::THB)));
    let monthly = CHANGE
        .replace("<recurringInterval>7</recurringInterval>", "")
        .replace("<chargeOnDate></chargeOnDate>", "<chargeOnDate>3101</chargeOnDate>");
    assert_eq!(
        element(&desk.ask(&request("U", &monthly)).await, "chargeOnDate"),
        "3101"
    );
    assert_eq!(desk.shop.server.plan("156142").interval_days, None);
    assert!(desk.shop.bank().movements().is_empty());
}

#[tokio::test]
async fn a_plan_that_was_ended_stays_so() {
    let desk = desk().await;
    for _ in 0..2 {
        let answer = desk.ask(&request("C", "<recurringStatus>Y</recurringStatus>")).await;
        assert_eq!(
            (element(&answer, "respCode"), element(&answer, "version")),
            ("00".into(), "2.4".into())
        );
        assert_eq!(element(&answer, "merchantID"), "", "the sample has none");
    }
    assert!(desk.shop.server.plan("156142").cancelled);
    assert_eq!(element(&desk.ask(&request("I", "")).await, "recurringStatus"), "N");
    assert_eq!(element(&desk.ask(&request("U", CHANGE)).await, "respCode"), "12");
}

#[tokio::test]
async fn requests_about_plans_that_are_not_well_made_are_refused() {
    let desk = desk().await;
    let before = desk.shop.server.plan("156142");
    let good = request("U", CHANGE);
    for (xml, code) in [
        (good.replace("<version>2.4</version>", ""), "10"),
        (good.replace("<amount>000000012345</amount>", ""), "10"),
        (good.replace("<recurringCount>3</recurringCount>", ""), "10"),
        (good.replace("<recurringInterval>7</recurringInterval>", ""), "10"),
        (good.replace("000000012345", "123.45"), "18"),
        (good.replace("000000012345", "000000000000"), "18"),
        (good.replace(">7<", ">366<"), "11"),
        (good.replace("29022028", "20280229"), "11"),
        (good.replace("29022028", "29022027"), "11"),
        (good.replace(">N<", ">n<"), "11"),
        (good.replace("2.4", "2.1"), "11"),
        (good.replace("chargeOnDate", "idempotencyID"), "11"),
        (good.replace("TESTM01", "TESTM02"), "14"),
        (good.replace("156142", "156143"), "16"),
        (good.replace(">U<", ">D<"), "17"),
    ] {
        assert_eq!(element(&desk.ask(&xml).await, "respCode"), code, "{xml}");
    }
    assert_eq!(desk.shop.server.plan("156142"), before);
    desk.shop.server.next_maintenance_code("RPP-U", "95");
    desk.shop.server.next_maintenance_code_after_effect("RPP-C", "99");
    assert_eq!(element(&desk.ask(&good).await, "respCode"), "95");
    assert_eq!(desk.shop.server.plan("156142"), before);
    assert_eq!(element(&desk.ask(&request("C", "")).await, "respCode"), "99");
    assert!(desk.shop.server.plan("156142").cancelled);
}
