//! Sends the prompt through a running server with the same routing settings, so that the decision is in its log and its
//! console. Uses the OpenAI-compatible API of the server.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use url::Url;

use super::super::CommandResult;
use super::super::json_output;
use super::stream_output::{self, StreamOutput};
use super::summary::{AnswerSummary, write_summary};
use super::{AnswerOutput, Ask};
use crate::config::LoadedConfig;
use crate::providers::chat::{StopReason, Usage};
use crate::providers::http_client::{HttpClient, UnreadResponse};
use crate::providers::sse::SseParser;
use crate::providers::{Error, HttpRequest};
use crate::running_servers;

/// An error response of the server.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(in crate::cli) struct ServerError {
    /// Stable error code.
    pub(in crate::cli) code: String,
    message: String,
}

/// The answer of a server.
#[derive(Default)]
struct Answer {
    text: String,
    reasoning: String,
    stop: StopReason,
    usage: Usage,
    /// The response was complete.
    is_complete: bool,
}

/// Model name that has the prompt routed.
const ROUTED: &str = "auto";
/// Margin over the server's own timeout.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(5);
/// Wait for the decision record, which the server writes after the end of the response.
const DECISION_TIMEOUT: Duration = Duration::from_secs(2);
const DECISION_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Responses of a server that cannot serve this command; then it runs without the server.
const NOT_SERVED: [StatusCode; 5] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::SERVICE_UNAVAILABLE,
];

/// Returns `None` if no suitable server runs, or if it refuses to serve this command. Nothing was printed then.
pub(super) async fn ask(
    command: &Ask,
    prompt: &str,
    loaded: &LoadedConfig,
    out: &mut dyn Write,
) -> Option<CommandResult> {
    let digest = running_servers::routing_digest(&loaded.config);
    let servers = running_servers::find(&loaded.sources.variables);
    let server = servers.iter().find(|server| server.routing_digest == digest && server.plain_url().is_some())?;
    let server = ServerClient { client: HttpClient::default(), url: server.plain_url()?, loaded };
    let started = std::time::Instant::now();
    let response = server.post("/v1/chat/completions", &command.body(prompt)).await.ok()?;
    if NOT_SERVED.contains(&response.status) {
        return None;
    }
    Some(print(command, response, &server, started, out).await)
}

async fn print(
    command: &Ask,
    mut response: UnreadResponse,
    server: &ServerClient<'_>,
    started: std::time::Instant,
    out: &mut dyn Write,
) -> CommandResult {
    let headers = response.headers.clone();
    if response.status != StatusCode::OK {
        let body = read_all(&mut response, server.deadline()).await?;
        return Err(server_error(&serde_json::from_slice(&body).unwrap_or_default()).into());
    }
    let mut pieces = (!command.json).then(|| StreamOutput::new(out));
    let waiting = command.json.then(stream_output::waiting_progress);
    let mut answer = Answer::default();
    let read = read_stream(command, &mut response, server, &mut answer, pieces.as_mut()).await;
    if let Some(pieces) = &mut pieces {
        pieces.end()?;
    }
    drop(pieces);
    drop(waiting);
    read?;
    if !answer.is_complete {
        return Err(Error::InvalidResponse("it ended early").into());
    }
    let decision = server.decision(&headers).await.unwrap_or_else(|| decision_of(&headers));
    if command.json {
        let text = |member: &str| decision[member].as_str();
        let output = AnswerOutput {
            answer: answer.text,
            thinking: command.thinking.then_some(answer.reasoning),
            model: text("model"),
            provider: text("provider"),
            stop: super::stop_json(&answer.stop),
            usage: answer.usage.into(),
            decision: &decision,
        };
        json_output::write(&output, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let latency_ms = started.elapsed().as_secs_f64() * 1e3;
    write_summary(&AnswerSummary::from_json(&decision, latency_ms), &answer.stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the events of a response and prints the text, if there is an output.
async fn read_stream(
    command: &Ask,
    response: &mut UnreadResponse,
    server: &ServerClient<'_>,
    answer: &mut Answer,
    mut out: Option<&mut StreamOutput<'_>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut events = SseParser::default();
    while let Some(bytes) = response.next(server.idle_deadline()).await? {
        for event in events.push(&bytes)? {
            if event.data == "[DONE]" {
                answer.is_complete = true;
                continue;
            }
            let event: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if event["error"].is_object() {
                return Err(server_error(&event).into());
            }
            let delta = &event["choices"][0]["delta"];
            let text = |member: &str| delta[member].as_str().unwrap_or_default();
            let (content, reasoning) = (text("content"), text("reasoning_content"));
            answer.text += content;
            answer.reasoning += reasoning;
            if let Some(out) = &mut out {
                if command.thinking && !reasoning.is_empty() {
                    out.write_reasoning(reasoning)?;
                }
                if !content.is_empty() {
                    out.write_answer(content)?;
                }
            }
            if let Some(reason) = event["choices"][0]["finish_reason"].as_str() {
                answer.stop = stop_reason(reason);
            }
            if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
                let number = |member: &str| usage[member].as_u64().unwrap_or_default();
                answer.usage = Usage {
                    prompt: number("prompt_tokens"),
                    completion: number("completion_tokens"),
                    ..Usage::default()
                };
            }
        }
    }
    Ok(())
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::Finished,
        "length" => StopReason::Length,
        "tool_calls" => StopReason::Tools,
        "content_filter" => StopReason::Refused,
        other => StopReason::Other(other.to_owned()),
    }
}

fn server_error(body: &Value) -> ServerError {
    let text = |member: &str| body["error"][member].as_str().map(str::to_owned);
    ServerError {
        code: text("code").or_else(|| text("type")).unwrap_or_else(|| "failed".into()),
        message: text("message").unwrap_or_else(|| "the running server returned an error without a message".into()),
    }
}

/// The decision as far as the response headers show it.
fn decision_of(headers: &HeaderMap) -> Value {
    let header = |name: &str| headers.get(format!("x-corbie-{name}")).and_then(|value| value.to_str().ok());
    let category = header("category").map(|category| json!({ "category": category }));
    json!({
        "id": header("decision").and_then(|id| id.parse::<u64>().ok()),
        "provider": header("provider"),
        "model": header("model"),
        "reason": header("reason"),
        "rule": header("rule"),
        "classified": category,
    })
}

async fn read_all(response: &mut UnreadResponse, by: Instant) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(bytes) = response.next(by).await? {
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// HTTP requests to one server.
struct ServerClient<'l> {
    client: HttpClient,
    url: Url,
    loaded: &'l LoadedConfig,
}

impl ServerClient<'_> {
    async fn post(&self, path: &str, body: &Value) -> Result<UnreadResponse, Error> {
        let mut url = self.url.clone();
        url.set_path(path);
        let mut request = HttpRequest::new(body.to_string().into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.as_str().parse().map_err(|_| Error::InvalidResponse("its URL is invalid"))?;
        request.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        let token = self.loaded.config.server.token.as_ref().map(|token| format!("Bearer {}", token.expose()));
        if let Some(mut value) = token.and_then(|token| http::HeaderValue::try_from(token).ok()) {
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        self.client.open(request, self.deadline()).await
    }

    /// The record in the server's decision log.
    async fn decision(&self, headers: &HeaderMap) -> Option<Value> {
        let id = headers.get("x-corbie-decision")?.to_str().ok()?;
        let params = json!({ "uri": format!("corbie://decisions/{id}") });
        let deadline = Instant::now() + DECISION_TIMEOUT;
        while Instant::now() < deadline {
            let mut response = self.post("/mcp/resources/read", &params).await.ok()?;
            let body: Value = serde_json::from_slice(&read_all(&mut response, deadline).await.ok()?).ok()?;
            let record = body["contents"][0]["text"].as_str().and_then(|text| serde_json::from_str(text).ok());
            if record.is_some() {
                return record;
            }
            sleep(DECISION_POLL_INTERVAL).await;
        }
        None
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.loaded.config.router.timeout.get() + TIMEOUT_MARGIN
    }

    /// Maximum wait for the next part of a stream; the server sends keep-alive comments more often.
    fn idle_deadline(&self) -> Instant {
        self.deadline()
    }
}

impl Ask {
    fn body(&self, prompt: &str) -> Value {
        let system = self.system.iter().map(|text| json!({ "role": "system", "content": text }));
        let messages: Vec<Value> = system.chain([json!({ "role": "user", "content": prompt })]).collect();
        let mut body = json!({
            "model": self.model.as_deref().unwrap_or(ROUTED),
            "messages": messages,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        if let Some(max_tokens) = self.max_tokens {
            body["max_tokens"] = max_tokens.into();
        }
        body
    }
}
