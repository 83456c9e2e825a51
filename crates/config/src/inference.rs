//! `inference`: local models.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;

/// Local models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Inference {
    /// Embedding model.
    #[serde(skip_serializing_if = "EmbeddingModel::is_builtin")]
    pub embedding: EmbeddingModel,
    /// Device that runs the models: `auto`, `cpu` or `gpu`.
    pub device: Device,
    /// Maximum number of processor cores for a model. Defaults to all cores, at most 4.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Maximum number of texts in the queue of the model. Further requests wait for space in the queue.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_queued: usize,
    /// Timeout for loading the model and for one batch of texts. After a timeout, the requests of the batch fail and
    /// the model is reloaded.
    pub timeout: Timeout,
}

/// Embedding model. Defaults to the built-in model all-MiniLM-L6-v2, for English.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingModel {
    /// Folder with `model.onnx` and `tokenizer.json`, such as an export of MiniLM, bge, e5, gte or Qwen3-Embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Pooling of token vectors: `mean`, `cls` or `last-token`. Defaults to the setting in the model folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// Prefix of queries, such as `query: ` for e5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_prefix: Option<String>,
    /// Prefix of passages, such as `passage: ` for e5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage_prefix: Option<String>,
    /// Maximum number of tokens per text. Defaults to the limit in the model folder.
    #[schemars(range(min = 8, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

/// Device that runs the models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// GPU if corbie can use one, otherwise CPU.
    #[default]
    Auto,
    /// CPU.
    Cpu,
    /// GPU. If corbie cannot use one, it logs a warning and uses the CPU.
    #[serde(alias = "cuda")]
    Gpu,
}

/// Pooling of token vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// Mean of all tokens: MiniLM, e5, gte.
    Mean,
    /// First token: bge.
    Cls,
    /// Last token: Qwen3-Embedding.
    LastToken,
}

impl Default for Inference {
    fn default() -> Self {
        Self {
            embedding: EmbeddingModel::default(),
            device: Device::default(),
            threads: None,
            max_queued: 1024,
            timeout: Timeout::seconds(120),
        }
    }
}

impl Inference {
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from).min(4))
    }
}

impl EmbeddingModel {
    /// Whether the built-in model is used: no setting was changed.
    pub fn is_builtin(&self) -> bool {
        *self == Self::default()
    }

    /// Keys for a custom model that are set without `path`.
    pub fn unused(&self) -> Vec<&'static str> {
        let keys = [
            ("pooling", self.pooling.is_some()),
            ("query_prefix", self.query_prefix.is_some()),
            ("passage_prefix", self.passage_prefix.is_some()),
            ("max_tokens", self.max_tokens.is_some()),
        ];
        keys.into_iter().filter(|(_, given)| *given && self.path.is_none()).map(|(key, _)| key).collect()
    }
}

/// The name of a model's folder, without its path, which must not be disclosed.
pub fn model_dir_name(path: &std::path::Path) -> String {
    path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
}
