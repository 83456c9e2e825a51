//! HTTP over Unix sockets, and which addresses count as local (S-06).

use std::io;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::transport::{Auth, SocketError, SocketFile, Token};
use corbie_mcp::{AuditOutcome, Server, Transport};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{ask, ping};
use crate::fixture;
use crate::fixture::peer::{self, TEST_TIMEOUT, call};

fn serve_file(server: &Server, path: &Path, mode: u32, options: Options) -> JoinHandle<io::Result<()>> {
    let socket = SocketFile::bind(path, mode).expect("bound");
    let http = Http::new(server.clone(), options);
    tokio::spawn(async move { http.serve_unix(socket).await })
}

#[tokio::test]
async fn s06_x16_callers_of_a_socket_file_stand_as_those_of_this_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let server = fixture::server();
    serve_file(&server, &path, 0o600, Options::default());
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    // A socket file has no host name, so any `Host` is accepted; a foreign web origin is not.
    let wipe = call(1, "wipe", json!({})).to_string();
    for host in ["localhost", "upstream", "mcp.example.org:443"] {
        let reply = ask(UnixStream::connect(&path).await.expect("listening"), host, "", &wipe).await;
        assert_eq!(peer::text_of(&reply.json()), "wiped", "{host}");
    }
    let logged = server.audit().latest(1);
    assert_eq!(
        (&*logged[0].caller, logged[0].via, logged[0].outcome),
        ("unix", Transport::Http, AuditOutcome::Success)
    );
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
    let answer = timeout(TEST_TIMEOUT, socket.next()).await.expect("in time").expect("open").expect("a frame");
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
        timeout(TEST_TIMEOUT, serving).await.expect("ends").expect("no panic").expect("no error");
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
    assert!(matches!(SocketFile::bind(folder.path().join("none/socket"), 0o600), Err(SocketError::NoDirectory(_))));
    let long = folder.path().join("x".repeat(200));
    assert!(matches!(SocketFile::bind(long, 0o600), Err(SocketError::Io(_))));
}

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
        // Not every machine supports every address family.
        let Ok(listener) = TcpListener::bind((address, 0)).await else { continue };
        let server = fixture::server();
        let http = Http::new(server.clone(), Options::default());
        let serving = tokio::spawn(async move { http.serve(listener).await });
        server.drain();
        let ended = timeout(TEST_TIMEOUT, serving).await.expect("ends").expect("no panic");
        assert_eq!(ended.is_err(), refused, "{address}: {ended:?}");
    }
}
