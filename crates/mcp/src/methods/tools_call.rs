//! `tools/call`: find, check, gate, run, render, count (M-80). The only place a tool's handler is run.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::rounds::{Brought, Round, Stopped};
use crate::ask::Asking;
use crate::audit::AuditOutcome;
use crate::client::ClientFeature;
use crate::context::Context;
use crate::dispatch::{Call, Reply, ResultType};
use crate::error::Error;
use crate::message;
use crate::outcome::{CallResult, Cause, Failure, Outcome, Style, ToolError};
use crate::server::{Server, random_id};
use crate::session::Outlet;
use crate::tasks::{RunningTask, Task, TaskState};
use crate::tool::{Arguments, TaskSupport, Tool};
use crate::trust::{self, Caller};
use crate::version::{Era, Version};

#[derive(Deserialize)]
struct Params<'a> {
    name: String,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "inputResponses", default)]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", default)]
    state: Option<String>,
}

pub(crate) async fn call(call: Call) -> Result<Reply, Error> {
    let started = Instant::now();
    let Params { name, arguments, responses, state } = call.params.parse()?;
    let tool = call.server.registry().find(&name)?.clone();
    let sent = arguments.map_or("{}", RawValue::get);
    let measure = Measure { server: &call.server, tool: &tool, sent, caller: &call.exchange.caller, started };
    let arguments = read_arguments(&tool, sent)?;

    if let Err(violations) = tool.input_schema().check(&arguments) {
        let cause = Cause::Library(Error::Schema { tool: tool.name().to_owned(), violations });
        return measure.failed(&cause, render(&tool, &cause, &call));
    }
    if let Err(denied) = trust::gate(tool.name(), tool.meta().effect, &call.exchange.caller) {
        tool.stats().failed(started.elapsed(), denied.error_type());
        measure.audit(AuditOutcome::Blocked);
        tracing::warn!(tool = tool.name(), trust = %call.exchange.caller.trust, "refused: not enough trust");
        return Err(denied);
    }
    if tool.meta().deprecated_in.is_some() {
        tracing::warn!(tool = tool.name(), "deprecated tool called");
    }

    let as_task = match (tool.meta().tasks, call.version.era()) {
        (TaskSupport::Never, _) | (_, Era::Legacy) => false,
        (TaskSupport::Optional, Era::Modern) => call.client.supports(ClientFeature::Tasks),
        (TaskSupport::Always | TaskSupport::Handoff, Era::Modern) => {
            call.client.require(ClientFeature::Tasks)?;
            tool.meta().tasks == TaskSupport::Always
        }
    };
    if as_task {
        let arguments = Arguments::new(arguments);
        let run = tool.run.clone();
        return start_task(&call, tool.clone(), sent.to_owned(), move |context| run(context, arguments));
    }

    let brought = Brought { responses, state };
    let round = Round::begin(&call, "tools/call", tool.name(), &arguments, brought)?;
    let context = call.context(round.asking.clone());
    let limit = Some(time_limit(&call.server, &tool));
    let arguments = Arguments::new(arguments);
    let work = (tool.run)(context.clone(), arguments.clone());
    match round.run(&context, tool.name(), limit, work).await {
        Ok(Stopped::Asks(open)) => Ok(round.ask(&call, "tools/call", tool.name(), arguments.value(), open)),
        Ok(Stopped::Finished(Outcome::Background(work))) if call.version.era() == Era::Modern => {
            start_task(&call, tool.clone(), sent.to_owned(), work)
        }
        // A client without tasks waits for the whole.
        Ok(Stopped::Finished(Outcome::Background(work))) => {
            match round.run(&context, tool.name(), limit, work(context.clone())).await {
                Ok(Stopped::Finished(outcome)) => measure.ended(&tool, &call, outcome),
                Ok(Stopped::Asks(_)) => {
                    Err(Error::internal("the call could not go on", "a handed-over tool asked in rounds"))
                }
                Err(error) => measure.broken(&tool, &call, error),
            }
        }
        Ok(Stopped::Finished(outcome)) => measure.ended(&tool, &call, outcome),
        Err(error) => measure.broken(&tool, &call, error),
    }
}

/// Counts and logs one call when its end is known.
struct Measure<'a> {
    server: &'a Server,
    tool: &'a Tool,
    sent: &'a str,
    caller: &'a Caller,
    started: Instant,
}

impl Measure<'_> {
    fn ended(&self, tool: &Tool, call: &Call, outcome: Outcome) -> Result<Reply, Error> {
        match outcome {
            Outcome::Done(result) => {
                if result.is_error {
                    self.tool.stats().failed(self.started.elapsed(), "tool");
                    self.audit(AuditOutcome::Error);
                } else {
                    self.tool.stats().succeeded(self.started.elapsed());
                    self.audit(AuditOutcome::Success);
                }
                Ok(reply(tool, result, call.version))
            }
            Outcome::Failed(error) => {
                let cause = cause(tool, error);
                match cause {
                    Ok(cause) => self.failed(&cause, render(tool, &cause, call)),
                    Err(error) => {
                        self.tool.stats().failed(self.started.elapsed(), error.error_type());
                        self.audit(AuditOutcome::Error);
                        Err(error)
                    }
                }
            }
            Outcome::Background(_) => {
                Err(Error::internal("the call could not go on", "a background task handed over once more"))
            }
        }
    }

    /// The library stopped the handler: time, panic, cancellation.
    fn broken(&self, tool: &Tool, call: &Call, error: Error) -> Result<Reply, Error> {
        if let Error::Internal { inward, .. } = &error {
            tracing::error!(tool = tool.name(), %inward, "tool failed");
        }
        if matches!(error, Error::Cancelled) {
            self.tool.stats().failed(self.started.elapsed(), error.error_type());
            self.audit(AuditOutcome::Error);
            return Err(error);
        }
        let cause = Cause::Library(error);
        self.failed(&cause, render(tool, &cause, call))
    }

    fn failed(&self, cause: &Cause, rendered: Result<Reply, Error>) -> Result<Reply, Error> {
        let kind = match cause {
            Cause::Library(error) => error.error_type(),
            Cause::Tool { kind, .. } => kind,
        };
        self.tool.stats().failed(self.started.elapsed(), kind);
        self.audit(AuditOutcome::Error);
        rendered
    }

    fn audit(&self, outcome: AuditOutcome) {
        let audit = &self.server.inner().audit;
        audit.record(self.tool.name(), self.sent, self.caller, outcome, self.started.elapsed());
    }
}

/// Reads the arguments; absent and `null` are `{}` (T-22), and a `null` that stands for "not given" is left out.
fn read_arguments(tool: &Tool, sent: &str) -> Result<Value, Error> {
    let mut arguments: Value = serde_json::from_str(sent)
        .map_err(|error| Error::Validation(format!("`arguments` cannot be read: {error}")))?;
    match &mut arguments {
        Value::Null => Ok(json!({})),
        Value::Object(members) => {
            members.retain(|name, value| !value.is_null() || !tool.input_schema().null_means_absent(name));
            Ok(arguments)
        }
        _ => Err(Error::Validation("`arguments` must be an object".into())),
    }
}

fn time_limit(server: &Server, tool: &Tool) -> Duration {
    let limits = server.limits();
    // An environment variable cannot hold a `-`, so both separators name the same tool here too.
    let same = |name: &str| name.replace('-', "_").eq_ignore_ascii_case(&tool.name().replace('-', "_"));
    let configured = limits.tool_timeouts.iter().find(|(name, _)| same(name)).map(|(_, limit)| *limit);
    configured.or(tool.meta().timeout).unwrap_or(limits.tool_timeout)
}

/// A handler's failure: the tool's own, or an error of the protocol that is not for the dialect to render.
fn cause(tool: &Tool, error: ToolError) -> Result<Cause, Error> {
    match error {
        ToolError::Domain { kind, message, details } => Ok(Cause::Tool { kind, message, details }),
        ToolError::Protocol(Error::Serialization { reason, .. }) => {
            Ok(Cause::Library(Error::Serialization { tool: tool.name().to_owned(), reason }))
        }
        ToolError::Protocol(error) => Err(error),
    }
}

fn render(tool: &Tool, cause: &Cause, call: &Call) -> Result<Reply, Error> {
    render_for(tool, cause, call.exchange.style).map(|result| reply(tool, result, call.version))
}

fn render_for(tool: &Tool, cause: &Cause, style: Style) -> Result<CallResult, Error> {
    (tool.dialect())(&Failure { tool: tool.name(), cause }, style)
}

fn reply(tool: &Tool, mut result: CallResult, version: Version) -> Reply {
    if let Some(since) = &tool.meta().deprecated_in {
        let note = format!("`{}` is deprecated since {since} and may go away", tool.name());
        result.meta.get_or_insert_default().insert("deprecated".into(), json!({ "since": since, "message": note }));
    }
    // `structuredContent` came with 2025-06-18, and had to be an object until 2026-07-28.
    let keeps = match &result.structured {
        Some(Value::Object(_)) => version >= Version::V2025_06_18,
        _ => version.era() == Era::Modern,
    };
    // A failure does not fit the schema of the tool's success, and clients that check would refuse the whole reply.
    let misfit = result.is_error && tool.output_schema().is_some();
    if !keeps || misfit {
        result.structured = None;
    }
    Reply::new(json!(result))
}

/// Keeps a task, answers with its handle, and lets the work go on.
fn start_task<F>(call: &Call, tool: Arc<Tool>, sent: String, work: F) -> Result<Reply, Error>
where
    F: FnOnce(Context) -> futures_util::future::BoxFuture<'static, Outcome>,
{
    let server = call.server.clone();
    let (id, now): (Arc<str>, _) = (random_id().into(), SystemTime::now());
    let owner = call.exchange.caller.identity.clone();
    let ttl = server.limits().task_ttl;
    let task = Task { id: id.clone(), owner, state: TaskState::Working, created: now, updated: now, ttl };
    // Durable before the handle is given away.
    server.task_store().put(&task)?;
    let running = Arc::new(RunningTask::new(id.clone(), server.clone()));
    server.running_tasks().insert(id.clone(), running.clone());

    let mut exchange = call.exchange.clone();
    // The call's stream ends with the handle; the task speaks through its state.
    exchange.outlet = Outlet::Closed;
    exchange.cancel = running.cancel.clone();
    let asking = Asking::Task(running);
    let detached = Call {
        server: server.clone(),
        id: call.id.clone(),
        params: message::Params::default(),
        exchange,
        version: call.version,
        client: call.client.clone(),
        log_level: None,
        meta: crate::client::RequestMeta { progress_token: None, ..call.meta.clone() },
    };
    let context = detached.context(asking.clone());
    let work = work(context.clone());
    let round = Round::detached(asking);
    let caller = call.exchange.caller.clone();
    server.clone().spawn(async move {
        let started = Instant::now();
        let measure = Measure { server: &server, tool: &tool, sent: &sent, caller: &caller, started };
        // A task has as long as it is remembered; the tool's own limit is for callers that wait.
        let ended = match round.run(&context, tool.name(), Some(ttl), work).await {
            Ok(Stopped::Finished(outcome)) => measure.ended(&tool, &detached, outcome),
            Ok(Stopped::Asks(_)) => Err(Error::Cancelled),
            Err(error) => measure.broken(&tool, &detached, error),
        };
        let state = match ended {
            Ok(reply) => TaskState::Completed(reply.finish(detached.version.era(), &server)),
            Err(Error::Cancelled) => TaskState::Cancelled,
            Err(error) => TaskState::Failed(error.to_object(detached.version.era())),
        };
        server.update_task(&id, state);
        server.running_tasks().remove(&id);
    });
    Ok(Reply { kind: ResultType::Task, members: task.handle(), cache: None })
}
