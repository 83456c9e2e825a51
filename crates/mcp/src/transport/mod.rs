//! Transports. Each frames messages, identifies the caller and enforces limits; none depends on tools.

mod acceptor;
mod auth;
mod body;
mod connection;
mod connection_bodies;
mod connection_limit;
mod connection_phase;
mod connection_timeouts;
mod endpoint;
mod eviction;
mod forwarded;
mod health_endpoints;
pub mod http;
mod inflight;
mod line_reader;
mod lingering_close;
mod listener;
mod middleware;
mod modern_headers;
mod origin;
mod os_streams;
mod outgoing_queue;
#[cfg(unix)]
mod peer_credentials;
mod rate_limit;
mod request_framing;
mod request_log;
mod rest;
mod session_id;
mod sessions;
mod shared_rate_usage;
mod shutdown;
#[cfg(unix)]
mod socket_file;
mod sse;
pub mod stdio;
#[cfg(feature = "tls")]
mod tls;
#[cfg(unix)]
pub mod unix;
mod websocket;
mod write_deadline;

pub use auth::{Auth, Token, TokenHolder, TokenSet, TokenVerdict, TokenVerifier};
pub(crate) use body::BodyMemory;
pub use body::{BodyError, BodyReservation, ReceivedBody};
pub use forwarded::TrustedProxies;
pub(crate) use line_reader::{InputLine, LineReader};
pub(crate) use outgoing_queue::Sender;
pub(crate) use rate_limit::CallerBucket;
pub use rate_limit::RateLimit;
pub(crate) use shared_rate_usage::RateLimiters;
pub use shared_rate_usage::RateUsage;
pub use shutdown::stop_on_signal;
#[cfg(unix)]
pub use socket_file::{SocketError, SocketFile};
#[cfg(feature = "tls")]
pub use tls::{CertificateError, Certificates};
