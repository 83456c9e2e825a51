//! Responses to calls that start a task: a task handle, or the result for synchronous calls.

use std::sync::Arc;

use corbie_mcp::{CallResult, Context, Outcome, ToolError, TrustLevel};
use serde_json::{Map, Value};

use crate::knowledge::tasks_view::hide_folders;
use crate::knowledge::work::{Job, Work};
use crate::knowledge::{Error, Knowledge, follow, task};

/// Estimated seconds until a task completes, including the tasks ahead of it. At least 1.
pub(super) fn seconds(work: &Work, job: &Job) -> u64 {
    work.estimate(job).as_secs_f64().ceil().max(1.0) as u64
}

/// Response to an asynchronous call. The caller gets progress notifications if the transport supports them.
pub(super) fn promise(knowledge: &Knowledge, context: &Context, job: Arc<Job>, reply: Value) -> Outcome {
    follow::tell(knowledge, context, job.clone());
    Outcome::Task { id: job.id.to_string().into(), otherwise: CallResult::json(reply) }
}

/// Response to a synchronous call: waits for the result.
pub(super) async fn result(knowledge: &Knowledge, context: &Context, job: &Job) -> Result<Outcome, ToolError> {
    let mut members = Map::new();
    members.insert("success".into(), true.into());
    members.extend(wait(knowledge, context, job).await?);
    if context.caller().trust < TrustLevel::Trusted {
        hide_folders(&mut members);
    }
    Ok(Outcome::Done(CallResult::json(Value::Object(members))))
}

/// Waits for a task. If the caller disconnects, the task is cancelled.
async fn wait(knowledge: &Knowledge, context: &Context, job: &Job) -> Result<Map<String, Value>, Error> {
    let gone = CancelOnDrop { knowledge: knowledge.clone(), id: Some(job.id) };
    let outcome = follow::wait(context, job).await;
    gone.defuse();
    if let task::Outcome::Completed(_) = outcome {
        knowledge.documents_changed();
    }
    match outcome {
        task::Outcome::Completed(Value::Object(result)) => Ok(result),
        task::Outcome::Completed(_) => Ok(Map::new()),
        task::Outcome::Failed { code, message } => Err(Error::Document { code, message }),
        task::Outcome::Cancelled => Err(Error::Cancelled),
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
            let going = knowledge.going().clone();
            going.spawn(async move { drop(knowledge.cancel(id).await) });
        }
    }
}
