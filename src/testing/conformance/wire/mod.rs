//! The contract of a [`Gateway`] on a network that goes wrong, for gateways that send through a [`Transport`].

mod network;

use crate::clock::{Clock as _, SystemClock};
use crate::engine::Payments;
use crate::gateway::{Gateway, Inquiry, RawNotification};
use crate::journal::MemoryJournal;
use crate::money::Money;
use crate::operation::{Namespace, Operation, OperationKind};
use crate::outcome::Outcome;
use crate::record::{Instruction, Record};
use crate::retry::RetryPolicy;
use crate::testing::{Bank, reserved};
use crate::transport::Transport;
use network::{CANARIES, Mischief, Network};
use std::sync::Arc;
use std::time::Duration;

/// Makes the adapter over a network.
type Build = dyn Fn(Arc<dyn Transport>) -> Arc<dyn Gateway> + Send + Sync;

/// Makes a charge for a reference.
type Charge = dyn Fn(&str, Money) -> Operation + Send + Sync;

/// How many seeds of lost answers the engine is run with.
const SEEDS: u64 = 24;

/// A gateway whose network the suite holds in its hands.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// use payonce::gateway::stripe::{Stripe, StripeOptions};
/// use payonce::testing::{Bank, conformance::Wire, server::FakeStripe};
/// use payonce::transport::Http;
/// use payonce::{Currency, Money, Operation};
/// use std::sync::Arc;
///
/// let bank = Bank::new();
/// let fake = FakeStripe::start(bank.clone());
/// let url = fake.base_url();
/// Wire::new(
///     Arc::new(Http::new().unwrap()),
///     bank,
///     move |network| Arc::new(Stripe::builder("sk_test_1").base_url(&url).transport(network).build().unwrap()),
///     |reference, amount| {
///         let charge = Operation::charge(reference, amount).unwrap();
///         charge.with(StripeOptions::payment_method("pm_card_visa"))
///     },
/// )
/// .amounts([Money::from_minor(1999, Currency::USD)])
/// .check()
/// .await;
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Wire {
    network: Arc<dyn Transport>,
    bank: Bank,
    build: Box<Build>,
    charge: Box<Charge>,
    amounts: Vec<Money>,
    prefix: String,
    secrets: Vec<String>,
    notification: Option<RawNotification>,
    namespace: Namespace,
}

impl Wire {
    /// `network` reaches a gateway behind which `bank` counts; `build` makes the adapter over a network, as often as it
    /// is called; `charge` makes a charge that succeeds, at once or on the payer's page, one way or the other.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the namespace is a constant, and fits")]
    pub fn new(
        network: Arc<dyn Transport>,
        bank: Bank,
        build: impl Fn(Arc<dyn Transport>) -> Arc<dyn Gateway> + Send + Sync + 'static,
        charge: impl Fn(&str, Money) -> Operation + Send + Sync + 'static,
    ) -> Self {
        Self {
            network,
            bank,
            build: Box::new(build),
            charge: Box::new(charge),
            amounts: Vec::new(),
            prefix: "wire".to_owned(),
            secrets: Vec::new(),
            notification: None,
            namespace: Namespace::new("conformance/test").unwrap(),
        }
    }

    /// Amounts to charge. At least one is needed; give those of every number of decimals that the gateway takes.
    #[must_use]
    pub fn amounts(mut self, amounts: impl IntoIterator<Item = Money>) -> Self {
        self.amounts.extend(amounts);
        self
    }

    /// What references begin with, where the gateway behind keeps what an earlier run left. Letters and digits.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// A text that must never be printed: a key that the gateway was built with.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.secrets.push(secret.into());
        self
    }

    /// A notification that the gateway accepts. Every byte of its body is changed in turn, and must be noticed.
    #[must_use]
    pub fn notification(mut self, raw: RawNotification) -> Self {
        self.notification = Some(raw);
        self
    }

    /// Runs the suite.
    ///
    /// # Panics
    /// Where the contract is broken: that is how a test hears of it.
    pub async fn check(self) {
        assert!(!self.amounts.is_empty(), "the suite needs an amount");
        self.sends_the_same_bytes_from_every_process().await;
        self.takes_no_connection_for_proof_and_nothing_else().await;
        self.takes_what_it_cannot_read_for_nothing().await;
        self.follows_no_redirect().await;
        self.finds_a_lost_charge_by_what_was_sent().await;
        self.learns_nothing_from_an_inquiry_that_fails().await;
        self.moves_exact_amounts().await;
        self.notices_every_changed_byte();
        for seed in 0..SEEDS {
            self.takes_effect_once_whatever_is_lost(seed).await;
        }
    }

    fn over(&self, network: &Arc<Network>) -> Arc<dyn Gateway> {
        (self.build)(Arc::<Network>::clone(network) as _)
    }

    fn network(&self, mischief: Mischief) -> Arc<Network> {
        Network::new(Arc::clone(&self.network), mischief)
    }

    fn charge(&self, what: &str) -> Operation {
        (self.charge)(&format!("{}{what}", self.prefix), self.amounts[0])
    }

    fn reserve(&self, gateway: &dyn Gateway, operation: &Operation) -> (Record, Instruction) {
        reserved(gateway, &self.namespace, operation, SystemClock.now()).unwrap()
    }

    fn charged(&self, operation: &Operation) -> usize {
        self.bank.charged(&operation.key(&self.namespace).to_string())
    }

    #[track_caller]
    fn check_printed(&self, printed: &str) {
        for secret in self.secrets.iter().map(String::as_str).chain(CANARIES) {
            assert!(!printed.contains(secret), "printed: {printed}");
        }
    }

    async fn sends_the_same_bytes_from_every_process(&self) {
        let operation = self.charge("bytes");
        let mut sent = Vec::new();
        for _ in 0..2 {
            let network = self.network(Mischief::Unconnected);
            let gateway = self.over(&network);
            let (_, instruction) = self.reserve(gateway.as_ref(), &operation);
            for _ in 0..2 {
                let _ = gateway.send(&instruction).await;
            }
            sent.extend(network.sent());
        }
        assert!(sent.len() >= 4, "nothing was sent through the transport");
        assert!(
            sent.windows(2).all(|pair| pair[0] == pair[1]),
            "another process or a repeat sends other bytes"
        );
    }

    async fn takes_no_connection_for_proof_and_nothing_else(&self) {
        let operation = self.charge("unconnected");
        let network = self.network(Mischief::Unconnected);
        let gateway = self.over(&network);
        let (_, instruction) = self.reserve(gateway.as_ref(), &operation);
        let failure = gateway.send(&instruction).await.unwrap_err();
        assert!(!failure.may_have_executed(), "nothing was sent: {failure:?}");
        assert_eq!(self.charged(&operation), 0);
        for mischief in [Mischief::LostBefore, Mischief::LostAfter, Mischief::CutOff] {
            let operation = self.charge(&format!("lost{mischief:?}"));
            let gateway = self.over(&self.network(mischief));
            let (_, instruction) = self.reserve(gateway.as_ref(), &operation);
            let failure = gateway
                .send(&instruction)
                .await
                .expect_err("an outcome without an answer");
            assert!(failure.may_have_executed(), "{mischief:?} proves nothing: {failure:?}");
            self.check_printed(&format!("{failure:?} {failure}"));
        }
    }

    /// Answers in no form of the gateway's, before and after the effect.
    async fn takes_what_it_cannot_read_for_nothing(&self) {
        for (number, mischief) in Mischief::unreadable().into_iter().enumerate() {
            let operation = self.charge(&format!("unreadable{number}"));
            let gateway = self.over(&self.network(mischief));
            let (_, instruction) = self.reserve(gateway.as_ref(), &operation);
            match gateway.send(&instruction).await {
                Ok(outcome) => panic!("{mischief:?} became {outcome:?}"),
                Err(failure) => {
                    assert!(failure.may_have_executed(), "{mischief:?} proves nothing: {failure:?}");
                    self.check_printed(&format!("{failure:?} {failure}"));
                }
            }
        }
    }

    async fn follows_no_redirect(&self) {
        for status in [301, 302, 303, 307, 308] {
            let operation = self.charge(&format!("redirect{status}"));
            let network = self.network(Mischief::Redirect(status));
            let gateway = self.over(&network);
            let (_, instruction) = self.reserve(gateway.as_ref(), &operation);
            let failure = gateway.send(&instruction).await.expect_err("a redirect is no outcome");
            assert!(failure.may_have_executed(), "{status}: {failure:?}");
            assert_eq!(network.sent().len(), 1, "{status} was followed");
        }
    }

    /// By the record alone, which has no id of the gateway's, and by an adapter that has never seen the charge.
    async fn finds_a_lost_charge_by_what_was_sent(&self) {
        let operation = self.charge("found");
        let gateway = self.over(&self.network(Mischief::LostAfter));
        let (record, instruction) = self.reserve(gateway.as_ref(), &operation);
        assert!(gateway.send(&instruction).await.is_err());
        let fresh = self.over(&self.network(Mischief::None));
        match fresh.inquire(&record).await {
            Ok(Inquiry::Found(Outcome::Succeeded(succeeded))) => {
                assert_eq!(succeeded.amount, operation.amount());
                assert_eq!(self.charged(&operation), 1);
            }
            other => panic!("the charge was made and is not found: {other:?}"),
        }
    }

    async fn learns_nothing_from_an_inquiry_that_fails(&self) {
        let operation = self.charge("blind");
        let gateway = self.over(&self.network(Mischief::None));
        let (record, instruction) = self.reserve(gateway.as_ref(), &operation);
        let _ = gateway.send(&instruction).await;
        let failing = [Mischief::Unconnected, Mischief::LostBefore, Mischief::CutOff];
        for mischief in failing.into_iter().chain(Mischief::unreadable()) {
            let answer = self.over(&self.network(mischief)).inquire(&record).await;
            match answer {
                Err(failure) => self.check_printed(&format!("{failure:?} {failure}")),
                Ok(learned) => panic!("{mischief:?} taught {learned:?}"),
            }
        }
        assert_eq!(self.charged(&operation), 1, "an inquiry has an effect");
    }

    async fn moves_exact_amounts(&self) {
        for (number, amount) in self.amounts.iter().enumerate() {
            let operation = (self.charge)(&format!("{}amount{number}", self.prefix), *amount);
            let gateway = self.over(&self.network(Mischief::None));
            let (record, instruction) = self.reserve(gateway.as_ref(), &operation);
            let sent = gateway.send(&instruction).await;
            assert!(
                matches!(sent, Ok(Outcome::Succeeded(_) | Outcome::Pending(_))),
                "{amount}: {sent:?}"
            );
            let found = gateway.inquire(&record).await;
            let Ok(Inquiry::Found(Outcome::Succeeded(succeeded))) = found else {
                panic!("{amount}: {found:?}")
            };
            assert_eq!(succeeded.amount, Some(*amount));
            let key = operation.key(&self.namespace).to_string();
            assert_eq!(self.bank.total(OperationKind::Charge, &key), amount.minor(), "{amount}");
        }
    }

    fn notices_every_changed_byte(&self) {
        let gateway = self.over(&self.network(Mischief::Unconnected));
        let Some(raw) = &self.notification else { return };
        assert!(
            gateway.read_notification(raw).is_ok(),
            "the notification is not accepted as it is"
        );
        for at in 0..raw.body.len() {
            let mut changed = raw.clone();
            changed.body[at] ^= 0x01;
            assert!(
                gateway.read_notification(&changed).is_err(),
                "byte {at} was changed unnoticed"
            );
        }
    }

    /// All of it together, through the engine.
    async fn takes_effect_once_whatever_is_lost(&self, seed: u64) {
        let operation = self.charge(&format!("seed{seed}"));
        let network = self.network(Mischief::Seeded(seed));
        let payments = Payments::builder()
            .namespace("conformance/test")
            .gateway(self.over(&network))
            .journal(Arc::new(MemoryJournal::new()))
            .policy(RetryPolicy {
                base: Duration::ZERO,
                cap: Duration::ZERO,
                ..RetryPolicy::default()
            })
            .inquiries(1_000, 1_000)
            .jitter_seed(seed)
            .build()
            .unwrap();
        for _ in 0..3 {
            match payments.execute(&operation).await {
                // An error says that its own call has executed nothing, so that what there is was there before.
                Ok(_) | Err(_) => assert!(self.charged(&operation) <= 1, "seed {seed}: twice"),
            }
        }
        network.heal();
        let mut outcome = payments.execute(&operation).await.unwrap();
        for _ in 0..3 {
            if !outcome.is_settled() {
                outcome = payments.execute(&operation).await.unwrap();
            }
        }
        let charged = self.charged(&operation);
        assert!(charged <= 1, "seed {seed}: charged {charged} times");
        match &outcome {
            Outcome::Succeeded(_) => assert_eq!(charged, 1, "seed {seed}: {outcome:?}"),
            Outcome::Failed(_) => assert_eq!(charged, 0, "seed {seed}: {outcome:?}"),
            Outcome::Conflict(_) => panic!("seed {seed}: {outcome:?}"),
            Outcome::Pending(_) | Outcome::Unknown(_) => {}
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire")
            .field("amounts", &self.amounts)
            .finish_non_exhaustive()
    }
}
