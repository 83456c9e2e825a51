//! `tasks/get`, `tasks/update`, `tasks/cancel` (extension) and `tools/cancel`.

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::ClientFeature;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::message::Params;
use crate::reply::{MethodReply, ReplyBody};
use crate::server::Server;
use crate::tasks::{Task, TaskState};
use crate::trust::Caller;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams {
    task_id: String,
    #[serde(default)]
    input_responses: Map<String, Value>,
}

pub(crate) async fn get(call: MethodCall) -> Result<MethodReply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let TaskParams { task_id } = call.params.parse()?;
    let task = find(&call.server, &task_id, &call.transport.caller).await?;
    Ok(ReplyBody::Members(task.detailed()).into())
}

pub(crate) async fn update(call: MethodCall) -> Result<MethodReply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let UpdateParams { task_id, input_responses } = call.params.parse()?;
    find(&call.server, &task_id, &call.transport.caller).await?;
    let running = call.server.running_tasks().get(task_id.as_str()).cloned();
    if let Some(running) = running {
        running.deliver_answers(input_responses).await;
    }
    Ok(MethodReply::default())
}

/// Cancels a task; a finished one is left unchanged.
pub(crate) async fn cancel(call: MethodCall) -> Result<MethodReply, Error> {
    call.client.require(ClientFeature::Tasks)?;
    let TaskParams { task_id } = call.params.parse()?;
    find(&call.server, &task_id, &call.transport.caller).await?;
    cancel_task(&call.server, &task_id).await?;
    Ok(MethodReply::default())
}

/// `tools/cancel` as a request, with the result in the reply.
pub(crate) async fn cancel_tool(call: MethodCall) -> Result<MethodReply, Error> {
    let TaskParams { task_id } = call.params.parse()?;
    let ended = |task: &Task| {
        let word = task.state.as_str();
        Err(Error::invalid_params(format!("task `{task_id}` is already finished ({word}) and cannot be cancelled")))
    };
    let task = find(&call.server, &task_id, &call.transport.caller).await?;
    if task.state.is_final() {
        return ended(&task);
    }
    // It may have ended between the two reads.
    match cancel_task(&call.server, &task_id).await? {
        Some(task) if task.state.is_final() && !matches!(task.state, TaskState::Cancelled) => return ended(&task),
        _ => {}
    }
    Ok(MethodReply::new(json!({ "success": true, "taskId": task_id, "status": "cancelled" })))
}

/// `tools/cancel` as a notification, without a reply.
pub(crate) fn cancel_tool_notification(server: &Server, params: &Params, caller: &Caller) {
    let Ok(TaskParams { task_id }) = params.parse() else { return };
    let (owner, caller) = (server.clone(), caller.clone());
    let mut stopping = Box::pin(async move {
        let is_own = |task: &Task| task.owner == caller.identity;
        match owner.set_task_state_if(&task_id, is_own, TaskState::Cancelled).await {
            Ok(Some(_)) => interrupt_running(&owner, &task_id),
            Ok(None) => {}
            Err(error) => tracing::error!(task = task_id, %error, "cannot cancel task"),
        }
    });
    // Take the task's lock now, so that the next request on the same connection sees `cancelled`.
    if (&mut stopping).now_or_never().is_none() {
        server.spawn(stopping);
    }
}

/// Cancels a task and returns its resulting state. The store stops a task that does not run in this process.
async fn cancel_task(server: &Server, id: &str) -> Result<Option<Task>, Error> {
    // Set the state first, so that the next request sees `cancelled` however long the work takes to stop.
    let stopped = server.set_task_state(id, TaskState::Cancelled).await;
    interrupt_running(server, id);
    stopped
}

fn interrupt_running(server: &Server, id: &str) {
    let running = server.running_tasks().get(id).cloned();
    if let Some(running) = running {
        running.cancel.cancel();
    }
}

/// A task of another caller is reported as not found.
pub(super) async fn find(server: &Server, id: &str, caller: &Caller) -> Result<Task, Error> {
    server
        .task(id)
        .await?
        .filter(|task| task.owner == caller.identity)
        .ok_or_else(|| Error::TaskNotFound { id: crate::dispatch::truncate_owned(id) })
}
