//! A 2C2P that runs on this machine, with a bank behind it.

mod callbacks;
mod endpoints;
mod envelope;
mod invoices;
mod jwt;
mod maintenance;
mod page;
mod process;
mod recurring;
mod refunds;
mod settlement;
mod stored_cards;
mod xml;

pub use recurring::RecurringPlan;
pub use refunds::RefundRows;

use super::http::{Hold, LoggedRequest, Server};
use crate::clock::Clock;
use crate::secret::Secret;
use crate::testing::{Bank, FaultPlan};
use endpoints::Merchant;
use invoices::{Books, State};
use std::fmt;
use std::io;
use std::sync::Arc;

/// The name under which the bank knows this gateway.
const GATEWAY: &str = "2c2p";

/// A fake of 2C2P on 127.0.0.1, written from its documentation and independent of this crate's adapter: nothing is
/// shared, not even an envelope. For one merchant it has
///
/// * the Payment API 4.3: `paymentToken`, `payment` (Do Payment) and `paymentInquiry`, signed with HS256 and the
///   secret's *text*;
/// * the [hosted page](Self::page_url), which a browser or a test can open, and the
///   [backend notifications](Self::set_callbacks) about what happens on it;
/// * the [maintenance API](Self::maintenance_url): `PaymentProcessRequest` 4.3 (I, V, S, R and RS), plans of recurring
///   payments (`RecurringMaintenanceRequest` 2.4), and [stored cards](Self::customer_token_url), in the envelope of JWS
///   (PS256) around JWE (RSA-OAEP, A256GCM) with TEST-ONLY keys.
///
/// It takes each invoice number once, lets tokens expire and payments settle by its [clock](Self::set_clock), and
/// tells its [`Bank`] exactly when money would move: never for a token, only when the payer pays on the page or Do
/// Payment is approved, when a settlement or void is accepted, and when a refund is made or confirmed. A token with
/// `transactionMode` `PREAUTH` reserves the money instead of taking it. The bank knows a movement by the invoice
/// number, the `idempotencyID` and the user-defined fields of the request that asked for it; a refund's own reference
/// is its `refundReferenceNo`.
///
/// Where the documentation leaves a choice the harsher reading holds until a setting says otherwise: a second use of
/// an invoice number is 9015 even with the same `idempotencyID`, in a plain body without a signature; an unpaid
/// invoice is 2001 and an unknown one 2002, both without the merchant's identity; an expired one is 5009. The
/// maintenance API refuses (11) what no page names, so that a misspelt `idempotencyID` is found out, and lists refunds
/// without anything that tells two of one amount apart.
///
/// A request that it has no endpoint for is answered 501 and listed by [`unexpected`](Self::unexpected).
pub struct FakeTwoC2p {
    server: Server,
    merchant: Arc<Merchant>,
}

/// What becomes of a Do Payment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DirectPayment {
    /// The money moves at once; for a QR channel, when the payer has scanned the code.
    Approve,
    /// Refused, with this code in the inquiry: `4051`. The answer itself says 2000 all the same.
    Decline(String),
    /// The payer has to authenticate on a page: then [`FakeTwoC2p::pay`].
    Redirect,
}

/// How amounts are written in signed answers. All of these have been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AmountForm {
    /// `2000.10`
    Number,
    /// `2000.1`: a number that lost the zeros at its end.
    ShortNumber,
    /// `"2000.10"`
    Text,
    /// `"000000002000.10000"`
    Padded,
}

impl FakeTwoC2p {
    /// Listens on a free port of 127.0.0.1 until it is dropped. It runs on the machine's clock.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or when no port can be had.
    #[must_use]
    #[track_caller]
    pub fn start(bank: Bank, merchant_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        let merchant = Arc::new(Merchant::new(merchant_id.into(), secret.into(), Books::new(bank)));
        let server = Server::start(Arc::<Merchant>::clone(&merchant));
        merchant.address.get_or_init(|| server.url());
        Self { server, merchant }
    }

    /// What stands in the place of `https://pgw.2c2p.com/payment/4.3`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("{}/payment/4.3", self.server.url())
    }

    /// The bank behind it.
    #[must_use]
    pub fn bank(&self) -> Bank {
        self.merchant.books().bank.clone()
    }

    /// All requests, in the order in which they were read.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.server.requests()
    }

    /// How many requests of this route there were, such as `POST /payment/4.3/paymentInquiry`. See
    /// [`Route`](super::Route).
    ///
    /// # Panics
    /// When the route is not in that form.
    #[must_use]
    #[track_caller]
    pub fn count(&self, route: &str) -> usize {
        self.requests().iter().filter(|request| request.is(route)).count()
    }

    /// The requests for which there is no endpoint here, as `METHOD /path`.
    #[must_use]
    pub fn unexpected(&self) -> Vec<String> {
        self.merchant.books().unexpected.clone()
    }

    /// From now on requests go wrong by this plan. Inquiries are `paymentInquiry`, the process types I and RS of the
    /// maintenance API, `get` of stored cards, and whatever is only a GET; the others can move money or change
    /// something.
    pub fn set_faults(&self, plan: FaultPlan) {
        self.server.set_faults(plan);
    }

    /// From now on requests of this route are received and wait to be executed.
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

    /// The clock by which tokens expire and transactions are dated.
    pub fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.merchant.books().clock = clock;
    }

    /// The merchant's zone, in minutes east of UTC, in which `paymentExpiry` is read and `transactionDateTime`
    /// written. 420 (Thailand) at first.
    pub fn set_zone(&self, minutes_east: i32) {
        self.merchant.books().settings.zone = minutes_east;
    }

    /// A token request with the same invoice number, the same `idempotencyID` and the same content gives the first
    /// token again, instead of 9015.
    pub fn set_replays_same_idempotency_id(&self, yes: bool) {
        self.merchant.books().settings.replays_same_idempotency_id = yes;
    }

    /// Refusals such as 9015 come signed. A bad signature (9042) is always answered plainly.
    pub fn set_signs_refusals(&self, yes: bool) {
        self.merchant.books().settings.signs_refusals = yes;
    }

    /// The code of an inquiry about an invoice that is issued and not paid: `2001` at first; `2002` and `0001` are
    /// other readings.
    pub fn set_unpaid_code(&self, code: &str) {
        code.clone_into(&mut self.merchant.books().settings.unpaid_code);
    }

    /// The code of an inquiry about an invoice that does not exist, or that is not seen yet: `2002` at first.
    pub fn set_unknown_code(&self, code: &str) {
        code.clone_into(&mut self.merchant.books().settings.unknown_code);
    }

    /// The code of an inquiry about an invoice whose token ran out unpaid: `5009` at first; `2001` and `2002` are
    /// other readings.
    pub fn set_expired_code(&self, code: &str) {
        code.clone_into(&mut self.merchant.books().settings.expired_code);
    }

    /// So many inquiries about an invoice do not see a payment that is made from now on.
    pub fn set_inquiry_lag(&self, inquiries: u32) {
        self.merchant.books().settings.inquiry_lag = inquiries;
    }

    /// Payers pay as soon as a token is issued, whether or not it reached anyone: the money moves although the
    /// answer may be lost.
    pub fn set_pays_at_once(&self, yes: bool) {
        self.merchant.books().settings.pays_at_once = yes;
    }

    /// How amounts are written in signed answers.
    pub fn set_amount_form(&self, form: AmountForm) {
        self.merchant.books().settings.amount_form = form;
    }

    /// What becomes of the next Do Payment. Several are used up in their order; without one it is approved.
    pub fn next_payment(&self, result: DirectPayment) {
        self.merchant.books().settings.direct.push_back(result);
    }

    /// The payer pays on the page. `false`, and nothing moves, when it is closed or already paid.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn pay(&self, invoice: &str) -> bool {
        self.on_page(invoice, |books| books.pay(invoice, "0000"))
    }

    /// The payer's try on the page is refused with this code, such as `4051`. Another try may follow. `false` when
    /// the page is closed or already paid.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn decline(&self, invoice: &str, code: &str) -> bool {
        self.on_page(invoice, |books| books.fail(invoice, code))
    }

    /// The payer cancels on the page. Having kept the link, the payer may still pay. `false` when the page is closed
    /// or already paid.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn cancel(&self, invoice: &str) -> bool {
        self.on_page(invoice, |books| books.fail(invoice, "0003"))
    }

    /// Money comes in through a counter or bank channel after the invoice has expired (5017). `false`, and nothing
    /// moves, when it has not expired or is already paid.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[track_caller]
    pub fn pay_late(&self, invoice: &str) -> bool {
        let mut books = self.merchant.books();
        let found = existing(books.invoices.get(invoice).cloned(), invoice);
        let paid = matches!(found.state, State::Paid { .. });
        let late = !books.is_open(&found) && !paid && !found.after.voided;
        if late {
            books.pay(invoice, "5017");
        }
        late
    }

    /// The invoice numbers, in the order in which they were issued.
    #[must_use]
    pub fn invoices(&self) -> Vec<String> {
        self.merchant.books().numbers.clone()
    }

    /// The payment token of an invoice, which its answer may have lost.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[must_use]
    #[track_caller]
    pub fn token(&self, invoice: &str) -> String {
        existing(self.merchant.books().invoices.get(invoice).cloned(), invoice).token
    }

    /// The body of the backend notification about an invoice, signed: `{"payload": "<JWT>"}`. Its content type is
    /// `application/json; charset=utf-8`. One is sent for failures too.
    ///
    /// # Panics
    /// When there is no such invoice, or nobody has tried to pay it: then the gateway has nothing to say.
    #[must_use]
    #[track_caller]
    #[allow(clippy::panic, reason = "a test that asks for it must hear so at that line")]
    pub fn callback(&self, invoice: &str) -> Vec<u8> {
        let books = self.merchant.books();
        let found = existing(books.invoices.get(invoice).cloned(), invoice);
        if found.state == State::Issued {
            panic!("nobody has tried to pay invoice {invoice}");
        }
        self.merchant.seal(&books.result(&found, &self.merchant.id))
    }

    #[track_caller]
    fn on_page(&self, invoice: &str, step: impl FnOnce(&mut Books)) -> bool {
        let mut books = self.merchant.books();
        let found = existing(books.invoices.get(invoice).cloned(), invoice);
        let open = books.is_open(&found);
        if open {
            step(&mut books);
        }
        open
    }
}

/// Without its invoices, which hold payment tokens and metadata.
impl fmt::Debug for FakeTwoC2p {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTwoC2p")
            .field("base_url", &self.base_url())
            .field("merchant_id", &self.merchant.id)
            .field("bank", &self.bank())
            .finish_non_exhaustive()
    }
}

/// A test that names what does not exist is wrong, and must hear so at that line.
#[track_caller]
#[allow(clippy::panic, reason = "see above")]
fn existing<T>(found: Option<T>, invoice: &str) -> T {
    match found {
        Some(found) => found,
        None => panic!("FakeTwoC2p has no invoice {invoice}"),
    }
}
