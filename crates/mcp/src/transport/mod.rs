//! Transports. Each frames messages, identifies the caller and enforces limits; none depends on tools.

mod auth;
mod body;
mod connection;
mod door;
mod endpoint;
mod eviction;
mod forwarded;
mod guard;
pub mod http;
mod lines;
mod listener;
mod modern_headers;
mod origin;
mod os_streams;
mod passage;
#[cfg(unix)]
mod peers;
mod places;
mod queue;
mod rate;
mod request_framing;
mod rest;
mod running;
mod session_id;
mod sessions;
mod shutdown;
mod slow_reader;
#[cfg(unix)]
mod socket_file;
mod spent;
mod sse;
mod status;
pub mod stdio;
#[cfg(feature = "tls")]
mod tls;
mod turns;
#[cfg(unix)]
pub mod unix;
mod websocket;

pub use auth::{Auth, Authority, Holder, Token, Tokens, Verdict};
pub(crate) use body::BodyMemory;
pub use body::{NotReceived, Received, Reserved};
pub use forwarded::TrustedProxies;
pub(crate) use lines::{Line, Lines};
pub(crate) use queue::Sender;
pub(crate) use rate::Bucket;
pub use rate::RateLimit;
pub use shutdown::stop_on_signal;
#[cfg(unix)]
pub use socket_file::{SocketError, SocketFile};
pub(crate) use spent::Ledger;
pub use spent::Spent;
#[cfg(feature = "tls")]
pub use tls::{CertificateError, Certificates};
