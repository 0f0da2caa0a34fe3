//! A connection that can be cut at a chosen byte.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Where the answer on a connection ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// In the middle of the headers.
    HalfHeaders,
    /// After the headers and half of a body of so many bytes.
    HalfBody(usize),
    /// Nothing is cut, but the connection ends with a reset instead of a proper close.
    Reset,
}

/// The other end of the wire that a handler holds, to cut the connection it answers on.
#[derive(Clone, Debug, Default)]
pub(super) struct Scissors(Arc<Mutex<Option<Cut>>>);

impl Scissors {
    /// Cuts what is written from now on.
    pub(super) fn cut(&self, cut: Cut) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(cut);
    }

    fn get(&self) -> Option<Cut> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A TCP connection that obeys its [`Scissors`].
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    scissors: Scissors,
    /// How many bytes may still be written, once that is decided.
    room: Option<usize>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, scissors: Scissors) -> Self {
        Self {
            stream,
            scissors,
            room: None,
        }
    }

    /// How many bytes of an answer that begins with `head` may go out.
    fn room(&self, cut: Cut, head: &[u8]) -> Option<usize> {
        // The server writes a whole head at once, so that its end is always in the first piece.
        let end = head
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .unwrap_or(head.len());
        match cut {
            Cut::HalfHeaders => Some(end / 2),
            Cut::HalfBody(length) => Some(end + 4 + length / 2),
            Cut::Reset => None,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.room.is_none() {
            self.room = self.scissors.get().and_then(|cut| self.room(cut, buf));
        }
        let allowed = match self.room {
            None => buf,
            Some(0) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(room) => &buf[..room.min(buf.len())],
        };
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, allowed))?;
        if let Some(room) = &mut self.room {
            *room -= written;
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.scissors.get() == Some(Cut::Reset) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.scissors.get() == Some(Cut::Reset) {
            // Closing a socket that does not linger sends a reset. Where it fails, the client sees a plain close.
            #[allow(
                deprecated,
                reason = "zero seconds never block; its successor needs a newer tokio than we ask for"
            )]
            let _ = self.stream.set_linger(Some(Duration::ZERO));
        }
    }
}
