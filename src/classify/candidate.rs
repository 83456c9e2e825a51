//! Draft taxonomy: validated and tried without touching the live one.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::learned::Learned;
use super::method::{Verdict, With};
use super::{Published, Taxonomy, Unfit, text};
use crate::config::{ConfigError, Problem};

/// A finding in a text with its position.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Finding {
    /// Description of the problem, with the key it is about
    message: String,
    /// Line, starting at 1
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    #[schemars(default)]
    line: Option<usize>,
    /// Column, starting at 1, in characters
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    #[schemars(default)]
    column: Option<usize>,
    /// Suggested correction
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    hint: Option<String>,
}

/// A draft taxonomy with its method, ready to classify.
#[derive(Debug)]
pub(super) struct Candidate(Arc<Published>);

/// The result of a draft for one text.
pub(super) type Tried = Result<Arc<Verdict>, Unfit>;

/// Maximum number of diagnostics per text.
const MOST_TOLD: usize = 100;

/// Parses a text in the format of this file name, or as YAML. Compiles every pattern, so call it on a blocking thread.
pub(super) fn read(text: &str, file: Option<&Path>) -> Result<Taxonomy, Vec<Finding>> {
    let read = file.map_or_else(|| Taxonomy::parse(text), |file| Taxonomy::parse_for(text, file));
    read.map_err(|error| mistakes(&error))
}

pub(super) fn mistakes(error: &ConfigError) -> Vec<Finding> {
    error.problems.iter().take(MOST_TOLD).map(Finding::mistake).collect()
}

pub(super) fn remarks(taxonomy: &Taxonomy) -> Vec<Finding> {
    taxonomy.remarks().into_iter().take(MOST_TOLD).map(Finding::remark).collect()
}

impl Finding {
    pub(super) fn remark(message: String) -> Finding {
        Finding { message, line: None, column: None, hint: None }
    }

    fn mistake(problem: &Problem) -> Finding {
        let position = problem.origin.as_ref().and_then(|origin| origin.position);
        // The position and the hint have separate fields.
        let message = Problem { origin: None, suggestion: None, ..problem.clone() }.to_string();
        Finding {
            message,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            hint: problem.suggestion.as_ref().map(|suggestion| format!("did you mean `{suggestion}`?")),
        }
    }
}

impl Candidate {
    /// Builds the configured method and reuses a trained classifier if the examples are the same. Dropping the future
    /// cancels the work.
    pub(super) async fn learn(taxonomy: Taxonomy, before: Option<Arc<Learned>>, with: With<'_>) -> Option<Candidate> {
        // Compiling many patterns blocks the thread.
        let made = tokio::task::spawn_blocking(move || Published::new(taxonomy, 0));
        let published = Arc::new(made.await.ok()?);
        published.make(before, with).await;
        Some(Candidate(published))
    }

    pub(super) fn taxonomy(&self) -> &Taxonomy {
        &self.0.taxonomy
    }

    /// Why a fallback method is in use.
    pub(super) fn impairment(&self) -> Option<String> {
        self.0.impairment()
    }

    pub(super) async fn ask(&self, texts: &[String], with: With<'_>) -> Vec<Tried> {
        let longest = with.settings.max_text_length;
        let clean: Vec<_> = texts.iter().map(|text| text::clean(text, longest)).collect();
        let fit: Vec<&str> = clean.iter().flatten().map(AsRef::as_ref).collect();
        let mut verdicts = self.0.classify_many(&fit, with).await.into_iter();
        let tried = clean.into_iter().map(|clean| {
            clean?;
            Ok(verdicts.next().expect("there is one for each fit text").0)
        });
        tried.collect()
    }
}
