//! The answers to calls that have begun a task: a promise, or the result for those who wait.

use std::sync::Arc;

use corbie_mcp::{CallResult, Context, Outcome, ToolError, TrustLevel};
use serde_json::{Map, Value};

use crate::knowledge::tasks_view::hide_folders;
use crate::knowledge::work::{Job, Work};
use crate::knowledge::{Error, Knowledge, follow, task};

/// How long a task may take with what waits before it, in whole seconds and never none.
pub(super) fn seconds(work: &Work, job: &Job) -> u64 {
    work.estimate(job).as_secs_f64().ceil().max(1.0) as u64
}

/// The work goes on; its caller is told how far it is where there is a way to.
pub(super) fn promise(knowledge: &Knowledge, context: &Context, job: Arc<Job>, reply: Value) -> Outcome {
    follow::tell(knowledge, context, job.clone());
    Outcome::Task { id: job.id.to_string().into(), otherwise: CallResult::json(reply) }
}

/// What came of it, once it is done.
pub(super) async fn result(knowledge: &Knowledge, context: &Context, job: &Job) -> Result<Outcome, ToolError> {
    let mut members = Map::new();
    members.insert("success".into(), true.into());
    members.extend(wait(knowledge, context, job).await?);
    if context.caller().trust < TrustLevel::Trusted {
        hide_folders(&mut members);
    }
    Ok(Outcome::Done(CallResult::json(Value::Object(members))))
}

/// Waits for a task whose caller waits too; one who goes away takes the task along.
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
    /// Nobody has gone away.
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
