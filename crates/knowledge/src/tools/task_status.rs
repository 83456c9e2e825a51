//! `knowledge-task-status`: progress and result of a task (K-110 to K-115).

use corbie_mcp::{Arguments, CallResult, Caller, Context, RegistrationError, Tool, ToolError, TrustLevel};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{MODULE, dialect, merge_objects};
use crate::jobs::Job;
use crate::mcp_tasks::hide_folders;
use crate::task::{TaskId, TaskOutcome, TaskRecord, TaskState};
use crate::{Error, Knowledge, date, progress};

const DESCRIPTION: &str = "Get status of an async processing task started by knowledge-add or knowledge-import: \
queued, running with progress, completed with the result, failed with the error, or cancelled. Callers see their own \
tasks; trusted callers see all. Finished tasks are kept for at least one hour.";

/// Step of a task that no process runs.
const INTERRUPTED_STEP: &str = "Interrupted; resumes when a server starts";

#[derive(Debug, Deserialize)]
struct TaskStatusInput {
    task_id: String,
}

pub(super) fn tool(knowledge: Knowledge) -> Result<Tool, RegistrationError> {
    Tool::builder("knowledge-task-status")
        .title("Task status")
        .description(DESCRIPTION)
        .module(MODULE)
        .input_schema(json!({
            "type": "object",
            "properties": {
                "task_id": {
                    "type": "string",
                    "description": "Task ID returned from async operation",
                    "minLength": 1,
                    "maxLength": 200,
                },
            },
            "required": ["task_id"],
        }))
        .output_schema(json!({
            "type": "object",
            "properties": merge_objects([
                json!({
                    "success": { "type": "boolean" },
                    "task_id": { "type": "string" },
                    "status": { "type": "string" },
                }),
                progress_schema(),
                json!({
                    "result": { "type": "object" },
                    "total_time_seconds": { "type": "number" },
                }),
            ]),
            "required": ["success", "task_id", "status"],
        }))
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let knowledge = knowledge.clone();
            async move {
                let TaskStatusInput { task_id } = arguments.parse()?;
                let status = status(&knowledge, &context, &task_id).await?;
                let failed = status.get("success") == Some(&Value::Bool(false));
                Ok::<_, ToolError>(CallResult { is_error: failed, ..CallResult::json(Value::Object(status)) })
            }
        })
}

/// Schemas of the progress members.
pub(super) fn progress_schema() -> Value {
    json!({
        "progress": { "type": "number", "minimum": 0, "maximum": 1 },
        "current_step": { "type": "string" },
        "completed_steps": { "type": "integer" },
        "total_steps": { "type": "integer" },
        "elapsed_time_seconds": { "type": "number" },
        "estimated_remaining_seconds": { "type": "number" },
    })
}

async fn status(knowledge: &Knowledge, context: &Context, id: &str) -> Result<Map<String, Value>, Error> {
    let id: TaskId = id.parse().map_err(|_| {
        Error::invalid(
            "task_id",
            "`task_id` is not a UUID; use the task_id returned by \
            knowledge-add or knowledge-import",
        )
    })?;
    let open = knowledge.open().await?;
    // The local job is read before the store. It is more precise, and if it reports an end, the store has that end too.
    let job = open.scheduler.job(id);
    let ended = job.as_ref().and_then(|job| job.outcome().borrow().clone());
    let task = open
        .store
        .task(id)
        .await?
        .filter(|task| is_shown(task, context.caller()))
        .ok_or_else(|| Error::TaskNotFound(id.to_string()))?;
    Ok(task_members(&task, job.as_deref(), ended, context.caller().trust))
}

/// Whether a caller may see a task: its own tasks, or all tasks if it is trusted; in both cases only of bases that it
/// may see.
fn is_shown(task: &TaskRecord, caller: &Caller) -> bool {
    let is_own = task.owner == *caller.identity;
    (is_own || caller.trust >= TrustLevel::Trusted) && caller.may_access(task.base.as_str())
}

/// A task as returned to callers. Only trusted callers see the folders of its files.
pub(super) fn task_members(
    task: &TaskRecord,
    job: Option<&Job>,
    ended: Option<TaskOutcome>,
    trust: TrustLevel,
) -> Map<String, Value> {
    let mut members = all_members(task, job, ended);
    if trust < TrustLevel::Trusted {
        hide_folders(&mut members);
    }
    members
}

fn all_members(task: &TaskRecord, job: Option<&Job>, ended: Option<TaskOutcome>) -> Map<String, Value> {
    let state = match ended {
        Some(TaskOutcome::Completed(result)) => TaskState::Completed(result),
        Some(TaskOutcome::Failed { code, message }) => TaskState::Failed { code, message },
        Some(TaskOutcome::Cancelled) => TaskState::Cancelled,
        None => task.state.clone(),
    };
    let now = date::now();
    let between = |from: Option<i64>, to: i64| progress::round_to_millis((to - from.unwrap_or(to)) as f64 / 1000.0);
    // A task that was never started has no duration, regardless of its waiting time.
    let took = between(task.started, task.ended.unwrap_or(now));
    let first = json!({
        "success": !matches!(state, TaskState::Failed { .. }),
        "task_id": task.id,
        "status": state.name(),
    });
    let more = match state {
        TaskState::Queued => json!({
            "progress": 0.0,
            "current_step": match job {
                Some(job) => job.progress().borrow().step.clone(),
                None if task.interrupted => INTERRUPTED_STEP.to_owned(),
                None => "Waiting".to_owned(),
            },
            "completed_steps": 0,
            "total_steps": 1,
            "elapsed_time_seconds": 0.0,
            "estimated_remaining_seconds": job.map_or(0.0, |job| progress::round_to_millis(job.estimate().as_secs_f64())),
        }),
        TaskState::Running(noted) => match job.and_then(|job| Some((job, job.started_at()?))) {
            Some((job, began)) => {
                let far = job.progress().borrow().clone();
                json!({
                    "progress": progress::round_to_millis(far.fraction),
                    "current_step": far.step,
                    "completed_steps": far.completed,
                    "total_steps": far.total,
                    "elapsed_time_seconds": progress::elapsed_seconds(began),
                    "estimated_remaining_seconds": progress::round_to_millis(far.remaining(began.elapsed(), job.estimate()).as_secs_f64()),
                })
            }
            // Another process runs it and stores its progress periodically.
            None => {
                let share = f64::from(noted.permille) / 1000.0;
                let rest = if noted.permille == 0 { 0.0 } else { took * (1.0 - share) / share };
                json!({
                    "progress": share,
                    "current_step": if noted.step.is_empty() { "Processing".into() } else { noted.step },
                    "completed_steps": noted.done,
                    "total_steps": noted.total.max(noted.done).max(1),
                    "elapsed_time_seconds": took,
                    "estimated_remaining_seconds": progress::round_to_millis(rest),
                })
            }
        },
        TaskState::Completed(result) => {
            json!({ "progress": 1.0, "result": result, "total_time_seconds": took })
        }
        TaskState::Failed { code, message } => {
            json!({ "error": code, "message": message, "elapsed_time_seconds": took })
        }
        TaskState::Cancelled => json!({ "message": "The task was cancelled", "elapsed_time_seconds": took }),
    };
    merge_objects([first, more])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::BaseName;
    use crate::task::TaskKind;

    #[test]
    fn k114_a_task_that_nobody_has_is_said_to_go_on_later() {
        let task = TaskRecord {
            id: TaskId::random(),
            base: BaseName::default(),
            owner: "ada".into(),
            kind: TaskKind::Add,
            request: json!({}),
            document: None,
            filename: None,
            format: None,
            size_bytes: None,
            state: TaskState::Queued,
            created: 0,
            started: Some(1),
            ended: None,
            updated: 1,
            attempts: 1,
            runner: None,
            interrupted: true,
        };
        let told = all_members(&task, None, None);
        assert_eq!((&told["status"], &told["current_step"]), (&json!("queued"), &json!(INTERRUPTED_STEP)));
        let waits = all_members(&TaskRecord { interrupted: false, ..task }, None, None);
        assert_eq!(waits["current_step"], "Waiting");
    }
}
