//! A back office gives money back at 2C2P for a payment that another system has taken: all that it knows of it is the
//! invoice number.
//!
//! `cargo run --example refund` needs nothing else: 2C2P is a fake on loopback with TEST-ONLY keys, and a bank behind
//! it counts what was really given back. The exit code is not zero if that is not what was meant.

#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use payonce::clock::Clock as _;
use payonce::gateway::RawNotification;
use payonce::gateway::twoc2p::TwoC2p;
use payonce::inbound::Intake;
use payonce::journal::MemoryJournal;
use payonce::journal::sqlite::SqliteJournal;
use payonce::operation::GatewayRef;
use payonce::testing::server::FakeTwoC2p;
use payonce::testing::{Bank, ManualClock};
use payonce::{Currency, Money, Operation, OperationKind, Outcome, Payments, Target};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

/// The secret that the fake shares with the merchant.
const MERCHANT_SECRET: &str = "FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001";
const INVOICE: &str = "INV7001";

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let bank = Bank::new();
    let twoc2p = FakeTwoC2p::start(bank.clone(), "TESTM01", MERCHANT_SECRET);
    paid_elsewhere(&twoc2p).await?;
    println!("{INVOICE}: 100.00 THB, paid at another system's till and settled\n");

    let folder = tempfile::tempdir()?;
    let clock = ManualClock::default();
    twoc2p.set_clock(Arc::new(clock.clone()));
    let account = Arc::new(account(&twoc2p, &clock)?);
    let payments = Payments::builder()
        .namespace("back-office/test")
        .gateway(Arc::<TwoC2p>::clone(&account))
        .journal(Arc::new(SqliteJournal::open(folder.path().join("journal.sqlite"))?))
        .clock(Arc::new(clock.clone()))
        .build()?;
    let say = |what: &str, outcome: &Outcome| println!("{what}: {}; {}", words(outcome), given_back(&bank));

    // The refund's number is the back office's own. Whoever calls again with it gets the same refund.
    let part = refund("refund-1", "25.00")?;
    say("refund-1, 25.00", &payments.execute(&part).await?);
    say("refund-1 again", &payments.execute(&part).await?);

    // Another number is another refund. More than is left is refused, and never reduced to what would fit.
    let too_much = refund("refund-2", "80.00")?;
    say("refund-2, 80.00", &payments.execute(&too_much).await?);

    // Some channels take days. The refund is pending until 2C2P posts its notice to `refund_notify_url`.
    twoc2p.set_refunds_asynchronous(true);
    let slow = refund("refund-3", "30.00")?;
    say("refund-3, 30.00", &payments.execute(&slow).await?);
    say("asked about it", &payments.resolve(payments.key(&slow)).await?);
    let id = twoc2p.refunds(INVOICE).pop().ok_or("2C2P has no such refund")?;
    twoc2p.confirm_refund(&id).await;
    // The web layer hands over the body as it came. 2C2P may post it twice: the second time changes nothing.
    for delivery in ["its notice", "the notice again"] {
        let notice = RawNotification::new(Vec::new(), twoc2p.refund_notice(&id), clock.now());
        let Intake::Taken { outcome, recorded, .. } = payments.notify("2c2p", &notice).await? else {
            return Err("the notice is about no refund of ours".into());
        };
        say(&format!("{delivery} ({recorded:?})"), &outcome);
    }

    println!("\nWhat 2C2P lists:");
    let list = account.refund_status(INVOICE, Some(thb("100.00")?)).await?;
    for row in &list.refunds {
        let amount = row.amount(Currency::THB).map(|amount| amount.to_string());
        println!("   {:?} {amount:?} {:?}", row.reference_no, row.status);
    }
    payments.shutdown().await;

    // Two refunds, 25.00 and 30.00: neither twice, and nothing of the 80.00.
    let agrees = bank.refunded(INVOICE) == 2
        && bank.total(OperationKind::Refund, INVOICE) == thb("55.00")?.minor()
        && bank.moved_twice().is_empty()
        && list.refunds.len() == 2;
    println!("\n{bank:#?}\nThe bank {}.", if agrees { "agrees" } else { "DISAGREES" });
    Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A part of the payment, which is known by its invoice number alone.
fn refund(reference: &str, amount: &str) -> Result<Operation, Failure> {
    let payment = Target::Gateway(GatewayRef::new(INVOICE));
    Ok(Operation::refund(reference, thb(amount)?, payment)?)
}

/// The merchant's account at the fake, with the keys that voids and refunds need; `pay_with_2c2p` sets one up in full.
fn account(twoc2p: &FakeTwoC2p, clock: &ManualClock) -> Result<TwoC2p, Failure> {
    Ok(twoc2p.account().clock(Arc::new(clock.clone())).build()?)
}

/// Another system of the merchant, with a journal that the back office never sees.
async fn paid_elsewhere(twoc2p: &FakeTwoC2p) -> Result<(), Failure> {
    let till = TwoC2p::builder("TESTM01", MERCHANT_SECRET).base_url(twoc2p.base_url());
    let till = Payments::builder()
        .namespace("till/test")
        .gateway(Arc::new(till.build()?))
        .journal(Arc::new(MemoryJournal::new()))
        .build()?;
    let _page = till.execute(&Operation::charge(INVOICE, thb("100.00")?)?).await?;
    if twoc2p.pay(INVOICE) && twoc2p.settle(INVOICE) {
        Ok(())
    } else {
        Err("the till was not paid".into())
    }
}

fn words(outcome: &Outcome) -> String {
    let Outcome::Failed(failed) = outcome else {
        return outcome.as_str().to_owned();
    };
    let before = failed.evidence.details.get("amount_refunded").unwrap_or("nothing");
    format!("failed ({}), {before} was given back before", failed.category.as_str())
}

fn given_back(bank: &Bank) -> String {
    let total = Money::from_minor(bank.total(OperationKind::Refund, INVOICE), Currency::THB);
    format!("the bank has given back {total}, in {} refunds", bank.refunded(INVOICE))
}

fn thb(text: &str) -> Result<Money, Failure> {
    Ok(Money::parse(text, Currency::THB)?)
}
