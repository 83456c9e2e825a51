#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! What the operator sees of the real program: its metrics, its dashboard, its audit log, and traces that go on.

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
