//! Counts and logs each tool call exactly once, however it ends (M-88, M-98).

use std::cell::Cell;
use std::time::Instant;

use crate::audit::AuditOutcome;
use crate::error::Error;
use crate::server::Server;
use crate::tool::Tool;
use crate::trust::Caller;

/// One call being measured. Dropped before its end is known, it counts as cancelled: its caller has gone.
pub(crate) struct Measure<'a> {
    server: &'a Server,
    tool: &'a Tool,
    /// The arguments as sent, for their hash.
    sent: &'a str,
    caller: &'a Caller,
    started: Instant,
    is_counted: Cell<bool>,
}

impl<'a> Measure<'a> {
    pub(crate) fn begin(server: &'a Server, tool: &'a Tool, sent: &'a str, caller: &'a Caller) -> Measure<'a> {
        Measure { server, tool, sent, caller, started: Instant::now(), is_counted: Cell::new(false) }
    }

    pub(crate) fn succeeded(&self) {
        self.tool.stats().succeeded(self.started.elapsed());
        self.record(AuditOutcome::Success);
    }

    pub(crate) fn failed(&self, kind: &str) {
        self.tool.stats().failed(self.started.elapsed(), kind);
        self.record(AuditOutcome::Error);
    }

    pub(crate) fn blocked(&self, kind: &str) {
        self.tool.stats().failed(self.started.elapsed(), kind);
        self.record(AuditOutcome::Blocked);
    }

    /// The call goes on elsewhere, or will be repeated with an answer, and is counted there.
    pub(crate) fn goes_on(&self) {
        self.is_counted.set(true);
    }

    fn record(&self, outcome: AuditOutcome) {
        self.is_counted.set(true);
        let audit = &self.server.inner().audit;
        audit.record(self.tool.shared_name(), self.sent, self.caller, outcome, self.started.elapsed());
    }
}

impl Drop for Measure<'_> {
    fn drop(&mut self) {
        if !self.is_counted.get() {
            self.failed(Error::Cancelled.error_type());
        }
    }
}
