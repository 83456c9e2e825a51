//! Mock provider with minimal cost: precomputed responses in OpenAI's and Anthropic's protocol.
//!
//! Each event of a stream is sent in a separate write and HTTP chunk, as with real models.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Sleep;

#[path = "../gateway/canned_response.rs"]
mod canned_response;

/// The parts of a request that determine the response.
#[derive(Deserialize)]
struct ChatRequest {
    #[serde(default)]
    model: String,
    #[serde(default)]
    stream: bool,
}

/// All responses, as bytes.
struct CannedResponses {
    models: Bytes,
    openai: CannedResponse,
    anthropic: CannedResponse,
}

struct CannedResponse {
    full: Bytes,
    events: Vec<Bytes>,
}

/// The body of a response.
enum ResponseBody {
    Full(Bytes),
    Events { left: VecDeque<Bytes>, gap: EventPacing },
}

/// Gap between two events.
enum EventPacing {
    /// Only the end of a write: the connection flushes when the body is pending.
    Flush {
        done: bool,
    },
    Pause(Pin<Box<Sleep>>),
}

/// A model whose name contains this word pauses before each event but the first.
const PACED_MODEL_MARK: &str = "spaced";
const EVENT_INTERVAL: Duration = Duration::from_millis(1);

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().skip_while(|word| word != "--port").nth(1).expect("usage: upstream_server --port N");
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let answers = Arc::new(CannedResponses::new());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answers = answers.clone();
        let service = hyper::service::service_fn(move |request| respond(request, answers.clone()));
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // Ends when the client disconnects.
        tokio::spawn(connection);
    }
}

async fn respond(
    request: Request<Incoming>,
    answers: Arc<CannedResponses>,
) -> Result<Response<ResponseBody>, Infallible> {
    let (head, body) = request.into_parts();
    let answer = match (&head.method, head.uri.path()) {
        (&Method::GET, "/v1/models") => return Ok(json_response(StatusCode::OK, answers.models.clone())),
        (&Method::GET, "/health") => return Ok(json_response(StatusCode::OK, Bytes::from_static(b"{}"))),
        (&Method::POST, "/v1/chat/completions") => &answers.openai,
        (&Method::POST, "/v1/messages") => &answers.anthropic,
        _ => return Ok(json_response(StatusCode::NOT_FOUND, Bytes::from_static(b"{}"))),
    };
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let Ok(asked) = serde_json::from_slice::<ChatRequest>(&body) else {
        return Ok(json_response(StatusCode::BAD_REQUEST, Bytes::from_static(b"{}")));
    };
    if !asked.stream {
        return Ok(json_response(StatusCode::OK, answer.full.clone()));
    }
    let gap = match asked.model.contains(PACED_MODEL_MARK) {
        true => EventPacing::Pause(Box::pin(tokio::time::sleep(Duration::ZERO))),
        false => EventPacing::Flush { done: true },
    };
    let mut response = Response::new(ResponseBody::Events { left: answer.events.iter().cloned().collect(), gap });
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn json_response(status: StatusCode, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut *self {
            ResponseBody::Full(bytes) => Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty()),
            ResponseBody::Events { left, gap } => {
                if !left.is_empty() && !gap.is_elapsed(context) {
                    return Poll::Pending;
                }
                left.pop_front()
            }
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Events { .. } => SizeHint::default(),
        }
    }
}

impl EventPacing {
    /// Prepares for the next event.
    fn is_elapsed(&mut self, context: &mut Context<'_>) -> bool {
        match self {
            EventPacing::Flush { done } => {
                *done = !*done;
                if *done {
                    context.waker().wake_by_ref();
                }
                !*done
            }
            EventPacing::Pause(sleep) => {
                let is_over = sleep.as_mut().poll(context).is_ready();
                if is_over {
                    sleep.as_mut().reset(tokio::time::Instant::now() + EVENT_INTERVAL);
                }
                is_over
            }
        }
    }
}

impl CannedResponses {
    fn new() -> CannedResponses {
        let models = ["gpt-test", "gpt-test-spaced"];
        let models = models.map(|id| json!({ "id": id, "object": "model", "created": 1_760_000_000, "owned_by": "b" }));
        CannedResponses {
            models: json!({ "object": "list", "data": models }).to_string().into(),
            openai: openai(),
            anthropic: anthropic(),
        }
    }
}

fn openai() -> CannedResponse {
    let usage = json!({
        "prompt_tokens": 214, "completion_tokens": 61, "total_tokens": 275,
        "prompt_tokens_details": { "cached_tokens": 0 }, "completion_tokens_details": { "reasoning_tokens": 0 },
    });
    let whole = json!({
        "id": "chatcmpl-BenchAnswer000000000000000001",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-test",
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": canned_response::full_text(), "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": usage,
        "system_fingerprint": "fp_bench",
    });
    let chunk = |choices: Value, usage: &Value| {
        json!({
            "id": "chatcmpl-BenchAnswer000000000000000001",
            "object": "chat.completion.chunk",
            "created": 1_760_000_000,
            "model": "gpt-test",
            "system_fingerprint": "fp_bench",
            "choices": choices,
            "usage": usage,
        })
    };
    let choice = |delta: Value, reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
    let mut events = vec![chunk(choice(json!({ "role": "assistant", "content": "" }), Value::Null), &Value::Null)];
    events.extend(
        canned_response::PIECES
            .iter()
            .map(|piece| chunk(choice(json!({ "content": piece }), Value::Null), &Value::Null)),
    );
    events.push(chunk(choice(json!({}), "stop".into()), &Value::Null));
    events.push(chunk(json!([]), &usage));
    assert_eq!(events.len(), canned_response::EVENT_COUNT, "as promised");
    let mut events: Vec<Bytes> = events.iter().map(|event| format!("data: {event}\n\n").into()).collect();
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    CannedResponse { full: whole.to_string().into(), events }
}

fn anthropic() -> CannedResponse {
    let message = |content: Value, reason: Value, tokens: u32| {
        json!({
            "id": "msg_bench000000000000000001",
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": content,
            "stop_reason": reason,
            "stop_sequence": null,
            "usage": { "input_tokens": 214, "output_tokens": tokens },
        })
    };
    let whole = message(json!([{ "type": "text", "text": canned_response::full_text() }]), "end_turn".into(), 61);
    let mut events = vec![
        json!({ "type": "message_start", "message": message(json!([]), Value::Null, 1) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    ];
    events.extend(canned_response::PIECES.iter().map(
        |piece| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": piece } }),
    ));
    events.push(json!({ "type": "content_block_stop", "index": 0 }));
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": "end_turn", "stop_sequence": null },
        "usage": { "output_tokens": 61 },
    }));
    events.push(json!({ "type": "message_stop" }));
    let framed = |event: &Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n").into()
    };
    CannedResponse { full: whole.to_string().into(), events: events.iter().map(framed).collect() }
}
