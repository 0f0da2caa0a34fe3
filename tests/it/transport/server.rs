//! A server that says exactly what it is told to, byte for byte.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does when it has read a request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Closes in good order.
    Close,
    /// Closes with a reset.
    Reset,
    /// Says nothing and keeps the connection.
    Silence,
    /// Writes these bytes and closes.
    Say(Vec<u8>),
    /// Writes these bytes and waits for the next request.
    Answer(Vec<u8>),
    /// Writes these bytes, then this chunk over and over, so many times.
    Flood(Vec<u8>, Vec<u8>, usize),
}

pub(super) struct Server {
    pub(super) base: String,
    seen: Arc<Seen>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    script: Mutex<VecDeque<Act>>,
    requests: Mutex<Vec<Vec<u8>>>,
    connections: AtomicUsize,
    flooded: AtomicUsize,
}

impl Server {
    /// The first request meets the first act, on whatever connection; after the last act all are closed.
    pub(super) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen {
            script: Mutex::new(script.into_iter().collect()),
            ..Seen::default()
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&seen)));
        Self { base, seen, task }
    }

    /// What has been read, request by request.
    pub(super) fn requests(&self) -> Vec<Vec<u8>> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// How many bytes of a flood the client, and the system between, have taken.
    pub(super) fn flooded(&self) -> usize {
        self.seen.flooded.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, seen: Arc<Seen>) {
    while let Ok((stream, _)) = listener.accept().await {
        seen.connections.fetch_add(1, Ordering::SeqCst);
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            // A client that hangs up is nothing unusual here.
            let _ = serve(stream, &seen).await;
        });
    }
}

async fn serve(mut stream: TcpStream, seen: &Seen) -> io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        seen.requests.lock().unwrap().push(request);
        let act = seen.script.lock().unwrap().pop_front();
        match act {
            None | Some(Act::Close) => return Ok(()),
            Some(Act::Reset) => return stream.set_zero_linger(),
            Some(Act::Silence) => {}
            Some(Act::Say(bytes)) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Some(Act::Answer(bytes)) => stream.write_all(&bytes).await?,
            Some(Act::Flood(head, chunk, times)) => {
                stream.write_all(&head).await?;
                for _ in 0..times {
                    stream.write_all(&chunk).await?;
                    seen.flooded.fetch_add(chunk.len(), Ordering::SeqCst);
                }
                return stream.shutdown().await;
            }
        }
    }
    Ok(())
}

/// A whole request, headers and body; `None` when the client has hung up.
pub(super) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let length = String::from_utf8_lossy(&request[..head])
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if request.len() >= head + 4 + length {
                return Ok(Some(request));
            }
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
}

/// A whole answer.
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}
