//! Ways in for HTTP beside a plain port: TLS and a socket in the file system; and the bounds that hold for all of them.
#![cfg(all(unix, feature = "tls"))]

mod fixture;

use std::io;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::{Auth, CertificateError, Certificates, SocketError, SocketFile, Token};
use corbie_mcp::{AuditOutcome, Limits, Server, Via};
use fixture::peer::{self, PATIENCE, Reply, call, request};
use fixture::{Gate, Wiped};
use futures_util::{SinkExt, StreamExt};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;

/// A certificate for `localhost` that nobody has vouched for but itself.
struct Identity {
    chain: String,
    key: String,
}

impl Identity {
    fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Identity { chain: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// One that is over since long ago.
    fn expired() -> Identity {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        let key = KeyPair::generate().expect("a key");
        Identity { chain: params.self_signed(&key).expect("a certificate").pem(), key: key.serialize_pem() }
    }

    fn certificates(&self) -> Certificates {
        Certificates::from_pem(self.chain.as_bytes(), self.key.as_bytes()).expect("a pair")
    }

    /// A client that trusts this certificate alone.
    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.chain.as_bytes()).expect("PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("versions");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    async fn connect(&self, port: u16) -> io::Result<TlsStream<TcpStream>> {
        self.connect_as(port, rustls::ALL_VERSIONS).await
    }

    async fn connect_as(
        &self,
        port: u16,
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<TlsStream<TcpStream>> {
        let connector = TlsConnector::from(Arc::new(self.client(versions)));
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = peer::connect(port).await;
        timeout(PATIENCE, connector.connect(name, stream)).await.expect("in time")
    }
}

/// A server on a port with TLS.
async fn listen_tls(server: &Server, certificates: Certificates) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
    let port = listener.local_addr().expect("bound").port();
    let http = Http::new(server.clone(), Options::default());
    tokio::spawn(async move { http.serve_tls(listener, certificates).await });
    port
}

fn serve_file(server: &Server, path: &Path, mode: u32, options: Options) -> JoinHandle<io::Result<()>> {
    let socket = SocketFile::bind(path, mode).expect("bound");
    let http = Http::new(server.clone(), options);
    tokio::spawn(async move { http.serve_file(socket).await })
}

fn with(limits: Limits) -> Server {
    fixture::builder(Wiped::default()).limits(limits).build().expect("valid")
}

/// One request, and the connection's end.
async fn ask(stream: impl AsyncRead + AsyncWrite + Unpin, host: &str, more: &str, body: &str) -> Reply {
    let mut stream = stream;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("the server reads");
    peer::until_closed(&mut stream).await
}

/// One request on a connection that goes on; gives back the status line.
async fn ask_on(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    stream.write_all(b"GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("the server reads");
    let mut reader = BufReader::new(stream);
    let (mut status, mut length) = (String::new(), 0);
    let reading = async {
        reader.read_line(&mut status).await.expect("a status");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await.expect("a header");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).await.expect("a body");
    };
    timeout(PATIENCE, reading).await.expect("in time");
    status.trim().to_owned()
}

/// Ends when the server has closed the connection, and gives back what came before that.
async fn closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed in time");
    String::from_utf8_lossy(&rest).into_owned()
}

async fn metric(port: u16, name: &str) -> i64 {
    let page = peer::http(port, "GET", "/metrics", &[], "").await.body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
}

fn ping() -> String {
    request(7, "ping", json!({})).to_string()
}

// === TLS ===

#[tokio::test]
async fn s08_https_is_spoken_in_both_versions_with_http_1() {
    let identity = Identity::new();
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
    let identity = Identity::new();
    let port = listen_tls(&fixture::server(), identity.certificates()).await;
    for (host, told) in [("127.0.0.1", true), ("127.0.0.1:8443", true), ("LocalHost:8443", false)] {
        let reply = ask(identity.connect(port).await.expect("a handshake"), host, "", &ping()).await;
        assert_eq!(reply.headers.contains_key("strict-transport-security"), told, "{host}");
    }
    let plain = fixture::listen(&fixture::server(), Options::default()).await;
    let reply = ask(peer::connect(plain).await, "127.0.0.1", "", &ping()).await;
    assert!(!reply.headers.contains_key("strict-transport-security"));
}

#[tokio::test]
async fn s08_a_web_socket_goes_over_tls_and_outlives_the_limits_of_heads() {
    let identity = Identity::new();
    let limits = Limits { request_read_timeout: Duration::from_millis(100), ..fixture::quick_limits() };
    let port = listen_tls(&with(limits), identity.certificates()).await;
    let connector =
        tokio_tungstenite::client_async("wss://localhost/mcp", identity.connect(port).await.expect("a handshake"));
    let (mut socket, _) = connector.await.expect("an upgrade");
    for id in 1..=3 {
        socket.send(Message::text(call(id, "wait", json!({ "ms": 150 })).to_string())).await.expect("writable");
        let answer = loop {
            match timeout(PATIENCE, socket.next()).await.expect("in time").expect("open").expect("a frame") {
                Message::Text(text) => break serde_json::from_str::<serde_json::Value>(&text).expect("JSON"),
                _ => continue,
            }
        };
        assert_eq!(answer["id"], id);
    }
}

#[tokio::test]
async fn s08_plain_http_on_a_port_with_tls_is_told_so() {
    let identity = Identity::new();
    let server = fixture::server();
    let port = listen_tls(&server, identity.certificates()).await;
    let reply = ask(peer::connect(port).await, "localhost", "", &ping()).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.contains("this port speaks https"), "{}", reply.body);
}

#[tokio::test]
async fn s08_failed_handshakes_are_counted_and_give_their_places_back() {
    let (identity, stranger) = (Identity::new(), Identity::new());
    let limits = Limits { request_read_timeout: Duration::from_millis(300), ..fixture::quick_limits() };
    let server = with(limits);
    let plain = fixture::listen(&server, Options::default()).await;
    let port = listen_tls(&server, identity.certificates()).await;
    let failed = async |count| {
        peer::eventually(async || metric(plain, "corbie_tls_handshakes_failed_total").await == count).await;
    };
    assert!(stranger.connect(port).await.is_err(), "a client that does not know the certificate");
    failed(1).await;
    // One that says nothing, and one that says something else, are not waited for.
    let mut silent = peer::connect(port).await;
    closed(&mut silent).await;
    failed(2).await;
    let mut other = peer::connect(port).await;
    other.write_all(&[0x16, 3, 1, 0xff, 0xff]).await.expect("writable");
    closed(&mut other).await;
    failed(3).await;
    ask(peer::connect(port).await, "localhost", "", &ping()).await;
    failed(4).await;
    // Somebody who looks whether the port is open has not tried.
    drop(peer::connect(port).await);
    assert_eq!(ask(identity.connect(port).await.expect("a handshake"), "localhost", "", &ping()).await.status, 200);
    // The one that asks is the last that is open.
    peer::eventually(async || metric(plain, "corbie_connections").await == 1).await;
    assert_eq!(metric(plain, "corbie_tls_handshakes_failed_total").await, 4);
}

#[tokio::test]
async fn s08_a_new_certificate_is_used_from_the_next_connection_on() {
    let (first, second) = (Identity::new(), Identity::new());
    let certificates = first.certificates();
    let port = listen_tls(&fixture::server(), certificates.clone()).await;
    let mut open = first.connect(port).await.expect("a handshake");
    assert_eq!(ask_on(&mut open).await, "HTTP/1.1 200 OK");

    assert_eq!(certificates.replace(first.chain.as_bytes(), first.key.as_bytes()), Ok(false));
    for (chain, key, why) in [
        (&second.chain, &first.key, CertificateError::OtherKey),
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
    let identity = Identity::expired();
    let port = listen_tls(&fixture::server(), identity.certificates()).await;
    let error = identity.connect(port).await.expect_err("refused").to_string();
    assert!(error.to_lowercase().contains("expired"), "{error}");
}

// === a socket in the file system ===

#[tokio::test]
async fn s06_x16_callers_of_a_socket_file_stand_as_those_of_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let server = fixture::server();
    serve_file(&server, &path, 0o600, Options::default());
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    // No name leads to a file, so any is right; a page of elsewhere is not.
    let wipe = call(1, "wipe", json!({})).to_string();
    for host in ["localhost", "upstream", "mcp.example.org:443"] {
        let reply = ask(UnixStream::connect(&path).await.expect("listening"), host, "", &wipe).await;
        assert_eq!(peer::text_of(&reply.json()), "wiped", "{host}");
    }
    let logged = server.audit().latest(1);
    assert_eq!((&*logged[0].caller, logged[0].via, logged[0].outcome), ("unix", Via::Http, AuditOutcome::Success));
    let page = "origin: https://evil.example\r\n";
    let reply = ask(UnixStream::connect(&path).await.expect("listening"), "localhost", page, &wipe).await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn s05_a_socket_file_asks_for_the_token_where_one_is_set() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let options = Options { auth: Auth::tokens([Token::new("me", "secret", None)]), ..Options::default() };
    serve_file(&fixture::server(), &path, 0o660, options);
    for (more, status) in [("", 401), ("authorization: Bearer secret\r\n", 200)] {
        let reply = ask(UnixStream::connect(&path).await.expect("listening"), "localhost", more, &ping()).await;
        assert_eq!(reply.status, status);
    }
}

#[tokio::test]
async fn s06_a_web_socket_goes_over_a_socket_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    serve_file(&fixture::server(), &path, 0o600, Options::default());
    let stream = UnixStream::connect(&path).await.expect("listening");
    let (mut socket, _) = tokio_tungstenite::client_async("ws://socket/mcp", stream).await.expect("an upgrade");
    socket.send(Message::text(ping())).await.expect("writable");
    let answer = timeout(PATIENCE, socket.next()).await.expect("in time").expect("open").expect("a frame");
    assert!(answer.to_text().expect("text").contains("\"id\":7"));
}

#[tokio::test]
async fn a07_a_socket_file_is_removed_at_the_end_and_only_if_it_is_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    for replaced in [false, true] {
        let server = fixture::server();
        let serving = serve_file(&server, &path, 0o600, Options::default());
        let other = replaced.then(|| {
            std::fs::remove_file(&path).expect("removed");
            UnixListener::bind(&path).expect("bound")
        });
        server.drain();
        timeout(PATIENCE, serving).await.expect("ends").expect("no panic").expect("no error");
        assert_eq!(path.exists(), replaced);
        drop(other);
    }
}

#[tokio::test]
async fn s06_a_socket_file_that_was_left_behind_is_replaced_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    drop(UnixListener::bind(&path).expect("bound"));
    assert!(path.exists(), "nobody is there, and the file is");
    let held = SocketFile::bind(&path, 0o600).expect("replaced");
    assert!(matches!(SocketFile::bind(&path, 0o600), Err(SocketError::InUse)));
    drop(held);
    std::fs::write(&path, "a text").expect("a file");
    assert!(matches!(SocketFile::bind(&path, 0o600), Err(SocketError::NotASocket)));
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "a text");
    assert!(matches!(SocketFile::bind(folder.path().join("none/socket"), 0o600), Err(SocketError::NoFolder(_))));
    let long = folder.path().join("x".repeat(200));
    assert!(matches!(SocketFile::bind(long, 0o600), Err(SocketError::Io(_))));
}

// === addresses ===

#[tokio::test]
async fn s06_only_what_others_can_reach_needs_a_token() {
    let mapped = Ipv6Addr::from(0xffff_7f00_0001_u128);
    for (address, refused) in [
        ("127.0.0.1".parse().expect("an address"), false),
        ("127.9.9.9".parse().expect("an address"), false),
        (std::net::IpAddr::V6(mapped), false),
        ("0.0.0.0".parse().expect("an address"), true),
        ("::".parse().expect("an address"), true),
    ] {
        // Not every machine has every kind.
        let Ok(listener) = TcpListener::bind((address, 0)).await else { continue };
        let server = fixture::server();
        let http = Http::new(server.clone(), Options::default());
        let serving = tokio::spawn(async move { http.serve(listener).await });
        server.drain();
        let ended = timeout(PATIENCE, serving).await.expect("ends").expect("no panic");
        assert_eq!(ended.is_err(), refused, "{address}: {ended:?}");
    }
}

// === bounds ===

#[tokio::test]
async fn s10_an_idle_connection_is_closed_after_its_own_time() {
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        request_read_timeout: PATIENCE * 3,
        ..fixture::quick_limits()
    };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let mut stream = peer::connect(port).await;
    assert_eq!(ask_on(&mut stream).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut stream).await, "");
}

#[tokio::test]
async fn s10_a_kept_connection_is_served_after_more_time_than_a_head_has() {
    let limits = Limits { request_read_timeout: Duration::from_millis(50), ..fixture::quick_limits() };
    let server = with(limits);
    let port = fixture::listen(&server, Options::default()).await;
    let mut kept = peer::connect(port).await;
    assert_eq!(ask_on(&mut kept).await, "HTTP/1.1 200 OK");
    // As long as a connection that has sent nothing is waited for, which came later.
    for _ in 0..2 {
        closed(&mut peer::connect(port).await).await;
    }
    assert_eq!(ask_on(&mut kept).await, "HTTP/1.1 200 OK");
    // Begun, the next head has as long as any.
    kept.write_all(b"GET /li").await.expect("writable");
    assert_eq!(closed(&mut kept).await, "");
}

#[tokio::test]
async fn s10_a_request_that_takes_long_is_not_idle() {
    let gate = Gate::new();
    let limits = Limits {
        idle_timeout: Duration::from_millis(50),
        request_read_timeout: Duration::from_millis(50),
        ..fixture::quick_limits()
    };
    let server = fixture::builder(Wiped::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let asking = tokio::spawn(async move {
        ask(peer::connect(port).await, "localhost", "", &call(1, "gate", json!({})).to_string()).await
    });
    gate.entered().await;
    for _ in 0..3 {
        closed(&mut peer::connect(port).await).await;
    }
    gate.open();
    assert_eq!(asking.await.expect("no panic").status, 200);
}

#[tokio::test]
async fn s10_an_idle_connection_makes_room_and_a_busy_one_does_not() {
    let gate = Gate::new();
    let limits = Limits { max_connections: 2, request_read_timeout: PATIENCE * 3, ..fixture::quick_limits() };
    let server = fixture::builder(Wiped::default()).limits(limits).tool(gate.tool()).build().expect("valid");
    let port = fixture::listen(&server, Options::default()).await;
    let busy = tokio::spawn(async move {
        ask(peer::connect(port).await, "localhost", "", &call(1, "gate", json!({})).to_string()).await
    });
    gate.entered().await;
    let mut idle = peer::connect(port).await;
    assert_eq!(ask_on(&mut idle).await, "HTTP/1.1 200 OK");

    let mut newcomer = peer::connect(port).await;
    assert_eq!(ask_on(&mut newcomer).await, "HTTP/1.1 200 OK");
    assert_eq!(closed(&mut idle).await, "");
    // Both are busy now.
    let message = call(2, "gate", json!({})).to_string();
    let also_busy = tokio::spawn(async move { ask(newcomer, "localhost", "", &message).await });
    gate.entered().await;
    let reply = ask(peer::connect(port).await, "localhost", "", &ping()).await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (503, "1"));
    gate.open();
    gate.open();
    for asked in [busy, also_busy] {
        assert_eq!(asked.await.expect("no panic").status, 200);
    }
}

#[tokio::test]
async fn s10_a_slow_head_a_slow_body_and_a_client_that_does_not_read_end_over_tls_too() {
    let identity = Identity::new();
    let limits = Limits {
        request_read_timeout: Duration::from_millis(300),
        write_timeout: Duration::from_millis(300),
        ..fixture::quick_limits()
    };
    let port = listen_tls(&with(limits), identity.certificates()).await;
    let mut head = identity.connect(port).await.expect("a handshake");
    head.write_all(b"GET /live HTTP/1.1\r\nhost").await.expect("writable");
    assert_eq!(closed(&mut head).await, "");

    let mut body = identity.connect(port).await.expect("a handshake");
    let begun =
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    body.write_all(begun.as_bytes()).await.expect("writable");
    assert!(closed(&mut body).await.starts_with("HTTP/1.1 408"));

    let mut deaf = identity.connect(port).await.expect("a handshake");
    let message = call(1, "echo", json!({ "text": "x".repeat(1_000_000) })).to_string();
    let whole = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{message}",
        message.len()
    );
    let asking = async { while deaf.write_all(whole.as_bytes()).await.is_ok() {} };
    timeout(PATIENCE, asking).await.expect("hung up in time");
}
