//! P-16, S-01: peers that do not implement the API, or only partly.

use std::io::Write;

use corbie_mcp::Era;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::fixture::{app, complete};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer};

/// A peer that responds to every request with these bytes and closes.
fn server_answering(bytes: Vec<u8>) -> ScriptedServer {
    ScriptedServer::start(move |_, connection| {
        let _ = connection.write_all(&bytes);
        let _ = connection.shutdown(std::net::Shutdown::Both);
    })
}

fn json_response(bytes: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", bytes.len());
    [head.as_bytes(), bytes].concat()
}

fn provider(format: &str, peer: &ScriptedServer) -> Value {
    json!({ "type": format, "base_url": format!("http://127.0.0.1:{}/v1", peer.port), "api_key": "k" })
}

#[tokio::test(flavor = "multi_thread")]
async fn p16_whatever_a_peer_says_is_one_of_the_failures_there_are() {
    let nested = [&b"{\"choices\":"[..], &[b'['; 200_000][..]].concat();
    let cases: [(&str, Vec<u8>, i64); 13] = [
        ("another protocol", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), -32006),
        ("a broken head", b"HTTP/1.1 OK 200\r\n\r\n".to_vec(), -32006),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(), -32006),
        ("a broken chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(), -32006),
        ("no content", b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), -32004),
        ("no text", json_response(b"\xff\xfe\xfd"), -32004),
        ("null", json_response(b"null"), -32004),
        ("a list", json_response(b"[]"), -32004),
        ("an empty object", json_response(b"{}"), -32004),
        ("empty lists", json_response(br#"{"choices":[],"content":null,"candidates":[]}"#), -32004),
        ("other types", json_response(br#"{"choices":{"a":1},"content":5,"candidates":"x"}"#), -32004),
        ("very deep", json_response(&nested), -32004),
        ("a teapot", b"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n".to_vec(), -32602),
    ];
    let peers: Vec<_> = cases.iter().map(|(_, bytes, _)| server_answering(bytes.clone())).collect();
    let mut providers = json!({});
    for (case, peer) in peers.iter().enumerate() {
        for format in FORMATS {
            providers[format!("{format}-{case}")] = provider(format, peer);
        }
    }
    let app = app(json!({ "providers": providers }));
    let played = cases.iter().enumerate().flat_map(|case| FORMATS.map(|format| (case, format)));
    // Some are retried, so all run concurrently.
    join_all(played.map(async |((case, (what, _, code)), format)| {
        let model = format!("{format}-{case}/m");
        let error = complete(&app, json!({ "prompt": "Hello", "model": model })).await;
        let error = error.expect_err(&format!("{format}, {what}")).to_object(Era::Legacy);
        assert_eq!(error.code, *code, "{format}, {what}: {error:?}");
    }))
    .await;
}

/// A key must not follow a redirect to another host.
#[tokio::test(flavor = "multi_thread")]
async fn s01_p16_no_redirect_is_followed() {
    let elsewhere = FakeUpstream::start();
    for status in [301, 302, 307, 308] {
        let location = format!("{}/chat/completions", elsewhere.base("openai"));
        let head = format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        let peer = server_answering(head.into_bytes());
        let app = app(json!({ "providers": { "strange": provider("openai", &peer) } }));
        let error = complete(&app, json!({ "prompt": "Hello", "model": "strange/m" })).await.unwrap_err();
        assert_eq!(error.to_object(Era::Legacy).code, -32004, "{error}");
    }
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn p01_many_prompts_at_once_get_their_own_answers() {
    let upstream = FakeUpstream::start();
    let mut providers = json!({});
    for format in FORMATS {
        providers[format] = upstream.provider(format);
    }
    let app = app(json!({ "providers": providers }));
    let asked = (0..150).map(|number| {
        let app = &app;
        async move {
            let model = format!("{}/slow-{}", FORMATS[number % 3], number % 7 * 10);
            let answered =
                complete(app, json!({ "prompt": format!("number {number}"), "model": model })).await.unwrap();
            assert_eq!(answered["message"]["content"], format!("echo: number {number}"));
            answered["_meta"]["corbie/decision"]["id"].as_u64().unwrap()
        }
    });
    let mut ids = join_all(asked).await;
    ids.sort_unstable();
    assert_eq!(ids, (1..=150).collect::<Vec<_>>(), "each has a decision of its own");
}
