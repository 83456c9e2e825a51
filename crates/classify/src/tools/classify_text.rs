//! Tool `classify_text`: the category of a text and the recommended model (C-20 to C-35).

use std::sync::Arc;

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{may_see_examples, render_error};
use crate::model_recommendation::RecommendationInput;
use crate::{Classification, ClassifiedText, Prediction, TaxonomySnapshot, explanation};
use corbie_util::number::shortest_f64;

const DESCRIPTION: &str = "Classify a text: returns its category (name, and index in list_categories), the confidence, \
the recommended model, and whether that model should use reasoning. For many texts, use batch_categorize.";

/// Number of categories in `top`.
const TOP_CATEGORIES: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ClassifyTextInput {
    /// The text to classify
    text: String,
    /// Whether to return the probabilities of all categories and their entropy
    #[serde(default)]
    with_probabilities: bool,
    /// Whether to return the nearest examples and the deciding rules of the taxonomy; untrusted callers get them only
    /// for the built-in taxonomy
    #[serde(default)]
    with_examples: bool,
}

/// Classification of a text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassifyTextOutput {
    /// Index of the category, in the order of list_categories
    pub class: usize,
    /// Probability of the category, from 0 to 1
    pub confidence: f64,
    /// Recommended model
    pub model: String,
    /// Whether that model should reason first
    pub use_reasoning: bool,
    /// Name of the category
    pub category: String,
    /// Out-of-scope score, from 0 to 1; above 0.95 the text probably belongs to no category
    pub out_of_scope: f64,
    /// The most probable categories, best first
    pub top: Vec<CategoryScore>,
    /// Deciding method: rules, lexical, embedding or model
    pub method: String,
    /// Rules that chose the model and reasoning; omitted if the category did
    pub rule: DecidingRules,
    /// Probability of each category, in the order of list_categories
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<f64>")]
    #[schemars(default)]
    pub probabilities: Option<Vec<f64>>,
    /// Entropy of the probabilities in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    #[schemars(default)]
    pub entropy: Option<f64>,
    /// Nearest labelled examples, nearest first; omitted if the method uses no vectors
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<ExampleOutput>")]
    #[schemars(default)]
    pub examples: Option<Vec<ExampleOutput>>,
    /// Patterns and words of the taxonomy that matched; omitted if no rule decided
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    #[schemars(default)]
    pub rules: Option<Vec<String>>,
    /// The first match, if a rule decided
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "MatchedRule")]
    #[schemars(default)]
    pub matched_rule: Option<MatchedRule>,
}

/// A labelled example.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExampleOutput {
    pub text: String,
    pub category: String,
    /// Cosine similarity
    pub similarity: f64,
}

/// A matching rule.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MatchedRule {
    pub category: String,
    /// Pattern or word in the taxonomy
    pub rule: String,
}

/// A category and its probability.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CategoryScore {
    pub category: String,
    pub score: f64,
}

/// The routing rules that decided.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DecidingRules {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

pub(super) fn tool(classification: Classification) -> Result<Tool, RegistrationError> {
    Tool::builder("classify_text")
        .title("Classify text")
        .description(DESCRIPTION)
        .module("corbie::classify")
        .input::<ClassifyTextInput>()
        .output::<Json<ClassifyTextOutput>>()
        .dialect(render_error)
        .run(move |context: Context, arguments: Arguments| {
            let classification = classification.clone();
            async move {
                let ClassifyTextInput { text, with_probabilities, with_examples } = arguments.parse()?;
                let classified = classification.classify(&text).await?;
                let ClassifiedText { text, snapshot: published, prediction: verdict } = &classified;
                let mut output = ClassifyTextOutput::of(text, published, verdict, with_probabilities);
                if with_examples {
                    let seen = may_see_examples(context.caller(), &published.taxonomy);
                    output.explain(&classification, &classified, seen).await;
                }
                Ok::<_, ToolError>(Json(output))
            }
        })
}

impl ClassifyTextOutput {
    /// `text` is the normalized one, so invisible characters do not affect the recommendation either (C-32).
    pub fn of(
        text: &str,
        published: &Arc<TaxonomySnapshot>,
        verdict: &Prediction,
        with_probabilities: bool,
    ) -> ClassifyTextOutput {
        let taxonomy = &published.taxonomy;
        let (class, confidence) = (verdict.class(), verdict.confidence());
        let category = &taxonomy.categories[class];
        let facts = RecommendationInput { text, category, confidence, out_of_scope: verdict.out_of_scope };
        let advice = taxonomy.routing.recommend(facts);
        let scored = |(class, score): (usize, f32)| CategoryScore {
            category: taxonomy.categories[class].name.clone(),
            score: shortest_f64(score),
        };
        ClassifyTextOutput {
            class,
            confidence: shortest_f64(confidence),
            model: advice.model.to_owned(),
            use_reasoning: advice.use_reasoning,
            category: category.name.clone(),
            out_of_scope: shortest_f64(verdict.out_of_scope),
            top: verdict.top(TOP_CATEGORIES).into_iter().map(scored).collect(),
            method: verdict.source.as_str().to_owned(),
            rule: DecidingRules {
                model: advice.model_rule.map(str::to_owned),
                reasoning: advice.reasoning_rule.map(str::to_owned),
            },
            probabilities: with_probabilities
                .then(|| verdict.probabilities.iter().copied().map(shortest_f64).collect()),
            entropy: with_probabilities.then(|| verdict.entropy()),
            examples: None,
            rules: None,
            matched_rule: None,
        }
    }

    /// Adds the explanation of the verdict; leaves it empty if the caller may not see the examples.
    async fn explain(&mut self, classification: &Classification, classified: &ClassifiedText<'_>, seen: bool) {
        let (examples, rules) = match seen {
            true => (classification.nearest(classified).await, classification.matched_rules(classified).await),
            false => (Vec::new(), Vec::new()),
        };
        let categories = &classified.snapshot.taxonomy.categories;
        let near = |near: explanation::NearestExample| ExampleOutput {
            text: near.text,
            category: categories[near.class].name.clone(),
            similarity: shortest_f64(near.similarity),
        };
        self.examples = Some(examples.into_iter().map(near).collect());
        self.matched_rule =
            rules.first().map(|rule| MatchedRule { category: self.category.clone(), rule: rule.clone() });
        self.rules = Some(rules);
    }
}
