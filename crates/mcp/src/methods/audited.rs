//! Audit log entries for calls that are not tools: resource reads, prompts, custom methods.

use std::sync::Arc;
use std::time::Instant;

use crate::audit::{AuditOutcome, FinishedCall};
use crate::dispatch::MethodCall;
use crate::server::Server;
use crate::trace::RequestId;
use crate::trust::Caller;

/// One call in progress. Dropped without an outcome, it counts as failed, because the caller has disconnected.
pub(super) struct AuditedCall {
    server: Server,
    name: Arc<str>,
    arguments_hash: u64,
    caller: Caller,
    request: RequestId,
    started: Instant,
    pub(super) outcome: AuditOutcome,
}

impl AuditedCall {
    /// Counts as blocked until it is authorized.
    pub(super) fn begin(name: &str, call: &MethodCall) -> AuditedCall {
        AuditedCall {
            server: call.server.clone(),
            name: name.into(),
            arguments_hash: call.server.audit().hash(call.params.as_str()),
            caller: call.transport.caller.clone(),
            request: call.transport.request_trace.id.clone(),
            started: Instant::now(),
            outcome: AuditOutcome::Blocked,
        }
    }

    /// For methods without authorization: counts as failed until it succeeds.
    pub(super) fn begin_authorized(name: &str, call: &MethodCall) -> AuditedCall {
        let mut recorded = AuditedCall::begin(name, call);
        recorded.outcome = AuditOutcome::Error;
        recorded
    }
}

impl Drop for AuditedCall {
    fn drop(&mut self) {
        self.server.audit().record(FinishedCall {
            tool: &self.name,
            arguments_hash: Some(self.arguments_hash),
            caller: &self.caller,
            request: &self.request,
            outcome: self.outcome,
            duration: self.started.elapsed(),
        });
    }
}
