#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! OAuth access tokens with the real program: a test issuer publishes keys, the test signs tokens, and callers use
//! HTTP.

#[path = "access_oauth/fixture.rs"]
mod fixture;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "access_oauth/issuer.rs"]
mod issuer;
#[path = "access_oauth/jwks.rs"]
mod jwks;
#[path = "access_oauth/jwt.rs"]
mod jwt;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "access_oauth/resource_metadata.rs"]
mod resource_metadata;
#[path = "access_oauth/signer.rs"]
mod signer;
#[path = "cli/websocket.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod websocket;
