//! `inference`: local models.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;

/// The models that run inside corbie.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Inference {
    /// The model that turns text into vectors.
    #[serde(skip_serializing_if = "EmbeddingModel::is_builtin")]
    pub embedding: EmbeddingModel,
    /// Where models run: `auto`, `cpu` or `gpu`.
    pub device: Device,
    /// How many processor cores a model may use. All there are, but at most 4, if left out.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// How many texts may wait for the model; whoever brings more waits for room.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_waiting: usize,
    /// How long the model may be at a few texts, or take to be loaded. One that takes longer is given up: the calls whose
    /// texts it was at fail, and it is loaded anew.
    pub timeout: Timeout,
}

/// The model that turns text into vectors. Left out, it is the one inside corbie: all-MiniLM-L6-v2, for English.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EmbeddingModel {
    /// A folder with `model.onnx` and `tokenizer.json`, such as an export of MiniLM, bge, e5, gte or Qwen3-Embedding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Which tokens speak for a text: `mean`, `cls` or `last-token`. What the folder says, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// Put before a text that is searched for, such as `query: ` for e5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_prefix: Option<String>,
    /// Put before a text that is searched in, such as `passage: ` for e5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage_prefix: Option<String>,
    /// How many tokens of a text are read. What the folder says, if left out.
    #[schemars(range(min = 8, max = 8192))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

/// Where models run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// On the graphics processor where there is one that corbie can use, and else on the processor.
    #[default]
    Auto,
    /// On the processor.
    Cpu,
    /// On the graphics processor; where corbie cannot use one, it says so and takes the processor.
    #[serde(alias = "cuda")]
    Gpu,
}

/// Which tokens speak for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// All of them, on average: MiniLM, e5, gte.
    Mean,
    /// The first: bge.
    Cls,
    /// The last: Qwen3-Embedding.
    LastToken,
}

impl Default for Inference {
    fn default() -> Self {
        Self {
            embedding: EmbeddingModel::default(),
            device: Device::default(),
            threads: None,
            max_waiting: 1024,
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
