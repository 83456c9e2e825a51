//! Custom methods, such as `models/list`, with the same authorization and timeout as tools.

use super::recorded::Recorded;
use super::rounds::{Round, Stopped};
use crate::ask::Asking;
use crate::audit::AuditOutcome;
use crate::dispatch::Call;
use crate::error::Error;
use crate::reply::Reply;
use crate::server::Method;
use crate::trust;

pub(crate) async fn run(name: String, method: Method, call: Call) -> Result<Reply, Error> {
    let mut recorded = Recorded::begin(&name, &call);
    let caller = &call.exchange.caller;
    match &method.tool {
        Some(tool) if !caller.may_use(tool) => return Err(Error::NotGranted { what: format!("`{tool}`") }),
        _ => trust::enough(&name, method.effect, caller)?,
    }
    call.server.audit().admit(method.effect)?;
    recorded.outcome = AuditOutcome::Error;
    let asking = if call.exchange.outlet.is_open() { Asking::Wire } else { Asking::Nowhere };
    let context = call.context(asking.clone());
    let limit = Some(call.server.limits().timeout_of(&name, None));
    let work = (method.run)(context.clone(), call.params);
    let reply = match Round::detached(asking).run(&context, &name, limit, work).await? {
        Stopped::Finished(result) => result.map(Reply::new)?,
        // Only the three methods of the specification may be repeated with answers.
        Stopped::Asks(_) => {
            return Err(Error::internal("the method could not go on", "an added method asked in rounds"));
        }
    };
    recorded.outcome = AuditOutcome::Success;
    Ok(reply)
}
