//! A text's vector, with the model that made it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Names a model and the way it was made, so that vectors of two models are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelId(Arc<str>);

/// What a model made of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    pub model: ModelId,
    /// Of length one, every number finite.
    pub vector: Vec<f32>,
    /// How many tokens the model read, its own around the text included.
    pub tokens: usize,
    /// The text was longer than the model reads; its end has no part in the vector.
    pub truncated: bool,
}

impl Embedding {
    /// How alike two texts are, from -1 to 1. None where two models made the vectors: the number would mean nothing.
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
