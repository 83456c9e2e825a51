//! MCP methods of the router: `models/list`, and `completion/complete` with a prompt.

mod completion_complete;
pub(super) mod models_list;

use corbie_mcp::{Effect, ServerBuilder};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

pub use models_list::listing;

use super::router::Router;
use corbie_llm::chat;

/// Key in `_meta` of a result under which the decision record is returned.
pub const META: &str = "corbie/decision";

pub(super) fn register(builder: ServerBuilder, router: &Router) -> ServerBuilder {
    let (models, completions) = (router.clone(), router.clone());
    builder
        .capability("models", json!({ "listChanged": true }))
        .capability("completion", json!({ "supportsStreaming": false }))
        .gated_method("models/list", "list_models", Effect::Reads, move |_, _| {
            let router = models.clone();
            async move { Ok(models_list::list(&router).await) }
        })
        // Calls cost money.
        .gated_method("completion/complete", "chat_completion", Effect::Changes, move |context, params| {
            completion_complete::complete(completions.clone(), context, params)
        })
}

/// Tokens, as spec 002 names them.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageOutput {
    prompt_tokens: u64,
    completion_tokens: u64,
    /// The sum of both
    total_tokens: u64,
}

impl From<chat::Usage> for UsageOutput {
    fn from(usage: chat::Usage) -> UsageOutput {
        let total_tokens = usage.total();
        UsageOutput { prompt_tokens: usage.prompt, completion_tokens: usage.completion, total_tokens }
    }
}
