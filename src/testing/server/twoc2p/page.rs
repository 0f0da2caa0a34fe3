//! The hosted page, as a browser sees it, and how the payer and the result get back to the merchant.

use super::FakeTwoC2p;
use super::callbacks;
use super::endpoints::Merchant;
use super::existing;
use super::invoices::{Books, Invoice};
use super::settlement::Stage;
use crate::testing::server::{LoggedRequest, Reply};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use std::fmt::Write as _;

const PREFIX: &str = "/page/token/";
const JSON: &str = "application/json; charset=utf-8";

/// Where the payer and the result of an invoice go.
#[derive(Clone, Debug, Default)]
pub(super) struct Returns {
    pub(super) frontend: Option<String>,
    pub(super) backend: Option<String>,
}

/// Backend notifications that are due, each with the invoice as it was then.
#[derive(Debug)]
pub(super) struct Outbox {
    sends_at_once: bool,
    due: VecDeque<Invoice>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            sends_at_once: true,
            due: VecDeque::new(),
        }
    }
}

/// What the payer does on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Pay,
    Decline,
    Cancel,
    Leave,
}

impl Choice {
    const ALL: [(Self, &str, &str); 4] = [
        (Self::Pay, "pay", "Pay"),
        (Self::Decline, "decline", "Decline"),
        (Self::Cancel, "cancel", "Cancel"),
        (Self::Leave, "leave", "Leave"),
    ];

    fn read(body: &[u8]) -> Option<Self> {
        let (_, chosen) = url::form_urlencoded::parse(body).find(|(name, _)| name == "choice")?;
        let known = Self::ALL.into_iter().find(|(_, value, _)| *value == chosen);
        known.map(|(choice, ..)| choice)
    }
}

impl Books {
    /// A result is to be told to the merchant, if it said where.
    pub(super) fn tell_backend(&mut self, number: &str) {
        if let Some(invoice) = self
            .invoices
            .get(number)
            .filter(|found| found.returns.backend.is_some())
        {
            self.outbox.due.push_back(invoice.clone());
        }
    }
}

impl Merchant {
    /// The address of an invoice's page. The token in it is percent-encoded as the gateway does, in lower case.
    pub(super) fn page_url(&self, token: &str) -> String {
        let encoded = token.replace('+', "%2b").replace('/', "%2f").replace('=', "%3d");
        format!("{}{PREFIX}{encoded}", self.address.get().map_or("", String::as_str))
    }

    /// The page of a token, before and after the payer's choice. A POST is answered when the notification about it,
    /// if any is sent at once, has been taken by the merchant or has failed.
    pub(super) async fn page(&self, request: &LoggedRequest) -> Reply {
        let reply = match request.method.as_str() {
            "GET" => self.shown(&request.path),
            "POST" => self.chosen(&request.path, &request.body),
            _ => html(405, "Only GET and POST", ""),
        };
        send(self.take_due()).await;
        reply
    }

    fn shown(&self, path: &str) -> Reply {
        let books = self.books();
        let Some(invoice) = find(&books, path) else {
            return html(404, "There is no such payment", "");
        };
        if let Some(closed) = closed(&books, invoice) {
            return html(200, closed, "");
        }
        let mut body = format!(
            "<p>Merchant: {}</p><p>Invoice: {}</p><p>Amount: {}</p><form method=\"post\">",
            escaped(&self.id),
            escaped(&invoice.number),
            invoice.amount
        );
        for (_, value, label) in Choice::ALL {
            let _ = write!(body, "<button name=\"choice\" value=\"{value}\">{label}</button>");
        }
        body.push_str("</form>");
        html(200, "A payment page of a fake 2C2P", &body)
    }

    fn chosen(&self, path: &str, body: &[u8]) -> Reply {
        let mut books = self.books();
        let Some(invoice) = find(&books, path).cloned() else {
            return html(404, "There is no such payment", "");
        };
        if let Some(closed) = closed(&books, &invoice) {
            return html(200, closed, "");
        }
        match Choice::read(body) {
            None => return html(400, "There is no such choice", ""),
            Some(Choice::Leave) => return html(200, "You have left the page; it can be opened again", ""),
            Some(Choice::Pay) => books.pay(&invoice.number, "0000"),
            Some(Choice::Decline) => books.fail(&invoice.number, "4051"),
            Some(Choice::Cancel) => books.fail(&invoice.number, "0003"),
        }
        match invoice.returns.frontend.as_deref().filter(|to| callbacks::is_local(to)) {
            Some(to) => returning(to, &invoice.number),
            None => html(
                200,
                "The transaction is completed",
                "<p>There is nowhere to return to on this machine.</p>",
            ),
        }
    }

    /// What is to be sent now.
    pub(super) fn take_due(&self) -> Vec<(String, Vec<u8>)> {
        if self.books().outbox.sends_at_once {
            self.take_all_due()
        } else {
            Vec::new()
        }
    }

    fn take_all_due(&self) -> Vec<(String, Vec<u8>)> {
        let mut books = self.books();
        let due = std::mem::take(&mut books.outbox.due);
        due.into_iter()
            .filter_map(|invoice| {
                let body = self.seal(&books.result(&invoice, &self.id));
                Some((invoice.returns.backend?, body))
            })
            .collect()
    }
}

/// Sends notifications in their order; returns how many the merchant took.
pub(super) async fn send(due: Vec<(String, Vec<u8>)>) -> usize {
    let mut taken = 0;
    for (to, body) in due {
        taken += usize::from(callbacks::post(&to, JSON, body).await);
    }
    taken
}

/// Is it the address of a page?
pub(super) fn is_page(path: &str) -> bool {
    path.starts_with(PREFIX)
}

fn find<'a>(books: &'a Books, path: &str) -> Option<&'a Invoice> {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    // A plus stands for itself in a path, unlike in a form.
    let encoded = path.strip_prefix(PREFIX)?.replace('+', "%2b");
    let (token, _) = url::form_urlencoded::parse(encoded.as_bytes()).next()?;
    books.invoices.get(books.tokens.get(token.as_ref())?)
}

/// Why the page cannot be paid on any more.
fn closed(books: &Books, invoice: &Invoice) -> Option<&'static str> {
    match books.stage(invoice) {
        Stage::Voided => Some("This payment has been cancelled"),
        Stage::Approved | Stage::Ready | Stage::Settled | Stage::GivenBack => Some("This payment has been made"),
        Stage::Unpaid | Stage::Failed | Stage::Expired if books.is_open(invoice) => None,
        Stage::Unpaid | Stage::Failed | Stage::Expired => Some("This payment has expired"),
    }
}

/// A page that takes the payer back by itself, with the unsigned words of page api-payment-response-frontend. They are
/// the same for good and bad.
fn returning(to: &str, invoice: &str) -> Reply {
    let words = serde_json::json!({
        "locale": null,
        "invoiceNo": invoice,
        "channelCode": "CC",
        "respCode": "2000",
        "respDesc": "Transaction is completed, inquire for its result.",
    });
    let body = format!(
        "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"paymentResponse\" value=\"{}\">\
         <button>Back to the shop</button></form><script>document.forms[0].submit()</script>",
        escaped(to),
        STANDARD.encode(words.to_string())
    );
    html(200, "The transaction is completed", &body)
}

fn html(status: u16, title: &str, body: &str) -> Reply {
    Reply::new(status)
        .header("Content-Type", "text/html; charset=utf-8")
        .body(format!(
            "<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>{body}</body></html>"
        ))
}

fn escaped(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// The hosted page.
impl FakeTwoC2p {
    /// The address of an invoice's hosted page (`webPaymentUrl`), which its answer may have lost. A browser or a test
    /// can open it: GET shows merchant, invoice and amount, and a POST of the form field `choice` with `pay`,
    /// `decline`, `cancel` or `leave` is the payer's choice. All but `leave` are answered by a page whose form takes
    /// the payer back to the `frontendReturnUrl` of the token request, if that is on this machine.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[must_use]
    #[track_caller]
    pub fn page_url(&self, invoice: &str) -> String {
        let token = self.token(invoice);
        self.merchant.page_url(&token)
    }

    /// `false`: backend notifications wait for [`deliver_callbacks`](Self::deliver_callbacks). `true`, at first: a
    /// choice on the page and a Do Payment send theirs at once, to the `backendReturnUrl` of the token request, once,
    /// if that is on this machine. What a test does by itself ([`pay`](Self::pay), [`decline`](Self::decline)) is
    /// never sent before the next of these.
    pub fn set_callbacks(&self, at_once: bool) {
        self.merchant.books().outbox.sends_at_once = at_once;
    }

    /// Sends the backend notifications that wait, oldest first; each says what was true when it was due. Returns how
    /// many the merchant took (answered 2xx). None is sent twice.
    pub async fn deliver_callbacks(&self) -> usize {
        send(self.merchant.take_all_due()).await
    }

    /// Forgets the backend notifications that wait: 2C2P promises no delivery. Returns how many there were.
    pub fn drop_callbacks(&self) -> usize {
        std::mem::take(&mut self.merchant.books().outbox.due).len()
    }

    /// What the merchant has not been told yet about this invoice: how many backend notifications wait.
    ///
    /// # Panics
    /// When there is no such invoice.
    #[must_use]
    #[track_caller]
    pub fn callbacks_due(&self, invoice: &str) -> usize {
        let books = self.merchant.books();
        existing(books.invoices.get(invoice), invoice);
        let due = books.outbox.due.iter();
        due.filter(|due| due.number == invoice).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bank;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_address_and_no_form_makes_it_panic(path in ".{0,40}", form in proptest::collection::vec(any::<u8>(), 0..40)) {
            let books = Books::new(Bank::new());
            let page = format!("{PREFIX}{path}");
            prop_assert!(find(&books, &page).is_none() && find(&books, &path).is_none());
            let _ = Choice::read(&form);
        }
    }
}
