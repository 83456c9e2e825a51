//! `classification`: taxonomy and classification method.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mcp_server::McpServer;

/// Taxonomy and classification of texts.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classification {
    /// Taxonomy file: categories with their prompts, patterns and examples. Defaults to `taxonomy.yaml` in the user's
    /// configuration folder, or to the built-in taxonomy if there is no such file or `knowledge.store` is set: math,
    /// science, technology, history, general. `corbie taxonomy new` creates a taxonomy file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<PathBuf>,
    /// Where a first own taxonomy is saved while the built-in one is in use; `None` if it cannot be.
    #[serde(skip)]
    pub new_taxonomy: Option<PathBuf>,
    /// Classification method: `hybrid`, `rules`, `embedding` or `model`.
    pub method: ClassificationMethod,
    /// Model trained for these categories.
    #[serde(skip_serializing_if = "SequenceModel::is_absent")]
    pub model: SequenceModel,
    /// Maximum length of a text in characters.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_text_length: usize,
    /// Maximum number of texts per call of `batch_categorize`.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_batch: usize,
    /// Number of cached results. Results of long texts are not cached.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub cache_entries: usize,
    /// Reload the taxonomy file when it changes. SIGHUP reloads it at any time.
    pub watch: bool,
    /// Keep the index of each category across reloads: new categories are appended, and the index of a removed category
    /// stays unused until the next start.
    pub stable_indices: bool,
    /// Classifier of routed prompts: `builtin` for corbie itself, or `mcp` for the server in `mcp_server`. Defaults to
    /// `builtin`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Classification server for prompts, used with `type: mcp`. While it is unavailable, corbie classifies prompts
    /// itself.
    #[serde(skip_serializing_if = "McpServer::is_absent")]
    pub mcp_server: McpServer,
    /// Number of categories that the server must have; a server with another number is not used. Any number if unset.
    #[schemars(range(min = 1, max = 10_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_categories: Option<usize>,
    /// Minimum confidence, from 0 to 1. A prompt below it is assigned to `fallback_category`. Defaults to 0.6.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence_threshold: Option<f64>,
    /// Category of prompts that fit no other category well enough.
    #[schemars(length(min = 1, max = 1024))]
    pub fallback_category: String,
}

/// Classification method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClassificationMethod {
    /// Rules for clear matches, unambiguous words, and the embedding model for all other texts.
    #[default]
    Hybrid,
    /// Patterns and words only; no model is loaded.
    Rules,
    /// Vote of the nearest examples.
    Embedding,
    /// A trained model alone: the one in `model.path`, or one trained on the examples.
    Model,
}

/// Model trained for these categories. If unset, corbie trains one on the examples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SequenceModel {
    /// Folder with `model.onnx`, `tokenizer.json` and `config.json` of a sequence classification model whose labels are
    /// the names of the categories. Used with `method: model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Maximum number of tokens per text. Defaults to the limit in the model folder.
    #[schemars(range(min = 8, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

impl Default for Classification {
    fn default() -> Self {
        Self {
            taxonomy: None,
            new_taxonomy: None,
            method: ClassificationMethod::default(),
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

impl std::str::FromStr for ClassificationMethod {
    type Err = String;

    fn from_str(word: &str) -> Result<ClassificationMethod, String> {
        let all = [
            ClassificationMethod::Hybrid,
            ClassificationMethod::Rules,
            ClassificationMethod::Embedding,
            ClassificationMethod::Model,
        ];
        let found = all.into_iter().find(|method| method.as_str() == word);
        found.ok_or_else(|| "use `hybrid`, `rules`, `embedding` or `model`".into())
    }
}

impl ClassificationMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Rules => "rules",
            Self::Embedding => "embedding",
            Self::Model => "model",
        }
    }
}
