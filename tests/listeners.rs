#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![cfg(unix)]
//! The real program over HTTPS and Unix sockets, with third-party clients.

#[path = "listeners/bounds.rs"]
mod bounds;
#[path = "listeners/clients.rs"]
mod clients;
#[path = "listeners/curl.rs"]
mod curl;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod http;
#[path = "listeners/identity.rs"]
mod identity;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod process;
#[path = "listeners/reach.rs"]
mod reach;
#[path = "listeners/socket_file.rs"]
mod socket_file;
#[path = "listeners/tls.rs"]
mod tls;
