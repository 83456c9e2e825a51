//! Tool `batch_categorize`: `classify_text` for many texts in one call.

use corbie_mcp::{Arguments, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::classify_text::ClassifyTextOutput;
use super::render_error;
use crate::Classification;

// The text avoids the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Categorize many texts in one call: returns the category, confidence and recommended model \
of each text, in the order of the texts. A text that cannot be categorized gets an error in its entry.";

#[derive(Debug, Deserialize, JsonSchema)]
struct BatchCategorizeInput {
    /// Texts to categorize
    texts: Vec<String>,
    /// Whether to return the probabilities of all categories and their entropy
    #[serde(default)]
    with_probabilities: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BatchCategorizeOutput {
    /// Results in the order of the texts
    results: Vec<BatchEntry>,
    /// Number of categorized texts
    categorized: usize,
    /// Number of failed texts
    failed: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum BatchEntry {
    Classified(Box<ClassifyTextOutput>),
    Failed { error: String },
}

pub(super) fn tool(classification: Classification) -> Result<Tool, RegistrationError> {
    let entry = serde_json::json!({ "type": "object" });
    Tool::builder("batch_categorize")
        .title("Categorize many texts")
        .description(DESCRIPTION)
        .module("corbie::categories")
        .input::<BatchCategorizeInput>()
        .output_schema(serde_json::json!({
            "type": "object",
            "properties": {
                "results": { "type": "array", "items": entry, "description": "One result for each text, in the same order" },
                "categorized": { "type": "integer", "description": "Number of categorized texts" },
                "failed": { "type": "integer", "description": "Number of failed texts" },
            },
            "required": ["results", "categorized", "failed"],
        }))
        .dialect(render_error)
        .run(move |_, arguments: Arguments| {
            let classification = classification.clone();
            async move {
                let BatchCategorizeInput { texts, with_probabilities } = arguments.parse()?;
                classify_batch(&classification, &texts, with_probabilities).await.map(Json)
            }
        })
}

async fn classify_batch(
    classification: &Classification,
    texts: &[String],
    with_probabilities: bool,
) -> Result<BatchCategorizeOutput, ToolError> {
    let most = classification.settings().max_batch;
    if texts.len() > most {
        let message =
            format!("`texts` has {} entries, the maximum is {most}; split them into several calls", texts.len());
        return Err(ToolError::new("too_many_texts", message));
    }
    let (published, verdicts) = classification.classify_many(texts).await;
    let entries = verdicts.into_iter().map(|verdict| match verdict {
        Ok((text, verdict)) => {
            BatchEntry::Classified(Box::new(ClassifyTextOutput::of(&text, &published, &verdict, with_probabilities)))
        }
        Err(unfit) => BatchEntry::Failed { error: unfit.to_string() },
    });
    let results: Vec<BatchEntry> = entries.collect();
    let failed = results.iter().filter(|entry| matches!(entry, BatchEntry::Failed { .. })).count();
    Ok(BatchCategorizeOutput { categorized: results.len() - failed, failed, results })
}
