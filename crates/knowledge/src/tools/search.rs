//! `knowledge-search`: hybrid search for passages (K-50 to K-60).

use std::time::Instant;

use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{MODULE, authorized_base, base_schema, dialect, whole};
use crate::page_match::page_range;
use crate::search::{Passage, SearchRequest};
use crate::{Error, Knowledge, date, filter};
use corbie_util::number::shortest_f64;

const DESCRIPTION: &str = "Search the knowledge base using natural language query. Use it to find passages about a \
topic in the user's documents. Hybrid semantic and keyword search; returns the most relevant passages first, each with \
its document, page and a relevance_score from 0 to 1 that is comparable between queries. Returns no results if no \
document covers the topic. To read the text around a passage, call knowledge-get with its document_id and page.";

#[derive(Debug, Deserialize)]
struct SearchInput {
    query: String,
    #[serde(default = "ten", deserialize_with = "whole")]
    top_k: usize,
    #[serde(default)]
    min_relevance: f32,
    filters: Option<Map<String, Value>>,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-search")
        .title("Search documents")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Natural language search query",
                    "minLength": 1,
                    "maxLength": 500,
                },
                "top_k": {
                    "type": "integer",
                    "description": "Number of results to return",
                    "default": 10,
                    "minimum": 1,
                    "maximum": 50,
                },
                "min_relevance": {
                    "type": "number",
                    "description": "Minimum relevance score (0.0 to 1.0)",
                    "default": 0.0,
                    "minimum": 0.0,
                    "maximum": 1.0,
                },
                "filters": filters_schema(),
                "knowledge_base": base_schema(),
            },
            "required": ["query"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "query": { "type": "string" },
                "results": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "document_id": { "type": "string" },
                            "chunk_id": { "type": "string" },
                            "chunk_index": { "type": "integer" },
                            "page": { "type": "integer" },
                            "start": { "type": "integer" },
                            "filename": { "type": "string" },
                            "chunk_text": { "type": "string" },
                            "relevance_score": { "type": "number", "minimum": 0, "maximum": 1 },
                            "metadata": { "type": "object" },
                        },
                        "required": ["document_id", "chunk_id", "filename", "chunk_text", "relevance_score", "metadata"],
                    },
                },
                "total_results": { "type": "integer" },
                "message": { "type": "string" },
                "search_time_ms": { "type": "integer" },
            },
            "required": ["success", "query", "results", "total_results", "search_time_ms"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move {
                let began = Instant::now();
                let input: SearchInput = arguments.parse()?;
                let question = input.request(&context)?;
                let passages = knowledge.search(question).await?;
                Ok::<_, ToolError>(CallResult::json(reply(&input.query, &passages, began)))
            }
        })
}

/// Schema of the filters. Values are validated in code so that error messages are specific.
pub(super) fn filters_schema() -> Value {
    json!({
        "type": "object",
        "description": "Metadata filters (format, date_range, tags, or any other metadata field)",
        "properties": {
            "format": { "description": "A format such as \"pdf\", or a list of formats" },
            "date_range": { "description": "Range of dates on which documents were added, inclusive: {\"start\": \
                \"2025-01-01\", \"end\": \"2025-12-31\"}" },
            "tags": { "description": "A tag, or a list of tags; documents with any of them match" },
        },
    })
}

impl SearchInput {
    fn request(&self, context: &Context) -> Result<SearchRequest, Error> {
        let query = self.query.trim();
        if query.is_empty() {
            return Err(Error::invalid("query", "`query` is empty; enter a search query"));
        }
        Ok(SearchRequest {
            base: authorized_base(context, self.knowledge_base.as_deref())?,
            query: query.to_owned(),
            top_k: self.top_k,
            min_relevance: self.min_relevance,
            filter: self.filters.as_ref().map(filter::parse).transpose()?.flatten(),
        })
    }
}

fn reply(query: &str, passages: &[Passage], began: Instant) -> Value {
    let mut reply = json!({
        "success": true,
        "query": query,
        "results": passages.iter().map(passage_json).collect::<Vec<_>>(),
        "total_results": passages.len(),
    });
    if passages.is_empty() {
        reply["message"] = "No documents found matching your query".into();
    }
    reply["search_time_ms"] = json!(began.elapsed().as_millis() as u64);
    reply
}

/// Page number in the metadata. Set only for files with pages; a value from the user is ignored.
const PAGE_KEY: &str = "page_num";

/// A passage as returned to callers (K-55). `page_num` is the page of the best matching sentence, and `pages` the span
/// of the passage (K-34). Metadata of the file has precedence over metadata from users.
pub(super) fn passage_json(passage: &Passage) -> Value {
    let Passage { chunk, relevance, page } = passage;
    let mut metadata = Map::new();
    metadata.insert("format".into(), chunk.format.as_str().into());
    if let Some((from, to)) = page_range(chunk) {
        metadata.insert(PAGE_KEY.into(), (*page).into());
        metadata.insert("pages".into(), json!([from, to]));
    }
    metadata.insert("date_added".into(), date::to_rfc3339(chunk.date_added).into());
    if !chunk.headings.is_empty() {
        metadata.insert("headings".into(), json!(chunk.headings));
    }
    for (name, value) in chunk.metadata.iter().filter(|(name, _)| *name != PAGE_KEY) {
        metadata.entry(name).or_insert_with(|| value.clone());
    }
    let first = chunk.spans.first();
    let mut result = json!({
        "document_id": chunk.document_id,
        "chunk_id": chunk.id,
        "chunk_index": chunk.ordinal,
        // `page` and `start` are the arguments `page` and `offset` of knowledge-get. A file without pages has page 1.
        "page": first.map_or(chunk.pages.0.max(1), |stretch| stretch.page),
        "filename": chunk.filename,
        "chunk_text": chunk.text,
        "relevance_score": shortest_f64(*relevance),
        "metadata": metadata,
    });
    if let Some(first) = first {
        result["start"] = first.start.into();
    }
    result
}

fn ten() -> usize {
    10
}
