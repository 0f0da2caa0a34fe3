//! A shop takes payments on 2C2P's page: answers get lost, callbacks come late, and money is given back.
//!
//! `cargo run --example pay_with_2c2p` needs nothing else: 2C2P is a fake on loopback with TEST-ONLY keys, and a bank
//! behind it counts how often money really moved. The exit code is not zero if that is not what the story says.

#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use payonce::clock::Clock as _;
use payonce::gateway::RawNotification;
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p, read_browser_return};
use payonce::inbound::Intake;
use payonce::journal::sqlite::SqliteJournal;
use payonce::testing::server::FakeTwoC2p;
use payonce::testing::{Bank, Fault, FaultPlan, ManualClock};
use payonce::transport::{Http, Method, Request, Transport as _};
use payonce::{Currency, Money, Operation, OperationKind, Outcome, Payments, Target};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The secret that the fake shares with the shop.
const MERCHANT_SECRET: &str = "FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001FAKE0001";
const TOKEN: &str = "POST /payment/4.3/paymentToken";
const ACTION: &str = "POST /PaymentAction/2.0/action";
const MINUTE: Duration = Duration::from_secs(60);
/// After this a payment is settled: it cannot be voided any more, only refunded.
const DAY: Duration = Duration::from_secs(24 * 3600);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let folder = tempfile::tempdir()?;
    let shop = Shop::open(&folder.path().join("journal.sqlite"))?;
    shop.customer_pays().await?;
    shop.token_answer_is_lost().await?;
    shop.callback_is_late().await?;
    shop.void_before_settlement().await?;
    shop.refund_after_settlement().await?;
    shop.cancel_by_any_means().await?;
    shop.payments.shutdown().await;
    shop.judge()
}

/// The shop, 2C2P, the customer's browser, and the clock that they all go by.
struct Shop {
    payments: Payments,
    twoc2p: FakeTwoC2p,
    browser: Http,
    clock: ManualClock,
}

impl Shop {
    fn open(journal: &Path) -> Result<Self, Failure> {
        let clock = ManualClock::default();
        let twoc2p = FakeTwoC2p::start(Bank::new(), "TESTM01", MERCHANT_SECRET);
        twoc2p.set_clock(Arc::new(clock.clone()));
        // Charges need the secret alone; voids and refunds need RSA keys.
        let keys = MaintenanceKeys::new(twoc2p.merchant_private_key(), twoc2p.gateway_certificate())?;
        let account = TwoC2p::builder("TESTM01", MERCHANT_SECRET)
            .base_url(twoc2p.base_url())
            .maintenance_url(twoc2p.maintenance_url())
            .maintenance_keys(keys)
            .frontend_return_url("http://localhost/thanks")
            .clock(Arc::new(clock.clone()))
            .build()?;
        let payments = Payments::builder()
            .namespace("shop-th/test")
            .gateway(Arc::new(account))
            .journal(Arc::new(SqliteJournal::open(journal)?))
            .clock(Arc::new(clock.clone()))
            .build()?;
        Ok(Self {
            payments,
            twoc2p,
            browser: Http::new()?,
            clock,
        })
    }

    async fn customer_pays(&self) -> Result<(), Failure> {
        println!("a) ORDER1001: a customer pays on the page.");
        let order = order("ORDER1001")?;
        let outcome = self.payments.execute(&order).await?;
        self.say("the shop asks for a page", &outcome, "ORDER1001");
        let returned = self.pays_on(page(&outcome)?).await?;
        // The browser's words are not signed, and the same for good and bad: only a reason to ask.
        let claimed = read_browser_return(returned.as_bytes())?;
        println!(
            "   the browser returns, and claims {:?} for {}",
            claimed.code, claimed.invoice_no
        );
        let begun = self.payments.find_sent("2c2p", &claimed.invoice_no).await?;
        let begun = begun.ok_or("not an order of this shop")?;
        let outcome = self.payments.resolve(begun.key()).await?;
        self.say("the shop asks 2C2P", &outcome, "ORDER1001");
        Ok(())
    }

    async fn token_answer_is_lost(&self) -> Result<(), Failure> {
        println!("b) ORDER1002: the answer with the page is lost.");
        let first = order("ORDER1002")?;
        self.twoc2p
            .set_faults(FaultPlan::none().on(TOKEN, Fault::CloseAfterEffect));
        let outcome = self.payments.execute(&first).await?;
        // The retry was told 9015, Existing Invoice Number. No new invoice is made: an inquiry says how it stands.
        self.say("retried, told 9015, asked", &outcome, "ORDER1002");
        // Somebody could hold the page, so that a second one could be paid besides.
        let second = first.clone().attempt(2_u32.try_into()?);
        match self.payments.execute(&second).await {
            Err(refused) => println!("   another attempt at once is refused: {refused}"),
            Ok(outcome) => self.say("ANOTHER ATTEMPT BESIDE THE FIRST", &outcome, "ORDER1002"),
        }
        self.clock.advance(MINUTE * 31);
        let outcome = self.payments.resolve(self.payments.key(&first)).await?;
        self.say("half an hour later the page has closed", &outcome, "ORDER1002");
        let outcome = self.payments.execute(&second).await?;
        self.pays_on(page(&outcome)?).await?;
        let outcome = self.payments.resolve(self.payments.key(&second)).await?;
        self.say("the second attempt", &outcome, &self.payments.key(&second).to_string());
        Ok(())
    }

    async fn callback_is_late(&self) -> Result<(), Failure> {
        println!("   ORDER1003: a customer has paid, the callback is late, and pay is pressed again.");
        let order = order("ORDER1003")?;
        let outcome = self.payments.execute(&order).await?;
        self.pays_on(page(&outcome)?).await?;
        let outcome = self.payments.execute(&order).await?;
        self.say("the same operation again", &outcome, "ORDER1003");
        let callback = RawNotification::new(Vec::new(), self.twoc2p.callback("ORDER1003"), self.clock.now());
        if let Intake::Taken { outcome, recorded, .. } = self.payments.notify("2c2p", &callback).await? {
            self.say(&format!("the callback comes ({recorded:?})"), &outcome, "ORDER1003");
        }
        Ok(())
    }

    async fn void_before_settlement(&self) -> Result<(), Failure> {
        println!("c) ORDER1004: voided on the same day.");
        let void = Operation::void("cancel-1004", self.paid("ORDER1004").await?)?;
        self.say("the void", &self.payments.execute(&void).await?, "ORDER1004");
        Ok(())
    }

    async fn refund_after_settlement(&self) -> Result<(), Failure> {
        println!("d) ORDER1005: a part is given back after the settlement, and the answer is lost.");
        let payment = self.paid("ORDER1005").await?;
        self.clock.advance(DAY);
        let refund = Operation::refund("refund-1005", Money::parse("500.00", Currency::THB)?, payment)?;
        // The first request is the look at the payment, without which nothing is refunded; the second is the refund.
        let lost = FaultPlan::none().on(ACTION, None).on(ACTION, Fault::CloseAfterEffect);
        self.twoc2p.set_faults(lost);
        self.say("the refund", &self.payments.execute(&refund).await?, "ORDER1005");
        for line in self.payments.history(self.payments.key(&refund)).await? {
            println!(
                "      {:?}: {} -> {}, sends {}, {}",
                line.source, line.from, line.to, line.sends, line.note
            );
        }
        Ok(())
    }

    async fn cancel_by_any_means(&self) -> Result<(), Failure> {
        println!("e) ORDER1006: to be cancelled, and settled meanwhile.");
        let void = Operation::void("cancel-1006", self.paid("ORDER1006").await?)?;
        self.clock.advance(DAY);
        // The void comes too late; a refund follows, an operation with a key of its own.
        for what in ["cancelled", "cancelled again"] {
            self.say(what, &self.payments.cancel(&void).await?, "ORDER1006");
        }
        Ok(())
    }

    /// An order that has been paid on the page, as the target of what comes after it.
    async fn paid(&self, reference: &str) -> Result<Target, Failure> {
        let order = order(reference)?;
        let outcome = self.payments.execute(&order).await?;
        self.pays_on(page(&outcome)?).await?;
        let key = self.payments.key(&order);
        let outcome = self.payments.resolve(key).await?;
        self.say("the payment", &outcome, reference);
        Ok(Target::Operation(key))
    }

    /// The customer opens the page and pays. What the browser then posts to the shop's return page.
    async fn pays_on(&self, page: &str) -> Result<String, Failure> {
        self.browser.exchange(Request::new(Method::Get, page)).await?;
        let pay = Request::new(Method::Post, page).body("choice=pay");
        let answer = String::from_utf8(self.browser.exchange(pay).await?.body)?;
        let words = answer.split_once("name=\"paymentResponse\" value=\"");
        let words = words.and_then(|(_, rest)| rest.split_once('"'));
        let (words, _) = words.ok_or("the page does not lead back to the shop")?;
        Ok(format!("paymentResponse={words}"))
    }

    /// What is known, and beside it what the bank has counted for this invoice number or key.
    fn say(&self, what: &str, outcome: &Outcome, payment: &str) {
        let why = match outcome {
            Outcome::Failed(failed) => format!(" ({})", failed.category.as_str()),
            Outcome::Succeeded(_) | Outcome::Pending(_) | Outcome::Unknown(_) | Outcome::Conflict(_) => String::new(),
        };
        let bank = self.twoc2p.bank();
        let (charged, voided, refunded) = (bank.charged(payment), bank.voided(payment), bank.refunded(payment));
        println!(
            "   {what}: {}{why}; bank: {charged} charged, {voided} voided, {refunded} refunded",
            outcome.as_str()
        );
    }

    /// Charged, voided and refunded, in satang; and nothing moved that is not in the list.
    fn judge(&self) -> Result<ExitCode, Failure> {
        let bank = self.twoc2p.bank();
        let second = order("ORDER1002")?.attempt(2_u32.try_into()?);
        let second = self.payments.key(&second).to_string();
        let expected = [
            ("ORDER1001", [200_000, 0, 0]),
            ("ORDER1002", [0, 0, 0]),
            (second.as_str(), [200_000, 0, 0]),
            ("ORDER1003", [200_000, 0, 0]),
            ("ORDER1004", [200_000, 200_000, 0]),
            ("ORDER1005", [200_000, 0, 50_000]),
            ("ORDER1006", [200_000, 0, 200_000]),
        ];
        let kinds = [OperationKind::Charge, OperationKind::Void, OperationKind::Refund];
        let as_told = |(id, amounts): &(&str, [i64; 3])| kinds.map(|kind| bank.total(kind, id)) == *amounts;
        let agrees = expected.iter().all(as_told) && bank.movements().len() == 9 && bank.moved_twice().is_empty();
        println!("\n{bank:#?}\nThe bank {}.", if agrees { "agrees" } else { "DISAGREES" });
        Ok(if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// A reference of letters and digits is the invoice number as it stands.
fn order(reference: &str) -> Result<Operation, Failure> {
    Ok(Operation::charge(reference, Money::parse("2000.00", Currency::THB)?)?)
}

/// Where to send the customer's browser.
fn page(outcome: &Outcome) -> Result<&str, Failure> {
    let missing = || format!("there is no page: {}", outcome.as_str());
    Ok(outcome.redirect().ok_or_else(missing)?.expose())
}
