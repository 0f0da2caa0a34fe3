//! What leaves, and what comes back.

use super::server::{Act, Server, answer};
use super::{TOKEN, bounded, exchange, patient, post};
use payonce::failure::FailureKind;
use payonce::transport::{Http, Method, Request, base_url};
use std::process::Command;

#[tokio::test]
async fn what_leaves_is_what_was_asked_for_and_little_more() {
    let server = Server::start(vec![Act::Answer(answer("200 OK", "", b"")); 4]).await;
    let http = patient().build().unwrap();
    let base = &server.base;
    for request in [
        Request::new(Method::Post, format!("{base}/v1/a?x=%20"))
            .header("authorization", "Bearer TESTONLY")
            .header("x-odd", "ÄÖ")
            .body("a=1&b=%20"),
        Request::new(Method::Post, format!("{base}/v1/b")),
        Request::new(Method::Get, format!("{base}/v1/c")).body("not sent"),
        Request::new(Method::Delete, format!("{base}/v1/d")),
    ] {
        assert_eq!(exchange(&http, request).await.unwrap().status, 200);
    }
    let sent: Vec<_> = server
        .requests()
        .iter()
        .map(|request| String::from_utf8_lossy(request).into_owned())
        .collect();
    for (sent, line, body) in [
        (&sent[0], "POST /v1/a?x=%20 HTTP/1.1\r\n", "a=1&b=%20"),
        (&sent[1], "POST /v1/b HTTP/1.1\r\n", ""),
        (&sent[2], "GET /v1/c HTTP/1.1\r\n", ""),
        (&sent[3], "DELETE /v1/d HTTP/1.1\r\n", ""),
    ] {
        assert!(sent.starts_with(line), "{sent}");
        assert!(sent.ends_with(&format!("\r\n\r\n{body}")), "{sent}");
        let lower = sent.to_lowercase();
        for header in ["accept-encoding", "cookie", "referer", "expect", "transfer-encoding"] {
            assert!(!lower.contains(&format!("\r\n{header}:")), "{sent}");
        }
        assert!(lower.contains("\r\nuser-agent: payonce/"), "{sent}");
    }
    assert!(sent[0].contains("\r\nauthorization: Bearer TESTONLY\r\n"));
    assert!(sent[0].contains("\r\nx-odd: ÄÖ\r\n"));
    assert!(sent[1].to_lowercase().contains("\r\ncontent-length: 0\r\n"));
}

#[tokio::test]
async fn headers_come_back_in_lower_case_with_their_repeats() {
    let headers = "X-Request-ID: req_1\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Binary: \u{1}\r\nX-Latin: \u{e4}\r\n";
    let server = Server::start(vec![Act::Answer(answer("200 OK", headers, b"body")); 2]).await;
    let http = patient().build().unwrap();
    let response = exchange(&http, post(&server.base)).await;
    // A control character in a header makes the answer unreadable as a whole.
    assert!(response.unwrap_err().may_have_executed());

    let headers = headers.replace("X-Binary: \u{1}\r\n", "");
    let server = Server::start(vec![Act::Answer(answer("200 OK", &headers, b"body")); 2]).await;
    let response = exchange(&http, post(&server.base)).await.unwrap();
    assert_eq!(response.header("x-request-id"), Some("req_1"));
    assert_eq!(response.header_values("set-cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(response.header("x-latin"), None, "not text");
    assert_eq!(response.body, b"body");
    // And no cookie goes back.
    exchange(&http, post(&server.base)).await.unwrap();
    assert!(
        !String::from_utf8_lossy(&server.requests()[1])
            .to_lowercase()
            .contains("cookie")
    );
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(vec![Act::Answer(answer("200 OK", "", b"{\"id\":1}")); 20]).await;
    let http = patient().build().unwrap();
    for _ in 0..20 {
        assert_eq!(exchange(&http, post(&server.base)).await.unwrap().status, 200);
    }
    assert_eq!((server.requests().len(), server.connections()), (20, 1));
}

#[tokio::test]
async fn what_cannot_be_put_into_a_request_is_refused_before_anything_is_sent() {
    let server = Server::start([]).await;
    let http = patient().build().unwrap();
    for value in ["a\nb", "a\r\nx-admin: 1", "a\0b"] {
        let request = post(&server.base).header("authorization", format!("{value}{TOKEN}"));
        let failure = exchange(&http, request).await.unwrap_err();
        assert!(!failure.may_have_executed());
        assert_eq!(failure.kind(), FailureKind::Unsupported);
        assert!(failure.to_string().contains("authorization"), "{failure}");
    }
    for url in [
        "",
        "no address",
        "/relative",
        "http://",
        "http://[::1",
        "ftp://127.0.0.1",
        "data:text/plain,",
    ] {
        let failure = exchange(&http, Request::new(Method::Post, format!("{url}{TOKEN}{{}}")))
            .await
            .unwrap_err();
        assert!(!failure.may_have_executed(), "{url}: {failure:?}");
    }
    let named = Request::new(Method::Post, format!("{}/{TOKEN}", server.base)).header("bad name", "x");
    assert!(!exchange(&http, named).await.unwrap_err().may_have_executed());
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_proxy_is_used_when_it_is_given() {
    let proxy = Server::start([Act::Answer(answer("407 Proxy Authentication Required", "", b""))]).await;
    let http = patient().proxy(&proxy.base).build().unwrap();
    let response = exchange(&http, post("http://gateway.example")).await.unwrap();
    assert_eq!(response.status, 407);
    let asked = String::from_utf8(proxy.requests().remove(0)).unwrap();
    assert!(asked.starts_with("POST http://gateway.example/pay/"), "{asked}");

    for address in ["not a proxy", "proxy.example:8080", "http://", "ftp://proxy.example"] {
        let error = Http::builder().proxy(address).build().unwrap_err();
        assert!(error.to_string().contains("proxy"), "{error}");
    }
}

#[test]
fn a_root_certificate_that_is_none_is_refused() {
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "not PEM", nonsense] {
        let error = Http::builder().root_certificate(pem).build().unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

/// The test above once more, in a process whose environment names a proxy.
#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    let proxy = Server::start([]).await;
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "transport::exchange::a_connection_is_used_again"]);
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, &proxy.base);
    }
    for name in ["no_proxy", "NO_PROXY"] {
        again.env_remove(name);
    }
    let output = tokio::task::spawn_blocking(move || again.output());
    let output = bounded(output).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn a_proxy_s_password_is_not_printed() {
    let builder = Http::builder().proxy("http://user:TESTONLYpassword@127.0.0.1:1");
    let text = format!("{builder:?} {:?}", builder.clone().build().unwrap());
    assert!(!text.contains("TESTONLY"), "{text}");
    let error = Http::builder()
        .proxy("ftp://user:TESTONLYpassword@127.0.0.1:1")
        .build()
        .unwrap_err();
    assert!(!format!("{error} {error:?}").contains("TESTONLY"), "{error:?}");
}

#[test]
fn base_addresses_are_https_or_this_machine_s_own() {
    for (text, expected) in [
        ("https://api.stripe.com", "https://api.stripe.com"),
        ("https://api.stripe.com/", "https://api.stripe.com"),
        ("HTTPS://API.Stripe.com:443/v1//", "https://api.stripe.com/v1"),
        ("https://pgw.2c2p.com/payment/4.3", "https://pgw.2c2p.com/payment/4.3"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.9.9.9", "http://127.9.9.9"),
        ("http://localhost:1/", "http://localhost:1"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ] {
        assert_eq!(base_url(text).unwrap(), expected);
    }
    for text in [
        "",
        "api.stripe.com",
        "//api.stripe.com",
        "http://api.stripe.com",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://0.0.0.0",
        "http://10.0.0.1",
        "http://[::2]",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "https://user@api.stripe.com",
        "https://user:TESTONLYpassword@api.stripe.com",
        "https://api.stripe.com?key=TESTONLYpassword",
        "https://api.stripe.com/#a",
        "https://",
    ] {
        let invalid = base_url(text).unwrap_err();
        assert_eq!(invalid.field(), "base_url", "{text}");
        assert!(!invalid.to_string().contains("TESTONLY"), "{invalid}");
    }
}
