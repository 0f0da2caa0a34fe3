//! FakeTwoC2p's stored cards, against what 2C2P's documentation says.

use super::twoc2p_maintenance::Desk;
use super::{Answer, bounded};
use payonce::testing::{Fault, FaultPlan};
use serde_json::Value;

const CARD: &str = r#"{"merchantID":"TESTM01","tokenProvider":"CC","accountNo":"4111111111111111","name":"A Holder",
    "expiry":"2027-02-01","email":"holder@example.com","accountIssuerCountry":"TH","accountCurrency":"THB"}"#;

struct Safe(Desk);

impl Safe {
    async fn try_post(&self, action: &str, body: String) -> Result<Answer, reqwest::Error> {
        let url = format!("{}/{action}", self.0.shop.server.customer_token_url());
        let request = self.0.shop.client.post(url).header("Content-Type", "text/plain");
        bounded(Answer::of(request.body(body))).await
    }

    async fn ask(&self, action: &str, json: &str) -> Value {
        let answer = self.try_post(action, self.0.sealer.seal(json)).await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer: Value = serde_json::from_str(&self.0.sealer.open(&answer.text)).unwrap();
        assert!(answer["responseDesc"].as_str().is_some_and(|text| !text.is_empty()));
        answer
    }

    async fn code(&self, action: &str, json: &str) -> String {
        self.ask(action, json).await["responseCode"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

fn about(token: &str) -> String {
    format!(r#"{{"merchantID":"TESTM01","token":"{token}"}}"#)
}

#[tokio::test]
async fn a_card_is_added_looked_at_changed_and_deleted() {
    let safe = Safe(Desk::new().await);
    let added = safe.ask("add", CARD).await;
    let token = added["token"].as_str().unwrap().to_owned();
    assert_eq!(safe.0.shop.server.stored_cards(), [token.as_str()]);
    for (name, value) in [
        ("responseCode", "0000"),
        ("merchantID", "TESTM01"),
        ("accountNo", "411111XXXXXX1111"),
        ("name", "A Holder"),
        ("expiry", "2027-02-28"),
        ("accountIssuer", ""),
    ] {
        assert_eq!(added[name], value, "{name}");
    }
    assert_eq!(safe.ask("get", &about(&token)).await, added);
    let change = format!(r#"{{"merchantID":"TESTM01","token":"{token}","name":"B Holder","expiry":"2028-02-01"}}"#);
    for _ in 0..2 {
        let changed = safe.ask("update", &change).await;
        assert_eq!(
            (&changed["name"], &changed["expiry"]),
            (&"B Holder".into(), &"2028-02-29".into())
        );
        assert_eq!(
            (&changed["email"], &changed["token"]),
            (&added["email"], &added["token"])
        );
    }
    let deleted = safe.ask("delete", &about(&token)).await;
    assert_eq!(
        (&deleted["responseCode"], &deleted["accountNo"]),
        (&"0000".into(), &Value::Null)
    );
    for action in ["get", "delete"] {
        assert_eq!(safe.code(action, &about(&token)).await, "9202");
    }
    assert!(safe.0.shop.server.stored_cards().is_empty());
    assert!(safe.0.shop.bank().movements().is_empty());
}

#[tokio::test]
async fn a_card_whose_answer_was_lost_is_there_twice_after_a_second_try() {
    let safe = Safe(Desk::new().await);
    safe.0
        .shop
        .server
        .set_faults(FaultPlan::script([Fault::CloseAfterEffect]));
    assert!(safe.try_post("add", safe.0.sealer.seal(CARD)).await.is_err());
    let token = safe.0.shop.server.stored_cards().remove(0);
    safe.0.shop.server.set_faults(FaultPlan::script([Fault::Throttle]));
    assert_eq!(safe.code("get", &about(&token)).await, "0000", "it only looks");
    assert_eq!(
        safe.try_post("delete", safe.0.sealer.seal(&about(&token)))
            .await
            .unwrap()
            .status,
        429
    );
    assert_eq!(safe.code("add", CARD).await, "0000");
    assert_eq!(safe.0.shop.server.stored_cards().len(), 2);
}

#[tokio::test]
async fn requests_about_cards_that_are_not_well_made_are_refused() {
    let safe = Safe(Desk::new().await);
    for (action, json, code) in [
        ("add", CARD.replace("\"tokenProvider\":\"CC\",", ""), "9005"),
        ("add", CARD.replace("TESTM01", "TESTM02"), "9007"),
        ("add", CARD.replace("2027-02-01", "022027"), "9004"),
        ("add", CARD.replace("A Holder", &"A".repeat(51)), "9006"),
        ("add", "[]".to_owned(), "9900"),
        ("update", about("1"), "9005"),
        ("get", about(""), "9005"),
        ("get", about("1"), "9202"),
    ] {
        assert_eq!(safe.code(action, &json).await, code, "{action} {json}");
    }
    assert_eq!(safe.try_post("add", CARD.to_owned()).await.unwrap().status, 401);
    assert_eq!(
        safe.try_post("list", safe.0.sealer.seal(CARD)).await.unwrap().status,
        501
    );
    safe.0.shop.server.next_stored_card_code("add", "4099");
    assert_eq!(safe.code("add", CARD).await, "4099");
    assert!(safe.0.shop.server.stored_cards().is_empty());
}
