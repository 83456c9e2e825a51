//! `knowledge-get`: the text of a document, some pages at a time.

use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, base, base_schema, dialect, document_id, missing, whole};
use crate::knowledge::store::Wanted;
use crate::knowledge::{Error, Knowledge, date};

const DESCRIPTION: &str = "Get the text of a document in the knowledge base, some pages at a time. next_page tells where \
to go on; it is left out at the end. Long pages are cut at max_characters; go on with offset.";

#[derive(Debug, Deserialize)]
struct Input {
    document_id: String,
    #[serde(default = "one", deserialize_with = "whole")]
    page: u32,
    #[serde(default = "ten", deserialize_with = "whole")]
    pages: u32,
    #[serde(default, deserialize_with = "whole")]
    offset: usize,
    #[serde(default = "many", deserialize_with = "whole")]
    max_characters: usize,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-get")
        .title("Get a document's text")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "document_id": { "type": "string", "description": "ID of the document", "minLength": 1, "maxLength": 200 },
                "page": { "type": "integer", "description": "The first page wanted", "default": 1, "minimum": 1, "maximum": 1_000_000 },
                "pages": { "type": "integer", "description": "How many pages are wanted", "default": 10, "minimum": 1, "maximum": 1000 },
                "offset": { "type": "integer", "description": "How many characters of the first page to pass over", "default": 0, "minimum": 0, "maximum": 1_000_000_000 },
                "max_characters": { "type": "integer", "description": "How many characters to return at most", "default": 20_000, "minimum": 100, "maximum": 500_000 },
                "knowledge_base": base_schema(),
            },
            "required": ["document_id"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "document": { "type": "object" },
                "pages": { "type": "array", "items": { "type": "object" } },
                "page_count": { "type": "integer" },
                "next_page": { "type": "integer" },
                "next_offset": { "type": "integer" },
            },
            "required": ["success", "document", "pages", "page_count"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(get(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

async fn get(knowledge: &Knowledge, context: &Context, input: &Input) -> Result<Value, Error> {
    let base = base(context, input.knowledge_base.as_deref())?;
    let id = document_id(&input.document_id)?;
    let open = knowledge.open().await?;
    // A character has four bytes at most.
    let bytes = input.offset.saturating_add(input.max_characters).saturating_mul(4);
    let wanted = Wanted { from: input.page, pages: input.pages, bytes };
    let found = open.store.text(&base, id, wanted).await?;
    let (document, pages) = found.ok_or_else(|| missing(&input.document_id))?;
    let mut left = input.max_characters;
    let mut shown = Vec::new();
    let mut next = None;
    for (number, page) in pages.iter().enumerate() {
        let offset = if number == 0 { input.offset } else { 0 };
        let text: String = page.text.chars().skip(offset).take(left).collect();
        let taken = text.chars().count();
        left -= taken;
        let is_cut = page.text.chars().count() > offset + taken;
        let mut entry = json!({ "page": page.number, "text": text });
        if let Some(label) = &page.label {
            entry["label"] = label.as_str().into();
        }
        shown.push(entry);
        next = match is_cut {
            true => Some((page.number, offset + taken)),
            false if page.number < document.page_count => Some((page.number + 1, 0)),
            false => None,
        };
        if is_cut || left == 0 {
            break;
        }
    }
    let mut reply = json!({
        "success": true,
        "document": {
            "id": document.id,
            "filename": document.filename,
            "format": document.format,
            "size_bytes": document.size_bytes,
            "date_added": date::shown(document.date_added),
            "metadata": document.metadata,
        },
        "pages": shown,
        "page_count": document.page_count,
    });
    if let Some((page, offset)) = next {
        reply["next_page"] = page.into();
        reply["next_offset"] = offset.into();
    }
    Ok(reply)
}

fn one() -> u32 {
    1
}

fn ten() -> u32 {
    10
}

fn many() -> usize {
    20_000
}
