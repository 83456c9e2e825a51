//! Tool `evaluate_categories`: accuracy and calibration of the live taxonomy.

use std::collections::HashMap;
use std::time::Duration;

use corbie_mcp::{Arguments, Context, Json, RegistrationError, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{costly, may_see_examples, short};
use crate::classify::desk::Desk;
use crate::classify::measure::{Measured, NotMeasured};
use crate::evaluate::{Judged, Matrix, Report};

// The name and the text avoid the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Measures how well the categories in use are told apart: accuracy, calibration, which are taken \
for which, and the mistakes. Give labelled `examples`, best such as the taxonomy does not have. Without any, the \
taxonomy's own are used: each is judged by what was learned without it, and of many only a sample. It changes nothing.";

/// Training five times takes longer than the default tool timeout.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum number of misclassified texts in the response.
const MOST_MISTAKES: usize = 50;
/// Maximum length of a text in the response, in characters.
const MOST_SHOWN: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Texts with their true categories
    #[schemars(length(min = 1, max = 2000))]
    examples: Option<Vec<Labelled>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Labelled {
    text: String,
    /// Name of a category, as in list_categories
    category: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
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
    per_category: Vec<Told>,
    /// Errors with the highest confidence, at most 50
    wrong_predictions: Vec<Mistake>,
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
struct Told {
    name: String,
    /// Number of texts in this category
    count: usize,
    /// Precision; null if no text was predicted to be in this category
    precision: Option<f64>,
    /// Recall; null if no text is in this category
    recall: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Mistake {
    text: String,
    expected: String,
    got: String,
    confidence: f64,
}

pub(super) fn tool(desk: Desk) -> Result<Tool, RegistrationError> {
    // The tool also returns examples, another reason to restrict it.
    let tool = costly::<Input, Output>("evaluate_categories", "Evaluate the categories", DESCRIPTION);
    tool.timeout(PATIENCE).run(move |context: Context, arguments: Arguments| {
        let desk = desk.clone();
        async move {
            let caller = context.caller().clone();
            let measured = measure(&desk, context, arguments.parse()?).await?;
            // The caller's own texts need no check.
            let shown = !measured.held_out || may_see_examples(&caller, &measured.published.taxonomy);
            let mut told = Output::of(&measured, desk.elsewhere());
            told.wrong_predictions.iter_mut().filter(|_| !shown).for_each(|mistake| mistake.text.clear());
            Ok::<_, ToolError>(Json(told))
        }
    })
}

async fn measure(desk: &Desk, context: Context, input: Input) -> Result<Measured, ToolError> {
    let tell = move |done: usize, all: usize| context.progress(done as f64, Some(all as f64), None);
    let Some(examples) = input.examples else { return Ok(desk.measure_own(tell).await?) };
    let published = desk.classification().published();
    let categories = published.taxonomy.in_use();
    let places: HashMap<&str, usize> = categories.map(|(place, category)| (category.name.as_str(), place)).collect();
    let mut placed = Vec::with_capacity(examples.len());
    for (index, Labelled { text, category }) in examples.into_iter().enumerate() {
        let Some(place) = places.get(category.as_str()) else {
            let message =
                format!("`examples[{index}].category` is no category; `list_categories` tells those there are");
            return Err(ToolError::new("unknown_category", message));
        };
        placed.push((text, *place));
    }
    Ok(desk.measure(published.clone(), placed, tell).await?)
}

impl Output {
    fn of(measured: &Measured, elsewhere: Option<&'static str>) -> Output {
        let Measured { published, texts, judged, held_out, of } = measured;
        let names: Vec<String> = published.taxonomy.names().map(str::to_owned).collect();
        let active: Vec<usize> = published.taxonomy.in_use().map(|(place, _)| place).collect();
        let report = Report::of(judged, &names);
        let matrix = Matrix::of(judged, &active);
        let confidence: f64 = judged.iter().map(|text| f64::from(text.confidence)).sum();
        let bins = report.calibration.bins.into_iter().map(|bin| Bin {
            from: bin.lower,
            to: bin.upper,
            count: bin.count,
            mean_confidence: bin.confidence,
            accuracy: bin.accuracy,
        });
        let per_category = report.categories.into_iter().map(|category| Told {
            name: category.name,
            count: category.support,
            precision: category.precision,
            recall: category.recall,
        });
        Output {
            count: judged.len(),
            accuracy: report.accuracy.unwrap_or_default(),
            mean_confidence: confidence / judged.len().max(1) as f64,
            calibration_error: report.calibration.error.unwrap_or_default(),
            bins: bins.collect(),
            categories: matrix.classes.iter().map(|class| names[*class].clone()).collect(),
            confusion: matrix.rows,
            per_category: per_category.collect(),
            wrong_predictions: mistakes(texts, judged, &names),
            held_out: *held_out,
            examples_available: *of,
            external_server: elsewhere,
        }
    }
}

fn mistakes(texts: &[String], judged: &[Judged], names: &[String]) -> Vec<Mistake> {
    let mut wrong: Vec<(&String, &Judged)> =
        texts.iter().zip(judged).filter(|(_, judged)| judged.truth != Some(judged.class)).collect();
    wrong.sort_by(|(_, one), (_, other)| other.confidence.total_cmp(&one.confidence));
    let name = |class: Option<usize>| class.and_then(|class| names.get(class)).cloned().unwrap_or_default();
    let mistake = |(text, judged): (&String, &Judged)| Mistake {
        text: text.chars().take(MOST_SHOWN).collect(),
        expected: name(judged.truth),
        got: name(Some(judged.class)),
        confidence: short(judged.confidence),
    };
    wrong.into_iter().take(MOST_MISTAKES).map(mistake).collect()
}

impl From<NotMeasured> for ToolError {
    fn from(why: NotMeasured) -> ToolError {
        let kind = match why {
            NotMeasured::Busy(_) => "busy",
            NotMeasured::Unfit { .. } => "invalid_text",
            _ => "evaluation_failed",
        };
        ToolError::new(kind, why.to_string())
    }
}
