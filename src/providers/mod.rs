//! Models of other companies and of this machine, behind one set of types.
//!
//! A provider is a handful of pure functions over bytes: a [`Chat`] becomes a request, a response becomes a
//! [`Completion`] or an [`Error`], events of a stream become [`Delta`]s. They read no clock: what depends on the moment, a
//! `Retry-After` that is a date, is told it with the [`Head`]. Sending, waiting, trying again and choosing happen once
//! for all of them.

pub mod anthropic;
pub mod breaker;
pub mod call;
pub mod capabilities;
pub mod catalog;
pub mod chat;
pub mod client;
pub mod embeddings;
mod error;
pub mod google;
mod guarded;
pub mod metrics;
pub mod mock;
pub mod openai;
pub mod pool;
pub mod provider;
mod question;
pub mod retry;
pub(crate) mod retry_after;
mod sse;
pub mod state;
pub mod stream;
mod traced;
mod untranslatable;

use std::fmt;
use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use url::Url;

pub use capabilities::{Capabilities, Refuses};
pub use chat::{Chat, Completion, Delta};
pub use error::{Error, NetworkFault};
pub use question::Question;
pub use sse::{Event, Events};
pub use untranslatable::Untranslatable;

use crate::config::secret::Secret;

/// Where a provider is, and what it wants to see.
#[derive(Clone)]
pub struct Endpoint {
    /// Everything before the paths of the protocol, such as `https://api.openai.com/v1`; no slash at its end.
    pub base: Url,
    pub key: Option<Secret>,
    /// Sent with every request, after those of the protocol.
    pub headers: HeaderMap,
}

/// A whole answer for a caller who speaks OpenAI's protocol.
#[derive(Debug, Clone)]
pub enum Answered {
    /// It lacks nothing.
    AsItCame { body: bytes::Bytes, usage: chat::Usage },
    /// It came in another protocol, or has gaps.
    Read(Completion),
}

/// A request, ready to be sent.
pub type Request = http::Request<bytes::Bytes>;

/// The head of a response. The body comes beside it.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    /// When it came. A wait until a date is counted from here.
    pub at: SystemTime,
}

/// A model that a provider offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct ModelInfo {
    /// The provider's own name for it.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many tokens it reads, where the provider tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// How many tokens it writes at most, where the provider tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it can do, where the provider tells.
    #[serde(skip_serializing_if = "Capabilities::is_empty")]
    pub capabilities: Capabilities,
}

impl Answered {
    pub fn usage(&self) -> chat::Usage {
        match self {
            Answered::AsItCame { usage, .. } => *usage,
            Answered::Read(completion) => completion.usage,
        }
    }
}

impl ModelInfo {
    /// One of which nothing is known but its name.
    pub fn named(id: impl Into<String>) -> ModelInfo {
        ModelInfo { id: id.into(), ..ModelInfo::default() }
    }

    /// Whether people mean this one by a name: Ollama's `llama3` is `llama3:latest`, Google's `gemini-3` `models/gemini-3`.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.strip_prefix("models/").unwrap_or(name);
        // A name without the date of a snapshot means the newest.
        let undated = || capabilities::without_snapshot(&self.id) == Some(name);
        self.id == name
            || undated()
            || self.id.strip_suffix(":latest") == Some(name)
            || name.strip_suffix(":latest") == Some(&self.id)
    }

    /// Whether it is plainly no model to talk to. Lists of local servers do not say, but their names do.
    pub fn only_embeds(&self) -> bool {
        ["embed", "rerank", "bge-", "whisper"].iter().any(|word| self.id.to_lowercase().contains(word))
    }
}

impl Endpoint {
    /// Where it is, for people: a query may carry a key.
    pub fn shown(&self) -> String {
        let mut base = self.base.clone();
        if base.query().is_some() {
            base.set_query(Some("***"));
        }
        base.into()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may carry keys.
        f.debug_struct("Endpoint").field("base", &self.shown()).finish_non_exhaustive()
    }
}
