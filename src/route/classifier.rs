//! Who classifies prompts for the router, and what it is told.

use std::time::Instant;

use super::decide::{Advice, Seen};
use crate::classify::advice::Facts;
use crate::classify::taxonomy::Category;
use crate::classify::{self, Classification};

/// What the router is told of a prompt.
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

/// Who classifies.
#[derive(Debug, Clone)]
pub struct Classifier {
    own: Classification,
    /// The category of prompts that nobody is sure of.
    fallback: Option<String>,
}

/// How many categories are told.
const TOP: usize = 5;

impl Classifier {
    pub fn new(own: Classification, fallback: Option<String>) -> Classifier {
        Classifier { own, fallback }
    }

    /// Classifies a prompt. One that cannot be, such as one without words, is not.
    pub async fn look(&self, prompt: &str) -> Option<Looked> {
        let started = Instant::now();
        // A long prompt says in its first pages what it is about.
        let text = clip(prompt, self.own.settings().max_text_length);
        self.own(text, started).await
    }

    async fn own(&self, text: &str, started: Instant) -> Option<Looked> {
        let classify::Classified { text, published, verdict } = self.own.classify(text).await.ok()?;
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
        let named = |name: &String| taxonomy.categories.iter().find(|category| category.name == *name);
        let fallback = self.fallback.as_ref().and_then(named).filter(|fallback| fallback.name != category.name);
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

/// The first so many characters.
fn clip(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
