//! `classification.mcp_server`: external classification server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::duration::{ConfigDuration, Timeout};
use super::program::Program;
use super::secret::SecretLine;

/// Classification server for prompts, used with `type: mcp`. While it is unavailable, corbie classifies prompts itself.
///
/// Keys that `classifier.mcp_category_model` also has are optional here, so that one of the sections is sufficient and
/// contradictions are detected.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// URL of the server. Defaults to `http://localhost:8090/mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<HttpUrl>,
    /// Transport: `http` tries plain paths below the URL first, then JSON-RPC; `streamable-http` uses only JSON-RPC;
    /// `stdio` starts `command`. Defaults to `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    pub tools: Tools,
    /// Timeout of a request. Retries extend it to at most twice this value. Defaults to `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// Maximum number of retries if the server is unreachable, times out or answers with an HTTP status from 500.
    #[schemars(range(min = 0, max = 10))]
    pub max_retries: u32,
    /// Cache the list of categories. Otherwise it is requested with every prompt.
    pub cache_categories: bool,
    /// Interval for refreshing the cached list; 0 disables the refresh.
    pub refresh_interval: ConfigDuration,
    /// Headers of every request, such as `Authorization: "Bearer ${MCP_API_KEY}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// Program that `transport: stdio` starts: a name that is searched in `PATH`, or a path. A relative path is
    /// resolved against the folder of the configuration file. Relative and empty entries of `PATH` are skipped. The
    /// program runs in the folder of that file, or in the user's configuration folder if a variable sets this key, and
    /// never in the working folder of corbie.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Program>,
    /// Arguments of the program, as a list. Relative paths in them are resolved against the folder that the program
    /// runs in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to `PATH`, `HOME` and the locale. No other variables of corbie
    /// are inherited, because they may contain keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretLine>,
}

/// Names of the server's tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Name of the tool that classifies a text. Defaults to `classify_text`.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classify: Option<String>,
    /// Name of the tool that lists the categories.
    #[schemars(length(min = 1, max = 128))]
    pub list_categories: String,
}

/// Transport of a classification server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// Plain paths below the URL; JSON-RPC if the server does not have them.
    Http,
    /// JSON-RPC over HTTP.
    StreamableHttp,
    /// A child process with JSON-RPC over its stdin and stdout.
    Stdio,
}

impl McpServer {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for McpServer {
    fn default() -> Self {
        Self {
            url: None,
            transport: None,
            tools: Tools::default(),
            timeout: None,
            max_retries: 3,
            cache_categories: true,
            refresh_interval: ConfigDuration::seconds(300),
            headers: BTreeMap::new(),
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
        }
    }
}

impl Default for Tools {
    fn default() -> Self {
        Self { classify: None, list_categories: "list_categories".into() }
    }
}
