//! The program with the settings of a test, and checks of its responses.

use std::io;

use serde_json::{Value, json};

use crate::http::{HttpClient, HttpResponse, StreamingResponse};
use crate::process::{TestCommand, TestProcess, corbie, request};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer};

pub(crate) const CHAT_PATH: &str = "/v1/chat/completions";

/// A running server.
pub(crate) struct ApiServer {
    pub(crate) server: TestProcess,
    pub(crate) client: HttpClient,
}

/// A streamed response, read to its end.
#[derive(Debug)]
pub(crate) struct StreamedResponse {
    pub(crate) head: HttpResponse,
    pub(crate) chunks: Vec<Value>,
    /// `[DONE]` was the last event.
    pub(crate) has_done_event: bool,
}

impl ApiServer {
    pub(crate) fn start(settings: &Value) -> ApiServer {
        ApiServer::from_command(server_command("serve --port 0", settings))
    }

    pub(crate) fn from_command(setup: TestCommand) -> ApiServer {
        let mut server = setup.start();
        let client = server.client();
        ApiServer { server, client }
    }

    /// A server with a provider of each wire format, all at the mock upstream.
    pub(crate) fn with_upstream(upstream: &FakeUpstream) -> ApiServer {
        ApiServer::start(&settings_for_each_format(upstream))
    }

    #[track_caller]
    pub(crate) fn chat(&self, body: &Value) -> HttpResponse {
        self.client.post(CHAT_PATH, body)
    }

    /// A chat that must succeed.
    #[track_caller]
    pub(crate) fn expect_answer(&self, body: &Value) -> Value {
        let reply = self.chat(body);
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    }

    /// A stream that must start.
    #[track_caller]
    pub(crate) fn stream(&self, body: &Value) -> StreamedResponse {
        let mut stream = self.open(body).unwrap();
        stream.read_body().unwrap();
        assert_eq!(stream.head.status, 200, "{:?}", stream.head);
        StreamedResponse::parse(stream.head)
    }

    /// The last decisions, newest first.
    pub(crate) fn decisions(&self) -> Vec<Value> {
        let asked = request(1, "resources/read", json!({ "uri": "corbie://decisions" }));
        let read = self.client.post("/mcp", &asked).json();
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
        serde_json::from_str::<Value>(text).unwrap()["decisions"].as_array().unwrap().clone()
    }

    pub(crate) fn open(&self, body: &Value) -> io::Result<StreamingResponse> {
        let mut body = body.clone();
        body["stream"] = true.into();
        self.client.open("POST", CHAT_PATH, &[], &body.to_string())
    }
}

impl StreamedResponse {
    #[track_caller]
    pub(crate) fn parse(head: HttpResponse) -> StreamedResponse {
        let kind = head.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        let events = head.body.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
        let mut data: Vec<&str> = events
            .map(|event| event.strip_prefix("data: ").unwrap_or_else(|| panic!("not an event of data: {event:?}")))
            .collect();
        let done = data.last() == Some(&"[DONE]");
        if done {
            data.pop();
        }
        let read = |data| serde_json::from_str(data).unwrap_or_else(|error| panic!("{error} in {data:?}"));
        let chunks = data.into_iter().map(read).collect();
        StreamedResponse { chunks, has_done_event: done, head }
    }

    pub(crate) fn text(&self) -> String {
        self.deltas().filter_map(|delta| delta["content"].as_str()).collect()
    }

    pub(crate) fn deltas(&self) -> impl Iterator<Item = &Value> {
        self.chunks.iter().map(|chunk| &chunk["choices"][0]["delta"])
    }

    /// All finish reasons in the stream.
    pub(crate) fn finish_reasons(&self) -> Vec<&str> {
        self.chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect()
    }
}

/// Settings with a provider of each wire format.
pub(crate) fn settings_for_each_format(upstream: &FakeUpstream) -> Value {
    let provider = |format: &&str| ((*format).to_owned(), upstream.provider(format));
    json!({ "providers": FORMATS.iter().map(provider).collect::<serde_json::Map<_, _>>() })
}

pub(crate) fn server_command(arguments: &str, settings: &Value) -> TestCommand {
    corbie(arguments).file("corbie.json", &settings.to_string())
}

/// Settings of a provider at a hand-written peer.
pub(crate) fn provider_settings(format: &str, peer: &ScriptedServer) -> Value {
    let path = if format.starts_with("openai") { "/v1" } else { "" };
    json!({ "type": format, "base_url": format!("http://127.0.0.1:{}{path}", peer.port), "api_key": "test-key" })
}

/// A request with a single message.
pub(crate) fn chat_request(model: &str, text: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }] })
}

/// The request with additional or replaced members.
pub(crate) fn with_members(mut question: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more} is no object") };
    question.as_object_mut().unwrap().extend(more);
    question
}

/// The error of a response, which must have this status and OpenAI's shape.
#[track_caller]
pub(crate) fn expect_error(reply: &HttpResponse, status: u16) -> Value {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    openai_error(&reply.json())
}

/// The error in a body or an event, which must have OpenAI's shape.
#[track_caller]
pub(crate) fn openai_error(body: &Value) -> Value {
    let names = |value: &Value| {
        let mut names: Vec<String> = value.as_object().unwrap_or_else(|| panic!("{body}")).keys().cloned().collect();
        names.sort();
        names
    };
    let error = &body["error"];
    assert_eq!(names(body), ["error"], "{body}");
    assert_eq!(names(error), ["code", "message", "param", "type"], "{body}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
    assert!(error["type"].is_string(), "{body}");
    for name in ["param", "code"] {
        assert!(error[name].is_string() || error[name].is_null(), "{body}");
    }
    error.clone()
}
