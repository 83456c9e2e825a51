#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Observability of the real program: metrics, dashboard, audit log and trace propagation.

#[cfg(unix)]
#[path = "observability/audit.rs"]
mod audit;
#[path = "observability/dashboard.rs"]
mod dashboard;
#[path = "external_classifier/fake_classifier.rs"]
#[allow(dead_code, reason = "shared with the tests of servers elsewhere, which use more of it")]
mod fake_classifier;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "observability/metrics.rs"]
mod metrics;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "observability/trace.rs"]
mod trace;
#[path = "cli/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod upstream;
