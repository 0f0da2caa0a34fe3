//! What was set up, and what was wrong with it.

use super::watch::{API_KEY, BODY, CARD, CUSTOMER_TOKEN, METADATA, OTHER_CARD, TWOC2P_SECRET, WEBHOOK_SECRET, Watch};
use super::{Room, baht, order};
use payonce::gateway::Gateway;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::twoc2p::{Address, PayerInfo, TwoC2p, TwoC2pOptions};
use payonce::operation::{Namespace, Operation, OperationKind, Reference};
use payonce::reconcile::Reconciler;
use payonce::secret::Secret;
use payonce::testing::server::{FakeStripe, FakeTwoC2p, Reply, ScriptedServer};
use payonce::testing::{Bank, MockGateway};
use payonce::transport::{Http, Method, Request, Response, Transport};
use std::fmt::Debug;
use std::sync::Arc;

const PASSWORD: &str = "CANARYpassword0001";

fn watch() -> Watch {
    let mut watch = Watch::start();
    watch.canary("password", PASSWORD);
    watch.canary("payer", "CANARYpayer0001");
    watch
}

#[tokio::test]
async fn what_is_set_up_prints_no_secret() {
    let mut watch = watch();
    let http = Http::builder()
        .proxy(format!("http://shop:{PASSWORD}@proxy.example:3128"))
        .root_certificate(BODY);
    watch.show("settings of the transport", &http);
    let http = Http::builder().proxy(format!("http://shop:{PASSWORD}@proxy.example:3128"));
    watch.show("the transport", &http.build().unwrap());

    let address = format!("https://shop:{PASSWORD}@gateway.example/?key={API_KEY}");
    let stripe = Stripe::builder(API_KEY).webhook_secret(WEBHOOK_SECRET);
    watch.show("settings of Stripe", &stripe.clone().base_url(&address));
    watch.show("Stripe", &stripe.build().unwrap());
    let twoc2p = TwoC2p::builder("TESTM01", TWOC2P_SECRET);
    watch.show("settings of 2C2P", &twoc2p.clone().base_url(&address));
    watch.show("2C2P", &twoc2p.build().unwrap());

    let request = Request::new(Method::Post, format!("https://gateway.example/{OTHER_CARD}"))
        .header("Authorization", format!("Bearer {API_KEY}"))
        .body(BODY);
    watch.show("a request", &request);
    let headers = vec![("set-cookie".to_owned(), API_KEY.to_owned())];
    watch.show("a response", &Response::new(200, headers, BODY.into()));
    watch.show("a secret", &Secret::from(API_KEY));

    let payer = PayerInfo {
        name: Some("CANARYpayer0001".to_owned()),
        ..PayerInfo::default()
    };
    let home = Address {
        address1: Some("CANARYpayer0001".to_owned()),
        ..Address::default()
    };
    let options = TwoC2pOptions::new()
        .customer_token(CUSTOMER_TOKEN)
        .direct_payer("CANARYpayer0001", "CANARYpayer0001@example.com")
        .payer_info(payer.clone())
        .customer_address(Some(home.clone()), None);
    let other = TwoC2pOptions::new().secure_pay_token(CUSTOMER_TOKEN);
    let method = StripeOptions::payment_method(format!("pm_{BODY}"));
    let shown: [&dyn Debug; 5] = [&payer, &home, &options, &other, &method];
    for options in shown {
        watch.show("options", options);
    }
    let operation = order("order-1").description(BODY).with(options).with(method);
    watch.show("an operation", &operation);
    watch.judge(&[]);
}

#[tokio::test]
async fn fakes_print_no_secret() {
    let mut room = Room::new();
    let stripe = FakeStripe::start(Bank::new());
    let twoc2p = FakeTwoC2p::start(Bank::new(), "TESTM01", TWOC2P_SECRET);
    let server = ScriptedServer::start();
    server.reply("GET /", Reply::new(200).header("Authorization", API_KEY).body(BODY));
    let mock = MockGateway::new();
    mock.succeeds("order-1");
    let payments = room.payments(Arc::new(mock.clone()));
    room.pay(&payments, &order("order-1"), "succeeded").await;
    room.watch.show("mock", &mock);
    let hold = stripe.hold("POST /v1/refunds");
    let shown: [&dyn Debug; 7] = [&stripe, &twoc2p, &server, &mock, &mock.sends(), &mock.bank(), &hold];
    for fake in shown {
        room.watch.show("a fake", fake);
    }
    room.watch.show("a reconciler", &Reconciler::new(payments.clone()));
    room.watch.show("the journal", &room.journal);
    room.watch.judge(&["payonce.reserved"]);
}

/// What is wrong is named, and not repeated.
#[tokio::test]
async fn errors_of_the_set_up_repeat_no_value() {
    let mut watch = watch();
    for proxy in [
        format!("ht tp://shop:{PASSWORD}@proxy"),
        format!("ftp://shop:{PASSWORD}@"),
        PASSWORD.repeat(9) + " ",
    ] {
        if let Err(error) = Http::builder().proxy(proxy).build() {
            watch.error("a bad proxy", &error);
        }
    }
    let pem = format!("-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----");
    watch.error(
        "a bad certificate",
        &Http::builder().root_certificate(pem).build().unwrap_err(),
    );

    for address in [
        format!("https://shop:{PASSWORD}@gateway.example"),
        format!("https://gateway.example/?key={PASSWORD}"),
        format!("http://gateway.example/{PASSWORD}"),
        format!("{PASSWORD} {PASSWORD}"),
    ] {
        watch.error(
            "Stripe's address",
            &Stripe::builder(API_KEY).base_url(&address).build().unwrap_err(),
        );
        let error = TwoC2p::builder("TESTM01", TWOC2P_SECRET)
            .base_url(&address)
            .build()
            .unwrap_err();
        watch.error("2C2P's address", &error);
    }
    watch.error("Stripe's key", &Stripe::builder(WEBHOOK_SECRET).build().unwrap_err());
    let swapped = Stripe::builder(API_KEY).webhook_secret(API_KEY).build();
    watch.error("Stripe's secret", &swapped.unwrap_err());
    watch.error(
        "2C2P's merchant",
        &TwoC2p::builder(TWOC2P_SECRET, "").build().unwrap_err(),
    );
    watch.judge(&[]);
}

#[test]
fn a_refused_operation_repeats_no_value() {
    let mut watch = watch();
    let stripe = Stripe::builder(API_KEY).build().unwrap();
    let twoc2p = TwoC2p::builder("TESTM01", TWOC2P_SECRET).build().unwrap();
    let long = METADATA.repeat(40);
    let stripe_refuses = [
        order("a").with(StripeOptions::payment_method(CARD)),
        order("a").with(StripeOptions::payment_method("pm_1").customer(CARD)),
        order("a").with(StripeOptions::payment_method("pm_1").return_url(BODY)),
        order("a").with(StripeOptions::hosted_page(BODY)),
        order("a").metadata("note", &long),
        order("a").metadata(&long, "value"),
        order("a").description(BODY.repeat(100)),
    ];
    let twoc2p_refuses = [
        order("a").metadata("note", &long),
        order("a").description(BODY.repeat(100)),
        order("a").with(TwoC2pOptions::new().customer_token(CUSTOMER_TOKEN.repeat(9))),
        order("a").with(
            TwoC2pOptions::new()
                .customer_token(CUSTOMER_TOKEN)
                .secure_pay_token(CUSTOMER_TOKEN),
        ),
        order("a").with(
            TwoC2pOptions::new()
                .customer_token(CUSTOMER_TOKEN)
                .direct_payer("CANARYpayer0001".repeat(9), "x"),
        ),
    ];
    let key = order("a").key(&Namespace::new("shop/test").unwrap());
    let gateways: [(&dyn Gateway, &[Operation]); 2] = [(&stripe, &stripe_refuses), (&twoc2p, &twoc2p_refuses)];
    for (gateway, operations) in gateways {
        for operation in operations {
            let refusal = gateway.prepare(key, operation).unwrap_err();
            watch.show("a refusal", &refusal);
        }
    }
    for text in [
        format!("{METADATA}@example.com"),
        format!(" {METADATA}"),
        format!("{METADATA}\n"),
        METADATA.repeat(20),
    ] {
        watch.error("a reference", &Reference::new(text).unwrap_err());
    }
    watch.error("a namespace", &Namespace::new(METADATA.repeat(100)).unwrap_err());
    watch.error(
        "an amount",
        &Operation::charge("a", payonce::money::Money::from_minor(-1, baht("1").currency())).unwrap_err(),
    );
    watch.show("a kind", &OperationKind::parse(METADATA));
    watch.judge(&[]);
}

/// The proxy's password goes to the proxy, and nowhere else when that cannot be reached.
#[tokio::test]
async fn a_proxy_that_cannot_be_reached_is_not_named_with_its_password() {
    let mut room = Room::new();
    room.watch.canary("password", PASSWORD);
    let server = ScriptedServer::start();
    let (url, proxy) = (
        server.url(),
        server.url().replace("http://", &format!("http://shop:{PASSWORD}@")),
    );
    server.stop_listening().await;
    let http = Http::builder().proxy(proxy).build().unwrap();
    room.watch.show("the transport", &http);
    let direct = http.exchange(Request::new(Method::Get, &url)).await.unwrap_err();
    room.watch.error("a failure", &direct);
    let stripe = Stripe::builder(API_KEY)
        .base_url(&url)
        .transport(Arc::new(http))
        .clock(room.clock());
    let stripe = stripe.build().unwrap();
    room.watch.show("Stripe", &stripe);
    let payments = room.payments(Arc::new(stripe));
    room.pay(&payments, &order("order-1"), "error").await;
    assert_eq!(payments.unresolved(10).await.unwrap().len(), 0);
    room.watch.judge(&["payonce.attempt_failed"]);
}
