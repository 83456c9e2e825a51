//! Request IDs and trace context.

mod fixture;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, Token};
use corbie_mcp::{Arguments, CallResult, Context, Server, TaskSupport, Tool, TraceContext, TrustLevel};
use fixture::peer::{self, HttpReply, JSON, TestTransport, call, json_of, modern, modern_headers};
use fixture::{WipeCounter, listen};
use serde_json::{Value, json};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A server with a tool that returns its request ID and trace context and logs a line.
fn server() -> Server {
    let tool = |name: &str| Tool::builder(name).description("Tell where this request belongs").no_input();
    let (trail, later) =
        (tool("trail").run(echo_trace), tool("later").task_support(TaskSupport::Optional).run(echo_trace));
    fixture::builder(WipeCounter::default()).tool(trail).tool(later).build().expect("valid")
}

async fn echo_trace(context: Context, _: Arguments) -> CallResult {
    tracing::info!("working");
    // After a yield: the current trace stays set while the work runs.
    tokio::task::yield_now().await;
    let current = TraceContext::current();
    assert_eq!(current.as_ref(), context.trace());
    CallResult::json(json!({
        "request_id": context.request_id(),
        "trace": current.as_ref().map(|trace| trace.id().to_string()),
        "state": current.as_ref().and_then(TraceContext::tracestate),
    }))
}

fn request_id(reply: &HttpReply) -> &str {
    reply.headers.get("x-request-id").expect("every reply has an id")
}

async fn post(port: u16, headers: &[(&str, &str)], body: &Value) -> HttpReply {
    let headers: Vec<_> = [JSON].into_iter().chain(headers.iter().copied()).collect();
    peer::http(port, "POST", "/mcp", &headers, &body.to_string()).await
}

#[tokio::test]
async fn m98_every_request_has_an_id_of_its_own() {
    let server = server();
    let mut seen = Vec::new();
    for way in TestTransport::ALL {
        for _ in 0..2 {
            let told = json_of(&way.request(&server, TrustLevel::Trusted, &call(1, "trail", json!({}))).await);
            let id = told["request_id"].as_str().expect("an id").to_owned();
            assert_eq!(server.audit().latest(1)[0].request_id.to_string(), id, "{way:?}");
            assert!(!seen.contains(&id), "{id} twice");
            seen.push(id);
        }
    }
}

#[tokio::test]
async fn m98_an_id_that_the_caller_sent_is_kept_if_it_is_sane_and_told_again() {
    let port = listen(&server(), Options::default()).await;
    let reply = post(port, &[("x-request-id", "my-id.7_x")], &call(1, "trail", json!({}))).await;
    assert_eq!(request_id(&reply), "my-id.7_x");
    assert_eq!(json_of(&reply.json())["request_id"], "my-id.7_x");
    let long = "x".repeat(65);
    for sent in ["with space", "semi;colon", "", &long] {
        let reply = post(port, &[("x-request-id", sent)], &call(1, "trail", json!({}))).await;
        assert_eq!(request_id(&reply), json_of(&reply.json())["request_id"]);
        assert_ne!(request_id(&reply), sent);
    }
}

#[tokio::test]
async fn m98_replies_that_never_reached_a_tool_have_an_id_too() {
    let auth = Auth::tokens([Token::new("somebody", "s3cret", None)]);
    let routes = Router::new().route("/more/{name}", get(async || "more"));
    let port = listen(&server(), Options { auth, routes, ..Options::default() }).await;
    let told = ("authorization", "Bearer s3cret");
    for (path, headers, status) in [
        ("/mcp", vec![], 401),
        ("/mcp", vec![told, ("host", "evil.example")], 403),
        ("/nowhere", vec![told], 404),
        ("/more/x", vec![told], 200),
        ("/health", vec![], 200),
        ("/metrics", vec![told], 200),
    ] {
        let headers: Vec<_> = headers.into_iter().chain([("x-request-id", "mine")]).collect();
        let reply = peer::http(port, "GET", path, &headers, "").await;
        assert_eq!((reply.status, request_id(&reply)), (status, "mine"), "{path}");
    }
}

#[tokio::test]
async fn a_trace_is_read_from_headers_and_what_the_message_says_wins() {
    let port = listen(&server(), Options::default()).await;
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=1")];
    let told = json_of(&post(port, &headers, &call(1, "trail", json!({}))).await.json());
    assert_eq!((&told["trace"], &told["state"]), (&json!(TRACE), &json!("vendor=1")));

    let mut nearer = call(1, "trail", json!({}));
    nearer["params"]["_meta"] = json!({ "traceparent": PARENT, "tracestate": "near=1", "baggage": "secret=1" });
    let headers = [("traceparent", OTHER), ("tracestate", "far=1")];
    let told = json_of(&post(port, &headers, &nearer).await.json());
    assert_eq!((&told["trace"], &told["state"]), (&json!(TRACE), &json!("near=1")));

    let mut request = modern(1, "tools/call", json!({ "name": "trail" }), json!({}));
    request["params"]["_meta"]["traceparent"] = PARENT.into();
    let headers = modern_headers(&request);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let told = peer::http(port, "POST", "/mcp", &headers, &request.to_string()).await.json();
    assert_eq!(told["result"]["structuredContent"]["trace"], TRACE, "{told}");
}

#[tokio::test]
async fn a_trace_is_read_from_messages_on_every_transport() {
    let server = server();
    let mut request = call(1, "trail", json!({}));
    request["params"]["_meta"] = json!({ "traceparent": PARENT });
    for way in TestTransport::ALL {
        let told = json_of(&way.request(&server, TrustLevel::Trusted, &request).await);
        assert_eq!(told["trace"], TRACE, "{way:?}");
    }
}

#[tokio::test]
async fn a_call_that_goes_on_as_a_task_stays_in_its_trace() {
    let server = server();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut request = modern(1, "tools/call", json!({ "name": "later" }), capabilities.clone());
    request["params"]["_meta"]["traceparent"] = PARENT.into();
    let mut peer = peer::Stdio::start(&server, TrustLevel::Trusted);
    let task = peer.call(&request).await["result"]["taskId"].take();
    assert!(task.is_string(), "it is a task");
    let told = loop {
        let get = modern(2, "tasks/get", json!({ "taskId": task }), capabilities.clone());
        let told = peer.call(&get).await["result"].take();
        if told["status"] != "working" {
            break told;
        }
        tokio::task::yield_now().await;
    };
    assert!(told.to_string().contains(TRACE), "{told}");
}

#[tokio::test]
async fn a_trace_that_is_not_valid_is_no_trace_and_no_error() {
    let server = server();
    let port = listen(&server, Options::default()).await;
    let zeros = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    for parent in ["nonsense", zeros, &PARENT.to_uppercase(), &PARENT[..50]] {
        let reply = post(port, &[("traceparent", parent)], &call(1, "trail", json!({}))).await;
        assert_eq!((reply.status, &json_of(&reply.json())["trace"]), (200, &Value::Null), "{parent}");
    }
    for meta in [json!({ "traceparent": 7 }), json!({ "traceparent": "x" }), json!({ "tracestate": "a=1" })] {
        let mut request = call(1, "trail", json!({}));
        request["params"]["_meta"] = meta.clone();
        assert_eq!(json_of(&peer::request_over_stdio(&server, &request).await)["trace"], Value::Null, "{meta}");
    }
    let twice = [("traceparent", PARENT), ("traceparent", OTHER)];
    assert_eq!(json_of(&post(port, &twice, &call(1, "trail", json!({}))).await.json())["trace"], Value::Null);
}

// === log lines ===

/// Records each line with the fields of its span.
#[derive(Clone, Default)]
struct LogCapture(Arc<Mutex<CapturedLog>>);

#[derive(Default)]
struct CapturedLog {
    spans: HashMap<u64, String>,
    entered: Vec<u64>,
    lines: Vec<String>,
}

struct FieldText(String);

impl tracing::field::Visit for FieldText {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for LogCapture {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut words = FieldText(attributes.metadata().name().to_owned());
        attributes.record(&mut words);
        let mut kept = self.0.lock().expect("unpoisoned");
        let id = kept.spans.len() as u64 + 1;
        kept.spans.insert(id, words.0);
        tracing::span::Id::from_u64(id)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = FieldText(String::new());
        event.record(&mut words);
        let mut kept = self.0.lock().expect("unpoisoned");
        let around = kept.entered.last().and_then(|id| kept.spans.get(id)).cloned().unwrap_or_default();
        kept.lines.push(format!("{around}:{}", words.0));
    }

    fn enter(&self, id: &tracing::span::Id) {
        self.0.lock().expect("unpoisoned").entered.push(id.into_u64());
    }

    fn exit(&self, _: &tracing::span::Id) {
        self.0.lock().expect("unpoisoned").entered.pop();
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn m98_every_log_line_of_a_call_carries_its_id_caller_way_and_trace() {
    let lines = LogCapture::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    let port = listen(&server(), Options::default()).await;
    let headers = [("x-request-id", "mine"), ("traceparent", PARENT)];
    post(port, &headers, &call(1, "trail", json!({}))).await;
    let kept = lines.0.lock().expect("unpoisoned");
    let line = kept.lines.iter().find(|line| line.contains("working")).expect("the tool's line");
    for field in ["request_id=mine", "method=\"tools/call\"", "caller=\"loopback\"", "via=\"http\"", TRACE] {
        assert!(line.starts_with("request ") && line.contains(field), "{field} is not in {line}");
    }
}
