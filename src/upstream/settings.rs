//! How a classification server is reached and asked, whichever section of the configuration says it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use url::Url;

use crate::config::secret::SecretLine;

/// How a classification server is reached and asked.
#[derive(Debug, Clone)]
pub struct Settings {
    pub transport: Transport,
    /// The tool that tells the category of a text.
    pub classify_tool: String,
    /// The tool that lists the categories.
    pub list_tool: String,
    /// How long one request may take. All of a call, with its retries and their pauses, takes at most twice as long:
    /// somebody waits for the prompt behind it.
    pub timeout: Duration,
    /// How often a request is sent again that could not be sent or was not answered in time.
    pub max_retries: u32,
    /// Otherwise the list is asked for before every text.
    pub cache_categories: bool,
    /// Zero means never.
    pub refresh_interval: Duration,
    /// A server with another number is not used.
    pub num_categories: Option<usize>,
}

/// The way to a server. Values of headers and variables do not show.
#[derive(Debug, Clone)]
pub enum Transport {
    /// `POST {url}/tools/call` and the like; JSON-RPC at `url` where those are not served.
    Http { url: Url, headers: HeaderMap },
    /// JSON-RPC at `url`.
    StreamableHttp { url: Url, headers: HeaderMap },
    /// JSON-RPC over the standard streams of a program that is started.
    Stdio { command: String, args: Vec<String>, env: BTreeMap<String, SecretLine> },
}
