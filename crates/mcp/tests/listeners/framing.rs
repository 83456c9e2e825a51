//! HTTP/1.1 framing: where one request ends and the next one begins must not be open to interpretation (RFC 9112).

use corbie_mcp::Limits;
use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, RateLimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{closed, ping};
use crate::fixture;
use crate::fixture::peer::{self, TEST_TIMEOUT, http};

async fn listen() -> u16 {
    fixture::listen(&fixture::server(), Options::default()).await
}

/// Reads one reply, whose end is known by its length.
async fn reply_on(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if body.len() >= length.unwrap_or(0) {
                    return text;
                }
            }
            assert!(stream.read_buf(&mut read).await.expect("readable") > 0, "closed after {text}");
        }
    };
    timeout(TEST_TIMEOUT, reading).await.expect("in time")
}

const LENGTH: &str = "Content-Length: 12\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n";

fn post(more: &str) -> String {
    format!(
        "POST /mcp/ping HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n2\r\n{{}}\r\n0\r\n\r\n"
    )
}

#[tokio::test]
async fn s10_a_length_beside_chunks_gets_400_wherever_a_pipelined_head_is_cut() {
    let port = listen().await;
    let chunks = "transfer-encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nx: y\r\n\r\n";
    let json = "POST /mcp/ping HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let firsts = [
        "GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        format!("{json}content-length: 2\r\n\r\n{{}}"),
        format!("{json}{chunks}"),
    ];
    for first in firsts {
        for both in [format!("{LENGTH}{CHUNKED}"), format!("{CHUNKED}{LENGTH}")] {
            let second = post(&both);
            let head = second.find("\r\n\r\n").expect("a head") + 4;
            for cut in 0..=head {
                let mut stream = peer::connect(port).await;
                stream.write_all(format!("{first}{}", &second[..cut]).as_bytes()).await.expect("writable");
                let reply = reply_on(&mut stream).await;
                assert!(reply.starts_with("http/1.1 200"), "{first} {cut}: {reply}");
                // The server may have refused it before its last bytes.
                let _ = stream.write_all(&second.as_bytes()[cut..]).await;
                let rest = closed(&mut stream).await;
                let refused = format!("{reply}{rest}").to_ascii_lowercase();
                assert_eq!(refused.matches("http/1.1 ").count(), 2, "{first} {cut}: {refused}");
                assert!(refused.contains("http/1.1 400") && refused.contains("connection: close"), "{cut}: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn s10_chunked_requests_one_after_the_other_are_served_on_one_connection() {
    let port = listen().await;
    let mut stream = peer::connect(port).await;
    for _ in 0..3 {
        // In one packet, cut in two, and two requests pipelined.
        let request = post(CHUNKED);
        stream.write_all(request.as_bytes()).await.expect("writable");
        assert!(reply_on(&mut stream).await.starts_with("http/1.1 200"));
        let (start, rest) = request.split_at(30);
        stream.write_all(start.as_bytes()).await.expect("writable");
        tokio::task::yield_now().await;
        stream.write_all(format!("{rest}{request}").as_bytes()).await.expect("writable");
        let (mut replies, mut part) = (String::new(), [0; 4096]);
        while replies.matches("\r\n\r\n{}").count() < 2 {
            let count = timeout(TEST_TIMEOUT, stream.read(&mut part)).await.expect("in time").expect("readable");
            assert!(count > 0, "closed after {replies}");
            replies.push_str(&String::from_utf8_lossy(&part[..count]));
        }
        assert_eq!(replies.matches("HTTP/1.1 200").count(), 2, "{replies}");
    }
}

/// What a head of this form gets, and whether the connection is closed.
#[tokio::test]
async fn s10_heads_that_two_readers_could_take_for_different_ones() {
    let port = listen().await;
    let get = |more: &str| format!("GET /live HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    let json = "POST /mcp/ping HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    for (name, sent, status, closes) in [
        ("lines that end in a bare LF", get("").replace('\r', ""), 200, false),
        ("a bare CR in a line", get("x: a\rb\r\n"), 400, true),
        ("a folded line", get("x: a\r\n b\r\n"), 400, true),
        ("a folded line with a tab", get("x: a\r\n\tb\r\n"), 400, true),
        ("a folded length", format!("{json}content-length:\r\n 2\r\n\r\n{{}}"), 400, true),
        ("a space before the colon", get("x : a\r\n"), 400, true),
        ("a tab before the colon", get("x\t: a\r\n"), 400, true),
        ("a space before the colon of a length", format!("{json}content-length : 2\r\n\r\n{{}}"), 400, true),
        ("a space before the first header", "GET /live HTTP/1.1\r\n host: localhost\r\n\r\n".to_owned(), 400, true),
        ("an empty name", get(": a\r\n"), 400, true),
        ("no colon", get("x\r\n"), 400, true),
        ("a NUL", get("x: a\0b\r\n"), 400, true),
        ("two lengths that differ", format!("{json}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}} "), 400, true),
        ("two lengths that agree", format!("{json}content-length: 2\r\ncontent-length: 2\r\n\r\n{{}}"), 200, false),
        ("a list of lengths", format!("{json}content-length: 2, 2\r\n\r\n{{}}"), 400, true),
        ("a length with a sign", format!("{json}content-length: +2\r\n\r\n{{}}"), 400, true),
        ("no length", format!("{json}content-length:\r\n\r\n{{}}"), 400, true),
        ("chunks before another coding", post("transfer-encoding: chunked, identity\r\n"), 400, true),
        ("chunks in one of two headers", post("transfer-encoding: chunked\r\ntransfer-encoding: x\r\n"), 400, true),
        ("chunks after another coding", post("transfer-encoding: gzip, chunked\r\n"), 400, true),
        ("chunks and a length", post(&format!("{CHUNKED}{LENGTH}")), 400, true),
        ("a length and chunks", post(&format!("{LENGTH}{CHUNKED}")), 400, true),
        ("two hosts that agree", get("host: localhost\r\n"), 400, false),
        ("two hosts that differ", get("host: evil.example\r\n"), 400, false),
        ("no host", "GET /live HTTP/1.1\r\n\r\n".to_owned(), 400, false),
        ("empty lines first", format!("\r\n\n\r\n{}", get("")), 200, false),
    ] {
        let mut stream = peer::connect(port).await;
        stream.write_all(sent.as_bytes()).await.expect("writable");
        let reply = reply_on(&mut stream).await;
        assert!(reply.starts_with(&format!("http/1.1 {status}")), "{name}: {reply}");
        if closes {
            closed(&mut stream).await;
        } else {
            stream.write_all(get("").as_bytes()).await.expect("writable");
            assert!(reply_on(&mut stream).await.starts_with("http/1.1 200"), "{name}: the next request");
        }
    }
    peer::assert_served(port).await;
}

#[tokio::test]
async fn s10_a_host_or_an_origin_with_a_tab_is_not_localhost() {
    let port = listen().await;
    for host in ["local\thost", "localhost\t:80", "127.0.0\t.1"] {
        assert_eq!(http(port, "GET", "/live", &[("host", host)], "").await.status, 400, "{host:?}");
        let origin = format!("http://{host}");
        assert_eq!(http(port, "GET", "/live", &[("origin", &origin)], "").await.status, 403, "{origin:?}");
    }
}

/// The head of a `POST` and the beginning of its body; the rest never comes.
fn unfinished(path: &str, more: &str, framing: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}{framing}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn s10_a_reply_before_the_end_of_a_body_announces_that_the_connection_closes() {
    let server = fixture::builder(Default::default())
        .limits(Limits { max_message_bytes: 1000, ..fixture::quick_limits() })
        .build()
        .expect("valid");
    let limited = Options {
        auth: Auth::bearer(["right-token"]),
        rate_limit: Some(RateLimit { per_second: 1, burst: 1 }),
        ..Options::default()
    };
    let limited_port = fixture::listen(&server, limited).await;
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&server, options).await;
    let token = "authorization: Bearer right-token\r\n";
    http(limited_port, "POST", "/mcp/ping", &[("authorization", "Bearer right-token")], "").await;
    for (port, path, more, status) in [
        (port, "/mcp", "", 401),
        (port, "/mcp/ping", "authorization: Bearer wrong\r\n", 401),
        (port, "/nowhere", token, 404),
        (port, "/health", token, 405),
        (port, "/mcp", "authorization: Bearer right-token\r\ncontent-type: text/plain\r\n", 415),
        (port, "/mcp", "authorization: Bearer right-token\r\nx-too-large: 1\r\n", 413),
        (limited_port, "/mcp", token, 429),
        (port, "/mcp", "origin: http://evil.example\r\n", 403),
    ] {
        let length = if more.contains("too-large") { 2_000_000 } else { 900 };
        let length = format!("content-length: {length}");
        for (framing, body) in [
            (length.as_str(), "{"),
            (length.as_str(), ""),
            ("expect: 100-continue\r\ncontent-length: 5000000", ""),
            ("transfer-encoding: chunked", "2\r\n{}\r\n"),
            ("transfer-encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"),
        ] {
            if status == 413 && framing.starts_with("transfer") {
                continue;
            }
            let mut stream = peer::connect(port).await;
            stream.write_all(unfinished(path, more, framing, body).as_bytes()).await.expect("writable");
            let reply = reply_on(&mut stream).await;
            assert!(reply.starts_with(&format!("http/1.1 {status}")), "{path} {more} {framing}: {reply}");
            assert!(reply.contains("connection: close"), "{path} {more} {framing} {body}: {reply}");
            assert_eq!(closed(&mut stream).await, "", "{path} {more}");
        }
    }
}

#[tokio::test]
async fn s10_a_reply_to_a_body_that_has_arrived_keeps_the_connection() {
    let options = Options { auth: Auth::bearer(["right-token"]), ..Options::default() };
    let port = fixture::listen(&fixture::server(), options).await;
    let mut stream = peer::connect(port).await;
    let body = ping();
    for _ in 0..5 {
        let length = format!("content-length: {}", body.len());
        stream.write_all(unfinished("/mcp", "", &length, &body).as_bytes()).await.expect("writable");
        let reply = reply_on(&mut stream).await;
        assert!(reply.starts_with("http/1.1 401") && !reply.contains("connection: close"), "{reply}");
    }
}
