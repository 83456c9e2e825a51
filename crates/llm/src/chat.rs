//! Provider-independent chat types.
//!
//! Only fields that corbie acts on are typed. The rest of a request or response is carried along as the original JSON
//! ([`RawBody`]), so that nothing is lost between two peers of the same protocol.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use corbie_config::effort::Effort;

/// A chat request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chat {
    /// The provider's model name, without a provider prefix.
    pub model: String,
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools in parallel. Most models do by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Required response format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ResponseFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Number of choices to generate; defaults to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Whether the response is streamed.
    pub stream: bool,
    /// The original request. An adapter of the same protocol starts from it and changes only the necessary fields.
    #[serde(skip)]
    pub raw: Option<RawBody>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: ChatRole,
    pub parts: Vec<ContentPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// Instructions from the application; they take precedence over the user's.
    System,
    User,
    Assistant,
}

/// A content part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    Text {
        text: String,
    },
    Image {
        image: Image,
    },
    File {
        file: FileContent,
    },
    /// Audio, base64-encoded.
    Audio {
        /// For example `wav` or `mp3`.
        format: String,
        base64: String,
    },
    /// Model reasoning. The proof is the signature of the provider, unmodified, and its signer (`signer.rs`).
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Value>,
    },
    /// The model requests a tool call.
    ToolCall {
        id: String,
        name: String,
        /// The parsed JSON object. If the model wrote invalid JSON, the original string.
        arguments: Value,
        /// Signature that the provider requires back with the call, and its signer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Value>,
    },
    /// The result of a tool call, in a user message.
    ToolResult {
        id: String,
        name: Option<String>,
        content: Vec<ContentPart>,
        #[serde(default)]
        is_error: bool,
    },
    /// Prompt cache breakpoint: the provider may cache everything up to here. The cache control object is stored
    /// unmodified, since only Anthropic's models accept it.
    CacheMark {
        control: Value,
    },
    /// A part that could not be parsed. It is preserved in the raw body and cannot be translated to another protocol.
    Unread {
        part: UnsupportedPart,
    },
}

/// An image: base64 data or a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Image {
    Inline { media_type: String, base64: String },
    Link { url: String },
}

/// A file with base64 content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileContent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub media_type: String,
    pub base64: String,
}

/// Why a part could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedPart {
    /// Unknown part type; empty if the part has none.
    Type(String),
    /// The part has this type but not the fields it requires.
    Content(String),
    /// A file stored at the provider and referenced by ID only.
    FileId,
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Whether the arguments must match the schema exactly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Cache control for everything up to this tool, unmodified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    None,
    /// At least one tool, chosen by the model.
    Required,
    /// This tool.
    Tool(String),
}

/// Required response format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Any JSON object.
    Json,
    /// JSON that matches a schema.
    Schema { name: String, schema: Value },
}

/// Amount of reasoning before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    Off,
    /// The model decides how much.
    On,
    Effort(Effort),
    /// Maximum number of reasoning tokens.
    Budget(u32),
}

/// A chat response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Completion {
    pub id: String,
    /// The model that answered, by the provider's name for it.
    pub model: String,
    pub parts: Vec<ContentPart>,
    pub stop: StopReason,
    pub usage: Usage,
    /// The original response body.
    #[serde(skip)]
    pub raw: Option<RawBody>,
}

/// Why generation stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The answer is complete.
    #[default]
    Finished,
    /// The model reached a stop sequence.
    StopSequence,
    /// The model reached its token limit.
    Length,
    /// The model waits for tool results.
    Tools,
    /// The model or its provider refused to answer.
    Refused,
    /// Any other reason, as reported by the provider.
    Other(String),
}

/// Token usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All input tokens, cached or not.
    pub prompt: u64,
    /// All output tokens, including reasoning.
    pub completion: u64,
    /// Input tokens served from the provider's cache.
    pub cached: u64,
    /// Output tokens spent on reasoning.
    pub reasoning: u64,
}

/// An incremental update of a streaming response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Delta {
    Started {
        id: String,
        model: String,
    },
    Text {
        text: String,
    },
    Reasoning {
        text: String,
    },
    /// A tool call starts. `index` distinguishes parallel calls.
    ToolCall {
        index: usize,
        id: String,
        name: String,
    },
    /// More of the tool call's arguments, as JSON text.
    Arguments {
        index: usize,
        json: String,
    },
    /// Signature that the provider requires back: with the tool call `index`, or else with the preceding reasoning or
    /// text.
    Proof {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
        proof: Value,
    },
    Stopped {
        stop: StopReason,
    },
    Used {
        usage: Usage,
    },
}

/// The wire format of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Chat completions, as spoken by OpenAI and compatible servers.
    OpenAi,
    Anthropic,
    Google,
}

/// An unmodified message body.
#[derive(Debug, Clone, PartialEq)]
pub struct RawBody {
    pub protocol: Protocol,
    pub body: Map<String, Value>,
}

impl Message {
    pub fn text(role: ChatRole, text: impl Into<String>) -> Message {
        Message { role, parts: vec![ContentPart::Text { text: text.into() }] }
    }
}

impl Completion {
    /// All text of the answer, without reasoning.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ContentPart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

impl StopReason {
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::Finished => "finished",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Length => "length",
            StopReason::Tools => "tools",
            StopReason::Refused => "refused",
            StopReason::Other(word) => word,
        }
    }
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}
