//! Events of Stripe that contradict each other, and what was stored by another process or an earlier version.

use crate::gateway_stripe::sign;
use crate::shop::{NOW, assert_is, usd};
use crate::wired::{
    INTENTS, K1, Site, WEBHOOK_SECRET, Wired, bounded, card_charge, in_a_child, is_child, listing, op_a, pi_1, say,
};
use payonce::clock::Clock;
use payonce::gateway::stripe::StripeOptions;
use payonce::gateway::{NotificationError, RawNotification};
use payonce::inbound::{InboundError, Intake};
use payonce::journal::row::Row;
use payonce::journal::sqlite::SqliteJournal;
use payonce::journal::{Journal, MemoryJournal, Reservation};
use payonce::operation::{Operation, Target};
use payonce::outcome::{NextStep, Outcome};
use payonce::record::{HistoryLine, Recorded, Source};
use payonce::testing::server::{FakeStripe, Reply, ScriptedServer};
use payonce::testing::{Bank, ManualClock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const E1: &str = r#"{"id":"evt_1","object":"event","created":1767225600,"livemode":false,"type":"payment_intent.succeeded","data":{"object":{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"succeeded","metadata":{"op":"order-7001"}}}}"#;

/// `body` as Stripe delivers it at [`NOW`].
fn delivery(body: &str) -> RawNotification {
    let signature = sign(body.as_bytes(), NOW.unix_seconds());
    RawNotification::new(vec![("Stripe-Signature".to_owned(), signature)], body.into(), NOW)
}

async fn deliver(shop: &Wired, raw: &RawNotification) -> Intake {
    bounded(shop.payments.notify("stripe", raw)).await.unwrap()
}

#[track_caller]
fn taken(intake: Intake) -> (Outcome, Recorded) {
    let Intake::Taken { outcome, recorded, .. } = intake else {
        panic!("{intake:?}")
    };
    (outcome, recorded)
}

/// A server at which pi_1 is made and takes its time; a read of it shows `status`.
fn server(status: &'static str) -> ScriptedServer {
    let server = ScriptedServer::start();
    server
        .always(INTENTS, |_| Reply::new(200).json(pi_1("processing")))
        .always("GET /v1/payment_intents/pi_1", move |_| {
            Reply::new(200).json(pi_1(status))
        });
    server
}

#[tokio::test]
async fn c18_of_two_events_of_one_second_neither_wins_but_the_payment() {
    let canceled = E1
        .replace("evt_1", "evt_a")
        .replace("payment_intent.succeeded", "payment_intent.canceled")
        .replace(r#""status":"succeeded""#, r#""status":"canceled""#);
    let succeeded = E1.replace("evt_1", "evt_b");
    for (status, expected) in [("succeeded", "succeeded"), ("canceled", "conflict")] {
        for events in [[&canceled, &succeeded], [&succeeded, &canceled]] {
            let server = server(status);
            let shop = Wired::stripe(server.url());
            assert_is(&shop.pay(&op_a()).await, "pending");
            let (first, recorded) = taken(deliver(&shop, &delivery(events[0])).await);
            assert_eq!(recorded, Recorded::First);
            assert_is(&first, if events[0] == &canceled { "failed" } else { "succeeded" });
            assert_eq!(server.count("GET /v1/payment_intents/pi_1"), 0, "no contradiction yet");
            let (second, _) = taken(deliver(&shop, &delivery(events[1])).await);
            assert_is(&second, expected);
            assert_eq!(server.count("GET /v1/payment_intents/pi_1"), 1, "one fetch decides");

            // Stripe delivers at least once: a repeat changes nothing. The one that still contradicts is judged anew.
            for event in events {
                let (again, recorded) = taken(deliver(&shop, &delivery(event)).await);
                assert_is(&again, expected);
                assert_eq!(recorded, Recorded::Already);
            }
            assert_is(&shop.look_up(&op_a()).await.unwrap(), expected);
            let judged_again = usize::from(expected == "succeeded");
            assert_eq!(server.requests().len(), 2 + judged_again);
        }
    }
}

/// A name that no version of this crate knows.
const NEW_EVENT: &str = r#"{"id":"evt_9","object":"event","created":1767225600,"livemode":false,"type":"payment_intent.teleported","data":{"object":{"id":"zz_9","object":"teleport"}}}"#;

#[tokio::test]
async fn c54_a_stored_event_is_applied_by_a_new_process() {
    let folder = tempfile::tempdir().unwrap();
    let server = server("processing");
    let journal = Arc::new(SqliteJournal::open(folder.path().join("journal")).unwrap());
    let shop = open(journal, server.url());
    assert_is(&shop.pay(&op_a()).await, "pending");
    drop(shop);
    for (name, body) in [("known", E1), ("unknown", NEW_EVENT)] {
        std::fs::write(folder.path().join(name), delivery(body).to_json()).unwrap();
    }
    let test = "cases::stripe::notifications::child_that_applies_stored_events";
    let said = in_a_child(test, &[("PAYONCE_FOLDER", folder.path().to_str().unwrap())]);
    assert_eq!(
        said,
        [
            "succeeded First",
            "succeeded Already",
            "ignored payment_intent.teleported"
        ]
    );
    let journal = Arc::new(SqliteJournal::open(folder.path().join("journal")).unwrap());
    let shop = open(journal, server.url());
    assert_is(&shop.look_up(&op_a()).await.unwrap(), "succeeded");
    assert_eq!(server.requests().len(), 1, "nothing had to be asked");
}

fn open(journal: Arc<dyn Journal>, url: String) -> Wired {
    let site = Site {
        stripe: Some(url),
        ..Site::default()
    };
    // Later: what counts for a signature is when the event was received.
    let clock = ManualClock::at(NOW.after(Duration::from_secs(3600)));
    Wired::on(site, journal, clock, |builder| builder)
}

/// In a child: reads what is stored in the folder, and nothing else.
#[tokio::test]
async fn child_that_applies_stored_events() {
    if !is_child() {
        return;
    }
    let folder = std::env::var("PAYONCE_FOLDER").unwrap();
    let folder = Path::new(&folder);
    let journal = Arc::new(SqliteJournal::open(folder.join("journal")).unwrap());
    let shop = open(journal, "http://127.0.0.1:9".to_owned());
    for (name, body) in [("known", E1), ("known", E1), ("unknown", NEW_EVENT)] {
        let stored = std::fs::read_to_string(folder.join(name)).unwrap();
        let raw = RawNotification::from_json(&stored).unwrap();
        assert_eq!(raw, delivery(body), "loaded equals stored");
        assert_eq!(raw.body, body.as_bytes(), "the original bytes");
        match deliver(&shop, &raw).await {
            Intake::Taken { outcome, recorded, .. } => say(&format!("{} {recorded:?}", outcome.as_str())),
            Intake::Ignored { name } => say(&format!("ignored {name}")),
            other => panic!("{other:?}"),
        }
        let mut tampered = raw;
        tampered.body.push(b' ');
        let refused = shop.payments.notify("stripe", &tampered).await.unwrap_err();
        assert!(matches!(refused, InboundError::Refused(NotificationError::Signature)));
    }
}

/// What version 1 of the stored form looked like after seven answers to op A and one to a hosted page: written by the
/// version that had it, and never again.
const ROWS: &str = include_str!("../../../fixtures/journal/rows_form_1.jsonl");

fn on_a_page() -> Operation {
    Operation::charge("order-7001", usd("20.00"))
        .unwrap()
        .with(StripeOptions::hosted_page("https://shop.example/ok"))
}

#[tokio::test]
async fn c54_rows_of_the_first_form_are_gone_on_with() {
    let expected = [
        // The stored state, what an hour later the same call makes of it, and how many POSTs that takes.
        ("succeeded", "succeeded", 0),
        ("pending", "succeeded", 0),
        ("pending", "pending", 0),
        ("failed", "failed", 0),
        ("unknown", "succeeded", 0),
        ("conflict", "conflict", 0),
        ("released", "pending", 1),
        ("sending", "succeeded", 0),
    ];
    assert_eq!(ROWS.lines().count(), expected.len());
    for (row, (stored, later, posts)) in ROWS.lines().zip(expected) {
        let server = server("succeeded");
        server
            .always("GET /v1/payment_intents", |_| {
                let marked = pi_1("succeeded").replace(r#""op":"#, &format!(r#""payonce_key":"{K1}","op":"#));
                Reply::new(200).json(listing("list", &[&marked]))
            })
            .always("GET /v1/checkout/sessions/cs_1", |_| {
                let open = r#"{"id":"cs_1","object":"checkout.session","status":"open"}"#;
                Reply::new(200).json(open)
            });
        let record = Row::new(row).read().unwrap();
        assert_eq!((record.state_word(), record.key().to_string().as_str()), (stored, K1));
        let page = row.contains("cs_1");
        let journal = Arc::new(MemoryJournal::new());
        let line = HistoryLine::new(NOW, Source::Engine, "", stored);
        let reserved = journal.reserve(&record, &line).await.unwrap();
        assert!(matches!(reserved, Reservation::New(_)), "{reserved:?}");

        let shop = open(journal, server.url());
        let operation = if page { on_a_page() } else { op_a() };
        let outcome = shop.pay(&operation).await;
        assert_is(&outcome, later);
        assert_eq!(server.count(INTENTS), posts, "{row}");
        assert_eq!(server.unexpected(), [""; 0]);
        if page {
            let Outcome::Pending(pending) = outcome else { panic!() };
            let NextStep::Redirect { url } = pending.next else {
                panic!("the link is lost")
            };
            assert_eq!(url.expose(), "https://checkout.stripe.com/c/pay/cs_1");
        }
    }
}

const REFUNDS: &str = "POST /v1/refunds";

struct Refunding {
    stripe: FakeStripe,
    shop: Wired,
    refund: Operation,
}

impl Refunding {
    /// A paid order, of which 5.00 are to be given back; the refund begins in this status.
    async fn new(status: &str) -> Self {
        let stripe = FakeStripe::start(Bank::new());
        stripe.set_refund_status(status);
        let shop = Wired::stripe(stripe.base_url());
        stripe.set_clock(Arc::clone(&shop.clock) as _);
        let order = card_charge("order-1");
        assert_is(&shop.pay(&order).await, "succeeded");
        let target = Target::Operation(shop.payments.key(&order));
        let refund = Operation::refund("r-1", usd("5.00"), target).unwrap();
        Self { stripe, shop, refund }
    }

    /// The latest event about the refund, as it is delivered now.
    fn event(&self) -> RawNotification {
        let (headers, body) = self.stripe.webhook(&self.stripe.refunds()[0], WEBHOOK_SECRET);
        RawNotification::new(headers, body, self.shop.clock.now())
    }
}

#[tokio::test]
async fn c56_a_refund_that_waits_is_not_made_again_and_ends_by_its_event() {
    for status in ["pending", "requires_action"] {
        let one = Refunding::new(status).await;
        for _ in 0..2 {
            assert_is(&one.shop.pay(&one.refund).await, "pending");
        }
        assert_eq!(one.stripe.count(REFUNDS), 1);
        one.stripe.finish_refund(&one.stripe.refunds()[0], "succeeded");
        let (outcome, recorded) = taken(deliver(&one.shop, &one.event()).await);
        assert_is(&outcome, "succeeded");
        assert_eq!(recorded, Recorded::First);
        assert_eq!((one.stripe.count(REFUNDS), one.stripe.bank().refunded("r-1")), (1, 1));
    }
}

#[tokio::test]
async fn c57_a_refund_that_a_bank_gives_back_has_failed_and_stays_so() {
    let one = Refunding::new("succeeded").await;
    assert_is(&one.shop.pay(&one.refund).await, "succeeded");
    one.stripe.finish_refund(&one.stripe.refunds()[0], "succeeded");
    let stale = one.event();
    one.stripe.finish_refund(&one.stripe.refunds()[0], "failed");
    let (outcome, recorded) = taken(deliver(&one.shop, &one.event()).await);
    assert_is(&outcome, "failed");
    assert_eq!(recorded, Recorded::First);
    // The event from before comes late: a fetch decides.
    let fetches = one.stripe.count("GET /v1/refunds/*");
    let (outcome, _) = taken(deliver(&one.shop, &stale).await);
    assert_is(&outcome, "failed");
    assert_eq!(one.stripe.count("GET /v1/refunds/*"), fetches + 1);
    assert_eq!(one.stripe.count(REFUNDS), 1);
}
