//! `tasks/get`, `tasks/update`, `tasks/cancel` (extension) and `tools/cancel`, over one registry of tasks.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::ClientFeature;
use crate::dispatch::Call;
use crate::error::Error;
use crate::message::Params;
use crate::reply::{Body, Reply};
use crate::server::Server;
use crate::tasks::{Task, TaskState};
use crate::trust::Caller;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update {
    task_id: String,
    #[serde(default)]
    input_responses: Map<String, Value>,
}

pub(crate) fn get(call: &Call) -> Result<Reply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let Named { task_id } = call.params.parse()?;
    let task = find(&call.server, &task_id, &call.exchange.caller)?;
    Ok(Body::Members(task.detailed()).into())
}

pub(crate) fn update(call: &Call) -> Result<Reply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let Update { task_id, input_responses } = call.params.parse()?;
    find(&call.server, &task_id, &call.exchange.caller)?;
    let running = call.server.running_tasks().get(task_id.as_str()).cloned();
    if let Some(running) = running {
        running.answer(input_responses);
    }
    Ok(Reply::default())
}

/// Asks a task to stop; one that has ended already is left as it is.
pub(crate) fn cancel(call: &Call) -> Result<Reply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let Named { task_id } = call.params.parse()?;
    find(&call.server, &task_id, &call.exchange.caller)?;
    stop(&call.server, &task_id)?;
    Ok(Reply::default())
}

/// `tools/cancel` as a request: says what became of it.
pub(crate) fn cancel_tool(call: &Call) -> Result<Reply, Error> {
    let Named { task_id } = call.params.parse()?;
    let ended = |task: &Task| {
        let word = task.state.word();
        Err(Error::invalid_params(format!("task `{task_id}` has ended ({word}) and cannot be cancelled")))
    };
    let task = find(&call.server, &task_id, &call.exchange.caller)?;
    if task.state.is_final() {
        return ended(&task);
    }
    // It may have ended between the two looks at it.
    match stop(&call.server, &task_id)? {
        Some(task) if task.state.is_final() && !matches!(task.state, TaskState::Cancelled) => return ended(&task),
        _ => {}
    }
    Ok(Reply::new(json!({ "success": true, "taskId": task_id, "status": "cancelled" })))
}

/// `tools/cancel` as a notification: never answered.
pub(crate) fn cancel_tool_silently(server: &Server, params: &Params, caller: &Caller) {
    if let Ok(Named { task_id }) = params.parse()
        && find(server, &task_id, caller).is_ok()
        && let Err(error) = stop(server, &task_id)
    {
        tracing::error!(task = task_id, %error, "task could not be cancelled");
    }
}

/// Gives the task as it is afterwards. A task that is no work of this process is stopped by its store.
fn stop(server: &Server, id: &str) -> Result<Option<Task>, Error> {
    // The state first: whoever asks next is told `cancelled`, however long the work takes to notice.
    let stopped = server.move_task(id, TaskState::Cancelled);
    let running = server.running_tasks().get(id).cloned();
    if let Some(running) = running {
        running.cancel.cancel();
    }
    stopped
}

/// A task of another caller does not exist.
pub(super) fn find(server: &Server, id: &str, caller: &Caller) -> Result<Task, Error> {
    server
        .task_store()
        .get(id)?
        .filter(|task| task.owner == caller.identity)
        .ok_or_else(|| Error::TaskNotFound { id: crate::dispatch::clip(id) })
}
