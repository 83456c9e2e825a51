#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! OTLP export: the real program and a mock collector over HTTP.

#[path = "otlp/collector.rs"]
mod collector;
#[path = "otlp/collector_errors.rs"]
mod collector_errors;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "otlp/spans.rs"]
mod spans;
#[path = "cli/upstream.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod upstream;
