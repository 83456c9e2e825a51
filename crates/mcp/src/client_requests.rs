//! Requests from a running tool to the client: elicitation, sampling and roots.
//!
//! The tool sees one call; the wire has three forms. A legacy client gets a request on its stream. A modern client gets
//! an `input_required` result and repeats the call with the answer; the handler then runs again from the start, and the
//! same `ask` returns immediately. A task waits in `input_required` until `tasks/update` delivers the answer.
//!
//! Because of the second form, a handler should send its request before it acts: code before the request runs in every
//! round.

use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use crate::client::{ClientCapabilities, ClientFeature};
use crate::content::ContentBlock;
use crate::context::Context;
use crate::error::{Error, ErrorObject};
use crate::outcome::ToolError;
use crate::schema;
use crate::tasks::RunningTask;
use crate::version::{Era, Version};

/// A request to the client.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    feature: ClientFeature,
    method: &'static str,
    params: Value,
    /// Schema for the content of an accepted form.
    form: Option<Arc<schema::Schema>>,
}

/// The user's answer to a form or a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitResult {
    pub action: ElicitAction,
    /// The filled-in form, when accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    Accept,
    Decline,
    Cancel,
}

/// The response of the client's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMessageResult {
    pub role: crate::prompt::Role,
    /// One content block, or several since 2025-11-25; unmodified.
    pub content: Value,
    #[serde(default)]
    pub model: String,
    #[serde(rename = "stopReason", default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
}

/// A directory the client works in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Root {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Why the client gave no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientRequestError {
    #[error("the client does not support {}", feature_name(*feature))]
    NotSupported { feature: ClientFeature, era: Era },
    #[error(
        "this connection does not support requests to the client; connect over stdio, WebSocket, or HTTP with `Accept: \
         text/event-stream`"
    )]
    NoChannel,
    #[error("request to the client timed out")]
    Timeout,
    #[error("the client declined: {}", .0.message)]
    ErrorResponse(ErrorObject),
    #[error("invalid response from the client: {0}")]
    InvalidResponse(String),
}

/// How the current request can reach the client.
#[derive(Debug, Clone)]
pub(crate) enum ClientChannel {
    Stream,
    MultiRoundTrip(Arc<RoundTripState>),
    Task(Arc<RunningTask>),
    Unavailable,
}

/// Answers of this and earlier rounds, and the unanswered requests (multi round-trip requests).
#[derive(Debug, Default)]
pub(crate) struct RoundTripState {
    answers: Map<String, Value>,
    pending: Mutex<Map<String, Value>>,
    /// Wakes the dispatcher when a task spawned by the handler sends a request.
    pub(crate) request_added: Notify,
}

impl ClientRequest {
    /// A form for the user. `schema` is an object schema with primitive properties.
    pub fn elicit_form(message: impl Into<String>, schema: Value) -> ClientRequest {
        let form = schema::compile(schema.clone()).ok().map(Arc::new);
        let params = json!({ "mode": "form", "message": message.into(), "requestedSchema": schema });
        ClientRequest { feature: ClientFeature::Elicitation, method: "elicitation/create", params, form }
    }

    /// A page for the user to open, for secrets that must not pass through the client.
    pub fn elicit_url(message: impl Into<String>, url: impl Into<String>) -> ClientRequest {
        let params = json!({ "mode": "url", "message": message.into(), "url": url.into() });
        ClientRequest { feature: ClientFeature::ElicitationUrl, method: "elicitation/create", params, form: None }
    }

    /// A prompt for the client's model.
    pub fn sample(messages: Vec<(crate::prompt::Role, ContentBlock)>, max_tokens: u32) -> ClientRequest {
        let messages: Vec<Value> =
            messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        ClientRequest::sample_with(json!({ "messages": messages, "maxTokens": max_tokens }))
    }

    /// `sampling/createMessage` with custom parameters.
    pub fn sample_with(params: Value) -> ClientRequest {
        ClientRequest { feature: ClientFeature::Sampling, method: "sampling/createMessage", params, form: None }
    }

    pub fn list_roots() -> ClientRequest {
        ClientRequest { feature: ClientFeature::Roots, method: "roots/list", params: json!({}), form: None }
    }

    fn to_json(&self, version: Version) -> Value {
        let era = version.era();
        let mut params = self.params.clone();
        // Only 2025-11-25 requires an id for URL elicitation. We never use it, so a random one is enough.
        if version == Version::V2025_11_25 && self.feature == ClientFeature::ElicitationUrl {
            params["elicitationId"] = crate::server::random_id().into();
        }
        // `mode` is newer than forms. Clients before 2025-11-25 support only forms and do not expect the member.
        if era == Era::Legacy
            && params.get("mode").is_some_and(|mode| mode == "form")
            && let Some(members) = params.as_object_mut()
        {
            members.remove("mode");
        }
        json!({ "method": self.method, "params": params })
    }

    /// Checks that the answer has the right type and schema for this request.
    fn check_response(&self, answer: &Value) -> Result<(), String> {
        match self.feature {
            ClientFeature::Elicitation | ClientFeature::ElicitationUrl => {
                let elicited = ElicitResult::deserialize(answer).map_err(|error| error.to_string())?;
                match (elicited.action, &self.form) {
                    (ElicitAction::Accept, Some(form)) => form
                        .check(&elicited.content.unwrap_or_else(|| json!({})))
                        .map_err(|violations| violations[0].to_string()),
                    _ => Ok(()),
                }
            }
            ClientFeature::Sampling => {
                CreateMessageResult::deserialize(answer).map(drop).map_err(|error| error.to_string())
            }
            ClientFeature::Roots => {
                let roots = answer.get("roots").cloned().unwrap_or_default();
                Vec::<Root>::deserialize(roots).map(drop).map_err(|error| error.to_string())
            }
            ClientFeature::Tasks => Ok(()),
        }
    }
}

impl Context {
    /// Elicits input from the user through a form.
    pub async fn elicit(
        &self,
        key: &str,
        message: impl Into<String>,
        schema: Value,
    ) -> Result<ElicitResult, ClientRequestError> {
        self.request_client(key, ClientRequest::elicit_form(message, schema)).await.and_then(parse_response)
    }

    /// Requests a completion from the client's model.
    pub async fn sample(
        &self,
        key: &str,
        prompt: impl Into<String>,
        max_tokens: u32,
    ) -> Result<CreateMessageResult, ClientRequestError> {
        let messages = vec![(crate::prompt::Role::User, ContentBlock::text(prompt))];
        self.request_client(key, ClientRequest::sample(messages, max_tokens)).await.and_then(parse_response)
    }

    /// Requests the directories the client works in.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, ClientRequestError> {
        let mut answer = self.request_client(key, ClientRequest::list_roots()).await?;
        parse_response(answer.get_mut("roots").map(Value::take).unwrap_or_default())
    }

    /// Sends a request and waits for the answer, in the form this client supports.
    ///
    /// `key` identifies the request within the call; each request of a call needs its own key.
    pub async fn request_client(&self, key: &str, question: ClientRequest) -> Result<Value, ClientRequestError> {
        let era = self.era();
        if !self.client().supports(question.feature) {
            return Err(ClientRequestError::NotSupported { feature: question.feature, era });
        }
        match self.client_channel() {
            ClientChannel::Unavailable => Err(ClientRequestError::NoChannel),
            ClientChannel::Stream => {
                let answer = self.send_request(question.method, &question.to_json(self.version())["params"]).await?;
                question.check_response(&answer).map_err(ClientRequestError::InvalidResponse)?;
                Ok(answer)
            }
            ClientChannel::MultiRoundTrip(rounds) => {
                match rounds.answers.get(key).filter(|answer| question.check_response(answer).is_ok()) {
                    Some(answer) => Ok(answer.clone()),
                    None => {
                        rounds.lock().insert(key.to_owned(), question.to_json(self.version()));
                        rounds.request_added.notify_one();
                        // The dispatcher sees the pending request, replies `input_required` and drops the handler.
                        std::future::pending().await
                    }
                }
            }
            ClientChannel::Task(task) => loop {
                let answer = task
                    .request_input(key, question.to_json(self.version()))
                    .await
                    .ok_or(ClientRequestError::Timeout)?;
                if question.check_response(&answer).is_ok() {
                    return Ok(answer);
                }
            },
        }
    }
}

impl ElicitResult {
    /// The submitted form, if the user accepted and it deserializes to this type.
    pub fn accepted<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        match self.action {
            ElicitAction::Accept => self.content.as_ref().and_then(|content| T::deserialize(content).ok()),
            ElicitAction::Decline | ElicitAction::Cancel => None,
        }
    }
}

impl ElicitAction {
    pub fn as_str(self) -> &'static str {
        match self {
            ElicitAction::Accept => "accept",
            ElicitAction::Decline => "decline",
            ElicitAction::Cancel => "cancel",
        }
    }
}

impl CreateMessageResult {
    /// The text of the answer; empty if the content is not text.
    pub fn text(&self) -> &str {
        let block = self.content.as_array().and_then(|blocks| blocks.first()).unwrap_or(&self.content);
        block["text"].as_str().unwrap_or_default()
    }
}

impl RoundTripState {
    /// `earlier` holds the sealed answers of past rounds; `now` came with this request and takes precedence.
    pub(crate) fn new(mut earlier: Map<String, Value>, now: Map<String, Value>) -> RoundTripState {
        earlier.extend(now);
        RoundTripState { answers: earlier, pending: Mutex::default(), request_added: Notify::new() }
    }

    /// Takes the unanswered requests; `None` if the handler is not waiting for the client.
    pub(crate) fn take_pending(&self) -> Option<Map<String, Value>> {
        let mut open = self.lock();
        (!open.is_empty()).then(|| std::mem::take(&mut *open))
    }

    pub(crate) fn answers(&self) -> &Map<String, Value> {
        &self.answers
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Map<String, Value>> {
        self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl ClientCapabilities {
    /// Whether the client can answer this request through [`Context::request_client`].
    pub fn supports_request(&self, question: &ClientRequest) -> bool {
        self.supports(question.feature)
    }
}

impl From<ClientRequestError> for ToolError {
    fn from(error: ClientRequestError) -> ToolError {
        match error {
            // The modern era has a protocol error for this; older clients get a tool error.
            ClientRequestError::NotSupported { feature, era: Era::Modern } => {
                ToolError::Protocol(feature.missing_error())
            }
            other => ToolError::new("ClientRequestError", other.to_string()),
        }
    }
}

impl From<ClientRequestError> for Error {
    fn from(error: ClientRequestError) -> Error {
        match error {
            ClientRequestError::NotSupported { feature, .. } => feature.missing_error(),
            other => Error::Other {
                code: crate::error_code::ErrorCode::Application,
                message: other.to_string(),
                error_type: "ClientRequestError",
                data: None,
            },
        }
    }
}

fn parse_response<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, ClientRequestError> {
    serde_json::from_value(answer).map_err(|error| ClientRequestError::InvalidResponse(error.to_string()))
}

fn feature_name(feature: ClientFeature) -> &'static str {
    match feature {
        ClientFeature::Elicitation => "elicitation",
        ClientFeature::ElicitationUrl => "elicitation by URL",
        ClientFeature::Sampling => "sampling",
        ClientFeature::Roots => "roots",
        ClientFeature::Tasks => "tasks",
    }
}
