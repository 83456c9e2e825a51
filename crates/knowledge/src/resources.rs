//! Documents and chunks as MCP resources (K-118), and a prompt that answers from them.

use std::sync::Arc;

use corbie_mcp::{
    Caller, ContentBlock, Context, Error as Refusal, ErrorCode, PageRequest, Prompt, PromptArguments, PromptMessage,
    PromptResult, ResourceContents, ResourceLister, ResourceListing, ResourcePage, ResourceTemplate, Role,
    ServerBuilder,
};

use super::document::{BaseName, DocumentId};
use super::grounding::Fence;
use super::search::SearchRequest;
use super::store::{DocumentListQuery, PageRange};
use super::{Error, Knowledge};
use corbie_util::sanitize::without_folders;

const DOCUMENT_URI_TEMPLATE: &str = "knowledge://documents/{id}";
const CHUNK_URI_TEMPLATE: &str = "knowledge://chunks/{id}";
/// Maximum size of a document read as a resource. `knowledge-get` reads larger ones by pages.
const MAX_DOCUMENT_BYTES: usize = 4 << 20;
const WHOLE_DOCUMENT: PageRange = PageRange { from: 1, pages: u32::MAX, max_bytes: MAX_DOCUMENT_BYTES };
const PROMPT_NAME: &str = "answer_from_documents";

/// Permission for these tools is also required for the resources and the prompt.
const READ_TOOL: &str = "knowledge-get";
const SEARCH_TOOL: &str = "knowledge-search";

/// URI of a document.
pub fn document_uri(id: DocumentId) -> String {
    format!("knowledge://documents/{id}")
}

/// Registers resources and prompt with a server.
pub fn register(builder: ServerBuilder, knowledge: &Knowledge) -> ServerBuilder {
    let (counting, listing) = (knowledge.clone(), knowledge.clone());
    let (documents, chunks, prompting) = (knowledge.clone(), knowledge.clone(), knowledge.clone());
    let lister = ResourceLister::new(
        move || counting.open_state().map_or(0, |open| open.retriever.documents()),
        move |context: Context, wanted| {
            let knowledge = listing.clone();
            async move {
                match list(&knowledge, context.caller(), wanted).await {
                    // The resources of other modules are still listed.
                    Err(error @ (Error::Storage { .. } | Error::Model(_) | Error::Internal(_))) => {
                        tracing::warn!(%error, "cannot list documents as resources");
                        Ok(ResourcePage::default())
                    }
                    listed => Ok(listed?),
                }
            }
        },
    );
    let document = ResourceTemplate::new(DOCUMENT_URI_TEMPLATE, "document", move |context: Context, uri, variables| {
        let knowledge = documents.clone();
        async move {
            let id = variables.get("id").cloned().unwrap_or_default();
            read_document(&knowledge, context.caller(), &uri, &id).await
        }
    });
    let chunk = ResourceTemplate::new(CHUNK_URI_TEMPLATE, "chunk", move |context: Context, uri, variables| {
        let knowledge = chunks.clone();
        async move {
            let id = variables.get("id").cloned().unwrap_or_default();
            read_chunk(&knowledge, context.caller(), &uri, &id).await
        }
    });
    builder
        .resource_lister(lister)
        .resource_template(
            document.map(|template| {
                template.description("Text of a document in the knowledge base").mime_type("text/plain")
            }),
        )
        .resource_template(chunk.map(|template| {
            template.description("Passage (chunk) of a document in the knowledge base").mime_type("text/plain")
        }))
        .prompt(prompt(prompting))
}

/// Documents of all bases, by base, newest first. A cursor consists of a base and the number of its documents that were
/// already listed.
async fn list(knowledge: &Knowledge, caller: &Caller, wanted: PageRequest) -> Result<ResourcePage, Error> {
    if !caller.may_use(READ_TOOL) {
        return Ok(ResourcePage::default());
    }
    let open = knowledge.open().await?;
    let mut bases = open.store.bases().await?;
    bases.retain(|base| caller.may_access(base.as_str()));
    bases.sort();
    let cursor = wanted.cursor.as_deref().and_then(|cursor| cursor.split_once('/'));
    let (mut base, mut offset) =
        match cursor.and_then(|(name, offset)| Some((name.parse().ok()?, offset.parse().ok()?))) {
            Some((base, offset)) if bases.contains(&base) => (base, offset),
            _ if wanted.cursor.is_some() => {
                return Err(Error::invalid("cursor", "invalid cursor; omit it to start at the first page"));
            }
            _ => match bases.first() {
                Some(first) => (first.clone(), 0),
                None => return Ok(ResourcePage::default()),
            },
        };
    let mut resources = Vec::new();
    loop {
        let room = u32::try_from(wanted.limit - resources.len()).unwrap_or(u32::MAX);
        let listing = DocumentListQuery { limit: room, offset, ..DocumentListQuery::default() };
        let listed = open.store.documents(&base, listing).await?;
        let shown = listed.documents.len() as u64;
        // A document that is still being added has a task, and no content to read.
        resources.extend(listed.documents.into_iter().filter(|document| document.task.is_none()).map(|document| {
            ResourceListing::new(document_uri(document.id), document.filename)
                .mime_type("text/plain")
                .member("size", document.size_bytes)
        }));
        offset += shown;
        if offset < listed.total && shown > 0 {
            if resources.len() < wanted.limit {
                continue;
            }
            return Ok(ResourcePage { resources, next: Some(format!("{base}/{offset}")) });
        }
        let Some(next) = bases.iter().find(|other| **other > base) else {
            return Ok(ResourcePage { resources, next: None });
        };
        (base, offset) = (next.clone(), 0);
        if resources.len() >= wanted.limit {
            return Ok(ResourcePage { resources, next: Some(format!("{base}/0")) });
        }
    }
}

async fn read_document(
    knowledge: &Knowledge,
    caller: &Caller,
    uri: &str,
    id: &str,
) -> Result<Vec<ResourceContents>, Refusal> {
    let missing = || Refusal::ResourceNotFound { uri: uri.to_owned() };
    let id: DocumentId = id.parse().map_err(|_| missing())?;
    let open = knowledge.open().await?;
    let bases = open.store.bases().await.map_err(Error::from)?;
    for base in bases.into_iter().filter(|base| may_read(caller, base)) {
        let found = open.store.text(&base, id, WHOLE_DOCUMENT).await.map_err(Error::from)?;
        let Some((_, pages)) = found else { continue };
        let mut text = String::new();
        for page in pages {
            text += &page.text;
            text += "\n\n";
        }
        if text.len() > MAX_DOCUMENT_BYTES {
            text.truncate(text.floor_char_boundary(MAX_DOCUMENT_BYTES));
            text += "\n\n[truncated; use knowledge-get to read the rest page by page]";
        }
        return Ok(vec![ResourceContents::text(uri, "text/plain", text.trim_end())]);
    }
    Err(missing())
}

async fn read_chunk(
    knowledge: &Knowledge,
    caller: &Caller,
    uri: &str,
    id: &str,
) -> Result<Vec<ResourceContents>, Refusal> {
    let missing = || Refusal::ResourceNotFound { uri: uri.to_owned() };
    let id = id.parse().map_err(|_| missing())?;
    let found = knowledge.open().await?.store.chunk(id).await.map_err(Error::from)?;
    let chunk = found.filter(|chunk| may_read(caller, &chunk.base)).ok_or_else(missing)?;
    Ok(vec![ResourceContents::text(uri, "text/plain", chunk.text)])
}

fn may_read(caller: &Caller, base: &BaseName) -> bool {
    caller.may_use(READ_TOOL) && caller.may_access(base.as_str())
}

/// Number of passages in the prompt.
const MAX_PASSAGES: usize = 8;

/// A question with relevant passages, for the client's model.
fn prompt(knowledge: Knowledge) -> Prompt {
    let knowledge = Arc::new(knowledge);
    Prompt::new(
        PROMPT_NAME,
        "Answer from my documents: a question with relevant passages of the knowledge base, numbered for citation",
        move |context: Context, arguments: PromptArguments| {
            let knowledge = knowledge.clone();
            async move {
                let question = arguments.get("question").cloned().unwrap_or_default();
                let base = match arguments.get("knowledge_base") {
                    Some(name) => {
                        name.parse::<BaseName>().map_err(|error| Refusal::invalid_params(error.to_string()))?
                    }
                    None => BaseName::default(),
                };
                if !context.caller().may_use(SEARCH_TOOL) || !context.caller().may_access(base.as_str()) {
                    return Err(Refusal::NotGranted { what: Error::NotGranted(base).to_string() });
                }
                let asked = SearchRequest {
                    base,
                    query: question.chars().take(500).collect::<String>().trim().to_owned(),
                    top_k: MAX_PASSAGES,
                    min_relevance: 0.0,
                    filter: None,
                };
                let passages = match knowledge.search(asked).await {
                    Err(Error::Empty) => Vec::new(),
                    found => found?,
                };
                let fence = Fence::new();
                let (instructions, passages) = (fence.instructions(), fence.format_passages(&passages));
                let text = format!("{instructions}\n\n{passages}\n\nQuestion: {question}");
                Ok(PromptResult {
                    description: None,
                    messages: vec![PromptMessage { role: Role::User, content: ContentBlock::text(text) }],
                })
            }
        },
    )
    .required("question", "The question to answer")
    .optional("knowledge_base", "The knowledge base to search")
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match &error {
            Error::InvalidParameter { .. } => Refusal::invalid_params(error.to_string()),
            Error::Internal(inward) => Refusal::internal(error.to_string(), inward.clone()),
            _ => Refusal::Other {
                code: ErrorCode::Application,
                // Untrusted callers read it too.
                message: without_folders(&error.to_string()),
                error_type: "KnowledgeError",
                // The error code of the tools, for programs.
                data: Some(Box::new(serde_json::Map::from_iter([("error".to_owned(), error.code().into())]))),
            },
        }
    }
}
