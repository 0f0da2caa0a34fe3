//! Cases C45 to C50: amounts.

use payonce::clock::Timestamp;
use payonce::gateway::stripe::{Stripe, StripeOptions};
use payonce::gateway::{Gateway, RawNotification, Refusal};
use payonce::money::{Currency, Money, MoneyError, Rounding};
use payonce::operation::{GatewayRef, Namespace, Operation, Target};
use payonce::outcome::Outcome;

fn money(amount: &str, code: &str) -> Money {
    Money::parse(amount, Currency::parse(code).unwrap()).unwrap()
}

fn usd(amount: &str) -> Money {
    money(amount, "USD")
}

fn stripe() -> Stripe {
    let builder = Stripe::builder("sk_test_TESTONLYcases0001");
    builder.webhook_secret(crate::gateway_stripe::SECRET).build().unwrap()
}

/// The field that Stripe's adapter refuses before anything is sent.
fn refused(operation: &Operation) -> Option<&'static str> {
    let key = operation.key(&Namespace::new("shop1").unwrap());
    match stripe().prepare(key, operation) {
        Ok(_) => None,
        Err(Refusal::Invalid(invalid)) => Some(invalid.field()),
        Err(other) => panic!("{other:?}"),
    }
}

/// What a signed notification about a paid amount says.
fn told(amount: &str, code: &str) -> Outcome {
    let body = format!(
        r#"{{"id":"evt_1","object":"event","type":"payment_intent.succeeded","livemode":false,"data":{{"object":
        {{"id":"pi_1","object":"payment_intent","status":"succeeded","amount":{amount},"currency":"{code}"}}}}}}"#
    );
    let at = Timestamp::from_unix_seconds(1_767_225_600);
    let header = crate::gateway_stripe::sign(body.as_bytes(), 1_767_225_600);
    let raw = RawNotification::new(vec![("Stripe-Signature".to_owned(), header)], body.into_bytes(), at);
    stripe().read_notification(&raw).unwrap().says.unwrap()
}

#[track_caller]
fn succeeded(outcome: &Outcome) -> Money {
    let Outcome::Succeeded(succeeded) = outcome else {
        panic!("{outcome:?}")
    };
    succeeded.amount.unwrap()
}

#[test]
fn c45_yen_come_in_as_yen() {
    assert_eq!(succeeded(&told("500", "jpy")), money("500", "JPY"));
    assert_eq!(succeeded(&told("2000", "usd")), usd("20.00"));
    assert_eq!(succeeded(&told("500", "isk")), money("5", "ISK"));
    // What the currency cannot hold is a disagreement, and no success.
    assert_eq!(told("550", "isk").as_str(), "conflict");
}

#[test]
fn c46_three_decimals_at_stripe_end_in_zero() {
    let charge = |amount, code| Operation::charge("order-7001", money(amount, code)).unwrap();
    assert_eq!(refused(&charge("35.200", "KWD")), None);
    assert_eq!(refused(&charge("18.600", "KWD")), None);
    assert_eq!(refused(&charge("5.124", "KWD")), Some("amount"));
    assert_eq!(refused(&charge("0.001", "BHD")), Some("amount"));
    assert_eq!(succeeded(&told("92000", "kwd")), money("92.000", "KWD"));
}

#[test]
fn c47_no_cent_is_lost() {
    for (text, minor) in [
        ("19.99", 1999),
        ("79.99", 7999),
        ("9.95", 995),
        ("67.96", 6796),
        ("1.15", 115),
        ("4.35", 435),
        ("0.07", 7),
        ("8.41", 841),
        ("1022.87", 102_287),
        ("46116860184273879.00", 4_611_686_018_427_387_900),
        ("4611686018427387.90", 461_168_601_842_738_790),
    ] {
        assert_eq!(usd(text).minor(), minor, "{text}");
        assert_eq!(usd(text).to_decimal(), text);
    }
}

#[test]
fn c48_nothing_is_rounded_without_being_asked() {
    assert_eq!(usd("5.1").minor(), 510);
    assert_eq!(usd("78.4").minor(), 7840);
    assert_eq!(usd("0.1").checked_add(usd("0.2")).unwrap().minor(), 30);
    assert_eq!(Money::parse("8.928", Currency::USD), Err(MoneyError::TooManyDecimals));
    let discount = Money::parse_rounded("8.928", Currency::USD, Rounding::HalfUp).unwrap();
    let rest = usd("89.28").checked_sub(discount).unwrap();
    assert_eq!(rest.checked_add(usd("11.40")).unwrap().minor(), 9175);
    assert_eq!(
        Money::parse("509.99999999999994", Currency::USD),
        Err(MoneyError::TooManyDecimals)
    );
    assert!(
        "509.99999999999994".parse::<i64>().is_err(),
        "and minor units are whole numbers by type"
    );
}

#[test]
fn c50_zero_and_negative_amounts_are_refused_and_so_is_what_overflows() {
    let target = || Target::Gateway(GatewayRef::new("pi_1"));
    for amount in ["0.00", "-1.00", "-5.00"] {
        for refused in [
            Operation::charge("order-7001", usd(amount)),
            Operation::authorize("order-7001", usd(amount)),
            Operation::capture("order-7001", usd(amount), target()),
            Operation::refund("r-1", usd(amount), target()),
        ] {
            assert_eq!(refused.unwrap_err().field(), "amount");
        }
    }
    let charge =
        |minor, code| Operation::charge("order-7001", Money::from_minor(minor, Currency::parse(code).unwrap()));
    // Too small and too large for Stripe's own rules: sent exactly, and its answer is definitive.
    assert_eq!(refused(&charge(49, "USD").unwrap()), None);
    assert_eq!(refused(&charge(99_999_999_999, "USD").unwrap()), None);
    assert_eq!(refused(&charge(i64::MAX, "USD").unwrap()), None);
    // Króna are sent times 100, which this no longer fits.
    assert_eq!(refused(&charge(i64::MAX, "ISK").unwrap()), Some("amount"));
    let page = StripeOptions::hosted_page("https://shop.example/ok");
    assert_eq!(refused(&charge(i64::MAX, "ISK").unwrap().with(page)), Some("amount"));
}
