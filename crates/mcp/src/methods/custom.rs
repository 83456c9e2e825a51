//! Custom methods, such as `models/list`, with the same authorization and timeout as tools.

use super::audited::AuditedCall;
use super::multi_round_trip::{RoundTrip, RoundTripOutcome};
use crate::audit::AuditOutcome;
use crate::authorization::check_trust;
use crate::client_requests::ClientChannel;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::MethodReply;
use crate::server::CustomMethod;

pub(crate) async fn run(name: String, method: CustomMethod, call: MethodCall) -> Result<MethodReply, Error> {
    let mut recorded = AuditedCall::begin(&name, &call);
    let caller = &call.transport.caller;
    match &method.tool {
        Some(tool) if !caller.may_use(tool) => return Err(Error::NotGranted { what: format!("`{tool}`") }),
        _ => check_trust(&name, method.effect, caller)?,
    }
    call.server.audit().check_writable(method.effect)?;
    recorded.outcome = AuditOutcome::Error;
    let asking = if call.transport.sink.is_open() { ClientChannel::Stream } else { ClientChannel::Unavailable };
    let context = call.context(asking.clone());
    let limit = Some(call.server.limits().timeout_of(&name, None));
    let work = (method.run)(context.clone(), call.params);
    let reply = match RoundTrip::detached(asking).run(&context, &name, limit, work).await? {
        RoundTripOutcome::Finished(result) => result.map(MethodReply::new)?,
        // Only the three methods of the specification may be repeated with answers.
        RoundTripOutcome::InputRequired(_) => {
            return Err(Error::internal("the method failed", "a custom method requested input"));
        }
    };
    recorded.outcome = AuditOutcome::Success;
    Ok(reply)
}
