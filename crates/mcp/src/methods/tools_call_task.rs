//! Tool calls that return a task handle and continue in the background.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::BoxFuture;
use tracing::{Instrument, Span};

use super::call_metrics::CallMetrics;
use super::multi_round_trip::{RoundTrip, RoundTripOutcome};
use super::tools_call::finish;
use crate::client_requests::ClientChannel;
use crate::context::Context;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::message::Params;
use crate::outcome::ToolOutcome;
use crate::reply::{MethodReply, ReplyBody, ResultType};
use crate::server::random_id;
use crate::tasks::{RunningTask, Task, TaskState};
use crate::tool::Tool;
use crate::trace;

/// Stores a task, replies with its handle, and continues the work in the background.
pub(crate) async fn start(
    call: &MethodCall,
    tool: Arc<Tool>,
    sent: &str,
    work: impl FnOnce(Context) -> BoxFuture<'static, ToolOutcome> + Send,
) -> Result<MethodReply, Error> {
    let server = call.server.clone();
    let (id, now, ttl): (Arc<str>, _, _) = (random_id().into(), SystemTime::now(), server.limits().task_ttl);
    let owner = call.transport.caller.identity.clone();
    let task = Task { id: id.clone(), owner, state: TaskState::Working, created: now, updated: now, ttl };
    // Store the task durably before returning its handle.
    server.task_store().put(&task).await?;
    let running = Arc::new(RunningTask::new(id.clone(), server.clone()));
    server.running_tasks().insert(id.clone(), running.clone());

    let asking = ClientChannel::Task(running.clone());
    let detached = detach(call, &running);
    let context = detached.context(asking.clone());
    let (work, sent) = (work(context.clone()), sent.to_owned());
    let trace = call.transport.request_trace.trace.clone();
    let going_on = async move {
        let measure = CallMetrics::begin(&server, &tool, &sent, &detached.transport, &detached.meta);
        // A task may run for its TTL; the tool timeout applies to callers that wait.
        let ended = match RoundTrip::detached(asking).run(&context, tool.name(), Some(ttl), work).await {
            Ok(RoundTripOutcome::Finished(outcome)) => Ok(outcome),
            // A task sends requests through its state and never stops for rounds.
            Ok(RoundTripOutcome::InputRequired(_)) => Err(Error::Cancelled),
            Err(error) => Err(error),
        };
        let era = detached.version.era();
        // A dialect is program code; if it panics, the task still ends.
        let finished = catch_unwind(AssertUnwindSafe(|| finish(&tool, &detached, &measure, ended)));
        let finished = finished.unwrap_or_else(|_| {
            Err(Error::internal("the task failed unexpectedly", format!("rendering `{}` panicked", tool.name())))
        });
        let state = match finished {
            Ok(reply) => TaskState::Completed(reply.to_value(era, &server)),
            Err(Error::Cancelled) => TaskState::Cancelled,
            Err(error) => TaskState::Failed(error.to_object(era)),
        };
        server.update_task(&id, state).await;
        server.running_tasks().remove(&id);
    };
    call.server.spawn(trace::scope(trace, going_on).instrument(Span::current()));
    Ok(MethodReply::from(ReplyBody::Members(task.handle())).with_kind(ResultType::Task))
}

/// The call without its request. Progress still goes to the sender while the connection is open; an HTTP stream
/// ends with the handle, and later messages are dropped.
fn detach(call: &MethodCall, running: &RunningTask) -> MethodCall {
    let mut exchange = call.transport.clone();
    exchange.cancel = running.cancel.clone();
    MethodCall {
        server: call.server.clone(),
        id: call.id.clone(),
        params: Params::default(),
        transport: exchange,
        version: call.version,
        client: call.client.clone(),
        log_level: None,
        meta: call.meta.clone(),
    }
}
