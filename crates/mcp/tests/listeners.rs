//! HTTP listeners besides plain TCP: TLS and Unix sockets; and connection limits for all of them.
#![cfg(all(unix, feature = "tls"))]
#![allow(unreachable_pub, reason = "test files share what they need")]

mod fixture;

#[path = "listeners/client.rs"]
mod client;
#[path = "listeners/connection_limits.rs"]
mod connection_limits;
#[path = "listeners/framing.rs"]
mod framing;
#[path = "listeners/socket_file.rs"]
mod socket_file;
#[path = "listeners/test_certificate.rs"]
mod test_certificate;
#[path = "listeners/tls.rs"]
mod tls;
