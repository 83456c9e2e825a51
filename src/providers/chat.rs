//! A conversation with a model, in nobody's wire format.
//!
//! Only what corbie acts on is typed. The rest of a request or an answer travels along as the JSON it came as
//! ([`Raw`]), so that nothing is lost between two peers of the same protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is asked of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chat {
    /// The model's own name, without a provider before it.
    pub model: String,
    pub messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether the model may call several tools at once. Most do if nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The shape the answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
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
    /// How many answers are wanted; one if nobody says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// Whether the answer comes in pieces.
    pub stream: bool,
    /// The request it was made from. An adapter of the same protocol starts from it and changes what it must.
    #[serde(skip)]
    pub raw: Option<Raw>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the program, above the person's.
    System,
    User,
    Assistant,
}

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    Text {
        text: String,
    },
    Image {
        image: Image,
    },
    File {
        file: File,
    },
    /// A sound, in base64.
    Audio {
        /// Such as `wav` or `mp3`.
        format: String,
        base64: String,
    },
    /// The model thinks aloud. What proves it to its own provider is kept as it came.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Value>,
    },
    /// The model asks for a tool to be run.
    ToolCall {
        id: String,
        name: String,
        /// An object, parsed; what a model wrote that is no JSON is kept as a string.
        arguments: Value,
        /// What its own provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proof: Option<Value>,
    },
    /// What the tool gave; in a turn of the user.
    ToolResult {
        id: String,
        name: Option<String>,
        content: Vec<Part>,
        #[serde(default)]
        is_error: bool,
    },
    /// Everything up to here may be kept by the provider for the next time. The wish is kept as it came: only
    /// Anthropic's models take it.
    CacheMark {
        control: Value,
    },
    /// What could not be read. It goes on in the raw body, and cannot be put into another protocol.
    Unread {
        part: Unread,
    },
}

/// A picture: its bytes in base64, or where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Image {
    Inline { media_type: String, base64: String },
    Link { url: String },
}

/// A file and its bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub media_type: String,
    pub base64: String,
}

/// Why a piece could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// Its type is not known; empty where it has none.
    Type(String),
    /// It is of this type and does not hold what that should.
    Content(String),
    /// It is a file that is at its provider, and only named here.
    FileId,
}

/// A tool the model may ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub schema: Value,
    /// Whether the arguments must fit the schema, and not only should.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// The wish that everything up to this tool be kept for the next time, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    None,
    /// At least one tool, whichever.
    Required,
    /// This one.
    Tool(String),
}

/// The shape an answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Format {
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema { name: String, schema: Value },
}

/// How much a model should think before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    Off,
    /// As much as the model finds right.
    On,
    Effort(Effort),
    /// At most this many tokens.
    Budget(u32),
}

/// How hard a model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Minimal,
    Low,
    Medium,
    High,
    Max,
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Completion {
    pub id: String,
    /// The model that answered, as its provider names it.
    pub model: String,
    pub parts: Vec<Part>,
    pub stop: Stop,
    pub usage: Usage,
    /// The answer it was made from.
    #[serde(skip)]
    pub raw: Option<Raw>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said everything.
    #[default]
    Finished,
    /// It met one of the words it was told to stop at.
    StopWord,
    /// It used all the tokens it was given.
    Length,
    /// It waits for tools.
    Tools,
    /// It, or its provider, would not answer.
    Refused,
    /// Something else, in the provider's own word.
    Other(String),
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// All that was read, cached or not.
    pub prompt: u64,
    /// All that was written, thinking included.
    pub completion: u64,
    /// Of the prompt, what came from the provider's cache.
    pub cached: u64,
    /// Of the completion, what was thinking.
    pub reasoning: u64,
}

/// A piece of an answer that comes bit by bit.
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
    /// A tool call begins. `index` tells several apart.
    ToolCall {
        index: usize,
        id: String,
        name: String,
    },
    /// More of the arguments of a tool call, as JSON text.
    Arguments {
        index: usize,
        json: String,
    },
    /// What its own provider wants back: with the tool call `index`, or else with the thinking or text before it.
    Proof {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<usize>,
        proof: Value,
    },
    Stopped {
        stop: Stop,
    },
    Used {
        usage: Usage,
    },
}

/// Whose wire format something came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Chat completions, of OpenAI and of everyone compatible with it.
    OpenAi,
    Anthropic,
    Google,
}

/// A body as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw {
    pub protocol: Protocol,
    pub body: Map<String, Value>,
}

impl Message {
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        Message { role, parts: vec![Part::Text { text: text.into() }] }
    }
}

impl Effort {
    /// About as many tokens of thinking, for models that are told a number. Each of them takes these.
    pub fn tokens(self) -> u32 {
        match self {
            Effort::Minimal | Effort::Low => 1024,
            Effort::Medium => 8192,
            Effort::High => 16_384,
            Effort::Max => 24_576,
        }
    }

    /// About as hard as so many tokens of thinking, for models that are told a word.
    pub fn of_tokens(tokens: u32) -> Effort {
        match tokens {
            0..=1024 => Effort::Low,
            1025..=8192 => Effort::Medium,
            _ => Effort::High,
        }
    }
}

impl Completion {
    /// All text of the answer, without its thinking.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

impl Stop {
    pub fn as_str(&self) -> &str {
        match self {
            Stop::Finished => "finished",
            Stop::StopWord => "stop_word",
            Stop::Length => "length",
            Stop::Tools => "tools",
            Stop::Refused => "refused",
            Stop::Other(word) => word,
        }
    }
}

impl Usage {
    pub fn total(&self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}
