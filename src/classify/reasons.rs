//! Explanation of a verdict: the nearest examples and the rules that matched.
//!
//! Neither affects the verdict. They are computed on request only, so other calls do not pay for them.

use std::sync::Arc;
use std::time::Duration;

use corbie_infer::Purpose;

use super::{By, Classification, Classified, Published};

/// An example that is semantically close to a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Near {
    pub(super) text: String,
    /// Index of its category.
    pub(super) class: usize,
    /// Cosine similarity of the two vectors.
    pub(super) similarity: f32,
}

/// Maximum number of examples in an explanation.
const MOST_EXAMPLES: usize = 5;
/// Maximum number of rules in an explanation.
const MOST_RULES: usize = 10;
/// How long to wait for the trained classifier: enough to load it from disk.
const PATIENCE: Duration = Duration::from_secs(2);
/// Texts with more bytes than this are matched on a blocking thread.
const LONG: usize = 4096;

impl Classification {
    /// The nearest examples to a text, nearest first. Empty if there is no trained classifier (yet) or a model fails:
    /// the verdict does not depend on them.
    pub(super) async fn nearest(&self, classified: &Classified<'_>) -> Vec<Near> {
        let Classified { text, published, .. } = classified;
        // Rules can decide while training is still running, which may take minutes.
        let made = tokio::time::timeout(PATIENCE, published.method(None, self.with_settings())).await;
        let Ok(method) = made else { return Vec::new() };
        let Some(learned) = method.learned() else { return Vec::new() };
        let mended = if text.len() <= LONG { learned.mend(text) } else { None };
        let asked = mended.unwrap_or_else(|| text.clone().into_owned());
        let embedded = self.0.inference.embed(vec![asked], Purpose::Query).await;
        let Some(embedding) = embedded.ok().and_then(|vectors| vectors.into_iter().next()) else { return Vec::new() };
        let near = learned.nearest(&embedding);
        // Skip the generated placeholders of categories without examples.
        let written = near.filter(|(class, _, _)| !published.taxonomy.categories[*class].examples.is_empty());
        let near = written.map(|(class, text, similarity)| Near { text: text.to_owned(), class, similarity });
        near.take(MOST_EXAMPLES).collect()
    }

    /// The rules that match for the category of a text, deciding rules first. Empty if the rules did not decide.
    pub(super) async fn fired(&self, classified: &Classified<'_>) -> Vec<String> {
        let Classified { text, published, verdict } = classified;
        if verdict.by != By::Rules {
            return Vec::new();
        }
        let class = verdict.class();
        if text.len() <= LONG {
            return published.speaking_for(class, text);
        }
        let (published, text): (Arc<Published>, String) = (published.clone(), text.clone().into_owned());
        tokio::task::spawn_blocking(move || published.speaking_for(class, &text)).await.unwrap_or_default()
    }
}

impl Published {
    fn speaking_for(&self, class: usize, text: &str) -> Vec<String> {
        let mut found = self.rules().speaking_for(class, text, &self.taxonomy);
        found.truncate(MOST_RULES);
        found
    }
}
