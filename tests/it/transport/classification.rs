//! The one question after a failure: may the gateway have executed it?

use super::server::{Act, Server, answer};
use super::{BOUND, bounded, exchange, patient, post};
use payonce::failure::{Failure, FailureKind};
use payonce::transport::Http;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

const NOT_EXECUTED: bool = false;
const MAYBE: bool = true;

#[track_caller]
fn check(failure: &Failure, maybe: bool, kind: FailureKind) {
    assert_eq!(
        (failure.may_have_executed(), failure.kind()),
        (maybe, kind),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_refused_connection_proves_that_nothing_was_sent() {
    // A port that was free a moment ago.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failure = exchange(&patient().build().unwrap(), post(&base)).await.unwrap_err();
    check(&failure, NOT_EXECUTED, FailureKind::Connect);
}

#[tokio::test]
async fn a_name_that_is_not_found_proves_that_nothing_was_sent() {
    let failure = exchange(&patient().build().unwrap(), post("http://nonexistent.invalid"))
        .await
        .unwrap_err();
    check(&failure, NOT_EXECUTED, FailureKind::Connect);
}

/// A listener that takes no more: its queue is full, and the system drops whatever asks for a connection.
async fn clogged() -> (String, tokio::net::TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..64 {
        match tokio::time::timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
            Ok(stream) => waiting.push(stream.unwrap()),
            Err(_) => return (format!("http://{address}"), listener, waiting),
        }
    }
    panic!("the queue of connections does not fill up");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_does_not_come_about_in_time_proves_that_nothing_was_sent() {
    let (base, _listener, _waiting) = clogged().await;
    let http = Http::builder()
        .connect_timeout(Duration::from_millis(200))
        .timeout(BOUND)
        .build()
        .unwrap();
    let failure = exchange(&http, post(&base)).await.unwrap_err();
    check(&failure, NOT_EXECUTED, FailureKind::Connect);

    // The time for the whole exchange cannot tell which part of it was slow.
    let http = Http::builder()
        .connect_timeout(BOUND / 2)
        .timeout(BOUND)
        .build()
        .unwrap();
    let request = post(&base).timeout(Duration::from_millis(200));
    let failure = exchange(&http, request).await.unwrap_err();
    check(&failure, MAYBE, FailureKind::Timeout);

    // So the time to connect stays below it, whatever was set.
    let http = Http::builder()
        .connect_timeout(BOUND)
        .timeout(Duration::from_secs(1))
        .build()
        .unwrap();
    let failure = exchange(&http, post(&base)).await.unwrap_err();
    check(&failure, NOT_EXECUTED, FailureKind::Connect);
}

#[tokio::test]
async fn once_a_connection_has_been_made_nothing_is_proven() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n".to_vec();
    let half_body = [head.as_slice(), b"content-length: 100\r\n\r\n{\"id\":"].concat();
    let half_chunk = [head.as_slice(), b"transfer-encoding: chunked\r\n\r\n64\r\n{\"id\":"].concat();
    for (act, kind, status) in [
        (Act::Close, FailureKind::Broken, None),
        (Act::Reset, FailureKind::Broken, None),
        (Act::Say(head.clone()), FailureKind::Broken, None),
        (Act::Say(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), FailureKind::Broken, None),
        (Act::Say(vec![0; 1000]), FailureKind::Broken, None),
        (Act::Say(half_body.clone()), FailureKind::Broken, Some(200)),
        (Act::Say(half_chunk), FailureKind::Broken, Some(200)),
        (Act::Silence, FailureKind::Timeout, None),
        (Act::Answer(head), FailureKind::Timeout, None),
        (Act::Answer(half_body), FailureKind::Timeout, Some(200)),
    ] {
        let server = Server::start([act.clone()]).await;
        let mut request = post(&server.base);
        if kind == FailureKind::Timeout {
            request = request.timeout(Duration::from_millis(300));
        }
        let failure = exchange(&patient().build().unwrap(), request).await.unwrap_err();
        check(&failure, MAYBE, kind);
        assert_eq!(failure.http_status(), status, "{act:?}");
        assert_eq!(server.requests().len(), 1, "read once, and never sent again: {act:?}");
    }
}

/// The worst of them: the server may have read it all before it died, and the client's library knows that the
/// connection had been used before.
#[tokio::test]
async fn a_reused_connection_that_breaks_proves_nothing_and_is_not_tried_again() {
    for breaks in [Act::Close, Act::Reset] {
        let http = patient().build().unwrap();
        let server = Server::start([Act::Answer(answer("200 OK", "", b"{}")), breaks]).await;
        assert_eq!(exchange(&http, post(&server.base)).await.unwrap().status, 200);
        let failure = exchange(&http, post(&server.base)).await.unwrap_err();
        check(&failure, MAYBE, FailureKind::Broken);
        assert_eq!((server.requests().len(), server.connections()), (2, 1));
    }
}

#[tokio::test]
async fn redirects_are_answers_and_are_not_followed() {
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let server = Server::start(vec![Act::Answer(answer(status, "location: /elsewhere\r\n", b"")); 3]).await;
        let response = exchange(&patient().build().unwrap(), post(&server.base)).await.unwrap();
        assert_eq!(response.status.to_string(), status[..3]);
        assert_eq!(response.header("location"), Some("/elsewhere"));
        assert_eq!(server.requests().len(), 1);
    }
}

/// A box in between answers in the place of the gateway. What to make of it is the gateway's adapter's business; here
/// it is an answer like any other.
#[tokio::test]
async fn c71_what_a_box_in_between_says_is_an_answer_with_its_status() {
    for (status, body) in [
        ("403 Forbidden", "Access denied"),
        ("407 Proxy Authentication Required", ""),
        ("451 Unavailable For Legal Reasons", ""),
        ("200 OK", "<html>Login to WiFi</html>"),
    ] {
        let server = Server::start([Act::Answer(answer(status, "", body.as_bytes()))]).await;
        let response = exchange(&patient().build().unwrap(), post(&server.base)).await.unwrap();
        assert_eq!(
            (response.status.to_string().as_str(), response.body.as_slice()),
            (&status[..3], body.as_bytes())
        );
        assert_eq!(server.requests().len(), 1);
    }
}

/// Dropping the exchange closes its connection; nothing goes on in the background.
#[tokio::test]
async fn an_exchange_that_is_dropped_is_not_sent_again() {
    let http = patient().build().unwrap();
    let server = Server::start([Act::Silence, Act::Answer(answer("200 OK", "", b""))]).await;
    let early = tokio::time::timeout(Duration::from_millis(200), exchange(&http, post(&server.base))).await;
    assert!(early.is_err());
    assert_eq!(exchange(&http, post(&server.base)).await.unwrap().status, 200);
    bounded(async { assert_eq!((server.requests().len(), server.connections()), (2, 2)) }).await;
}
