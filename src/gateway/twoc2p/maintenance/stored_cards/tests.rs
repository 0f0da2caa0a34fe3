//! Stored cards against a network that is a list of sealed answers. The numbers are test cards.

use super::*;
use crate::gateway::Gateway;
use crate::gateway::twoc2p::json::quote;
use crate::gateway::twoc2p::maintenance::updates::network::{
    Account, Answer, no_answers, reserve, sealed, sealed_bytes,
};
use crate::operation::{Namespace, Operation, OperationKind};
use crate::retry::{Absence, SameKey};
use proptest::prelude::*;
use std::sync::Arc;

const TOKEN: &str = "261020155003189559";
const NUMBER: &str = "4111111111111111";

/// The printed answer, of this merchant.
const PRINTED: &str = r#"{"merchantID":"TESTM01","responseCode":"0000","responseDesc":"Success","token":"261020155003189559","tokenReference":"","accountNo":"411111XXXXXX1111","name":"A Holder","email":"a@example.com","expiry":"2030-12-31","accountIssuer":"A Bank","accountIssuerCountry":"SG","accountCurrency":"SGD","channelCode":"","subChannelCode":""}"#;

fn terms() -> StoredCardTerms {
    let mut terms = StoredCardTerms::new("A Holder", CardExpiry::new(2030, 12).unwrap());
    terms.email = Some("a@example.com".to_owned());
    terms.issuer = Some("A Bank".to_owned());
    terms.issuer_country = Some("SG".to_owned());
    terms.currency = Some("SGD".to_owned());
    terms
}

fn add() -> Operation {
    let card = NewStoredCard::new(NUMBER, terms());
    Operation::update("customer-7/card-1", StoredCardChange::add(card)).unwrap()
}

fn update(terms: StoredCardTerms) -> Operation {
    Operation::update("customer-7/card-1/update", StoredCardChange::update(TOKEN, terms)).unwrap()
}

fn delete() -> Operation {
    Operation::update("customer-7/card-1/delete", StoredCardChange::delete(TOKEN)).unwrap()
}

/// All three, with the gateway that each goes through.
async fn send(operation: &Operation, answer: Answer) -> (Result<Outcome, Failure>, Vec<(String, String)>) {
    let account = Account::new([answer]);
    let store = CardStore::of(Arc::clone(&account.twoc2p));
    let outcome = if operation.gateway_name() == Some("2c2p-cards") {
        store.send(&reserve(&store, operation).1).await
    } else {
        account.send(operation).await
    };
    (outcome, account.sent())
}

#[track_caller]
fn succeeded(outcome: Result<Outcome, Failure>) -> Succeeded {
    match outcome {
        Ok(Outcome::Succeeded(succeeded)) => succeeded,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_open(outcome: Result<Outcome, Failure>, kind: FailureKind) -> Failure {
    let failure = outcome.expect_err("an outcome where there was none");
    assert!(failure.may_have_executed(), "{failure}");
    assert_eq!(failure.kind(), kind, "{failure}");
    failure
}

#[tokio::test]
async fn a_card_is_read_as_it_is_printed() {
    let account = Account::new([sealed(PRINTED)]);
    let card = account.twoc2p.stored_card(&Secret::from(TOKEN)).await.unwrap();
    assert_eq!(card.token.as_ref().map(Secret::expose), Some(TOKEN));
    assert_eq!(card.account_no.as_deref(), Some("411111XXXXXX1111"));
    assert_eq!((&card.token_reference, &card.channel_code), (&None, &None));
    assert_eq!(
        (card.expiry_text.as_deref(), card.expiry),
        (Some("2030-12-31"), CardExpiry::new(2030, 12).ok())
    );
    assert!(card.terms() == Some(terms()));
    let printed = format!("{card:?} {:?} {:?}", card.terms(), card.expiry);
    for secret in ["Holder", "example", TOKEN, "1111", "2030"] {
        assert!(!printed.contains(secret), "{printed}");
    }
    let address = "https://cards.example/CustomerToken/get".to_owned();
    let question = r#"{"merchantID":"TESTM01","token":"261020155003189559"}"#.to_owned();
    assert_eq!(account.sent(), [(address, question)]);
    let unmasked = sealed(&PRINTED.replace("411111XXXXXX1111", NUMBER));
    let card = Account::new([unmasked])
        .twoc2p
        .stored_card(&Secret::from(TOKEN))
        .await
        .unwrap();
    assert_eq!(card.account_no.as_deref(), Some("***"));
}

#[tokio::test]
async fn every_change_has_its_address_and_the_members_of_the_page() {
    let rest = r#""name":"A Holder","email":"a@example.com","expiry":"2030-12-31","accountIssuer":"A Bank","accountIssuerCountry":"SG","accountCurrency":"SGD""#;
    for (operation, path, members) in [
        (
            add(),
            "add",
            format!(r#""accountNo":"{NUMBER}",{rest},"tokenProvider":"CC""#),
        ),
        (update(terms()), "update", format!(r#""token":"{TOKEN}",{rest}"#)),
        (delete(), "delete", format!(r#""token":"{TOKEN}""#)),
    ] {
        let (outcome, sent) = send(&operation, sealed(PRINTED)).await;
        let succeeded = succeeded(outcome);
        assert_eq!(succeeded.gateway_ref, Some(GatewayRef::new(TOKEN)));
        assert_eq!(succeeded.amount, None);
        let address = format!("https://cards.example/CustomerToken/{path}");
        assert_eq!(sent, [(address, format!(r#"{{"merchantID":"TESTM01",{members}}}"#))]);
    }
    let token = NewStoredCard::new("abc", terms()).provider(TokenProvider::Mastercard);
    let operation = Operation::update("a", StoredCardChange::add(token)).unwrap();
    let (outcome, sent) = send(&operation, sealed(&PRINTED.replace("411111XXXXXX1111", "***"))).await;
    let _ = succeeded(outcome);
    assert!(sent[0].1.ends_with(r#""tokenProvider":"MA"}"#));
}

#[test]
fn a_change_that_has_no_place_or_no_address_is_refused_before_anything_is_sent() {
    let refused = |gateway: &dyn Gateway, operation: &Operation| {
        let key = operation.key(&Namespace::new("shop1").unwrap());
        gateway.prepare(key, operation).unwrap_err()
    };
    let account = Account::with([], None);
    let store = CardStore::of(Arc::clone(&account.twoc2p));
    for operation in [update(terms()), delete()] {
        assert!(matches!(refused(&*account.twoc2p, &operation), Refusal::Unsupported(it) if it == NO_ADDRESS));
    }
    assert!(matches!(refused(&store, &add()), Refusal::Unsupported(it) if it == NO_ADDRESS));
    let account = Account::new([]);
    let store = CardStore::of(Arc::clone(&account.twoc2p));
    // Through the other gateway, the promise would be wrong.
    assert!(matches!(refused(&*account.twoc2p, &add()), Refusal::Unsupported(_)));
    assert!(matches!(refused(&store, &delete()), Refusal::Unsupported(_)));
    assert!(matches!(
        refused(&store, &add().metadata("a", "b")),
        Refusal::Invalid(_)
    ));
    let changes: [fn(&mut StoredCardTerms); 6] = [
        |terms| terms.name.clear(),
        |terms| terms.name = "x".repeat(51),
        |terms| terms.email = Some(String::new()),
        |terms| terms.issuer_country = Some("sg".to_owned()),
        |terms| terms.currency = Some("SG".to_owned()),
        |terms| terms.expiry.month = 13,
    ];
    for change in changes {
        let mut terms = terms();
        change(&mut terms);
        let card = StoredCardChange::add(NewStoredCard::new(NUMBER, terms.clone()));
        assert!(matches!(
            refused(&store, &Operation::update("a", card).unwrap()),
            Refusal::Invalid(_)
        ));
        assert!(matches!(refused(&*account.twoc2p, &update(terms)), Refusal::Invalid(_)));
    }
    for token in ["", "a b", "a\n", "๑", &"1".repeat(256)] {
        let delete = Operation::update("a", StoredCardChange::delete(token)).unwrap();
        assert!(matches!(refused(&*account.twoc2p, &delete), Refusal::Invalid(it) if it.field() == "token"));
        let card = StoredCardChange::add(NewStoredCard::new(token, terms()));
        let refusal = refused(&store, &Operation::update("a", card).unwrap());
        assert!(matches!(refusal, Refusal::Invalid(it) if it.field() == "accountNo"));
    }
    assert!(account.sent().is_empty());
}

#[test]
fn the_number_of_a_card_is_nowhere_but_in_the_request() {
    let account = Account::new([]);
    let store = CardStore::of(Arc::clone(&account.twoc2p));
    let (record, instruction) = reserve(&store, &add());
    let printed = format!("{record:?} {instruction:?} {:?}", add());
    assert!(!printed.contains(NUMBER) && !printed.contains("Holder"), "{printed}");
    assert_eq!(record.wire_identity(), format!("card/add/{}", record.key()));
    let of = |number: &str| {
        let card = NewStoredCard::new(number, terms());
        Operation::update("a", StoredCardChange::add(card))
            .unwrap()
            .fingerprint()
    };
    // The same length and the same last four digits: a hash of more could be tried out.
    assert_eq!(of(NUMBER), of("5500000000001111"));
    assert_ne!(of(NUMBER), of("4111111111111112"));
    assert_ne!(of(NUMBER), of("411111111111111"));
    // Of a short one four characters would be much.
    assert_eq!(of("12345678901"), of("12345678902"));
}

#[tokio::test]
async fn no_code_but_0000_ends_a_change_or_has_it_sent_again() {
    for operation in [add(), update(terms()), delete()] {
        for code in ["9007", "4202", "00", "9999", "x"] {
            let (outcome, _) = send(&operation, sealed(&PRINTED.replace("0000", code))).await;
            let failure = is_open(outcome, FailureKind::ServerFault);
            assert_eq!((failure.code(), failure.retry_advice()), (Some(code), Some(false)));
        }
        let (outcome, _) = send(&operation, sealed(&PRINTED.replace("responseCode", "respCode"))).await;
        is_open(outcome, FailureKind::Unreadable);
    }
}

#[tokio::test]
async fn an_answer_about_another_card_or_merchant_is_none() {
    let other_token = PRINTED.replace("3189559", "3189550");
    let other_merchant = PRINTED.replace("TESTM01", "TESTM02");
    let no_merchant = PRINTED.replace("merchantID", "merchant");
    let no_token = PRINTED.replace(r#""token""#, r#""tok""#);
    let other_card = PRINTED.replace("XX1111", "XX1112");
    let empty_token = PRINTED.replace(TOKEN, "");
    for xml in [&other_merchant, &no_merchant, &no_token, &other_card, &empty_token] {
        is_open(send(&add(), sealed(xml)).await.0, FailureKind::Unreadable);
    }
    for xml in [&other_token, &other_merchant, &no_merchant, &no_token, &empty_token] {
        for operation in [update(terms()), delete()] {
            is_open(send(&operation, sealed(xml)).await.0, FailureKind::Unreadable);
            let account = Account::new([sealed(xml)]);
            assert_eq!(
                account.inquire(&operation).await.unwrap_err().kind(),
                FailureKind::Unreadable
            );
        }
    }
}

#[tokio::test]
async fn what_2c2p_did_not_seal_for_us_says_nothing() {
    for operation in [add(), update(terms()), delete()] {
        for (answer, kind) in no_answers(PRINTED) {
            let failure = is_open(send(&operation, answer).await.0, kind);
            let printed = format!(
                "{failure} {failure:?} {:?}",
                std::error::Error::source(&failure).map(ToString::to_string)
            );
            assert!(!printed.contains("4111") && !printed.contains(TOKEN), "{printed}");
        }
    }
    for (answer, kind) in no_answers(PRINTED) {
        let account = Account::new([answer]);
        assert_eq!(account.inquire(&delete()).await.unwrap_err().kind(), kind);
    }
}

#[tokio::test]
async fn an_inquiry_proves_what_the_card_shows_and_no_more() {
    let found = |answer: Answer, operation: Operation| async move {
        let account = Account::new([answer]);
        let inquiry = account.inquire(&operation).await;
        assert!(account.sent()[0].0.ends_with("/get"));
        match inquiry {
            Ok(Inquiry::Found(Outcome::Succeeded(_))) => "succeeded",
            Ok(Inquiry::Absent { consistent: true }) => "not yet",
            Ok(Inquiry::Absent { consistent: false }) => "open",
            Err(failure) if failure.may_have_executed() => "nothing",
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found(sealed(PRINTED), delete()).await, "not yet");
    // What 2C2P says of a token that is not there is not published.
    assert_eq!(
        found(sealed(&PRINTED.replace("0000", "9202")), delete()).await,
        "nothing"
    );
    assert_eq!(found(sealed(PRINTED), update(terms())).await, "succeeded");
    assert_eq!(
        found(sealed(&PRINTED.replace("-31", "-01")), update(terms())).await,
        "succeeded"
    );
    for (from, to) in [
        ("2030", "2031"),
        ("A Holder", "B Holder"),
        ("a@", "*@"),
        ("A Bank", ""),
        ("\"SGD\"", "null"),
    ] {
        assert_eq!(
            found(sealed(&PRINTED.replace(from, to)), update(terms())).await,
            "open",
            "{to}"
        );
    }
    let mut fewer = terms();
    fewer.issuer = None;
    assert_eq!(found(sealed(PRINTED), update(fewer)).await, "open");
}

#[tokio::test]
async fn a_new_card_is_never_sent_twice_and_nobody_is_asked_about_it() {
    let account = Account::new([]);
    let store = CardStore::of(Arc::clone(&account.twoc2p));
    let promise = store.promise(OperationKind::Update);
    assert_eq!(
        (promise.same_key, promise.absence),
        (SameKey::Executes, Absence::Inconclusive)
    );
    let inquiry = store.inquire(&reserve(&store, &add()).0).await;
    assert!(matches!(inquiry, Ok(Inquiry::Absent { consistent: false })));
    assert!(account.sent().is_empty());
    // Nor does the account's own gateway, whatever it is handed.
    let instruction = reserve(&store, &add()).1;
    let failure = account.twoc2p.send(&instruction).await.unwrap_err();
    assert!(!failure.may_have_executed() && account.sent().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever 2C2P seals: it has the code, the merchant and the token, or nothing has succeeded.
    #[test]
    fn no_answer_makes_it_panic_or_guess(
        code in "0000|[0-9]{4}|.{0,4}",
        merchant in "TESTM01|.{0,7}",
        token in "261020155003189559|.{0,18}",
        rest in any::<Vec<u8>>(),
    ) {
        let text = format!(
            r#"{{"merchantID":{},"responseCode":{},"token":{},"expiry":{}}}"#,
            quote(&merchant), quote(&code), quote(&token), quote(&String::from_utf8_lossy(&rest)),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let good = code == "0000" && merchant == "TESTM01" && token == TOKEN;
        for operation in [delete(), update(terms())] {
            let (sent, _) = runtime.block_on(send(&operation, sealed(&text)));
            prop_assert_eq!(good, matches!(sent, Ok(Outcome::Succeeded(_))));
        }
        let (sent, _) = runtime.block_on(send(&add(), sealed_bytes(&rest)));
        prop_assert!(sent.is_err());
    }
}
