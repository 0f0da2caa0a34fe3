//! What comes back: opened, verified, and told apart from everything that only looks like an answer.

use super::codes::{Api, Class, class};
use super::json::Members;
use super::jwt::Signer;
use super::options::is_web_address;
use super::result::{PaymentResult, code, explain};
use crate::failure::{Failure, FailureKind};
use crate::outcome::{Evidence, Failed, FailureCategory, NextStep, Pending};
use crate::secret::Secret;
use crate::transport::{Response, excerpt, scrub};

/// An answer in one of 2C2P's two forms. Only the first proves who wrote it.
pub(super) enum Reply {
    /// `{"payload":"<JWT>"}`, with our signature.
    Signed(Members),
    /// `{"respCode":...,"respDesc":...}`: a normal form for errors, written by anybody.
    Plain(Members),
}

impl Reply {
    fn members(&self) -> &Members {
        match self {
            Self::Signed(members) | Self::Plain(members) => members,
        }
    }

    fn code(&self) -> Option<String> {
        code(self.members())
    }
}

/// The answer to a token request.
pub(super) enum TokenAnswer {
    /// The invoice is registered, and whoever holds these can pay it.
    Issued {
        payment_token: Option<Secret>,
        page_url: Option<Secret>,
    },
    /// The request was not accepted. Nothing was executed, since a token that was not delivered cannot be paid; the
    /// attempt is burnt all the same, since a forged refusal could hide an issued token.
    Refused(Failed),
}

/// Reads the answer to a token request (page `api-payment-token-response-parameter`).
pub(super) fn token_answer(response: &Response, signer: &Signer) -> Result<TokenAnswer, Failure> {
    let reply = open(response, signer)?;
    let code = reply.code();
    let fail = |kind| Err(doubtful(kind, Api::Payment, code.as_deref(), response.status));
    match (&reply, code.as_deref()) {
        (Reply::Signed(members), Some("0000")) => Ok(TokenAnswer::Issued {
            payment_token: members.text("paymentToken").map(Secret::from),
            page_url: members
                .text("webPaymentUrl")
                .filter(|url| is_web_address(url))
                .map(Secret::from),
        }),
        (Reply::Plain(_), Some("0000")) => fail(FailureKind::Unreadable),
        (_, None) => fail(FailureKind::Unreadable),
        (_, Some(listed)) => match class(Api::Payment, listed) {
            Class::InvalidRequest => Ok(refused(FailureCategory::Invalid, &reply, listed, response.status)),
            Class::Auth => Ok(refused(FailureCategory::Refused, &reply, listed, response.status)),
            Class::Duplicate => fail(FailureKind::Duplicate),
            // No other code has a place here, so that none of them ends the operation, signed or not.
            Class::Success
            | Class::Pending
            | Class::InProgress
            | Class::Declined
            | Class::Cancelled
            | Class::Expired
            | Class::NotFound
            | Class::GatewayError
            | Class::Unknown => fail(FailureKind::ServerFault),
        },
    }
}

/// Reads the answer to a direct payment (page `api-do-payment-response-parameter`): what the payer has to do, and
/// nothing else. Whatever ends the flow, 2000 above all, is left to an inquiry: it is not signed, and 2000 comes after
/// failed payments as well.
pub(super) fn flow_answer(response: &Response, signer: &Signer) -> Result<Pending, Failure> {
    let reply = open(response, signer)?;
    let code = reply.code();
    let members = reply.members();
    let text = |name| members.text(name).map(Secret::from);
    let page = |name| members.text(name).filter(|url| is_web_address(url)).map(Secret::from);
    let next = match code.as_deref() {
        Some("1000" | "1001") => page("data").map(|url| NextStep::Redirect { url }),
        Some("1002") => text("data").map(|url| NextStep::OpenApp { url, fallback: None }),
        Some("1003") => page("data").map(|url| NextStep::PaySlip { url }),
        Some("1004") => text("data").map(|url| NextStep::OpenApp {
            url,
            fallback: page("fallbackData"),
        }),
        Some("1005") => text("data").map(|data| NextStep::QrCode { data }),
        other => {
            return Err(doubtful(
                FailureKind::Duplicate,
                Api::PaymentFlow,
                other,
                response.status,
            ));
        }
    };
    let Some(next) = next else {
        return Err(doubtful(
            FailureKind::Unreadable,
            Api::PaymentFlow,
            code.as_deref(),
            response.status,
        ));
    };
    let mut pending = Pending::new(next);
    pending.evidence = evidence(members, code.as_deref().unwrap_or_default(), response.status);
    for name in ["channelCode", "type", "expiryTimer", "expiryDescription"] {
        if let Some(text) = members.text(name) {
            pending.evidence.details.insert(name, scrub(&text));
        }
    }
    Ok(pending)
}

/// Reads the answer to an inquiry; one that is not signed says nothing.
pub(super) fn inquiry_answer(response: &Response, signer: &Signer) -> Result<PaymentResult, Failure> {
    Ok(PaymentResult::read(&signed_answer(response, signer)?))
}

/// The claims of an answer that has to be signed.
pub(super) fn signed_answer(response: &Response, signer: &Signer) -> Result<Members, Failure> {
    match open(response, signer)? {
        Reply::Signed(members) => Ok(members),
        Reply::Plain(members) => {
            let code = code(&members);
            let kind = match code.as_deref().map(|code| class(Api::Payment, code)) {
                Some(Class::Auth) => FailureKind::Credentials,
                _ => FailureKind::Unreadable,
            };
            Err(doubtful(kind, Api::Payment, code.as_deref(), response.status))
        }
    }
}

/// The failure for an answer that leaves the outcome open.
pub(super) fn doubtful(kind: FailureKind, api: Api, code: Option<&str>, status: u16) -> Failure {
    let failure = Failure::maybe_executed(kind, format!("2C2P answered {}", explain(api, code)));
    match code {
        Some(code) => failure.with_http_status(status).with_code(scrub(code)),
        None => failure.with_http_status(status),
    }
}

fn refused(category: FailureCategory, reply: &Reply, code: &str, status: u16) -> TokenAnswer {
    let mut failed = Failed::new(category);
    failed.evidence = evidence(reply.members(), code, status);
    TokenAnswer::Refused(failed)
}

fn evidence(members: &Members, code: &str, status: u16) -> Evidence {
    Evidence {
        http_status: Some(status),
        code: Some(scrub(code)),
        message: members.text("respDesc").map(|text| scrub(&text)),
        ..Evidence::default()
    }
}

/// No status but 200 is documented, so that no other is an answer of the gateway.
pub(super) fn open(response: &Response, signer: &Signer) -> Result<Reply, Failure> {
    if response.status >= 500 {
        return Err(unreadable(FailureKind::ServerFault, response, "a server fault"));
    }
    let unreadable = |what| Err(unreadable(FailureKind::Unreadable, response, what));
    if response.status != 200 {
        return unreadable("not the expected status");
    }
    let Some(outer) = Members::parse(&response.body) else {
        return unreadable("not the expected format");
    };
    let payload = outer.raw("payload").filter(|json| *json != "null");
    match (payload, outer.string("payload")) {
        (None, _) => Ok(Reply::Plain(outer)),
        (Some(_), None) => unreadable("a payload that is no text"),
        (Some(_), Some(token)) => match signer.verify(&token) {
            Err(_) => unreadable("a payload that is not signed with this merchant's key"),
            Ok(claims) => match Members::parse(&claims) {
                Some(members) => Ok(Reply::Signed(members)),
                None => unreadable("signed claims that are no object"),
            },
        },
    }
}

fn unreadable(kind: FailureKind, response: &Response, what: &str) -> Failure {
    let content_type = scrub(response.header("content-type").unwrap_or("none"));
    let mut detail = format!("2C2P's answer is {what} (content type {content_type})");
    if let Some(excerpt) = safe_excerpt(&response.body) {
        detail = format!("{detail}: {excerpt}");
    }
    Failure::maybe_executed(kind, detail).with_http_status(response.status)
}

/// A piece of a page or a text, never of JSON: in JSON, whole or cut, tokens and links stand in the clear.
fn safe_excerpt(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?.trim();
    let braces = text.contains(['{', '\0']) && !text.starts_with('<');
    (!text.is_empty() && !braces).then(|| excerpt(text.as_bytes()))
}
