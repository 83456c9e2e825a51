//! Tool `evaluate_categories`: accuracy and calibration of the live taxonomy.

use std::collections::HashMap;
use std::time::Duration;

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{expensive_tool, may_see_examples};
use crate::evaluate::{ConfusionMatrix, EvaluatedText, EvaluationReport};
use crate::evaluation::{Evaluation, EvaluationError};
use crate::taxonomy_editor::TaxonomyEditor;
use corbie_util::number::shortest_f64;

// The name and the text avoid the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Evaluate the accuracy of the active categories on labelled examples: returns accuracy, \
calibration, precision and recall of each category, the confusion matrix and the misassigned texts. Pass `examples` \
that are not in the taxonomy; without them, the taxonomy's own examples (or a sample of them) are evaluated by \
cross-validation. Changes nothing.";

/// Training five times takes longer than the default tool timeout.
const TOOL_TIMEOUT: Duration = Duration::from_secs(300);
/// Maximum number of misclassified texts in the response.
const MAX_MISTAKES: usize = 50;
/// Maximum length of a text in the response, in characters.
const MAX_TEXT_CHARS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
struct EvaluateCategoriesInput {
    /// Texts with their true categories
    #[schemars(length(min = 1, max = 2000))]
    examples: Option<Vec<LabelledExample>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct LabelledExample {
    text: String,
    /// Name of a category, as in list_categories
    category: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct EvaluateCategoriesOutput {
    /// Number of texts
    count: usize,
    /// Share of texts with a correct prediction
    accuracy: f64,
    mean_confidence: f64,
    /// Expected calibration error: mean difference of confidence and accuracy over the bins
    calibration_error: f64,
    /// Texts with similar confidence
    bins: Vec<Bin>,
    /// Labels of rows and columns
    categories: Vec<String>,
    /// Rows are true categories, columns are predicted ones; an additional column counts all other predictions
    confusion: Vec<Vec<usize>>,
    per_category: Vec<CategoryOutput>,
    /// Errors with the highest confidence, at most 50
    wrong_predictions: Vec<Misclassification>,
    /// Whether cross-validation was used, so that no text was in the training data of its fold
    held_out: bool,
    /// Number of examples in the taxonomy; `count` is smaller if some could not be held out or there are too many
    examples_available: usize,
    /// Set if prompts are categorized by another server
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    external_server: Option<&'static str>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Bin {
    from: f64,
    to: f64,
    count: usize,
    /// Null if there are no texts
    mean_confidence: Option<f64>,
    accuracy: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CategoryOutput {
    name: String,
    /// Number of texts in this category
    count: usize,
    /// Precision; null if no text was predicted to be in this category
    precision: Option<f64>,
    /// Recall; null if no text is in this category
    recall: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Misclassification {
    text: String,
    expected: String,
    got: String,
    confidence: f64,
}

pub(super) fn tool(desk: TaxonomyEditor) -> Result<Tool, RegistrationError> {
    // The tool also returns examples, another reason to restrict it.
    let tool = expensive_tool::<EvaluateCategoriesInput, EvaluateCategoriesOutput>(
        "evaluate_categories",
        "Evaluate the categories",
        DESCRIPTION,
    );
    tool.timeout(TOOL_TIMEOUT).run(move |context: Context, arguments: Arguments| {
        let desk = desk.clone();
        async move {
            let caller = context.caller().clone();
            let measured = run_evaluation(&desk, context, arguments.parse()?).await?;
            // The caller's own texts need no check.
            let shown = !measured.held_out || may_see_examples(&caller, &measured.snapshot.taxonomy);
            let mut told = EvaluateCategoriesOutput::of(&measured, desk.external_classifier_warning());
            told.wrong_predictions.iter_mut().filter(|_| !shown).for_each(|mistake| mistake.text.clear());
            Ok::<_, ToolError>(Json(told))
        }
    })
}

async fn run_evaluation(
    desk: &TaxonomyEditor,
    context: Context,
    input: EvaluateCategoriesInput,
) -> Result<Evaluation, ToolError> {
    let tell = move |done: usize, all: usize| context.progress(done as f64, Some(all as f64), None);
    let Some(examples) = input.examples else { return Ok(desk.cross_validate(tell).await?) };
    let published = desk.classification().snapshot();
    let categories = published.taxonomy.active_categories();
    let places: HashMap<&str, usize> = categories.map(|(place, category)| (category.name.as_str(), place)).collect();
    let mut placed = Vec::with_capacity(examples.len());
    for (index, LabelledExample { text, category }) in examples.into_iter().enumerate() {
        let Some(place) = places.get(category.as_str()) else {
            let message = format!("`examples[{index}].category` is not a category; use a name from `list_categories`");
            return Err(ToolError::new("unknown_category", message));
        };
        placed.push((text, *place));
    }
    Ok(desk.evaluate(published.clone(), placed, tell).await?)
}

impl EvaluateCategoriesOutput {
    fn of(measured: &Evaluation, elsewhere: Option<&'static str>) -> EvaluateCategoriesOutput {
        let Evaluation { snapshot: published, texts, results: judged, held_out, available: of } = measured;
        let names: Vec<String> = published.taxonomy.names().map(str::to_owned).collect();
        let active: Vec<usize> = published.taxonomy.active_categories().map(|(place, _)| place).collect();
        let report = EvaluationReport::of(judged, &names);
        let matrix = ConfusionMatrix::of(judged, &active);
        let confidence: f64 = judged.iter().map(|text| f64::from(text.confidence)).sum();
        let bins = report.calibration.bins.into_iter().map(|bin| Bin {
            from: bin.lower,
            to: bin.upper,
            count: bin.count,
            mean_confidence: bin.confidence,
            accuracy: bin.accuracy,
        });
        let per_category = report.categories.into_iter().map(|category| CategoryOutput {
            name: category.name,
            count: category.support,
            precision: category.precision,
            recall: category.recall,
        });
        EvaluateCategoriesOutput {
            count: judged.len(),
            accuracy: report.accuracy.unwrap_or_default(),
            mean_confidence: confidence / judged.len().max(1) as f64,
            calibration_error: report.calibration.error.unwrap_or_default(),
            bins: bins.collect(),
            categories: matrix.classes.iter().map(|class| names[*class].clone()).collect(),
            confusion: matrix.rows,
            per_category: per_category.collect(),
            wrong_predictions: misclassifications(texts, judged, &names),
            held_out: *held_out,
            examples_available: *of,
            external_server: elsewhere,
        }
    }
}

fn misclassifications(texts: &[String], judged: &[EvaluatedText], names: &[String]) -> Vec<Misclassification> {
    let mut wrong: Vec<(&String, &EvaluatedText)> =
        texts.iter().zip(judged).filter(|(_, judged)| judged.truth != Some(judged.class)).collect();
    wrong.sort_by(|(_, one), (_, other)| other.confidence.total_cmp(&one.confidence));
    let name = |class: Option<usize>| class.and_then(|class| names.get(class)).cloned().unwrap_or_default();
    let mistake = |(text, judged): (&String, &EvaluatedText)| Misclassification {
        text: text.chars().take(MAX_TEXT_CHARS).collect(),
        expected: name(judged.truth),
        got: name(Some(judged.class)),
        confidence: shortest_f64(judged.confidence),
    };
    wrong.into_iter().take(MAX_MISTAKES).map(mistake).collect()
}

impl From<EvaluationError> for ToolError {
    fn from(why: EvaluationError) -> ToolError {
        let kind = match why {
            EvaluationError::Busy(_) => "busy",
            EvaluationError::InvalidText { .. } => "invalid_text",
            _ => "evaluation_failed",
        };
        ToolError::new(kind, why.to_string())
    }
}
