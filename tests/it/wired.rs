//! A shop whose gateways are real sockets on loopback: what the end-to-end tests start from.

use crate::shop::{NOW, usd};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use payonce::clock::Clock;
use payonce::engine::{Builder, Payments};
use payonce::error::Error;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p};
use payonce::journal::{Journal, MemoryJournal};
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::Outcome;
use payonce::record::HistoryLine;
use payonce::retry::RetryPolicy;
use payonce::testing::ManualClock;
use payonce::testing::server::{FakeTwoC2p, LoggedRequest, Reply, ScriptedServer};
use payonce::transport::{Http, Transport};
use std::future::Future;
use std::process::Command;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

pub(crate) const STRIPE_KEY: &str = "sk_test_TESTONLYcases0001";
pub(crate) const WEBHOOK_SECRET: &str = "whsec_TESTONLYcases0001";
pub(crate) const MERCHANT: &str = "TESTM01";
pub(crate) const MERCHANT_SECRET: &str = "TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001TESTONLY2C2P0001";

pub(crate) const INTENTS: &str = "POST /v1/payment_intents";
pub(crate) const TOKEN: &str = "POST /payment/4.3/paymentToken";
pub(crate) const INQUIRY: &str = "POST /payment/4.3/paymentInquiry";

/// Stripe's answer to a list in which there is nothing.
pub(crate) const EMPTY: &str = r#"{"object":"list","data":[],"has_more":false}"#;

/// One transport for all: it reads the machine's certificates when it is built.
static HTTP: LazyLock<Arc<dyn Transport>> = LazyLock::new(|| {
    let http = Http::builder().connect_timeout(Duration::from_secs(2));
    Arc::new(http.timeout(Duration::from_secs(5)).build().unwrap())
});

/// One process of the shop.
#[derive(Clone)]
pub(crate) struct Wired {
    pub(crate) payments: Payments,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<ManualClock>,
    site: Site,
}

/// Where the gateways are. The first one that there is serves operations that name none.
#[derive(Clone, Default)]
pub(crate) struct Site {
    /// Instead of `https://api.stripe.com`.
    pub(crate) stripe: Option<String>,
    /// Instead of `https://pgw.2c2p.com/payment/4.3`.
    pub(crate) twoc2p: Option<String>,
    /// 2C2P's maintenance API, and the keys for it.
    pub(crate) maintenance: Option<(String, MaintenanceKeys)>,
}

impl Wired {
    /// A shop that has a Stripe account alone.
    pub(crate) fn stripe(url: impl Into<String>) -> Self {
        Self::new(Site {
            stripe: Some(url.into()),
            ..Site::default()
        })
    }

    /// A shop that has an account at 2C2P alone.
    pub(crate) fn twoc2p(url: impl Into<String>) -> Self {
        Self::new(Site {
            twoc2p: Some(url.into()),
            ..Site::default()
        })
    }

    /// A shop that has an account at this fake alone, and the keys for its maintenance API.
    pub(crate) fn maintained(fake: &FakeTwoC2p) -> Self {
        let keys = MaintenanceKeys::new(fake.merchant_private_key(), fake.gateway_certificate()).unwrap();
        Self::new(Site {
            twoc2p: Some(fake.base_url()),
            maintenance: Some((fake.maintenance_url(), keys)),
            ..Site::default()
        })
    }

    /// A shop at [`NOW`], with a journal in memory and three attempts a call.
    pub(crate) fn new(site: Site) -> Self {
        Self::on(site, Arc::new(MemoryJournal::new()), ManualClock::at(NOW), |builder| {
            builder
        })
    }

    /// The same shop with other settings, and nothing in its journal.
    pub(crate) fn with(&self, change: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = ManualClock::at(self.clock.now());
        Self::on(self.site.clone(), Arc::new(MemoryJournal::new()), clock, change)
    }

    /// The same shop with one attempt a call, and nothing in its journal.
    pub(crate) fn with_one_attempt(&self) -> Self {
        self.with(|builder| builder.policy(policy(1)))
    }

    /// Another process of this shop: the same journal and clock, other settings perhaps.
    pub(crate) fn another_process(&self, change: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = ManualClock::clone(&self.clock);
        Self::on(self.site.clone(), Arc::clone(&self.journal), clock, change)
    }

    pub(crate) fn on(
        site: Site,
        journal: Arc<dyn Journal>,
        clock: ManualClock,
        change: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let clock = Arc::new(clock);
        let shared = || Arc::clone(&clock) as Arc<dyn Clock>;
        let mut builder = Payments::builder()
            .namespace("shop1")
            .journal(Arc::clone(&journal))
            .clock(shared())
            .policy(policy(3))
            .inquiries(10_000, 10_000)
            .jitter_seed(1);
        if let Some(url) = &site.stripe {
            let stripe = Stripe::builder(STRIPE_KEY)
                .base_url(url)
                .webhook_secret("whsec_TESTONLYcases0000")
                .webhook_secret(WEBHOOK_SECRET);
            let stripe = stripe.transport(Arc::clone(&HTTP)).clock(shared()).build();
            builder = builder.gateway(Arc::new(stripe.unwrap()));
        }
        if let Some(url) = &site.twoc2p {
            let mut twoc2p = TwoC2p::builder(MERCHANT, MERCHANT_SECRET).base_url(url);
            if let Some((url, keys)) = &site.maintenance {
                twoc2p = twoc2p.maintenance_url(url).maintenance_keys(keys.clone());
                twoc2p = twoc2p.second_opinions(1_000, 1_000);
            }
            let twoc2p = twoc2p.transport(Arc::clone(&HTTP)).clock(shared()).build();
            builder = builder.gateway(Arc::new(twoc2p.unwrap()));
        }
        Self {
            payments: change(builder).build().unwrap(),
            journal,
            clock,
            site,
        }
    }

    /// Executes, within bounds.
    pub(crate) async fn pay(&self, operation: &Operation) -> Outcome {
        self.try_pay(operation).await.unwrap()
    }

    pub(crate) async fn try_pay(&self, operation: &Operation) -> Result<Outcome, Error> {
        bounded(self.payments.execute(operation)).await
    }

    /// Asks the gateway, within bounds.
    pub(crate) async fn resolve(&self, operation: &Operation) -> Outcome {
        bounded(self.payments.resolve(self.payments.key(operation)))
            .await
            .unwrap()
    }

    /// Asks about an operation that has been begun, and begins one that has not.
    pub(crate) async fn resolve_or_pay(&self, operation: &Operation) -> Outcome {
        match self.look_up(operation).await {
            Some(_) => self.resolve(operation).await,
            None => self.pay(operation).await,
        }
    }

    pub(crate) async fn look_up(&self, operation: &Operation) -> Option<Outcome> {
        self.payments.look_up(self.payments.key(operation)).await.unwrap()
    }

    pub(crate) async fn history(&self, operation: &Operation) -> Vec<HistoryLine> {
        self.payments.history(self.payments.key(operation)).await.unwrap()
    }

    pub(crate) fn key(&self, operation: &Operation) -> String {
        self.payments.key(operation).to_string()
    }
}

/// So many attempts, with time enough for each on a busy machine.
pub(crate) fn policy(attempts: u32) -> RetryPolicy {
    RetryPolicy {
        attempts,
        attempt_timeout: Duration::from_secs(5),
        ..RetryPolicy::default()
    }
}

/// So many attempts where some of them stall: each costs its whole time-out in real time.
pub(crate) fn impatient(attempts: u32) -> RetryPolicy {
    RetryPolicy {
        attempt_timeout: Duration::from_millis(400),
        ..policy(attempts)
    }
}

/// What a child says is told apart from what its test runner says by this.
const MARK: &str = "payonce-child:";

/// Runs a test of this binary in a process of its own, with more in its environment, and returns what it [says](say).
pub(crate) fn in_a_child(test: &str, environment: &[(&str, &str)]) -> Vec<String> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("PAYONCE_CHILD", "yes")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{test} in a child: {text}");
    let said = text.lines().filter_map(|line| line.split_once(MARK));
    said.map(|(_, said)| said.to_owned()).collect()
}

/// Is this process such a child?
pub(crate) fn is_child() -> bool {
    std::env::var_os("PAYONCE_CHILD").is_some()
}

/// Says something to the process that started this one.
#[allow(clippy::print_stdout, reason = "the other process reads it")]
pub(crate) fn say(line: &str) {
    println!("{MARK}{line}");
}

/// Every wait has an end.
pub(crate) async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("what the test waits for must come within 20 s")
}

/// Op A: 20.00 USD for order-7001, with a card that pays.
pub(crate) fn op_a() -> Operation {
    card_charge("order-7001")
}

/// 20.00 USD at Stripe, with a card that pays.
pub(crate) fn card_charge(reference: &str) -> Operation {
    Operation::charge(reference, usd("20.00"))
        .unwrap()
        .metadata("op", reference)
        .with(StripeOptions::payment_method("pm_card_visa"))
}

/// INV7001 over so many baht, on 2C2P's page.
pub(crate) fn invoice(amount: &str) -> Operation {
    Operation::charge("INV7001", thb(amount)).unwrap()
}

pub(crate) fn thb(text: &str) -> Money {
    Money::parse(text, Currency::THB).unwrap()
}

/// The key of op A in the namespace of all these tests.
pub(crate) const K1: &str = "402f04607e0a5d329f51fdc342460021";

/// PaymentIntent pi_1 as Stripe shows it, for op A.
pub(crate) fn pi_1(status: &str) -> String {
    format!(
        r#"{{"id":"pi_1","object":"payment_intent","amount":2000,"currency":"usd","status":"{status}","metadata":{{"op":"order-7001"}}}}"#
    )
}

/// A list, or the result of a search, with these objects in it.
pub(crate) fn listing(kind: &str, objects: &[&str]) -> String {
    format!(
        r#"{{"object":"{kind}","data":[{}],"has_more":false}}"#,
        objects.join(",")
    )
}

/// Lists and searches at this server find nothing.
pub(crate) fn finds_nothing(server: &ScriptedServer) {
    server
        .always("GET /v1/payment_intents", |_| Reply::new(200).json(EMPTY))
        .always("GET /v1/payment_intents/search", |_| {
            Reply::new(200).json(listing("search_result", &[]))
        });
}

/// Lists and searches at this server fail.
pub(crate) fn reads_fail(server: &ScriptedServer) {
    let down = |_: &LoggedRequest| Reply::new(503).json(r#"{"error":{"type":"api_error","message":"down"}}"#);
    server
        .always("GET /v1/payment_intents", down)
        .always("GET /v1/payment_intents/search", down);
}

/// The requests of one route, in their order.
pub(crate) fn of(requests: Vec<LoggedRequest>, route: &str) -> Vec<LoggedRequest> {
    requests.into_iter().filter(|request| request.is(route)).collect()
}

/// The claims of a request to 2C2P, as the JSON text that was signed.
pub(crate) fn claims(request: &LoggedRequest) -> String {
    let body = request.text();
    let payload = body.split('.').nth(1).unwrap();
    String::from_utf8(URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}

/// The steps of a history: from, to, sends so far.
pub(crate) fn steps(lines: &[HistoryLine]) -> Vec<(&str, &str, u32)> {
    lines.iter().map(|line| (&*line.from, &*line.to, line.sends)).collect()
}
