//! `knowledge-get`: returns the text of a document by pages.

use std::ops::Range;

use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, authorized_base, base_schema, dialect, document_id, not_found, whole};
use crate::document::PlacedChunk;
use crate::store::PageRange;
use crate::{Error, Knowledge, date};

const DESCRIPTION: &str = "Get the full text of a document in the knowledge base, page by page. Use it to read a \
document or the context of a passage found by knowledge-search. next_page is the page to request next, and is omitted \
after the last one. Text longer than max_characters is truncated; continue with offset. With chunks=true, also returns \
the position of each chunk on these pages, with the chunk_id used in search results.";

#[derive(Debug, Deserialize)]
struct GetInput {
    document_id: String,
    #[serde(default = "one", deserialize_with = "whole")]
    page: u32,
    #[serde(default = "ten", deserialize_with = "whole")]
    pages: u32,
    #[serde(default, deserialize_with = "whole")]
    offset: usize,
    #[serde(default = "many", deserialize_with = "whole")]
    max_characters: usize,
    #[serde(default)]
    chunks: bool,
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
                "page": { "type": "integer", "description": "First page to return", "default": 1, "minimum": 1, "maximum": 1_000_000 },
                "pages": { "type": "integer", "description": "Number of pages to return", "default": 10, "minimum": 1, "maximum": 1000 },
                "offset": { "type": "integer", "description": "Number of characters to skip on the first page", "default": 0, "minimum": 0, "maximum": 1_000_000_000 },
                "max_characters": { "type": "integer", "description": "Maximum number of characters to return", "default": 20_000, "minimum": 100, "maximum": 500_000 },
                "chunks": { "type": "boolean", "description": "Whether to return the positions of chunks", "default": false },
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
                "chunks": {
                    "type": "array",
                    "description": "In reading order; a chunk that spans several pages is listed for each of them",
                    "items": {
                        "type": "object",
                        "properties": {
                            "chunk_id": { "type": "string" },
                            "chunk_index": { "type": "integer", "description": "Index of the chunk in its document, starting at 0" },
                            "page": { "type": "integer" },
                            "start": { "type": "integer", "description": "Offset of its first character on the page" },
                            "end": { "type": "integer", "description": "Offset of its end on the page" },
                            "text": { "type": "string", "description": "Beginning of its text; only if start and end \
                                are unknown" },
                        },
                        "required": ["chunk_id", "chunk_index", "page"],
                    },
                },
            },
            "required": ["success", "document", "pages", "page_count"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(get(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

async fn get(knowledge: &Knowledge, context: &Context, input: &GetInput) -> Result<Value, Error> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let id = document_id(&input.document_id)?;
    let open = knowledge.open().await?;
    // A character has at most four bytes.
    let bytes = input.offset.saturating_add(input.max_characters).saturating_mul(4);
    let wanted = PageRange { from: input.page, pages: input.pages, max_bytes: bytes };
    let found = match input.chunks {
        true => open.store.text_and_chunks(&base, id, wanted).await?,
        false => open.store.text(&base, id, wanted).await?.map(|(document, pages)| (document, pages, Vec::new())),
    };
    let (document, pages, chunks) = found.ok_or_else(|| not_found(&input.document_id))?;
    let mut left = input.max_characters;
    let (mut shown, mut seen) = (Vec::new(), Vec::new());
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
        seen.push(VisibleRange { page: page.number, characters: offset..offset + taken });
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
            "date_added": date::to_rfc3339(document.date_added),
            "metadata": document.metadata,
        },
        "pages": shown,
        "page_count": document.page_count,
    });
    if let Some((page, offset)) = next {
        reply["next_page"] = page.into();
        reply["next_offset"] = offset.into();
    }
    if input.chunks {
        reply["chunks"] = visible_chunks(&chunks, &seen).into();
    }
    Ok(reply)
}

/// The part of a page that is returned.
struct VisibleRange {
    page: u32,
    characters: Range<usize>,
}

/// Maximum number of chunks without known offsets. Otherwise a long page would return all its chunks.
const MAX_UNLOCATED_CHUNKS: usize = 1000;

/// Chunks that overlap the returned text. For documents from before offsets were stored, all chunks of these pages.
fn visible_chunks(chunks: &[PlacedChunk], seen: &[VisibleRange]) -> Vec<Value> {
    let (mut shown, mut without_place) = (Vec::new(), 0);
    for chunk in chunks {
        let told = |page: u32| json!({ "chunk_id": chunk.id, "chunk_index": chunk.ordinal, "page": page });
        for stretch in &chunk.spans {
            let is_seen = |seen: &VisibleRange| {
                let Range { start, end } = seen.characters;
                seen.page == stretch.page && (stretch.start as usize) < end && start < stretch.end as usize
            };
            if seen.iter().any(is_seen) {
                let mut entry = told(stretch.page);
                entry["start"] = stretch.start.into();
                entry["end"] = stretch.end.into();
                shown.push(entry);
            }
        }
        if let Some(beginning) = &chunk.excerpt
            && without_place < MAX_UNLOCATED_CHUNKS
            && let Some(on) =
                seen.iter().find(|seen| (chunk.pages.0.max(1)..=chunk.pages.1.max(1)).contains(&seen.page))
        {
            let mut entry = told(on.page);
            entry["text"] = beginning.as_str().into();
            shown.push(entry);
            without_place += 1;
        }
    }
    shown
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
