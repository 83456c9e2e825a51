//! One entry of the audit log for each call that is no tool: reads of resources, prompts, added methods.

use std::sync::Arc;
use std::time::Instant;

use crate::audit::{AuditOutcome, Ended};
use crate::dispatch::Call;
use crate::server::Server;
use crate::trace::RequestId;
use crate::trust::Caller;

/// One call on its way. Dropped before its end is known, it counts as failed: its caller has gone.
pub(super) struct Recorded {
    server: Server,
    name: Arc<str>,
    arguments_hash: u64,
    caller: Caller,
    request: RequestId,
    started: Instant,
    pub(super) outcome: AuditOutcome,
}

impl Recorded {
    /// It counts as blocked until it is let through.
    pub(super) fn begin(name: &str, call: &Call) -> Recorded {
        Recorded {
            server: call.server.clone(),
            name: name.into(),
            arguments_hash: call.server.audit().hash(call.params.get()),
            caller: call.exchange.caller.clone(),
            request: call.exchange.trail.id.clone(),
            started: Instant::now(),
            outcome: AuditOutcome::Blocked,
        }
    }

    /// Of something that everybody may do: without an end it is a failure.
    pub(super) fn open(name: &str, call: &Call) -> Recorded {
        let mut recorded = Recorded::begin(name, call);
        recorded.outcome = AuditOutcome::Error;
        recorded
    }
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
