//! `knowledge-show`: lists documents (K-80 to K-85).

use corbie_extract::Format;
use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError, TrustLevel};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, authorized_base, base_schema, dialect, whole};
use crate::store::{DocumentFilter, DocumentListQuery, ListedDocument, ProcessingStatus, SortDirection, SortKey};
use crate::{Error, Knowledge, date, truncate_for_error};
use corbie_util::sanitize::without_folders;

const DESCRIPTION: &str = "List all documents in the knowledge base with metadata, with pagination. Includes documents \
that are being processed or failed; see processing_status. Use filter, format and status to narrow the list; \
total_count is the number of matching documents.";

#[derive(Debug, Deserialize)]
struct ShowInput {
    #[serde(default = "hundred", deserialize_with = "whole")]
    limit: u32,
    #[serde(default, deserialize_with = "whole")]
    offset: u64,
    #[serde(default)]
    sort_by: SortBy,
    #[serde(default)]
    sort_order: SortOrder,
    filter: Option<String>,
    format: Option<String>,
    status: Option<String>,
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
                "filter": {
                    "type": "string",
                    "description": "Only documents whose file name or title contains this text (case-insensitive)",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "format": {
                    "type": "string",
                    "description": "Only documents of this format, such as \"pdf\"",
                    "minLength": 1,
                    "maxLength": 20,
                },
                "status": {
                    "type": "string",
                    "description": "Only documents with this processing_status",
                    "enum": ProcessingStatus::ALL.map(ProcessingStatus::name),
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

async fn show(knowledge: &Knowledge, context: &Context, input: &ShowInput) -> Result<Value, Error> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let is_trusted = context.caller().trust >= TrustLevel::Trusted;
    let only = input.filter()?;
    let is_all = only.matches_all();
    let listing = DocumentListQuery {
        filter: only,
        limit: input.limit,
        offset: input.offset,
        sort: match input.sort_by {
            SortBy::DateAdded => SortKey::DateAdded,
            SortBy::Filename => SortKey::Filename,
            SortBy::Size => SortKey::Size,
        },
        order: match input.sort_order {
            SortOrder::Asc => SortDirection::Ascending,
            SortOrder::Desc => SortDirection::Descending,
        },
    };
    let listed = knowledge.open().await?.store.documents(&base, listing).await?;
    let mut reply = json!({
        "success": true,
        "documents": listed.documents.iter().map(|listed| document_json(listed, is_trusted)).collect::<Vec<_>>(),
        "total_count": listed.total,
        "limit": input.limit,
        "offset": input.offset,
    });
    match listed.total {
        0 if is_all => reply["message"] = "Knowledge base is empty".into(),
        0 => {
            reply["message"] = "No documents match; remove filter, format or status to list more".into();
        }
        total if input.offset >= total => {
            let documents =
                if total == 1 { "is only 1 document".into() } else { format!("are only {total} documents") };
            reply["message"] = format!("offset {} is past the end: there {documents}", input.offset).into();
        }
        _ => {}
    }
    Ok(reply)
}

impl ShowInput {
    fn filter(&self) -> Result<DocumentFilter, Error> {
        let format = |name: &String| {
            let known = Format::from_extension(name.trim_start_matches('.')).map(|format| format.as_str().to_owned());
            known.ok_or_else(|| {
                let name = truncate_for_error(name);
                Error::invalid("format", format!("unknown document format `{name}` in `format`"))
            })
        };
        Ok(DocumentFilter {
            name_contains: self.filter.clone(),
            format: self.format.as_ref().map(format).transpose()?,
            status: ProcessingStatus::ALL.into_iter().find(|status| Some(status.name()) == self.status.as_deref()),
        })
    }
}

/// A document as returned to callers (K-83). Only trusted callers see paths of this machine and tasks of other callers.
fn document_json(listed: &ListedDocument, is_trusted: bool) -> Value {
    let mut document = json!({
        "id": listed.id,
        "filename": listed.filename,
        "format": listed.format,
        "size_bytes": listed.size_bytes,
        "date_added": date::to_rfc3339(listed.date_added),
        "page_count": listed.page_count,
        "chunk_count": listed.chunk_count,
        "processing_status": listed.status.name(),
        "processing_method": listed.method,
    });
    if !listed.metadata.is_empty() {
        document["metadata"] = json!(listed.metadata);
    }
    if let Some(path) = listed.path.as_ref().filter(|_| is_trusted) {
        document["file_path"] = path.as_str().into();
    }
    if let Some(warning) = &listed.warning {
        document["warning"] = if is_trusted { warning.as_str().into() } else { without_folders(warning).into() };
    }
    if let Some(task) = listed.task.as_ref().filter(|_| is_trusted) {
        document["task_id"] = json!(task);
    }
    document
}

fn hundred() -> u32 {
    100
}
