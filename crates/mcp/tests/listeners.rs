//! HTTP listeners besides plain TCP: TLS and Unix sockets; and connection limits for all of them.
#![cfg(all(unix, feature = "tls"))]
#![allow(unreachable_pub, reason = "test files share what they need")]

mod fixture;

#[path = "listeners/bounds.rs"]
mod bounds;
#[path = "listeners/client.rs"]
mod client;
#[path = "listeners/framing.rs"]
mod framing;
#[path = "listeners/identity.rs"]
mod identity;
#[path = "listeners/socket_file.rs"]
mod socket_file;
#[path = "listeners/tls.rs"]
mod tls;
