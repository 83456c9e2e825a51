//! Method `model`: heads trained on the examples classify every text; rules are ignored.

use std::sync::Arc;

use super::FirstStage;
use crate::classify::training::TrainedClassifier;

#[derive(Debug)]
pub struct TrainedHeads(pub Arc<TrainedClassifier>);

impl TrainedHeads {
    pub(super) fn first_stage(&self, text: &str) -> FirstStage {
        FirstStage::NeedsEmbedding(self.0.correct_spelling(text))
    }
}
