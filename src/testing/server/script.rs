//! A server that says what a test wrote down, and complains about everything else.

use super::http::{Gate, Handler, LoggedRequest, Server, TurnedAway};
use super::route::Route;
use crate::testing::Fault;
use async_trait::async_trait;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One answer of a [`ScriptedServer`].
///
/// ```
/// use payonce::testing::server::Reply;
/// use payonce::testing::Fault;
///
/// let replay = Reply::new(200).header("Idempotent-Replayed", "true").json(r#"{"id":"pi_1"}"#);
/// let lost = Reply::new(200).json(r#"{"id":"pi_1"}"#).fault(Fault::HalfBodyAfterEffect);
/// ```
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) fault: Option<Fault>,
    pub(super) delay: Duration,
    effect: Option<Effect>,
}

type Effect = Box<dyn FnOnce(&LoggedRequest) + Send>;

impl Reply {
    /// An empty answer with this HTTP status.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            fault: None,
            delay: Duration::ZERO,
            effect: None,
        }
    }

    /// Adds a header, exactly as written. A header that HTTP forbids breaks the connection instead.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, byte for byte, without a content type.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body, with the content type `application/json`. The text is sent as it is, JSON or not.
    #[must_use]
    pub fn json(self, text: impl Into<String>) -> Self {
        self.header("Content-Type", "application/json").body(text.into())
    }

    /// Sets the body, with the content type `text/html`.
    #[must_use]
    pub fn html(self, text: impl Into<String>) -> Self {
        self.header("Content-Type", "text/html").body(text.into())
    }

    /// The page of a box in front of the gateway: 502, HTML.
    #[must_use]
    pub fn bad_gateway() -> Self {
        Self::new(502).html("<html><body><h1>502 Bad Gateway</h1></body></html>")
    }

    /// Breaks this answer off. Only the faults of the connection do something here: close, reset, stall, half headers,
    /// half body. Those *after reading* also skip the [`effect`](Self::effect).
    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Waits in real time before answering.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Does something with the request when it is executed, such as to [record](crate::testing::Bank::record) money.
    #[must_use]
    pub fn effect(mut self, effect: impl FnOnce(&LoggedRequest) + Send + 'static) -> Self {
        self.effect = Some(Box::new(effect));
        self
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .field("fault", &self.fault)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// A server on 127.0.0.1 whose every answer a test has written down.
///
/// A request for which nothing is written down is answered 501 with a text that names it, and is listed by
/// [`unexpected`](Self::unexpected): it never looks like an answer of a gateway.
///
/// ```
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// use payonce::testing::server::{Reply, ScriptedServer};
/// use payonce::transport::{Http, Method, Request, Transport};
///
/// let server = ScriptedServer::start();
/// server.reply("GET /v1/events", Reply::new(200).json("{}"));
///
/// let http = Http::new().unwrap();
/// let events = || Request::new(Method::Get, format!("{}/v1/events?limit=1", server.url()));
/// assert_eq!(http.exchange(events()).await.unwrap().status, 200);
/// assert_eq!(http.exchange(events()).await.unwrap().status, 501);
/// assert_eq!(server.unexpected(), ["GET /v1/events?limit=1"]);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ScriptedServer {
    server: Server,
    script: Arc<Script>,
}

impl ScriptedServer {
    /// Listens on a free port of 127.0.0.1 until it is dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or when no port can be had.
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        let script = Arc::new(Script::default());
        Self {
            server: Server::start(Arc::<Script>::clone(&script)),
            script,
        }
    }

    /// Scheme, host and port, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Answers the next request of a route, once. Several for one route are used up in their order. See [`Route`].
    ///
    /// # Panics
    /// When the route is not in that form.
    #[track_caller]
    pub fn reply(&self, route: &str, reply: Reply) -> &Self {
        self.script.lines().once.push_back((Route::new(route), reply));
        self
    }

    /// Answers every request of a route for which no single [`reply`](Self::reply) is left. A later call for the
    /// same route replaces the earlier one.
    ///
    /// # Panics
    /// When the route is not in that form.
    #[track_caller]
    pub fn always(&self, route: &str, answer: impl Fn(&LoggedRequest) -> Reply + Send + Sync + 'static) -> &Self {
        let route = Route::new(route);
        let mut lines = self.script.lines();
        lines.always.retain(|(other, _)| *other != route);
        lines.always.push((route, Arc::new(answer)));
        self
    }

    /// All requests, in the order in which they were read.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.server.requests()
    }

    /// How many requests of this route there were. See [`Route`].
    ///
    /// # Panics
    /// When the route is not in that form.
    #[must_use]
    #[track_caller]
    pub fn count(&self, route: &str) -> usize {
        self.requests().iter().filter(|request| request.is(route)).count()
    }

    /// The requests for which nothing was written down, as `METHOD /path?query`.
    #[must_use]
    pub fn unexpected(&self) -> Vec<String> {
        self.script.lines().unexpected.clone()
    }

    /// The routes of the single replies that no request has asked for yet.
    #[must_use]
    pub fn left_over(&self) -> Vec<String> {
        let lines = self.script.lines();
        lines.once.iter().map(|(route, _)| route.to_string()).collect()
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
}

type Answers = Arc<dyn Fn(&LoggedRequest) -> Reply + Send + Sync>;

#[derive(Default)]
struct Script(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    once: VecDeque<(Route, Reply)>,
    always: Vec<(Route, Answers)>,
    unexpected: Vec<String>,
}

impl Script {
    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, request: &LoggedRequest) -> Reply {
        let mut lines = self.lines();
        let matches = |route: &Route| route.matches(&request.method, &request.path);
        let once = lines.once.iter().position(|(route, _)| matches(route));
        if let Some((_, reply)) = once.and_then(|at| lines.once.remove(at)) {
            return reply;
        }
        let always = lines.always.iter().find(|(route, _)| matches(route));
        if let Some(answer) = always.map(|(_, answer)| Arc::clone(answer)) {
            // Not under the lock: the answer may add to the script.
            drop(lines);
            return answer(request);
        }
        let line = format!("{} {}", request.method, request.path);
        let text = format!("nothing is written down for {line}");
        lines.unexpected.push(line);
        Reply::new(501).header("Content-Type", "text/plain").body(text)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("once", &self.lines().once)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Handler for Script {
    fn is_inquiry(&self, method: &str, _path: &str, _body: &[u8]) -> bool {
        method == "GET"
    }

    async fn execute(&self, request: &LoggedRequest, gate: Gate, _breaks: bool) -> Reply {
        gate.pass().await;
        let mut reply = self.find(request);
        let executed = reply.fault.is_none_or(Fault::has_effect);
        if let Some(effect) = reply.effect.take().filter(|_| executed) {
            effect(request);
        }
        reply
    }

    fn turn_away(&self, _request: &LoggedRequest, _why: TurnedAway) -> Reply {
        // Nobody plans faults for a script: its replies are the faults.
        Reply::new(500)
    }
}
