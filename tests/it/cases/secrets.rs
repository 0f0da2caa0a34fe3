//! Cases C65 to C67: what must not come out again, in whatever way an outcome or an error is looked at.

use super::twoc2p::{envelope, sign};
use crate::shop::NOW;
use crate::wired::{INQUIRY, INTENTS, STRIPE_KEY, Site, TOKEN, Wired, finds_nothing, invoice, of, op_a, pi_1, policy};
use payonce::error::Error;
use payonce::failure::FailureKind;
use payonce::journal::row::Row;
use payonce::journal::sqlite::SqliteJournal;
use payonce::operation::Operation;
use payonce::outcome::{FailureCategory, NextStep, Outcome};
use payonce::testing::ManualClock;
use payonce::testing::server::{Reply, ScriptedServer};
use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Everything that is logged on this thread, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, what: &Metadata<'_>, fields: impl FnOnce(&mut Fields<'_>)) {
        let mut text = self.0.lock().unwrap();
        write!(text, "{} {} {}", what.level(), what.target(), what.name()).unwrap();
        fields(&mut Fields(&mut text));
        text.push('\n');
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata(), |fields| span.record(fields));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.add(event.metadata(), |fields| event.record(fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// One shop with a journal in a file, and a log of what it does.
struct Watched {
    shop: Wired,
    log: Log,
    folder: tempfile::TempDir,
    _logging: tracing::subscriber::DefaultGuard,
}

impl Watched {
    fn new(site: Site) -> Self {
        let log = Log::default();
        let folder = tempfile::tempdir().unwrap();
        let journal = Arc::new(SqliteJournal::open(folder.path().join("journal")).unwrap());
        Self {
            shop: Wired::on(site, journal, ManualClock::at(NOW), |builder| builder),
            _logging: tracing::subscriber::set_default(log.clone()),
            log,
            folder,
        }
    }

    fn stripe(server: &ScriptedServer) -> Self {
        Self::new(Site {
            stripe: Some(server.url()),
            ..Site::default()
        })
    }

    fn twoc2p(server: &ScriptedServer) -> Self {
        Self::new(Site {
            twoc2p: Some(format!("{}/payment/4.3", server.url())),
            ..Site::default()
        })
    }

    /// All that can be printed, read or found afterwards. What the caller gets explicitly is not in it.
    async fn all_that_is_left(&self, operation: &Operation, result: &Result<Outcome, Error>) -> String {
        let mut all = self.log.text();
        write!(all, "{result:?} {result:#?} {operation:?} {:?}", self.shop.payments).unwrap();
        if let Err(error) = result {
            let mut cause: Option<&dyn std::error::Error> = Some(error);
            while let Some(error) = cause {
                write!(all, "{error} {error:?} {error:#?}").unwrap();
                cause = error.source();
            }
        }
        if let Ok(outcome) = result
            && let Some(evidence) = outcome.evidence()
        {
            write!(all, "{:?} {:?}", evidence.message, evidence.details).unwrap();
        }
        write!(all, "{:?}", self.shop.history(operation).await).unwrap();
        let record = self.shop.journal.load(self.shop.payments.key(operation)).await;
        let record = record.unwrap().unwrap();
        write!(all, "{record:?} {}", Row::write(&record).unwrap().json).unwrap();
        all.push_str(&files(self.folder.path()));
        all
    }
}

/// The bytes of all files in a folder, as far as they are text.
fn files(folder: &Path) -> String {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let bytes: Vec<u8> = paths.flat_map(|path| std::fs::read(path).unwrap()).collect();
    assert!(bytes.len() > 4096, "the journal is somewhere else");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[track_caller]
fn holds_none_of(all: &str, canaries: &[&str]) {
    for canary in canaries {
        if let Some(at) = all.find(canary) {
            let from = all[..at].char_indices().rev().nth(200).map_or(0, |(at, _)| at);
            panic!("{canary} came out again: {}", &all[from..at + canary.len()]);
        }
    }
}

#[tokio::test]
async fn c65_a_key_that_the_gateway_echoes_does_not_come_out() {
    let server = ScriptedServer::start();
    server.always(INTENTS, |_| {
        Reply::new(401)
            .json(r#"{"error":{"type":"invalid_request_error","message":"bad key sk_test_TESTONLYcases0001"}}"#)
    });
    let watched = Watched::stripe(&server);
    let result = watched.shop.try_pay(&op_a()).await;
    let Err(Error::Refused { failure, .. }) = &result else {
        panic!("{result:?}")
    };
    assert_eq!(
        (failure.kind(), failure.http_status()),
        (FailureKind::Credentials, Some(401))
    );
    assert!(
        failure.detail().contains("bad key"),
        "the message is there, without the key"
    );
    let request = &of(server.requests(), INTENTS)[0];
    assert_eq!(
        request.header("Authorization"),
        Some("Bearer sk_test_TESTONLYcases0001")
    );
    let all = watched.all_that_is_left(&op_a(), &result).await;
    holds_none_of(&all, &[STRIPE_KEY, "TESTONLYcases", "Bearer", "uthorization"]);
    assert!(
        watched.log.text().contains("payonce.attempt_failed"),
        "the log was listened to"
    );
}

#[tokio::test]
async fn c66_a_client_secret_is_for_the_caller_alone() {
    let server = ScriptedServer::start();
    server.always(INTENTS, |_| {
        Reply::new(200).json(
            r#"{"id":"pi_1","object":"payment_intent","status":"requires_action","client_secret":"pi_1_secret_TESTONLY","amount":2000,"currency":"usd"}"#,
        )
    });
    let watched = Watched::stripe(&server);
    let result = watched.shop.try_pay(&op_a()).await;
    let Ok(Outcome::Pending(pending)) = &result else {
        panic!("{result:?}")
    };
    let NextStep::Confirm { client_secret } = &pending.next else {
        panic!("{pending:?}")
    };
    assert_eq!(client_secret.expose(), "pi_1_secret_TESTONLY");
    let all = watched.all_that_is_left(&op_a(), &result).await;
    holds_none_of(&all, &["secret_TESTONLY", "pm_card_visa", STRIPE_KEY]);
}

#[tokio::test]
async fn c66_tokens_that_pay_are_nowhere_but_on_the_wire() {
    let server = ScriptedServer::start();
    let token = r#"{"respCode":"0000","respDesc":"Success","webPaymentUrl":"https://pgw-ui.2c2p.com/page/1","paymentToken":"TESTONLYpaytoken"}"#;
    let paid = r#"{"merchantID":"TESTM01","invoiceNo":"INV7001","amount":2000.00,"currencyCode":"THB","respCode":"0000","respDesc":"Success","tranRef":"T1","customerToken":"TESTONLYcustomertoken","accountNo":"4111111111111111"}"#;
    server
        .reply(TOKEN, Reply::new(200).json(envelope(&sign(token))))
        .reply(INQUIRY, Reply::new(200).json(envelope(&sign(paid))));
    let watched = Watched::twoc2p(&server);
    let order = invoice("2000.00");
    let result = watched.shop.try_pay(&order).await;
    let Ok(Outcome::Pending(pending)) = &result else {
        panic!("{result:?}")
    };
    let NextStep::Redirect { url } = &pending.next else {
        panic!("{pending:?}")
    };
    assert_eq!(url.expose(), "https://pgw-ui.2c2p.com/page/1");
    assert!(
        !format!("{result:?}").contains("page/1"),
        "whoever holds the link can pay"
    );
    let canaries = [
        "TESTONLYpaytoken",
        "TESTONLYcustomertoken",
        "4111111111111111",
        "TESTONLY2C2P",
    ];
    holds_none_of(&watched.all_that_is_left(&order, &result).await, &canaries);

    let result = Ok(watched.shop.resolve(&order).await);
    assert!(matches!(result, Ok(Outcome::Succeeded(_))), "{result:?}");
    holds_none_of(&watched.all_that_is_left(&order, &result).await, &canaries);
}

#[tokio::test]
async fn c67_a_card_in_a_page_of_a_failed_answer_does_not_come_out() {
    for page in [
        "card 4242 4242 4242 4242 cvc 123 and 4111111111111111",
        "<html><title>card 4242 4242 4242 4242 cvc 123</title>4111111111111111</html>",
        "4111111111111111 4242-4242-4242-4242",
    ] {
        let server = ScriptedServer::start();
        finds_nothing(&server);
        server.reply(INTENTS, Reply::new(400).html(page));
        let watched = Watched::stripe(&server);
        let result = watched.shop.try_pay(&op_a()).await;
        assert!(matches!(result, Ok(Outcome::Unknown(_))), "{result:?}");
        let all = watched.all_that_is_left(&op_a(), &result).await;
        holds_none_of(&all, &["4242 4242", "4242-4242", "41111111"]);
    }
}

#[tokio::test]
async fn c67_a_card_in_the_words_of_a_gateway_does_not_come_out() {
    let server = ScriptedServer::start();
    let refused = r#"{"respCode":"9004","respDesc":"Invalid card 4111111111111111"}"#;
    server.reply(TOKEN, Reply::new(200).json(envelope(&sign(refused))));
    let watched = Watched::twoc2p(&server);
    let order = invoice("2000.00");
    let result = watched.shop.try_pay(&order).await;
    let Ok(Outcome::Failed(failed)) = &result else {
        panic!("{result:?}")
    };
    assert_eq!(failed.category, FailureCategory::Invalid);
    assert_eq!(failed.evidence.message.as_deref(), Some("Invalid card ***"));
    holds_none_of(&watched.all_that_is_left(&order, &result).await, &["41111111"]);

    let server = ScriptedServer::start();
    let declined = r#"{"error":{"type":"card_error","code":"incorrect_number","message":"Your card 4242 4242 4242 4242 is wrong","param":"number"}}"#;
    server.reply(INTENTS, Reply::new(402).json(declined));
    let watched = Watched::stripe(&server);
    let result = watched.shop.try_pay(&op_a()).await;
    assert!(matches!(result, Ok(Outcome::Failed(_))), "{result:?}");
    let all = watched.all_that_is_left(&op_a(), &result).await;
    holds_none_of(&all, &["4242 4242"]);
    assert!(all.contains("Your card *** is wrong"));
}

/// What these tests look through would hold a canary, were one let out.
#[tokio::test]
async fn what_is_looked_through_does_hold_what_is_not_secret() {
    let server = ScriptedServer::start();
    server.reply(
        INTENTS,
        Reply::new(200)
            .json(pi_1("succeeded"))
            .header("Request-Id", "req_canary"),
    );
    let watched = Watched::stripe(&server);
    let once = watched.shop.another_process(|builder| builder.policy(policy(1)));
    let result = once.try_pay(&op_a()).await;
    let all = watched.all_that_is_left(&op_a(), &result).await;
    assert!(watched.log.text().contains("req_canary") && files(watched.folder.path()).contains("req_canary"));
    assert!(all.contains("req_canary") && all.contains("order-7001"));
}
