//! Server limits (invariant 11) with their defaults. Each is a setting.

use std::collections::BTreeMap;
use std::time::Duration;

/// Bounds on the data, concurrency and time a peer may use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum size of one message, body or frame.
    pub max_message_bytes: usize,
    /// Messages in one batch.
    pub max_batch: usize,
    /// Maximum JSON nesting.
    pub max_json_depth: usize,
    /// Maximum total size of the headers of an HTTP request.
    pub max_header_bytes: usize,
    /// Maximum open connections over all HTTP listeners. A sixteenth more, at least 8, are a reserve for health probes
    /// and authenticated callers.
    pub max_connections: usize,
    /// Share of one IPv4 address or IPv6 network in the open connections. An address may use more while there are free
    /// ones. When all are in use, it gets none of another address, and loses those beyond its share first. Connections of
    /// authenticated callers count for their identity instead, with a share of a quarter of `max_connections`. Loopback is
    /// exempt where no token is required. Connections of a trusted proxy count for its clients. 0 disables the limit.
    pub max_connections_per_address: usize,
    /// Requests in flight on one connection; further ones are rejected, not queued.
    pub max_in_flight: usize,
    /// Concurrently executing requests over all callers, including those of disconnected clients.
    pub max_concurrent: usize,
    /// Concurrently executing requests of one caller.
    pub max_concurrent_per_caller: usize,
    /// Requests queued for admission, over all callers.
    pub max_queued: usize,
    /// Maximum queue time; a request that would wait longer is rejected immediately.
    pub max_queue_wait: Duration,
    /// Total memory for HTTP request bodies and WebSocket messages that are being received or processed.
    pub max_body_memory: usize,
    /// Time for a client to send a request's head, and then its body; also applies to the first request of a
    /// connection.
    pub request_read_timeout: Duration,
    /// A connection without requests for this long is closed.
    pub idle_timeout: Duration,
    /// A client that reads nothing for this long is disconnected.
    pub write_timeout: Duration,
    /// Interval of keep-alive comments on event streams and pings on WebSockets.
    pub keep_alive_interval: Duration,
    /// How long the user or the client's model may take to answer a request of a tool.
    pub client_response_timeout: Duration,
    /// Maximum number of stored legacy HTTP sessions.
    pub max_sessions: usize,
    /// An idle legacy HTTP session is evicted after this time; a session shared by instances can be resumed.
    pub session_idle_timeout: Duration,
    /// Entries per page of a list.
    pub page_size: usize,
    /// Messages queued for a slow client on one stream.
    pub max_outgoing: usize,
    /// Total bytes of those messages; a single larger message is still queued, alone.
    pub max_outgoing_bytes: usize,
    /// Maximum number of stored tasks.
    pub max_tasks: usize,
    /// How long a finished task can be queried.
    pub task_ttl: Duration,
    /// Entries in the in-memory audit log.
    pub max_audit: usize,
    /// Maximum concurrent `subscriptions/listen` streams.
    pub max_listeners: usize,
    pub tool_timeout: Duration,
    /// Per-tool timeouts by name; they override the tool's declaration.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// How long in-flight work may continue after a shutdown request.
    pub shutdown_grace: Duration,
}

impl Limits {
    /// Timeout of a tool or method: the configured one, else the declared one, else the default.
    ///
    /// `-` and `_` are equivalent here, because environment variable names cannot contain `-`; an exact match wins.
    pub fn timeout_of(&self, name: &str, its_own: Option<Duration>) -> Duration {
        let same = |other: &String| other.replace('-', "_").eq_ignore_ascii_case(&name.replace('-', "_"));
        let by_any_separator = || self.tool_timeouts.iter().find(|(other, _)| same(other)).map(|(_, limit)| limit);
        let configured = self.tool_timeouts.get(name).or_else(by_any_separator);
        configured.copied().or(its_own).unwrap_or(self.tool_timeout)
    }

    /// Raises zero limits that would block everything to one.
    pub(crate) fn normalized(mut self) -> Limits {
        for bound in [&mut self.max_outgoing, &mut self.max_in_flight, &mut self.page_size, &mut self.max_batch] {
            *bound = (*bound).max(1);
        }
        self.keep_alive_interval = self.keep_alive_interval.max(Duration::from_millis(1));
        self
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_message_bytes: 4 * 1024 * 1024,
            max_batch: 100,
            max_json_depth: 128,
            max_header_bytes: 16 * 1024,
            max_connections: 1024,
            max_connections_per_address: 256,
            max_in_flight: 1024,
            max_concurrent: 1000,
            max_concurrent_per_caller: 500,
            max_queued: 1000,
            max_queue_wait: Duration::from_secs(5),
            max_body_memory: 256 * 1024 * 1024,
            request_read_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(30),
            keep_alive_interval: Duration::from_secs(15),
            client_response_timeout: Duration::from_secs(300),
            max_sessions: 10_000,
            session_idle_timeout: Duration::from_secs(30 * 60),
            page_size: 100,
            max_outgoing: 1024,
            max_outgoing_bytes: 8 * 1024 * 1024,
            max_tasks: 10_000,
            task_ttl: Duration::from_secs(3600),
            max_audit: 10_000,
            max_listeners: 1024,
            tool_timeout: Duration::from_secs(30),
            tool_timeouts: BTreeMap::new(),
            shutdown_grace: Duration::from_secs(30),
        }
    }
}
