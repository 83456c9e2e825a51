#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The router with real sockets: prompts in, the fake upstream of all three wire formats and its faults at the far end.

#[path = "route/fault_matrix.rs"]
mod fault_matrix;
#[path = "route/fixture.rs"]
mod fixture;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "route/upstream.rs"]
mod upstream;
