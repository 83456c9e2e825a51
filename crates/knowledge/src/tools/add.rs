//! `knowledge-add`: adds a document or image (K-20 to K-44).

use std::path::PathBuf;
use std::time::Duration;

use corbie_mcp::{Arguments, Context, Effect, RegistrationError, TaskSupport, Tool, ToolError, ToolOutcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    MODULE, authorize_links, authorized_base, base_schema, caller_origin, dialect, task_response, validate_metadata,
};
use crate::document::Origin;
use crate::ingest::IngestRequest;
use crate::jobs::JobRequest;
use crate::path_policy::canonical_name;
use crate::upload::shared_store;
use crate::{Knowledge, UPLOAD_DIR, run_blocking};

const DESCRIPTION: &str = "Add a document or image to the knowledge base for semantic search. Supported formats: PDF, \
DOCX, PPTX, XLSX, HTML, JPG, PNG, SVG, MD, TXT and CSV. By default the document is processed in the background and the \
call returns a task_id for knowledge-task-status; with async=false the call returns when the document is indexed. \
Identical content is stored only once. To add several files or a folder, use knowledge-import.";

/// Timeout of a synchronous call. A document may take minutes.
const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize)]
struct AddInput {
    file_path: String,
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    force_ocr: bool,
    #[serde(default)]
    follow_links: bool,
    #[serde(default = "yes", rename = "async")]
    is_async: bool,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-add")
        .title("Add a document")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "file_path": {
                    "type": "string",
                    "description": "Path to the document or image file on the server's machine",
                    "minLength": 1,
                    "maxLength": 4096,
                },
                "metadata": { "type": "object", "description": "Additional metadata (author, title, tags)" },
                "force_ocr": {
                    "type": "boolean",
                    "description": "Force OCR even if text extraction available",
                    "default": false,
                },
                "follow_links": {
                    "type": "boolean",
                    "description": "Whether to follow a symbolic link given as file_path; not allowed for remote \
                        callers",
                    "default": false,
                },
                "async": {
                    "type": "boolean",
                    "description": "Process asynchronously and return task ID",
                    "default": true,
                },
                "knowledge_base": base_schema(),
            },
            "required": ["file_path"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "task_id": { "type": "string" },
                "message": { "type": "string" },
                "estimated_time_seconds": { "type": "integer" },
                "document_id": { "type": "string" },
                "filename": { "type": "string" },
                "chunks_created": { "type": "integer" },
                "processing_method": { "type": "string" },
                "processing_time_seconds": { "type": "number" },
            },
            "required": ["success"],
        }))
        .effect(Effect::Changes)
        .timeout(TOOL_TIMEOUT)
        .task_support(TaskSupport::External)
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { run(&knowledge, &context, arguments.parse()?).await }
        })
}

async fn run(knowledge: &Knowledge, context: &Context, input: AddInput) -> Result<ToolOutcome, ToolError> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let metadata = validate_metadata(input.metadata)?;
    authorize_links(context, input.follow_links)?;
    let rules = knowledge.path_policy(caller_origin(context));
    let file_path = match &knowledge.settings().store {
        Some(_) => {
            let open = knowledge.open().await?;
            shared_store::ensure_local(&open.store, &open.storage, PathBuf::from(&input.file_path)).await?
        }
        None => PathBuf::from(&input.file_path),
    };
    // The author of a repository or an archive must not select other files of the user by a link.
    let rules = match input.follow_links {
        true => rules,
        false => {
            let path = file_path.clone();
            let named = run_blocking(move || canonical_name(&path)).await?;
            rules.within(Some(&named))
        }
    };
    // Checks the path as it was sent, so that an error message does not reveal the working directory (S-03).
    let facts = knowledge.check(rules, file_path.clone()).await?;
    // Made absolute, because the task may resume in a process with another working directory.
    let path = std::path::absolute(&file_path).unwrap_or(file_path);
    let open = knowledge.open().await?;
    let uploads = open.storage.join(UPLOAD_DIR);
    let is_upload = uploads.canonicalize().is_ok_and(|uploads| facts.path.starts_with(uploads));
    let origin = if is_upload { Origin::Uploaded } else { Origin::Added };
    // An upload is deleted with its task, so its canonical path is stored instead of a symlink to it.
    let path = if is_upload { facts.path.clone() } else { path };
    // The task may wait, and must not read another file if a link takes the place of this one. An upload has another path
    // on the instance that adopts its task; only corbie writes to its folder.
    let within = (!is_upload).then(|| facts.path.clone());
    let wish = IngestRequest { file_path: path, within, metadata, force_ocr: input.force_ocr, origin };
    let owner = context.caller().identity.clone();
    let job = open.scheduler.submit(base, owner, JobRequest::Add(wish), Some(&facts)).await?;
    if input.is_async {
        let reply = json!({
            "success": true,
            "task_id": job.id,
            "message": "Document queued for processing",
            "estimated_time_seconds": task_response::estimated_seconds(&open.scheduler, &job),
        });
        return Ok(task_response::accepted(knowledge, context, job, reply));
    }
    task_response::wait_for_result(knowledge, context, &job).await
}

fn yes() -> bool {
    true
}
