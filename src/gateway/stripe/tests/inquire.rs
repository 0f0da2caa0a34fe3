//! What an inquiry asks, and what it makes of the answers.

use super::*;
use crate::outcome::{ConflictKind, Succeeded};
use crate::record::{Fact, Observation, Source};

fn intent(id: &str, key: &str, fields: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"payment_intent","amount":2000,"currency":"usd","metadata":{{"payonce_key":"{key}"}},{fields}}}"#
    )
}

fn list(objects: &[String], more: bool) -> Response {
    json(
        200,
        &format!(
            r#"{{"object":"list","data":[{}],"has_more":{more}}}"#,
            objects.join(",")
        ),
    )
}

fn hits(objects: &[String]) -> Response {
    json(
        200,
        &format!(
            r#"{{"object":"search_result","data":[{}],"has_more":false}}"#,
            objects.join(",")
        ),
    )
}

fn no_search() -> Response {
    json(
        404,
        r#"{"error":{"type":"invalid_request_error","message":"Not Found"}}"#,
    )
}

/// The record after `outcome` was heard.
fn heard(operation: &Operation, outcome: Outcome) -> Record {
    record(operation)
        .learn(&Observation::new(Source::Answer, NOW, Fact::Said(outcome)))
        .record
}

async fn heard_answer(operation: &Operation, body: &str) -> Record {
    heard(operation, send(operation, json(200, body)).await.unwrap())
}

#[track_caller]
fn check(inquiry: &Result<Inquiry, Failure>, expected: &str) {
    let text = match inquiry {
        Ok(Inquiry::Found(outcome) | Inquiry::Similar(outcome)) => word(&Ok(outcome.clone())),
        Ok(Inquiry::Absent { consistent: true }) => "absent".to_owned(),
        Ok(Inquiry::Absent { consistent: false }) => "not found".to_owned(),
        Err(failure) => word(&Err(failure.clone())),
    };
    assert_eq!(text, expected, "{inquiry:?}");
}

fn notes(inquiry: Result<Inquiry, Failure>) -> Vec<String> {
    match inquiry {
        Ok(Inquiry::Found(Outcome::Succeeded(succeeded))) => succeeded.notes,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_charge_without_an_id_is_looked_for_in_the_window_of_its_sends() {
    let first = record(&card());
    let second = first.send_again(NOW.after(Duration::from_secs(3600)), Lease::new("o", NOW), None);
    let found = list(
        &[intent("pi_1", KEY, r#""status":"succeeded","amount_received":2000"#)],
        false,
    );
    let (inquiry, seen) = inquire(&second, [found]).await;
    check(&inquiry, "succeeded 20.00 USD");
    assert_eq!(seen[0].path(), "/v1/payment_intents");
    for (name, value) in [
        ("created[gte]", 1_767_225_600 - 300),
        ("created[lte]", 1_767_225_600 + 3600 + 600),
        ("limit", 100),
    ] {
        assert_eq!(seen[0].pair(name), Some(i64::to_string(&value)), "{name}");
    }
    assert_eq!(
        seen[0].header("Authorization"),
        Some("Bearer sk_test_TESTONLYcases0001")
    );
    assert_eq!(seen[0].header("Idempotency-Key"), None);
}

#[tokio::test]
async fn only_our_own_key_is_ours() {
    let other_attempt = key(&card().attempt(std::num::NonZeroU32::new(2).unwrap()));
    let unmarked = intent("pi_3", "x", r#""status":"succeeded""#).replace("payonce_key", "order");
    let marked_reference =
        intent("pi_4", "order-7001", r#""status":"succeeded""#).replace("payonce_key", "payonce_reference");
    let others = [
        intent("pi_2", &other_attempt, r#""status":"succeeded""#),
        unmarked,
        marked_reference,
    ];
    let (inquiry, _) = inquire(
        &record(&card()),
        [list(&others, false), hits(&others), list(&others, false)],
    )
    .await;
    check(&inquiry, "absent");
}

#[tokio::test]
async fn absence_is_consistent_only_when_the_whole_list_was_read() {
    let other = |id: &str| intent(id, "x", r#""status":"succeeded""#);
    let page = |last: &str| list(&[other("pi_9"), other(last)], true);
    let (inquiry, seen) = inquire(
        &record(&card()),
        [page("pi_8"), list(&[], false), hits(&[]), list(&[], false)],
    )
    .await;
    check(&inquiry, "absent");
    assert_eq!(seen[1].pair("starting_after").as_deref(), Some("pi_8"));
    assert_eq!(seen[2].pair("query"), Some(format!("metadata['payonce_key']:'{KEY}'")));

    let seen_far = seen;

    // A bound on the pages: more than that is not read, and proves nothing.
    let endless: Vec<Response> = (0..20).map(|n| page(&format!("pi_{n}"))).chain([hits(&[])]).collect();
    let (inquiry, seen) = inquire(&record(&card()), endless).await;
    check(&inquiry, "not found");
    assert_eq!(seen.len(), 21);

    // Our clock may have been wrong by hours when it was sent: what is missing nearby must be missing all around.
    let (near, far) = ((300, 600), (86_400, 86_400));
    for (at, (before, after)) in [(0, near), (3, far)] {
        let edge = |name: &str| seen_far[at].pair(name).unwrap().parse::<i64>().unwrap();
        assert_eq!(edge("created[gte]"), NOW.unix_seconds() - before);
        assert_eq!(edge("created[lte]"), NOW.unix_seconds() + after);
    }

    // A list that says it has more and gives nothing to go on by.
    let (inquiry, _) = inquire(&record(&card()), [list(&[], true), hits(&[])]).await;
    check(&inquiry, "not found");

    // No search is no obstacle to a list, and a miss in the search alone is no proof.
    let (inquiry, _) = inquire(&record(&card()), [list(&[], false), no_search(), list(&[], false)]).await;
    check(&inquiry, "absent");
    let no_path = answer(404, &[], "404: Not Found");
    let (inquiry, _) = inquire(&record(&card()), [list(&[], false), no_path, list(&[], false)]).await;
    check(&inquiry, "absent");
}

#[tokio::test]
async fn a_stand_in_that_refuses_the_filter_is_asked_for_the_whole_list() {
    let refused = || {
        json(
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Unexpected created"}}"#,
        )
    };
    let found = list(&[intent("pi_1", KEY, r#""status":"succeeded""#)], false);
    let (inquiry, seen) = inquire(&record(&card()), [refused(), found]).await;
    check(&inquiry, "succeeded 20.00 USD");
    assert_eq!(seen[1].pairs(), [("limit".to_owned(), "100".to_owned())]);
    let (inquiry, _) = inquire(&record(&card()), [refused(), refused()]).await;
    check(&inquiry, "not Unsupported");
}

#[tokio::test]
async fn an_inquiry_that_cannot_be_read_teaches_nothing() {
    for (response, expected) in [
        (answer(500, &[], "<html>"), "maybe ServerFault"),
        (answer(200, &[], "<html>Login to WiFi</html>"), "maybe Unreadable"),
        (
            json(200, r#"{"object":"payment_intent","id":"pi_1"}"#),
            "maybe Unreadable",
        ),
        (
            json(401, r#"{"error":{"type":"invalid_request_error"}}"#),
            "not Credentials",
        ),
        (
            json(429, r#"{"error":{"type":"invalid_request_error","code":"rate_limit"}}"#),
            "not Throttled",
        ),
        (answer(404, &[], "404: Not Found"), "maybe Unreadable"),
    ] {
        let (inquiry, _) = inquire(&record(&card()), [response]).await;
        check(&inquiry, expected);
    }
    // A fault within the second page is not an end of the list.
    let first = list(&[intent("pi_8", "x", r#""status":"succeeded""#)], true);
    let (inquiry, _) = inquire(&record(&card()), [first, answer(503, &[], "")]).await;
    check(&inquiry, "maybe ServerFault");
    // A search that stumbles is not a miss.
    let (inquiry, _) = inquire(&record(&card()), [list(&[], false), answer(500, &[], "")]).await;
    check(&inquiry, "maybe ServerFault");
}

#[tokio::test]
async fn c07_c11_a_hit_in_the_search_counts_and_its_amount_is_compared() {
    let found = |amount: &str| {
        let hit = intent("pi_1", KEY, r#""status":"succeeded""#).replace("2000", amount);
        [list(&[], false), hits(&[hit])]
    };
    let (inquiry, _) = inquire(&record(&card()), found("2000")).await;
    check(&inquiry, "succeeded 20.00 USD");
    let (inquiry, _) = inquire(&record(&card()), found("2100")).await;
    let Ok(Inquiry::Found(outcome)) = inquiry else { panic!() };
    assert_eq!(heard(&card(), outcome).outcome().as_str(), "conflict");
}

#[tokio::test]
async fn two_payments_for_one_key_are_a_conflict_and_leftovers_are_not() {
    let paid = |id| intent(id, KEY, r#""status":"succeeded","created":2"#);
    let held = |id| intent(id, KEY, r#""status":"requires_capture","created":3"#);
    let waiting = |id, created: u32| {
        intent(
            id,
            KEY,
            &format!(r#""status":"requires_payment_method","created":{created}"#),
        )
    };
    let cancelled = |id| intent(id, KEY, r#""status":"canceled","created":1"#);
    for (objects, expected, id) in [
        (vec![paid("pi_1"), paid("pi_2")], "conflict two_payments", "pi_1"),
        (vec![paid("pi_1"), held("pi_2")], "conflict two_payments", "pi_1"),
        (vec![paid("pi_1"), paid("pi_1")], "succeeded 20.00 USD", "pi_1"),
        (vec![cancelled("pi_1"), paid("pi_2")], "succeeded 20.00 USD", "pi_2"),
        (vec![waiting("pi_1", 1), paid("pi_2")], "succeeded 20.00 USD", "pi_2"),
        (
            vec![waiting("pi_2", 5), waiting("pi_3", 4), cancelled("pi_1")],
            "pending wait",
            "pi_3",
        ),
        (vec![cancelled("pi_1")], "failed cancelled", "pi_1"),
    ] {
        let (inquiry, _) = inquire(&record(&card()), [list(&objects, false)]).await;
        check(&inquiry, expected);
        let Ok(Inquiry::Found(outcome)) = inquiry else { panic!() };
        assert_eq!(outcome.gateway_ref().unwrap().as_str(), id);
        if let Outcome::Conflict(conflict) = outcome {
            assert_eq!(conflict.kind, ConflictKind::TwoPayments);
            assert!(conflict.detail.contains("pi_2"), "{}", conflict.detail);
        }
    }
    let (inquiry, _) = inquire(&record(&card()), [list(&[waiting("pi_1", 1), paid("pi_2")], false)]).await;
    assert_eq!(notes(inquiry).len(), 1);
}

#[tokio::test]
async fn a_known_id_is_read_directly() {
    let pending = intent(
        "pi_1",
        KEY,
        r#""status":"requires_payment_method","client_secret":"pi_1_secret_x""#,
    );
    let known = heard_answer(&charge(), &pending).await;
    let (inquiry, seen) = inquire(&known, [json(200, &pending)]).await;
    check(&inquiry, "pending confirm");
    assert_eq!(seen[0].url, "https://api.stripe.com/v1/payment_intents/pi_1");
    let declined = intent(
        "pi_1",
        KEY,
        r#""status":"requires_payment_method","last_payment_error":{"code":"card_declined"}"#,
    );
    let (inquiry, _) = inquire(&known, [json(200, &declined)]).await;
    check(&inquiry, "failed declined");
    // The payer still holds the client secret: the record stays open.
    let Ok(Inquiry::Found(outcome)) = inquiry else { panic!() };
    assert_eq!(
        known
            .learn(&Observation::new(Source::Inquiry, NOW, Fact::Said(outcome)))
            .record
            .outcome()
            .as_str(),
        "pending"
    );
    // Another operation's object, and an id that is suddenly unknown.
    let (inquiry, _) = inquire(&known, [json(200, &pending.replace(KEY, "x"))]).await;
    check(&inquiry, "maybe Unreadable");
    let (inquiry, _) = inquire(&known, [no_search()]).await;
    check(&inquiry, "maybe Unreadable");
}

#[tokio::test]
async fn a_hosted_page_is_looked_for_among_the_pages() {
    let session = |fields: &str| {
        format!(
            r#"{{"id":"cs_1","object":"checkout.session","metadata":{{"payonce_key":"{KEY}"}},"amount_total":2000,"currency":"usd",{fields}}}"#
        )
    };
    let open =
        session(r#""status":"open","url":"https://checkout.example/x","expires_at":1767230000,"payment_intent":null"#);
    let (inquiry, seen) = inquire(&record(&page()), [list(std::slice::from_ref(&open), false)]).await;
    check(&inquiry, "pending redirect");
    assert_eq!(seen[0].path(), "/v1/checkout/sessions");
    assert_eq!(seen[0].pair("expand[0]").as_deref(), Some("data.payment_intent"));

    let known = heard_answer(&page(), &open).await;
    let with = |status: &str, payment: &str| {
        session(&format!(
            r#""status":"{status}","payment_status":"unpaid","payment_intent":{payment}"#
        ))
    };
    let paid = intent("pi_1", KEY, r#""status":"succeeded","amount_received":2000"#);
    let declined = intent(
        "pi_1",
        KEY,
        r#""status":"requires_payment_method","last_payment_error":{"code":"card_declined"}"#,
    );
    for (body, expected) in [
        (with("complete", &paid), "succeeded 20.00 USD"),
        (with("expired", &paid), "succeeded 20.00 USD"),
        (with("expired", &declined), "failed expired"),
        (with("open", &declined), "pending wait"),
        (with("complete", &declined), "failed declined"),
        (with("complete", "\"pi_1\""), "pending wait"),
        (with("expired", "null"), "failed expired"),
    ] {
        let (inquiry, seen) = inquire(&known, [json(200, &body)]).await;
        check(&inquiry, expected);
        assert_eq!(seen[0].path(), "/v1/checkout/sessions/cs_1");
        assert_eq!(seen[0].pair("expand[0]").as_deref(), Some("payment_intent"));
        if let Ok(Inquiry::Found(Outcome::Failed(failed))) = inquiry {
            assert!(!failed.payer_may_retry, "nobody can pay on a closed page");
        }
    }
}

#[tokio::test]
async fn a_refund_is_looked_for_among_those_of_its_payment() {
    let refund_with = |id: &str, key: &str, status: &str| {
        format!(
            r#"{{"id":"{id}","object":"refund","amount":2000,"currency":"usd","payment_intent":"pi_1","status":"{status}","metadata":{{"payonce_key":"{key}"}}}}"#
        )
    };
    let ours = key(&refund());
    let other = refund_with("re_9", "x", "succeeded");
    let (inquiry, seen) = inquire(
        &record(&refund()),
        [list(&[other.clone(), refund_with("re_1", &ours, "succeeded")], false)],
    )
    .await;
    check(&inquiry, "succeeded 20.00 USD");
    assert_eq!(
        seen[0].url,
        "https://api.stripe.com/v1/refunds?payment_intent=pi_1&limit=100"
    );
    let (inquiry, _) = inquire(&record(&refund()), [list(&[other], false)]).await;
    check(&inquiry, "absent");
    let two = [
        refund_with("re_1", &ours, "succeeded"),
        refund_with("re_2", &ours, "pending"),
    ];
    let (inquiry, _) = inquire(&record(&refund()), [list(&two, false)]).await;
    check(&inquiry, "conflict two_payments");
    let retried = [
        refund_with("re_1", &ours, "failed"),
        refund_with("re_2", &ours, "succeeded"),
    ];
    let (inquiry, _) = inquire(&record(&refund()), [list(&retried, false)]).await;
    check(&inquiry, "succeeded 20.00 USD");
    let (inquiry, _) = inquire(&record(&refund()), [no_search()]).await;
    check(&inquiry, "failed no_such_payment");

    let known = heard_answer(&refund(), &refund_with("re_1", &ours, "pending")).await;
    let (inquiry, seen) = inquire(&known, [json(200, &refund_with("re_1", &ours, "failed"))]).await;
    check(&inquiry, "failed declined");
    assert_eq!(seen[0].path(), "/v1/refunds/re_1");

    let by_charge = Operation::refund("r-1", usd("20.00"), on("ch_1")).unwrap();
    let (_, seen) = inquire(&record(&by_charge), [list(&[], false)]).await;
    assert_eq!(seen[0].pair("charge").as_deref(), Some("ch_1"));
}

fn event(kind: &str, id: &str, key: &str) -> String {
    format!(
        r#"{{"id":"evt_1","object":"event","type":"{kind}","request":{{"idempotency_key":"{key}"}},"data":{{"object":{{"id":"{id}"}}}}}}"#
    )
}

#[tokio::test]
async fn a_capture_is_told_by_the_payment_and_its_mark() {
    let operation = capture();
    let payment = |fields: &str| intent("pi_1", KEY, fields);
    let marked = |mark: &str| {
        payment(r#""status":"succeeded","amount_received":2000"#).replace(
            r#""metadata":{"#,
            &format!(r#""metadata":{{"payonce_capture_key":"{mark}","#),
        )
    };
    let (inquiry, seen) = inquire(&record(&operation), [json(200, &marked(&key(&operation)))]).await;
    check(&inquiry, "succeeded 20.00 USD");
    assert_eq!(seen[0].path(), "/v1/payment_intents/pi_1");
    let (inquiry, _) = inquire(&record(&operation), [json(200, &marked("x"))]).await;
    check(&inquiry, "failed already_done");
    for (fields, expected) in [
        (r#""status":"requires_capture""#, "absent"),
        (r#""status":"requires_action""#, "absent"),
        (
            r#""status":"canceled","cancellation_reason":"expired""#,
            "failed expired",
        ),
        (r#""status":"succeeded""#, "maybe Unreadable"),
        (r#""status":"brand_new""#, "maybe Unreadable"),
    ] {
        let (inquiry, _) = inquire(&record(&operation), [json(200, &payment(fields))]).await;
        check(&inquiry, expected);
    }
    // Without a mark the events tell whose it was; the effect is there all the same.
    let captured = || json(200, &payment(r#""status":"succeeded","amount_received":1500"#));
    let kind = "payment_intent.succeeded";
    let (inquiry, seen) = inquire(
        &record(&operation),
        [captured(), list(&[event(kind, "pi_1", &key(&operation))], false)],
    )
    .await;
    check(&inquiry, "succeeded 15.00 USD");
    assert_eq!(notes(inquiry), Vec::<String>::new());
    assert_eq!(seen[1].path(), "/v1/events");
    assert_eq!(seen[1].pair("type").as_deref(), Some(kind));
    assert_eq!(seen[1].pair("created[gte]"), Some("1767225300".to_owned()));
    for others in [
        list(
            &[event(kind, "pi_1", "x"), event(kind, "pi_2", &key(&operation))],
            false,
        ),
        answer(500, &[], ""),
    ] {
        let (inquiry, _) = inquire(&record(&operation), [captured(), others]).await;
        assert_eq!(notes(inquiry).len(), 1);
    }
    let (inquiry, _) = inquire(&record(&operation), [no_search()]).await;
    check(&inquiry, "failed no_such_payment");
}

#[tokio::test]
async fn a_void_is_told_by_the_payment_and_its_event() {
    let payment = |fields: &str| json(200, &intent("pi_1", KEY, fields));
    let kind = "payment_intent.canceled";
    let ours = list(&[event(kind, "pi_1", &key(&void()))], false);
    let (inquiry, seen) = inquire(&record(&void()), [payment(r#""status":"canceled""#), ours]).await;
    check(&inquiry, "succeeded");
    assert_eq!(notes(inquiry), Vec::<String>::new());
    assert_eq!(seen[1].pair("type").as_deref(), Some(kind));
    let (inquiry, _) = inquire(&record(&void()), [payment(r#""status":"canceled""#), list(&[], false)]).await;
    assert_eq!(notes(inquiry).len(), 1);
    let (inquiry, _) = inquire(&record(&void()), [payment(r#""status":"requires_capture""#)]).await;
    check(&inquiry, "absent");
    let (inquiry, _) = inquire(&record(&void()), [payment(r#""status":"succeeded""#)]).await;
    check(&inquiry, "failed settled");

    let close = Operation::void("v-1", on("cs_1")).unwrap();
    let session = |status: &str| {
        json(
            200,
            &format!(r#"{{"id":"cs_1","object":"checkout.session","status":"{status}"}}"#),
        )
    };
    let (inquiry, seen) = inquire(&record(&close), [session("expired"), list(&[], false)]).await;
    check(&inquiry, "succeeded");
    assert_eq!(seen[1].pair("type").as_deref(), Some("checkout.session.expired"));
    let (inquiry, _) = inquire(&record(&close), [session("open")]).await;
    check(&inquiry, "absent");
    let (inquiry, _) = inquire(&record(&close), [session("complete")]).await;
    check(&inquiry, "failed settled");
}

#[tokio::test]
async fn a_released_authorization_contradicts_nothing_that_was_known_of_it() {
    let operation = authorize();
    let ours = key(&operation);
    let released = || {
        json(
            200,
            &intent(
                "pi_1",
                &ours,
                r#""status":"canceled","cancellation_reason":"automatic""#,
            ),
        )
    };
    let mut succeeded = Succeeded::new(Some(usd("20.00")));
    succeeded.gateway_ref = Some(GatewayRef::new("pi_1"));
    let known = heard(&operation, Outcome::Succeeded(succeeded));
    let (inquiry, _) = inquire(&known, [released()]).await;
    check(&inquiry, "succeeded 20.00 USD");
    assert_eq!(notes(inquiry).len(), 1);
    // Where nothing was known yet, nothing is reserved and another attempt may follow.
    let unknown = record(&operation);
    let (inquiry, _) = inquire(
        &unknown,
        [list(
            &[intent(
                "pi_1",
                &ours,
                r#""status":"canceled","cancellation_reason":"automatic""#,
            )],
            false,
        )],
    )
    .await;
    check(&inquiry, "failed expired");
}

#[test]
fn the_promise_is_a_day_less_a_margin_for_every_kind() {
    use crate::operation::OperationKind::{Authorize, Capture, Charge, Refund, Void};
    let stripe = stripe(&Script::new([]));
    for kind in [Charge, Authorize, Capture, Void, Refund] {
        let crate::retry::SameKey::Replays { within } = stripe.promise(kind).same_key else {
            panic!("{kind}")
        };
        assert!(within < Duration::from_secs(24 * 60 * 60));
    }
    assert_eq!(stripe.name(), "stripe");
}
