//! `chat_completion`: a model's response. The prompt determines the model if none is named (P-19).

use std::borrow::Cow;

use corbie_mcp::{Arguments, CallResult, Context, Effect, RegistrationError, Tool, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::methods::{META, UsageOutput};
use crate::router::{RouteRequest, RoutedCompletion, Router};
use corbie_llm as providers;
use corbie_llm::chat::ContentPart;

const DESCRIPTION: &str = "Send a prompt to a language model (LLM) and return its response. Takes a prompt, or \
messages as in OpenAI's chat completions API. If model is omitted, the router selects the model that fits the prompt; \
`_meta` has the routing decision and its reason.";

/// Arguments. All except `prompt` are parameters of chat completions and are passed through unchanged.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "used for the schema only; arguments are parsed as a request body")]
struct ChatCompletionInput {
    /// Question, as an alternative to messages
    #[schemars(length(min = 1))]
    prompt: Option<String>,
    /// Conversation, as in OpenAI's chat completions: role and content, tool calls and their results
    #[schemars(length(min = 1))]
    messages: Option<Vec<Map<String, Value>>>,
    /// Model, such as gpt-4o or anthropic/claude-sonnet-5; if omitted, the prompt is routed
    #[schemars(length(min = 1, max = 256))]
    model: Option<String>,
    /// Maximum number of tokens in the answer
    #[schemars(range(min = 1))]
    max_tokens: Option<u32>,
    /// Sampling temperature
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f64>,
    #[schemars(range(min = 0, max = 1))]
    top_p: Option<f64>,
    /// Stop sequences
    stop: Option<Vec<String>>,
    /// Reasoning effort: none, low, medium, high
    reasoning_effort: Option<String>,
    /// Tools that the model may call, as in OpenAI's chat completions
    tools: Option<Vec<Map<String, Value>>>,
    /// Tool choice: none, auto, required, or a tool by name
    tool_choice: Option<StringOrObject>,
    /// Format of the answer, as in OpenAI's chat completions
    response_format: Option<Map<String, Value>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChatCompletionOutput {
    message: AssistantMessage,
    usage: UsageOutput,
    /// The model that answered
    model: String,
    /// Provider of the model
    provider: String,
    /// Finish reason: finished, stop_sequence, length, tools, refused, or another word of the provider
    stop: String,
    /// ID of the routing decision
    decision: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AssistantMessage {
    role: &'static str,
    content: String,
    /// Tool calls of the model
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolCall {
    id: String,
    name: String,
    /// JSON text; not necessarily valid, because models generate it
    arguments: String,
}

/// A string or an object, as in OpenAI's API.
#[derive(Debug)]
struct StringOrObject;

impl JsonSchema for StringOrObject {
    fn schema_name() -> Cow<'static, str> {
        "WordOrObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "object"] })
    }
}

pub(super) fn tool(router: Router) -> Result<Tool, RegistrationError> {
    // The router has its own deadline, and its error is more specific.
    let limit = router.settings().timeout.get() + std::time::Duration::from_secs(1);
    Tool::builder("chat_completion")
        .title("Chat completion")
        .description(DESCRIPTION)
        .module("corbie::route")
        // Calls cost money.
        .effect(Effect::Changes)
        .timeout(limit)
        .input::<ChatCompletionInput>()
        .output::<corbie_mcp::Json<ChatCompletionOutput>>()
        .run(move |context: Context, arguments: Arguments| {
            let router = router.clone();
            async move {
                let documents = router.document_access(context.caller());
                let caller = Some(context.caller().identity.clone());
                let routed = router.complete(RouteRequest { caller, documents, ..parse_arguments(arguments)? }).await?;
                Ok::<_, ToolError>(result(&routed))
            }
        })
}

/// Parses the arguments as the body of a chat completion.
fn parse_arguments(arguments: Arguments) -> Result<RouteRequest, ToolError> {
    let mut body: Map<String, Value> = arguments.parse()?;
    body.retain(|_, value| !value.is_null());
    let wrong = |message: &str| ToolError::from(corbie_mcp::Error::invalid_params(message));
    match (body.remove("prompt"), body.contains_key("messages")) {
        (Some(prompt), false) if prompt.as_str().is_some_and(|prompt| prompt.trim().is_empty()) => {
            return Err(wrong("`prompt` is empty; enter a prompt"));
        }
        (Some(prompt), false) => {
            body.insert("messages".into(), json!([{ "role": "user", "content": prompt }]));
        }
        (None, true) => {}
        _ => return Err(wrong("set either `prompt` or `messages`")),
    }
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    if model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return Err(wrong("`model` is empty; omit it to let the router select a model"));
    }
    // The model is selected later.
    body.insert("model".into(), model.clone().unwrap_or_default().into());
    let chat = providers::openai::parse(body).map_err(|error| wrong(&unreadable(&error)))?;
    Ok(RouteRequest { request: chat.into(), model, ..RouteRequest::default() })
}

fn unreadable(error: &providers::Error) -> String {
    match error.parameter() {
        Some(name) if name != "messages" => {
            format!("invalid `{name}`; use the format of OpenAI's chat completions API")
        }
        _ => "invalid `messages`; each message needs a `role` (system, user, assistant or tool) and `content`".into(),
    }
}

fn result(routed: &RoutedCompletion) -> CallResult {
    let RoutedCompletion { completion, record } = routed;
    let call = |part: &ContentPart| match part {
        ContentPart::ToolCall { id, name, arguments, .. } => {
            let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
            Some(ToolCall { id: id.clone(), name: name.clone(), arguments })
        }
        _ => None,
    };
    let output = ChatCompletionOutput {
        message: AssistantMessage {
            role: "assistant",
            content: completion.text(),
            tool_calls: completion.parts.iter().filter_map(call).collect(),
        },
        usage: completion.usage.into(),
        model: record.model.clone().unwrap_or_default(),
        provider: record.provider.clone().unwrap_or_default(),
        stop: completion.stop.as_str().to_owned(),
        decision: record.id,
    };
    let meta = Map::from_iter([(META.to_owned(), json!(record))]);
    CallResult { meta: Some(meta), ..CallResult::json(json!(output)) }
}
