//! HTTP client over any stream.

use corbie_mcp::{Limits, Server};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::fixture::peer::{self, HttpReply, TEST_TIMEOUT, request};
use crate::fixture::{self, WipeCounter};

pub fn with(limits: Limits) -> Server {
    fixture::builder(WipeCounter::default()).limits(limits).build().expect("valid")
}

/// One request, then the connection ends.
pub async fn ask(stream: impl AsyncRead + AsyncWrite + Unpin, host: &str, more: &str, body: &str) -> HttpReply {
    let mut stream = stream;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("the server reads");
    peer::until_closed(&mut stream).await
}

/// One request for `/live` on a keep-alive connection; returns the status line.
pub async fn ask_on(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    get_on(stream, "/live", "").await
}

/// One request for `/metrics` with these headers on a keep-alive connection; returns the status line.
pub async fn ask_with(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), headers: &str) -> String {
    get_on(stream, "/metrics", headers).await
}

async fn get_on(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
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
    timeout(TEST_TIMEOUT, reading).await.expect("in time");
    status.trim().to_owned()
}

/// Waits until the server has closed the connection and returns the remaining bytes.
pub async fn closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut rest = Vec::new();
    let _ = timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await.expect("closed in time");
    String::from_utf8_lossy(&rest).into_owned()
}

pub async fn metric(port: u16, name: &str) -> i64 {
    let page = peer::http(port, "GET", "/metrics", &[], "").await.body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {page}"))
}

pub fn ping() -> String {
    request(7, "ping", json!({})).to_string()
}
