//! `classifier`: the older way to name a classification server. Read into the same form as `classification`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::address::HttpUrl;
use super::duration::{Timeout, as_seconds};
use super::mcp_server::TransportKind;
use super::secret::SecretLine;

/// The older way to name a classification server. Where `classification` says something too, both must say the same.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classifier {
    #[serde(skip_serializing_if = "CategoryModel::is_absent")]
    pub category_model: CategoryModel,
    /// A classification server that speaks MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_category_model: Option<McpCategoryModel>,
}

/// The classifier inside corbie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CategoryModel {
    /// Written as `""`, corbie sorts no prompts itself, not even while the server is down. Any other name leaves it on;
    /// which model it is says `classification`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// A classification server that speaks MCP.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpCategoryModel {
    /// Whether the server is asked.
    pub enabled: bool,
    /// How it is asked, as in `classification.mcp_server.transport`. It is `http` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_type: Option<TransportKind>,
    /// Where it is. `http://localhost:8090/mcp` if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<HttpUrl>,
    /// As `classification.confidence_threshold`. It is 0.6 if left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// How long one answer may take, in seconds. It is 30 if left out.
    #[serde(serialize_with = "if_given_as_seconds", skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Timeout>,
    /// The tool that tells the category of a text. `classify_text` if left out.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The program that `transport_type: stdio` starts.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What the program is started with, as a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables of the program, as in `classification.mcp_server.env`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretLine>,
    /// Sent with every request, such as `Authorization: "Bearer ${MCP_API_KEY}"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretLine>,
}

impl Classifier {
    pub(super) fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl CategoryModel {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }

    /// Whether corbie may sort prompts itself.
    pub(super) fn is_on(&self) -> bool {
        self.model_id.as_deref() != Some("")
    }
}

impl Default for McpCategoryModel {
    fn default() -> Self {
        Self {
            enabled: true,
            transport_type: None,
            url: None,
            threshold: None,
            timeout_seconds: None,
            tool_name: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            headers: BTreeMap::new(),
        }
    }
}

fn if_given_as_seconds<S: Serializer>(timeout: &Option<Timeout>, serializer: S) -> Result<S::Ok, S::Error> {
    match timeout {
        Some(timeout) => as_seconds(timeout, serializer),
        None => serializer.serialize_none(),
    }
}
