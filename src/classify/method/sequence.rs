//! Method `model` with `model.path`: a fine-tuned sequence-classification model from a folder classifies every text.

use std::path::Path;
use std::sync::Arc;

use corbie_infer::{ModelId, SequenceClassifier};

use super::{By, Verdict};
use crate::classify::taxonomy::Taxonomy;
use crate::inference::{self, Aside};

pub struct Sequence {
    model: Arc<SequenceClassifier>,
    /// The category of each output of the model.
    category_of: Arc<[usize]>,
    categories: usize,
    aside: Aside,
}

/// Why a folder's model does not fit a taxonomy.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    #[error("{0}")]
    Model(#[from] corbie_infer::Error),
    #[error("the model's label `{label}` is no category; name the categories as its labels are named")]
    NoCategory { label: String },
    #[error("the model has no label for the category `{category}`; train it for this one too, or take it out")]
    NoLabel { category: String },
}

impl Sequence {
    pub fn open(
        path: &Path,
        max_tokens: Option<usize>,
        threads: usize,
        aside: Aside,
        taxonomy: &Taxonomy,
    ) -> Result<Sequence, Mismatch> {
        let model = SequenceClassifier::open(path, max_tokens, threads)?;
        let place = |label: &String| {
            let place = taxonomy.categories.iter().position(|category| category.name == *label && !category.retired);
            place.ok_or_else(|| Mismatch::NoCategory { label: label.clone() })
        };
        let category_of: Vec<usize> = model.labels().iter().map(place).collect::<Result<_, _>>()?;
        if let Some((_, missing)) = taxonomy.in_use().find(|(place, _)| !category_of.contains(place)) {
            return Err(Mismatch::NoLabel { category: missing.name.clone() });
        }
        Ok(Sequence {
            model: Arc::new(model),
            category_of: category_of.into(),
            categories: taxonomy.categories.len(),
            aside,
        })
    }

    pub fn id(&self) -> &ModelId {
        self.model.id()
    }

    pub(super) async fn read(&self, text: String) -> Result<Verdict, inference::Error> {
        let model = self.model.clone();
        let scored = self.aside.run(move || model.classify(&text)).await??;
        let mut probabilities = vec![0.0; self.categories];
        for (category, probability) in self.category_of.iter().zip(scored) {
            probabilities[*category] = probability;
        }
        // Such a model has no out-of-scope detection.
        Ok(Verdict { probabilities, out_of_scope: 0.0, strangeness: 0.0, by: By::Model })
    }
}

impl std::fmt::Debug for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequence").field("model", self.model.id()).finish_non_exhaustive()
    }
}
