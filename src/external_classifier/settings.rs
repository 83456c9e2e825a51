//! Settings of an external classification server, independent of the configuration section they come from.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

use crate::config::program::Program;
use crate::config::secret::SecretLine;

/// Connection and call settings of a classification server.
#[derive(Debug, Clone)]
pub struct Settings {
    pub transport: Transport,
    /// The tool that classifies a text.
    pub classify_tool: String,
    /// The tool that lists the categories.
    pub list_tool: String,
    /// Maximum duration of one request. A call including its retries and backoff takes at most twice as long, because a
    /// prompt is waiting for it.
    pub timeout: Duration,
    /// Maximum retries of a request that could not be sent or timed out.
    pub max_retries: u32,
    /// If false, the list is requested before every text.
    pub cache_categories: bool,
    /// Zero means never.
    pub refresh_interval: Duration,
    /// A server with a different number of categories is not used.
    pub num_categories: Option<usize>,
}

/// Transport of a server. `Debug` does not reveal values of headers and variables.
#[derive(Debug, Clone)]
pub enum Transport {
    /// `POST {url}/tools/call` and so on; falls back to JSON-RPC at `url`.
    Http { url: Url, headers: HeaderMap },
    /// JSON-RPC at `url`.
    StreamableHttp { url: Url, headers: HeaderMap },
    /// JSON-RPC over the stdio of a child process.
    Stdio { command: Program, args: Vec<String>, env: BTreeMap<String, SecretLine> },
}
