//! Tool `classify_text`: the category of a text and the recommended model (C-20 to C-35).

use std::sync::Arc;

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{dialect, may_see_examples};
use crate::classify::advice::Facts;
use crate::classify::{Classification, Classified, Published, Verdict, reasons};

const DESCRIPTION: &str = "Classifies a text: tells the number of its category (as listed by list_categories), how \
sure that is, the recommended model, and whether that model should reason first.";

/// Number of categories in `top`.
const TOP: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The text to classify
    text: String,
    /// Whether to return the probabilities of all categories and their entropy
    #[serde(default)]
    with_probabilities: bool,
    /// Whether to return the examples of the taxonomy nearest in meaning and the rules that decided; untrusted callers
    /// get them of the taxonomy inside corbie only
    #[serde(default)]
    with_examples: bool,
}

/// What is told about a text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Output {
    /// The number of the category, counted from 0 in the order of list_categories
    pub class: usize,
    /// The probability of that category, from 0 to 1
    pub confidence: f64,
    /// The recommended model
    pub model: String,
    /// Whether that model should reason first
    pub use_reasoning: bool,
    /// The name of the category
    pub category: String,
    /// How strange the text is beside everything known, from 0 to 1; above 0.95 it probably belongs to no category
    pub out_of_scope: f64,
    /// The most probable categories, best first
    pub top: Vec<Scored>,
    /// What decided: rules, words, embedding or model
    pub method: String,
    /// The rules that chose the model and the reasoning; left out where the category did
    pub rule: Chosen,
    /// One probability for each category, in the order of list_categories
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<f64>")]
    #[schemars(default)]
    pub probabilities: Option<Vec<f64>>,
    /// How undecided the probabilities are, in bits
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    #[schemars(default)]
    pub entropy: Option<f64>,
    /// The labelled examples nearest in meaning, nearest first; none where the method has no vectors
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Near>")]
    #[schemars(default)]
    pub examples: Option<Vec<Near>>,
    /// The patterns and words of the taxonomy that spoke for the category; none where no rule decided
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    #[schemars(default)]
    pub rules: Option<Vec<String>>,
    /// The first of them, where a rule decided
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fired")]
    #[schemars(default)]
    pub fired: Option<Fired>,
}

/// A labelled example.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Near {
    pub text: String,
    pub category: String,
    /// The cosine of the angle between the two meanings: 1 for the same
    pub similarity: f64,
}

/// A rule that decided.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Fired {
    pub category: String,
    /// The pattern or word, as the taxonomy has it
    pub rule: String,
}

/// A category and its probability.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scored {
    pub category: String,
    pub score: f64,
}

/// The rules that decided.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chosen {
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
        .input::<Input>()
        .output::<Json<Output>>()
        .dialect(dialect)
        .run(move |context: Context, arguments: Arguments| {
            let classification = classification.clone();
            async move {
                let Input { text, with_probabilities, with_examples } = arguments.parse()?;
                let classified = classification.classify(&text).await?;
                let Classified { text, published, verdict } = &classified;
                let mut output = Output::of(text, published, verdict, with_probabilities);
                if with_examples {
                    let seen = may_see_examples(context.caller(), &published.taxonomy);
                    output.explain(&classification, &classified, seen).await;
                }
                Ok::<_, ToolError>(Json(output))
            }
        })
}

impl Output {
    /// `text` is the normalized one, so invisible characters do not affect the recommendation either (C-32).
    pub fn of(text: &str, published: &Arc<Published>, verdict: &Verdict, with_probabilities: bool) -> Output {
        let taxonomy = &published.taxonomy;
        let (class, confidence) = (verdict.class(), verdict.confidence());
        let category = &taxonomy.categories[class];
        let facts = Facts { text, category, confidence, out_of_scope: verdict.out_of_scope };
        let advice = taxonomy.routing.advise(facts);
        let scored = |(class, score): (usize, f32)| Scored {
            category: taxonomy.categories[class].name.clone(),
            score: short(score),
        };
        Output {
            class,
            confidence: short(confidence),
            model: advice.model.to_owned(),
            use_reasoning: advice.use_reasoning,
            category: category.name.clone(),
            out_of_scope: short(verdict.out_of_scope),
            top: verdict.top(TOP).into_iter().map(scored).collect(),
            method: verdict.by.as_str().to_owned(),
            rule: Chosen {
                model: advice.model_rule.map(str::to_owned),
                reasoning: advice.reasoning_rule.map(str::to_owned),
            },
            probabilities: with_probabilities.then(|| verdict.probabilities.iter().copied().map(short).collect()),
            entropy: with_probabilities.then(|| verdict.entropy()),
            examples: None,
            rules: None,
            fired: None,
        }
    }

    /// Adds the explanation of the verdict; leaves it empty if the caller may not see the examples.
    async fn explain(&mut self, classification: &Classification, classified: &Classified<'_>, seen: bool) {
        let (examples, rules) = match seen {
            true => (classification.nearest(classified).await, classification.fired(classified).await),
            false => (Vec::new(), Vec::new()),
        };
        let categories = &classified.published.taxonomy.categories;
        let near = |near: reasons::Near| Near {
            text: near.text,
            category: categories[near.class].name.clone(),
            similarity: short(near.similarity),
        };
        self.examples = Some(examples.into_iter().map(near).collect());
        self.fired = rules.first().map(|rule| Fired { category: self.category.clone(), rule: rule.clone() });
        self.rules = Some(rules);
    }
}

/// Widens a number without adding digits: 0.92, not 0.920000017.
pub fn short(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_more_digits_than_they_need() {
        assert_eq!(short(0.92f32).to_string(), "0.92");
        assert_eq!(short(1.0f32), 1.0);
        assert_eq!(short(4.2e-8f32).to_string(), "0.000000042");
    }
}
