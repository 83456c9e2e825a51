//! `knowledge-remove`: removes a document (K-70 to K-74).

use corbie_mcp::{Arguments, CallResult, Context, Effect, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, authorized_base, base_schema, dialect, document_id, not_found};
use crate::{Error, Knowledge};

const DESCRIPTION: &str = "Remove a specific document from the knowledge base. Requires confirm=true; without it, \
nothing is removed and the response shows which document would be. Removal cannot be undone.";

#[derive(Debug, Deserialize)]
struct RemoveInput {
    document_id: String,
    #[serde(default)]
    confirm: bool,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-remove")
        .title("Remove a document")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "document_id": {
                    "type": "string",
                    "description": "ID of document to remove",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "confirm": { "type": "boolean", "description": "Confirmation flag for safety", "default": false },
                "knowledge_base": base_schema(),
            },
            "required": ["document_id"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "document_id": { "type": "string" },
                "filename": { "type": "string" },
                "chunks_removed": { "type": "integer" },
                "message": { "type": "string" },
            },
            "required": ["success", "document_id", "filename", "chunks_removed", "message"],
        }))
        .effect(Effect::Destroys)
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(remove(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

async fn remove(knowledge: &Knowledge, context: &Context, input: &RemoveInput) -> Result<Value, Error> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let id = document_id(&input.document_id)?;
    let removal = knowledge.preview_removal(&base, id).await?.ok_or_else(|| not_found(&input.document_id))?;
    if !input.confirm {
        return Err(Error::ConfirmRemoval { id: id.to_string(), filename: removal.filename, chunks: removal.chunks });
    }
    let removed = knowledge.remove(&base, id).await?.ok_or_else(|| not_found(&input.document_id))?;
    Ok(json!({
        "success": true,
        "document_id": id,
        "filename": removed.filename,
        "chunks_removed": removed.chunks,
        "message": "Document removed successfully",
    }))
}
