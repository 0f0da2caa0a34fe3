//! A small HTTP/1.1 server on 127.0.0.1 that keeps a log and breaks off where a [`Fault`] says.

use super::route::Route;
use super::script::Reply;
use super::socket::{Cut, Scissors, Socket};
use crate::testing::{Fault, FaultPlan};
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// The longest that a stalled answer keeps a client waiting. Stalls also end when the client gives up, and when the
/// server is dropped.
const LONGEST_STALL: Duration = Duration::from_secs(60);

/// One request as the server read it, complete.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// The method.
    pub method: String,
    /// The path, with the query.
    pub path: String,
    /// Header names in lower case, and values; what is not text is left out.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Vec<u8>,
    /// The number of the connection that it came on, from 1.
    pub connection: usize,
    /// What went wrong with it, by plan.
    pub fault: Option<Fault>,
}

impl LoggedRequest {
    /// The first value of a header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Is it a request of this route? See [`Route`].
    ///
    /// # Panics
    /// When the route is not in that form.
    #[must_use]
    #[track_caller]
    pub fn is(&self, route: &str) -> bool {
        Route::new(route).matches(&self.method, &self.path)
    }
}

impl fmt::Debug for LoggedRequest {
    /// Without headers and body: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggedRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("bytes", &self.body.len())
            .field("connection", &self.connection)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

/// Keeps requests waiting inside of a fake gateway: received, marked as running, not executed. They go on when this
/// is released or dropped, even if their client has given up meanwhile.
#[derive(Debug)]
pub struct Hold {
    door: Arc<Door>,
}

impl Hold {
    /// Returns once `count` requests wait, or have waited. Waits for ever when they never come, so bound it.
    pub async fn reached(&self, count: usize) {
        let mut waiting = self.door.waiting.subscribe();
        // The sender lives in `self`, so that this cannot fail.
        let _ = waiting.wait_for(|waiting| *waiting >= count).await;
    }

    /// Lets them go on, and lets later ones pass.
    pub fn release(self) {}
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.door.open.send_replace(true);
    }
}

#[derive(Debug)]
struct Door {
    route: Route,
    waiting: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

/// What a handler passes at the moment before it executes a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate(Option<Arc<Door>>);

impl Gate {
    pub(super) async fn pass(&self) {
        if let Some(door) = &self.0 {
            door.waiting.send_modify(|waiting| *waiting += 1);
            let _ = door.open.subscribe().wait_for(|open| *open).await;
        }
    }
}

/// What a fake does with requests. It runs on a task of its own: a client that gives up does not stop it.
#[async_trait]
pub(super) trait Handler: fmt::Debug + Send + Sync + 'static {
    /// Can a request of this kind never move money? Where the path does not tell, the body does.
    fn is_inquiry(&self, method: &str, path: &str, body: &[u8]) -> bool;

    /// Executes the request. When `breaks` is set and it is really executed, the gateway answers, and remembers, an
    /// internal error instead.
    async fn execute(&self, request: &LoggedRequest, gate: Gate, breaks: bool) -> Reply;

    /// The gateway's own form of an answer before anything was executed.
    fn turn_away(&self, request: &LoggedRequest, why: TurnedAway) -> Reply;
}

/// Why a gateway answers before it has done anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnedAway {
    /// [`Fault::ErrorBeforeEffect`]
    Error,
    /// [`Fault::Throttle`]
    Throttled,
    /// [`Fault::StillRunning`]
    StillRunning,
}

/// The listening socket, the connections and the log.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
    connections: Arc<Mutex<JoinSet<()>>>,
}

#[derive(Debug)]
struct Shared {
    handler: Arc<dyn Handler>,
    log: Mutex<Vec<LoggedRequest>>,
    faults: Mutex<FaultPlan>,
    doors: Mutex<Vec<Arc<Door>>>,
    connected: AtomicUsize,
    executions: Mutex<JoinSet<()>>,
}

impl Server {
    /// Listens on a free port of 127.0.0.1.
    #[track_caller]
    pub(super) fn start(handler: Arc<dyn Handler>) -> Self {
        #[allow(
            clippy::expect_used,
            reason = "without a loopback socket no test of this kind can run"
        )]
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port on 127.0.0.1");
        #[allow(clippy::expect_used, reason = "as above")]
        let address = listener.local_addr().expect("the address of a bound socket");
        let server = Self {
            address,
            shared: Arc::new(Shared {
                handler,
                log: Mutex::default(),
                faults: Mutex::default(),
                doors: Mutex::default(),
                connected: AtomicUsize::new(0),
                executions: Mutex::default(),
            }),
            accepting: Mutex::default(),
            connections: Arc::default(),
        };
        server.accept(listener);
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<LoggedRequest> {
        lock(&self.shared.log).clone()
    }

    pub(super) fn set_faults(&self, plan: FaultPlan) {
        *lock(&self.shared.faults) = plan;
    }

    #[track_caller]
    pub(super) fn hold(&self, route: &str) -> Hold {
        let door = Arc::new(Door {
            route: Route::new(route),
            waiting: watch::Sender::new(0),
            open: watch::Sender::new(false),
        });
        lock(&self.shared.doors).push(Arc::clone(&door));
        Hold { door }
    }

    /// Closes the socket and every connection: from now on connections are refused. What is being executed goes on.
    pub(super) async fn stop_listening(&self) {
        let accepting = lock(&self.accepting).take();
        if let Some(accepting) = accepting {
            accepting.abort();
            // Awaited, so that the socket is closed when this returns.
            let _ = accepting.await;
        }
        let mut connections = std::mem::take(&mut *lock(&self.connections));
        connections.shutdown().await;
    }

    /// Listens again, on the same port.
    pub(super) async fn listen_again(&self) -> io::Result<()> {
        self.stop_listening().await;
        self.accept(bind(self.address)?);
        Ok(())
    }

    fn accept(&self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        let connections = Arc::clone(&self.connections);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = shared.connected.fetch_add(1, Ordering::Relaxed) + 1;
                let _ = stream.set_nodelay(true);
                let scissors = Scissors::default();
                let socket = Socket::new(stream, scissors.clone());
                let connection = talk(Arc::clone(&shared), socket, scissors, number);
                let mut connections = lock(&connections);
                while connections.try_join_next().is_some() {}
                connections.spawn(connection);
            }
        });
        *lock(&self.accepting) = Some(accepting);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(accepting) = lock(&self.accepting).take() {
            accepting.abort();
        }
        lock(&self.connections).abort_all();
        lock(&self.shared.executions).abort_all();
    }
}

/// One connection, kept alive until one side closes it.
async fn talk(shared: Arc<Shared>, socket: Socket, scissors: Scissors, number: usize) {
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        let scissors = scissors.clone();
        async move { shared.serve(request, &scissors, number).await }
    });
    // Errors are connections that ended early, most of them on purpose.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

/// The connection ends here, without an answer.
#[derive(Debug)]
struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection ends here")
    }
}

impl std::error::Error for Broken {}

type Answer = Result<hyper::Response<Full<Bytes>>, Broken>;

impl Shared {
    async fn serve(&self, request: hyper::Request<Incoming>, scissors: &Scissors, connection: usize) -> Answer {
        let request = Arc::new(self.read(request, connection).await?);
        let reply = match request.fault {
            None => self.execute(&request, false).await?,
            Some(fault) => match fault {
                Fault::CloseAfterReading | Fault::ResetAfterReading | Fault::StallAfterReading => {
                    Reply::new(200).fault(fault)
                }
                Fault::ErrorBeforeEffect => self.handler.turn_away(&request, TurnedAway::Error),
                Fault::Throttle => self.handler.turn_away(&request, TurnedAway::Throttled),
                Fault::StillRunning => self.handler.turn_away(&request, TurnedAway::StillRunning),
                Fault::HtmlBeforeEffect => Reply::bad_gateway(),
                Fault::ErrorAfterEffect => self.execute(&request, true).await?,
                Fault::HtmlAfterEffect => {
                    self.execute(&request, false).await?;
                    Reply::bad_gateway()
                }
                Fault::CloseAfterEffect
                | Fault::ResetAfterEffect
                | Fault::StallAfterEffect
                | Fault::HalfHeadersAfterEffect
                | Fault::HalfBodyAfterEffect => self.execute(&request, false).await?.fault(fault),
            },
        };
        answer(reply, scissors).await
    }

    /// Reads the request to its end, decides about its fault, and writes it down.
    async fn read(&self, request: hyper::Request<Incoming>, connection: usize) -> Result<LoggedRequest, Broken> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Broken)?.to_bytes();
        let headers = head
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())))
            .collect();
        let method = head.method.as_str().to_owned();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let inquiry = self.handler.is_inquiry(&method, &path, &body);
        // Both locks at once, so that the log has the order in which the plan was used up.
        let mut faults = lock(&self.faults);
        let request = LoggedRequest {
            fault: faults.next(&method, &path, inquiry),
            method,
            path,
            headers,
            body: body.to_vec(),
            connection,
        };
        lock(&self.log).push(request.clone());
        Ok(request)
    }

    /// Executes on a task of its own, which goes on when this connection is gone.
    async fn execute(&self, request: &Arc<LoggedRequest>, breaks: bool) -> Result<Reply, Broken> {
        let door = lock(&self.doors)
            .iter()
            .find(|door| !*door.open.borrow() && door.route.matches(&request.method, &request.path))
            .cloned();
        let (done, reply) = oneshot::channel();
        let (handler, request) = (Arc::clone(&self.handler), Arc::clone(request));
        let execution = async move {
            let _ = done.send(handler.execute(&request, Gate(door), breaks).await);
        };
        {
            let mut executions = lock(&self.executions);
            while executions.try_join_next().is_some() {}
            executions.spawn(execution);
        }
        // A handler that panicked has said why; its client sees a closed connection.
        reply.await.map_err(|_| Broken)
    }
}

async fn answer(mut reply: Reply, scissors: &Scissors) -> Answer {
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    match reply.fault.take() {
        None => {}
        Some(fault) => match fault {
            Fault::CloseAfterReading | Fault::CloseAfterEffect => return Err(Broken),
            Fault::ResetAfterReading | Fault::ResetAfterEffect => {
                scissors.cut(Cut::Reset);
                return Err(Broken);
            }
            Fault::StallAfterReading | Fault::StallAfterEffect => {
                tokio::time::sleep(LONGEST_STALL).await;
                return Err(Broken);
            }
            Fault::HalfBodyAfterEffect if !reply.body.is_empty() => scissors.cut(Cut::HalfBody(reply.body.len())),
            Fault::HalfHeadersAfterEffect | Fault::HalfBodyAfterEffect => scissors.cut(Cut::HalfHeaders),
            Fault::ErrorBeforeEffect
            | Fault::ErrorAfterEffect
            | Fault::HtmlBeforeEffect
            | Fault::HtmlAfterEffect
            | Fault::Throttle
            | Fault::StillRunning => {}
        },
    }
    let mut response = hyper::Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Full::new(Bytes::from(reply.body))).map_err(|_| Broken)
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
