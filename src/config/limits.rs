//! `server.limits`: limits of queues, messages and timeouts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// The bound of every queue, message and wait.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The largest message: an HTTP body, a WebSocket message or a line on stdin.
    pub max_message_bytes: ByteSize,
    /// How many requests one JSON-RPC batch may hold.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: usize,
    /// How deep lists and objects of a message may be nested.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_json_depth: usize,
    /// The size of all headers of an HTTP request together.
    pub max_header_bytes: ByteSize,
    /// How many connections may be open at the same time, over all listeners. When all are taken, one makes room that has
    /// sent nothing, that has stopped in the middle of a head, or that is idle between requests. A sixteenth more, at
    /// least 8, are kept for `/live`, `/ready`, `/health` and callers with a valid token.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: usize,
    /// How many of them may come from one address, or from one /64 network of IPv6; 0 means as many as there are. Callers
    /// with a valid token are not counted. This machine is counted as one address where it needs a token. Connections
    /// of `trusted_proxies` count for the clients they forward.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_connections_per_address: usize,
    /// How many requests of one connection may be worked on at the same time.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_in_flight: usize,
    /// How many requests may be worked on at the same time, of all callers: calls of tools, reads, prompts, and answers
    /// of models until their last word. Others wait for their turn.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_running: usize,
    /// How many of these may be of one caller, so that there is always room for another.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_running_per_caller: usize,
    /// How many requests may wait for their turn, of all callers. More are refused.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub max_waiting: usize,
    /// How long a request may wait for its turn. One that would wait longer is refused at once.
    pub max_wait: Timeout,
    /// How much memory bodies of requests may take while they are received or worked on, all together.
    pub max_body_memory: ByteSize,
    /// How long a client may take to send one request. A body that trickles is given up earlier.
    pub request_read_timeout: Timeout,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Timeout,
    /// How long a client may take to accept what is sent to it.
    pub write_timeout: Timeout,
    /// How often an open stream gets a sign of life, so that nothing between closes it.
    pub keep_alive: Timeout,
    /// How long the server waits for an answer when it asks the client something.
    pub ask_timeout: Timeout,
    /// How many sessions may exist at the same time.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub max_sessions: usize,
    /// How long a session is kept without a request.
    pub session_idle: Timeout,
    /// How many entries one page of a list holds.
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
            max_running: 1000,
            max_running_per_caller: 500,
            max_waiting: 1000,
            max_wait: Timeout::seconds(5),
            max_body_memory: ByteSize::kibibytes(256 * 1024),
            request_read_timeout: Timeout::seconds(30),
            idle_timeout: Timeout::seconds(5 * 60),
            write_timeout: Timeout::seconds(30),
            keep_alive: Timeout::seconds(15),
            ask_timeout: Timeout::seconds(5 * 60),
            max_sessions: 10_000,
            session_idle: Timeout::seconds(30 * 60),
            page_size: 100,
        }
    }
}
