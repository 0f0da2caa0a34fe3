//! FakeTwoC2p's asynchronous refunds: accepted first, decided later, announced to the `notifyURL`.

use super::bounded;
use super::twoc2p_maintenance::{Desk, element, id, pair, request};
use payonce::operation::OperationKind;
use payonce::testing::server::{Reply, ScriptedServer};

/// The answer in a notify form.
fn noticed(desk: &Desk, form: &[u8]) -> String {
    let (name, token) = url::form_urlencoded::parse(form).next().unwrap();
    assert_eq!(name, "notifyResponse");
    desk.sealer.open(&token)
}

#[tokio::test]
async fn a_refund_that_is_accepted_moves_money_when_it_is_confirmed() {
    let desk = Desk::settled().await;
    let (server, bank) = (&desk.shop.server, desk.shop.bank());
    let merchant = ScriptedServer::start();
    merchant.reply("POST /refunded", Reply::new(200));
    server.set_refunds_asynchronous(true);
    let more = format!("<notifyURL>{}/refunded</notifyURL>{}", merchant.url(), id("r1"));
    let sent = request("R", "INV7001", "40.00", &more);
    let first = desk.ask(&sent).await;
    assert_eq!(
        (element(&first, "respCode"), element(&first, "status")),
        pair("42", "RP")
    );
    assert_eq!(element(&first, "amount"), "40.00");
    assert_eq!(bank.refunded("r1"), 0);
    assert_eq!(
        desk.code("R", "60.01", &id("r2")).await,
        "40",
        "what is pending is not there any more"
    );
    let number = server.refunds("INV7001").remove(0);
    assert_eq!(element(&noticed(&desk, &server.refund_notice(&number)), "status"), "RP");

    assert!(bounded(server.confirm_refund(&number)).await);
    assert!(!bounded(server.confirm_refund(&number)).await && !bounded(server.reject_refund(&number, "RR1")).await);
    for known in ["r1", "INV7001", &number] {
        assert_eq!(
            (bank.refunded(known), bank.total(OperationKind::Refund, known)),
            (1, 4000),
            "{known}"
        );
    }
    let requests = merchant.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        requests[0].header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    let notice = noticed(&desk, &requests[0].body);
    for (name, value) in [
        ("processType", "R"),
        ("invoiceNo", "INV7001"),
        ("respCode", "00"),
        ("status", "RF"),
        ("amount", "40.00"),
        ("refundReferenceNo", number.as_str()),
        ("idempotencyID", "r1"),
    ] {
        assert_eq!(element(&notice, name), value, "{notice}");
    }
    assert_eq!(
        desk.ask(&sent).await,
        first,
        "the first answer again, although it is done by now"
    );
    assert_eq!(bank.refunded("r1"), 1);
}

#[tokio::test]
async fn a_rejected_refund_moves_nothing_and_frees_its_amount() {
    let desk = Desk::settled().await;
    let server = &desk.shop.server;
    server.set_refunds_asynchronous(true);
    let elsewhere = "<notifyURL>https://merchant.example/refunded</notifyURL>";
    assert_eq!(desk.act("R", "100.00", elsewhere).await, pair("42", "RP"));
    assert_eq!(desk.status().await, "S", "not given back yet");
    assert_eq!(desk.code("R", "1.00", "").await, "40");
    let number = server.refunds("INV7001").remove(0);
    assert!(bounded(server.reject_refund(&number, "RR2")).await);
    assert_eq!(desk.shop.bank().refunded("INV7001"), 0);
    let notice = noticed(&desk, &server.refund_notice(&number));
    assert_eq!(
        (element(&notice, "respCode"), element(&notice, "status")),
        pair("44", "RR2")
    );
    let rows = desk.ask(&request("RS", "INV7001", "100.00", "")).await;
    assert!(
        rows.contains(&format!(r#"status="RR2" referenceNo="{number}""#)),
        "{rows}"
    );
    server.set_refunds_asynchronous(false);
    assert_eq!(desk.act("R", "100.00", "").await, pair("00", "RF"));
    assert_eq!(desk.status().await, "RF");
}

#[tokio::test]
async fn a_refund_can_be_decided_without_anybody_to_tell() {
    let desk = Desk::settled().await;
    desk.shop.server.set_refunds_asynchronous(true);
    assert_eq!(desk.act("R", "100.00", &id("r1")).await, pair("42", "RP"));
    let number = desk.shop.server.refunds("INV7001").remove(0);
    assert!(bounded(desk.shop.server.confirm_refund(&number)).await);
    assert!(!bounded(desk.shop.server.confirm_refund("no such refund")).await);
    assert_eq!(desk.status().await, "RF");
    assert_eq!(desk.shop.bank().refunded("r1"), 1);
}
