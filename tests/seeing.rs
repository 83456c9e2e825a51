#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Observability of the real program: metrics, dashboard, audit log and trace propagation.

#[cfg(unix)]
#[path = "seeing/audit.rs"]
mod audit;
#[path = "seeing/dashboard.rs"]
mod dashboard;
#[path = "upstream/fake.rs"]
#[allow(dead_code, reason = "shared with the tests of servers elsewhere, which use more of it")]
mod fake;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "seeing/metrics.rs"]
mod metrics;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "seeing/trace.rs"]
mod trace;
#[path = "cli/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod upstream;
