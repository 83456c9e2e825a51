//! LLM providers, remote and local, behind one set of types.
//!
//! A provider adapter is a set of pure functions over bytes: a [`Chat`] becomes a request, a response becomes a
//! [`Completion`] or an [`Error`], stream events become [`Delta`]s. Adapters read no clock: the [`ResponseHead`] carries the
//! arrival time, which a `Retry-After` date needs. Sending, retries, failover and provider selection are implemented
//! once for all adapters.

pub mod anthropic;
pub mod call;
pub mod capabilities;
pub mod chat;
pub mod circuit_breaker;
pub mod embeddings;
mod error;
pub mod google;
pub mod guarded_connector;
pub mod health;
pub mod http_client;
pub mod metrics;
pub mod mock;
pub mod openai;
pub mod provider;
pub mod provider_selection;
pub mod registry;
mod request;
pub mod retry;
pub mod retry_after;
pub mod signer;
mod spans;
pub mod sse;
pub mod stream;
mod unsupported;

use std::fmt;
use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use url::Url;

pub use capabilities::{Capabilities, UnsupportedParameters};
pub use chat::{Chat, Completion, Delta};
pub use error::{Error, NetworkError};
pub use request::ChatRequest;
pub use sse::{SseEvent, SseParser};
pub use unsupported::UnsupportedRequest;

use corbie_config::secret::Secret;

/// Address, credentials and headers of a provider.
#[derive(Clone)]
pub struct Endpoint {
    /// The URL before the protocol's paths, such as `https://api.openai.com/v1`, without a trailing slash.
    pub base: Url,
    pub key: Option<Secret>,
    /// Sent with every request, after the protocol's headers.
    pub headers: HeaderMap,
}

/// A buffered response for an OpenAI client.
#[derive(Debug, Clone)]
pub enum ChatResponse {
    /// The response is complete and is passed through unmodified.
    Passthrough { body: bytes::Bytes, usage: chat::Usage },
    /// The response uses another protocol, or lacks required fields.
    Parsed(Completion),
}

/// A request ready to be sent.
pub type HttpRequest = http::Request<bytes::Bytes>;

/// The head of a response; the body is passed separately.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    /// Arrival time. A `Retry-After` date is relative to it.
    pub received_at: SystemTime,
}

/// A model offered by a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelInfo {
    /// The provider's name for the model.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Context window in tokens, if the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Maximum output tokens, if the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Capabilities, if the provider reports them.
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    pub capabilities: Capabilities,
}

impl ChatResponse {
    pub fn usage(&self) -> chat::Usage {
        match self {
            ChatResponse::Passthrough { usage, .. } => *usage,
            ChatResponse::Parsed(completion) => completion.usage,
        }
    }
}

impl ModelInfo {
    /// A model without known capabilities.
    pub fn from_id(id: impl Into<String>) -> ModelInfo {
        ModelInfo { id: id.into(), ..ModelInfo::default() }
    }

    /// Whether a name refers to this model: Ollama's `llama3` is `llama3:latest`, Google's `gemini-3` is
    /// `models/gemini-3`.
    pub fn matches_name(&self, name: &str) -> bool {
        let name = name.strip_prefix("models/").unwrap_or(name);
        // A name without a snapshot date means the latest snapshot.
        let undated = || capabilities::without_snapshot(&self.id) == Some(name);
        self.id == name
            || undated()
            || self.id.strip_suffix(":latest") == Some(name)
            || name.strip_suffix(":latest") == Some(&self.id)
    }

    /// Whether this is an embedding, reranking or transcription model. Local servers do not list the type, but the name
    /// shows it.
    pub fn is_not_chat_model(&self) -> bool {
        ["embed", "rerank", "bge-", "whisper"].iter().any(|word| self.id.to_lowercase().contains(word))
    }
}

impl Endpoint {
    /// The base URL for display. The query is redacted, since it may contain a key.
    pub fn redacted_base_url(&self) -> String {
        let mut base = self.base.clone();
        if base.query().is_some() {
            base.set_query(Some("***"));
        }
        base.into()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may contain keys.
        f.debug_struct("Endpoint").field("base", &self.redacted_base_url()).finish_non_exhaustive()
    }
}
