//! Classification of prompts for the router.

use std::time::Instant;

use super::decide::{CategoryRouting, ClassifierOutput};
use corbie_classify::external_classifier::{ExternalClassifier, ExternalPrediction};
use corbie_classify::model_recommendation::RecommendationInput;
use corbie_classify::taxonomy::Category;
use corbie_classify::{self as classify, Classification};

/// Result of classifying a prompt.
#[derive(Debug, Clone)]
pub struct PromptClassification {
    pub output: ClassifierOutput,
    pub class: usize,
    pub entropy: Option<f64>,
    /// The most probable categories, best first.
    pub top: Vec<(String, f32)>,
    pub method: &'static str,
    pub took: std::time::Duration,
}

/// The external classifier if one is configured, with the built-in classifier as fallback (C-64).
#[derive(Debug, Clone)]
pub struct PromptClassifier {
    external: Option<ExternalClassifier>,
    local: Option<Classification>,
    /// The category of prompts below the confidence threshold.
    fallback: String,
}

/// Number of categories in the result.
const TOP_CATEGORIES: usize = 5;
/// Number of characters of a prompt that the external classifier receives.
const MAX_EXTERNAL_PROMPT_CHARS: usize = 32_768;

impl PromptClassifier {
    pub fn new(
        external: Option<ExternalClassifier>,
        own: Option<Classification>,
        fallback: String,
    ) -> PromptClassifier {
        PromptClassifier { external, local: own, fallback }
    }

    pub fn external(&self) -> Option<&ExternalClassifier> {
        self.external.as_ref()
    }

    /// Classifies a prompt. Returns `None` if that is impossible, for example because the prompt contains no words.
    pub async fn classify(&self, prompt: &str) -> Option<PromptClassification> {
        let started = Instant::now();
        if let Some(external) = &self.external {
            // External classifiers have the same limit as the built-in one.
            match external.classify(truncate_chars(prompt, MAX_EXTERNAL_PROMPT_CHARS)).await {
                Ok(verdict) => return Some(self.classification_of_external(&verdict, started)),
                // The external classifier logs its own state changes.
                Err(error) => tracing::debug!(%error, "external classifier failed"),
            }
        }
        let own = self.local.as_ref()?;
        // The first pages of a long prompt determine its category.
        self.classify_locally(own, truncate_chars(prompt, own.settings().max_text_length), started).await
    }

    /// Result of the external classifier. Its recommended model also applies to a category below the threshold: the
    /// server knew its confidence when it recommended the model.
    fn classification_of_external(&self, verdict: &ExternalPrediction, started: Instant) -> PromptClassification {
        let categories = &verdict.categories;
        let advise = |category: &str| CategoryRouting {
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
        top.truncate(TOP_CATEGORIES);
        PromptClassification {
            output: ClassifierOutput {
                routing: advise(verdict.category()),
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
    async fn classify_locally(
        &self,
        own: &Classification,
        text: &str,
        started: Instant,
    ) -> Option<PromptClassification> {
        let classify::ClassifiedText { text, snapshot: published, prediction: verdict } =
            own.classify(text).await.ok()?;
        let taxonomy = &published.taxonomy;
        let advise = |category: &Category| {
            let facts = RecommendationInput {
                text: &text,
                category,
                confidence: verdict.confidence(),
                out_of_scope: verdict.out_of_scope,
            };
            let advice = taxonomy.routing.recommend(facts);
            CategoryRouting {
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
        let top = verdict.top(TOP_CATEGORIES).into_iter();
        Some(PromptClassification {
            output: ClassifierOutput {
                routing: advise(category),
                confidence: verdict.confidence(),
                fallback: fallback.map(advise),
            },
            class: verdict.class(),
            entropy: Some(verdict.entropy()),
            top: top.map(|(class, score)| (taxonomy.categories[class].name.clone(), score)).collect(),
            method: verdict.source.as_str(),
            took: started.elapsed(),
        })
    }
}

/// The first `most` characters.
fn truncate_chars(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
