//! HTTP invariants, from bytes to the dispatcher and back, without a socket and with a paused clock.
//!
//! Any input gets a valid HTTP response or none, and never an internal error. Splitting the input gives the same
//! responses. The connection ends, and the next client is served.

use std::time::Duration;

use corbie_mcp::transport::http::{Http, Options};
use corbie_mcp::{
    Arguments, CallResult, ContentBlock, Context, Error, Prompt, PromptArguments, PromptResult, Resource, Server, Tool,
    ToolError,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::http_responses::HttpResponses;

/// Longer than any timeout of the server, on the paused clock.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(3600);
/// Maximum bytes of responses to read: event streams continue until the client disconnects.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;
/// Number of yields that is enough for a woken task to read the available input.
const YIELDS_PER_CHUNK: usize = 20;

const PING: &[u8] = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                      content-length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

/// After a `1`, text requests separated by zero bytes; otherwise raw bytes.
pub(super) fn check_invariants(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let sent = if *first == b'1' { requests(rest) } else { rest.to_vec() };
    // The response to HEAD declares a length, but has no body.
    let heads = sent.windows(4).any(|word| word == b"HEAD");
    let whole = response_statuses(std::slice::from_ref(&sent), heads);
    let step = rest.iter().fold(1, |sum: usize, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte))) % 97 + 1;
    let pieces: Vec<Vec<u8>> = sent.chunks(step).map(<[u8]>::to_vec).collect();
    let cut = response_statuses(&pieces, heads);
    // A request rejected before its body arrived closes the connection, so later requests are not answered.
    let seen = cut.len().min(whole.len());
    assert_eq!(cut[..seen], whole[..seen], "it does not matter how bytes arrive");
    // An incomplete head may be rejected immediately or awaited.
    if sent.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_eq!(cut.is_empty(), whole.is_empty(), "it does not matter how bytes arrive");
    }
}

/// A line with method and path, headers, an empty line and a body. The framing is added here, so that mutated bytes
/// give a mutated request instead of broken framing.
fn requests(text: &[u8]) -> Vec<u8> {
    let mut sent = Vec::new();
    for request in text.split(|byte| *byte == 0) {
        let end = request.windows(2).position(|pair| pair == b"\n\n").unwrap_or(request.len());
        let (head, body) = (&request[..end], request.get(end + 2..).unwrap_or_default());
        let mut lines = head.split(|byte| *byte == b'\n');
        sent.extend_from_slice(lines.next().unwrap_or_default());
        sent.extend_from_slice(b" HTTP/1.1\r\nhost: localhost\r\n");
        for line in lines {
            sent.extend_from_slice(line);
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        sent.extend_from_slice(body);
    }
    sent
}

/// Sends pieces to a new server and returns the response statuses.
fn response_statuses(pieces: &[Vec<u8>], heads: bool) -> Vec<u16> {
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    clock.expect("a runtime").block_on(async {
        let http = Http::new(server(), Options::default());
        let statuses = HttpResponses::parse(&exchange(&http, pieces).await, heads).check();
        let next = exchange(&http, &[PING.to_vec()]).await;
        assert_eq!(HttpResponses::parse(&next, false).check(), [200], "whoever comes next is served");
        statuses
    })
}

/// A client that sends, reads for a while and disconnects.
async fn exchange(http: &Http, pieces: &[Vec<u8>]) -> Vec<u8> {
    let (client, server) = duplex(1 << 16);
    let http = http.clone();
    let serving = tokio::spawn(async move { http.serve_connection(server).await });
    let (mut reader, mut writer) = split(client);
    let mut answers = Vec::new();
    let sending = async {
        for piece in pieces {
            if writer.write_all(piece).await.is_err() {
                break;
            }
            for _ in 0..YIELDS_PER_CHUNK {
                yield_now().await;
            }
        }
    };
    let listening = async {
        // The connection may break; earlier responses count.
        let _ = (&mut reader).take(MAX_RESPONSE_BYTES).read_to_end(&mut answers).await;
    };
    let _ = timeout(CLIENT_TIMEOUT, async { tokio::join!(sending, listening) }).await;
    drop((reader, writer));
    let ended = timeout(CLIENT_TIMEOUT, serving).await.expect("a connection ends when its client has gone");
    ended.expect("serving does not panic");
    answers
}

/// One tool of each kind: immediate, delayed, with notifications, with a client request.
fn server() -> Server {
    let tool = |name: &str| Tool::builder(name).description("For a test").module("fixture");
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let built = Server::builder("fixture", "1.0.0")
        .builtins()
        .tool(tool("echo").input_schema(text).run(async |_, arguments: Arguments| {
            CallResult::text(arguments.value()["text"].as_str().unwrap_or_default())
        }))
        .tool(tool("wait").no_input().run(async |_, _| {
            sleep(Duration::from_millis(50)).await;
            "waited"
        }))
        .tool(tool("steps").no_input().run(async |context: Context, _| {
            for step in 1..=3 {
                context.progress(f64::from(step), Some(3.0), Some("working"));
                yield_now().await;
            }
            "done"
        }))
        .tool(tool("ask").no_input().run(async |context: Context, _| {
            let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
            let answer = context.elicit("name", "What is your name?", schema).await?;
            Ok::<_, ToolError>(format!("{:?}", answer.action))
        }))
        .resource(Resource::text("fixture://text", "text", "text/plain", "some text"))
        .prompt(
            Prompt::new("greet", "Greet someone", async |_, arguments: PromptArguments| -> Result<_, Error> {
                Ok(PromptResult::user([ContentBlock::text(format!("Greet {}.", arguments["name"]))]))
            })
            .required("name", "Whom to greet"),
        );
    built.build().expect("the fixture is valid")
}
