//! Keeps everything that the crate and its dependencies say, and finds the canaries in it.

use payonce::error::Error;
use payonce::outcome::{NextStep, Outcome};
use payonce::secret::Secret;
use payonce::testing::server::LoggedRequest;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fmt::{self, Debug, Write as _};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Metadata, Subscriber, span};

pub(super) const API_KEY: &str = "sk_test_CANARYkey0001CANARYkey0001";
pub(super) const WEBHOOK_SECRET: &str = "whsec_CANARYhook0001CANARYhook0001";
pub(super) const TWOC2P_SECRET: &str = "CANARY2C2P0001CANARY2C2P0001CANARY2C2P0001CANARY2C2P0001";
pub(super) const CLIENT_SECRET: &str = "pi_3Canary_secret_CANARYclient0001";
pub(super) const CUSTOMER_TOKEN: &str = "CANARYcustomertoken0001CANARYcustomertoken0001CANARY";
pub(super) const METADATA: &str = "CANARYmetadata0001";
pub(super) const CARD: &str = "4242 4242 4242 4242";
pub(super) const OTHER_CARD: &str = "4111111111111111";
/// Stands in bodies, in places that no adapter reads.
pub(super) const BODY: &str = "CANARYbody0001";
/// Of links to hosted pages: kept in the journal while a payer can still use them.
pub(super) const PAGE: &str = "page";

const CANARIES: [(&str, &str); 11] = [
    ("API key", API_KEY),
    ("webhook secret", WEBHOOK_SECRET),
    ("2C2P's secret", TWOC2P_SECRET),
    ("client secret", "CANARYclient0001"),
    ("customer token", CUSTOMER_TOKEN),
    ("metadata", METADATA),
    ("card number", CARD),
    ("card number", OTHER_CARD),
    ("body", BODY),
    ("authorization", "Bearer sk_"),
    // The first bytes of every token that 2C2P and this crate sign: a body, encoded.
    ("token", "eyJhbGciOiJIUzI1NiI"),
];

thread_local! {
    /// What was logged on this thread since a watch began. The tests run all their tasks on the thread that they are on.
    static LINES: RefCell<Option<Vec<Line>>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Line {
    /// Whose line it is.
    target: String,
    text: String,
}

/// Sees all lines that are logged on this thread, and all texts that it is shown.
pub(super) struct Watch {
    canaries: Vec<Canary>,
    texts: Vec<(String, String)>,
    _listening: DefaultGuard,
}

impl Watch {
    pub(super) fn start() -> Self {
        static LOGGER: Once = Once::new();
        // Some dependencies speak through `log`. The logger is the process's, the lines are the thread's.
        LOGGER.call_once(|| {
            log::set_logger(&Lines).unwrap();
            log::set_max_level(log::LevelFilter::Trace);
        });
        LINES.set(Some(Vec::new()));
        Self {
            canaries: CANARIES.map(|(name, text)| Canary::new(name, text)).to_vec(),
            texts: Vec::new(),
            _listening: tracing::subscriber::set_default(Lines),
        }
    }

    pub(super) fn canary(&mut self, name: &'static str, text: impl AsRef<str>) {
        let text = text.as_ref();
        assert!(
            text.len() >= 12,
            "{name} is too short to be told from other text: {text}"
        );
        self.canaries.push(Canary::new(name, text));
    }

    /// Whatever a request held besides its address must be printed nowhere, not even its beginning.
    pub(super) fn requests(&mut self, requests: &[LoggedRequest]) {
        for request in requests {
            let body = request.text();
            if let Some(beginning) = body.get(..48) {
                self.canary("request body", beginning);
            }
            self.show("request", request);
        }
        self.canaries.sort_by(|one, other| one.text.cmp(&other.text));
        self.canaries.dedup_by(|one, other| one.text == other.text);
    }

    /// Looks at what `{:?}` and `{:#?}` make of it.
    pub(super) fn show(&mut self, label: &str, value: &dyn Debug) {
        self.texts.push((label.to_owned(), format!("{value:?}\n{value:#?}")));
    }

    /// Looks at an error, its causes, and all their forms.
    pub(super) fn error(&mut self, label: &str, error: &dyn StdError) {
        let mut text = String::new();
        let mut next = Some(error);
        while let Some(error) = next {
            writeln!(text, "{error}\n{error:#}\n{error:?}\n{error:#?}").unwrap();
            next = error.source();
        }
        self.texts.push((label.to_owned(), text));
    }

    /// Looks at the result of a call. What a payer may hold becomes a canary itself.
    pub(super) fn result(&mut self, label: &str, result: &Result<Outcome, Error>) -> &'static str {
        match result {
            Ok(outcome) => {
                self.show(label, outcome);
                if let Outcome::Pending(pending) = outcome {
                    for (name, secret) in secrets(&pending.next) {
                        self.canary(name, secret.expose());
                    }
                }
                outcome.as_str()
            }
            Err(error) => {
                self.error(label, error);
                "error"
            }
        }
    }

    /// The names of the crate's spans and events so far, in order; and one more time all that was logged with them.
    pub(super) fn story(&self) -> (Vec<String>, String) {
        LINES.with_borrow(|lines| {
            let lines = lines.iter().flatten().filter(|line| line.target.starts_with("payonce"));
            let texts: Vec<&str> = lines.map(|line| line.text.as_str()).collect();
            let name = |text: &&str| {
                let rest = text.split_once("payonce.")?.1;
                Some(rest.split(' ').next()?.to_owned())
            };
            (texts.iter().filter_map(name).collect(), texts.join("\n"))
        })
    }

    /// Fails when a canary was seen. `events` must be among the names that were logged, or nobody was listening.
    #[track_caller]
    pub(super) fn judge(self, events: &[&str]) {
        let lines = LINES.take().unwrap();
        for event in events {
            assert!(
                lines.iter().any(|line| line.text.contains(event)),
                "{event} was not logged"
            );
        }
        // Dependencies at TRACE are held to the same: see `redaction.rs` for what they say.
        let logged = lines.iter().map(|line| (&line.target, &line.text));
        let shown = self.texts.iter().map(|(label, text)| (label, text));
        let mut complaints = BTreeSet::new();
        for (label, text) in logged.chain(shown) {
            let squeezed = squeezed(text);
            for canary in self.canaries.iter().filter(|canary| canary.is_in(text, &squeezed)) {
                // The canary itself is shown; it is the test's own.
                let line = |line: &&str| canary.is_in(line, &self::squeezed(line));
                let around = text.split('\n').find(line).unwrap_or(text);
                complaints.insert(format!("{} in {label}: {around:.300}", canary.name));
            }
        }
        let complaints: Vec<String> = complaints.into_iter().collect();
        assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    }

    /// Fails when the bytes of a file hold a canary, those of the name `but` excepted.
    #[track_caller]
    pub(super) fn judge_bytes(&self, bytes: &[u8], but: Option<&str>) {
        let text = String::from_utf8_lossy(bytes);
        let squeezed = squeezed(&text);
        let mut wanted = self.canaries.iter().filter(|canary| Some(canary.name) != but);
        if let Some(canary) = wanted.find(|canary| canary.is_in(&text, &squeezed)) {
            let at = text.find(&canary.text).unwrap_or_default();
            let before = text[..at].chars().rev().take(300).collect::<Vec<_>>();
            let around: String = before.into_iter().rev().chain(text[at..].chars().take(100)).collect();
            panic!("{} in the file: {around}", canary.name);
        }
    }

    /// Is a canary of this name in these bytes?
    pub(super) fn is_in(&self, bytes: &[u8], name: &str) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let squeezed = squeezed(&text);
        let mut named = self.canaries.iter().filter(|canary| canary.name == name);
        named.any(|canary| canary.is_in(&text, &squeezed))
    }
}

/// A text that must be nowhere, in all the forms in which it could be there.
#[derive(Clone)]
struct Canary {
    name: &'static str,
    text: String,
    /// As it is, escaped, as a form or an address would write it, and as a list of bytes.
    forms: Vec<String>,
    /// Of a card number: without spaces.
    digits: Option<String>,
}

impl Canary {
    fn new(name: &'static str, text: &str) -> Self {
        let bytes = format!("{:?}", text.as_bytes());
        let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        let escaped = format!("{text:?}");
        let mut forms = vec![
            text.to_owned(),
            escaped.trim_matches('"').to_owned(),
            encoded,
            bytes.trim_matches(['[', ']']).to_owned(),
        ];
        forms.dedup();
        let digits = squeezed(text);
        Self {
            name,
            text: text.to_owned(),
            forms,
            digits: (digits.len() >= 13 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits),
        }
    }

    fn is_in(&self, text: &str, squeezed: &str) -> bool {
        let digits = self.digits.as_ref();
        self.forms.iter().any(|form| text.contains(form)) || digits.is_some_and(|digits| squeezed.contains(digits))
    }
}

fn secrets(next: &NextStep) -> Vec<(&'static str, &Secret)> {
    match next {
        NextStep::Redirect { url } => vec![(PAGE, url)],
        NextStep::Confirm { client_secret } => vec![("client secret", client_secret)],
        NextStep::QrCode { data } => vec![("QR code", data)],
        NextStep::PaySlip { url } => vec![("pay slip", url)],
        NextStep::OpenApp { url, fallback } => {
            let fallback = fallback.iter().map(|url| ("fallback page", url));
            std::iter::once(("app link", url)).chain(fallback).collect()
        }
        NextStep::Wait | _ => Vec::new(),
    }
}

fn squeezed(text: &str) -> String {
    text.replace("%20", "").replace([' ', '-', '+'], "")
}

/// Takes down everything, at every level.
struct Lines;

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

fn take_down(metadata: &Metadata<'_>, fields: Fields) {
    let text = format!("{} {}{}", metadata.level(), metadata.name(), fields.0);
    keep(metadata.target(), text);
}

fn keep(target: &str, text: String) {
    let target = target.to_owned();
    // A line may come while the thread ends.
    let _ = LINES.try_with(|lines| {
        lines
            .borrow_mut()
            .as_mut()
            .map(|lines| lines.push(Line { target, text }))
    });
}

impl Subscriber for Lines {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        take_down(span.metadata(), fields);
        span::Id::from_u64(1)
    }

    fn record(&self, _span: &span::Id, values: &span::Record<'_>) {
        let mut fields = Fields(String::new());
        values.record(&mut fields);
        keep("a span", fields.0);
    }

    fn record_follows_from(&self, _span: &span::Id, _follows: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        take_down(event.metadata(), fields);
    }

    fn enter(&self, _span: &span::Id) {}

    fn exit(&self, _span: &span::Id) {}
}

impl log::Log for Lines {
    fn enabled(&self, _metadata: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        keep(record.target(), format!("{} {}", record.level(), record.args()));
    }

    fn flush(&self) {}
}

impl Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
