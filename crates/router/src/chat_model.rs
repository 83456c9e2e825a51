//! The router as the chat model of the knowledge base.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::error::Error;
use super::grounding::DocumentAccess;
use super::router::{RouteRequest, Router};
use corbie_knowledge::chat_model::{ChatModel, ModelAnswer, ModelError, ModelPrompt};

impl ChatModel for Router {
    fn timeout(&self) -> Duration {
        self.settings().timeout.get()
    }

    fn complete(&self, prompt: ModelPrompt) -> BoxFuture<'_, Result<ModelAnswer, ModelError>> {
        let ModelPrompt { chat, model, caller, relevance } = prompt;
        let documents = relevance.map_or_else(DocumentAccess::default, DocumentAccess::Provided);
        let request = RouteRequest { request: chat.into(), model, caller, documents };
        Box::pin(async {
            let routed = Router::complete(self, request).await.map_err(|error| match error {
                Error::NoProvider => ModelError::NoProvider,
                error => ModelError::Failed(error.to_string()),
            })?;
            let (text, record) = (routed.completion.text(), routed.record);
            Ok(ModelAnswer { text, model: record.model, provider: record.provider })
        })
    }
}
