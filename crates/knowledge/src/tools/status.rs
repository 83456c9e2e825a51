//! `knowledge-status`: statistics and health (K-100 to K-105).

use corbie_mcp::{Arguments, CallResult, Context, RegistrationError, Tool, ToolError, TrustLevel};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MODULE, authorized_base, base_schema, dialect};
use crate::document::{BaseName, Totals};
use crate::health::Health;
use crate::task::UnfinishedTasks;
use crate::{Error, Knowledge, date};
use corbie_util::sanitize::{file_name, without_folders};

const DESCRIPTION: &str = "Get knowledge base statistics and health status: number of documents and chunks, size, \
storage location, embedding model, and any problems with how to fix them.";

#[derive(Debug, Deserialize)]
struct StatusInput {
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-status")
        .title("Knowledge base status")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({ "type": "object", "properties": { "knowledge_base": base_schema() } }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "knowledge_base": { "type": "object" },
                "health": { "type": "object" },
                "configuration": { "type": "object" },
                "last_updated": { "type": ["string", "null"] },
                "knowledge_bases": { "type": "array", "items": { "type": "string" } },
                "tasks": { "type": "object" },
            },
            "required": ["success", "knowledge_base", "health", "configuration", "last_updated"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(status(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

/// Returns as much as possible, even if the store cannot be read.
async fn status(knowledge: &Knowledge, context: &Context, input: &StatusInput) -> Result<Value, Error> {
    let base = authorized_base(context, input.knowledge_base.as_deref())?;
    let health = knowledge.health(&base).await;
    let (totals, bases, unfinished) = match knowledge.open().await {
        Ok(open) => (
            open.store.totals(&base).await.unwrap_or_default(),
            open.store.bases().await.unwrap_or_default(),
            open.store.unfinished_tasks().await.unwrap_or_default(),
        ),
        Err(_) => (Totals::default(), Vec::new(), UnfinishedTasks::default()),
    };
    let settings = knowledge.settings();
    let is_trusted = context.caller().trust >= TrustLevel::Trusted;
    let mut bases: Vec<BaseName> = bases;
    bases.retain(|base| context.caller().may_access(base.as_str()));
    bases.sort();
    Ok(json!({
        "success": true,
        "knowledge_base": base_json(knowledge, &base, &totals, is_trusted),
        "health": health_json(&health, is_trusted),
        "configuration": {
            "embedding_model": health.model,
            "chunk_size": settings.chunk_size,
            "chunk_overlap": settings.chunk_overlap,
            "max_file_size_mb": settings.max_file_size_mb,
            "max_concurrent_tasks": settings.max_concurrent_tasks,
        },
        "last_updated": totals.last_updated.map(date::to_rfc3339),
        "knowledge_bases": bases,
        "tasks": { "running": unfinished.running, "queued": unfinished.queued },
    }))
}

/// Only trusted callers see paths of this machine and the database address.
fn base_json(knowledge: &Knowledge, base: &BaseName, totals: &Totals, is_trusted: bool) -> Value {
    let average = match totals.documents {
        0 => 0.0,
        documents => totals.chunks as f64 / documents as f64,
    };
    let place = |place: String| if is_trusted { place } else { file_name(&place).to_owned() };
    let storage = knowledge.settings().storage_dir().map(|storage| place(storage.display().to_string()));
    let index = knowledge.settings().index_location().map(place);
    json!({
        "name": base,
        "document_count": totals.documents,
        "total_chunks": totals.chunks,
        "total_size_bytes": totals.size_bytes,
        "total_size_mb": round_to_tenths(totals.size_bytes as f64 / f64::from(1 << 20)),
        "average_chunks_per_document": round_to_tenths(average),
        "storage_path": storage,
        "vector_db_path": index,
    })
}

fn health_json(health: &Health, is_trusted: bool) -> Value {
    let mut shown = json!({
        "status": if health.issues.is_empty() { "healthy" } else { "degraded" },
        "vector_db_connected": health.connected,
        "storage_accessible": health.accessible,
        "embedding_model_loaded": health.model_loaded,
    });
    if !health.issues.is_empty() {
        let issues = health.issues.iter();
        shown["issues"] = match is_trusted {
            true => issues.cloned().collect(),
            false => issues.map(|issue| without_folders(issue)).collect(),
        };
    }
    shown
}

fn round_to_tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}
