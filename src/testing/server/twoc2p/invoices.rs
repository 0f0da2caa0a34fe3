//! Invoices, their pages and tokens, and the results that inquiries and callbacks carry.

use super::maintenance::Maintenance;
use super::page::{Outbox, Returns};
use super::recurring::Plans;
use super::settlement::{After, Stage};
use super::stored_cards::Cards;
use super::{AmountForm, GATEWAY};
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::money::Money;
use crate::operation::OperationKind;
use crate::testing::{Bank, Movement};
use base64::Engine as _;
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a token can be paid with when the request does not say.
pub(super) const TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 60);

/// What the gateway remembers of one merchant.
#[derive(Debug)]
pub(super) struct Books {
    pub(super) bank: Bank,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) maintenance: Maintenance,
    pub(super) outbox: Outbox,
    pub(super) plans: Plans,
    pub(super) cards: Cards,
    pub(super) invoices: HashMap<String, Invoice>,
    /// In the order in which they were issued.
    pub(super) numbers: Vec<String>,
    pub(super) tokens: HashMap<String, String>,
    pub(super) unexpected: Vec<String>,
    transactions: u64,
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) replays_same_idempotency_id: bool,
    pub(super) signs_refusals: bool,
    pub(super) unpaid_code: String,
    pub(super) unknown_code: String,
    pub(super) expired_code: String,
    pub(super) inquiry_lag: u32,
    pub(super) pays_at_once: bool,
    pub(super) amount_form: AmountForm,
    /// Minutes east of UTC.
    pub(super) zone: i32,
    pub(super) direct: VecDeque<super::DirectPayment>,
}

#[derive(Clone, Debug)]
pub(super) struct Invoice {
    pub(super) number: String,
    pub(super) idempotency_id: Option<String>,
    pub(super) user_defined: Vec<(String, String)>,
    pub(super) amount: Money,
    pub(super) token: String,
    pub(super) token_used: bool,
    pub(super) expires_at: Timestamp,
    pub(super) state: State,
    /// The claims of the first request, for telling a repeat from another request.
    pub(super) fingerprint: Vec<(String, String)>,
    /// How many inquiries still do not see the payment.
    pub(super) hidden: u32,
    pub(super) after: After,
    pub(super) returns: Returns,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The token is out; nobody has paid or been refused.
    Issued,
    /// The payer's last try ended so. Another one may follow while the page lives.
    Failed { code: String, tran_ref: String },
    /// Money moved: 0000, or 5017 when it came late.
    Paid { code: String, tran_ref: String },
}

impl Books {
    pub(super) fn new(bank: Bank) -> Self {
        Self {
            bank,
            clock: Arc::new(SystemClock),
            settings: Settings {
                replays_same_idempotency_id: false,
                signs_refusals: false,
                unpaid_code: "2001".to_owned(),
                unknown_code: "2002".to_owned(),
                expired_code: "5009".to_owned(),
                inquiry_lag: 0,
                pays_at_once: false,
                amount_form: AmountForm::Number,
                zone: 7 * 60,
                direct: VecDeque::new(),
            },
            maintenance: Maintenance::default(),
            outbox: Outbox::default(),
            plans: Plans::default(),
            cards: Cards::default(),
            invoices: HashMap::new(),
            numbers: Vec::new(),
            tokens: HashMap::new(),
            unexpected: Vec::new(),
            transactions: 0,
        }
    }

    /// A token as the gateway's are: base64, with characters that an address cannot hold as they are.
    pub(super) fn new_token(&mut self, invoice: &str) -> String {
        self.transactions += 1;
        let text = format!("\u{3ff}>>token {} of {invoice}??", self.transactions);
        let mut token = base64::engine::general_purpose::STANDARD.encode(text);
        if !token.ends_with('=') {
            token.push_str("+/=");
        }
        token
    }

    pub(super) fn tran_ref(&mut self) -> String {
        self.transactions += 1;
        format!("{}", 8_000_000 + self.transactions)
    }

    /// Can the payer still pay on the page?
    pub(super) fn is_open(&self, invoice: &Invoice) -> bool {
        let unpaid = !matches!(invoice.state, State::Paid { .. });
        unpaid && !invoice.after.voided && self.clock.now() < invoice.expires_at
    }

    /// Money moves for the invoice, and the result is `code`.
    pub(super) fn pay(&mut self, number: &str, code: &str) {
        let tran_ref = self.tran_ref();
        let (hidden, now) = (self.settings.inquiry_lag, self.clock.now());
        let Some(invoice) = self.invoices.get_mut(number) else {
            return;
        };
        invoice.state = State::Paid {
            code: code.to_owned(),
            tran_ref: tran_ref.clone(),
        };
        invoice.hidden = hidden;
        invoice.after.paid_at = Some(now);
        let kind = if invoice.after.preauth {
            OperationKind::Authorize
        } else {
            OperationKind::Charge
        };
        let mut movement = Movement::new(kind, number, GATEWAY, tran_ref, invoice.amount)
            .with_key(invoice.idempotency_id.clone())
            .with_identity(number);
        for (_, value) in &invoice.user_defined {
            movement = movement.with_identity(value.as_str());
        }
        self.bank.record(movement);
        self.tell_backend(number);
    }

    /// The payer's try ends without money.
    pub(super) fn fail(&mut self, number: &str, code: &str) {
        let tran_ref = self.tran_ref();
        if let Some(invoice) = self.invoices.get_mut(number) {
            invoice.state = State::Failed {
                code: code.to_owned(),
                tran_ref,
            };
        }
        self.tell_backend(number);
    }

    /// The claims that answer an inquiry about `number`.
    pub(super) fn answer(&mut self, number: Option<&str>, merchant: &str) -> String {
        let settings = &self.settings;
        let Some(invoice) = number.and_then(|number| self.invoices.get_mut(number)) else {
            return plain(&settings.unknown_code);
        };
        if matches!(invoice.state, State::Paid { .. }) && invoice.hidden > 0 {
            invoice.hidden -= 1;
            return plain(&settings.unknown_code);
        }
        let mut invoice = invoice.clone();
        if invoice.state == State::Issued && !invoice.after.voided {
            let expired = self.clock.now() >= invoice.expires_at;
            if !expired {
                return plain(&settings.unpaid_code);
            }
            // 2001 and 2002 say nothing of an invoice; what is a result names it.
            if settings.expired_code.starts_with("20") {
                return plain(&settings.expired_code);
            }
            invoice.state = State::Failed {
                code: settings.expired_code.clone(),
                tran_ref: String::new(),
            };
        }
        self.result(&invoice, merchant)
    }

    /// The claims of an invoice that has a result, as inquiries and callbacks carry them. The amount is written by
    /// hand, since no float may touch it.
    pub(super) fn result(&self, invoice: &Invoice, merchant: &str) -> String {
        let (code, tran_ref) = match &invoice.state {
            State::Issued => (self.settings.unpaid_code.as_str(), ""),
            State::Failed { code, tran_ref } | State::Paid { code, tran_ref } => (code.as_str(), tran_ref.as_str()),
        };
        let code = match self.stage(invoice) {
            Stage::Voided => "4047",
            Stage::GivenBack => "4120",
            Stage::Unpaid | Stage::Failed | Stage::Expired | Stage::Approved | Stage::Ready | Stage::Settled => code,
        };
        let paid = matches!(invoice.state, State::Paid { .. });
        let mut claims = Map::new();
        let mut put = |name: &str, value: &str| claims.insert(name.to_owned(), Value::from(value));
        put("merchantID", merchant);
        put("invoiceNo", &invoice.number);
        put("currencyCode", invoice.amount.currency().code());
        put("transactionDateTime", &local(self.clock.now(), self.settings.zone));
        put("agentCode", "SCB");
        put("channelCode", "VI");
        put("approvalCode", if paid { "717282" } else { "" });
        put("referenceNo", if paid { "00010001" } else { "" });
        put("tranRef", tran_ref);
        put("accountNo", "411111XXXXXX1111");
        put("customerToken", "");
        put("cardType", "CREDIT");
        put("issuerCountry", "TH");
        put("eci", "05");
        put("paymentScheme", "VI");
        put("paymentID", &format!("ccpp_{tran_ref}"));
        put("idempotencyID", invoice.idempotency_id.as_deref().unwrap_or_default());
        for number in 1..=5 {
            put(&format!("userDefined{number}"), "");
        }
        for (name, value) in &invoice.user_defined {
            put(name, value);
        }
        put("respCode", code);
        put("respDesc", description(code));
        claims.insert("loyaltyPoints".to_owned(), Value::Null);
        let mut text = Value::Object(claims).to_string();
        text.truncate(text.len() - 1);
        let _ = write!(
            text,
            ",\"amount\":{}}}",
            written(invoice.amount, self.settings.amount_form)
        );
        text
    }
}

/// Claims that say a code and nothing else.
pub(super) fn plain(code: &str) -> String {
    serde_json::json!({ "respCode": code, "respDesc": description(code) }).to_string()
}

/// The amount as a piece of JSON.
fn written(amount: Money, form: AmountForm) -> String {
    let decimal = amount.to_decimal();
    match form {
        AmountForm::Number => decimal,
        AmountForm::Text => format!("\"{decimal}\""),
        AmountForm::ShortNumber => match decimal.split_once('.') {
            None => decimal,
            Some((whole, digits)) => {
                let digits = digits.trim_end_matches('0');
                format!("{whole}.{}", if digits.is_empty() { "0" } else { digits })
            }
        },
        AmountForm::Padded => {
            let (whole, digits) = decimal.split_once('.').unwrap_or((&decimal, ""));
            format!("\"{whole:0>12}.{digits:0<5}\"")
        }
    }
}

/// `yyyyMMddHHmmss` in the merchant's zone, which is not said.
pub(super) fn local(now: Timestamp, zone: i32) -> String {
    let offset = jiff::tz::Offset::from_seconds(zone * 60).unwrap_or(jiff::tz::Offset::UTC);
    match jiff::Timestamp::from_millisecond(now.unix_millis()) {
        Ok(instant) => offset.to_datetime(instant).strftime("%Y%m%d%H%M%S").to_string(),
        Err(_) => String::new(),
    }
}

/// The instant of `yyyy-MM-dd HH:mm:ss` in the merchant's zone.
pub(super) fn instant(text: &str, zone: i32) -> Option<Timestamp> {
    if text.len() != 19 {
        return None;
    }
    let local = jiff::civil::DateTime::strptime("%Y-%m-%d %H:%M:%S", text).ok()?;
    let offset = jiff::tz::Offset::from_seconds(zone * 60).ok()?;
    let instant = offset.to_timestamp(local).ok()?;
    Some(Timestamp::from_unix_millis(instant.as_millisecond()))
}

/// Our own words for the codes that the fake uses.
pub(super) fn description(code: &str) -> &'static str {
    match code {
        "0000" => "Success",
        "0001" => "Transaction is pending",
        "0003" => "Transaction is cancelled",
        "0999" => "System error",
        "2001" => "Transaction in progress",
        "2002" => "Transaction not found",
        "4047" => "Transaction is cancelled by the merchant",
        "4051" => "Insufficient funds",
        "4120" => "Refunded",
        "5009" => "Payment expired",
        "5017" => "Paid after expiry",
        "9004" => "A value is invalid",
        "9005" => "A mandatory field is missing",
        "9006" => "A value is too long",
        "9007" => "Invalid merchant",
        "9008" => "Invalid payment expiry",
        "9015" => "Existing Invoice Number",
        "9040" => "Invalid token",
        "9041" => "Payment token already used",
        "9042" => "Hash value mismatch",
        "9202" => "Invalid card token",
        "9900" => "The payload could not be read",
        _ => "Failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::Currency;

    #[test]
    fn amounts_are_written_in_every_form_seen() {
        let thb = Money::parse("2000.10", Currency::THB).unwrap();
        let yen = Money::parse("500", Currency::JPY).unwrap();
        for (form, expected, expected_yen) in [
            (AmountForm::Number, "2000.10", "500"),
            (AmountForm::ShortNumber, "2000.1", "500"),
            (AmountForm::Text, "\"2000.10\"", "\"500\""),
            (AmountForm::Padded, "\"000000002000.10000\"", "\"000000000500.00000\""),
        ] {
            assert_eq!(written(thb, form), expected);
            assert_eq!(written(yen, form), expected_yen);
        }
    }

    #[test]
    fn local_times_are_those_of_the_merchant() {
        let now = Timestamp::from_unix_seconds(1_767_225_600);
        assert_eq!(local(now, 420), "20260101070000");
        assert_eq!(instant("2026-01-01 07:00:00", 420), Some(now));
        for text in ["2026-01-01", "2026-13-01 00:00:00", "2026-01-01T07:00:00", ""] {
            assert_eq!(instant(text, 420), None, "{text}");
        }
    }

    #[test]
    fn tokens_need_percent_encoding() {
        let token = Books::new(Bank::new()).new_token("INV1");
        assert!(token.contains('+') || token.contains('/'), "{token}");
        assert!(token.ends_with('='), "{token}");
    }
}
