//! `classifier`: legacy settings of a classification server, converted to `classification`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::address::HttpUrl;
use super::duration::{Timeout, as_seconds};
use super::mcp_server::TransportKind;
use super::program::Program;
use super::secret::SecretLine;

/// Legacy settings of a classification server. A key that `classification` also sets must have the same value there.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classifier {
    #[serde(skip_serializing_if = "CategoryModel::is_absent")]
    pub category_model: CategoryModel,
    /// Classification server that speaks MCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_category_model: Option<McpCategoryModel>,
}

/// Built-in classifier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CategoryModel {
    /// An empty value (`""`) disables the built-in classifier, also while the server is unavailable. Any other value
    /// leaves it enabled; `classification` selects the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// Classification server that speaks MCP.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct McpCategoryModel {
    /// Enable the server.
    pub enabled: bool,
    /// Transport, as in `classification.mcp_server.transport`. Defaults to `http`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport_type: Option<TransportKind>,
    /// URL of the server. Defaults to `http://localhost:8090/mcp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<HttpUrl>,
    /// Minimum confidence, as in `classification.confidence_threshold`. Defaults to 0.6.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Timeout of a request in seconds. Defaults to 30.
    #[serde(serialize_with = "if_given_as_seconds", skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Timeout>,
    /// Name of the tool that classifies a text. Defaults to `classify_text`.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Program that `transport_type: stdio` starts, and the folder it runs in, as in
    /// `classification.mcp_server.command`.
    #[schemars(length(min = 1, max = 4096))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Program>,
    /// Arguments of the program, as a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program, as in `classification.mcp_server.env`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, SecretLine>,
    /// Headers of every request, such as `Authorization: "Bearer ${MCP_API_KEY}"`.
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

    /// Whether the built-in classifier is enabled.
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
