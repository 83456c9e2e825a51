//! Explanation of a verdict: the nearest examples and the rules that matched.
//!
//! Neither affects the verdict. They are computed on request only, so other calls do not pay for them.

use std::sync::Arc;
use std::time::Duration;

use corbie_infer::Purpose;

use super::{Classification, ClassifiedText, PredictionSource, TaxonomySnapshot};

/// An example that is semantically close to a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NearestExample {
    pub(super) text: String,
    /// Index of its category.
    pub(super) class: usize,
    /// Cosine similarity of the two vectors.
    pub(super) similarity: f32,
}

/// Maximum number of examples in an explanation.
const MAX_EXAMPLES: usize = 5;
/// Maximum number of rules in an explanation.
const MAX_RULES: usize = 10;
/// How long to wait for the trained classifier: enough to load it from disk.
const CLASSIFIER_TIMEOUT: Duration = Duration::from_secs(2);
/// Texts with more bytes than this are matched on a blocking thread.
const MAX_INLINE_BYTES: usize = 4096;

impl Classification {
    /// The nearest examples to a text, nearest first. Empty if there is no trained classifier (yet) or a model fails:
    /// the verdict does not depend on them.
    pub(super) async fn nearest(&self, classified: &ClassifiedText<'_>) -> Vec<NearestExample> {
        let ClassifiedText { text, snapshot: published, .. } = classified;
        // Rules can decide while training is still running, which may take minutes.
        let made = tokio::time::timeout(CLASSIFIER_TIMEOUT, published.method(None, self.method_context())).await;
        let Ok(method) = made else { return Vec::new() };
        let Some(learned) = method.trained() else { return Vec::new() };
        let mended = if text.len() <= MAX_INLINE_BYTES { learned.correct_spelling(text) } else { None };
        let asked = mended.unwrap_or_else(|| text.clone().into_owned());
        let embedded = self.0.inference.embed(vec![asked], Purpose::Query).await;
        let Some(embedding) = embedded.ok().and_then(|vectors| vectors.into_iter().next()) else { return Vec::new() };
        let near = learned.nearest(&embedding);
        // Skip the generated placeholders of categories without examples.
        let written = near.filter(|(class, _, _)| !published.taxonomy.categories[*class].examples.is_empty());
        let near = written.map(|(class, text, similarity)| NearestExample { text: text.to_owned(), class, similarity });
        near.take(MAX_EXAMPLES).collect()
    }

    /// The rules that match for the category of a text, deciding rules first. Empty if the rules did not decide.
    pub(super) async fn matched_rules(&self, classified: &ClassifiedText<'_>) -> Vec<String> {
        let ClassifiedText { text, snapshot: published, prediction: verdict } = classified;
        if verdict.source != PredictionSource::Rules {
            return Vec::new();
        }
        let class = verdict.class();
        if text.len() <= MAX_INLINE_BYTES {
            return published.matching_rules(class, text);
        }
        let (published, text): (Arc<TaxonomySnapshot>, String) = (published.clone(), text.clone().into_owned());
        tokio::task::spawn_blocking(move || published.matching_rules(class, &text)).await.unwrap_or_default()
    }
}

impl TaxonomySnapshot {
    fn matching_rules(&self, class: usize, text: &str) -> Vec<String> {
        let mut found = self.rules().matching_rules(class, text, &self.taxonomy);
        found.truncate(MAX_RULES);
        found
    }
}
