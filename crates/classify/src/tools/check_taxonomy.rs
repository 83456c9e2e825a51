//! Tool `check_taxonomy`: validates a draft taxonomy and classifies sample texts with it.

use std::collections::BTreeMap;

use corbie_mcp::{Arguments, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{expensive_tool, warnings};
use crate::draft_taxonomy::{DraftResult, DraftTaxonomy, TaxonomyDiagnostic};
use crate::taxonomy::Category;
use crate::taxonomy_editor::{TaxonomyEditor, busy};
use corbie_util::number::shortest_f64;

// The text avoids the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Validate the text of a taxonomy without saving it: returns all errors with line and column. \
With `trial_texts`, the taxonomy is also trained and the categories it predicts for these texts are returned; training \
takes seconds and runs for one caller at a time. Changes nothing.";

#[derive(Debug, Deserialize, JsonSchema)]
struct CheckTaxonomyInput {
    /// Taxonomy as YAML, or in the format of the current taxonomy file; at most 1 MiB
    text: String,
    /// Sample texts to categorize with it
    #[serde(default)]
    #[schemars(length(max = 20))]
    trial_texts: Vec<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct CheckTaxonomyOutput {
    /// Whether the taxonomy is valid and can be saved
    valid: bool,
    /// Errors of an invalid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<TaxonomyDiagnostic>")]
    #[schemars(default)]
    problems: Option<Vec<TaxonomyDiagnostic>>,
    /// Categories of a valid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<CategoryCounts>")]
    #[schemars(default)]
    categories: Option<Vec<CategoryCounts>>,
    /// Warnings about a valid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<TaxonomyDiagnostic>")]
    #[schemars(default)]
    warnings: Option<Vec<TaxonomyDiagnostic>>,
    /// Results for the texts of `trial_texts`, in their order
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<TrialResult>")]
    #[schemars(default)]
    trial_results: Option<Vec<TrialResult>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CategoryCounts {
    name: String,
    examples: usize,
    /// Number of `patterns` and `certain` patterns
    patterns: usize,
    words: usize,
}

/// A text with its category or error.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct TrialResult {
    text: String,
    #[serde(flatten)]
    verdict: Option<TrialPrediction>,
    /// Error, if the text cannot be categorized
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    error: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TrialPrediction {
    category: String,
    confidence: f64,
    /// Probability of each category, by name
    probabilities: BTreeMap<String, f64>,
    /// Out-of-scope score of the text, from 0 to 1
    out_of_scope: f64,
    /// Deciding method: rules, lexical, embedding or model
    method: &'static str,
}

pub(super) fn tool(desk: TaxonomyEditor) -> Result<Tool, RegistrationError> {
    expensive_tool::<CheckTaxonomyInput, CheckTaxonomyOutput>("check_taxonomy", "Check a taxonomy", DESCRIPTION).run(
        move |_, arguments: Arguments| {
            let desk = desk.clone();
            async move { Ok::<_, ToolError>(Json(check(&desk, arguments.parse()?).await?)) }
        },
    )
}

async fn check(desk: &TaxonomyEditor, input: CheckTaxonomyInput) -> Result<CheckTaxonomyOutput, ToolError> {
    let CheckTaxonomyInput { text, trial_texts: texts } = input;
    let taxonomy = match desk.check(text).await.map_err(busy)? {
        Ok(taxonomy) => taxonomy,
        Err(problems) => return Ok(CheckTaxonomyOutput { problems: Some(problems), ..CheckTaxonomyOutput::default() }),
    };
    let mut warnings = warnings(&taxonomy, desk);
    let categories = taxonomy.categories.iter().map(category_counts).collect();
    let tried = match texts.is_empty() {
        true => Vec::new(),
        false => {
            let (candidate, tried) = desk.classify_with_draft(taxonomy, &texts).await.map_err(busy)?;
            warnings.extend(candidate.impairment().map(TaxonomyDiagnostic::warning));
            texts.into_iter().zip(tried).map(|(text, tried)| trial_result(text, tried, &candidate)).collect()
        }
    };
    Ok(CheckTaxonomyOutput {
        valid: true,
        problems: None,
        categories: Some(categories),
        warnings: Some(warnings),
        trial_results: Some(tried),
    })
}

fn category_counts(category: &Category) -> CategoryCounts {
    CategoryCounts {
        name: category.name.clone(),
        examples: category.examples.len(),
        patterns: category.patterns.len() + category.certain.len(),
        words: category.words.len(),
    }
}

fn trial_result(text: String, tried: DraftResult, candidate: &DraftTaxonomy) -> TrialResult {
    let verdict = match tried {
        Ok(verdict) => verdict,
        Err(unfit) => return TrialResult { text, error: Some(unfit.to_string()), ..TrialResult::default() },
    };
    let categories = &candidate.taxonomy().categories;
    let probabilities = categories.iter().zip(&verdict.probabilities);
    let said = TrialPrediction {
        category: categories[verdict.class()].name.clone(),
        confidence: shortest_f64(verdict.confidence()),
        probabilities: probabilities.map(|(category, of)| (category.name.clone(), shortest_f64(*of))).collect(),
        out_of_scope: shortest_f64(verdict.out_of_scope),
        method: verdict.source.as_str(),
    };
    TrialResult { text, verdict: Some(said), error: None }
}
