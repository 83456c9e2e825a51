//! Metrics and audit log of tool calls; each call is counted exactly once, however it ends (M-88, M-98).

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::audit::{AuditOutcome, FinishedCall};
use crate::client::RequestMeta;
use crate::dispatch::TransportContext;
use crate::error::Error;
use crate::server::Server;
use crate::tool::Tool;

/// One measured call. Dropped without an outcome, it counts as cancelled, because the caller has disconnected.
pub(crate) struct CallMetrics<'a> {
    server: &'a Server,
    tool: &'a Tool,
    /// The raw arguments, for their hash.
    raw_arguments: &'a str,
    exchange: &'a TransportContext,
    is_in_history: bool,
    started: Instant,
    is_counted: Cell<bool>,
}

impl<'a> CallMetrics<'a> {
    pub(crate) fn begin(
        server: &'a Server,
        tool: &'a Tool,
        sent: &'a str,
        exchange: &'a TransportContext,
        meta: &RequestMeta,
    ) -> CallMetrics<'a> {
        CallMetrics {
            server,
            tool,
            raw_arguments: sent,
            exchange,
            is_in_history: !meta.is_excluded_from_history,
            started: Instant::now(),
            is_counted: Cell::new(false),
        }
    }

    pub(crate) fn record_success(&self) {
        let took = self.started.elapsed();
        self.tool.stats().record_success(took);
        self.record(AuditOutcome::Success, took);
    }

    pub(crate) fn record_failure(&self, kind: &str) {
        let took = self.started.elapsed();
        self.tool.stats().record_failure(took, kind);
        self.record(AuditOutcome::Error, took);
    }

    pub(crate) fn record_blocked(&self, kind: &str) {
        let took = self.started.elapsed();
        self.tool.stats().record_failure(took, kind);
        self.record(AuditOutcome::Blocked, took);
    }

    /// The call continues as a task, or will be repeated with an answer, and is counted there.
    pub(crate) fn mark_continued(&self) {
        self.is_counted.set(true);
    }

    fn record(&self, outcome: AuditOutcome, took: Duration) {
        self.is_counted.set(true);
        if self.is_in_history {
            self.server.metrics().history.record_call(self.started + took, outcome != AuditOutcome::Success);
        }
        self.server.audit().record(FinishedCall {
            tool: self.tool.shared_name(),
            arguments_hash: Some(self.server.audit().hash(self.raw_arguments)),
            caller: &self.exchange.caller,
            request: &self.exchange.request_trace.id,
            outcome,
            duration: took,
        });
    }
}

impl Drop for CallMetrics<'_> {
    fn drop(&mut self) {
        if !self.is_counted.get() {
            self.record_failure(Error::Cancelled.error_type());
        }
    }
}
