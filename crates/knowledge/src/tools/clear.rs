//! `knowledge-clear`: removes all documents (K-90 to K-94).

use corbie_mcp::{
    Arguments, CallResult, Context, Effect, Error as Refusal, FailedCall, FailureCause, RegistrationError,
    RequestStyle, Tool, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, authorized_base, base_schema, dialect};
use crate::progress::round_to_millis;
use crate::{Error, Knowledge};

const DESCRIPTION: &str = "Remove all documents from the knowledge base. Requires confirm=true and \
confirmation_phrase=\"DELETE ALL\". Deletes every document and cancels running tasks. Cannot be undone.";

const CONFIRMATION_PHRASE: &str = "DELETE ALL";

#[derive(Debug, Deserialize)]
struct ClearInput {
    #[serde(default)]
    confirm: bool,
    #[serde(default)]
    confirmation_phrase: String,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-clear")
        .title("Remove all documents")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "confirm": { "type": "boolean", "description": "Must be true to clear" },
                "confirmation_phrase": { "type": "string", "description": "Must be \"DELETE ALL\"", "maxLength": 1000 },
                "knowledge_base": base_schema(),
            },
            "required": ["confirm", "confirmation_phrase"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "documents_removed": { "type": "integer" },
                "embeddings_removed": { "type": "integer" },
                "storage_freed_mb": { "type": "number" },
                "message": { "type": "string" },
            },
            "required": ["success", "documents_removed", "embeddings_removed", "storage_freed_mb", "message"],
        }))
        // Missing arguments mean that the call is not confirmed.
        .allow_missing_arguments()
        .effect(Effect::Destroys)
        .dialect(dialect_without_missing)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(clear(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

/// Reports arguments of the wrong type and ignores missing ones, which are not an error here.
fn dialect_without_missing(failure: &FailedCall<'_>, style: RequestStyle) -> Result<CallResult, Refusal> {
    let FailureCause::Library(Refusal::Schema { tool, violations }) = failure.cause else {
        return dialect(failure, style);
    };
    let wrong = violations.iter().filter(|violation| violation.keyword != "required").cloned().collect();
    let cause = FailureCause::Library(Refusal::Schema { tool: tool.clone(), violations: wrong });
    dialect(&FailedCall { cause: &cause, ..*failure }, style)
}

async fn clear(knowledge: &Knowledge, context: &Context, input: &ClearInput) -> Result<Value, Error> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    if !input.confirm || input.confirmation_phrase != CONFIRMATION_PHRASE {
        let documents = knowledge.open().await?.store.totals(&base).await?.documents;
        return Err(Error::ConfirmClear { documents });
    }
    let cleared = knowledge.clear(&base).await?;
    Ok(json!({
        "success": true,
        "documents_removed": cleared.documents,
        "embeddings_removed": cleared.vectors,
        "storage_freed_mb": round_to_millis(cleared.freed_bytes as f64 / f64::from(1 << 20)),
        "message": "Knowledge base cleared successfully",
    }))
}
