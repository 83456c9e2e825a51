//! `knowledge-show`: the documents there are (K-80 to K-85).

use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, base, base_schema, dialect, whole};
use crate::knowledge::store::{ListedDocument, Listing, Order, Sort};
use crate::knowledge::{Error, Knowledge, date};

const DESCRIPTION: &str = "List all documents in the knowledge base with metadata, a page at a time. Those that are \
still being processed, or could not be, are listed too: processing_status says so.";

#[derive(Debug, Deserialize)]
struct Input {
    #[serde(default = "hundred", deserialize_with = "whole")]
    limit: u32,
    #[serde(default, deserialize_with = "whole")]
    offset: u64,
    #[serde(default)]
    sort_by: SortBy,
    #[serde(default)]
    sort_order: SortOrder,
    knowledge_base: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SortBy {
    #[default]
    DateAdded,
    Filename,
    Size,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SortOrder {
    Asc,
    #[default]
    Desc,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-show")
        .title("List documents")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "limit": {
                    "type": "integer",
                    "description": "Max documents to return",
                    "default": 100,
                    "minimum": 1,
                    "maximum": 1000,
                },
                "offset": {
                    "type": "integer",
                    "description": "Pagination offset",
                    "default": 0,
                    "minimum": 0,
                    "maximum": 4_294_967_295u32,
                },
                "sort_by": {
                    "type": "string",
                    "description": "Sort field (date_added, filename, size)",
                    "default": "date_added",
                    "enum": ["date_added", "filename", "size"],
                },
                "sort_order": {
                    "type": "string",
                    "description": "Sort order (asc, desc)",
                    "default": "desc",
                    "enum": ["asc", "desc"],
                },
                "knowledge_base": base_schema(),
            },
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "documents": { "type": "array", "items": { "type": "object" } },
                "total_count": { "type": "integer" },
                "limit": { "type": "integer" },
                "offset": { "type": "integer" },
                "message": { "type": "string" },
            },
            "required": ["success", "documents", "total_count"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(show(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

async fn show(knowledge: &Knowledge, context: &Context, input: &Input) -> Result<Value, Error> {
    let base = base(context, input.knowledge_base.as_deref())?;
    let listing = Listing {
        limit: input.limit,
        offset: input.offset,
        sort: match input.sort_by {
            SortBy::DateAdded => Sort::DateAdded,
            SortBy::Filename => Sort::Filename,
            SortBy::Size => Sort::Size,
        },
        order: match input.sort_order {
            SortOrder::Asc => Order::Ascending,
            SortOrder::Desc => Order::Descending,
        },
    };
    let listed = knowledge.open().await?.store.documents(&base, listing).await?;
    let mut reply = json!({
        "success": true,
        "documents": listed.documents.iter().map(document).collect::<Vec<_>>(),
        "total_count": listed.total,
        "limit": input.limit,
        "offset": input.offset,
    });
    match listed.total {
        0 => reply["message"] = "Knowledge base is empty".into(),
        total if input.offset >= total => {
            let documents =
                if total == 1 { "is only 1 document".into() } else { format!("are only {total} documents") };
            reply["message"] = format!("There {documents}, and offset {} passes over all of them", input.offset).into();
        }
        _ => {}
    }
    Ok(reply)
}

/// A document as callers see it (K-83).
fn document(listed: &ListedDocument) -> Value {
    let mut document = json!({
        "id": listed.id,
        "filename": listed.filename,
        "format": listed.format,
        "size_bytes": listed.size_bytes,
        "date_added": date::shown(listed.date_added),
        "chunk_count": listed.chunk_count,
        "processing_status": listed.status.name(),
        "processing_method": listed.method,
    });
    if !listed.metadata.is_empty() {
        document["metadata"] = json!(listed.metadata);
    }
    if let Some(path) = &listed.path {
        document["file_path"] = path.as_str().into();
    }
    if let Some(warning) = &listed.warning {
        document["warning"] = warning.as_str().into();
    }
    if let Some(task) = &listed.task {
        document["task_id"] = json!(task);
    }
    document
}

fn hundred() -> u32 {
    100
}
