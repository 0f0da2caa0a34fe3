//! FakeTwoC2p's hosted page, driven over HTTP as a browser would, and what the merchant hears of it.

use super::twoc2p::{ORDER, Shop, open, text};
use super::{Answer, bounded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payonce::testing::server::{Reply, ScriptedServer};
use std::time::Duration;

/// A shop with a site of its own, on which the payer and the notifications arrive.
struct Site {
    shop: Shop,
    site: ScriptedServer,
    page: String,
}

impl Site {
    async fn new() -> Self {
        let (shop, site) = (Shop::new(), ScriptedServer::start());
        let order = ORDER.replace(
            "\"k1\"",
            &format!(
                r#""k1","frontendReturnUrl":"{0}/back?order=7001&lang=en","backendReturnUrl":"{0}/told""#,
                site.url()
            ),
        );
        let claims = open(&shop.token(&order).await.text);
        let page = text(&claims, "webPaymentUrl");
        assert_eq!(page, shop.server.page_url("INV7001"));
        assert!(page.starts_with("http://127.0.0.1:") && page.ends_with("%3d"), "{page}");
        Self { shop, site, page }
    }

    fn merchant_takes(&self, status: u16) {
        self.site.reply("POST /told", Reply::new(status));
    }

    async fn get(&self) -> Answer {
        bounded(Answer::of(self.shop.client.get(&self.page))).await.unwrap()
    }

    async fn choose(&self, choice: &str) -> Answer {
        let request = self.shop.client.post(&self.page);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        bounded(Answer::of(request.body(format!("choice={choice}"))))
            .await
            .unwrap()
    }

    /// The code of the last notification that the merchant was sent, after so many.
    fn told(&self, count: usize) -> String {
        let requests = self.site.requests();
        assert_eq!(requests.len(), count);
        let last = requests.last().unwrap();
        assert_eq!(last.header("content-type"), Some("application/json; charset=utf-8"));
        let claims = open(&last.text());
        assert_eq!(text(&claims, "invoiceNo"), "INV7001");
        text(&claims, "respCode")
    }
}

/// The unsigned words that the page gives to the payer to carry home.
fn carried(page: &Answer) -> (String, serde_json::Value) {
    let between = |from: &str| {
        let (_, rest) = page.text.split_once(from).unwrap_or_else(|| panic!("{}", page.text));
        rest.split_once('"').unwrap().0.replace("&amp;", "&")
    };
    assert!(page.text.contains("document.forms[0].submit()"), "{}", page.text);
    let words = STANDARD.decode(between("name=\"paymentResponse\" value=\"")).unwrap();
    (between("action=\""), serde_json::from_slice(&words).unwrap())
}

#[tokio::test]
async fn the_page_shows_what_is_to_be_paid_and_pay_pays_it_once() {
    let site = Site::new().await;
    let shown = site.get().await;
    assert_eq!(
        (shown.status, shown.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    for expected in [
        "TESTM01",
        "INV7001",
        "2000.10 THB",
        ">Pay<",
        ">Decline<",
        ">Cancel<",
        ">Leave<",
    ] {
        assert!(shown.text.contains(expected), "{}", shown.text);
    }
    assert_eq!(site.shop.bank().charged("k1"), 0);
    site.merchant_takes(200);
    let (to, words) = carried(&site.choose("pay").await);
    assert_eq!(to, format!("{}/back?order=7001&lang=en", site.site.url()));
    assert_eq!(
        (&words["invoiceNo"], &words["respCode"]),
        (&"INV7001".into(), &"2000".into())
    );
    assert_eq!(site.told(1), "0000");
    assert!(site.choose("pay").await.text.contains("has been made"));
    assert!(site.get().await.text.contains("has been made"));
    assert_eq!(site.shop.bank().charged("k1"), 1);
    assert_eq!(site.site.requests().len(), 1);
}

#[tokio::test]
async fn decline_and_cancel_say_2000_as_well_and_the_page_lives_on() {
    let site = Site::new().await;
    for (count, choice, code) in [(1, "decline", "4051"), (2, "cancel", "0003"), (3, "pay", "0000")] {
        site.merchant_takes(200);
        assert_eq!(site.shop.bank().charged("k1"), 0);
        let (_, words) = carried(&site.choose(choice).await);
        assert_eq!(words["respCode"], "2000");
        assert_eq!(site.told(count), code);
        assert_eq!(site.shop.inquire("INV7001").await, code);
    }
    assert_eq!(site.shop.bank().charged("k1"), 1);
}

#[tokio::test]
async fn leave_and_what_is_no_choice_change_nothing() {
    let site = Site::new().await;
    assert_eq!(site.choose("leave").await.status, 200);
    assert_eq!(site.choose("refund").await.status, 400);
    assert_eq!(site.shop.inquire("INV7001").await, "2001");
    assert!(site.site.requests().is_empty());
    let elsewhere = site.page.replace("/page/token/", "/page/token/x");
    let unknown = bounded(Answer::of(site.shop.client.post(elsewhere).body("choice=pay")))
        .await
        .unwrap();
    assert_eq!(unknown.status, 404);
    assert!(site.shop.bank().movements().is_empty());
}

#[tokio::test]
async fn an_expired_page_says_so() {
    let site = Site::new().await;
    site.shop.clock.advance(Duration::from_secs(1800));
    for answer in [site.get().await, site.choose("pay").await] {
        assert!(answer.text.contains("has expired"), "{}", answer.text);
    }
    assert!(site.shop.bank().movements().is_empty());
    assert!(site.shop.server.pay_late("INV7001"), "through a counter");
}

#[tokio::test]
async fn notifications_come_late_or_never_as_set_and_say_what_was_true_then() {
    let site = Site::new().await;
    site.shop.server.set_callbacks(false);
    site.choose("decline").await;
    site.choose("pay").await;
    assert_eq!(site.shop.server.callbacks_due("INV7001"), 2);
    assert!(site.site.requests().is_empty());
    site.merchant_takes(503);
    site.merchant_takes(200);
    assert_eq!(
        site.shop.server.deliver_callbacks().await,
        1,
        "the first one was not taken"
    );
    let codes: Vec<String> = site
        .site
        .requests()
        .iter()
        .map(|sent| text(&open(&sent.text()), "respCode"))
        .collect();
    assert_eq!(codes, ["4051", "0000"]);
    assert_eq!(site.shop.server.deliver_callbacks().await, 0);
    assert_eq!(site.site.requests().len(), 2);
}

#[tokio::test]
async fn what_a_test_does_by_itself_waits_and_can_be_lost() {
    let site = Site::new().await;
    site.shop.server.pay("INV7001");
    assert_eq!(site.shop.server.callbacks_due("INV7001"), 1);
    assert_eq!(site.shop.server.drop_callbacks(), 1);
    assert_eq!(site.shop.server.deliver_callbacks().await, 0);
    assert!(site.site.requests().is_empty());
}

#[tokio::test]
async fn a_do_payment_is_notified_too() {
    let site = Site::new().await;
    site.merchant_takes(200);
    let token = site.shop.server.token("INV7001");
    assert_eq!(site.shop.pay_directly(&token, "CC").await["respCode"], "2000");
    let arrived = async {
        while site.site.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    bounded(arrived).await;
    assert_eq!(site.told(1), "0000");
}

#[tokio::test]
async fn other_machines_are_neither_called_nor_returned_to() {
    let (shop, site) = (Shop::new(), ScriptedServer::start());
    // An address that is not of the loopback and would be answered all the same.
    let elsewhere = site.url().replace("127.0.0.1", "0.0.0.0");
    let urls = format!(r#""k1","frontendReturnUrl":"{elsewhere}/back","backendReturnUrl":"{elsewhere}/told""#);
    shop.token(&ORDER.replace("\"k1\"", &urls)).await;
    let request = shop.client.post(shop.server.page_url("INV7001")).body("choice=pay");
    let answer = bounded(Answer::of(request)).await.unwrap();
    assert!(
        answer.status == 200 && !answer.text.contains("0.0.0.0"),
        "{}",
        answer.text
    );
    assert!(site.requests().is_empty());
    assert_eq!(shop.bank().charged("k1"), 1);
}
