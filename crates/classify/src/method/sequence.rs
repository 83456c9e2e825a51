//! Method `model` with `model.path`: a fine-tuned sequence-classification model from a folder classifies every text.

use std::path::Path;
use std::sync::Arc;

use corbie_infer::{ModelId, SequenceClassifier};

use super::{Prediction, PredictionSource};
use crate::inference::{self, CustomModelExecutor};
use crate::taxonomy::Taxonomy;

pub struct SequenceMethod {
    model: Arc<SequenceClassifier>,
    /// The category of each output of the model.
    category_of: Arc<[usize]>,
    categories: usize,
    executor: CustomModelExecutor,
}

/// Why a folder's model does not fit a taxonomy.
#[derive(Debug, thiserror::Error)]
pub enum SequenceModelError {
    #[error("{0}")]
    Model(#[from] corbie_infer::Error),
    #[error("the model's label `{label}` is not a category; use the model's labels as category names")]
    NoCategory { label: String },
    #[error("the model has no label for the category `{category}`; retrain the model with it, or remove the category")]
    NoLabel { category: String },
}

impl SequenceMethod {
    pub fn open(
        path: &Path,
        max_tokens: Option<usize>,
        threads: usize,
        aside: CustomModelExecutor,
        taxonomy: &Taxonomy,
    ) -> Result<SequenceMethod, SequenceModelError> {
        let model = SequenceClassifier::open(path, max_tokens, threads)?;
        let place = |label: &String| {
            let place = taxonomy.categories.iter().position(|category| category.name == *label && !category.retired);
            place.ok_or_else(|| SequenceModelError::NoCategory { label: label.clone() })
        };
        let category_of: Vec<usize> = model.labels().iter().map(place).collect::<Result<_, _>>()?;
        if let Some((_, missing)) = taxonomy.active_categories().find(|(place, _)| !category_of.contains(place)) {
            return Err(SequenceModelError::NoLabel { category: missing.name.clone() });
        }
        Ok(SequenceMethod {
            model: Arc::new(model),
            category_of: category_of.into(),
            categories: taxonomy.categories.len(),
            executor: aside,
        })
    }

    pub fn id(&self) -> &ModelId {
        self.model.id()
    }

    pub(super) async fn classify(&self, text: String) -> Result<Prediction, inference::Error> {
        let model = self.model.clone();
        let scored = self.executor.run(move || model.classify(&text)).await??;
        let mut probabilities = vec![0.0; self.categories];
        for (category, probability) in self.category_of.iter().zip(scored) {
            probabilities[*category] = probability;
        }
        // Such a model has no out-of-scope detection.
        Ok(Prediction { probabilities, out_of_scope: 0.0, out_of_scope_score: 0.0, source: PredictionSource::Model })
    }
}

impl std::fmt::Debug for SequenceMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequence").field("model", self.model.id()).finish_non_exhaustive()
    }
}
