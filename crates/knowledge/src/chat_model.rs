//! Chat model that answers questions and describes images. The knowledge base does not know how a model is chosen: the
//! implementation is the router.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use corbie_llm::Chat;

/// Sends prompts to a chat model.
pub trait ChatModel: fmt::Debug + Send + Sync {
    /// Maximum duration of a call.
    fn timeout(&self) -> Duration;

    fn complete(&self, prompt: ModelPrompt) -> BoxFuture<'_, Result<ModelAnswer, ModelError>>;
}

/// A prompt and the model for it.
#[derive(Debug)]
pub struct ModelPrompt {
    pub chat: Chat,
    /// If `None`, the prompt decides.
    pub model: Option<String>,
    /// The caller who is charged.
    pub caller: Option<Arc<str>>,
    /// Relevance of the best passage in the prompt, if it contains passages.
    pub relevance: Option<f32>,
}

/// Text of an answer, and the model that gave it.
#[derive(Debug)]
pub struct ModelAnswer {
    pub text: String,
    pub model: Option<String>,
    pub provider: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("no provider is configured")]
    NoProvider,
    #[error("{0}")]
    Failed(String),
}
