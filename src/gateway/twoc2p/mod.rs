//! 2C2P: payments through its hosted page or made directly, by the payment API 4.3 (JSON in HS256 tokens).
//!
//! How the promise of this crate is kept there:
//!
//! * The invoice number is the key. It is the reference itself or a pure function of the operation's key, 2C2P takes
//!   each only once (code 9015), and an inquiry by it needs nothing that a lost answer would have carried.
//! * A token request moves no money; the payer does, on the page, or the direct payment that follows it. A direct
//!   payment is sent at most once: see [`TwoC2pOptions::customer_token`].
//! * Only signed answers about the right merchant and invoice are believed. An unsigned one can at most say that a
//!   token request was not accepted.
//! * A decline on the page is not the end: the payer may try another card until the page closes.
//!
//! What a payer's screen needs besides (how far the payment has come, channels, stored cards, rates of exchange,
//! instructions for the counter) is in [`calls`]; these read, and most of their answers nobody signs. Which of 2C2P's
//! addresses an account uses is its [`Host`].
//!
//! Voids, captures and refunds go through 2C2P's maintenance API: feature `twoc2p-maintenance`, and the account's
//! `maintenance_keys`. Without them they are refused as unsupported. With them there are payment plans (`PlanChange`,
//! `TwoC2p::payment_plan`) and stored cards (`StoredCardChange`, `TwoC2p::stored_card`, `CardStore`) as well.
//!
//! What an account needs, from the merchant portal: the merchant id and the secret key (a text, not to be decoded); for
//! expiries the offset of the merchant's local time; the two addresses to which payer and callback come back. For the
//! maintenance API the private key whose certificate was uploaded under *Merchant Public Keys*, and 2C2P's certificate
//! from *2C2P Public Keys*, section JWE. Sandbox and production have different ones of each.
#![cfg_attr(
    all(feature = "twoc2p-maintenance", feature = "sqlite"),
    doc = r#"
```no_run
use payonce::gateway::twoc2p::{MaintenanceKeys, TwoC2p};
use payonce::journal::sqlite::SqliteJournal;
use payonce::{Currency, Money, Operation, Payments, Target};
use std::sync::Arc;

# async fn shop() -> Result<(), Box<dyn std::error::Error>> {
let keys = MaintenanceKeys::new(
    std::fs::read_to_string("merchant-private-key.pem")?,
    std::fs::read("2c2p.cer")?,
)?;
let account = TwoC2p::builder("JT01", std::env::var("TWOC2P_SECRET_KEY")?)
    .sandbox()
    .utc_offset_minutes(420)
    .frontend_return_url("https://shop.example/2c2p/return")
    .backend_return_url("https://shop.example/2c2p/callback")
    .refund_notify_url("https://shop.example/2c2p/refund")
    .maintenance_keys(keys)
    .build()?;
let payments = Payments::builder()
    .namespace("shop-th/sandbox")
    .gateway(Arc::new(account))
    .journal(Arc::new(SqliteJournal::open("payments.sqlite")?))
    .build()?;

let order = Operation::charge("ORDER1001", Money::parse("2000.00", Currency::THB)?)?;
let outcome = payments.execute(&order).await?;
if let Some(page) = outcome.redirect() {
    println!("send the browser to {} characters of address", page.expose().len());
}
// Settled, a part of it is given back: the refund has a number of its own.
let refund = Operation::refund(
    "REFUND1",
    Money::parse("500.00", Currency::THB)?,
    Target::Operation(payments.key(&order)),
)?;
let _ = payments.execute(&refund).await?;
# Ok(())
# }
```
"#
)]

mod amount;
mod builder;
pub mod calls;
pub mod codes;
mod date;
mod host;
mod invoice;
mod json;
mod jwt;
#[cfg(feature = "twoc2p-maintenance")]
mod maintenance;
mod notification;
mod options;
mod request;
mod response;
mod result;

#[cfg(not(feature = "twoc2p-maintenance"))]
mod without_maintenance;

#[cfg(test)]
mod tests;

pub use builder::{BuildError, TwoC2pBuilder};
pub use date::LocalTime;
pub use host::Host;
pub use invoice::InvoiceProfile;
#[cfg(feature = "twoc2p-maintenance")]
pub use maintenance::{
    ActionOptions, CardExpiry, CardStore, ChargeDate, ChargeDay, KeyError, KeyFault, MaintenanceKeys, NewStoredCard,
    PaymentPlan, PaymentStatus, PlanChange, PlanSchedule, PlanStatus, PlanTerms, RefundRow, StoredCard,
    StoredCardChange, StoredCardTerms, TokenProvider,
};
pub use notification::{BrowserReturn, read_browser_return};
pub use options::{
    Address, InterestType, JsonMember, PayerInfo, PaymentItem, Request3ds, StoreCredentials, SubMerchant,
    TransactionInitiator, TwoC2pOptions,
};
pub use result::PaymentResult;

use crate::clock::{Clock, Timestamp};
use crate::failure::{Failure, FailureKind};
use crate::gateway::{Gateway, Inquiry, Notification, NotificationError, Prepared, RawNotification, Refusal};
use crate::money::Currency;
use crate::operation::{Operation, OperationKey, OperationKind};
use crate::outcome::{Failed, FailureCategory, NextStep, Outcome, Pending};
use crate::record::{Instruction, Record};
use crate::retry::{Absence, AfterAbsence, Promise, SameKey, Since};
use crate::secret::Secret;
use crate::transport::{Method, Request, Response, Transport};
use async_trait::async_trait;
use codes::Api;
use date::UtcOffset;
use jwt::Signer;
#[cfg(feature = "twoc2p-maintenance")]
use maintenance::Maintenance;
use response::{TokenAnswer, doubtful};
use result::Conclusion;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The name in [`Gateway::name`] and in the journal.
const NAME: &str = "2c2p";

/// How long a payment token can be used (page `api-payment-token-response-parameter`; the default of `paymentExpiry`
/// is shorter).
const TOKEN_LIFE: Duration = Duration::from_secs(30 * 60);

/// How long after its token's life a payment that has no page can still appear in an inquiry.
const TOKEN_GRACE: Duration = Duration::from_secs(15 * 60);

/// One merchant account at 2C2P.
pub struct TwoC2p {
    merchant_id: String,
    child_merchant_id: Option<String>,
    signer: Signer,
    base_url: String,
    #[cfg(feature = "twoc2p-maintenance")]
    maintenance: Option<Maintenance>,
    profile: InvoiceProfile,
    currency: Option<Currency>,
    frontend_return_url: Option<String>,
    backend_return_url: Option<String>,
    utc_offset: Option<UtcOffset>,
    accept_forms: bool,
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
}

impl TwoC2p {
    /// Set-up of the account `merchant_id`; `secret_key` is the "Secret Key" of the merchant portal, as printed there.
    #[must_use]
    pub fn builder(merchant_id: impl Into<String>, secret_key: impl Into<Secret>) -> TwoC2pBuilder {
        TwoC2pBuilder::new(merchant_id.into(), secret_key.into())
    }

    /// Asks for the state of the payment `invoice_no` (page `api-payment-inquiry`) and returns all that 2C2P reports.
    /// Nothing is recorded and nothing is concluded from it: `class` [`NotFound`](codes::Class::NotFound) comes for
    /// issued tokens as well, and shortly after real payments.
    ///
    /// # Errors
    /// A [`Failure`]: no answer, or none that is signed and about this merchant and invoice. Nothing was changed.
    pub async fn payment_inquiry(&self, invoice_no: &str) -> Result<PaymentResult, Failure> {
        let body = self.signed(&self.inquiry_claims(invoice_no));
        let response = self.post("paymentInquiry", body, None).await?;
        let result = response::inquiry_answer(&response, &self.signer)?;
        let differs = |ours: &str, theirs: &Option<String>| theirs.as_ref().is_some_and(|theirs| theirs != ours);
        if differs(&self.merchant_id, &result.merchant_id) || differs(invoice_no, &result.invoice_no) {
            return Err(mismatch(&result, "another merchant or invoice"));
        }
        Ok(result)
    }

    async fn post(&self, path: &str, body: String, timeout: Option<Duration>) -> Result<Response, Failure> {
        let mut request = Request::new(Method::Post, format!("{}/{path}", self.base_url))
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(body);
        request.timeout = timeout;
        self.transport.exchange(request).await
    }

    /// The second request of a direct payment, and the only one that moves money.
    async fn pay(&self, instruction: &Instruction, token: &Secret) -> Result<Outcome, Failure> {
        let body = request::direct_body(instruction.key(), instruction.operation(), token)
            .map_err(|invalid| Failure::not_executed(FailureKind::Unsupported, invalid.to_string()))?;
        let response = match self.post("payment", body, Some(instruction.timeout())).await {
            Ok(response) => response,
            Err(failure) if failure.may_have_executed() => return Err(failure),
            Err(failure) => return Ok(dropped(&failure)),
        };
        let mut pending = response::flow_answer(&response, &self.signer)?;
        pending.expires_at = page_closes(instruction);
        Ok(Outcome::Pending(pending))
    }

    /// Where a payer has a page, the record counts from its closing. A direct payment has none, and until its token
    /// can no longer be used "not found" may only mean "not yet".
    fn absence_is_consistent(&self, record: &Record) -> bool {
        let token_dead = record.last_sent_at().after(TOKEN_LIFE).after(TOKEN_GRACE);
        record.payable_until().is_some() || self.clock.now() >= token_dead
    }
}

#[async_trait]
impl Gateway for TwoC2p {
    fn name(&self) -> &'static str {
        NAME
    }

    fn prepare(&self, key: OperationKey, operation: &Operation) -> Result<Prepared, Refusal> {
        if acts_on_payment(operation.kind()) {
            return self.prepare_action(key, operation);
        }
        let invoice_no = invoice::number(self.profile, key, operation.reference(), operation.attempt_number());
        // Built only to have everything checked before anything is written or sent.
        self.token_claims(key, &invoice_no, operation)?;
        let mut prepared = Prepared::new(invoice_no);
        let by_card = operation
            .options::<TwoC2pOptions>()
            .is_some_and(TwoC2pOptions::pays_by_card);
        prepared.payable_for = (!by_card).then_some(TOKEN_LIFE);
        Ok(prepared)
    }

    /// A second use of an invoice number is refused for ever. "Not found" also stands for a page that nobody has used
    /// yet, and comes shortly after real payments; so it proves something only after the page has closed, by two looks,
    /// and then closes the attempt: an invoice number is not used again.
    fn promise(&self, kind: OperationKind) -> Promise {
        #[cfg(feature = "twoc2p-maintenance")]
        if acts_on_payment(kind) {
            return maintenance::promise(kind);
        }
        #[cfg(not(feature = "twoc2p-maintenance"))]
        let _ = kind;
        let absence = Absence::After {
            since: Since::PageClosed,
            quiet: Duration::ZERO,
            looks: 2,
            apart: Duration::from_secs(60),
            then: AfterAbsence::Closed(FailureCategory::Expired),
        };
        Promise::new(SameKey::Refuses, absence)
    }

    async fn send(&self, instruction: &Instruction) -> Result<Outcome, Failure> {
        let operation = instruction.operation();
        if acts_on_payment(operation.kind()) {
            return self.act(instruction).await;
        }
        let unsent = |reason: &str| Failure::not_executed(FailureKind::Unsupported, reason);
        // By the instant of the first send and not by the present: the same in each retry.
        let opened = instruction.first_sent_at().unix_seconds();
        if operation.expiry().is_some_and(|expiry| expiry.unix_seconds() <= opened) {
            return Err(unsent("expires_at: had passed already when the operation began"));
        }
        let claims = self
            .token_claims(instruction.key(), instruction.wire_identity(), operation)
            .map_err(|refusal| unsent(&reason(&refusal)))?;
        let timeout = Some(instruction.timeout());
        let response = self.post("paymentToken", self.signed(&claims), timeout).await?;
        let options = operation.options::<TwoC2pOptions>();
        let answer = response::token_answer(&response, &self.signer)?;
        let immediate = options.is_some_and(TwoC2pOptions::pays_immediately);
        match answer {
            TokenAnswer::Refused(failed) if immediate => {
                let code = failed.evidence.code.as_deref();
                Err(doubtful(FailureKind::Duplicate, Api::Payment, code, response.status))
            }
            TokenAnswer::Refused(failed) => Ok(Outcome::Failed(failed)),
            TokenAnswer::Issued {
                payment_token: Some(token),
                ..
            } if options.is_some_and(TwoC2pOptions::is_direct) => self.pay(instruction, &token).await,
            TokenAnswer::Issued {
                page_url: Some(url), ..
            } if !options.is_some_and(TwoC2pOptions::is_direct) => {
                let mut pending = Pending::new(NextStep::Redirect { url });
                pending.expires_at = page_closes(instruction);
                pending.evidence.http_status = Some(response.status);
                pending.evidence.code = Some("0000".to_owned());
                Ok(Outcome::Pending(pending))
            }
            TokenAnswer::Issued { .. } => {
                let detail = "2C2P issued a token in an answer without the token, or without its page";
                Err(Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(response.status))
            }
        }
    }

    async fn inquire(&self, record: &Record) -> Result<Inquiry, Failure> {
        if acts_on_payment(record.kind()) {
            return self.look(record).await;
        }
        let result = self.payment_inquiry(record.wire_identity()).await?;
        let key = record.key().to_string();
        let foreign = |echo: &Option<String>| echo.as_ref().is_some_and(|echo| *echo != key);
        // The invoice number may have been used by another system of the same merchant.
        if foreign(&result.user_defined[0]) || foreign(&result.idempotency_id) {
            return Err(mismatch(&result, "the payment of another operation"));
        }
        let first = result.conclude(record.payable_until().is_some(), Some(200));
        let (conclusion, agreed) = if matches!(first, Conclusion::Says(_)) && !result.is_vague() {
            (first, true)
        } else {
            let named = [&result.user_defined[0], &result.idempotency_id];
            let ours = named.into_iter().flatten().next().is_some();
            self.second_opinion(record, first, ours).await?
        };
        match conclusion {
            Conclusion::Says(outcome) => Ok(Inquiry::Found(outcome)),
            Conclusion::Absent => Ok(Inquiry::Absent {
                consistent: agreed && self.absence_is_consistent(record),
            }),
            Conclusion::Nothing(kind) => Err(doubtful(kind, Api::Payment, result.code.as_deref(), 200)),
        }
    }

    fn read_notification(&self, raw: &RawNotification) -> Result<Notification, NotificationError> {
        #[cfg(feature = "twoc2p-maintenance")]
        if let Some(token) = maintenance::refund_notice_token(&raw.body) {
            return self.refund_notice(&token);
        }
        self.backend_callback(raw)
    }
}

/// Is it about what exists already, and not about a new payment?
const fn acts_on_payment(kind: OperationKind) -> bool {
    match kind {
        OperationKind::Charge | OperationKind::Authorize => false,
        OperationKind::Capture | OperationKind::Void | OperationKind::Refund | OperationKind::Update => true,
    }
}

/// The direct payment did not leave, and the token is dropped here: nobody can pay this invoice any more.
fn dropped(failure: &Failure) -> Outcome {
    let mut failed = Failed::new(FailureCategory::Cancelled);
    let message = format!("the payment token was dropped unused: {}", failure.detail());
    failed.evidence.message = Some(message);
    Outcome::Failed(failed)
}

/// 2C2P counts the life of a page from the request that opened it, unless it was told the end.
fn page_closes(instruction: &Instruction) -> Option<Timestamp> {
    let told = instruction.operation().expiry();
    instruction.page_closes().map(|closes| told.unwrap_or(closes))
}

fn mismatch(result: &PaymentResult, whose: &str) -> Failure {
    let detail = format!("2C2P's answer is about {whose}; its code is {}", result.explain());
    Failure::maybe_executed(FailureKind::Unreadable, detail).with_http_status(200)
}

fn reason(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Invalid(invalid) => invalid.to_string(),
        Refusal::Unsupported(what) => what.clone(),
    }
}

impl fmt::Debug for TwoC2p {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("TwoC2p");
        out.field("merchant_id", &self.merchant_id)
            .field("base_url", &self.base_url);
        #[cfg(feature = "twoc2p-maintenance")]
        out.field("maintenance", &self.maintenance);
        out.field("profile", &self.profile).finish_non_exhaustive()
    }
}
