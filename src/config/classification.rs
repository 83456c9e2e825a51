//! `classification`: taxonomy and classification method.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mcp_server::McpServer;

/// Which categories there are, and how texts are sorted into them.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classification {
    /// A taxonomy file: categories with their prompts, patterns and examples. Left out, it is the one inside corbie:
    /// math, science, technology, history, general. `corbie taxonomy new` makes one of your own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<PathBuf>,
    /// How texts are sorted: `hybrid`, `rules`, `embedding` or `model`.
    pub method: Method,
    /// A model that was trained for these categories.
    #[serde(skip_serializing_if = "SequenceModel::is_absent")]
    pub model: SequenceModel,
    /// The longest text that is taken, in characters.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_text_length: usize,
    /// How many texts one call of `batch_categorize` may bring.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: usize,
    /// How many answers are kept for texts that come again; long texts are never kept.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cache_entries: usize,
    /// Read the taxonomy file again when it has changed. SIGHUP does it at any time.
    pub watch: bool,
    /// A category keeps its number when the file is read again: new ones come last, and the place of one that is gone
    /// stays empty until the next start.
    pub stable_indices: bool,
    /// Who sorts the prompts that the router routes: `builtin`, which is corbie itself, or `mcp`, the server in
    /// `mcp_server`. It is `builtin` if left out.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The server that sorts prompts with `type: mcp`. While it is down, corbie does it.
    #[serde(skip_serializing_if = "McpServer::is_absent")]
    pub mcp_server: McpServer,
    /// How many categories the server must have. One with another number is not used. Any number, if left out.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_categories: Option<usize>,
    /// A prompt whose category is less sure than this, from 0 to 1, counts as one of `fallback_category`. It is 0.6 if
    /// left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_threshold: Option<f64>,
    /// The category of prompts that fit no other well enough.
    #[schemars(length(min = 1, max = 1024))]
    pub fallback_category: String,
}

/// How texts are sorted into categories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Rules for what is certain, words where they leave no doubt, and the embedding model for the rest.
    #[default]
    Hybrid,
    /// Patterns and words alone; no model is loaded.
    Rules,
    /// The nearest examples vote.
    Embedding,
    /// A trained model decides alone: the one in `model.path`, or else one trained on the examples.
    Model,
}

/// A model that was trained for these categories. Left out, corbie trains its own on the examples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SequenceModel {
    /// A folder with `model.onnx`, `tokenizer.json` and `config.json` of a sequence-classification model whose labels
    /// are the names of the categories. It is used with `method: model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// How many tokens of a text are read. What the folder says, if left out.
    #[schemars(range(min = 8, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

impl Default for Classification {
    fn default() -> Self {
        Self {
            taxonomy: None,
            method: Method::default(),
            model: SequenceModel::default(),
            max_text_length: 32_768,
            max_batch: 256,
            cache_entries: 4096,
            watch: true,
            stable_indices: true,
            source: None,
            mcp_server: McpServer::default(),
            num_categories: None,
            confidence_threshold: None,
            fallback_category: "general".into(),
        }
    }
}

impl SequenceModel {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Rules => "rules",
            Self::Embedding => "embedding",
            Self::Model => "model",
        }
    }
}
