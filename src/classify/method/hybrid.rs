//! Method `hybrid`: a cascade with early exit. A `certain` rule decides first, then the words, then the embedding
//! model.

use std::sync::Arc;

use super::{FirstStage, Prediction, PredictionSource};
use crate::classify::rules::RuleSet;
use crate::classify::training::TrainedClassifier;

#[derive(Debug)]
pub struct HybridMethod(pub Arc<TrainedClassifier>);

impl HybridMethod {
    pub(super) fn first_stage(&self, text: &str, rules: &RuleSet) -> FirstStage {
        if let Some(verdict) = rules.certain(text) {
            return FirstStage::Decided(Prediction::from_heads(PredictionSource::Rules, verdict));
        }
        if let Some(verdict) = self.0.early_exit(text) {
            return FirstStage::Decided(Prediction::from_heads(PredictionSource::Words, verdict));
        }
        let mended = self.0.correct_spelling(text);
        match mended.as_deref().and_then(|mended| self.0.early_exit(mended)) {
            Some(verdict) => FirstStage::Decided(Prediction::from_heads(PredictionSource::Words, verdict)),
            None => FirstStage::NeedsEmbedding(mended),
        }
    }
}
