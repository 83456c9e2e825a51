//! Classification methods. A new method needs a type and a variant of [`ClassifierBackend`] (C-51).

mod factory;
mod sequence;

use std::sync::Arc;

use corbie_infer::heads;
use serde::Serialize;

pub(super) use factory::{MethodContext, build};
pub use sequence::SequenceMethod;

use super::rules::RuleSet;
use super::training::TrainedClassifier;
use crate::inference;

/// A classification method, ready for use.
#[derive(Debug)]
pub enum ClassifierBackend {
    /// Patterns and words.
    Rules,
    /// k-nearest-neighbour vote of the examples.
    Embedding(EmbeddingMethod),
    /// Trained heads only.
    Model(TrainedHeads),
    /// Fine-tuned model from a folder only.
    Sequence(SequenceMethod),
    /// Rules, then words, then the trained heads.
    Hybrid(HybridMethod),
}

/// Method `embedding`: k-nearest-neighbour vote of the labelled examples.
#[derive(Debug)]
pub struct EmbeddingMethod(pub Arc<TrainedClassifier>);

/// Method `model`: heads trained on the examples classify every text; rules are ignored.
#[derive(Debug)]
pub struct TrainedHeads(pub Arc<TrainedClassifier>);

/// Method `hybrid`: a cascade with early exit. A `certain` rule decides first, then the words, then the embedding
/// model.
#[derive(Debug)]
pub struct HybridMethod(pub Arc<TrainedClassifier>);

/// The classification of a text, and the source of the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// One per category; they sum to one.
    pub probabilities: Vec<f32>,
    /// From 0 to 1: the share of training texts with a lower out-of-scope score.
    pub out_of_scope: f32,
    /// The raw out-of-scope score, for comparing texts that are both far out of scope.
    pub out_of_scope_score: f32,
    pub source: PredictionSource,
}

/// The source of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PredictionSource {
    Rules,
    /// The words alone.
    Words,
    /// The nearest examples.
    Embedding,
    /// A trained model.
    Model,
}

/// The result of classifying a text without a model.
#[derive(Debug)]
pub enum FirstStage {
    Decided(Prediction),
    /// Needs the vector of this text: the corrected text, or the original if `None`.
    NeedsEmbedding(Option<String>),
    /// Needs a model that processes the whole text.
    NeedsModel,
}

impl ClassifierBackend {
    /// The part that needs no model call.
    pub fn first_stage(&self, text: &str, rules: &RuleSet) -> FirstStage {
        match self {
            ClassifierBackend::Rules => {
                FirstStage::Decided(Prediction::from_heads(PredictionSource::Rules, rules.classify(text)))
            }
            ClassifierBackend::Embedding(method) => method.first_stage(text),
            ClassifierBackend::Model(method) => method.first_stage(text),
            ClassifierBackend::Hybrid(method) => method.first_stage(text, rules),
            ClassifierBackend::Sequence(_) => FirstStage::NeedsModel,
        }
    }

    /// The verdict for a text and its vector. `text` is the text that was embedded.
    pub fn classify_embedded(
        &self,
        text: &str,
        embedding: &corbie_infer::Embedding,
        rules: &RuleSet,
    ) -> Result<Prediction, inference::Error> {
        match self {
            ClassifierBackend::Embedding(method) => method.classify_embedded(text, embedding),
            ClassifierBackend::Model(TrainedHeads(learned)) | ClassifierBackend::Hybrid(HybridMethod(learned)) => {
                Ok(Prediction::from_heads(PredictionSource::Model, learned.classify(text, embedding)?))
            }
            ClassifierBackend::Rules | ClassifierBackend::Sequence(_) => {
                Ok(Prediction::from_heads(PredictionSource::Rules, rules.classify(text)))
            }
        }
    }

    /// The verdict of a model that processes the whole text.
    pub async fn classify_text(&self, text: String, rules: &RuleSet) -> Result<Prediction, inference::Error> {
        match self {
            ClassifierBackend::Sequence(method) => method.classify(text).await,
            _ => Ok(Prediction::from_heads(PredictionSource::Rules, rules.classify(&text))),
        }
    }

    pub fn trained(&self) -> Option<&Arc<TrainedClassifier>> {
        match self {
            ClassifierBackend::Embedding(EmbeddingMethod(learned))
            | ClassifierBackend::Model(TrainedHeads(learned))
            | ClassifierBackend::Hybrid(HybridMethod(learned)) => Some(learned),
            ClassifierBackend::Rules | ClassifierBackend::Sequence(_) => None,
        }
    }

    /// The method's name and its model, for `/health`.
    pub fn describe(&self) -> String {
        match self {
            ClassifierBackend::Rules => "rules".into(),
            ClassifierBackend::Embedding(EmbeddingMethod(learned)) => format!("embedding:{}", learned.model()),
            ClassifierBackend::Model(TrainedHeads(learned)) => format!("model:{}", learned.model()),
            ClassifierBackend::Hybrid(HybridMethod(learned)) => format!("hybrid:{}", learned.model()),
            ClassifierBackend::Sequence(method) => format!("model:{}", method.id()),
        }
    }
}

impl EmbeddingMethod {
    fn first_stage(&self, text: &str) -> FirstStage {
        FirstStage::NeedsEmbedding(self.0.correct_spelling(text))
    }

    fn classify_embedded(
        &self,
        text: &str,
        embedding: &corbie_infer::Embedding,
    ) -> Result<Prediction, inference::Error> {
        Ok(Prediction::from_heads(PredictionSource::Embedding, self.0.vote(text, embedding)?))
    }
}

impl TrainedHeads {
    fn first_stage(&self, text: &str) -> FirstStage {
        FirstStage::NeedsEmbedding(self.0.correct_spelling(text))
    }
}

impl HybridMethod {
    fn first_stage(&self, text: &str, rules: &RuleSet) -> FirstStage {
        if let Some(verdict) = rules.certain(text) {
            return FirstStage::Decided(Prediction::from_heads(PredictionSource::Rules, verdict));
        }
        if let Some(verdict) = self.0.early_exit(text) {
            return FirstStage::Decided(Prediction::from_heads(PredictionSource::Words, verdict));
        }
        let corrected = self.0.correct_spelling(text);
        match corrected.as_deref().and_then(|corrected| self.0.early_exit(corrected)) {
            Some(verdict) => FirstStage::Decided(Prediction::from_heads(PredictionSource::Words, verdict)),
            None => FirstStage::NeedsEmbedding(corrected),
        }
    }
}

impl Prediction {
    pub fn from_heads(by: PredictionSource, verdict: heads::Prediction) -> Prediction {
        let heads::Prediction { probabilities, out_of_scope, strangeness } = verdict;
        Prediction { probabilities, out_of_scope, out_of_scope_score: strangeness, source: by }
    }

    /// The most probable category; the first one on a tie.
    pub fn class(&self) -> usize {
        heads::argmax(&self.probabilities)
    }

    pub fn confidence(&self) -> f32 {
        self.probabilities.get(self.class()).copied().unwrap_or_default()
    }

    /// Shannon entropy in bits (C-27).
    pub fn entropy(&self) -> f64 {
        let bits = |probability: &f32| {
            let probability = f64::from(*probability);
            if probability > 0.0 { -probability * probability.log2() } else { 0.0 }
        };
        self.probabilities.iter().map(bits).sum::<f64>().max(0.0)
    }

    /// The `most` best categories, best first.
    pub fn top(&self, most: usize) -> Vec<(usize, f32)> {
        let mut all: Vec<(usize, f32)> = self.probabilities.iter().copied().enumerate().collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        all.truncate(most);
        all
    }
}

impl PredictionSource {
    pub fn as_str(self) -> &'static str {
        match self {
            PredictionSource::Rules => "rules",
            PredictionSource::Words => "lexical",
            PredictionSource::Embedding => "embedding",
            PredictionSource::Model => "model",
        }
    }
}
