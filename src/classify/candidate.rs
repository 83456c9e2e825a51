//! A taxonomy that somebody is writing: checked and tried beside the one in use, which knows nothing of it.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::learned::Learned;
use super::method::{Verdict, With};
use super::{Published, Taxonomy, Unfit, text};
use crate::config::{ConfigError, Problem};

/// What was found in a text, and where.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Finding {
    /// What is wrong, with the key it is about
    message: String,
    /// From 1
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    #[schemars(default)]
    line: Option<usize>,
    /// From 1, in characters
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "usize")]
    #[schemars(default)]
    column: Option<usize>,
    /// What may have been meant
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    hint: Option<String>,
}

/// A taxonomy, ready to be asked.
#[derive(Debug)]
pub(super) struct Candidate(Arc<Published>);

/// What a candidate says of a text.
pub(super) type Tried = Result<Arc<Verdict>, Unfit>;

/// How many mistakes, or remarks, are told of one text.
const MOST_TOLD: usize = 100;

/// Reads a text as a file of this name would be, or else as YAML. Compiles every pattern; callers do it aside.
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
        // The place and the hint have members of their own.
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
    /// Learns what the settings ask for; what was learned already is used again where the examples are the same. Who
    /// stops waiting stops the work.
    pub(super) async fn learn(taxonomy: Taxonomy, before: Option<Arc<Learned>>, with: With<'_>) -> Option<Candidate> {
        // Compiling many patterns takes its time.
        let made = tokio::task::spawn_blocking(move || Published::new(taxonomy, 0));
        let published = Arc::new(made.await.ok()?);
        published.make(before, with).await;
        Some(Candidate(published))
    }

    pub(super) fn taxonomy(&self) -> &Taxonomy {
        &self.0.taxonomy
    }

    /// Why another method was used than the settings ask for.
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
