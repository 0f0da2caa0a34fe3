//! Answers that are too large, too slow, or packed.

use super::server::{Act, Server, answer};
use super::{exchange, patient, post};
use flate2::Compression;
use flate2::write::GzEncoder;
use payonce::failure::FailureKind;
use std::io::Write;
use std::time::Duration;

const BOMB: &[u8] = include_bytes!("../../fixtures/transport/bomb_32MiB.json.gz");

const MIB: usize = 1024 * 1024;

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn c68_the_limit_counts_what_comes_out_of_a_packed_answer() {
    let packed_answer = |body: &[u8]| Act::Answer(answer("200 OK", "content-encoding: gzip\r\n", body));
    let server = Server::start([
        packed_answer(BOMB),
        packed_answer(&packed(&vec![b' '; MIB + 1])),
        packed_answer(&packed(&vec![b' '; MIB])),
    ])
    .await;
    let http = patient().build().unwrap();
    for _ in 0..2 {
        let failure = exchange(&http, post(&server.base)).await.unwrap_err();
        assert_eq!(
            (failure.kind(), failure.may_have_executed()),
            (FailureKind::TooLarge, true)
        );
        assert_eq!(failure.http_status(), Some(200));
    }
    assert_eq!(exchange(&http, post(&server.base)).await.unwrap().body.len(), MIB);
}

/// Nothing says that it is packed, so it is not unpacked: it is 32 KiB of something that is not JSON.
#[tokio::test]
async fn c68_what_is_not_said_to_be_packed_is_left_as_it_is() {
    let server = Server::start([Act::Answer(answer("200 OK", "", BOMB))]).await;
    let response = exchange(&patient().build().unwrap(), post(&server.base)).await.unwrap();
    assert_eq!(response.body, BOMB);
}

#[tokio::test]
async fn c68_an_answer_without_end_is_left_at_the_limit() {
    let mut chunk = format!("{MIB:x}\r\n").into_bytes();
    chunk.resize(chunk.len() + MIB, b' ');
    chunk.extend_from_slice(b"\r\n");
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let announced = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 64 * chunk.len()).into_bytes();
    for head in [head, announced] {
        let server = Server::start([Act::Flood(head, chunk.clone(), 64)]).await;
        let failure = exchange(&patient().build().unwrap(), post(&server.base))
            .await
            .unwrap_err();
        assert_eq!(
            (failure.kind(), failure.may_have_executed()),
            (FailureKind::TooLarge, true)
        );
        // What the system's own buffers hold comes on top.
        assert!(server.flooded() < 32 * MIB, "{} bytes were taken", server.flooded());
    }
}

#[tokio::test]
async fn c68_an_answer_that_trickles_ends_with_the_time_for_the_exchange() {
    let server = Server::start([Act::Answer(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n".to_vec(),
    )]);
    let server = server.await;
    let request = post(&server.base).timeout(Duration::from_millis(300));
    let failure = exchange(&patient().build().unwrap(), request).await.unwrap_err();
    assert_eq!(
        (failure.kind(), failure.may_have_executed()),
        (FailureKind::Timeout, true)
    );
    assert_eq!(failure.http_status(), Some(200));
}

#[tokio::test]
async fn the_limit_can_be_set() {
    let server = Server::start(vec![Act::Answer(answer("200 OK", "", b"12345")); 2]).await;
    let body = |limit| {
        let http = patient().max_body(limit).build().unwrap();
        let request = post(&server.base);
        async move { exchange(&http, request).await.map(|response| response.body) }
    };
    assert_eq!(body(5).await.unwrap(), b"12345");
    assert_eq!(body(4).await.unwrap_err().kind(), FailureKind::TooLarge);
}

#[tokio::test]
async fn packed_answers_are_unpacked_and_bad_ones_are_unreadable() {
    let gz = packed(b"{\"id\":\"pi_1\"}");
    let two = [packed(b"{\"id\":"), packed(b"\"pi_1\"}")].concat();
    let cut = gz[..gz.len() - 4].to_vec();
    for (encoding, body, expected) in [
        ("gzip", &gz, Some(&b"{\"id\":\"pi_1\"}"[..])),
        ("x-gzip", &gz, Some(b"{\"id\":\"pi_1\"}")),
        (" GZip ", &gz, Some(b"{\"id\":\"pi_1\"}")),
        ("gzip", &two, Some(b"{\"id\":\"pi_1\"}")),
        ("identity", &gz, Some(&gz)),
        ("gzip", &Vec::new(), Some(b"")),
        ("gzip", &cut, None),
        ("gzip", &b"plain text".to_vec(), None),
        ("br", &gz, None),
        ("gzip, gzip", &gz, None),
    ] {
        let headers = format!("content-encoding: {encoding}\r\n");
        let server = Server::start([Act::Answer(answer("502 Bad Gateway", &headers, body))]).await;
        let result = exchange(&patient().build().unwrap(), post(&server.base)).await;
        match expected {
            Some(expected) => assert_eq!(result.unwrap().body, expected, "{encoding}"),
            None => {
                let failure = result.unwrap_err();
                assert_eq!(
                    (failure.kind(), failure.may_have_executed()),
                    (FailureKind::Unreadable, true)
                );
                assert_eq!(failure.http_status(), Some(502), "{encoding}");
            }
        }
    }
}
