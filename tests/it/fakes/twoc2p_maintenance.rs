//! FakeTwoC2p's maintenance API, against what 2C2P's documentation says. The bank judges.

use super::sealing::{self, Sealer};
use super::twoc2p::{ORDER, Shop};
use super::{Answer, bounded};
use aws_lc_rs::signature::KeyPair as _;
use payonce::operation::OperationKind;
use payonce::testing::server::RefundRows;
use payonce::testing::{Fault, FaultPlan};
use std::time::Duration;

const ACTION: &str = "POST /PaymentAction/2.0/action";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A shop, its keys, and an invoice `INV7001` over 100.00 that is not paid yet.
pub(super) struct Desk {
    pub(super) shop: Shop,
    pub(super) sealer: Sealer,
}

impl Desk {
    pub(super) async fn new() -> Self {
        Self::with(|order| order).await
    }

    /// An authorization instead of a charge.
    async fn preauth() -> Self {
        let desk = Self::with(|order| order.replace("\"k1\"", "\"k1\",\"transactionMode\":\"PREAUTH\"")).await;
        assert!(desk.shop.server.pay("INV7001"));
        desk
    }

    /// Paid and settled.
    pub(super) async fn settled() -> Self {
        let desk = Self::new().await;
        assert!(desk.shop.server.pay("INV7001") && desk.shop.server.settle("INV7001"));
        desk
    }

    async fn with(change: impl FnOnce(String) -> String) -> Self {
        let shop = Shop::new();
        let sealer = Sealer::of(&shop.server);
        shop.token(&change(ORDER.replace("2000.10", "100.00"))).await;
        Self { shop, sealer }
    }

    /// The XML of the answer to a request.
    pub(super) async fn ask(&self, xml: &str) -> String {
        let answer = bounded(self.post(self.sealer.seal(xml))).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        self.sealer.open(&answer.text)
    }

    pub(super) async fn post(&self, body: String) -> Result<Answer, reqwest::Error> {
        let request = self.shop.client.post(self.shop.server.maintenance_url());
        Answer::of(request.header("Content-Type", "text/plain").body(body)).await
    }

    /// The code and the status of an answer.
    pub(super) async fn act(&self, process: &str, amount: &str, more: &str) -> (String, String) {
        let answer = self.ask(&request(process, "INV7001", amount, more)).await;
        assert_eq!(element(&answer, "processType"), process);
        assert_eq!(element(&answer, "invoiceNo"), "INV7001");
        (element(&answer, "respCode"), element(&answer, "status"))
    }

    pub(super) async fn code(&self, process: &str, amount: &str, more: &str) -> String {
        self.act(process, amount, more).await.0
    }

    pub(super) async fn status(&self) -> String {
        self.act("I", "100.00", "").await.1
    }
}

pub(super) fn request(process: &str, invoice: &str, amount: &str, more: &str) -> String {
    let amount = if amount.is_empty() {
        String::new()
    } else {
        format!("<actionAmount>{amount}</actionAmount>")
    };
    format!(
        "<PaymentProcessRequest><version>4.3</version><timeStamp>010126070000</timeStamp>\
         <merchantID>TESTM01</merchantID><processType>{process}</processType><invoiceNo>{invoice}</invoiceNo>\
         {amount}{more}</PaymentProcessRequest>"
    )
}

/// The text of the first element of this name, or nothing.
pub(super) fn element(xml: &str, name: &str) -> String {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let inside = xml.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
    inside.map(|(text, _)| text.to_owned()).unwrap_or_default()
}

pub(super) fn id(id: &str) -> String {
    format!("<idempotencyID>{id}</idempotencyID>")
}

pub(super) fn pair(code: &str, status: &str) -> (String, String) {
    (code.to_owned(), status.to_owned())
}

#[tokio::test]
async fn the_keys_belong_together_and_the_two_sides_differ() {
    let desk = Desk::new().await;
    let server = &desk.shop.server;
    let certified = sealing::public_key(&sealing::der(&server.merchant_certificate()));
    let private = sealing::der(server.merchant_private_key().expose());
    let own = aws_lc_rs::rsa::KeyPair::from_pkcs8(&private).unwrap();
    // The certificate has the same modulus and exponent, in a wrapping of 24 bytes.
    assert_eq!(certified[24..], *own.public_key().as_ref());
    assert_ne!(
        certified,
        sealing::public_key(&sealing::der(&server.gateway_certificate()))
    );
    assert!(server.gateway_certificate().starts_with("-----BEGIN CERTIFICATE-----"));
}

#[tokio::test]
async fn a_charge_is_approved_until_the_cut_off_and_settled_after_it() {
    let desk = Desk::new().await;
    assert_eq!(desk.status().await, "AP");
    desk.shop.server.pay("INV7001");
    let answer = desk.ask(&request("I", "INV7001", "100.00", "")).await;
    for (name, value) in [
        ("version", "4.3"),
        ("timeStamp", "010126070000"),
        ("respCode", "00"),
        ("amount", "100.00"),
        ("status", "A"),
        ("transactionDateTime", "20260101070000"),
        ("maskedPan", "411111XXXXXX1111"),
        ("merchantID", ""),
    ] {
        assert_eq!(element(&answer, name), value, "{answer}");
    }
    assert_eq!(desk.code("R", "25.00", "").await, "41");
    assert_eq!(desk.code("S", "", "").await, "32");
    desk.shop.clock.advance(DAY - Duration::from_millis(1));
    assert_eq!(desk.status().await, "A");
    desk.shop.clock.advance(Duration::from_millis(1));
    assert_eq!(desk.status().await, "S");
    assert_eq!(desk.shop.inquire("INV7001").await, "0000");
    assert_eq!(desk.code("S", "", "").await, "39");
    assert_eq!(desk.shop.bank().charged("INV7001"), 1);
    assert_eq!(desk.shop.bank().movements().len(), 1);
}

#[tokio::test]
async fn an_authorization_is_captured_once_and_settles_only_then() {
    let desk = Desk::preauth().await;
    let (server, bank) = (&desk.shop.server, desk.shop.bank());
    assert_eq!((bank.authorized("k1"), bank.charged("k1")), (1, 0));
    desk.shop.clock.advance(DAY * 3);
    assert!(!server.settle("INV7001"), "nobody has captured it");
    assert_eq!(desk.status().await, "A");
    let refused = [
        ("100.01", "30"),
        ("100.001", "18"),
        ("0.00", "18"),
        ("1e2", "18"),
        ("-1.00", "18"),
    ];
    for (amount, code) in refused {
        assert_eq!(desk.code("S", amount, "").await, code, "{amount}");
    }
    server.set_refuses_partial_settlements(true);
    assert_eq!(desk.code("S", "60.00", "").await, "33");
    server.set_refuses_partial_settlements(false);
    let more = format!("{}<userDefined1>capture-1</userDefined1>", id("c1"));
    assert_eq!(desk.act("S", "60.00", &more).await, pair("00", "RS"));
    assert_eq!(desk.code("S", "60.00", &id("c2")).await, "34");
    for known in ["c1", "INV7001", "capture-1"] {
        assert_eq!(
            (bank.captured(known), bank.total(OperationKind::Capture, known)),
            (1, 6000),
            "{known}"
        );
    }
    assert_eq!(desk.status().await, "RS");
    assert_eq!(desk.code("R", "60.00", "").await, "41");
    assert!(server.settle("INV7001") && !server.settle("INV7001"));
    let settled = desk.ask(&request("I", "INV7001", "100.00", "")).await;
    assert_eq!(
        (element(&settled, "status"), element(&settled, "amount")),
        pair("S", "60.00")
    );
    assert_eq!(desk.code("S", "", "").await, "39");
    assert_eq!(desk.code("R", "60.01", "").await, "40", "no more than was captured");
    assert_eq!(bank.captured("INV7001"), 1);
}

#[tokio::test]
async fn c61_a_capture_without_an_amount_takes_all_and_settles_at_the_cut_off() {
    let desk = Desk::preauth().await;
    assert_eq!(desk.act("S", "", "").await, pair("00", "RS"));
    desk.shop.clock.advance(DAY);
    assert_eq!(desk.status().await, "S");
    assert_eq!(desk.shop.bank().total(OperationKind::Capture, "INV7001"), 10_000);
}

#[tokio::test]
async fn c63_a_payment_is_voided_before_the_cut_off_and_once() {
    let desk = Desk::new().await;
    let bank = desk.shop.bank();
    desk.shop.server.pay("INV7001");
    assert_eq!(desk.code("V", "25.00", "").await, "18", "never in part");
    assert_eq!(desk.act("V", "100.00", &id("v1")).await, pair("00", "V"));
    assert_eq!(desk.act("V", "100.00", &id("v1")).await, pair("00", "V"));
    assert_eq!(desk.code("V", "100.00", &id("v2")).await, "29");
    desk.shop.clock.advance(DAY * 2);
    assert_eq!(desk.status().await, "V");
    assert_eq!(desk.shop.inquire("INV7001").await, "4047");
    assert_eq!(desk.code("R", "100.00", "").await, "41");
    assert_eq!(desk.code("S", "", "").await, "31");
    for known in ["v1", "INV7001"] {
        assert_eq!(
            (bank.voided(known), bank.total(OperationKind::Void, known)),
            (1, 10_000)
        );
    }
}

#[tokio::test]
async fn an_unpaid_page_and_a_capture_under_way_can_be_voided_and_what_failed_cannot() {
    let unpaid = Desk::new().await;
    assert_eq!(unpaid.act("V", "100.00", "").await, pair("00", "V"));
    assert!(!unpaid.shop.server.pay("INV7001"), "the page is closed");
    assert_eq!(unpaid.shop.inquire("INV7001").await, "4047");
    unpaid.shop.clock.advance(DAY);
    assert!(!unpaid.shop.server.pay_late("INV7001"));
    assert_eq!(unpaid.shop.bank().charged("INV7001"), 0);

    let ready = Desk::preauth().await;
    assert_eq!(ready.code("S", "", "").await, "00");
    assert_eq!(ready.act("V", "100.00", "").await, pair("00", "V"));
    assert_eq!(ready.shop.bank().voided("INV7001"), 1);

    let failed = Desk::new().await;
    failed.shop.server.decline("INV7001", "4051");
    assert_eq!(failed.status().await, "PF");
    assert_eq!(failed.code("V", "100.00", "").await, "61");

    let expired = Desk::new().await;
    expired.shop.clock.advance(DAY);
    assert_eq!(expired.status().await, "EX");
    assert_eq!(expired.code("V", "100.00", "").await, "61");
    assert!(expired.shop.server.pay_late("INV7001"));
    assert_eq!(expired.status().await, "AE");
}

#[tokio::test]
async fn c62_the_cut_off_comes_between_the_look_and_the_void() {
    let desk = Desk::new().await;
    desk.shop.server.pay("INV7001");
    assert_eq!(desk.status().await, "A");
    assert!(desk.shop.server.settle("INV7001"));
    assert_eq!(desk.code("V", "100.00", "").await, "21");
    assert_eq!(desk.status().await, "S");
    assert_eq!(desk.shop.bank().voided("INV7001"), 0);
}

#[tokio::test]
async fn c55_c58_refunds_are_made_in_parts_up_to_what_was_taken() {
    let desk = Desk::settled().await;
    let bank = desk.shop.bank();
    let first = desk.ask(&request("R", "INV7001", "25.00", &id("r1"))).await;
    assert_eq!(
        (element(&first, "status"), element(&first, "amount")),
        pair("RF", "25.00")
    );
    assert_eq!(
        [element(&first, "refundReferenceNo")],
        *desk.shop.server.refunds("INV7001")
    );
    assert_eq!(desk.code("R", "80.00", &id("r2")).await, "40");
    assert_eq!(desk.status().await, "S");
    // Two of one amount, without an id: two refunds.
    assert_eq!(desk.code("R", "25.00", "").await, "00");
    assert_eq!(desk.code("R", "25.00", "").await, "00");
    assert_eq!(desk.code("V", "100.00", "").await, "21");
    assert_eq!(desk.act("R", "25", &id("r3")).await, pair("00", "RF"));
    assert_eq!(desk.code("R", "0.01", &id("r4")).await, "49");
    assert_eq!(desk.code("V", "100.00", "").await, "21");
    assert_eq!(desk.status().await, "RF");
    assert_eq!(desk.shop.inquire("INV7001").await, "4120");
    assert_eq!(
        (bank.refunded("INV7001"), bank.total(OperationKind::Refund, "INV7001")),
        (4, 10_000)
    );
    assert!(bank.moved_twice().is_empty(), "{bank:?}");
}

#[tokio::test]
async fn c76_an_idempotency_id_is_executed_once_and_answers_as_the_first_time() {
    let desk = Desk::settled().await;
    let bank = desk.shop.bank();
    let more = format!("{}<userDefined1>refund-1</userDefined1>", id("r1"));
    let sent = request("R", "INV7001", "30.00", &more);
    desk.shop
        .server
        .set_faults(FaultPlan::script([Fault::ResetAfterEffect]));
    assert!(bounded(desk.post(desk.sealer.seal(&sent))).await.is_err());
    let again = desk.ask(&sent).await;
    assert_eq!(desk.ask(&sent).await, again, "byte for byte");
    assert_eq!(
        (element(&again, "status"), element(&again, "idempotencyID")),
        pair("RF", "r1")
    );
    assert_eq!(desk.code("V", "100.00", &id("r1")).await, "50");
    for known in ["r1", "refund-1", "INV7001"] {
        assert_eq!(bank.refunded(known), 1, "{known}");
    }
    desk.shop.server.set_forgets_idempotency_ids(true);
    assert_eq!(element(&desk.ask(&sent).await, "respCode"), "00");
    assert_eq!(bank.refunded("r1"), 2, "the harsher reading");
    assert_eq!(bank.moved_twice(), ["r1"]);
    assert_eq!(desk.shop.server.maintenance_requests().len(), 5);
    assert_eq!(desk.shop.server.maintenance_requests()[0], sent);
}

#[tokio::test]
async fn while_the_first_is_running_the_same_id_is_told_so() {
    let desk = Desk::settled().await;
    let hold = desk.shop.server.hold(ACTION);
    let sent = request("R", "INV7001", "30.00", &id("r1"));
    let first = desk.post(desk.sealer.seal(&sent));
    let second = async {
        bounded(hold.reached(1)).await;
        let second = (
            desk.code("R", "30.00", &id("r1")).await,
            desk.code("S", "", &id("r1")).await,
        );
        assert_eq!(desk.shop.bank().refunded("r1"), 0);
        hold.release();
        second
    };
    let (first, second) = bounded(Box::pin(async { tokio::join!(first, second) })).await;
    assert_eq!(second, pair("51", "50"));
    assert_eq!(element(&desk.sealer.open(&first.unwrap().text), "respCode"), "00");
    assert_eq!(desk.code("R", "30.00", &id("r1")).await, "00");
    assert_eq!(desk.shop.bank().refunded("r1"), 1);
}

#[tokio::test]
async fn a_refund_status_lists_every_refund_in_the_form_asked_for() {
    let desk = Desk::settled().await;
    let ask = || async { desk.ask(&request("RS", "INV7001", "100.00", "")).await };
    assert!(ask().await.contains("<refundList/>"));
    let named = "<userDefined1>a&amp;b</userDefined1>";
    assert_eq!(desk.code("R", "25.00", named).await, "00");
    desk.shop.server.set_refunds_asynchronous(true);
    assert_eq!(desk.act("R", "25.00", "").await, pair("42", "RP"));
    let numbers = desk.shop.server.refunds("INV7001");
    let rows = ask().await;
    for (number, status) in numbers.iter().zip(["RF", "RP"]) {
        let row =
            format!(r#"<refund amount="25.00" status="{status}" referenceNo="{number}" dateTime="20260101070000"/>"#);
        assert!(rows.contains(&row), "{rows}");
    }
    assert_eq!(
        (element(&rows, "status"), element(&rows, "amount")),
        pair("S", "100.00")
    );
    desk.shop.server.set_refund_rows(RefundRows::WithUserDefined);
    let rows = ask().await;
    assert!(
        rows.contains(&format!(r#"dateTime="20260101070000">{named}</refund>"#)),
        "{rows}"
    );
}

#[tokio::test]
async fn c36_what_is_reported_can_differ_from_what_is() {
    let desk = Desk::new().await;
    desk.shop.server.pay("INV7001");
    desk.shop.server.override_status("INV7001", Some("AL"), Some("75.00"));
    for process in ["I", "RS"] {
        let answer = desk.ask(&request(process, "INV7001", "100.00", "")).await;
        assert_eq!(
            (element(&answer, "status"), element(&answer, "amount")),
            pair("AL", "75.00")
        );
    }
    desk.shop.server.override_status("INV7001", None, None);
    assert_eq!(desk.status().await, "A");
    assert_eq!(desk.shop.server.status("INV7001"), "A");
}

#[tokio::test]
async fn codes_that_a_test_asks_for_come_before_or_after_the_effect() {
    let desk = Desk::settled().await;
    let bank = desk.shop.bank();
    desk.shop.server.next_maintenance_code("R", "95");
    desk.shop.server.next_maintenance_code_after_effect("R", "98");
    assert_eq!(desk.status().await, "S", "meant for another type");
    assert_eq!(desk.act("R", "10.00", &id("r1")).await, pair("95", ""));
    assert_eq!(bank.refunded("r1"), 0);
    assert_eq!(desk.act("R", "10.00", &id("r1")).await, pair("98", ""));
    assert_eq!(bank.refunded("r1"), 1);
    assert_eq!(desk.act("R", "10.00", &id("r1")).await, pair("00", "RF"));
    assert_eq!(bank.refunded("r1"), 1);
}

#[tokio::test]
async fn faults_spare_inquiries_and_hit_the_rest() {
    let desk = Desk::settled().await;
    let bank = desk.shop.bank();
    let faults = [
        Fault::StillRunning,
        Fault::ErrorBeforeEffect,
        Fault::ErrorAfterEffect,
        Fault::Throttle,
    ];
    desk.shop.server.set_faults(FaultPlan::script(faults));
    assert_eq!(desk.status().await, "S");
    assert_eq!(desk.code("RS", "100.00", "").await, "00");
    assert_eq!(desk.code("R", "10.00", &id("r1")).await, "51");
    let sent = desk.sealer.seal(&request("R", "INV7001", "10.00", &id("r1")));
    for (status, refunded) in [(500, 0), (500, 1), (429, 1), (200, 1)] {
        assert_eq!(bounded(desk.post(sent.clone())).await.unwrap().status, status);
        assert_eq!(bank.refunded("r1"), refunded);
    }
    desk.shop
        .server
        .set_faults(FaultPlan::script([Fault::ErrorBeforeEffect]).inquiries_too());
    let look = desk.sealer.seal(&request("I", "INV7001", "100.00", ""));
    assert_eq!(bounded(desk.post(look)).await.unwrap().status, 500);
    assert_eq!(desk.shop.server.count(ACTION), 8);
}

#[tokio::test]
async fn requests_that_are_not_well_made_are_refused() {
    let desk = Desk::settled().await;
    let good = request("R", "INV7001", "25.00", "");
    let without = |name: &str| {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let (before, rest) = good.split_once(&open).unwrap();
        format!("{before}{}", rest.split_once(&close).unwrap().1)
    };
    for (xml, code) in [
        (without("version"), "10"),
        (without("merchantID"), "10"),
        (without("processType"), "10"),
        (without("invoiceNo"), "10"),
        (without("actionAmount"), "10"),
        (good.replace("TESTM01", "TESTM02"), "14"),
        (good.replace("INV7001", "INV9999"), "16"),
        (good.replace(">R<", ">X<"), "17"),
        (good.replace("25.00", "25.001"), "18"),
        (good.replace("25.00", "12345678901.00"), "18"),
        (good.replace("4.3", "3.8"), "11"),
        (good.replace("INV7001", &"9".repeat(51)), "11"),
        (request("R", "INV7001", "25.00", &id(&"k".repeat(101))), "11"),
        (
            request("R", "INV7001", "25.00", "<idempotencyId>r1</idempotencyId>"),
            "11",
        ),
        (request("R", "INV7001", "25.00", &id("r1").repeat(2)), "11"),
        ("<PaymentProcessRequest>".to_owned(), "02"),
        (format!("<!DOCTYPE a>{good}"), "02"),
    ] {
        assert_eq!(element(&desk.ask(&xml).await, "respCode"), code, "{xml}");
    }
    assert_eq!(desk.shop.bank().refunded("INV7001"), 0);
    assert_eq!(element(&desk.ask(&good).await, "respCode"), "00");
}

#[tokio::test]
async fn c43_what_cannot_be_opened_is_answered_96_or_by_a_page() {
    let desk = Desk::settled().await;
    let good = request("R", "INV7001", "25.00", "");
    let sealed = desk.sealer.seal(&good);
    let (signed, _) = sealed.rsplit_once('.').unwrap();
    for body in [
        good.clone(),
        desk.sealer.encrypt(&good),
        format!("{signed}.{}", "A".repeat(342)),
        format!("paymentRequest={sealed}"),
        String::new(),
    ] {
        desk.shop.server.set_answers_bad_envelopes_with_a_page(false);
        let answer = bounded(desk.post(body.clone())).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(element(&desk.sealer.open(&answer.text), "respCode"), "96", "{body}");
        desk.shop.server.set_answers_bad_envelopes_with_a_page(true);
        let answer = bounded(desk.post(body)).await.unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (401, Some("text/html")));
    }
    assert!(desk.shop.server.maintenance_requests().is_empty());
    assert_eq!(desk.shop.bank().refunded("INV7001"), 0);
    assert_eq!(element(&desk.ask(&good).await, "respCode"), "00");
}

#[tokio::test]
async fn another_message_to_the_action_url_is_loud() {
    let desk = Desk::new().await;
    let sealed = desk.sealer.seal("<FxRateRequest><version>1</version></FxRateRequest>");
    assert_eq!(bounded(desk.post(sealed)).await.unwrap().status, 501);
    assert_eq!(desk.shop.server.unexpected(), [format!("{ACTION} <FxRateRequest>")]);
}

#[tokio::test]
async fn the_cut_off_can_be_set_and_amounts_have_two_decimals_in_every_currency() {
    let desk = Desk::with(|order| order.replace("100.00", "500").replace("THB", "JPY")).await;
    desk.shop.server.set_settlement_delay(Duration::ZERO);
    desk.shop.server.pay("INV7001");
    let answer = desk.ask(&request("R", "INV7001", "200.00", "")).await;
    assert_eq!(
        (element(&answer, "respCode"), element(&answer, "amount")),
        pair("00", "200.00")
    );
    assert_eq!(desk.code("R", "0.50", "").await, "18", "half a yen");
    assert_eq!(desk.shop.bank().total(OperationKind::Refund, "INV7001"), 200);
    desk.shop.server.set_settlement_delay(DAY);
    assert_eq!(desk.status().await, "A");
}
