//! `tools/call`: look up, validate, authorize, run, render, count (M-80). The only code that runs a tool's handler.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::call_metrics::CallMetrics;
use super::multi_round_trip::{RoundTrip, RoundTripInput, RoundTripOutcome};
use super::{confirm_destructive, tasks, tools_call_task};
use crate::authorization::authorize;
use crate::client::ClientFeature;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::error_code::ErrorCode;
use crate::json_scan;
use crate::message;
use crate::outcome::{CallResult, FailedCall, FailureCause, ToolError, ToolOutcome};
use crate::reply::{MethodReply, ReplyBody, ResultType};
use crate::tool::{Arguments, TaskSupport, Tool};
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
    fn parse(params: &'a message::Params) -> Result<Params<'a>, Error> {
        Params::parse_fast(params).map_or_else(|| Params::parse_slow(params), Ok)
    }

    /// A call without a name, or with members of wrong types, is a `ValidationError` (M-104).
    fn parse_slow(params: &'a message::Params) -> Result<Params<'a>, Error> {
        params.parse().map_err(|error| Error::Validation(error.to_string()))
    }

    /// Fast path for ordinary calls, without parsing the arguments.
    fn parse_fast(params: &'a message::Params) -> Option<Params<'a>> {
        let names = ["name", "arguments", "inputResponses", "requestState"];
        let [Some(name), arguments, None, None] = params.pick(names)? else { return None };
        Some(Params { name: json_scan::decode_string(name)?, arguments, responses: None, state: None })
    }
}

pub(crate) async fn call(call: MethodCall) -> Result<MethodReply, Error> {
    let Params { name, arguments, responses, state } = Params::parse(&call.params)?;
    let tool = find(&call, &name)?;
    let sent = arguments.unwrap_or("{}");
    let measure = CallMetrics::begin(&call.server, &tool, sent, &call.transport, &call.meta);
    if !call.transport.caller.may_use(tool.name()) {
        let error = Error::NotGranted { what: format!("`{}`", tool.name()) };
        measure.record_blocked(error.error_type());
        tracing::warn!(tool = tool.name(), "tool call denied: not granted to the caller's token");
        return Err(error);
    }
    let arguments = read_arguments(&tool, sent).inspect_err(|error| measure.record_failure(error.error_type()))?;

    if let Err(violations) = tool.check(&arguments) {
        let error = Error::Schema { tool: tool.name().to_owned(), violations };
        return finish(&tool, &call, &measure, Err(error));
    }
    let denied = authorize(tool.name(), tool.meta().effect, tool.meta().min_trust, &call.transport.caller).err();
    if let Some(denied) = denied.as_ref().filter(|_| !confirm_destructive::can_confirm(&tool, &call)) {
        measure.record_blocked(denied.error_type());
        tracing::warn!(tool = tool.name(), trust = %call.transport.caller.trust, "tool call denied: insufficient trust level");
        return Err(denied.clone());
    }
    if let Err(refused) = call.server.audit().check_writable(tool.meta().effect) {
        measure.record_blocked(refused.error_type());
        return Err(refused);
    }
    if tool.meta().deprecated_in.is_some() {
        tracing::warn!(tool = tool.name(), "deprecated tool called");
    }
    let (arguments, asks_permission) = (Arguments::new(arguments), denied.is_some());
    if becomes_task(&tool, &call).inspect_err(|error| measure.record_failure(error.error_type()))? {
        measure.mark_continued();
        let of_tool = tool.clone();
        let work = move |context| confirm_destructive::run(&of_tool, denied, context, arguments);
        return tools_call_task::start(&call, tool.clone(), sent, work).await;
    }

    let brought = RoundTripInput { responses, state };
    let round = RoundTrip::begin(&call, "tools/call", tool.name(), arguments.value(), brought)
        .inspect_err(|error| measure.record_failure(error.error_type()))?;
    let context = call.context(round.channel.clone());
    let limit = Some(call.server.limits().timeout_of(tool.name(), tool.meta().timeout));
    let work = confirm_destructive::run(&tool, denied, context.clone(), arguments);
    let mut stopped = round.run(&context, tool.name(), limit, work).await;
    if let Ok(RoundTripOutcome::Finished(ToolOutcome::Background(work))) = stopped {
        if call.version.era() == Era::Modern && call.client.supports(ClientFeature::Tasks) {
            measure.mark_continued();
            return tools_call_task::start(&call, tool.clone(), sent, work).await;
        }
        // A client without task support waits for the complete result.
        stopped = round.run(&context, tool.name(), limit, work(context.clone())).await;
    }
    if let Ok(RoundTripOutcome::Finished(ToolOutcome::Task { id, .. })) = &stopped
        && let Some(handle) = external_task_handle(&tool, &call, id).await
    {
        measure.record_success();
        return Ok(handle);
    }
    match stopped {
        Ok(RoundTripOutcome::InputRequired(open)) => {
            // A call that waits for confirmation may never be repeated.
            match asks_permission {
                true => measure.record_blocked("ConfirmationRequired"),
                false => measure.mark_continued(),
            }
            // The handler owns the arguments to avoid a copy, so parse them again; few calls get here.
            Ok(round.input_required_reply(&call, "tools/call", tool.name(), &read_arguments(&tool, sent)?, open))
        }
        Ok(RoundTripOutcome::Finished(outcome)) => finish(&tool, &call, &measure, Ok(outcome)),
        Err(error) => finish(&tool, &call, &measure, Err(error)),
    }
}

/// Finds a tool by name; does not suggest tools that the caller may not use.
fn find(call: &MethodCall, name: &str) -> Result<Arc<Tool>, Error> {
    match call.server.tools().find(name) {
        Ok(tool) => Ok(tool.clone()),
        Err(Error::ToolNotFound { name, suggestion }) => {
            let suggestion = suggestion.filter(|tool| call.transport.caller.may_use(tool));
            Err(Error::ToolNotFound { name, suggestion })
        }
        Err(error) => Err(error),
    }
}

/// Converts the handler's outcome, or the library's error, into the reply, and counts it.
pub(crate) fn finish(
    tool: &Tool,
    call: &MethodCall,
    measure: &CallMetrics<'_>,
    ended: Result<ToolOutcome, Error>,
) -> Result<MethodReply, Error> {
    let cause = match ended {
        Ok(ToolOutcome::Done(result) | ToolOutcome::Task { otherwise: result, .. }) => {
            if result.is_error {
                measure.record_failure("tool")
            } else {
                measure.record_success()
            }
            return Ok(reply(tool, result, call.version));
        }
        Ok(ToolOutcome::Failed(error)) => failure_cause(tool, error),
        Ok(ToolOutcome::Background(_)) => {
            Err(Error::internal("the call failed", "a background handler returned another background task"))
        }
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) => Ok(FailureCause::Library(error)),
    };
    let rendered = match &cause {
        Ok(cause) => (tool.dialect())(
            &FailedCall { tool: tool.name(), cause, trust: call.transport.caller.trust },
            call.transport.style,
        ),
        Err(error) => Err(error.clone()),
    };
    match &cause {
        Ok(FailureCause::Tool { kind, .. }) => measure.record_failure(kind),
        Err(error) if error.code() == ErrorCode::TrustDenied => measure.record_blocked(error.error_type()),
        Ok(FailureCause::Library(error)) | Err(error) => measure.record_failure(error.error_type()),
    }
    if let Ok(FailureCause::Library(Error::Internal { inward, .. })) = &cause {
        tracing::error!(tool = tool.name(), error = %inward, "tool failed");
    }
    rendered.map(|result| reply(tool, result, call.version))
}

/// Whether this call is answered with a task handle; fails if the tool requires tasks and the client does not support
/// them.
fn becomes_task(tool: &Tool, call: &MethodCall) -> Result<bool, Error> {
    match (tool.meta().tasks, call.version.era()) {
        (TaskSupport::Never | TaskSupport::External, _) | (_, Era::Legacy) => Ok(false),
        (TaskSupport::Optional, Era::Modern) => Ok(call.client.supports(ClientFeature::Tasks)),
        (TaskSupport::Always, Era::Modern) => call.client.require(ClientFeature::Tasks).map(|()| true),
        (TaskSupport::Handoff, Era::Modern) => call.client.require(ClientFeature::Tasks).map(|()| false),
    }
}

/// The handle of an external task that the handler created, for clients with task support.
///
/// If the task cannot be found, the plain result is more useful than its handle; the work has started either way.
async fn external_task_handle(tool: &Tool, call: &MethodCall, id: &str) -> Option<MethodReply> {
    let knows = call.version.era() == Era::Modern && call.client.supports(ClientFeature::Tasks);
    if tool.meta().tasks != TaskSupport::External || !knows {
        return None;
    }
    match tasks::find(&call.server, id, &call.transport.caller).await {
        Ok(task) => Some(MethodReply::from(ReplyBody::Members(task.handle())).with_kind(ResultType::Task)),
        Err(error) => {
            tracing::warn!(tool = tool.name(), task = id, %error, "cannot look up the task; responding without it");
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
    let mut arguments: Value =
        serde_json::from_str(sent).map_err(|error| Error::Validation(format!("invalid `arguments`: {error}")))?;
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
fn failure_cause(tool: &Tool, error: ToolError) -> Result<FailureCause, Error> {
    let tool = tool.name().to_owned();
    match error {
        ToolError::Domain { kind, message, details } => Ok(FailureCause::Tool { kind, message, details }),
        // Raised where the tool's name was not available.
        ToolError::Protocol(Error::Serialization { reason, .. }) => {
            Ok(FailureCause::Library(Error::Serialization { tool, reason }))
        }
        ToolError::Protocol(Error::Schema { violations, .. }) => {
            Ok(FailureCause::Library(Error::Schema { tool, violations }))
        }
        ToolError::Protocol(error) => Err(error),
    }
}

fn reply(tool: &Tool, mut result: CallResult, version: Version) -> MethodReply {
    if let Some(since) = &tool.meta().deprecated_in {
        let note = format!("`{}` is deprecated since {since} and may be removed", tool.name());
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
    ReplyBody::Call(result).into()
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
            assert_eq!(shown(Params::parse(&params)), shown(Params::parse_slow(&params)));
        }
    }

    #[test]
    fn t16_a_name_given_twice_is_refused() {
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n\u0061me":"b"}}"#;
        let bounds = message::DecodeLimits { bare_allowed: false, max_batch: 1, max_depth: 9 };
        let message::Incoming::Single(Ok(message::Message::Request(request))) = message::decode(message, bounds) else {
            panic!("a request")
        };
        assert!(Params::parse(&request.params).is_err());
    }
}
