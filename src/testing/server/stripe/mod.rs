//! A Stripe that runs on this machine, in test mode, with a bank behind it.

mod amount;
mod cards;
mod endpoints;
mod form;
mod idempotency;
mod intents;
mod lists;
mod objects;
mod refunds;
mod refusal;
mod sessions;
mod webhooks;
mod world;

use super::http::{Hold, LoggedRequest, Server};
use crate::clock::Clock;
use crate::testing::{Bank, FaultPlan};
use endpoints::Account;
use objects::{Intent, Row};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use world::{Call, World};

/// The version that answers carry when the request names none.
const VERSION: &str = "2026-09-30.endive";

/// A fake of Stripe's API v1 on 127.0.0.1, written from its documentation and independent of this crate's adapter.
///
/// It keeps PaymentIntents, Charges, Refunds, Checkout Sessions and Events; checks keys, parameters and states;
/// stores and replays answers by idempotency key for 24 hours of its [clock](Self::set_clock); and tells its [`Bank`]
/// exactly when money would move. It takes any `sk_test_...` or `rk_test_...`.
///
/// Payment methods: `pm_card_visa` pays; `pm_card_chargeDeclined`, `pm_card_chargeDeclinedInsufficientFunds` and
/// the like are declined; `pm_card_authenticationRequired` waits for [`authenticate`](Self::authenticate),
/// `payment_method_data[type]=promptpay` too; `pm_card_processing` for
/// [`finish_processing`](Self::finish_processing).
///
/// The bank knows a movement by `metadata[payonce_reference]`, `metadata[payonce_key]` and the idempotency key.
///
/// A request that it has no endpoint for is answered 501 and listed by [`unexpected`](Self::unexpected).
pub struct FakeStripe {
    server: Server,
    account: Arc<Account>,
}

impl FakeStripe {
    /// Listens on a free port of 127.0.0.1 until it is dropped. It runs on the machine's clock.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or when no port can be had.
    #[must_use]
    #[track_caller]
    pub fn start(bank: Bank) -> Self {
        let account = Arc::new(Account::new(World::new(bank)));
        Self {
            server: Server::start(Arc::<Account>::clone(&account)),
            account,
        }
    }

    /// Scheme, host and port; what stands in the place of `https://api.stripe.com`.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.server.url()
    }

    /// The bank behind it.
    #[must_use]
    pub fn bank(&self) -> Bank {
        self.account.world().bank.clone()
    }

    /// All requests, in the order in which they were read.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.server.requests()
    }

    /// How many requests of this route there were. See [`Route`](super::Route).
    ///
    /// # Panics
    /// When the route is not in that form.
    #[must_use]
    #[track_caller]
    pub fn count(&self, route: &str) -> usize {
        self.requests().iter().filter(|request| request.is(route)).count()
    }

    /// The requests for which there is no endpoint here, as `METHOD /path?query`.
    #[must_use]
    pub fn unexpected(&self) -> Vec<String> {
        self.account.world().unexpected.clone()
    }

    /// From now on requests go wrong by this plan. All `POST`s can move money; `GET`s are inquiries.
    pub fn set_faults(&self, plan: FaultPlan) {
        self.server.set_faults(plan);
    }

    /// From now on requests of this route are received, hold their idempotency key, and wait to be executed.
    ///
    /// # Panics
    /// When the route is not in the form of [`Route`](super::Route).
    #[must_use]
    #[track_caller]
    pub fn hold(&self, route: &str) -> Hold {
        self.server.hold(route)
    }

    /// Closes the socket and every connection: from now on connections are refused.
    pub async fn stop_listening(&self) {
        self.server.stop_listening().await;
    }

    /// Listens again, on the same port.
    ///
    /// # Errors
    /// When another process has taken the port meanwhile.
    pub async fn listen_again(&self) -> io::Result<()> {
        self.server.listen_again().await
    }

    /// The clock by which keys, sessions and authorizations expire and objects are dated.
    pub fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.account.world().clock = clock;
    }

    /// How far the search index lags behind. None at first; Stripe names minutes, and an hour in bad times.
    pub fn set_search_lag(&self, lag: Duration) {
        self.account.world().settings.search_lag = lag;
    }

    /// How long it takes until an event is listed. None at first.
    pub fn set_event_lag(&self, lag: Duration) {
        self.account.world().settings.event_lag = lag;
    }

    /// The status that new refunds have: `succeeded` at first; `pending`, `requires_action` or `failed`.
    pub fn set_refund_status(&self, status: &str) {
        status.clone_into(&mut self.account.world().settings.refund_status);
    }

    /// Payers of Checkout Sessions pay as soon as the page is open, whether or not its address reached anyone.
    pub fn set_sessions_pay_at_once(&self, yes: bool) {
        self.account.world().settings.sessions_pay_at_once = yes;
    }

    /// The payer pays on the page of a Checkout Session. `false`, and nothing moves, when the page is closed.
    ///
    /// # Panics
    /// When there is no such session.
    #[track_caller]
    pub fn pay_session(&self, id: &str) -> bool {
        let mut world = self.account.world();
        let session = existing(world.sessions.get(id).cloned(), "session", id);
        sessions::pay(&mut world, session)
    }

    /// The payer passes 3-D Secure, or scans the code. `false`, and nothing moves, when the intent does not wait for
    /// that.
    ///
    /// # Panics
    /// When there is no such PaymentIntent.
    #[track_caller]
    pub fn authenticate(&self, intent: &str) -> bool {
        self.approve_from("requires_action", intent)
    }

    /// The payer fails 3-D Secure. `false` when the intent does not wait for that.
    ///
    /// # Panics
    /// When there is no such PaymentIntent.
    #[track_caller]
    pub fn fail_authentication(&self, intent: &str) -> bool {
        let code = "payment_intent_authentication_failure";
        self.decline_from("requires_action", intent, code)
    }

    /// The bank finishes a payment in `processing`, well. `false` when the intent is not in that state.
    ///
    /// # Panics
    /// When there is no such PaymentIntent.
    #[track_caller]
    pub fn finish_processing(&self, intent: &str) -> bool {
        self.approve_from("processing", intent)
    }

    /// The bank finishes a payment in `processing`, badly. `false` when the intent is not in that state.
    ///
    /// # Panics
    /// When there is no such PaymentIntent.
    #[track_caller]
    pub fn fail_processing(&self, intent: &str) -> bool {
        self.decline_from("processing", intent, "card_declined")
    }

    /// The payer's browser confirms the intent with a payment method, as Stripe's own library does: without an
    /// idempotency key. Returns the status after it.
    ///
    /// # Panics
    /// When there is no such PaymentIntent or payment method.
    #[track_caller]
    pub fn confirm_client_side(&self, intent: &str, method: &str) -> String {
        let mut world = self.account.world();
        let mut intent = self::intent(&world, intent);
        let method = existing(cards::by_name(method).ok(), "payment method", method);
        let waits = ["requires_payment_method", "requires_confirmation", "requires_action"];
        if waits.contains(&intent.status.as_str()) {
            let payer = Call::nobody(&intent.account);
            // A decline is in the intent's status too.
            let _ = intents::pay(&mut world, &mut intent, &method, &payer);
        }
        intent.status
    }

    /// A bank takes a refund to its next status, such as `succeeded` or `failed`; a succeeded one can still fail.
    ///
    /// # Panics
    /// When there is no such refund.
    #[track_caller]
    pub fn finish_refund(&self, id: &str, status: &str) {
        let mut world = self.account.world();
        let refund = existing(world.refunds.get(id).cloned(), "refund", id);
        let bank = Call::nobody(&refund.account);
        refunds::finish(&mut world, refund, status, &bank);
    }

    /// The status of a PaymentIntent, Refund or Checkout Session, without a request.
    ///
    /// # Panics
    /// When there is no such object.
    #[must_use]
    #[track_caller]
    pub fn status(&self, id: &str) -> String {
        let world = self.account.world();
        let intent = world.intents.get(id).map(|intent| intent.status.clone());
        let refund = || world.refunds.get(id).map(|refund| refund.status.clone());
        let session = || world.sessions.get(id).map(|session| session.status.clone());
        existing(intent.or_else(refund).or_else(session), "object", id)
    }

    /// The ids of all PaymentIntents, oldest first.
    #[must_use]
    pub fn payment_intents(&self) -> Vec<String> {
        self.account
            .world()
            .intents
            .all()
            .map(|intent| intent.id.clone())
            .collect()
    }

    /// The ids of all refunds, oldest first.
    #[must_use]
    pub fn refunds(&self) -> Vec<String> {
        self.account
            .world()
            .refunds
            .all()
            .map(|refund| refund.id.clone())
            .collect()
    }

    /// The ids of all Checkout Sessions, oldest first.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        self.account
            .world()
            .sessions
            .all()
            .map(|session| session.id.clone())
            .collect()
    }

    /// The ids of the events about an object, oldest first, with their types.
    #[must_use]
    pub fn events(&self, object: &str) -> Vec<(String, String)> {
        let world = self.account.world();
        let about = world.events.all().filter(|event| event.object["id"] == object);
        about.map(|event| (event.id.clone(), event.kind.clone())).collect()
    }

    /// A delivery of an event, signed with the endpoint's secret: headers and body. `id` is an event, or an object
    /// whose latest event is delivered. Each call signs anew, as each delivery attempt does.
    ///
    /// # Panics
    /// When there is no such event, or none about the object.
    #[must_use]
    #[track_caller]
    pub fn webhook(&self, id: &str, secret: &str) -> (Vec<(String, String)>, Vec<u8>) {
        let world = self.account.world();
        let latest = || world.events.all().rev().find(|event| event.object["id"] == id);
        let event = existing(world.events.get(id).or_else(latest), "event about", id);
        let body = event.json().to_string().into_bytes();
        let signature = webhooks::signature(&body, secret, world.now());
        let headers = vec![
            ("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned()),
            ("Stripe-Signature".to_owned(), signature),
        ];
        (headers, body)
    }

    #[track_caller]
    fn approve_from(&self, status: &str, id: &str) -> bool {
        let mut world = self.account.world();
        let mut intent = intent(&world, id);
        let waits = intent.status == status;
        if waits {
            let bank = Call::nobody(&intent.account);
            intents::approve(&mut world, &mut intent, &bank);
        }
        waits
    }

    #[track_caller]
    fn decline_from(&self, status: &str, id: &str, code: &str) -> bool {
        let mut world = self.account.world();
        let mut intent = intent(&world, id);
        let waits = intent.status == status;
        if waits {
            let bank = Call::nobody(&intent.account);
            intents::decline(&mut world, &mut intent, code, "generic_decline", &bank);
        }
        waits
    }
}

/// Without its objects, which hold client secrets, links to pages and metadata.
impl fmt::Debug for FakeStripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeStripe")
            .field("base_url", &self.base_url())
            .field("bank", &self.bank())
            .finish_non_exhaustive()
    }
}

#[track_caller]
fn intent(world: &World, id: &str) -> Intent {
    existing(world.intents.get(id).cloned(), "PaymentIntent", id)
}

/// A test that names what does not exist is wrong, and must hear so at that line.
#[track_caller]
#[allow(clippy::panic, reason = "see above")]
fn existing<T>(found: Option<T>, kind: &str, id: &str) -> T {
    match found {
        Some(found) => found,
        None => panic!("FakeStripe has no {kind} {id}"),
    }
}
