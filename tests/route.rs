#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The router with real sockets: prompts in, and the mock upstream of all three wire formats with its faults as the
//! provider.

#[path = "route/bad_input.rs"]
mod bad_input;
#[path = "route/cancellation.rs"]
mod cancellation;
#[path = "route/completion_examples.rs"]
mod completion_examples;
#[path = "route/connections.rs"]
mod connections;
#[path = "route/egress_policy.rs"]
mod egress_policy;
#[path = "route/failover.rs"]
mod failover;
#[path = "route/fault_matrix.rs"]
mod fault_matrix;
#[path = "route/fixture.rs"]
mod fixture;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "route/list_models.rs"]
mod list_models;
#[path = "route/malformed_responses.rs"]
mod malformed_responses;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "route/routing.rs"]
mod routing;
#[path = "route/secrets.rs"]
mod secrets;
#[path = "route/secrets_on_every_endpoint.rs"]
mod secrets_on_every_endpoint;
#[path = "route/upstream.rs"]
mod upstream;
#[path = "route/without_api_keys.rs"]
mod without_api_keys;
