//! Audit log entries for calls that are not tools: resource reads, prompts, custom methods.

use std::sync::Arc;
use std::time::Instant;

use crate::audit::{AuditOutcome, Ended};
use crate::dispatch::Call;
use crate::server::Server;
use crate::trace::RequestId;
use crate::trust::Caller;

/// One call in progress. Dropped without an outcome, it counts as failed, because the caller has disconnected.
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
    /// Counts as blocked until it is authorized.
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

    /// For methods without authorization: counts as failed until it succeeds.
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
