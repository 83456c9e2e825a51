//! An embedding with the ID of its model.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Identifies a model and its configuration, so that vectors of different models are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelId(Arc<str>);

/// The output of a model for one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: ModelId,
    /// Unit length, all components finite.
    pub vector: Vec<f32>,
    /// Number of input tokens, including special tokens.
    pub tokens: usize,
    /// The text exceeded the input limit; its end does not contribute to the vector.
    pub truncated: bool,
}

impl Embedding {
    /// Cosine similarity, from -1 to 1. `None` if the vectors come from different models.
    pub fn similarity(&self, other: &Embedding) -> Option<f32> {
        (self.model == other.model).then(|| self.vector.iter().zip(&other.vector).map(|(a, b)| a * b).sum())
    }
}

impl ModelId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ModelId {
    fn from(id: &str) -> ModelId {
        ModelId(id.into())
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
