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
nothing. With `try` the taxonomy is also learned, beside the one in use, and tells the categories of those texts: that \
may take seconds, one caller at a time.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The taxonomy as YAML, or in the format of the file that is in use; 1 MiB at most
    text: String,
    /// Texts to sort with it
    #[serde(rename = "try", default)]
    #[schemars(length(max = 20))]
    texts: Vec<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Output {
    /// Whether it could be saved
    valid: bool,
    /// Every mistake, if it is not valid
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Finding>")]
    #[schemars(default)]
    problems: Option<Vec<Finding>>,
    /// The categories, if it is valid
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Counted>")]
    #[schemars(default)]
    categories: Option<Vec<Counted>>,
    /// What deserves a second look, if it is valid
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Finding>")]
    #[schemars(default)]
    warnings: Option<Vec<Finding>>,
    /// One for each text of `try`, in their order, if it is valid
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Sorted>")]
    #[schemars(default)]
    tried: Option<Vec<Sorted>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Counted {
    name: String,
    examples: usize,
    /// Those that speak for it and those that leave no doubt
    patterns: usize,
    words: usize,
}

/// A text and its category, or why it has none.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Sorted {
    text: String,
    #[serde(flatten)]
    verdict: Option<Said>,
    /// Why it cannot be sorted
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    error: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Said {
    category: String,
    confidence: f64,
    /// The probability of each category, by its name
    probabilities: BTreeMap<String, f64>,
    /// How strange the text is, from 0 to 1
    out_of_scope: f64,
    /// What decided: rules, words, embedding or model
    method: &'static str,
}

pub(super) fn tool(desk: Desk) -> Result<Tool, RegistrationError> {
    costly::<Input, Output>("check_taxonomy", "Check a taxonomy", DESCRIPTION).run(move |_, arguments: Arguments| {
        let desk = desk.clone();
        async move { Ok::<_, ToolError>(Json(check(&desk, arguments.parse()?).await?)) }
    })
}

async fn check(desk: &Desk, input: Input) -> Result<Output, ToolError> {
    let Input { text, texts } = input;
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
        tried: Some(tried),
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
