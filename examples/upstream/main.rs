//! Mock of the OpenAI, Anthropic and Google APIs on loopback, for tests.
//!
//! It serves the wire formats of all three on one port, responds with an echo ([`echo`]), and fails in the way that the
//! model's name selects ([`fault`]). It rejects signatures of other models, and one model returns counts of request
//! attributes that an echo does not show ([`signatures`]). Responses are deterministic.
//!
//! ```text
//! cargo run --example upstream -- --port 0
//! ```
//!
//! The first line on stdout is `listening on http://127.0.0.1:PORT`. `GET /_requests` returns the last requests as
//! JSON; `DELETE /_requests` clears them and the failure counts of flaky models.

mod anthropic;
mod echo;
mod embeddings;
mod error;
mod fault;
mod google;
mod openai;
mod request_log;
mod signatures;
mod stream;

use std::io::Write;
use std::sync::Arc;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use http::request::Parts;
use http::{Method, StatusCode, header};
use serde_json::{Value, json};

use echo::{ChatRequest, ChatResponse};
use error::{ApiError, ErrorReason};
use fault::Fault;
use request_log::RequestLog;
use stream::{Event, ResponseBody};

const MAX_BODY: usize = 16 * 1024 * 1024;

/// Wire format of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
    Google,
}

/// Operation of an API.
#[derive(Debug)]
enum ApiCall {
    Models,
    Chat,
    /// Google has the model and the stream flag in the path.
    Generate {
        model: String,
        stream: bool,
    },
    /// The model, if it is in the path.
    Embed {
        model: Option<String>,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().skip_while(|word| word != "--port").nth(1).unwrap_or_else(|| "0".into());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "listening on http://{}", listener.local_addr()?)?;
    stdout.flush()?;
    // Disables Nagle's algorithm: small events must not wait for the acknowledgement of earlier ones.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    let router = Router::new().fallback(respond).with_state(Arc::new(RequestLog::default()));
    Ok(axum::serve(listener, router).await?)
}

async fn respond(State(seen): State<Arc<RequestLog>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if head.uri.path() == "/_requests" {
        return requests(&head.method, &seen);
    }
    let body = to_bytes(body, MAX_BODY).await;
    seen.record(&head, body.as_ref().ok());
    let Some((api, call)) = route(&head) else {
        return (StatusCode::NOT_FOUND, "no API has this path\n").into_response();
    };
    let answered = match body {
        Ok(body) => answer(api, call, &head, &body, &seen).await,
        Err(_) => Err(ApiError::new(413, "the body is longer than 16 MiB")),
    };
    answered.unwrap_or_else(|failure| failure.respond(api))
}

fn requests(method: &Method, seen: &RequestLog) -> Response {
    match *method {
        Method::GET => ([(header::CONTENT_TYPE, "application/json")], seen.requests().to_string()).into_response(),
        Method::DELETE => {
            seen.clear();
            StatusCode::NO_CONTENT.into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

fn route(head: &Parts) -> Option<(Api, ApiCall)> {
    let is_anthropic = ["x-api-key", "anthropic-version"].iter().any(|name| head.headers.contains_key(*name));
    match (head.method.as_str(), head.uri.path()) {
        ("GET", "/v1/models") if is_anthropic => Some((Api::Anthropic, ApiCall::Models)),
        ("GET", "/v1/models") => Some((Api::OpenAi, ApiCall::Models)),
        ("POST", "/v1/chat/completions") => Some((Api::OpenAi, ApiCall::Chat)),
        ("POST", "/v1/embeddings") => Some((Api::OpenAi, ApiCall::Embed { model: None })),
        ("POST", "/v1/messages") => Some((Api::Anthropic, ApiCall::Chat)),
        ("GET", "/v1beta/models") => Some((Api::Google, ApiCall::Models)),
        ("POST", path) => {
            let (model, verb) = path.strip_prefix("/v1beta/models/")?.rsplit_once(':')?;
            let model = model.to_owned();
            let call = match verb {
                "generateContent" => ApiCall::Generate { model, stream: false },
                "streamGenerateContent" => ApiCall::Generate { model, stream: true },
                "batchEmbedContents" => ApiCall::Embed { model: Some(model) },
                _ => return None,
            };
            Some((Api::Google, call))
        }
        _ => None,
    }
}

async fn answer(api: Api, call: ApiCall, head: &Parts, body: &Bytes, seen: &RequestLog) -> Result<Response, ApiError> {
    let key = api.authenticate(head)?;
    let asked = match call {
        ApiCall::Models => return Ok(stream::json_response(&api.models(head))),
        ApiCall::Embed { model } => return embed(api, model, &key, body, seen).await,
        ApiCall::Chat | ApiCall::Generate { .. } => api.parse_request(call, head, body)?,
    };
    let fault = Fault::from_model(&asked.model).map_err(|message| ApiError::new(400, message))?;
    if let Some(failure) = fault.as_ref().and_then(|fault| fault.error(api, &key, &asked.model, seen)) {
        return Err(failure);
    }
    let mut answer = echo::answer(&asked);
    if asked.model == signatures::COUNTING_MODEL && answer.calls.is_empty() {
        answer.text = signatures::count_marks(&serde_json::from_slice(body).unwrap_or_default());
    }
    let reply = match asked.stream {
        true => ResponseBody::Events(api.stream_events(&asked, &answer)),
        false => ResponseBody::Full(api.full_response(&asked, &answer)),
    };
    Ok(match fault {
        Some(fault) => fault.apply(api, reply).await,
        None => stream::respond(reply),
    })
}

async fn embed(
    api: Api,
    model: Option<String>,
    key: &str,
    body: &Bytes,
    seen: &RequestLog,
) -> Result<Response, ApiError> {
    let body: Value = serde_json::from_slice(body).map_err(|_| ApiError::new(400, "the body is no JSON"))?;
    let refused = |message: String| ApiError::new(400, message);
    let answer = match &model {
        Some(model) => embeddings::google(&body, model),
        None => embeddings::openai(&body),
    };
    let answer = answer.map_err(refused)?;
    let model = model.unwrap_or_else(|| body["model"].as_str().unwrap_or_default().to_owned());
    let fault = Fault::from_model(&model).map_err(refused)?;
    match fault.as_ref().and_then(|fault| fault.error(api, key, &model, seen)) {
        Some(failure) => Err(failure),
        None => Ok(match fault {
            Some(fault) => fault.apply(api, ResponseBody::Full(answer)).await,
            None => stream::json_response(&answer),
        }),
    }
}

// === impl Api ===

impl Api {
    /// The API key of a request; an error if it is missing or one of the rejected test keys.
    fn authenticate(self, head: &Parts) -> Result<String, ApiError> {
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let bearer = || text("authorization")?.strip_prefix("Bearer ").map(str::to_owned);
        let key = match self {
            Api::OpenAi => bearer(),
            Api::Anthropic => text("x-api-key").or_else(bearer),
            Api::Google => text("x-goog-api-key").or_else(|| query(head, "key")),
        };
        match key.filter(|key| !key.is_empty()).as_deref() {
            None => Err(ApiError::new(401, "there is no API key in the request")),
            Some("bad-key") => Err(ApiError::new(401, "the API key is not valid")),
            // Google reports an invalid key as a bad argument.
            Some("invalid-key") => {
                let status = if self == Api::Google { 400 } else { 401 };
                Err(ApiError { reason: ErrorReason::Key, ..ApiError::new(status, "API key not valid") })
            }
            Some(key) => Ok(key.to_owned()),
        }
    }

    fn parse_request(self, call: ApiCall, head: &Parts, body: &Bytes) -> Result<ChatRequest, ApiError> {
        let body: Value = serde_json::from_slice(body).map_err(|_| ApiError::new(400, "the body is no JSON"))?;
        let asked = match (self, call) {
            (Api::Anthropic, _) => anthropic::parse_request(&body, &head.headers),
            (Api::Google, ApiCall::Generate { model, stream }) => {
                // Without this, Google streams a JSON array, which no client here uses.
                match stream && query(head, "alt").as_deref() != Some("sse") {
                    true => Err("a stream needs `alt=sse`".into()),
                    false => google::parse_request(&body, model, stream),
                }
            }
            (Api::OpenAi | Api::Google, _) => openai::parse_request(&body),
        };
        asked
            .and_then(|asked| signatures::check_signatures(self, &asked.model, &body).map(|()| asked))
            .map_err(|message| ApiError::new(400, message))
    }

    fn models(self, head: &Parts) -> Value {
        match self {
            Api::OpenAi => openai::models(),
            Api::Anthropic => anthropic::models(query(head, "limit"), query(head, "after_id")),
            Api::Google => google::models(query(head, "pageSize"), query(head, "pageToken")),
        }
    }

    fn full_response(self, asked: &ChatRequest, answer: &ChatResponse) -> Value {
        match self {
            Api::OpenAi => openai::full_response(asked, answer),
            Api::Anthropic => anthropic::full_response(asked, answer),
            Api::Google => google::full_response(asked, answer),
        }
    }

    fn stream_events(self, asked: &ChatRequest, answer: &ChatResponse) -> Vec<Event> {
        match self {
            Api::OpenAi => openai::stream_events(asked, answer),
            Api::Anthropic => anthropic::stream_events(asked, answer),
            Api::Google => google::stream_events(asked, answer),
        }
    }

    pub(crate) fn error_body(self, failure: &ApiError) -> Value {
        match self {
            Api::OpenAi => json!({"error": openai::error(failure)}),
            Api::Anthropic => json!({"type": "error", "error": anthropic::error(failure), "request_id": "req_echo"}),
            Api::Google => json!({"error": google::error(failure)}),
        }
    }
}

fn query(head: &Parts, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

/// The elements of an array; empty for other values.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn strings(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
