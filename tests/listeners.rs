#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![cfg(unix)]
//! The real program over HTTPS and Unix sockets, with third-party clients.

#[path = "listeners/certificate.rs"]
mod certificate;
#[path = "listeners/clients.rs"]
mod clients;
#[path = "listeners/connection_limits.rs"]
mod connection_limits;
#[path = "listeners/curl.rs"]
mod curl;
#[path = "listeners/exposure.rs"]
mod exposure;
#[path = "cli/http.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod http;
#[path = "cli/process.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod process;
#[path = "listeners/tls.rs"]
mod tls;
#[path = "listeners/unix_socket.rs"]
mod unix_socket;
