//! Every bound there is (invariant 11), with its default. Each is a setting.

use std::collections::BTreeMap;
use std::time::Duration;

/// How much a peer may send, hold or make us wait.
#[derive(Debug, Clone)]
pub struct Limits {
    /// One message, body or frame.
    pub max_message_bytes: usize,
    /// Messages in one batch.
    pub max_batch: usize,
    /// Nesting of JSON.
    pub max_json_depth: usize,
    /// All headers of an HTTP request together.
    pub max_header_bytes: usize,
    /// Open connections over all HTTP listeners.
    pub max_connections: usize,
    /// Open connections from one address, or one network of IPv6; none but those of this machine are counted. 0 for no bound.
    pub max_connections_per_address: usize,
    /// Requests in flight on one connection; more are refused, not queued.
    pub max_in_flight: usize,
    /// Requests worked on at once over all callers, also those whose client has gone.
    pub max_running: usize,
    /// The same of one caller.
    pub max_running_per_caller: usize,
    /// Requests that wait for a place, over all callers.
    pub max_waiting: usize,
    /// How long one may wait for a place; one that would wait longer is refused at once.
    pub max_wait: Duration,
    /// Bodies of HTTP requests and WebSocket messages that are received or worked on, all together.
    pub max_body_memory: usize,
    /// Time a client has to send a request's head, and then its body; also for the first after connecting.
    pub request_read_timeout: Duration,
    /// A connection on which nothing is asked for this long is closed.
    pub idle_timeout: Duration,
    /// A client that reads nothing for this long is dropped.
    pub write_timeout: Duration,
    /// Interval of keep-alive comments on event streams and pings on WebSockets.
    pub keep_alive: Duration,
    /// How long a person, or a client's model, may take to answer a question of a tool.
    pub ask_timeout: Duration,
    /// Legacy HTTP sessions remembered.
    pub max_sessions: usize,
    /// A legacy HTTP session unused for this long is forgotten; one that instances share may be taken up again.
    pub session_idle: Duration,
    /// Entries on one page of a list.
    pub page_size: usize,
    /// Messages waiting for a slow client on one stream.
    pub max_outgoing: usize,
    /// Bytes of those messages together; a single larger message still passes, alone.
    pub max_outgoing_bytes: usize,
    /// Tasks remembered.
    pub max_tasks: usize,
    /// How long an ended task can still be asked for.
    pub task_ttl: Duration,
    /// Entries of the audit log.
    pub max_audit: usize,
    /// Streams of `subscriptions/listen` open at once.
    pub max_listeners: usize,
    pub tool_timeout: Duration,
    /// Time limits of single tools, by name; they win over what the tool itself declares.
    pub tool_timeouts: BTreeMap<String, Duration>,
    /// How long in-flight work may go on after a stop was asked for.
    pub shutdown_grace: Duration,
}

impl Limits {
    /// How long one tool or method may run: as configured for it, else as it asks for itself, else as all.
    ///
    /// `-` and `_` are the same here, because an environment variable cannot hold the former; an exact name wins.
    pub fn timeout_of(&self, name: &str, its_own: Option<Duration>) -> Duration {
        let same = |other: &String| other.replace('-', "_").eq_ignore_ascii_case(&name.replace('-', "_"));
        let by_any_separator = || self.tool_timeouts.iter().find(|(other, _)| same(other)).map(|(_, limit)| limit);
        let configured = self.tool_timeouts.get(name).or_else(by_any_separator);
        configured.copied().or(its_own).unwrap_or(self.tool_timeout)
    }

    /// Bounds of zero that would stop everything become one.
    pub(crate) fn usable(mut self) -> Limits {
        for bound in [&mut self.max_outgoing, &mut self.max_in_flight, &mut self.page_size, &mut self.max_batch] {
            *bound = (*bound).max(1);
        }
        self.keep_alive = self.keep_alive.max(Duration::from_millis(1));
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
            max_running: 1000,
            max_running_per_caller: 500,
            max_waiting: 1000,
            max_wait: Duration::from_secs(5),
            max_body_memory: 256 * 1024 * 1024,
            request_read_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            write_timeout: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            ask_timeout: Duration::from_secs(300),
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
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
