//! `corbie taxonomy suggest`: suggestions for improving the examples.
//!
//! Uses cross-validation: each fold of the examples is classified by a classifier trained on the other folds.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use corbie_infer::{Embedding, Purpose};
use serde::Serialize;
use serde_json::{Value, json};

use super::{CommandResult, counted, one_line};
use crate::classify::Taxonomy;
use crate::cli::json_output;
use crate::cli::progress::Progress;
use crate::config::LoadedConfig;
use crate::evaluate::cross_validation::{self, LabelledEmbeddings};
use crate::evaluate::suggest::{CategorySize, ConfusedCategory, FOLDS, Suggestions, Suspect, WeakCategory};
use crate::inference::{self, Inference};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie taxonomy suggest mine.yaml
  corbie taxonomy suggest --limit 5 mine.yaml")]
pub(in crate::cli) struct Suggest {
    /// Taxonomy file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Maximum number of entries per list
    #[arg(long = "limit", alias = "most", value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Examples embedded between two progress reports.
const EMBED_BATCH: usize = 64;
/// Maximum characters of an example that are shown.
const MAX_TEXT_CHARS: usize = 100;
/// Maximum characters of a name that are shown.
const MAX_NAME_CHARS: usize = 28;

pub(super) fn run(command: &Suggest, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let taxonomy = super::read_taxonomy(&command.file)?;
    let file = command.file.display().to_string();
    if taxonomy.categories.len() < 2 {
        return Err(format!("{file}: a taxonomy with one category cannot be evaluated; add a second").into());
    }
    let (class_of, texts) = distinct_examples(&taxonomy);
    let progress = Progress::new();
    let embeddings = embed(&texts, &Inference::new(loaded.config.inference.clone()), &progress)
        .map_err(|error| format!("{file}: the examples could not be embedded: {error}"))?;
    let classes = taxonomy.categories.len();
    let lesson = LabelledEmbeddings { texts: &texts, embeddings: &embeddings, class_of: &class_of, classes };
    let held_out = cross_validation::cross_validate(lesson, |fold| {
        progress.update(&format!("training {} of {FOLDS}", fold + 1));
        true
    })?;
    drop(progress);
    let category = |each: &crate::classify::taxonomy::Category| CategorySize {
        name: each.name.clone(),
        examples: each.examples.len(),
    };
    let categories: Vec<CategorySize> = taxonomy.categories.iter().map(category).collect();
    let found = Suggestions::of(&held_out, &categories);
    let most = command.limit as usize;
    if command.json {
        write_json(&file, &taxonomy, &found, most, out)?;
    } else {
        write_text(&file, &taxonomy, &found, most, out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// All examples with their class, without duplicates: a duplicate could be in both the training and the held-out fold.
fn distinct_examples(taxonomy: &Taxonomy) -> (Vec<usize>, Vec<String>) {
    let mut seen = HashSet::new();
    let examples = taxonomy
        .categories
        .iter()
        .enumerate()
        .flat_map(|(class, category)| category.training_texts().map(move |text| (class, text.into_owned())));
    examples.filter(|example| seen.insert(example.clone())).unzip()
}

fn embed(texts: &[String], inference: &Inference, progress: &Progress) -> Result<Vec<Embedding>, inference::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| inference::Error::Model(error.to_string()))?;
    let mut embeddings = Vec::with_capacity(texts.len());
    for piece in texts.chunks(EMBED_BATCH) {
        progress.update(&format!("embedding {} of {} examples", embeddings.len(), texts.len()));
        let before = embeddings.len();
        let embedded = runtime.block_on(inference.embed(piece.to_vec(), Purpose::Passage));
        embeddings.extend(embedded.map_err(|error| error.with_index_offset(before))?);
    }
    Ok(embeddings)
}

fn write_json(
    file: &str,
    taxonomy: &Taxonomy,
    found: &Suggestions,
    most: usize,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    /// A struct, because `Value` would change the number of digits of `f32` values.
    #[derive(Serialize)]
    struct SuggestOutput<'a> {
        file: &'a str,
        categories: usize,
        examples: usize,
        held_out: usize,
        accuracy: Option<f64>,
        counts: Value,
        mislabelled: &'a [Suspect],
        outliers: &'a [Suspect],
        weak_categories: &'a [WeakCategory],
    }
    let Suggestions { held_out, accuracy, mislabelled, outliers: alone, weak_categories: weak } = found;
    let told = SuggestOutput {
        file,
        categories: taxonomy.categories.len(),
        examples: taxonomy.example_count(),
        held_out: *held_out,
        accuracy: *accuracy,
        counts: json!({ "mislabelled": mislabelled.len(), "outliers": alone.len(), "weak_categories": weak.len() }),
        mislabelled: first(mislabelled, most),
        outliers: first(alone, most),
        weak_categories: first(weak, most),
    };
    json_output::write(&told, out)
}

fn write_text(
    file: &str,
    taxonomy: &Taxonomy,
    found: &Suggestions,
    most: usize,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let Suggestions { held_out, accuracy, mislabelled, outliers: alone, weak_categories: weak } = found;
    let examples = counted(taxonomy.example_count(), "example", "examples");
    let categories = counted(taxonomy.categories.len(), "category", "categories");
    match accuracy {
        Some(accuracy) => {
            let right = 100.0 * accuracy;
            writeln!(out, "{file}: {examples} of {categories}; cross-validation accuracy {right:.1} % of {held_out}")?;
        }
        None => writeln!(
            out,
            "{file}: {examples} of {categories}; too few examples for cross-validation, add more to each category"
        )?,
    }
    list(
        "Possibly mislabelled examples; move them, or distinguish the categories more clearly:",
        mislabelled,
        most,
        out,
        |each| {
            let Suspect { category, text, predicted, confidence, .. } = each;
            let (category, predicted) = (one_line(category, MAX_NAME_CHARS), one_line(predicted, MAX_NAME_CHARS));
            format!("{:>3.0} %  {category} → {predicted}: {}", 100.0 * confidence, one_line(text, MAX_TEXT_CHARS))
        },
    )?;
    list("Outliers; add similar examples:", alone, most, out, |each| {
        let Suspect { category, text, confidence, .. } = each;
        format!(
            "{:>3.0} %  {}: {}",
            100.0 * confidence,
            one_line(category, MAX_NAME_CHARS),
            one_line(text, MAX_TEXT_CHARS)
        )
    })?;
    let title = "Weak categories; add more examples:".to_owned();
    list(&title, weak, most, out, |each| {
        let WeakCategory { category, examples, recall, confused_with } = each;
        let recall = recall.map_or_else(|| "  -  ".to_owned(), |recall| format!("{:>3.0} %", 100.0 * recall));
        let examples = counted(*examples, "example", "examples");
        let taken_for = confused_with.as_ref().map(|ConfusedCategory { category, count }| {
            format!(", {count} classified as {}", one_line(category, MAX_NAME_CHARS))
        });
        format!("{recall}  {}: {examples}{}", one_line(category, MAX_NAME_CHARS), taken_for.unwrap_or_default())
    })?;
    if mislabelled.is_empty() && alone.is_empty() && weak.is_empty() {
        writeln!(out, "No suggestions.")?;
    }
    Ok(())
}

/// Prints a title and the first items; prints nothing if there are none.
fn list<T>(
    title: &str,
    items: &[T],
    most: usize,
    out: &mut dyn Write,
    line: impl Fn(&T) -> String,
) -> std::io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}")?;
    for item in first(items, most) {
        writeln!(out, "  {}", line(item))?;
    }
    match items.len().saturating_sub(most) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more; `--limit {}` shows all", items.len()),
    }
}

fn first<T>(items: &[T], most: usize) -> &[T] {
    &items[..items.len().min(most)]
}
