//! `knowledge-tasks`: lists tasks, active and ended.

use corbie_mcp::{Arguments, CallResult, Caller, Context, RegistrationError, Tool, ToolError, TrustLevel};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::task_status::{progress_schema, task_members};
use super::{MODULE, authorized_base, base_schema, dialect, merge_objects, whole};
use crate::document::BaseName;
use crate::jobs::Job;
use crate::store::{ACTIVE_STATES, Store, TaskListQuery};
use crate::task::{TaskOutcome, TaskRecord};
use crate::{Error, Knowledge, date};
use corbie_util::sanitize::file_name;

const DESCRIPTION: &str = "List document processing tasks, newest first: the caller's own, or those of all callers if \
the caller is trusted. Each has a status (queued, running with progress, completed, failed with the error, or \
cancelled) and can_cancel (whether this caller may cancel it with tools/cancel). A file that could not be added is listed \
once, until it is added. For the result of each file of an import, use knowledge-task-status.";

/// Values of `status`.
const STATES: [&str; 5] = ["queued", "running", "completed", "failed", "cancelled"];

/// Maximum number of listed tasks.
const MAX_TASKS: u32 = 200;

#[derive(Debug, Deserialize)]
struct TasksInput {
    #[serde(default = "fifty", deserialize_with = "whole")]
    limit: u32,
    #[serde(default)]
    active_only: bool,
    status: Option<String>,
    knowledge_base: Option<String>,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    let mut one_base = base_schema();
    one_base["description"] = "Only tasks of this knowledge base; if omitted, of all knowledge bases".into();
    if let Some(schema) = one_base.as_object_mut() {
        schema.remove("default");
    }
    Tool::builder("knowledge-tasks")
        .title("List tasks")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "limit": {
                    "type": "integer",
                    "description": "Max tasks to return",
                    "default": 50,
                    "minimum": 1,
                    "maximum": MAX_TASKS,
                },
                "active_only": {
                    "type": "boolean",
                    "description": "Only tasks that are queued or running",
                    "default": false,
                },
                "status": {
                    "type": "string",
                    "description": "Only tasks with this status; failed lists the files that could not be added",
                    "enum": STATES,
                },
                "knowledge_base": one_base,
            },
        }))
        .output_schema(json!({
            "type": "object",
            "properties": {
                "success": { "type": "boolean" },
                "tasks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": merge_objects([
                            json!({
                                "task_id": { "type": "string" },
                                "status": { "type": "string" },
                                "kind": { "type": "string", "enum": ["add", "import"] },
                                "knowledge_base": { "type": "string" },
                                "filename": { "type": ["string", "null"] },
                                "created": { "type": "string" },
                                "started": { "type": ["string", "null"] },
                                "ended": { "type": ["string", "null"] },
                                "can_cancel": { "type": "boolean" },
                            }),
                            progress_schema(),
                            json!({
                                "total_time_seconds": { "type": "number" },
                                "result": { "type": "object" },
                                "error": { "type": "string" },
                                "message": { "type": "string" },
                            }),
                        ]),
                        "required": ["task_id", "status", "kind", "knowledge_base", "filename", "created", "can_cancel"],
                    },
                },
                "count": { "type": "integer" },
            },
            "required": ["success", "tasks", "count"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move { Ok::<_, ToolError>(CallResult::json(list(&knowledge, &context, &arguments.parse()?).await?)) }
        })
}

async fn list(knowledge: &Knowledge, context: &Context, input: &TasksInput) -> Result<Value, Error> {
    let named = input.knowledge_base.as_deref().map(|name| authorized_base(context, Some(name))).transpose()?;
    let open = knowledge.open().await?;
    let bases = match named {
        Some(named) => vec![named],
        None => visible_bases(&open.store, context.caller()).await?,
    };
    // The local jobs are read before the store. They are more precise, and if a job reports an end, the store has that
    // end too.
    let jobs = open.scheduler.jobs();
    let ended: Vec<_> = jobs.values().filter_map(|job| Some((job.id, job.outcome().borrow().clone()?))).collect();
    let caller = context.caller();
    let owner = (caller.trust < TrustLevel::Trusted).then(|| caller.identity.to_string());
    let status = STATES.into_iter().find(|state| Some(*state) == input.status.as_deref());
    let states = match status {
        _ if input.active_only => ACTIVE_STATES.to_vec(),
        // A running task whose process died is stored as running and counts as queued.
        Some(state) if ACTIVE_STATES.contains(&state) => ACTIVE_STATES.to_vec(),
        state => state.into_iter().collect(),
    };
    let wanted = TaskListQuery { bases, owner, states, limit: input.limit };
    let tasks = open.store.latest_tasks(wanted).await?;
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|task| {
            let ended = ended.iter().find(|(id, _)| *id == task.id).map(|(_, outcome)| outcome.clone());
            task_json(task, jobs.get(&task.id).map(|job| &**job), ended, caller)
        })
        .filter(|task| status.is_none_or(|status| task["status"] == status))
        .collect();
    Ok(json!({ "success": true, "count": tasks.len(), "tasks": tasks }))
}

/// Bases that a caller may see.
async fn visible_bases(store: &Store, caller: &Caller) -> Result<Vec<BaseName>, Error> {
    let mut bases = store.bases().await?;
    bases.retain(|base| caller.may_access(base.as_str()));
    Ok(bases)
}

/// A task as in `knowledge-task-status`, with its subject.
fn task_json(task: &TaskRecord, job: Option<&Job>, ended: Option<TaskOutcome>, caller: &Caller) -> Value {
    let is_over = task.state.is_finished() || ended.is_some();
    let mut entry = Map::new();
    for (name, value) in task_members(task, job, ended, caller.trust) {
        // A failed task does not make the list fail.
        if name != "success" {
            entry.insert(name, value);
        }
    }
    if let Some(Value::Object(result)) = entry.get_mut("result") {
        result.remove("files");
    }
    let about = json!({
        "kind": task.kind,
        "knowledge_base": task.base,
        "filename": task.filename.as_deref().map(|name| display_name(name, caller.trust)),
        "format": task.format,
        "size_bytes": task.size_bytes,
        "created": date::to_rfc3339(task.created),
        "started": task.started.map(date::to_rfc3339),
        "ended": task.ended.map(date::to_rfc3339),
        // As in `tools/cancel`: only the owner may cancel a task.
        "can_cancel": !is_over && task.owner == *caller.identity,
    });
    Value::Object(merge_objects([Value::Object(entry), about]))
}

/// Name of an import. Only trusted callers see its folders.
fn display_name(name: &str, trust: TrustLevel) -> &str {
    if trust < TrustLevel::Trusted { file_name(name) } else { name }
}

fn fifty() -> u32 {
    50
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_for_trusted_callers() {
        assert_eq!(display_name("/srv/papers/of-2026/", TrustLevel::Verified), "of-2026");
        assert_eq!(display_name("/srv/papers/of-2026/", TrustLevel::Trusted), "/srv/papers/of-2026/");
        assert_eq!(display_name("a.pdf", TrustLevel::Untrusted), "a.pdf");
    }
}
