//! Responses to calls that start a task: a task handle, or the result for synchronous calls.

use std::sync::Arc;

use corbie_mcp::{CallResult, Context, ToolError, ToolOutcome, TrustLevel};
use serde_json::{Map, Value};

use crate::ingest::documents_of;
use crate::jobs::{Job, JobScheduler};
use crate::mcp_tasks::hide_folders;
use crate::{Error, Knowledge, notifications, task};

/// Estimated seconds until a task completes, including the tasks ahead of it. At least 1.
pub(super) fn estimated_seconds(work: &JobScheduler, job: &Job) -> u64 {
    work.time_to_completion(job).as_secs_f64().ceil().max(1.0) as u64
}

/// Response to an asynchronous call. The caller gets progress notifications if the transport supports them.
pub(super) fn accepted(knowledge: &Knowledge, context: &Context, job: Arc<Job>, reply: Value) -> ToolOutcome {
    notifications::notify_in_background(knowledge, context, job.clone());
    ToolOutcome::Task { id: job.id.to_string().into(), otherwise: CallResult::json(reply) }
}

/// Response to a synchronous call: waits for the result.
pub(super) async fn wait_for_result(
    knowledge: &Knowledge,
    context: &Context,
    job: &Job,
) -> Result<ToolOutcome, ToolError> {
    let mut members = Map::new();
    members.insert("success".into(), true.into());
    members.extend(wait(knowledge, context, job).await?);
    if context.caller().trust < TrustLevel::Trusted {
        hide_folders(&mut members);
    }
    Ok(ToolOutcome::Done(CallResult::json(Value::Object(members))))
}

/// Waits for a task. If the caller disconnects, the task is cancelled.
async fn wait(knowledge: &Knowledge, context: &Context, job: &Job) -> Result<Map<String, Value>, Error> {
    let gone = CancelOnDrop { knowledge: knowledge.clone(), id: Some(job.id) };
    let outcome = notifications::wait_reporting_progress(context, job).await;
    gone.defuse();
    if let task::TaskOutcome::Completed(result) = &outcome {
        knowledge.notify_documents_changed(documents_of(result));
    }
    match outcome {
        task::TaskOutcome::Completed(Value::Object(result)) => Ok(result),
        task::TaskOutcome::Completed(_) => Ok(Map::new()),
        task::TaskOutcome::Failed { code, message } => Err(Error::Document { code, message }),
        task::TaskOutcome::Cancelled => Err(Error::Cancelled),
    }
}

struct CancelOnDrop {
    knowledge: Knowledge,
    id: Option<task::TaskId>,
}

impl CancelOnDrop {
    /// Prevents the cancellation.
    fn defuse(mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let knowledge = self.knowledge.clone();
            let going = knowledge.background_tasks().clone();
            going.spawn(async move { drop(knowledge.cancel(id).await) });
        }
    }
}
