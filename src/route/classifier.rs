//! Classification of prompts for the router.

use std::time::Instant;

use super::decide::{Advice, Seen};
use crate::classify::advice::Facts;
use crate::classify::taxonomy::Category;
use crate::classify::{self, Classification};
use crate::upstream::{RemoteClassifier, RemoteVerdict};

/// Result of classifying a prompt.
#[derive(Debug, Clone)]
pub struct Looked {
    pub seen: Seen,
    pub class: usize,
    pub entropy: Option<f64>,
    /// The most probable categories, best first.
    pub top: Vec<(String, f32)>,
    pub method: &'static str,
    pub took: std::time::Duration,
}

/// The external classifier if one is configured, with the built-in classifier as fallback (C-64).
#[derive(Debug, Clone)]
pub struct Classifier {
    external: Option<RemoteClassifier>,
    own: Option<Classification>,
    /// The category of prompts below the confidence threshold.
    fallback: String,
}

/// Number of categories in the result.
const TOP: usize = 5;
/// Number of characters of a prompt that the external classifier receives.
const LONGEST: usize = 32_768;

impl Classifier {
    pub fn new(external: Option<RemoteClassifier>, own: Option<Classification>, fallback: String) -> Classifier {
        Classifier { external, own, fallback }
    }

    pub fn external(&self) -> Option<&RemoteClassifier> {
        self.external.as_ref()
    }

    /// Classifies a prompt. Returns `None` if that is impossible, for example because the prompt contains no words.
    pub async fn look(&self, prompt: &str) -> Option<Looked> {
        let started = Instant::now();
        if let Some(external) = &self.external {
            // External classifiers have the same limit as the built-in one.
            match external.classify(clip(prompt, LONGEST)).await {
                Ok(verdict) => return Some(self.told(&verdict, started)),
                // The external classifier logs its own state changes.
                Err(error) => tracing::debug!(%error, "the external classifier did not answer"),
            }
        }
        let own = self.own.as_ref()?;
        // The first pages of a long prompt determine its category.
        self.found(own, clip(prompt, own.settings().max_text_length), started).await
    }

    /// Result of the external classifier. Its recommended model also applies to a category below the threshold: the
    /// server knew its confidence when it recommended the model.
    fn told(&self, verdict: &RemoteVerdict, started: Instant) -> Looked {
        let categories = &verdict.categories;
        let advise = |category: &str| Advice {
            category: category.to_owned(),
            system_prompt: categories.system_prompt(category).map(str::to_owned),
            model: Some(verdict.model.clone()),
            use_reasoning: verdict.use_reasoning,
            rule: None,
        };
        let known = categories.index(&self.fallback).is_some() && self.fallback != verdict.category();
        let mut top: Vec<(String, f32)> = match &verdict.probabilities {
            Some(probabilities) => categories.names().iter().cloned().zip(probabilities.iter().copied()).collect(),
            None => vec![(verdict.category().to_owned(), verdict.confidence)],
        };
        top.sort_by(|a, b| b.1.total_cmp(&a.1));
        top.truncate(TOP);
        Looked {
            seen: Seen {
                advice: advise(verdict.category()),
                confidence: verdict.confidence,
                fallback: known.then(|| advise(&self.fallback)),
            },
            class: verdict.class,
            entropy: verdict.entropy.map(f64::from),
            top,
            method: "external",
            took: started.elapsed(),
        }
    }

    /// Result of the built-in classifier.
    async fn found(&self, own: &Classification, text: &str, started: Instant) -> Option<Looked> {
        let classify::Classified { text, published, verdict } = own.classify(text).await.ok()?;
        let taxonomy = &published.taxonomy;
        let advise = |category: &Category| {
            let facts =
                Facts { text: &text, category, confidence: verdict.confidence(), out_of_scope: verdict.out_of_scope };
            let advice = taxonomy.routing.advise(facts);
            Advice {
                category: category.name.clone(),
                system_prompt: Some(category.system_prompt.clone()),
                model: Some(advice.model.to_owned()),
                use_reasoning: advice.use_reasoning,
                rule: advice.model_rule.map(str::to_owned),
            }
        };
        let category = &taxonomy.categories[verdict.class()];
        let named = taxonomy.categories.iter().find(|category| category.name == self.fallback);
        let fallback = named.filter(|fallback| fallback.name != category.name);
        let top = verdict.top(TOP).into_iter();
        Some(Looked {
            seen: Seen { advice: advise(category), confidence: verdict.confidence(), fallback: fallback.map(advise) },
            class: verdict.class(),
            entropy: Some(verdict.entropy()),
            top: top.map(|(class, score)| (taxonomy.categories[class].name.clone(), score)).collect(),
            method: verdict.by.as_str(),
            took: started.elapsed(),
        })
    }
}

/// The first `most` characters.
fn clip(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
