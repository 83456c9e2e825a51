//! `classification.mcp_server`: the server that sorts prompts in corbie's place, and how to reach it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::HttpUrl;
use super::duration::{Period, Timeout};
use super::secret::SecretLine;

/// The server that sorts prompts with `type: mcp`. While it is down, corbie does it.
///
/// What can also be written under `classifier.mcp_category_model` is optional here, so that one of the two is enough
/// and a difference can be told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// Where it is. `http://localhost:8090/mcp` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<HttpUrl>,
    /// How it is asked: `http` tries the plain paths below the URL first and JSON-RPC then, `streamable-http` is
    /// JSON-RPC only, `stdio` starts `command`. It is `http` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    pub tools: Tools,
    /// How long one answer may take. Trying again never makes it more than twice as long. It is `5s` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Timeout>,
    /// How often a question is asked again when the server cannot be reached or takes too long.
    #[schemars(range(min = 0, max = 10))]
    pub max_retries: u32,
    /// Remember the list of categories. Otherwise it is asked for with every prompt.
    pub cache_categories: bool,
    /// How often the remembered list is asked for again; 0 means never.
    pub refresh_interval: Period,
    /// Sent with every request, such as `Authorization: "Bearer ${MCP_API_KEY}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
    /// The program that `transport: stdio` starts.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the program is started with, as a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program, besides `PATH`, `HOME` and the language. It sees no others of corbie's, as those may
    /// hold keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretLine>,
}

/// What the server calls its tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// The tool that tells the category of a text. `classify_text` if left out.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classify: Option<String>,
    /// The tool that lists the categories.
    #[schemars(length(min = 1, max = 128))]
    pub list_categories: String,
}

/// How a server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
    /// Plain paths below the URL; JSON-RPC where they are not served.
    Http,
    /// JSON-RPC over HTTP.
    StreamableHttp,
    /// A program that is started, and asked over its stdin and stdout.
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
            refresh_interval: Period::seconds(300),
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
