//! HTTPS and `wss`, with a rustls client (S-08).

use std::time::Duration;

use corbie_mcp::Limits;
use corbie_mcp::transport::CertificateError;
use corbie_mcp::transport::http::Options;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{ask, ask_on, closed, metric, ping, with};
use crate::fixture;
use crate::fixture::peer::{self, TEST_TIMEOUT, call};
use crate::test_certificate::{TestCertificate, listen_tls, listen_tls_as};

#[tokio::test]
async fn s08_https_is_spoken_in_both_versions_with_http_1() {
    let identity = TestCertificate::new();
    let port = listen_tls(&fixture::server(), identity.certificates()).await;
    for version in rustls::ALL_VERSIONS {
        let stream = identity.connect_as(port, &[version]).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version.version));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
        let reply = ask(stream, "localhost", "", &ping()).await;
        assert_eq!((reply.status, &reply.json()["id"]), (200, &json!(7)));
    }
}

#[tokio::test]
async fn s08_browsers_are_told_to_stay_with_https_but_not_for_localhost() {
    let identity = TestCertificate::new();
    let port = listen_tls(&fixture::server(), identity.certificates()).await;
    for (host, told) in [("127.0.0.1", true), ("127.0.0.1:8443", true), ("LocalHost:8443", false)] {
        let reply = ask(identity.connect(port).await.expect("a handshake"), host, "", &ping()).await;
        assert_eq!(reply.headers.contains_key("strict-transport-security"), told, "{host}");
    }
    let plain = fixture::listen(&fixture::server(), Options::default()).await;
    let reply = ask(peer::connect(plain).await, "127.0.0.1", "", &ping()).await;
    assert!(!reply.headers.contains_key("strict-transport-security"));
}

/// A plain-text page could be forged in transit, and a page over TLS did not come from a plain port.
#[tokio::test]
async fn s07_a_page_of_the_servers_own_name_speaks_the_listeners_scheme() {
    let identity = TestCertificate::new();
    let named = || Options { allowed_hosts: vec!["mcp.example.org".into()], ..Options::default() };
    let encrypted = listen_tls_as(&fixture::server(), identity.certificates(), named()).await;
    let plain = fixture::listen(&fixture::server(), named()).await;
    for (scheme, over_tls, over_plain) in [("https", 200, 403), ("http", 403, 200)] {
        let page = format!("origin: {scheme}://mcp.example.org\r\n");
        let stream = identity.connect(encrypted).await.expect("a handshake");
        assert_eq!(ask(stream, "mcp.example.org", &page, &ping()).await.status, over_tls, "{scheme} over TLS");
        let stream = peer::connect(plain).await;
        assert_eq!(ask(stream, "mcp.example.org", &page, &ping()).await.status, over_plain, "{scheme} in clear text");
    }
    // A proxy in front terminates TLS, and the operator configures the origin.
    let behind = Options { allowed_origins: vec!["https://mcp.example.org".into()], ..named() };
    let behind = fixture::listen(&fixture::server(), behind).await;
    let page = "origin: https://mcp.example.org\r\n";
    assert_eq!(ask(peer::connect(behind).await, "mcp.example.org", page, &ping()).await.status, 200);
}

#[tokio::test]
async fn s08_a_web_socket_goes_over_tls_and_outlives_the_limits_of_heads() {
    let identity = TestCertificate::new();
    let limits = Limits { request_read_timeout: Duration::from_millis(100), ..fixture::quick_limits() };
    let port = listen_tls(&with(limits), identity.certificates()).await;
    let connector =
        tokio_tungstenite::client_async("wss://localhost/mcp", identity.connect(port).await.expect("a handshake"));
    let (mut socket, _) = connector.await.expect("an upgrade");
    for id in 1..=3 {
        socket.send(Message::text(call(id, "wait", json!({ "ms": 150 })).to_string())).await.expect("writable");
        let answer = loop {
            match timeout(TEST_TIMEOUT, socket.next()).await.expect("in time").expect("open").expect("a frame") {
                Message::Text(text) => break serde_json::from_str::<serde_json::Value>(&text).expect("JSON"),
                _ => continue,
            }
        };
        assert_eq!(answer["id"], id);
    }
}

#[tokio::test]
async fn s08_plain_http_on_a_port_with_tls_is_told_so() {
    let identity = TestCertificate::new();
    let server = fixture::server();
    let port = listen_tls(&server, identity.certificates()).await;
    let reply = ask(peer::connect(port).await, "localhost", "", &ping()).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("this port requires HTTPS"), "{}", reply.body);
}

#[tokio::test]
async fn s08_failed_handshakes_are_counted_and_give_their_places_back() {
    let (identity, stranger) = (TestCertificate::new(), TestCertificate::new());
    let limits = Limits { request_read_timeout: Duration::from_millis(300), ..fixture::quick_limits() };
    let server = with(limits);
    let plain = fixture::listen(&server, Options::default()).await;
    let port = listen_tls(&server, identity.certificates()).await;
    let failed = async |count| {
        peer::eventually(async || metric(plain, "corbie_tls_handshakes_failed_total").await == count).await;
    };
    assert!(stranger.connect(port).await.is_err(), "a client that does not know the certificate");
    failed(1).await;
    // Silent clients and clients that do not speak TLS time out.
    let mut silent = peer::connect(port).await;
    closed(&mut silent).await;
    failed(2).await;
    let mut other = peer::connect(port).await;
    other.write_all(&[0x16, 3, 1, 0xff, 0xff]).await.expect("writable");
    closed(&mut other).await;
    failed(3).await;
    ask(peer::connect(port).await, "localhost", "", &ping()).await;
    failed(4).await;
    // A port scan is not a failed handshake.
    drop(peer::connect(port).await);
    assert_eq!(ask(identity.connect(port).await.expect("a handshake"), "localhost", "", &ping()).await.status, 200);
    // The connection of this query is the last one open.
    peer::eventually(async || metric(plain, "corbie_connections").await == 1).await;
    assert_eq!(metric(plain, "corbie_tls_handshakes_failed_total").await, 4);
}

#[tokio::test]
async fn s08_a_new_certificate_is_used_from_the_next_connection_on() {
    let (first, second) = (TestCertificate::new(), TestCertificate::new());
    let certificates = first.certificates();
    let port = listen_tls(&fixture::server(), certificates.clone()).await;
    let mut open = first.connect(port).await.expect("a handshake");
    assert_eq!(ask_on(&mut open).await, "HTTP/1.1 200 OK");

    assert_eq!(certificates.replace(first.chain.as_bytes(), first.key.as_bytes()), Ok(false));
    for (chain, key, why) in [
        (&second.chain, &first.key, CertificateError::KeyMismatch),
        (&second.chain[..200].to_owned(), &second.key, CertificateError::BadCertificate),
        (&String::new(), &second.key, CertificateError::NoCertificate),
        (&second.chain, &second.key[..60].to_owned(), CertificateError::BadKey),
        (&second.chain, &second.chain, CertificateError::NoKey),
    ] {
        assert_eq!(certificates.replace(chain.as_bytes(), key.as_bytes()), Err(why));
        first.connect(port).await.expect("the old one stays");
    }

    assert_eq!(certificates.replace(second.chain.as_bytes(), second.key.as_bytes()), Ok(true));
    second.connect(port).await.expect("the new one");
    assert!(first.connect(port).await.is_err(), "the old one is gone");
    assert_eq!(ask_on(&mut open).await, "HTTP/1.1 200 OK", "what was open goes on");
}

#[tokio::test]
async fn s08_a_certificate_that_is_over_is_served_and_refused_by_the_client() {
    let identity = TestCertificate::expired();
    let port = listen_tls(&fixture::server(), identity.certificates()).await;
    let error = identity.connect(port).await.expect_err("refused").to_string();
    assert!(error.to_lowercase().contains("expired"), "{error}");
}
