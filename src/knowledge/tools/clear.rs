//! `knowledge-clear`: removes all documents (K-90 to K-94).

use corbie_mcp::{
    Arguments, CallResult, Cause, Context, Effect, Error as Refusal, Failure, RegistrationError, Style, Tool, ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, base, base_schema, dialect};
use crate::knowledge::far::rounded;
use crate::knowledge::{Error, Knowledge};

const DESCRIPTION: &str = "Remove all documents from the knowledge base. Needs confirm=true and \
confirmation_phrase=\"DELETE ALL\". What is being processed is cancelled. What is removed cannot be brought back.";

const PHRASE: &str = "DELETE ALL";

#[derive(Debug, Deserialize)]
struct Input {
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
        .answers_missing_arguments()
        .effect(Effect::Destroys)
        .dialect(without_missing)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(clear(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

/// Reports arguments of the wrong type and ignores missing ones, which are not an error here.
fn without_missing(failure: &Failure<'_>, style: Style) -> Result<CallResult, Refusal> {
    let Cause::Library(Refusal::Schema { tool, violations }) = failure.cause else { return dialect(failure, style) };
    let wrong = violations.iter().filter(|violation| violation.keyword != "required").cloned().collect();
    let cause = Cause::Library(Refusal::Schema { tool: tool.clone(), violations: wrong });
    dialect(&Failure { cause: &cause, ..*failure }, style)
}

async fn clear(knowledge: &Knowledge, context: &Context, input: &Input) -> Result<Value, Error> {
    let base = base(context, input.knowledge_base.as_deref())?;
    if !input.confirm || input.confirmation_phrase != PHRASE {
        let documents = knowledge.open().await?.store.totals(&base).await?.documents;
        return Err(Error::ConfirmClear { documents });
    }
    let cleared = knowledge.clear(&base).await?;
    Ok(json!({
        "success": true,
        "documents_removed": cleared.documents,
        "embeddings_removed": cleared.vectors,
        "storage_freed_mb": rounded(cleared.freed_bytes as f64 / f64::from(1 << 20)),
        "message": "Knowledge base cleared successfully",
    }))
}
