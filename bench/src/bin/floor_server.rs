//! Lower bound for the machine: the same two tools without a protocol layer. On stdio a plain loop that reads a line,
//! parses it and writes the reply; on HTTP a bare axum handler that does the same.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::serve::ListenerExt;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct JsonRpcRequest<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: CallParams<'a>,
}

#[derive(Deserialize, Default)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<CallArguments<'a>>,
}

#[derive(Deserialize)]
struct CallArguments<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct JsonRpcResponse<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: CallResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    result_type: &'static str,
    content: [TextContent<'a>; 1],
    is_error: bool,
}

#[derive(Serialize)]
struct TextContent<'a> {
    r#type: &'static str,
    text: &'a str,
}

fn main() -> io::Result<()> {
    match std::env::args().skip_while(|word| word != "--port").nth(1) {
        Some(port) => serve_http(&port),
        None => serve_stdio(),
    }
}

fn serve_stdio() -> io::Result<()> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        answer(&line, &mut output)?;
        // More input is waiting: its reply can go into the same write.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
}

#[tokio::main]
async fn serve_http(port: &str) -> io::Result<()> {
    let router = axum::Router::new().route("/mcp", post(call)).layer(axum::extract::DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener.tap_io(|stream| drop(stream.set_nodelay(true))), router).await
}

async fn call(body: Bytes) -> impl IntoResponse {
    let mut reply = Vec::with_capacity(body.len() + 128);
    let _ = answer(&body, &mut reply); // Writing to memory does not fail.
    ([(CONTENT_TYPE, "application/json")], reply)
}

/// Writes the reply and a newline; no output for a notification.
fn answer(message: &[u8], output: &mut impl Write) -> io::Result<()> {
    let request: JsonRpcRequest<'_> = serde_json::from_slice(message)?;
    let Some(id) = request.id else { return Ok(()) };
    let ten_kb;
    let text = match (request.params.name.as_deref(), &request.params.arguments) {
        (Some("ten_kb"), _) => {
            ten_kb = "x".repeat(10_000);
            &ten_kb
        }
        (_, Some(CallArguments { text: Some(text) })) => &**text,
        _ => "",
    };
    let content = [TextContent { r#type: "text", text }];
    let result = CallResult { result_type: "complete", content, is_error: false };
    serde_json::to_writer(&mut *output, &JsonRpcResponse { jsonrpc: "2.0", id, result })?;
    output.write_all(b"\n")
}
