//! Transcripts in wire format, replayed over every transport with the same outcome (V-15).
//!
//! A file in `transcripts/` has lines `> request` and `< answer`. `CORBIE_BLESS=1` regenerates the answers from stdio;
//! review the difference before committing it.

mod fixture;

use std::path::{Path, PathBuf};

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Server, TrustLevel};
use fixture::peer::{self, Stdio};
use serde_json::Value;

struct TranscriptEntry {
    request: Value,
    answer: String,
}

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn read(file: &Path) -> Vec<TranscriptEntry> {
    let text = std::fs::read_to_string(file).expect("readable");
    let mut exchanges: Vec<TranscriptEntry> = Vec::new();
    for line in text.lines() {
        if let Some(request) = line.strip_prefix("> ") {
            let request =
                serde_json::from_str(request).unwrap_or_else(|error| panic!("{}: {error}: {line}", file.display()));
            exchanges.push(TranscriptEntry { request, answer: String::new() });
        } else if let Some(answer) = line.strip_prefix("< ") {
            exchanges.last_mut().expect("a request first").answer = answer.to_owned();
        }
    }
    exchanges
}

fn is_modern(request: &Value) -> bool {
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string()
}

/// The part that all transports must agree on: the result or the error.
fn outcome(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(members) = answer.as_object_mut() {
        members.remove("jsonrpc");
        members.remove("id");
    }
    answer
}

async fn over_stdio(server: &Server, exchanges: &[TranscriptEntry]) -> Vec<Value> {
    let mut peer = Stdio::start(server, TrustLevel::Trusted);
    let mut answers = Vec::new();
    for exchange in exchanges {
        answers.push(peer.call(&exchange.request).await);
    }
    answers
}

async fn over_http(port: u16, exchanges: &[TranscriptEntry]) -> Vec<Value> {
    let mut answers = Vec::new();
    for TranscriptEntry { request, .. } in exchanges {
        let reply =
            if is_modern(request) { peer::post_modern(port, request).await } else { peer::post(port, request).await };
        answers.push(reply.json());
    }
    answers
}

async fn over_websocket(port: u16, exchanges: &[TranscriptEntry]) -> Vec<Value> {
    let mut socket = peer::websocket(port).await;
    let mut answers = Vec::new();
    for exchange in exchanges {
        peer::ws_send(&mut socket, &exchange.request).await;
        answers.push(peer::ws_receive(&mut socket).await);
    }
    answers
}

/// Over a Unix socket.
#[cfg(unix)]
async fn over_unix(server: &Server, exchanges: &[TranscriptEntry]) -> Vec<Value> {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{UnixListener, UnixStream};

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let (listener, server) = (UnixListener::bind(&path).expect("bound"), server.clone());
    tokio::spawn(async move { corbie_mcp::transport::unix::serve(&server, listener, TrustLevel::Trusted).await });
    let (reader, mut writer) = UnixStream::connect(&path).await.expect("listening").into_split();
    let mut lines = BufReader::new(reader).lines();
    let mut answers = Vec::new();
    for exchange in exchanges {
        writer.write_all(format!("{}\n", exchange.request).as_bytes()).await.expect("the server reads");
        let line =
            tokio::time::timeout(peer::TEST_TIMEOUT, lines.next_line()).await.expect("in time").expect("readable");
        answers.push(serde_json::from_str(&line.expect("an answer")).expect("JSON"));
    }
    answers
}

async fn over_rest(port: u16, exchanges: &[TranscriptEntry]) -> Vec<Value> {
    let mut answers = Vec::new();
    for TranscriptEntry { request, .. } in exchanges {
        let path = format!("/mcp/{}", request["method"].as_str().expect("method"));
        let body = request.get("params").map(Value::to_string).unwrap_or_default();
        let reply = peer::http(port, "POST", &path, &[peer::JSON], &body).await;
        let body = reply.json();
        answers.push(match reply.status {
            200 => serde_json::json!({ "result": body }),
            _ => serde_json::json!({ "error": body["error"] }),
        });
    }
    answers
}

#[tokio::test]
async fn v15_the_same_call_gives_the_same_result_over_every_transport() {
    for file in transcripts() {
        let exchanges = read(&file);
        let server = fixture::server();
        let port = fixture::listen(&server, Options::default()).await;
        let stdio = over_stdio(&server, &exchanges).await;
        if std::env::var_os("CORBIE_BLESS").is_some() {
            bless(&file, &stdio);
            continue;
        }
        for (exchange, answer) in exchanges.iter().zip(&stdio) {
            let expected: Value = serde_json::from_str(&exchange.answer).expect("an answer stands under each request");
            assert_eq!(answer, &expected, "{}: {}", file.display(), exchange.request);
        }
        let mut transports =
            vec![("HTTP", over_http(port, &exchanges).await), ("WebSocket", over_websocket(port, &exchanges).await)];
        #[cfg(unix)]
        transports.push(("a Unix socket", over_unix(&server, &exchanges).await));
        // The REST style is legacy only.
        if !exchanges.iter().any(|exchange| is_modern(&exchange.request)) {
            transports.push(("REST", over_rest(port, &exchanges).await));
        }
        for (name, answers) in transports {
            for ((exchange, expected), answer) in exchanges.iter().zip(&stdio).zip(&answers) {
                assert_eq!(outcome(answer), outcome(expected), "{} over {name}: {}", file.display(), exchange.request);
            }
        }
    }
}

fn bless(file: &Path, answers: &[Value]) {
    let text = std::fs::read_to_string(file).expect("readable");
    let mut answers = answers.iter();
    let mut blessed = String::new();
    for line in text.lines().filter(|line| !line.starts_with("< ")) {
        blessed.push_str(line);
        blessed.push('\n');
        if line.starts_with("> ") {
            blessed.push_str(&format!("< {}\n", answers.next().expect("one answer a request")));
        }
    }
    std::fs::write(file, blessed).expect("writable");
}
