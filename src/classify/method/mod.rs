//! Classification methods, one file each. A new method needs a file and a variant of [`Method`] (C-51).

mod embedding;
mod hybrid;
mod make;
mod model;
mod sequence;

use std::sync::Arc;

use corbie_infer::heads;
use serde::Serialize;

pub use embedding::Embedding;
pub use hybrid::Hybrid;
pub(super) use make::{With, make};
pub use model::Model;
pub use sequence::Sequence;

use super::learned::Learned;
use super::rules::RuleSet;
use crate::inference;

/// A classification method, ready for use.
#[derive(Debug)]
pub enum Method {
    /// Patterns and words.
    Rules,
    /// k-nearest-neighbour vote of the examples.
    Embedding(Embedding),
    /// Trained heads only.
    Model(Model),
    /// Fine-tuned model from a folder only.
    Sequence(Sequence),
    /// Rules, then words, then the trained heads.
    Hybrid(Hybrid),
}

/// The classification of a text, and the source of the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// One per category; they sum to one.
    pub probabilities: Vec<f32>,
    /// From 0 to 1: the share of training texts with a lower out-of-scope score.
    pub out_of_scope: f32,
    /// The raw out-of-scope score, for comparing texts that are both far out of scope.
    pub strangeness: f32,
    pub by: By,
}

/// The source of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
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
pub enum First {
    Settled(Verdict),
    /// Needs the vector of this text: the corrected text, or the original if `None`.
    Embed(Option<String>),
    /// Needs a model that processes the whole text.
    Read,
}

impl Method {
    /// The part that needs no model call.
    pub fn first(&self, text: &str, rules: &RuleSet) -> First {
        match self {
            Method::Rules => First::Settled(Verdict::by(By::Rules, rules.classify(text))),
            Method::Embedding(method) => method.first(text),
            Method::Model(method) => method.first(text),
            Method::Hybrid(method) => method.first(text, rules),
            Method::Sequence(_) => First::Read,
        }
    }

    /// The verdict for a text and its vector. `text` is the text that was embedded.
    pub fn judge(
        &self,
        text: &str,
        embedding: &corbie_infer::Embedding,
        rules: &RuleSet,
    ) -> Result<Verdict, inference::Error> {
        match self {
            Method::Embedding(method) => method.judge(text, embedding),
            Method::Model(Model(learned)) | Method::Hybrid(Hybrid(learned)) => {
                Ok(Verdict::by(By::Model, learned.classify(text, embedding)?))
            }
            Method::Rules | Method::Sequence(_) => Ok(Verdict::by(By::Rules, rules.classify(text))),
        }
    }

    /// The verdict of a model that processes the whole text.
    pub async fn read(&self, text: String, rules: &RuleSet) -> Result<Verdict, inference::Error> {
        match self {
            Method::Sequence(method) => method.read(text).await,
            _ => Ok(Verdict::by(By::Rules, rules.classify(&text))),
        }
    }

    pub fn learned(&self) -> Option<&Arc<Learned>> {
        match self {
            Method::Embedding(Embedding(learned)) | Method::Model(Model(learned)) | Method::Hybrid(Hybrid(learned)) => {
                Some(learned)
            }
            Method::Rules | Method::Sequence(_) => None,
        }
    }

    /// The method's name and its model, for `/health`.
    pub fn describe(&self) -> String {
        match self {
            Method::Rules => "rules".into(),
            Method::Embedding(Embedding(learned)) => format!("embedding:{}", learned.model()),
            Method::Model(Model(learned)) => format!("model:{}", learned.model()),
            Method::Hybrid(Hybrid(learned)) => format!("hybrid:{}", learned.model()),
            Method::Sequence(method) => format!("model:{}", method.id()),
        }
    }
}

impl Verdict {
    pub fn by(by: By, verdict: heads::Verdict) -> Verdict {
        let heads::Verdict { probabilities, out_of_scope, strangeness } = verdict;
        Verdict { probabilities, out_of_scope, strangeness, by }
    }

    /// The most probable category; the first one on a tie.
    pub fn class(&self) -> usize {
        heads::most_probable(&self.probabilities)
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

impl By {
    pub fn as_str(self) -> &'static str {
        match self {
            By::Rules => "rules",
            By::Words => "lexical",
            By::Embedding => "embedding",
            By::Model => "model",
        }
    }
}
