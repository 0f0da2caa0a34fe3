//! Cases C45 to C50: the digits that leave for each gateway, and those that never do.

use crate::wired::{
    INTENTS, MERCHANT, MERCHANT_SECRET, Site, TOKEN, Wired, claims, in_a_child, is_child, of, op_a, say,
};
use payonce::gateway::stripe::StripeOptions;
use payonce::money::{Currency, Money};
use payonce::operation::Operation;
use payonce::outcome::{FailureCategory, Outcome};
use payonce::testing::Bank;
use payonce::testing::server::{FakeStripe, FakeTwoC2p, Reply, ScriptedServer};

fn money(amount: &str, code: &str) -> Money {
    Money::parse(amount, Currency::parse(code).unwrap()).unwrap()
}

fn charge(amount: Money) -> Operation {
    Operation::charge("INV7001", amount).unwrap()
}

/// The fakes of both gateways, one bank behind them, and a shop that has forgotten everything.
struct Counter {
    stripe: FakeStripe,
    twoc2p: FakeTwoC2p,
    shop: Wired,
}

impl Counter {
    fn new() -> Self {
        let bank = Bank::new();
        let stripe = FakeStripe::start(bank.clone());
        let twoc2p = FakeTwoC2p::start(bank, MERCHANT, MERCHANT_SECRET);
        let shop = Wired::new(Site {
            stripe: Some(stripe.base_url()),
            twoc2p: Some(twoc2p.base_url()),
            ..Site::default()
        });
        stripe.set_clock(std::sync::Arc::clone(&shop.clock) as _);
        twoc2p.set_clock(std::sync::Arc::clone(&shop.clock) as _);
        Self { stripe, twoc2p, shop }
    }

    /// The amount in the body that Stripe's fake read, and what came of it.
    async fn at_stripe(&self, amount: Money) -> (String, Outcome) {
        let card = StripeOptions::payment_method("pm_card_visa");
        let outcome = self.shop.pay(&charge(amount).with(card)).await;
        let post = of(self.stripe.requests(), INTENTS).pop().unwrap();
        let mut fields = url::form_urlencoded::parse(&post.body);
        let (_, units) = fields.find(|(name, _)| name == "amount").unwrap();
        (units.into_owned(), outcome)
    }

    /// The amount in the claims that 2C2P's fake read, as the JSON text that it is, and what it reports once paid.
    async fn at_twoc2p(&self, amount: Money) -> (String, Outcome) {
        let order = charge(amount).through("2c2p");
        let _page = self.shop.pay(&order).await;
        assert!(self.twoc2p.pay("INV7001"));
        let claims = claims(&of(self.twoc2p.requests(), TOKEN).pop().unwrap());
        let (_, rest) = claims.split_once(r#""amount":"#).unwrap();
        let end = rest.find([',', '}']).unwrap();
        (rest[..end].to_owned(), self.shop.resolve(&order).await)
    }

    /// Nothing has left, and nothing was written down.
    async fn is_untouched(&self) {
        assert!(self.stripe.requests().is_empty() && self.twoc2p.requests().is_empty());
        assert!(self.shop.payments.unresolved(10).await.unwrap().is_empty());
        for gateway in ["stripe", "2c2p"] {
            let key = charge(money("1.00", "USD")).through(gateway);
            assert!(self.shop.look_up(&key).await.is_none());
        }
    }
}

#[track_caller]
fn succeeded(outcome: &Outcome) -> Money {
    let Outcome::Succeeded(succeeded) = outcome else {
        panic!("{outcome:?}")
    };
    succeeded.amount.unwrap()
}

#[tokio::test]
async fn c45_whole_currencies_leave_whole_and_come_back_whole() {
    for (amount, code) in [
        ("500", "JPY"),
        ("2000", "KRW"),
        ("150000", "VND"),
        ("7", "CLP"),
        ("10000", "XAF"),
    ] {
        let (units, outcome) = Counter::new().at_stripe(money(amount, code)).await;
        assert_eq!(units, amount, "{code}");
        assert_eq!(succeeded(&outcome), money(amount, code));
    }
    for (amount, code) in [("500", "JPY"), ("150000", "VND")] {
        let (decimal, outcome) = Counter::new().at_twoc2p(money(amount, code)).await;
        assert_eq!(decimal, amount, "{code}");
        assert_eq!(succeeded(&outcome), money(amount, code));
    }
}

#[tokio::test]
async fn c46_dinars_leave_in_thousandths_and_a_last_digit_never_silently() {
    for (amount, expected) in [("35.200", "35200"), ("18.600", "18600"), ("92.000", "92000")] {
        let (units, outcome) = Counter::new().at_stripe(money(amount, "KWD")).await;
        assert_eq!(units, expected);
        assert_eq!(succeeded(&outcome), money(amount, "KWD"));
    }
    let counter = Counter::new();
    for (amount, code) in [("5.124", "KWD"), ("0.001", "BHD")] {
        let error = counter.shop.try_pay(&charge(money(amount, code))).await.unwrap_err();
        assert_eq!(error.invalid_field(), Some("amount"), "{error}");
        counter.is_untouched().await;
    }
    let (decimal, outcome) = Counter::new().at_twoc2p(money("5.124", "KWD")).await;
    assert_eq!(decimal, "5.124");
    assert_eq!(succeeded(&outcome), money("5.124", "KWD"));
}

#[tokio::test]
async fn c47_no_cent_is_lost_on_the_way() {
    for (amount, cents) in [
        ("19.99", "1999"),
        ("79.99", "7999"),
        ("9.95", "995"),
        ("67.96", "6796"),
        ("1.15", "115"),
        ("4.35", "435"),
        ("0.07", "7"),
        ("8.41", "841"),
        ("1022.87", "102287"),
        ("4611686018427387.90", "461168601842738790"),
    ] {
        let (units, outcome) = Counter::new().at_stripe(money(amount, "USD")).await;
        assert_eq!(units, cents, "{amount}");
        if let Outcome::Failed(failed) = &outcome {
            // Less than Stripe takes, or more.
            assert_eq!(failed.category, FailureCategory::Invalid);
            assert!(["0.07", "4611686018427387.90"].contains(&amount));
        } else {
            assert_eq!(succeeded(&outcome), money(amount, "USD"));
        }
        let counter = Counter::new();
        if amount.len() > 15 {
            let order = charge(money(amount, "USD")).through("2c2p");
            let error = counter.shop.try_pay(&order).await.unwrap_err();
            assert_eq!(error.invalid_field(), Some("amount"));
            counter.is_untouched().await;
        } else {
            let (decimal, outcome) = counter.at_twoc2p(money(amount, "USD")).await;
            assert_eq!(decimal, amount);
            assert_eq!(succeeded(&outcome), money(amount, "USD"));
        }
    }
}

/// The digits of case C49 as they leave.
async fn digits() -> String {
    let mut all = Vec::new();
    for amount in ["10038.00", "999999.99"] {
        all.push(Counter::new().at_stripe(money(amount, "USD")).await.0);
    }
    for amount in ["1234.5", "1234567.00", "25"] {
        all.push(Counter::new().at_twoc2p(money(amount, "THB")).await.0);
    }
    all.join(" ")
}

#[tokio::test]
async fn c49_digits_and_one_point_in_every_locale() {
    let expected = "1003800 99999999 1234.50 1234567.00 25.00";
    assert_eq!(digits().await, expected);
    let test = "cases::wire_amounts::child_that_says_the_digits_it_sends";
    let german = [("LC_ALL", "de_DE.UTF-8"), ("LANG", "de_DE.UTF-8")];
    assert_eq!(in_a_child(test, &german), [expected]);
}

/// In a child, which has its locale from its environment.
#[tokio::test]
async fn child_that_says_the_digits_it_sends() {
    if is_child() {
        say(&digits().await);
    }
}

#[tokio::test]
async fn c50_what_no_gateway_can_take_leaves_no_trace() {
    let counter = Counter::new();
    let minor = |minor, code| Money::from_minor(minor, Currency::parse(code).unwrap());
    for (gateway, amount) in [
        ("stripe", minor(i64::MAX, "ISK")),
        ("2c2p", money("9999999999999.00", "THB")),
        ("2c2p", minor(i64::MAX, "THB")),
        ("2c2p", minor(i64::MAX, "JPY")),
    ] {
        let error = counter
            .shop
            .try_pay(&charge(amount).through(gateway))
            .await
            .unwrap_err();
        assert_eq!(error.invalid_field(), Some("amount"), "{amount}: {error}");
        counter.is_untouched().await;
    }
    for amount in ["0.00", "-1.00", "-5.00"] {
        assert!(Operation::charge("INV7001", money(amount, "USD")).is_err());
    }
    assert!(Money::parse("1.123456", Currency::THB).is_err());
}

#[tokio::test]
async fn c50_what_a_gateway_may_refuse_leaves_exactly_and_is_refused_once() {
    for (amount, units) in [
        (money("0.49", "USD"), "49"),
        (money("999999999.99", "USD"), "99999999999"),
        (Money::from_minor(i64::MAX, Currency::USD), "9223372036854775807"),
    ] {
        let counter = Counter::new();
        for _ in 0..2 {
            let (sent, outcome) = counter.at_stripe(amount).await;
            assert_eq!(sent, units);
            let Outcome::Failed(failed) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(failed.category, FailureCategory::Invalid);
        }
        assert_eq!(counter.stripe.requests().len(), 1, "neither repeated nor asked about");
        assert!(counter.stripe.bank().movements().is_empty());
    }
}

#[tokio::test]
async fn c50_too_small_is_definitive() {
    let server = ScriptedServer::start();
    let refusal = r#"{"error":{"type":"invalid_request_error","code":"amount_too_small"}}"#;
    server.reply(INTENTS, Reply::new(400).json(refusal));
    let shop = Wired::stripe(server.url());
    for _ in 0..2 {
        let Outcome::Failed(failed) = shop.pay(&op_a()).await else {
            panic!("not failed")
        };
        assert_eq!(failed.category, FailureCategory::Invalid);
        assert_eq!(failed.evidence.code.as_deref(), Some("amount_too_small"));
    }
    assert_eq!(server.requests().len(), 1);
}
