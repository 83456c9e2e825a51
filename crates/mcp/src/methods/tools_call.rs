//! `tools/call`: look up, validate, authorize, run, render, count (M-80). The only code that runs a tool's handler.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::measure::Measure;
use super::rounds::{Brought, Round, Stopped};
use super::{permission, tasks, tools_call_task};
use crate::client::ClientFeature;
use crate::code::Code;
use crate::dispatch::Call;
use crate::error::Error;
use crate::message;
use crate::object;
use crate::outcome::{CallResult, Cause, Failure, Outcome, ToolError};
use crate::reply::{Body, Reply, ResultType};
use crate::tool::{Arguments, TaskSupport, Tool};
use crate::trust;
use crate::version::{Era, Version};

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    arguments: Option<&'a str>,
    #[serde(rename = "inputResponses", default)]
    responses: Option<Map<String, Value>>,
    #[serde(rename = "requestState", default)]
    state: Option<String>,
}

impl<'a> Params<'a> {
    fn read(params: &'a message::Params) -> Result<Params<'a>, Error> {
        Params::quickly(params).map_or_else(|| params.parse(), Ok)
    }

    /// Fast path for ordinary calls, without parsing the arguments.
    fn quickly(params: &'a message::Params) -> Option<Params<'a>> {
        let names = ["name", "arguments", "inputResponses", "requestState"];
        let [Some(name), arguments, None, None] = params.pick(names)? else { return None };
        Some(Params { name: object::string(name)?, arguments, responses: None, state: None })
    }
}

pub(crate) async fn call(call: Call) -> Result<Reply, Error> {
    let Params { name, arguments, responses, state } = Params::read(&call.params)?;
    let tool = find(&call, &name)?;
    let sent = arguments.unwrap_or("{}");
    let measure = Measure::begin(&call.server, &tool, sent, &call.exchange);
    if !call.exchange.caller.may_use(tool.name()) {
        let error = Error::NotGranted { what: format!("`{}`", tool.name()) };
        measure.blocked(error.error_type());
        tracing::warn!(tool = tool.name(), "refused: the caller's token does not let it use this tool");
        return Err(error);
    }
    let arguments = read_arguments(&tool, sent).inspect_err(|error| measure.failed(error.error_type()))?;

    if let Err(violations) = tool.check(&arguments) {
        let error = Error::Schema { tool: tool.name().to_owned(), violations };
        return finish(&tool, &call, &measure, Err(error));
    }
    let denied = trust::gate(tool.name(), tool.meta().effect, tool.meta().least_trust, &call.exchange.caller).err();
    if let Some(denied) = denied.as_ref().filter(|_| !permission::can_be_asked_for(&tool, &call)) {
        measure.blocked(denied.error_type());
        tracing::warn!(tool = tool.name(), trust = %call.exchange.caller.trust, "refused: not enough trust");
        return Err(denied.clone());
    }
    if let Err(refused) = call.server.audit().admit(tool.meta().effect) {
        measure.blocked(refused.error_type());
        return Err(refused);
    }
    if tool.meta().deprecated_in.is_some() {
        tracing::warn!(tool = tool.name(), "deprecated tool called");
    }
    let (arguments, asks_permission) = (Arguments::new(arguments), denied.is_some());
    if becomes_task(&tool, &call).inspect_err(|error| measure.failed(error.error_type()))? {
        measure.goes_on();
        let of_tool = tool.clone();
        let work = move |context| permission::run(&of_tool, denied, context, arguments);
        return tools_call_task::start(&call, tool.clone(), sent, work).await;
    }

    let brought = Brought { responses, state };
    let round = Round::begin(&call, "tools/call", tool.name(), arguments.value(), brought)
        .inspect_err(|error| measure.failed(error.error_type()))?;
    let context = call.context(round.asking.clone());
    let limit = Some(call.server.limits().timeout_of(tool.name(), tool.meta().timeout));
    let work = permission::run(&tool, denied, context.clone(), arguments);
    let mut stopped = round.run(&context, tool.name(), limit, work).await;
    if let Ok(Stopped::Finished(Outcome::Background(work))) = stopped {
        if call.version.era() == Era::Modern && call.client.supports(ClientFeature::Tasks) {
            measure.goes_on();
            return tools_call_task::start(&call, tool.clone(), sent, work).await;
        }
        // A client without task support waits for the complete result.
        stopped = round.run(&context, tool.name(), limit, work(context.clone())).await;
    }
    if let Ok(Stopped::Finished(Outcome::Task { id, .. })) = &stopped
        && let Some(handle) = own_task(&tool, &call, id).await
    {
        measure.succeeded();
        return Ok(handle);
    }
    match stopped {
        Ok(Stopped::Asks(open)) => {
            // A call that waits for confirmation may never be repeated.
            match asks_permission {
                true => measure.blocked("ConfirmationRequired"),
                false => measure.goes_on(),
            }
            // The handler owns the arguments to avoid a copy, so parse them again; few calls get here.
            Ok(round.ask(&call, "tools/call", tool.name(), &read_arguments(&tool, sent)?, open))
        }
        Ok(Stopped::Finished(outcome)) => finish(&tool, &call, &measure, Ok(outcome)),
        Err(error) => finish(&tool, &call, &measure, Err(error)),
    }
}

/// Finds a tool by name; does not suggest tools that the caller may not use.
fn find(call: &Call, name: &str) -> Result<Arc<Tool>, Error> {
    match call.server.tools().find(name) {
        Ok(tool) => Ok(tool.clone()),
        Err(Error::ToolNotFound { name, suggestion }) => {
            let suggestion = suggestion.filter(|tool| call.exchange.caller.may_use(tool));
            Err(Error::ToolNotFound { name, suggestion })
        }
        Err(error) => Err(error),
    }
}

/// Converts the handler's outcome, or the library's error, into the reply, and counts it.
pub(crate) fn finish(
    tool: &Tool,
    call: &Call,
    measure: &Measure<'_>,
    ended: Result<Outcome, Error>,
) -> Result<Reply, Error> {
    let cause = match ended {
        Ok(Outcome::Done(result) | Outcome::Task { otherwise: result, .. }) => {
            if result.is_error {
                measure.failed("tool")
            } else {
                measure.succeeded()
            }
            return Ok(reply(tool, result, call.version));
        }
        Ok(Outcome::Failed(error)) => cause(tool, error),
        Ok(Outcome::Background(_)) => {
            Err(Error::internal("the call could not go on", "work was handed over a second time"))
        }
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => Ok(Cause::Library(error)),
    };
    let rendered = match &cause {
        Ok(cause) => (tool.dialect())(
            &Failure { tool: tool.name(), cause, trust: call.exchange.caller.trust },
            call.exchange.style,
        ),
        Err(error) => Err(error.clone()),
    };
    match &cause {
        Ok(Cause::Tool { kind, .. }) => measure.failed(kind),
        Err(error) if error.code() == Code::TrustDenied => measure.blocked(error.error_type()),
        Ok(Cause::Library(error)) | Err(error) => measure.failed(error.error_type()),
    }
    if let Ok(Cause::Library(Error::Internal { inward, .. })) = &cause {
        tracing::error!(tool = tool.name(), %inward, "tool failed");
    }
    rendered.map(|result| reply(tool, result, call.version))
}

/// Whether this call is answered with a task handle; fails if the tool requires tasks and the client does not support
/// them.
fn becomes_task(tool: &Tool, call: &Call) -> Result<bool, Error> {
    match (tool.meta().tasks, call.version.era()) {
        (TaskSupport::Never | TaskSupport::Own, _) | (_, Era::Legacy) => Ok(false),
        (TaskSupport::Optional, Era::Modern) => Ok(call.client.supports(ClientFeature::Tasks)),
        (TaskSupport::Always, Era::Modern) => call.client.require(ClientFeature::Tasks).map(|()| true),
        (TaskSupport::Handoff, Era::Modern) => call.client.require(ClientFeature::Tasks).map(|()| false),
    }
}

/// The handle of an external task that the handler created, for clients with task support.
///
/// If the task cannot be found, the plain result is more useful than its handle; the work has started either way.
async fn own_task(tool: &Tool, call: &Call, id: &str) -> Option<Reply> {
    let knows = call.version.era() == Era::Modern && call.client.supports(ClientFeature::Tasks);
    if tool.meta().tasks != TaskSupport::Own || !knows {
        return None;
    }
    match tasks::find(&call.server, id, &call.exchange.caller).await {
        Ok(task) => Some(Reply::from(Body::Members(task.handle())).of_kind(ResultType::Task)),
        Err(error) => {
            tracing::warn!(tool = tool.name(), task = id, %error, "its task cannot be looked up; answered without it");
            None
        }
    }
}

/// The raw text of a member.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de str>, D::Error> {
    Ok(Option::<&RawValue>::deserialize(deserializer)?.map(RawValue::get))
}

/// Parses the arguments; absent and `null` mean `{}` (T-22), and `null` members that mean "absent" are removed.
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

/// Classifies a handler's failure: rendered by the dialect, or a protocol error.
fn cause(tool: &Tool, error: ToolError) -> Result<Cause, Error> {
    let tool = tool.name().to_owned();
    match error {
        ToolError::Domain { kind, message, details } => Ok(Cause::Tool { kind, message, details }),
        // Raised where the tool's name was not available.
        ToolError::Protocol(Error::Serialization { reason, .. }) => {
            Ok(Cause::Library(Error::Serialization { tool, reason }))
        }
        ToolError::Protocol(Error::Schema { violations, .. }) => Ok(Cause::Library(Error::Schema { tool, violations })),
        ToolError::Protocol(error) => Err(error),
    }
}

fn reply(tool: &Tool, mut result: CallResult, version: Version) -> Reply {
    if let Some(since) = &tool.meta().deprecated_in {
        let note = format!("`{}` is deprecated since {since} and may go away", tool.name());
        result.meta.get_or_insert_default().insert("deprecated".into(), json!({ "since": since, "message": note }));
    }
    // `structuredContent` exists since 2025-06-18, and had to be an object until 2026-07-28.
    let keeps = match &result.structured {
        Some(Value::Object(_)) => version >= Version::V2025_06_18,
        _ => version.era() == Era::Modern,
    };
    // A failure does not match the tool's output schema, and validating clients would reject the whole reply.
    let misfit = result.is_error && tool.output_schema().is_some();
    if !keeps || misfit {
        result.structured = None;
    }
    Body::Call(result).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_read_quickly_are_what_the_plain_way_reads() {
        for params in [
            json!({ "name": "echo" }),
            json!({ "name": "ech\u{f6}\n", "arguments": { "text": "a \"b\" {c}" }, "_meta": { "name": 1 } }),
            json!({ "arguments": [1, { "name": "inner" }], "name": "last" }),
            json!({ "name": "echo", "arguments": null, "inputResponses": { "a": {} }, "requestState": "s" }),
            json!({ "name": 7, "arguments": {} }),
            json!({ "arguments": {} }),
        ] {
            let params = message::Params::from_value(&params);
            let shown = |read: Result<Params<'_>, Error>| match read {
                Ok(Params { name, arguments, responses, state }) => {
                    format!("{name:?} {:?} {responses:?} {state:?}", arguments.filter(|text| *text != "null"))
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(shown(Params::read(&params)), shown(params.parse()));
        }
    }

    #[test]
    fn t16_a_name_given_twice_is_refused() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#;
        let bounds = message::Bounds { bare_allowed: false, max_batch: 1, max_depth: 9 };
        let message::Incoming::One(Ok(message::Message::Request(request))) = message::decode(message, bounds) else {
            panic!("a request")
        };
        assert!(Params::read(&request.params).is_err());
    }
}
