//! Tool `check_taxonomy`: validates a draft taxonomy and classifies sample texts with it.

use std::collections::BTreeMap;

use corbie_mcp::{Arguments, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{costly, short, warnings};
use crate::classify::candidate::{Candidate, Finding, Tried};
use crate::classify::desk::Desk;
use crate::classify::taxonomy::Category;

// The text avoids the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Checks the text of a taxonomy and tells every mistake with its line and column; it changes \
nothing. With `trial_texts` the taxonomy is also learned, beside the one in use, and tells the categories of those texts: that \
may take seconds, one caller at a time.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Taxonomy as YAML, or in the format of the current taxonomy file; at most 1 MiB
    text: String,
    /// Sample texts to categorize with it
    #[serde(default)]
    #[schemars(length(max = 20))]
    trial_texts: Vec<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Output {
    /// Whether the taxonomy is valid and can be saved
    valid: bool,
    /// Errors of an invalid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Finding>")]
    #[schemars(default)]
    problems: Option<Vec<Finding>>,
    /// Categories of a valid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Counted>")]
    #[schemars(default)]
    categories: Option<Vec<Counted>>,
    /// Warnings about a valid taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Finding>")]
    #[schemars(default)]
    warnings: Option<Vec<Finding>>,
    /// Results for the texts of `trial_texts`, in their order
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Sorted>")]
    #[schemars(default)]
    trial_results: Option<Vec<Sorted>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counted {
    name: String,
    examples: usize,
    /// Number of `patterns` and `certain` patterns
    patterns: usize,
    words: usize,
}

/// A text with its category or error.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Sorted {
    text: String,
    #[serde(flatten)]
    verdict: Option<Said>,
    /// Error, if the text cannot be categorized
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    error: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Said {
    category: String,
    confidence: f64,
    /// Probability of each category, by name
    probabilities: BTreeMap<String, f64>,
    /// Out-of-scope score of the text, from 0 to 1
    out_of_scope: f64,
    /// Deciding method: rules, lexical, embedding or model
    method: &'static str,
}

pub(super) fn tool(desk: Desk) -> Result<Tool, RegistrationError> {
    costly::<Input, Output>("check_taxonomy", "Check a taxonomy", DESCRIPTION).run(move |_, arguments: Arguments| {
        let desk = desk.clone();
        async move { Ok::<_, ToolError>(Json(check(&desk, arguments.parse()?).await?)) }
    })
}

async fn check(desk: &Desk, input: Input) -> Result<Output, ToolError> {
    let Input { text, trial_texts: texts } = input;
    let taxonomy = match desk.check(text).await? {
        Ok(taxonomy) => taxonomy,
        Err(problems) => return Ok(Output { problems: Some(problems), ..Output::default() }),
    };
    let mut warnings = warnings(&taxonomy, desk);
    let categories = taxonomy.categories.iter().map(counted).collect();
    let tried = match texts.is_empty() {
        true => Vec::new(),
        false => {
            let (candidate, tried) = desk.try_out(taxonomy, &texts).await?;
            warnings.extend(candidate.impairment().map(Finding::remark));
            texts.into_iter().zip(tried).map(|(text, tried)| sorted(text, tried, &candidate)).collect()
        }
    };
    Ok(Output {
        valid: true,
        problems: None,
        categories: Some(categories),
        warnings: Some(warnings),
        trial_results: Some(tried),
    })
}

fn counted(category: &Category) -> Counted {
    Counted {
        name: category.name.clone(),
        examples: category.examples.len(),
        patterns: category.patterns.len() + category.certain.len(),
        words: category.words.len(),
    }
}

fn sorted(text: String, tried: Tried, candidate: &Candidate) -> Sorted {
    let verdict = match tried {
        Ok(verdict) => verdict,
        Err(unfit) => return Sorted { text, error: Some(unfit.to_string()), ..Sorted::default() },
    };
    let categories = &candidate.taxonomy().categories;
    let probabilities = categories.iter().zip(&verdict.probabilities);
    let said = Said {
        category: categories[verdict.class()].name.clone(),
        confidence: short(verdict.confidence()),
        probabilities: probabilities.map(|(category, of)| (category.name.clone(), short(*of))).collect(),
        out_of_scope: short(verdict.out_of_scope),
        method: verdict.by.as_str(),
    };
    Sorted { text, verdict: Some(said), error: None }
}
