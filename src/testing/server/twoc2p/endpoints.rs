//! paymentToken, payment and paymentInquiry.

use super::DirectPayment;
use super::invoices::{Books, Invoice, State, TOKEN_LIFETIME, instant, plain};
use super::jwt::{self, Claims, Rejected};
use super::maintenance::{is_action, only_looks};
use super::page::{self, Returns, is_page};
use super::settlement::After;
use super::stored_cards;
use crate::money::{Currency, Money};
use crate::secret::Secret;
use crate::testing::server::http::{Gate, Handler, TurnedAway};
use crate::testing::server::{LoggedRequest, Reply};
use async_trait::async_trait;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const PREFIX: &str = "/payment/4.3/";
const MANDATORY: [&str; 5] = ["merchantID", "invoiceNo", "description", "amount", "currencyCode"];

/// A merchant's account at 2C2P.
#[derive(Debug)]
pub(super) struct Merchant {
    pub(super) id: String,
    pub(super) secret: Secret,
    /// Where it is reached, once it listens.
    pub(super) address: OnceLock<String>,
    books: Mutex<Books>,
}

impl Merchant {
    pub(super) fn new(id: String, secret: Secret, books: Books) -> Self {
        Self {
            id,
            secret,
            address: OnceLock::new(),
            books: Mutex::new(books),
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A signed answer.
    pub(super) fn seal(&self, claims: &str) -> Vec<u8> {
        jwt::seal(claims, self.secret.expose())
    }

    fn signed(&self, claims: &str) -> Reply {
        Reply::new(200).json("").body(self.seal(claims))
    }

    /// A refusal: the plain body without a signature that the gateway uses for errors, or a signed one.
    fn refuse(&self, code: &str) -> Reply {
        if self.books().settings.signs_refusals && code != "9042" {
            return self.signed(&plain(code));
        }
        Reply::new(200).json(plain(code))
    }

    /// The claims of a signed request of this merchant.
    fn open(&self, request: &LoggedRequest) -> Result<Claims, &'static str> {
        let claims = jwt::open(&request.body, self.secret.expose()).map_err(|rejected| match rejected {
            Rejected::Signature => "9042",
            Rejected::Unreadable => "9900",
        })?;
        match claims.text("merchantID") {
            None => Err("9005"),
            Some(merchant) if merchant != self.id => Err("9007"),
            Some(_) => Ok(claims),
        }
    }

    fn payment_token(&self, request: &LoggedRequest) -> Result<Reply, &'static str> {
        let claims = self.open(request)?;
        let mut books = self.books();
        let asked = Asked::read(&claims, &books)?;
        if let Some(known) = books.invoices.get(&asked.invoice) {
            let same = known.idempotency_id.is_some() && known.fingerprint == asked.fingerprint;
            if !(same && books.settings.replays_same_idempotency_id) {
                return Err("9015");
            }
            return Ok(self.issued(&known.token));
        }
        let token = books.new_token(&asked.invoice);
        let number = asked.invoice.clone();
        books.tokens.insert(token.clone(), number.clone());
        books.numbers.push(number.clone());
        let invoice = Invoice {
            number: number.clone(),
            idempotency_id: claims.text("idempotencyID"),
            user_defined: asked.user_defined,
            amount: asked.amount,
            token: token.clone(),
            token_used: false,
            expires_at: asked.expires_at,
            state: State::Issued,
            fingerprint: asked.fingerprint,
            hidden: 0,
            after: After {
                preauth: claims.text("transactionMode").as_deref() == Some("PREAUTH"),
                ..After::default()
            },
            returns: Returns {
                frontend: claims.text("frontendReturnUrl"),
                backend: claims.text("backendReturnUrl"),
            },
        };
        let open = books.is_open(&invoice);
        books.invoices.insert(number.clone(), invoice);
        if open && books.settings.pays_at_once {
            books.pay(&number, "0000");
        }
        Ok(self.issued(&token))
    }

    fn issued(&self, token: &str) -> Reply {
        let claims = json!({
            "webPaymentUrl": self.page_url(token),
            "paymentToken": token,
            "respCode": "0000",
            "respDesc": "Success",
        });
        self.signed(&claims.to_string())
    }

    fn payment(&self, request: &LoggedRequest) -> Result<Reply, &'static str> {
        let claims = Claims::parse(&request.body).ok_or("9900")?;
        let token = claims.text("paymentToken").ok_or("9005")?;
        let payment = claims.object("payment").ok_or("9005")?;
        let channel = payment
            .object("code")
            .and_then(|code| code.text("channelCode"))
            .ok_or("9005")?;
        let data = payment.object("data").unwrap_or_default();
        let scans = channel.contains("QR");
        if !scans
            && !["customerToken", "securePayToken", "cardNo"]
                .iter()
                .any(|name| data.has(name))
        {
            return Err("9005");
        }
        let mut books = self.books();
        let number = books.tokens.get(&token).cloned().ok_or("9040")?;
        let invoice = books.invoices.get(&number).ok_or("9040")?;
        if invoice.token_used || matches!(invoice.state, State::Paid { .. }) {
            return Err("9041");
        }
        if !books.is_open(invoice) {
            return Err("9040");
        }
        if let Some(invoice) = books.invoices.get_mut(&number) {
            invoice.token_used = true;
        }
        let told = books.settings.direct.pop_front();
        let code = match told {
            Some(DirectPayment::Decline(code)) => {
                books.fail(&number, &code);
                "2000"
            }
            Some(DirectPayment::Redirect) => "1001",
            Some(DirectPayment::Approve) | None if scans => "1005",
            Some(DirectPayment::Approve) | None => {
                books.pay(&number, "0000");
                "2000"
            }
        };
        Ok(flow(code, &channel, &number, &self.page_url(&token)))
    }

    fn payment_inquiry(&self, request: &LoggedRequest) -> Result<Reply, &'static str> {
        let claims = self.open(request)?;
        let mut books = self.books();
        let number = match (claims.text("invoiceNo"), claims.text("paymentToken")) {
            (Some(number), _) => Some(number),
            (None, Some(token)) => books.tokens.get(&token).cloned(),
            (None, None) => return Err("9005"),
        };
        let answer = books.answer(number.as_deref(), &self.id);
        Ok(self.signed(&answer))
    }
}

#[async_trait]
impl Handler for Merchant {
    fn is_inquiry(&self, method: &str, path: &str, body: &[u8]) -> bool {
        method == "GET"
            || endpoint(path).as_deref() == Some("paymentinquiry")
            || is_action(path) && only_looks(body)
            || stored_cards::only_looks(path)
    }

    async fn execute(&self, request: &LoggedRequest, gate: Gate, breaks: bool) -> Reply {
        if request.method == "POST" && is_action(&request.path) {
            return self.maintain(request, gate, breaks).await;
        }
        gate.pass().await;
        if is_page(&request.path) {
            return self.page(request).await;
        }
        if let Some(reply) = self.stored_cards(request, breaks) {
            return reply;
        }
        let found = endpoint(&request.path).filter(|_| request.method == "POST");
        let result = match found.as_deref() {
            Some("paymenttoken") => self.payment_token(request),
            Some("payment") => self.payment(request),
            Some("paymentinquiry") => self.payment_inquiry(request),
            _ => {
                let line = format!("{} {}", request.method, request.path);
                let text = format!("FakeTwoC2p has no {line}");
                self.books().unexpected.push(line);
                return Reply::new(501).header("Content-Type", "text/plain").body(text);
            }
        };
        // On a task of its own: the merchant may be waiting for this very answer.
        tokio::spawn(page::send(self.take_due()));
        if breaks {
            return Reply::new(500).json(plain("0999"));
        }
        result.unwrap_or_else(|code| self.refuse(code))
    }

    fn turn_away(&self, request: &LoggedRequest, why: TurnedAway) -> Reply {
        if is_action(&request.path) {
            return self.turn_away_action(request, why);
        }
        // None of these is documented; each says by its HTTP status what it is.
        match why {
            TurnedAway::Error => Reply::new(500).json(plain("0999")),
            TurnedAway::Throttled => Reply::new(429)
                .header("Content-Type", "text/plain")
                .body("Too many requests"),
            TurnedAway::StillRunning => Reply::new(503).header("Content-Type", "text/plain").body("Unavailable"),
        }
    }
}

/// What a token request asks for, checked.
struct Asked {
    invoice: String,
    amount: Money,
    user_defined: Vec<(String, String)>,
    expires_at: crate::clock::Timestamp,
    fingerprint: Vec<(String, String)>,
}

impl Asked {
    fn read(claims: &Claims, books: &Books) -> Result<Self, &'static str> {
        if MANDATORY.iter().any(|name| !claims.has(name)) {
            return Err("9005");
        }
        let invoice = claims.text("invoiceNo").ok_or("9004")?;
        if !invoice.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err("9004");
        }
        let longest = if claims.contains("paymentChannel", "QR") {
            20
        } else {
            50
        };
        let mut user_defined = Vec::new();
        for number in 1..=5 {
            let name = format!("userDefined{number}");
            if let Some(value) = claims.text(&name) {
                user_defined.push((name, value));
            }
        }
        let too_long = |name: &str, most: usize| claims.text(name).is_some_and(|text| text.chars().count() > most);
        if invoice.len() > longest
            || too_long("idempotencyID", 100)
            || too_long("description", 250)
            || user_defined.iter().any(|(_, value)| value.chars().count() > 150)
        {
            return Err("9006");
        }
        let now = books.clock.now();
        let expires_at = match claims.text("paymentExpiry") {
            None => now.after(TOKEN_LIFETIME),
            Some(text) => instant(&text, books.settings.zone).ok_or("9008")?,
        };
        Ok(Self {
            amount: amount(claims)?,
            invoice,
            user_defined,
            expires_at,
            fingerprint: claims.fingerprint(),
        })
    }
}

/// Twelve digits before the point and five behind it at most, greater than zero, and exact in its currency.
fn amount(claims: &Claims) -> Result<Money, &'static str> {
    let code = claims.text("currencyCode").ok_or("9004")?;
    let currency = Currency::parse(&code).map_err(|_| "9004")?;
    let text = claims.decimal("amount").ok_or("9004")?;
    let (whole, digits) = text.split_once('.').unwrap_or((&text, ""));
    if whole.len() > 12 || digits.len() > 5 || currency.code() != code {
        return Err("9004");
    }
    let amount = Money::parse(&text, currency).map_err(|_| "9004")?;
    if amount.minor() > 0 { Ok(amount) } else { Err("9004") }
}

/// The unsigned answer of Do Payment.
fn flow(code: &str, channel: &str, invoice: &str, page: &str) -> Reply {
    let body = match code {
        "2000" => json!({
            "channelCode": channel,
            "invoiceNo": invoice,
            "respCode": code,
            "respDesc": "Transaction is completed, inquire for its result.",
        }),
        "1005" => json!({
            "type": "URL",
            "expiryTimer": "900000",
            "expiryDescription": "QR will expire",
            "data": format!("https://pgw-static-sandbox.s3.amazonaws.com/images/qr/{invoice}.png"),
            "channelCode": channel,
            "respCode": code,
            "respDesc": "Pending for user scan QR.",
        }),
        _ => json!({
            "data": page,
            "channelCode": channel,
            "respCode": code,
            "respDesc": "Redirect to authenticate.",
        }),
    };
    Reply::new(200).json(body.to_string())
}

/// The endpoint's name in lower case: the gateway does not mind the case of paths.
fn endpoint(path: &str) -> Option<String> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    path.strip_prefix(PREFIX).map(str::to_ascii_lowercase)
}
