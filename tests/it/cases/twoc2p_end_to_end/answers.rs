//! Answers that are forged, broken or oddly written, to inquiries about an operation that is open.

use super::{shop_at, signed};
use crate::cases::twoc2p::{NORMAL, envelope, sign};
use crate::shop::{assert_is, usd};
use crate::wired::{INQUIRY, TOKEN, Wired, claims, invoice, of, thb};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payonce::operation::Operation;
use payonce::outcome::{ConflictKind, Outcome};
use payonce::testing::Fault;
use payonce::testing::server::{Reply, ScriptedServer};

/// INV7001 over 20.00 USD, as most tokens of the cases have it.
fn order() -> Operation {
    Operation::charge("INV7001", usd("20.00")).unwrap()
}

/// A server at which the token of `order` has been issued and lost, so that the operation is unknown.
async fn unknown(order: &Operation) -> (ScriptedServer, Wired) {
    let server = ScriptedServer::start();
    server
        .reply(TOKEN, Reply::new(200).fault(Fault::CloseAfterEffect))
        .reply(INQUIRY, Reply::new(503));
    let shop = shop_at(&server).with_one_attempt();
    assert_is(&shop.pay(order).await, "unknown");
    (server, shop)
}

/// What the operation is after an inquiry that is answered so.
async fn after(order: &Operation, answer: Reply) -> Outcome {
    let (server, shop) = unknown(order).await;
    server.reply(INQUIRY, answer);
    let outcome = shop.resolve(order).await;
    assert_eq!((server.count(TOKEN), server.count(INQUIRY)), (1, 2));
    outcome
}

/// The operation stays unknown after an answer, and an authentic one resolves it later.
async fn decides_nothing(order: &Operation, answer: Reply, authentic: Reply) {
    let (server, shop) = unknown(order).await;
    server.reply(INQUIRY, answer).reply(INQUIRY, authentic);
    assert_is(&shop.resolve(order).await, "unknown");
    assert_is(&shop.look_up(order).await.unwrap(), "unknown");
    assert_is(&shop.resolve(order).await, "succeeded");
    assert_eq!(server.count(TOKEN), 1);
}

fn token(token: &str) -> Reply {
    Reply::new(200).json(envelope(token))
}

#[tokio::test]
async fn c37_a_token_that_chooses_its_own_algorithm_decides_nothing() {
    let claims = NORMAL.split('.').nth(1).unwrap();
    for forged in [
        format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{claims}."),
        format!("eyJhbGciOiJOb05lIiwidHlwIjoiSldUIn0.{claims}."),
        format!(
            "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.{claims}.eRyydNHH2TiisR03u4Qcprvr8XQEcZ1yYPpuFU8I0dajsjm9chj_1i_wYWSvNOjhuV9NftwomqewGAHkwf3vig"
        ),
        format!("eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.{claims}.kKToxkZeOASge02Xn1VOp4ssUkmIcponImroq1cuY2k"),
        format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{claims}._7JN3XhSS3QUWazPCY_D84MPjd3VKgwKg4iuU3CL3Qk"),
    ] {
        decides_nothing(&order(), token(&forged), token(NORMAL)).await;
    }
}

#[tokio::test]
async fn c38_a_page_in_the_place_of_a_token_decides_nothing() {
    let page = "<!DOCTYPE html><html><head><title>Down for maintenance</title></head><body>try later</body></html>";
    for (number, reply) in [
        Reply::new(200).html(page),
        Reply::new(503).html(page),
        Reply::new(200).json(page),
    ]
    .into_iter()
    .enumerate()
    {
        let server = ScriptedServer::start();
        server
            .reply(TOKEN, reply)
            .reply(INQUIRY, Reply::new(503).html(page))
            .reply(INQUIRY, token(NORMAL));
        let shop = shop_at(&server).with_one_attempt();
        let Outcome::Unknown(unknown) = shop.pay(&order()).await else {
            panic!("page {number} was taken for an answer")
        };
        let status = if number == 1 { "HTTP 503" } else { "HTTP 200" };
        let content_type = if number == 2 { "application/json" } else { "text/html" };
        for part in [status, content_type, "Down for maintenance"] {
            assert!(unknown.detail.contains(part), "{}", unknown.detail);
        }
        assert!(unknown.detail.len() < 512 && !unknown.detail.contains("try later"));
        assert_is(&shop.resolve(&order()).await, "succeeded");
        assert_eq!(server.count(TOKEN), 1);
    }
}

#[tokio::test]
async fn c38_a_second_token_request_has_the_same_number() {
    let server = ScriptedServer::start();
    let issued =
        r#"{"respCode":"0000","webPaymentUrl":"https://pgw-ui.2c2p.com/page/1","paymentToken":"TESTONLYpaytoken"}"#;
    server
        .reply(TOKEN, Reply::new(503).html("<title>Down for maintenance</title>"))
        .reply(TOKEN, signed(issued));
    let shop = shop_at(&server);
    assert_is(&shop.pay(&order()).await, "pending");
    let tokens = of(server.requests(), TOKEN);
    assert_eq!(tokens[0].body, tokens[1].body);
    assert!(claims(&tokens[0]).contains(r#""invoiceNo":"INV7001""#));
}

#[tokio::test]
async fn c39_a_code_that_is_a_number_means_what_it_meant_with_its_zeros() {
    for (number, expected) in [
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjowLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.B6DqnBrK1sObv1ZDAhLvXpGSsA_Pq29MEJMQ_Vvi6fY",
            "succeeded",
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoxLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.j3XavtG0Am8ECKsIR__PkI1bUk6kbKCryFGsvK3dKCE",
            "pending",
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpbnZvaWNlTm8iOiJJTlY3MDAxIiwicmVzcENvZGUiOjkwMTUsInJlc3BEZXNjIjoiRXhpc3RpbmcgSW52b2ljZSBOdW1iZXIifQ.CBz-m8PUW6fuU1wSgZLmNPJOnLqiSwUoARaMKqOxBTw",
            "unknown",
        ),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjpudWxsLCJyZXNwRGVzYyI6IlN1Y2Nlc3MiLCJ0cmFuUmVmIjoiVDEifQ.JPlB3UyDExtSrqaFPfgRvhNF1YeymbVfUNQ_w9cLTo4",
            "unknown",
        ),
    ] {
        assert_is(&after(&order(), token(number)).await, expected);
    }
    // 9015 as a number, to a second token request: asked about, as with its quotes.
    let server = ScriptedServer::start();
    server
        .reply(TOKEN, Reply::new(200).fault(Fault::CloseAfterEffect))
        .reply(TOKEN, signed(r#"{"invoiceNo":"INV7001","respCode":9015}"#))
        .reply(INQUIRY, token(NORMAL));
    let shop = shop_at(&server);
    assert_is(&shop.pay(&order()).await, "succeeded");
    assert_eq!((server.count(TOKEN), server.count(INQUIRY)), (2, 1));
}

#[tokio::test]
async fn c40_an_amount_is_what_was_asked_for_or_a_conflict() {
    let forms = include_str!("../../../fixtures/twoc2p/c2p_amount_forms.tsv");
    let order = invoice("1000.00");
    for (number, line) in forms.lines().enumerate() {
        let (form, answer) = line.split_once('\t').unwrap();
        let outcome = after(&order, token(answer)).await;
        if [0, 1, 2, 4, 5].contains(&number) {
            assert_is(&outcome, "succeeded");
            continue;
        }
        let Outcome::Conflict(conflict) = outcome else {
            panic!("{form}: {outcome:?}")
        };
        assert_eq!(conflict.kind, ConflictKind::Amount, "{form}");
        assert_eq!(conflict.expected, Some(thb("1000.00")));
        let read = match number {
            3 => Some(thb("320.45")),
            7 => Some(thb("100000.00")),
            _ => None,
        };
        assert_eq!(conflict.reported, read, "{form}");
        assert!(read.is_some() || conflict.detail.contains(form), "{}", conflict.detail);
    }
}

#[tokio::test]
async fn c41_a_byte_order_mark_is_passed_over_and_utf_16_decides_nothing() {
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend_from_slice(envelope(NORMAL).as_bytes());
    let case = "77u/eyJwYXlsb2FkIjoiZXlKaGJHY2lPaUpJVXpJMU5pSXNJblI1Y0NJNklrcFhWQ0o5LmV5SnRaWEpqYUdGdWRFbEVJam9pVkVWVFZFMHdNU0lzSW1sdWRtOXBZMlZPYnlJNklrbE9WamN3TURFaUxDSmhiVzkxYm5RaU9qSXdMakFzSW1OMWNuSmxibU41UTI5a1pTSTZJbFZUUkNJc0luSmxjM0JEYjJSbElqb2lNREF3TUNJc0luSmxjM0JFWlhOaklqb2lVM1ZqWTJWemN5SXNJblJ5WVc1U1pXWWlPaUpVTVNKOS5lTGppcXY4ekVNX0hZOE1Ga1g3dWZzck5hOVRtZnJCQXdqdzM0NVNJbU8wIn0=";
    assert_eq!(marked, STANDARD.decode(case).unwrap());
    assert_is(
        &after(&order(), Reply::new(200).json("").body(marked)).await,
        "succeeded",
    );

    let inside = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.77u_eyJtZXJjaGFudElEIjoiVEVTVE0wMSIsImludm9pY2VObyI6IklOVjcwMDEiLCJhbW91bnQiOjIwLjAsImN1cnJlbmN5Q29kZSI6IlVTRCIsInJlc3BDb2RlIjoiMDAwMCIsInJlc3BEZXNjIjoiU3VjY2VzcyIsInRyYW5SZWYiOiJUMSJ9.6jt_1LzfaizId3gGkiat62gbWOkWzfbPHjkn_yqd6mA";
    assert_is(&after(&order(), token(inside)).await, "succeeded");

    let utf_16 = STANDARD.decode("//57ACIAcABhAHkAbABvAGEAZAAiADoAIgB4ACIAfQA=").unwrap();
    decides_nothing(&order(), Reply::new(200).json("").body(utf_16), token(NORMAL)).await;
}

/// The claims of a paid INV7001 with one more member.
fn paid_with(member: &str) -> Reply {
    signed(&format!(
        r#"{{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":20.0,"currencyCode":"USD","respCode":"0000","tranRef":"T1"{member}}}"#
    ))
}

#[tokio::test]
async fn c72_c73_no_stamp_keeps_the_state_from_being_read() {
    for (stamp, time) in [
        ("\"311225235959\"", None),
        ("\"20251231235959\"", Some("2025-12-31 23:59:59")),
        ("\"2025-12-31 23:59:59\"", None),
        ("\"\"", None),
        ("", None),
        ("20251231235959", Some("2025-12-31 23:59:59")),
        ("\"20210229120000\"", None),
        ("\"20211301120000\"", None),
        ("\"20211231245959\"", None),
        ("\"20211231235960\"", None),
        ("\"00000000000000\"", None),
        ("\"99999999999999\"", None),
        ("\"2021254456\"", None),
        ("\"foo\"", None),
        ("\"202125x456\"", None),
        ("\"202ก12110101\"", None),
        ("\"２０２１１２３１２３５９５９\"", None),
        ("\"-2021123123595\"", None),
        ("\"20220305123312\"", Some("2022-03-05 12:33:12")),
    ] {
        let member = match stamp {
            "" => String::new(),
            stamp => format!(r#","transactionDateTime":{stamp}"#),
        };
        let outcome = after(&order(), paid_with(&member)).await;
        assert_is(&outcome, "succeeded");
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), "T1", "{stamp}");
        let details = &outcome.evidence().unwrap().details;
        assert_eq!(details.get("transactionDateTime"), time, "{stamp}");
    }
}

#[tokio::test]
async fn an_answer_about_another_invoice_or_merchant_decides_nothing() {
    for claims in [
        r#"{"merchantID":"TESTM01","invoiceNo":"INV7002","amount":20.0,"currencyCode":"USD","respCode":"0000"}"#,
        r#"{"merchantID":"TESTM02","invoiceNo":"INV7001","amount":20.0,"currencyCode":"USD","respCode":"0000"}"#,
        r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":20.0,"currencyCode":"USD","respCode":"0000","userDefined1":"cart-5"}"#,
        r#"{"merchantID":"TESTM01","amount":20.0,"currencyCode":"USD","respCode":"0000"}"#,
    ] {
        assert!(sign(claims).starts_with("eyJ"));
        decides_nothing(&order(), signed(claims), token(NORMAL)).await;
    }
}
