#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Access control of the real program: tokens, token restrictions, trust levels, and user confirmation.

#[path = "cli/http.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod http;
#[path = "access_oauth/issuer.rs"]
#[allow(dead_code, reason = "shared with the tests of tokens of an authorization server, which use more of it")]
mod issuer;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod process;
#[path = "access_oauth/signer.rs"]
#[allow(dead_code, reason = "shared with the tests of tokens of an authorization server, which use more of it")]
mod signer;
#[path = "cli/websocket.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line, which use more of it")]
mod websocket;

#[path = "access/confirm_destructive.rs"]
mod confirm_destructive;
#[path = "access/fixture.rs"]
mod fixture;
#[path = "access/matrix.rs"]
mod matrix;
#[path = "access/permissions.rs"]
mod permissions;
#[path = "access/reload.rs"]
mod reload;
#[path = "access/reload_under_load.rs"]
mod reload_under_load;
#[path = "access/tokens.rs"]
mod tokens;
