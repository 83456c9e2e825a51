#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! The router with real sockets: prompts in, and the mock upstream of all three wire formats with its faults as the
//! provider.

#[path = "route/bad_input.rs"]
mod bad_input;
#[path = "route/cancelling.rs"]
mod cancelling;
#[path = "route/connecting.rs"]
mod connecting;
#[path = "route/destinations.rs"]
mod destinations;
#[path = "route/every_face.rs"]
mod every_face;
#[path = "route/failover.rs"]
mod failover;
#[path = "route/fault_matrix.rs"]
mod fault_matrix;
#[path = "route/fixture.rs"]
mod fixture;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "route/listing.rs"]
mod listing;
#[path = "route/no_keys.rs"]
mod no_keys;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "route/routing.rs"]
mod routing;
#[path = "route/secrets.rs"]
mod secrets;
#[path = "route/spec_002.rs"]
mod spec_002;
#[path = "route/strange_answers.rs"]
mod strange_answers;
#[path = "route/upstream.rs"]
mod upstream;
