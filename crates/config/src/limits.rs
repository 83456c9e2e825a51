//! `server.limits`: limits of queues, messages and timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// Limits of queues, messages and timeouts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum size of a message: an HTTP body, a WebSocket message or a line on stdin.
    pub max_message_bytes: ByteSize,
    /// Maximum number of requests in a JSON-RPC batch.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: usize,
    /// Maximum nesting depth of a message.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_json_depth: usize,
    /// Maximum total size of the headers of an HTTP request.
    pub max_header_bytes: ByteSize,
    /// Maximum number of open connections over all listeners. At the limit, a connection is closed that has sent
    /// nothing, has stalled in its request headers, or is idle between requests. A further sixteenth, at least 8, is
    /// reserved for `/live`, `/ready`, `/health` and callers with a valid token.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// Share of one IPv4 address or IPv6 /64 network in the connections; 0 disables it. An address may use more while
    /// connections are free. Connections of callers with a valid token count for the caller instead, whose share is a
    /// quarter of `max_connections`. Loopback counts as one address if it requires a token. Connections of
    /// `trusted_proxies` count for the clients they forward.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_connections_per_address: usize,
    /// Maximum number of concurrent requests per connection.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// Maximum number of concurrent requests over all callers: tool calls, reads, prompts, and model responses until
    /// their end. Further requests are queued.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrent: usize,
    /// Maximum number of concurrent requests per caller, so that one caller cannot use all permits.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_concurrent_per_caller: usize,
    /// Maximum number of queued requests over all callers. Further requests are refused.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_queued: usize,
    /// Maximum wait in the queue. A request is refused immediately if its expected wait is longer.
    pub max_queue_wait: Timeout,
    /// Maximum memory for all request bodies that are being received or processed.
    pub max_body_memory: ByteSize,
    /// Timeout for receiving a request. A body that arrives very slowly is aborted earlier.
    pub request_read_timeout: Timeout,
    /// Timeout of a connection without requests.
    pub idle_timeout: Timeout,
    /// Timeout of a write: how long a client may take to accept data.
    pub write_timeout: Timeout,
    /// Interval of keep-alive messages on open streams, so that proxies do not close them.
    pub keep_alive_interval: Timeout,
    /// Timeout of a request from the server to the client.
    pub client_response_timeout: Timeout,
    /// Maximum number of concurrent sessions.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_sessions: usize,
    /// Timeout of a session without requests.
    pub session_idle_timeout: Timeout,
    /// Number of entries per page of a list.
    #[schemars(range(min = 1, max = 10_000))]
    pub page_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: ByteSize::kibibytes(4 * 1024),
            max_batch: 100,
            max_json_depth: 128,
            max_header_bytes: ByteSize::kibibytes(16),
            max_connections: 1024,
            max_connections_per_address: 256,
            max_in_flight: 1024,
            max_concurrent: 1000,
            max_concurrent_per_caller: 500,
            max_queued: 1000,
            max_queue_wait: Timeout::seconds(5),
            max_body_memory: ByteSize::kibibytes(256 * 1024),
            request_read_timeout: Timeout::seconds(30),
            idle_timeout: Timeout::seconds(5 * 60),
            write_timeout: Timeout::seconds(30),
            keep_alive_interval: Timeout::seconds(15),
            client_response_timeout: Timeout::seconds(5 * 60),
            max_sessions: 10_000,
            session_idle_timeout: Timeout::seconds(30 * 60),
            page_size: 100,
        }
    }
}
