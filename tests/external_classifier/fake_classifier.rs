//! Mock classification server that follows the test and records its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running server; dropping it closes it immediately.
pub(crate) struct FakeClassifier {
    address: SocketAddr,
    behaviour: Arc<Behaviour>,
    task: JoinHandle<()>,
}

/// Behavior of the server. Any part can change while it runs.
pub(crate) struct Behaviour {
    /// Whether it serves paths below `/mcp`, or only JSON-RPC.
    pub(crate) style: Style,
    pub(crate) tools: Vec<&'static str>,
    pub(crate) authorization: Option<&'static str>,
    pub(crate) categories: Mutex<Value>,
    pub(crate) classify: Mutex<ClassifyBehaviour>,
    /// The requested methods, with the tool of a call.
    pub(crate) requests: Mutex<Vec<String>>,
    /// For each tool call: the trace header and the `_meta` of the message.
    pub(crate) traces: Mutex<Vec<(Option<String>, Value)>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Style {
    Rest,
    JsonRpc,
    /// JSON-RPC with event streams as responses.
    Events,
}

/// Response to a classification request.
#[derive(Clone)]
pub(crate) enum ClassifyBehaviour {
    /// The JSON in the first text.
    Answers(Value),
    /// The entire result.
    Results(Value),
    /// A protocol error.
    Fails,
    Status(u16),
    Hangs,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            style: Style::Rest,
            tools: vec!["list_categories", "classify_text"],
            authorization: None,
            categories: Mutex::new(json!(["math", "law", "general"])),
            classify: Mutex::new(ClassifyBehaviour::Answers(verdict(1))),
            requests: Mutex::default(),
            traces: Mutex::default(),
        }
    }
}

/// A valid result.
pub(crate) fn verdict(class: usize) -> Value {
    json!({"class": class, "confidence": 0.9, "model": "acme/lawyer", "use_reasoning": true})
}

impl FakeClassifier {
    pub(crate) async fn start(behaviour: Behaviour) -> FakeClassifier {
        FakeClassifier::start_at("127.0.0.1:0".parse().unwrap(), Arc::new(behaviour)).await
    }

    async fn start_at(address: SocketAddr, behaviour: Arc<Behaviour>) -> FakeClassifier {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(respond).with_state(behaviour.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        FakeClassifier { address, behaviour, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Stops the server; a restart uses the same address.
    pub(crate) async fn stop(mut self) -> StoppedClassifier {
        self.task.abort();
        let _ = (&mut self.task).await;
        StoppedClassifier(self.address, self.behaviour.clone())
    }

    pub(crate) fn set_classify(&self, classify: ClassifyBehaviour) {
        *self.behaviour.classify.lock().unwrap() = classify;
    }

    pub(crate) fn set_categories(&self, categories: Value) {
        *self.behaviour.categories.lock().unwrap() = categories;
    }

    /// The traces of tool calls since the last time.
    #[allow(dead_code, reason = "the tests of what the operator sees ask for it")]
    pub(crate) fn take_traces(&self) -> Vec<(Option<String>, Value)> {
        std::mem::take(&mut *self.behaviour.traces.lock().unwrap())
    }

    /// The requests since the last time.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.behaviour.requests.lock().unwrap())
    }
}

impl Drop for FakeClassifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A stopped server.
pub(crate) struct StoppedClassifier(SocketAddr, Arc<Behaviour>);

impl StoppedClassifier {
    pub(crate) async fn restart(self) -> FakeClassifier {
        FakeClassifier::start_at(self.0, self.1).await
    }
}

async fn respond(State(fake): State<Arc<Behaviour>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if fake.authorization.is_some() && fake.authorization != given {
        return (StatusCode::UNAUTHORIZED, "who is sk-wrong?").into_response();
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let trace = headers.get("traceparent").and_then(|parent| parent.to_str().ok()).map(str::to_owned);
    let params = if body["params"].is_null() { &body } else { &body["params"] };
    if params["name"].is_string() {
        fake.traces.lock().unwrap().push((trace, params["_meta"].clone()));
    }
    let below = uri.path().strip_prefix("/mcp").unwrap_or_default();
    match (fake.style, below.strip_prefix('/')) {
        (Style::Rest, Some(method)) => match fake.result(method, &body).await {
            Ok(Some(result)) => json_response(&result),
            Ok(None) => json_response(&json!({"error": {"code": -32603, "message": "the disk of db-7 is full"}})),
            Err(status) => status.into_response(),
        },
        (Style::Rest, None) | (_, Some(_)) => (StatusCode::NOT_FOUND, "<h1>no such page</h1>").into_response(),
        (style, None) => fake.json_rpc(style, &body).await,
    }
}

impl Behaviour {
    async fn json_rpc(&self, style: Style, body: &Value) -> Response {
        let Some(id) = body.get("id") else { return StatusCode::ACCEPTED.into_response() };
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        match self.result(body["method"].as_str().unwrap_or_default(), &body["params"]).await {
            Ok(Some(result)) => response["result"] = result,
            Ok(None) => response["error"] = json!({"code": -32603, "message": "the disk of db-7 is full"}),
            Err(status) => return status.into_response(),
        }
        if style == Style::JsonRpc {
            return json_response(&response);
        }
        let told =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hm"}});
        let events = format!(": hello\n\nevent: message\ndata: {told}\n\nevent: message\ndata: {response}\n\n");
        ([(header::CONTENT_TYPE, "text/event-stream"), (header::CONNECTION, "close")], events).into_response()
    }

    /// The result of a method; `None` if it fails.
    async fn result(&self, method: &str, params: &Value) -> Result<Option<Value>, StatusCode> {
        let tool = params["name"].as_str();
        let asked = tool.map_or_else(|| method.to_owned(), |tool| format!("{method} {tool}"));
        self.requests.lock().unwrap().push(asked);
        let text =
            |answer: &Value| json!({"content": [{"type": "text", "text": answer.to_string()}], "isError": false});
        Ok(match (method, tool) {
            ("initialize", _) => Some(json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            })),
            ("tools/list", _) => {
                let tool = |name: &&str| json!({"name": name, "inputSchema": {"type": "object"}});
                Some(json!({"tools": self.tools.iter().map(tool).collect::<Vec<_>>()}))
            }
            ("tools/call", Some("list_categories" | "drawers")) => {
                let categories = self.categories.lock().unwrap().clone();
                Some(text(&json!({"categories": categories, "category_system_prompts": {"law": "You know the law."}})))
            }
            ("tools/call", _) => {
                let classify = self.classify.lock().unwrap().clone();
                match classify {
                    ClassifyBehaviour::Answers(answer) => Some(text(&answer)),
                    ClassifyBehaviour::Results(result) => Some(result),
                    ClassifyBehaviour::Fails => None,
                    ClassifyBehaviour::Status(status) => return Err(StatusCode::from_u16(status).unwrap()),
                    ClassifyBehaviour::Hangs => std::future::pending().await,
                }
            }
            _ => None,
        })
    }
}

/// Closes the connection after each response, so that a stopped server is noticed immediately.
fn json_response(body: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CONNECTION, "close")];
    (headers, body.to_string()).into_response()
}
