//! Whom we talk to. The certificates in tests/fixtures/transport are of an authority that exists here alone.

use super::server::{answer, read_request};
use super::{exchange, patient, post};
use payonce::failure::FailureKind;
use payonce::transport::{Http, HttpBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const AUTHORITY: &str = include_str!("../../fixtures/transport/TEST-ONLY-authority.cert.pem");
const LOCALHOST: (&str, &str) = (
    include_str!("../../fixtures/transport/TEST-ONLY-localhost.cert.pem"),
    include_str!("../../fixtures/transport/TEST-ONLY-localhost.key.pem"),
);
const ELSEWHERE: (&str, &str) = (
    include_str!("../../fixtures/transport/TEST-ONLY-elsewhere.cert.pem"),
    include_str!("../../fixtures/transport/TEST-ONLY-elsewhere.key.pem"),
);

/// Answers one request to each connection; returns its address and how many requests it has read.
async fn start((certificate, key): (&str, &str)) -> (String, Arc<AtomicUsize>) {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            if let Ok(Some(_)) = read_request(&mut stream).await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream
                    .write_all(&answer("200 OK", "connection: close\r\n", b"{}"))
                    .await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (base, requests)
}

fn trusting() -> HttpBuilder {
    patient().root_certificate(AUTHORITY)
}

async fn assert_refused(http: &Http, base: &str) {
    let failure = exchange(http, post(base)).await.unwrap_err();
    let outcome = (failure.kind(), failure.may_have_executed());
    assert_eq!(outcome, (FailureKind::Connect, false), "{failure:?}");
}

#[tokio::test]
async fn the_right_certificate_is_accepted() {
    let (base, requests) = start(LOCALHOST).await;
    let response = exchange(&trusting().build().unwrap(), post(&base)).await.unwrap();
    assert_eq!((response.status, requests.load(Ordering::SeqCst)), (200, 1));
}

#[tokio::test]
async fn c71_a_certificate_for_another_host_is_refused_before_anything_is_sent() {
    let (base, requests) = start(ELSEWHERE).await;
    assert_refused(&trusting().build().unwrap(), &base).await;
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn c71_a_certificate_of_an_unknown_authority_is_refused_before_anything_is_sent() {
    let (base, requests) = start(LOCALHOST).await;
    assert_refused(&patient().build().unwrap(), &base).await;
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn c71_what_does_not_speak_tls_gets_no_request() {
    for reply in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0x15, 3, 3, 0, 2, 2, 40],
        &[0; 64],
        b"",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(reply).await;
        });
        assert_refused(&trusting().build().unwrap(), &base).await;
    }
}
