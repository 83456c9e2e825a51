//! `knowledge-import`: adds folders and glob patterns as one task (K-43).

use std::time::Duration;

use corbie_mcp::{Arguments, Context, Effect, RegistrationError, TaskSupport, Tool, ToolError, ToolOutcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    MODULE, authorize_links, authorized_base, base_schema, caller_origin, dialect, task_response, validate_metadata,
};
use crate::jobs::JobRequest;
use crate::{Error, Knowledge};

const DESCRIPTION: &str = "Import many documents into the knowledge base in one call: files, folders or glob patterns \
such as docs/**/*.pdf. All files are processed by one background task; knowledge-task-status returns its progress and \
the result of each file. Unchanged files are skipped and changed files are updated. Symbolic links that lead out of an \
imported folder are skipped and counted.";

const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize)]
struct ImportInput {
    paths: Vec<String>,
    #[serde(default = "yes")]
    recursive: bool,
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
    Tool::builder("knowledge-import")
        .title("Import documents")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "paths": {
                    "type": "array",
                    "description": "Files, folders or glob patterns on the server's machine",
                    "items": { "type": "string", "minLength": 1, "maxLength": 4096 },
                    "minItems": 1,
                    "maxItems": 1000,
                },
                "recursive": {
                    "type": "boolean",
                    "description": "Whether to include subfolders",
                    "default": true,
                },
                "metadata": { "type": "object", "description": "Additional metadata for every document" },
                "force_ocr": {
                    "type": "boolean",
                    "description": "Force OCR even if text extraction available",
                    "default": false,
                },
                "follow_links": {
                    "type": "boolean",
                    "description": "Whether to follow symbolic links in paths and links that lead out of an imported \
                        folder; not allowed for remote callers",
                    "default": false,
                },
                "async": {
                    "type": "boolean",
                    "description": "Process asynchronously and return task ID",
                    "default": true,
                },
                "knowledge_base": base_schema(),
            },
            "required": ["paths"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "task_id": { "type": "string" },
                "message": { "type": "string" },
                "estimated_time_seconds": { "type": "integer" },
                "files_total": { "type": "integer" },
                "added": { "type": "integer" },
                "updated": { "type": "integer" },
                "unchanged": { "type": "integer" },
                "failed": { "type": "integer" },
                "skipped": { "type": "integer" },
                "skipped_by_kind": { "type": "object" },
                "files": { "type": "array", "items": { "type": "object" } },
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

async fn run(knowledge: &Knowledge, context: &Context, input: ImportInput) -> Result<ToolOutcome, ToolError> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let metadata = validate_metadata(input.metadata)?;
    if knowledge.needs_roots(caller_origin(context)) {
        let message = "no folder may be imported because `knowledge.allowed_roots` is empty; add the allowed folders \
            to it";
        return Err(Error::Storage { code: "path_not_allowed", message: message.into() }.into());
    }
    authorize_links(context, input.follow_links)?;
    let ImportInput { paths, recursive, force_ocr, follow_links, is_async, .. } = input;
    let absolute = |path: String| std::path::absolute(&path).map_or(path, |path| path.to_string_lossy().into_owned());
    let paths = paths.into_iter().map(absolute).collect();
    let open = knowledge.open().await?;
    let owner = context.caller().identity.clone();
    let request = JobRequest::Import { paths, recursive, metadata, force_ocr, follow_links };
    let job = open.scheduler.submit(base, owner, request, None).await?;
    if is_async {
        let reply = json!({
            "success": true,
            "task_id": job.id,
            "message": "Documents queued for processing",
            "estimated_time_seconds": task_response::estimated_seconds(&open.scheduler, &job),
        });
        return Ok(task_response::accepted(knowledge, context, job, reply));
    }
    task_response::wait_for_result(knowledge, context, &job).await
}

fn yes() -> bool {
    true
}
