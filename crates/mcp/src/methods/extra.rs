//! Methods a program adds, such as `models/list`: behind the same gate and time limit as tools.

use std::sync::Arc;
use std::time::Instant;

use super::rounds::{Round, Stopped};
use crate::ask::Asking;
use crate::audit::{AuditOutcome, Ended};
use crate::dispatch::Call;
use crate::error::Error;
use crate::reply::Reply;
use crate::server::{Method, Server};
use crate::trace::RequestId;
use crate::trust::{self, Caller};

/// One call on its way. Dropped before its end is known, it counts as failed: its caller has gone.
struct Recorded {
    server: Server,
    name: Arc<str>,
    arguments_hash: u64,
    caller: Caller,
    request: RequestId,
    started: Instant,
    outcome: AuditOutcome,
}

pub(crate) async fn run(name: String, method: Method, call: Call) -> Result<Reply, Error> {
    let mut recorded = Recorded {
        server: call.server.clone(),
        name: name.as_str().into(),
        arguments_hash: call.server.audit().hash(call.params.get()),
        caller: call.exchange.caller.clone(),
        request: call.exchange.trail.id.clone(),
        started: Instant::now(),
        outcome: AuditOutcome::Blocked,
    };
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

impl Drop for Recorded {
    fn drop(&mut self) {
        self.server.audit().record(Ended {
            tool: &self.name,
            arguments_hash: Some(self.arguments_hash),
            caller: &self.caller,
            request: &self.request,
            outcome: self.outcome,
            took: self.started.elapsed(),
        });
    }
}
