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
use crate::content::Content;
use crate::context::Context;
use crate::error::{Error, ErrorObject};
use crate::outcome::ToolError;
use crate::schema;
use crate::tasks::RunningTask;
use crate::version::{Era, Version};

/// A request to the client.
#[derive(Debug, Clone)]
pub struct Question {
    feature: ClientFeature,
    method: &'static str,
    params: Value,
    /// Schema for the content of an accepted form.
    form: Option<Arc<schema::Schema>>,
}

/// The user's answer to a form or a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elicited {
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
pub struct Sampled {
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
pub enum AskError {
    #[error("this client does not support {}", name(*feature))]
    NotSupported { feature: ClientFeature, era: Era },
    #[error(
        "this connection cannot carry a question; connect over stdio, WebSocket, or HTTP with `Accept: text/event-stream`"
    )]
    NoWay,
    #[error("the client did not answer in time")]
    TimedOut,
    #[error("the client refused: {}", .0.message)]
    Refused(ErrorObject),
    #[error("the client's answer is not usable: {0}")]
    Unusable(String),
}

/// How the current request can reach the client.
#[derive(Debug, Clone)]
pub(crate) enum Asking {
    Wire,
    Rounds(Arc<Rounds>),
    Task(Arc<RunningTask>),
    Nowhere,
}

/// Answers of this and earlier rounds, and the unanswered requests (multi round-trip requests).
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    answers: Map<String, Value>,
    open: Mutex<Map<String, Value>>,
    /// Wakes the dispatcher when a task spawned by the handler sends a request.
    pub(crate) asked: Notify,
}

impl Question {
    /// A form for the user. `schema` is an object schema with primitive properties.
    pub fn form(message: impl Into<String>, schema: Value) -> Question {
        let form = schema::compile(schema.clone()).ok().map(Arc::new);
        let params = json!({ "mode": "form", "message": message.into(), "requestedSchema": schema });
        Question { feature: ClientFeature::Elicitation, method: "elicitation/create", params, form }
    }

    /// A page for the user to open, for secrets that must not pass through the client.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Question {
        let params = json!({ "mode": "url", "message": message.into(), "url": url.into() });
        Question { feature: ClientFeature::ElicitationUrl, method: "elicitation/create", params, form: None }
    }

    /// A prompt for the client's model.
    pub fn sample(messages: Vec<(crate::prompt::Role, Content)>, max_tokens: u32) -> Question {
        let messages: Vec<Value> =
            messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect();
        Question::sample_with(json!({ "messages": messages, "maxTokens": max_tokens }))
    }

    /// `sampling/createMessage` with custom parameters.
    pub fn sample_with(params: Value) -> Question {
        Question { feature: ClientFeature::Sampling, method: "sampling/createMessage", params, form: None }
    }

    pub fn roots() -> Question {
        Question { feature: ClientFeature::Roots, method: "roots/list", params: json!({}), form: None }
    }

    fn request(&self, version: Version) -> Value {
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
    fn check(&self, answer: &Value) -> Result<(), String> {
        match self.feature {
            ClientFeature::Elicitation | ClientFeature::ElicitationUrl => {
                let elicited = Elicited::deserialize(answer).map_err(|error| error.to_string())?;
                match (elicited.action, &self.form) {
                    (ElicitAction::Accept, Some(form)) => form
                        .check(&elicited.content.unwrap_or_else(|| json!({})))
                        .map_err(|violations| violations[0].to_string()),
                    _ => Ok(()),
                }
            }
            ClientFeature::Sampling => Sampled::deserialize(answer).map(drop).map_err(|error| error.to_string()),
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
    pub async fn elicit(&self, key: &str, message: impl Into<String>, schema: Value) -> Result<Elicited, AskError> {
        self.ask(key, Question::form(message, schema)).await.and_then(read)
    }

    /// Requests a completion from the client's model.
    pub async fn sample(&self, key: &str, prompt: impl Into<String>, max_tokens: u32) -> Result<Sampled, AskError> {
        let messages = vec![(crate::prompt::Role::User, Content::text(prompt))];
        self.ask(key, Question::sample(messages, max_tokens)).await.and_then(read)
    }

    /// Requests the directories the client works in.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        let mut answer = self.ask(key, Question::roots()).await?;
        read(answer.get_mut("roots").map(Value::take).unwrap_or_default())
    }

    /// Sends a request and waits for the answer, in the form this client supports.
    ///
    /// `key` identifies the request within the call; each request of a call needs its own key.
    pub async fn ask(&self, key: &str, question: Question) -> Result<Value, AskError> {
        let era = self.era();
        if !self.client().supports(question.feature) {
            return Err(AskError::NotSupported { feature: question.feature, era });
        }
        match self.asking() {
            Asking::Nowhere => Err(AskError::NoWay),
            Asking::Wire => {
                let answer = self.ask_on_the_wire(question.method, &question.request(self.version())["params"]).await?;
                question.check(&answer).map_err(AskError::Unusable)?;
                Ok(answer)
            }
            Asking::Rounds(rounds) => match rounds.answers.get(key).filter(|answer| question.check(answer).is_ok()) {
                Some(answer) => Ok(answer.clone()),
                None => {
                    rounds.lock().insert(key.to_owned(), question.request(self.version()));
                    rounds.asked.notify_one();
                    // The dispatcher sees the pending request, replies `input_required` and drops the handler.
                    std::future::pending().await
                }
            },
            Asking::Task(task) => loop {
                let answer = task.ask(key, question.request(self.version())).await.ok_or(AskError::TimedOut)?;
                if question.check(&answer).is_ok() {
                    return Ok(answer);
                }
            },
        }
    }
}

impl Elicited {
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

impl Sampled {
    /// The text of the answer; empty if the content is not text.
    pub fn text(&self) -> &str {
        let block = self.content.as_array().and_then(|blocks| blocks.first()).unwrap_or(&self.content);
        block["text"].as_str().unwrap_or_default()
    }
}

impl Rounds {
    /// `earlier` holds the sealed answers of past rounds; `now` came with this request and takes precedence.
    pub(crate) fn new(mut earlier: Map<String, Value>, now: Map<String, Value>) -> Rounds {
        earlier.extend(now);
        Rounds { answers: earlier, open: Mutex::default(), asked: Notify::new() }
    }

    /// Takes the unanswered requests; `None` if the handler is not waiting for the client.
    pub(crate) fn take_open(&self) -> Option<Map<String, Value>> {
        let mut open = self.lock();
        (!open.is_empty()).then(|| std::mem::take(&mut *open))
    }

    pub(crate) fn answers(&self) -> &Map<String, Value> {
        &self.answers
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Map<String, Value>> {
        self.open.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl ClientCapabilities {
    /// Whether the client can answer this request through [`Context::ask`].
    pub fn can_answer(&self, question: &Question) -> bool {
        self.supports(question.feature)
    }
}

impl From<AskError> for ToolError {
    fn from(error: AskError) -> ToolError {
        match error {
            // The modern era has a protocol error for this; older clients get a tool error.
            AskError::NotSupported { feature, era: Era::Modern } => ToolError::Protocol(feature.missing()),
            other => ToolError::new("ClientRequestError", other.to_string()),
        }
    }
}

impl From<AskError> for Error {
    fn from(error: AskError) -> Error {
        match error {
            AskError::NotSupported { feature, .. } => feature.missing(),
            other => Error::Other {
                code: crate::code::Code::Application,
                message: other.to_string(),
                error_type: "ClientRequestError",
                data: None,
            },
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, AskError> {
    serde_json::from_value(answer).map_err(|error| AskError::Unusable(error.to_string()))
}

fn name(feature: ClientFeature) -> &'static str {
    match feature {
        ClientFeature::Elicitation => "elicitation",
        ClientFeature::ElicitationUrl => "elicitation by URL",
        ClientFeature::Sampling => "sampling",
        ClientFeature::Roots => "roots",
        ClientFeature::Tasks => "tasks",
    }
}
