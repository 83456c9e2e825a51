//! Metrics and audit log of tool calls; each call is counted exactly once, however it ends (M-88, M-98).

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::audit::{AuditOutcome, Ended};
use crate::dispatch::Exchange;
use crate::error::Error;
use crate::server::Server;
use crate::tool::Tool;

/// One measured call. Dropped without an outcome, it counts as cancelled, because the caller has disconnected.
pub(crate) struct Measure<'a> {
    server: &'a Server,
    tool: &'a Tool,
    /// The raw arguments, for their hash.
    sent: &'a str,
    exchange: &'a Exchange,
    started: Instant,
    is_counted: Cell<bool>,
}

impl<'a> Measure<'a> {
    pub(crate) fn begin(server: &'a Server, tool: &'a Tool, sent: &'a str, exchange: &'a Exchange) -> Measure<'a> {
        Measure { server, tool, sent, exchange, started: Instant::now(), is_counted: Cell::new(false) }
    }

    pub(crate) fn succeeded(&self) {
        let took = self.started.elapsed();
        self.tool.stats().succeeded(took);
        self.record(AuditOutcome::Success, took);
    }

    pub(crate) fn failed(&self, kind: &str) {
        let took = self.started.elapsed();
        self.tool.stats().failed(took, kind);
        self.record(AuditOutcome::Error, took);
    }

    pub(crate) fn blocked(&self, kind: &str) {
        let took = self.started.elapsed();
        self.tool.stats().failed(took, kind);
        self.record(AuditOutcome::Blocked, took);
    }

    /// The call continues as a task, or will be repeated with an answer, and is counted there.
    pub(crate) fn goes_on(&self) {
        self.is_counted.set(true);
    }

    fn record(&self, outcome: AuditOutcome, took: Duration) {
        self.is_counted.set(true);
        self.server.metrics().history.call(self.started + took, outcome != AuditOutcome::Success);
        self.server.audit().record(Ended {
            tool: self.tool.shared_name(),
            arguments_hash: Some(self.server.audit().hash(self.sent)),
            caller: &self.exchange.caller,
            request: &self.exchange.trail.id,
            outcome,
            took,
        });
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        if !self.is_counted.get() {
            self.failed(Error::Cancelled.error_type());
        }
    }
}
