//! What 2C2P's answers to a void, a settlement or a refund mean for the operation. Pure, so that a table can test it.
//!
//! An answer says whether the *request* worked. Where it did not, the state of the *payment* says what the operation has
//! come to: it may have been executed by an earlier send whose answer was lost, or by somebody else.

use super::answer::PaymentStatus;
use crate::failure::{Failure, FailureKind};
use crate::gateway::twoc2p::codes::{Api, Class, class};
use crate::gateway::twoc2p::response::doubtful;
use crate::gateway::twoc2p::result::Conclusion;
use crate::money::Currency;
use crate::operation::{GatewayRef, OperationKind};
use crate::outcome::{Conflict, ConflictKind, Failed, FailureCategory, NextStep, Outcome, Pending, Succeeded};
use crate::transport::scrub;

/// What the answer to a request that acts on a payment says.
#[allow(clippy::large_enum_variant, reason = "returned once and taken apart at once")]
pub(super) enum Verdict {
    /// The outcome of the operation.
    Says(Outcome),
    /// Nothing before the payment has been looked at.
    Look,
    /// There is no outcome.
    Fails(Failure),
}

/// The state of a payment, coarsely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The payer has not paid yet.
    Waiting,
    /// Approved and not settled: a void is possible, a refund is not.
    Approved,
    /// On its way to the acquirer: neither is possible.
    Settling,
    /// Settled, whole or in part.
    Settled,
    /// A refund was made of it, or begun.
    GivenBack,
    /// Paid late, or another amount than asked for.
    Irregular,
    /// A void is under way.
    Voiding,
    /// Voided.
    Voided,
    /// It ran out unpaid.
    Expired,
    /// Refused.
    Refused,
    /// None of these.
    Unclear,
}

impl Standing {
    /// Page `response-code-payment-maintenance-status-code`.
    pub(super) fn of(status: Option<&str>) -> Self {
        match status {
            Some("AP") => Self::Waiting,
            Some("A") => Self::Approved,
            Some("RS") => Self::Settling,
            Some("S" | "PFC" | "PPC") => Self::Settled,
            Some("RF" | "RP") => Self::GivenBack,
            Some("AE" | "AL" | "AM") => Self::Irregular,
            Some("VP") => Self::Voiding,
            Some("V") => Self::Voided,
            Some("EX") => Self::Expired,
            Some("PF" | "AR" | "FF" | "IP" | "ROE") => Self::Refused,
            Some(_) | None => Self::Unclear,
        }
    }
}

/// The `processType` of a kind.
pub(super) const fn process_type(kind: OperationKind) -> Option<&'static str> {
    match kind {
        OperationKind::Capture => Some("S"),
        OperationKind::Void => Some("V"),
        OperationKind::Refund => Some("R"),
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Update => None,
    }
}

/// Reads the answer to a request of `kind` (page `response-code-payment-maintenance-result-code`).
pub(super) fn on_answer(kind: OperationKind, answer: &PaymentStatus, currency: Option<Currency>) -> Verdict {
    let code = answer.code.as_deref();
    let open = |failure| Verdict::Fails(doubtful(failure, Api::Maintenance, code, 200));
    let Some(code) = code else {
        return open(FailureKind::Unreadable);
    };
    match (code, kind) {
        ("00", _) => return done(kind, answer, currency),
        ("42", OperationKind::Refund) => return Verdict::Says(waiting(answer)),
        ("51", _) => return open(FailureKind::StillRunning),
        // Of a payment that is not there nothing can be void, settled or given back.
        ("16", _) => return says_failed(FailureCategory::NoSuchPayment, answer),
        (_, OperationKind::Void) if is_about_the_state(code) => return Verdict::Look,
        (_, OperationKind::Capture) if is_about_the_state(code) => return Verdict::Look,
        ("12" | "30" | "49", OperationKind::Refund) => return Verdict::Look,
        _ => {}
    }
    match answer.class() {
        // A refusal can follow on a first send that was executed and whose key was forgotten.
        Class::Declined | Class::Expired if kind == OperationKind::Refund => Verdict::Look,
        Class::InvalidRequest => says_failed(FailureCategory::Invalid, answer),
        Class::Declined => says_failed(FailureCategory::Declined, answer),
        Class::Expired => says_failed(FailureCategory::Expired, answer),
        // Signed by 2C2P: it could not read the request, or does not know the merchant. Nothing was executed.
        Class::Auth => {
            let failure =
                Failure::not_executed(FailureKind::Credentials, format!("2C2P answered {}", answer.explain()));
            Verdict::Fails(failure.with_http_status(200).with_code(scrub(code)))
        }
        Class::Duplicate => open(FailureKind::Duplicate),
        Class::Success
        | Class::Pending
        | Class::InProgress
        | Class::Cancelled
        | Class::NotFound
        | Class::GatewayError
        | Class::Unknown => open(FailureKind::ServerFault),
    }
}

/// Codes behind which the operation's own success can stand, or somebody else's.
fn is_about_the_state(code: &str) -> bool {
    matches!(
        code,
        "12" | "21" | "22" | "25" | "29" | "30" | "31" | "32" | "33" | "34" | "35" | "36" | "38" | "39" | "61" | "65"
    )
}

/// Code 00: the request worked. Whether the operation is over, the status says.
fn done(kind: OperationKind, answer: &PaymentStatus, currency: Option<Currency>) -> Verdict {
    let unreadable = || Verdict::Fails(doubtful(FailureKind::Unreadable, Api::Maintenance, Some("00"), 200));
    let standing = Standing::of(answer.status.as_deref());
    match (kind, standing) {
        (OperationKind::Void, Standing::Voided) => Verdict::Says(voided(answer)),
        (OperationKind::Void, Standing::Voiding) => Verdict::Says(waiting(answer)),
        (OperationKind::Capture, Standing::Settled) => Verdict::Says(paid(answer, currency, None, None)),
        (OperationKind::Capture, Standing::Settling | Standing::Approved | Standing::Waiting) => {
            Verdict::Says(waiting(answer))
        }
        (OperationKind::Refund, _) => refunded(answer, currency),
        (_, _) => unreadable(),
    }
}

/// The status of a refund's own answer is that of the refund.
fn refunded(answer: &PaymentStatus, currency: Option<Currency>) -> Verdict {
    let id = answer.refund_reference_no.as_deref().map(GatewayRef::new);
    match refund_state(answer.status.as_deref()) {
        // Without its id it could not be told from another refund of the same amount, now or later.
        Some(RefundState::Done) if id.is_some() => Verdict::Says(paid(answer, currency, id, None)),
        Some(RefundState::Waiting) => Verdict::Says(waiting(answer)),
        Some(RefundState::Refused) => says_failed(FailureCategory::Declined, answer),
        Some(RefundState::Done) | None => {
            Verdict::Fails(doubtful(FailureKind::Unreadable, Api::Maintenance, Some("00"), 200))
        }
    }
}

/// How a refund stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefundState {
    Done,
    Waiting,
    Refused,
}

/// Page `response-code-payment-maintenance-status-code`; the guides print `REFUND_PENDING` as a word.
pub(super) fn refund_state(status: Option<&str>) -> Option<RefundState> {
    match status? {
        "RF" => Some(RefundState::Done),
        "RP" | "REFUND_PENDING" => Some(RefundState::Waiting),
        "RFF" | "RR" | "RR1" | "RR2" | "RR3" => Some(RefundState::Refused),
        _ => None,
    }
}

/// What the state of the payment says about a void or a settlement. `code` is what 2C2P answered to the request just
/// before; an inquiry that comes later has none.
pub(super) fn on_standing(
    kind: OperationKind,
    code: Option<&str>,
    payment: &PaymentStatus,
    currency: Option<Currency>,
) -> Conclusion {
    let nothing = Conclusion::Nothing(FailureKind::ServerFault);
    match payment.code.as_deref() {
        Some("00") => {}
        Some("16") if code.is_none() => return Conclusion::Absent,
        _ => return nothing,
    }
    let standing = Standing::of(payment.status.as_deref());
    if standing == Standing::Unclear {
        return nothing;
    }
    match kind {
        OperationKind::Void => on_void(code, standing, payment, currency),
        OperationKind::Capture => on_capture(code, standing, payment, currency),
        OperationKind::Charge | OperationKind::Authorize | OperationKind::Refund | OperationKind::Update => nothing,
    }
}

fn on_void(code: Option<&str>, standing: Standing, payment: &PaymentStatus, currency: Option<Currency>) -> Conclusion {
    let already = code == Some("29");
    match standing {
        Standing::Voided => Conclusion::Says(voided(payment)),
        Standing::Voiding => Conclusion::Says(waiting(payment)),
        Standing::Settled | Standing::GivenBack | Standing::Irregular | Standing::Expired | Standing::Refused
            if already =>
        {
            Conclusion::Says(disagree(
                "2C2P says that the payment is voided already",
                payment,
                currency,
            ))
        }
        Standing::Settled | Standing::Irregular => {
            let mut failed = failure(FailureCategory::Settled, payment);
            failed.settled = currency.and_then(|currency| payment.amount(currency));
            Conclusion::Says(Outcome::Failed(failed))
        }
        Standing::GivenBack | Standing::Expired | Standing::Refused => {
            Conclusion::Says(Outcome::Failed(failure(FailureCategory::AlreadyDone, payment)))
        }
        // Settled within hours: then it can be given back. Until then nobody can say that the void has failed for good.
        Standing::Settling if code.is_some() => Conclusion::Nothing(FailureKind::StillRunning),
        Standing::Approved | Standing::Waiting | Standing::Settling => not_done(code, already, payment),
        Standing::Unclear => Conclusion::Nothing(FailureKind::ServerFault),
    }
}

fn on_capture(
    code: Option<&str>,
    standing: Standing,
    payment: &PaymentStatus,
    currency: Option<Currency>,
) -> Conclusion {
    let already = matches!(code, Some("34" | "39"));
    match standing {
        Standing::Settled => Conclusion::Says(paid(payment, currency, None, None)),
        Standing::GivenBack => {
            let note = "given back since, in whole or in part";
            Conclusion::Says(paid(payment, currency, None, Some(note)))
        }
        Standing::Settling => Conclusion::Says(waiting(payment)),
        Standing::Irregular => Conclusion::Says(irregular(payment, currency)),
        Standing::Voided | Standing::Voiding | Standing::Expired | Standing::Refused if already => Conclusion::Says(
            disagree("2C2P says that the payment is settled already", payment, currency),
        ),
        Standing::Voided | Standing::Voiding => {
            Conclusion::Says(Outcome::Failed(failure(FailureCategory::Cancelled, payment)))
        }
        Standing::Expired | Standing::Refused => {
            Conclusion::Says(Outcome::Failed(failure(FailureCategory::AlreadyDone, payment)))
        }
        Standing::Approved | Standing::Waiting => not_done(code, already, payment),
        Standing::Unclear => Conclusion::Nothing(FailureKind::ServerFault),
    }
}

/// The payment is as it was. After a refusal that is final; after "already done" it is not believed, since one of the
/// two may lag; and without a code it means that the request has had no effect so far.
fn not_done(code: Option<&str>, already: bool, payment: &PaymentStatus) -> Conclusion {
    match code {
        None => Conclusion::Absent,
        Some(_) if already => Conclusion::Nothing(FailureKind::ServerFault),
        Some(code) => {
            let category = match class(Api::Maintenance, code) {
                Class::Expired => FailureCategory::Expired,
                Class::InvalidRequest => FailureCategory::Invalid,
                Class::Success
                | Class::Pending
                | Class::InProgress
                | Class::Declined
                | Class::Cancelled
                | Class::NotFound
                | Class::Duplicate
                | Class::Auth
                | Class::GatewayError
                | Class::Unknown => FailureCategory::Declined,
            };
            Conclusion::Says(Outcome::Failed(failure(category, payment)))
        }
    }
}

/// What the maintenance API's view says about a charge or an authorization of which the payment inquiry says nothing
/// certain. `payer_may_retry` as for [`PaymentResult::conclude`](crate::gateway::twoc2p::PaymentResult).
pub(super) fn on_payment(payment: &PaymentStatus, currency: Option<Currency>, payer_may_retry: bool) -> Conclusion {
    match payment.code.as_deref() {
        Some("00") => {}
        Some("16") => return Conclusion::Absent,
        _ => return Conclusion::Nothing(FailureKind::ServerFault),
    }
    let paid = |note| Conclusion::Says(paid(payment, currency, None, note));
    let failed = |category, payer_may_retry| {
        let mut failed = failure(category, payment);
        failed.payer_may_retry = payer_may_retry;
        Conclusion::Says(Outcome::Failed(failed))
    };
    match Standing::of(payment.status.as_deref()) {
        Standing::Approved | Standing::Settling => paid(None),
        Standing::Settled => paid(Some("settled since")),
        Standing::GivenBack => paid(Some("given back since: do not deliver, do not charge again")),
        Standing::Irregular => Conclusion::Says(irregular(payment, currency)),
        Standing::Waiting | Standing::Voiding => Conclusion::Says(waiting(payment)),
        Standing::Voided => failed(FailureCategory::Cancelled, false),
        Standing::Expired => failed(FailureCategory::Expired, false),
        Standing::Refused => failed(FailureCategory::Declined, payer_may_retry),
        Standing::Unclear => Conclusion::Nothing(FailureKind::ServerFault),
    }
}

/// Success over the amount that the answer reports; without one that can be read it is for a person to decide.
fn paid(answer: &PaymentStatus, currency: Option<Currency>, id: Option<GatewayRef>, note: Option<&str>) -> Outcome {
    let Some(amount) = currency.and_then(|currency| answer.amount(currency)) else {
        let raw = answer.amount_text.as_deref().unwrap_or("none");
        let detail = format!(
            "2C2P reports success over an amount that cannot be read: {}",
            scrub(raw)
        );
        return conflict(ConflictKind::Amount, detail, answer, None);
    };
    let mut succeeded = Succeeded::new(Some(amount));
    succeeded.gateway_ref = id;
    succeeded.notes.extend(note.map(str::to_owned));
    succeeded.evidence = answer.evidence();
    Outcome::Succeeded(succeeded)
}

fn voided(answer: &PaymentStatus) -> Outcome {
    let mut succeeded = Succeeded::new(None);
    succeeded.evidence = answer.evidence();
    Outcome::Succeeded(succeeded)
}

pub(super) fn waiting(answer: &PaymentStatus) -> Outcome {
    let mut pending = Pending::new(NextStep::Wait);
    pending.gateway_ref = answer.refund_reference_no.as_deref().map(GatewayRef::new);
    pending.evidence = answer.evidence();
    Outcome::Pending(pending)
}

pub(super) fn failure(category: FailureCategory, answer: &PaymentStatus) -> Failed {
    let mut failed = Failed::new(category);
    failed.evidence = answer.evidence();
    failed
}

fn says_failed(category: FailureCategory, answer: &PaymentStatus) -> Verdict {
    let mut failed = failure(category, answer);
    failed.gateway_ref = answer.refund_reference_no.as_deref().map(GatewayRef::new);
    Verdict::Says(Outcome::Failed(failed))
}

fn irregular(payment: &PaymentStatus, currency: Option<Currency>) -> Outcome {
    let detail = format!("money arrived, and 2C2P marks it as irregular: {}", payment.explain());
    conflict(ConflictKind::Irregular, detail, payment, currency)
}

pub(super) fn disagree(said: &str, payment: &PaymentStatus, currency: Option<Currency>) -> Outcome {
    let detail = format!("{said}, and reports it otherwise: {}", payment.explain());
    conflict(ConflictKind::Contradiction, detail, payment, currency)
}

fn conflict(kind: ConflictKind, detail: String, payment: &PaymentStatus, currency: Option<Currency>) -> Outcome {
    let mut conflict = Conflict::new(kind, detail);
    conflict.reported = currency.and_then(|currency| payment.amount(currency));
    conflict.evidence = payment.evidence();
    Outcome::Conflict(conflict)
}
