//! Draft taxonomy: validated and tried without touching the live one.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use super::method::{MethodContext, Prediction};
use super::training::TrainedClassifier;
use super::{InvalidText, Taxonomy, TaxonomySnapshot, input};
use corbie_config::{ConfigError, Diagnostic};

/// A finding in a text with its position.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct TaxonomyDiagnostic {
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
pub(super) struct DraftTaxonomy(Arc<TaxonomySnapshot>);

/// The result of a draft for one text.
pub(super) type DraftResult = Result<Arc<Prediction>, InvalidText>;

/// Maximum number of diagnostics per text.
const MAX_DIAGNOSTICS: usize = 100;

/// Parses a text in the format of this file name, or as YAML. Compiles every pattern, so call it on a blocking thread.
pub(super) fn parse(text: &str, file: Option<&Path>) -> Result<Taxonomy, Vec<TaxonomyDiagnostic>> {
    let read = file.map_or_else(|| Taxonomy::parse(text), |file| Taxonomy::parse_for(text, file));
    read.map_err(|error| diagnostics(&error))
}

pub(super) fn diagnostics(error: &ConfigError) -> Vec<TaxonomyDiagnostic> {
    error.diagnostics.iter().take(MAX_DIAGNOSTICS).map(TaxonomyDiagnostic::error).collect()
}

pub(super) fn warnings(taxonomy: &Taxonomy) -> Vec<TaxonomyDiagnostic> {
    taxonomy.warnings().into_iter().take(MAX_DIAGNOSTICS).map(TaxonomyDiagnostic::warning).collect()
}

impl TaxonomyDiagnostic {
    pub(super) fn warning(message: String) -> TaxonomyDiagnostic {
        TaxonomyDiagnostic { message, line: None, column: None, hint: None }
    }

    fn error(problem: &Diagnostic) -> TaxonomyDiagnostic {
        let position = problem.origin.as_ref().and_then(|origin| origin.position);
        // The position and the hint have separate fields.
        let message = Diagnostic { origin: None, suggestion: None, ..problem.clone() }.to_string();
        TaxonomyDiagnostic {
            message,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            hint: problem.suggestion.as_ref().map(|suggestion| format!("did you mean `{suggestion}`?")),
        }
    }
}

impl DraftTaxonomy {
    /// Builds the configured method and reuses a trained classifier if the examples are the same. Dropping the future
    /// cancels the work.
    pub(super) async fn train(
        taxonomy: Taxonomy,
        before: Option<Arc<TrainedClassifier>>,
        with: MethodContext<'_>,
    ) -> Option<DraftTaxonomy> {
        // Compiling many patterns blocks the thread.
        let made = tokio::task::spawn_blocking(move || TaxonomySnapshot::new(taxonomy, 0));
        let published = Arc::new(made.await.ok()?);
        published.build(before, with).await;
        Some(DraftTaxonomy(published))
    }

    pub(super) fn taxonomy(&self) -> &Taxonomy {
        &self.0.taxonomy
    }

    /// Why a fallback method is in use.
    pub(super) fn impairment(&self) -> Option<String> {
        self.0.impairment()
    }

    pub(super) async fn classify(&self, texts: &[String], with: MethodContext<'_>) -> Vec<DraftResult> {
        let longest = with.settings.max_text_length;
        let clean: Vec<_> = texts.iter().map(|text| input::normalize(text, longest)).collect();
        let fit: Vec<&str> = clean.iter().flatten().map(AsRef::as_ref).collect();
        let mut verdicts = self.0.classify_many(&fit, with).await.into_iter();
        let tried = clean.into_iter().map(|clean| {
            clean?;
            Ok(verdicts.next().expect("one result for each valid text").0)
        });
        tried.collect()
    }
}
