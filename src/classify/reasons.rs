//! What a verdict can be shown with: the examples nearest to a text, and the rules that were found in it.
//!
//! Neither has a say in the verdict. They are looked up for those who ask, so that nobody else pays for them.

use std::sync::Arc;
use std::time::Duration;

use corbie_infer::Purpose;

use super::{By, Classification, Classified, Published};

/// An example that is near a text in meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Near {
    pub(super) text: String,
    /// The number of its category.
    pub(super) class: usize,
    /// The cosine of the two vectors.
    pub(super) similarity: f32,
}

/// How many examples are shown with a verdict.
const MOST_EXAMPLES: usize = 5;
/// How many rules are shown with a verdict.
const MOST_RULES: usize = 10;
/// How long what was learned is waited for: time enough to load it.
const PATIENCE: Duration = Duration::from_secs(2);
/// A text of more bytes than this is looked at aside.
const LONG: usize = 4096;

impl Classification {
    /// The examples nearest to a text, nearest first. None where nothing was learned (yet), or a model fails: the verdict
    /// is there without them.
    pub(super) async fn nearest(&self, classified: &Classified<'_>) -> Vec<Near> {
        let Classified { text, published, .. } = classified;
        // Rules can decide while the examples are still being learned, which may take minutes.
        let made = tokio::time::timeout(PATIENCE, published.method(None, self.with_settings())).await;
        let Ok(method) = made else { return Vec::new() };
        let Some(learned) = method.learned() else { return Vec::new() };
        let mended = if text.len() <= LONG { learned.mend(text) } else { None };
        let asked = mended.unwrap_or_else(|| text.clone().into_owned());
        let embedded = self.0.inference.embed(vec![asked], Purpose::Query).await;
        let Some(embedding) = embedded.ok().and_then(|vectors| vectors.into_iter().next()) else { return Vec::new() };
        let near = learned.nearest(&embedding);
        // What stands in for missing examples was written by nobody.
        let written = near.filter(|(class, _, _)| !published.taxonomy.categories[*class].examples.is_empty());
        let near = written.map(|(class, text, similarity)| Near { text: text.to_owned(), class, similarity });
        near.take(MOST_EXAMPLES).collect()
    }

    /// The rules that speak for the category of a text, those that decided first. None where something else decided.
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
