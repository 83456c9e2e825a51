//! Method `embedding`: k-nearest-neighbour vote of the labelled examples.

use std::sync::Arc;

use super::{FirstStage, Prediction, PredictionSource};
use crate::classify::training::TrainedClassifier;
use crate::inference;

#[derive(Debug)]
pub struct EmbeddingMethod(pub Arc<TrainedClassifier>);

impl EmbeddingMethod {
    pub(super) fn first_stage(&self, text: &str) -> FirstStage {
        FirstStage::NeedsEmbedding(self.0.correct_spelling(text))
    }

    pub(super) fn classify_embedded(
        &self,
        text: &str,
        embedding: &corbie_infer::Embedding,
    ) -> Result<Prediction, inference::Error> {
        Ok(Prediction::from_heads(PredictionSource::Embedding, self.0.vote(text, embedding)?))
    }
}
