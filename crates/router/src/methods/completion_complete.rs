//! `completion/complete` with a prompt: a model's response (P-07, P-08). Its other form, `ref` with `argument`, is that
//! of the MCP specification.

use corbie_mcp::message::Params;
use corbie_mcp::{Context, Error};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{META, UsageOutput};
use crate::router::{RouteRequest, RoutedCompletion, Router};
use corbie_llm::Chat;
use corbie_llm::chat::{ChatRole, Message};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompletionParams {
    prompt: String,
    model: Option<String>,
    max_tokens: Option<Value>,
}

pub(super) async fn complete(router: Router, context: Context, params: Params) -> Result<Value, Error> {
    let CompletionParams { prompt, model, max_tokens } = params.parse()?;
    if prompt.trim().is_empty() {
        return Err(Error::invalid_params("`prompt` is empty; enter a prompt"));
    }
    if model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        return Err(Error::invalid_params("`model` is empty; omit it to let the router select a model"));
    }
    let max_tokens = max_tokens.filter(|number| !number.is_null()).map(positive).transpose()?;
    let chat = Chat { messages: vec![Message::text(ChatRole::User, prompt)], max_tokens, ..Chat::default() };
    let (caller, documents) = (Some(context.caller().identity.clone()), router.document_access(context.caller()));
    let RoutedCompletion { completion, record } =
        router.complete(RouteRequest { request: chat.into(), model, caller, documents }).await?;
    Ok(json!({
        "message": { "role": "assistant", "content": completion.text() },
        "usage": UsageOutput::from(completion.usage),
        "model": record.model,
        "provider": record.provider,
        "stop": completion.stop.as_str(),
        "_meta": { META: record },
    }))
}

fn positive(number: Value) -> Result<u32, Error> {
    let fits = number.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    fits.ok_or_else(|| Error::invalid_params("`maxTokens` must be a positive integer"))
}
