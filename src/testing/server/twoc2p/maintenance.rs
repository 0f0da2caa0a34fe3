//! The maintenance API: `PaymentProcessRequest`, version 4.3, to look at payments, void, settle and refund them.

use super::FakeTwoC2p;
use super::endpoints::Merchant;
use super::envelope::{GATEWAY, GATEWAY_CERTIFICATE, MERCHANT_CERTIFICATE, MERCHANT_KEY};
use super::invoices::{Books, Invoice, local};
use super::process::{Asked, Process};
use super::recurring;
use super::refunds::RefundRows;
use super::xml::{Document, Element};
#[cfg(feature = "twoc2p-maintenance")]
use crate::gateway::twoc2p::{MaintenanceKeys, TwoC2p, TwoC2pBuilder};
use crate::money::Money;
use crate::secret::Secret;
use crate::testing::server::http::{Gate, TurnedAway};
use crate::testing::server::{LoggedRequest, Reply};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

pub(super) const PATH: &str = "/PaymentAction/2.0/action";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What tests have set, and what is remembered of requests.
#[derive(Debug)]
pub(super) struct Maintenance {
    pub(super) settlement_delay: Duration,
    pub(super) refuses_partial_settlements: bool,
    pub(super) refunds_asynchronous: bool,
    pub(super) refund_rows: RefundRows,
    page_for_bad_envelopes: bool,
    forgets_ids: bool,
    told: VecDeque<Told>,
    /// By `idempotencyID`.
    known: HashMap<String, (Process, Option<String>)>,
}

impl Default for Maintenance {
    fn default() -> Self {
        Self {
            settlement_delay: DAY,
            refuses_partial_settlements: false,
            refunds_asynchronous: false,
            refund_rows: RefundRows::Bare,
            page_for_bad_envelopes: false,
            forgets_ids: false,
            told: VecDeque::new(),
            known: HashMap::new(),
        }
    }
}

/// A code that a test wants to hear.
#[derive(Clone, Debug)]
struct Told {
    process: String,
    code: String,
    after_effect: bool,
}

/// What is to be done with a request that was read.
enum Begun {
    Execute,
    /// Answered already, under the same `idempotencyID`.
    Known(String),
    Refused(&'static str),
}

impl Merchant {
    /// One request to the action URL. It is marked as running before it waits at the gate, so that a second one with
    /// its `idempotencyID` is told so.
    pub(super) async fn maintain(&self, request: &LoggedRequest, gate: Gate, breaks: bool) -> Reply {
        let root = match self.read_action(request) {
            Ok(root) => root,
            Err(reply) => {
                gate.pass().await;
                return reply;
            }
        };
        if root.name == "PaymentProcessRequest" {
            return self.process(&root, gate, breaks).await;
        }
        if root.name == recurring::ROOT {
            gate.pass().await;
            return self.recurring(&root, breaks);
        }
        let line = format!("POST {PATH} <{}>", root.name);
        let text = format!("FakeTwoC2p has no {line}");
        self.books().unexpected.push(line);
        Reply::new(501).header("Content-Type", "text/plain").body(text)
    }

    fn recurring(&self, root: &Element, breaks: bool) -> Reply {
        let mut books = self.books();
        let told = books.maintenance.take_told(&plan_process(root));
        let executes = told.as_ref().is_none_or(|told| told.after_effect);
        let answer = executes.then(|| books.recurring(root, &self.id));
        if breaks {
            return broken();
        }
        let id = root.text_of("recurringUniqueID").unwrap_or_default();
        let told = told.map(|told| books.recurring_answer("2.4", &told.code, id).finish());
        sealed(&told.or(answer).unwrap_or_default())
    }

    async fn process(&self, root: &Element, gate: Gate, breaks: bool) -> Reply {
        let echo = Echo::of(root);
        let bare = |code: &str| sealed(&self.books().bare(code, &echo));
        let asked = match Asked::read(root, &self.id) {
            Ok(asked) => asked,
            Err(code) => {
                gate.pass().await;
                return bare(code);
            }
        };
        let told = self.books().maintenance.take_told(asked.process.as_str());
        if let Some(told) = told.as_ref().filter(|told| !told.after_effect) {
            gate.pass().await;
            return bare(&told.code);
        }
        let begun = self.books().maintenance.begin(&asked);
        let answer = match begun {
            Begun::Known(answer) => answer,
            Begun::Refused(code) => return bare(code),
            Begun::Execute => {
                gate.pass().await;
                let mut books = self.books();
                let answer = books.execute(&asked, &echo);
                books.maintenance.finish(&asked, &answer);
                answer
            }
        };
        if breaks {
            return broken();
        }
        match told {
            Some(told) => bare(&told.code),
            None => sealed(&answer),
        }
    }

    /// The XML in a request, or the answer to what cannot be read.
    fn read_action(&self, request: &LoggedRequest) -> Result<Element, Reply> {
        let nothing = Echo::default();
        let Some(xml) = GATEWAY.open(&request.body) else {
            let books = self.books();
            return Err(if books.maintenance.page_for_bad_envelopes {
                Reply::new(401).html(
                    "<html><head><title>401 - Unauthorized</title></head>\
                     <body><h2>401 - Unauthorized: Access is denied due to invalid credentials.</h2></body></html>",
                )
            } else {
                sealed(&books.bare("96", &nothing))
            });
        };
        Element::parse(&xml).ok_or_else(|| sealed(&self.books().bare("02", &nothing)))
    }

    /// Before anything is done.
    pub(super) fn turn_away_action(&self, request: &LoggedRequest, why: TurnedAway) -> Reply {
        match why {
            TurnedAway::Error => broken(),
            TurnedAway::Throttled => Reply::new(429)
                .header("Content-Type", "text/plain")
                .body("Too many requests"),
            TurnedAway::StillRunning => match self.read_action(request) {
                // Changes of plans carry no id that could be running.
                Ok(root) if root.name == recurring::ROOT => broken(),
                Ok(root) => sealed(&self.books().bare("51", &Echo::of(&root))),
                Err(reply) => reply,
            },
        }
    }
}

/// Does a request to the action URL only look?
pub(super) fn only_looks(body: &[u8]) -> bool {
    let root = GATEWAY.open(body).and_then(|xml| Element::parse(&xml));
    root.is_some_and(|root| matches!(root.text_of("processType"), Some("I" | "RS")))
}

/// How tests name what is asked of a plan.
fn plan_process(root: &Element) -> String {
    format!("RPP-{}", root.text_of("processType").unwrap_or_default())
}

fn sealed(xml: &str) -> Reply {
    Reply::new(200)
        .header("Content-Type", "text/plain; charset=utf-8")
        .body(GATEWAY.seal(xml))
}

/// How the gateway breaks is not documented: no token, and no sign of whether anything was done.
fn broken() -> Reply {
    Reply::new(500)
        .header("Content-Type", "text/plain")
        .body("Internal Server Error")
}

impl Maintenance {
    fn take_told(&mut self, process: &str) -> Option<Told> {
        let at = self.told.iter().position(|told| told.process == process)?;
        self.told.remove(at)
    }

    /// Looks the `idempotencyID` up, and marks it as running.
    fn begin(&mut self, asked: &Asked) -> Begun {
        let Some(id) = asked.guarding_id().filter(|_| !self.forgets_ids) else {
            return Begun::Execute;
        };
        match self.known.get(id) {
            Some((process, _)) if *process != asked.process => Begun::Refused("50"),
            Some((_, None)) => Begun::Refused("51"),
            Some((_, Some(answer))) => Begun::Known(answer.clone()),
            None => {
                self.known.insert(id.to_owned(), (asked.process, None));
                Begun::Execute
            }
        }
    }

    fn finish(&mut self, asked: &Asked, answer: &str) {
        if let Some(id) = asked.guarding_id() {
            self.known
                .insert(id.to_owned(), (asked.process, Some(answer.to_owned())));
        }
    }
}

impl Books {
    fn execute(&mut self, asked: &Asked, echo: &Echo) -> String {
        let answer = match asked.process {
            Process::Inquire | Process::RefundStatus => self.look(asked),
            Process::Void => self
                .void(asked)
                .map(|paid| Answer::new("00", &paid, two_decimals(paid.amount))),
            Process::Settle => self
                .capture(asked)
                .map(|paid| Answer::new("00", &paid, two_decimals(paid.taken()))),
            Process::Refund => self.refund(asked),
        };
        match answer {
            Ok(answer) => answer.write(self, asked),
            Err(code) => self.bare(code, echo),
        }
    }

    /// I and RS: the payment, and for RS what was given back of it.
    fn look(&self, asked: &Asked) -> Result<Answer, &'static str> {
        let invoice = self.invoice(&asked.invoice)?;
        let said = invoice.after.said_amount.clone();
        let amount = said.unwrap_or_else(|| two_decimals(invoice.taken()));
        let answer = Answer::new("00", &invoice, amount).reported(self.status(&invoice));
        Ok(match asked.process {
            Process::RefundStatus => answer.refund_list(self.refund_list(&invoice)),
            Process::Inquire | Process::Void | Process::Settle | Process::Refund => answer,
        })
    }

    /// An answer that has nothing to say but its code.
    fn bare(&self, code: &str, echo: &Echo) -> String {
        let mut document = self.head(code);
        document.put("processType", &echo.process);
        document.put("invoiceNo", &echo.invoice);
        document.finish()
    }

    fn head(&self, code: &str) -> Document {
        let mut document = Document::new("PaymentProcessResponse");
        document.put("version", "4.3");
        document.put("timeStamp", &day_first(&local(self.clock.now(), self.settings.zone)));
        document.put("respCode", code);
        document.put("respDesc", description(code));
        document
    }
}

/// What even a refusal repeats of its request.
#[derive(Debug, Default)]
struct Echo {
    process: String,
    invoice: String,
}

impl Echo {
    fn of(root: &Element) -> Self {
        let text = |name| root.text_of(name).unwrap_or_default().to_owned();
        Self {
            process: text("processType"),
            invoice: text("invoiceNo"),
        }
    }
}

/// The answer to a request that was granted.
#[derive(Debug)]
pub(super) struct Answer {
    code: &'static str,
    invoice: Invoice,
    amount: String,
    status: Option<String>,
    refund_reference: String,
    refund_list: String,
}

impl Answer {
    pub(super) fn new(code: &'static str, invoice: &Invoice, amount: String) -> Self {
        Self {
            code,
            invoice: invoice.clone(),
            amount,
            status: None,
            refund_reference: String::new(),
            refund_list: String::new(),
        }
    }

    /// Another status than that of the payment.
    pub(super) fn status(self, status: &str) -> Self {
        self.reported(status.to_owned())
    }

    fn reported(mut self, status: String) -> Self {
        self.status = Some(status);
        self
    }

    pub(super) fn refund_reference(mut self, reference_no: &str) -> Self {
        reference_no.clone_into(&mut self.refund_reference);
        self
    }

    fn refund_list(mut self, xml: String) -> Self {
        self.refund_list = xml;
        self
    }

    /// In the order of the documented samples, without a merchant's id, which none of them has.
    pub(super) fn write(&self, books: &Books, asked: &Asked) -> String {
        let (invoice, paid_at) = (&self.invoice, self.invoice.after.paid_at);
        let paid = |text: &'static str| if paid_at.is_some() { text } else { "" };
        let mut document = books.head(self.code);
        document.put("processType", asked.process.as_str());
        document.put("invoiceNo", &invoice.number);
        document.put("amount", &self.amount);
        match &self.status {
            Some(status) => document.put("status", status),
            None => document.put("status", books.stage(invoice).letter()),
        }
        document.put("approvalCode", paid("717282"));
        document.put("referenceNo", invoice.tran_ref());
        document.put("refundReferenceNo", &self.refund_reference);
        let at = paid_at.map(|at| local(at, books.settings.zone)).unwrap_or_default();
        document.put("transactionDateTime", &at);
        document.put("maskedPan", paid("411111XXXXXX1111"));
        document.put("eci", paid("05"));
        document.put_raw(&self.refund_list);
        document.put("paymentScheme", paid("VI"));
        document.put("processBy", paid("VI"));
        for (name, value) in &asked.user_defined {
            document.put(name, value);
        }
        document.put("idempotencyID", asked.idempotency_id.as_deref().unwrap_or_default());
        document.finish()
    }
}

/// Amounts have two decimals there (`D 10,2`), and more only where the currency has.
pub(super) fn two_decimals(amount: Money) -> String {
    let decimal = amount.to_decimal();
    match decimal.split_once('.') {
        None => format!("{decimal}.00"),
        Some((whole, digits)) => format!("{whole}.{digits:0<2}"),
    }
}

/// `ddMMyyHHmmss` of `yyyyMMddHHmmss`.
pub(super) fn day_first(stamp: &str) -> String {
    let part = |from: usize, to: usize| stamp.get(from..to).unwrap_or_default();
    format!("{}{}{}{}", part(6, 8), part(4, 6), part(2, 4), part(8, 14))
}

/// Our own words for the codes of the page response-code-payment-maintenance-result-code.
pub(super) fn description(code: &str) -> &'static str {
    match code {
        "00" => "Success",
        "02" => "Invalid request",
        "10" => "A compulsory value is missing",
        "11" => "Validation failed",
        "12" => "The state does not allow this",
        "14" => "Invalid merchant",
        "16" => "Transaction does not exist",
        "17" => "Invalid request type",
        "18" => "Invalid action amount",
        "21" => "Void is not allowed",
        "29" => "Voided already",
        "30" => "More than the transaction amount",
        "31" => "Settlement is not allowed",
        "32" => "Settlement is not required",
        "33" => "Partial settlement is not allowed",
        "34" => "Duplicate capture detected",
        "39" => "Settled already",
        "40" => "Refund above the transaction amount",
        "41" => "Refund is not allowed",
        "42" => "Refund pending",
        "44" => "Refund rejected",
        "49" => "Refunded already",
        "50" => "Same idempotency id with another type exists",
        "51" => "Same idempotency id is still pending",
        "61" => "Cancel is not allowed",
        "95" => "Request timed out",
        "96" => "Unable to decrypt",
        "97" => "Process is not supported",
        _ => "The request could not be completed",
    }
}

/// The maintenance API: its address, its keys, and how it errs.
impl FakeTwoC2p {
    /// An account at this fake, with all its addresses and keys: what is left to be set is the clock, where it is not
    /// the machine's.
    #[cfg(feature = "twoc2p-maintenance")]
    #[must_use]
    #[allow(
        clippy::expect_used,
        clippy::missing_panics_doc,
        reason = "the keys are constants, and tests read them"
    )]
    pub fn account(&self) -> TwoC2pBuilder {
        let keys = MaintenanceKeys::new(self.merchant_private_key(), self.gateway_certificate());
        TwoC2p::builder(self.merchant.id.as_str(), self.merchant.secret.clone())
            .base_url(self.base_url())
            .maintenance_url(self.maintenance_url())
            .customer_token_url(self.customer_token_url())
            .maintenance_keys(keys.expect("the fake's own keys"))
    }

    /// What stands in the place of `https://t.2c2p.com/PaymentAction/2.0/action`.
    #[must_use]
    pub fn maintenance_url(&self) -> String {
        format!("{}{PATH}", self.server.url())
    }

    /// The merchant's private key, a PEM file (PKCS#8): with it requests are signed and answers decrypted. A TEST-ONLY
    /// key that every copy of this crate has; it must never be registered anywhere.
    #[must_use]
    pub fn merchant_private_key(&self) -> Secret {
        Secret::new(MERCHANT_KEY)
    }

    /// The merchant's certificate, a PEM file: what one uploads to 2C2P.
    #[must_use]
    pub fn merchant_certificate(&self) -> String {
        MERCHANT_CERTIFICATE.to_owned()
    }

    /// The gateway's certificate, a PEM file: for it requests are encrypted, and with it answers are verified.
    #[must_use]
    pub fn gateway_certificate(&self) -> String {
        GATEWAY_CERTIFICATE.to_owned()
    }

    /// A request that cannot be verified or decrypted is answered by an unsigned HTML page with HTTP 401, as
    /// production does with keys that are not registered, instead of a sealed answer with respCode 96.
    pub fn set_answers_bad_envelopes_with_a_page(&self, yes: bool) {
        self.merchant.books().maintenance.page_for_bad_envelopes = yes;
    }

    /// From now on an `idempotencyID` protects nothing: what is sent again is executed again. How long 2C2P remembers
    /// one is not documented. At first the fake remembers for ever, and refusals too: the same id is told the same,
    /// although a payment may have been settled meanwhile; what else the second request says is not looked at.
    pub fn set_forgets_idempotency_ids(&self, yes: bool) {
        self.merchant.books().maintenance.forgets_ids = yes;
    }

    /// The next request of this process type (`V`, `S`, `R`, `I`, `RS`; of plans `RPP-I`, `RPP-U`, `RPP-C`) is answered
    /// with this code and *not* executed: nothing is remembered under its `idempotencyID`. Several are used up in their
    /// order.
    pub fn next_maintenance_code(&self, process_type: &str, code: &str) {
        self.tell(process_type, code, false);
    }

    /// The next request of this process type is executed and answered with this code all the same. Under its
    /// `idempotencyID` the true answer is remembered.
    pub fn next_maintenance_code_after_effect(&self, process_type: &str, code: &str) {
        self.tell(process_type, code, true);
    }

    /// The XML of every request to the action URL that could be opened, in the order in which they were read, whether
    /// or not they were executed.
    #[must_use]
    pub fn maintenance_requests(&self) -> Vec<String> {
        let requests = self.requests();
        let actions = requests.iter().filter(|request| is_action(&request.path));
        actions.filter_map(|request| GATEWAY.open(&request.body)).collect()
    }

    fn tell(&self, process_type: &str, code: &str, after_effect: bool) {
        self.merchant.books().maintenance.told.push_back(Told {
            process: process_type.to_owned(),
            code: code.to_owned(),
            after_effect,
        });
    }
}

/// Is it the action URL, whatever its case?
pub(super) fn is_action(path: &str) -> bool {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    path.eq_ignore_ascii_case(PATH)
}
