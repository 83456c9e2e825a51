//! `corbie eval`: evaluates the classifier on labelled texts.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::classify::ClassifierOptions;
use super::progress::Progress;
use super::{CommandResult, json_output, must_exist, output_file, value_parsers};
use crate::classify::{Classification, Taxonomy};
use crate::config::LoadedConfig;
use crate::evaluate::dataset::{self, LabelledText};
use crate::evaluate::{EvaluatedText, EvaluationReport, reliability_diagram, report_text, typos};
use crate::inference::Inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie eval test.jsonl
  corbie eval --train train.jsonl --svg reliability.svg test.jsonl")]
pub(super) struct Eval {
    /// Files with `{"text": …, "label": …}` per line, or `.csv` with the columns text and label; texts without a label
    /// belong to no category
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    how: ClassifierOptions,
    /// Train on this file, in the same format, instead of a taxonomy
    #[arg(long, value_name = "FILE", conflicts_with = "taxonomy")]
    train: Option<PathBuf>,
    /// Add typos to this share of the characters, such as 0.1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = value_parsers::share)]
    typos: f64,
    /// Write the reliability diagram as SVG to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Texts between two progress updates.
const PROGRESS_INTERVAL: usize = 64;

pub(super) fn run(command: &Eval, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    command.files.iter().chain(&command.train).try_for_each(|file| must_exist(file))?;
    let mut settings = command.how.settings(loaded);
    // Repeated texts must be timed like any other, so the cache is disabled.
    settings.cache_entries = 0;
    settings.max_text_length = usize::MAX;
    let taxonomy = match &command.train {
        Some(file) => Taxonomy::from_examples(dataset::examples_by_label(&dataset::read(file)?))?,
        None => Taxonomy::open(settings.taxonomy.as_deref())?,
    };
    let names: Vec<String> = taxonomy.names().map(str::to_owned).collect();
    let mut texts = Vec::new();
    for file in &command.files {
        texts.extend(with_class_ids(dataset::read(file)?, file, &names)?);
    }
    if texts.is_empty() {
        return Err("the files contain no texts".into());
    }
    let inference = Inference::new(loaded.config.inference.clone());
    let classification = Classification::with_taxonomy(taxonomy, settings, inference);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let judged = runtime.block_on(classify_all(&classification, &texts, command.typos))?;
    let report = EvaluationReport::of(&judged, &names);
    let title = title(&command.files);
    if let Some(path) = &command.svg {
        output_file::replace(path, reliability_diagram::svg(&report.calibration, &title).as_bytes())?;
    }
    if command.json {
        json_output::write(&report, out)?;
    } else {
        write!(out, "{}", report_text::render(&report, &title))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The texts with their class indices.
fn with_class_ids(
    texts: Vec<LabelledText>,
    file: &Path,
    names: &[String],
) -> Result<Vec<(String, Option<usize>)>, String> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let place = |LabelledText { text, label, line }| match label {
        None => Ok((text, None)),
        Some(label) => match places.get(label.as_str()) {
            Some(place) => Ok((text, Some(*place))),
            None => Err(format!(
                "{}:{line}: `{label}` is not a category of the taxonomy; specify `--taxonomy` or `--train`",
                file.display()
            )),
        },
    };
    texts.into_iter().map(place).collect()
}

/// Classifies the texts one by one, as callers would, and times each.
async fn classify_all(
    classification: &Classification,
    texts: &[(String, Option<usize>)],
    share: f64,
) -> Result<Vec<EvaluatedText>, Box<dyn std::error::Error>> {
    let progress = Progress::with_message("training the classifier …");
    classification.warm_up().await;
    // Warm-up: the model is loaded with the first text that needs it, which must not count as latency.
    let _ = classification.classify("Is there anything that could be said about xylophones in Ulan Bator?").await;
    let mut mistyping = typos::TypoGenerator::with_seed(0);
    let (mut judged, mut unfit) = (Vec::with_capacity(texts.len()), 0);
    for (index, (text, truth)) in texts.iter().enumerate() {
        let text = mistyping.add_typos(text, share);
        let started = Instant::now();
        let classified = classification.classify(&text).await;
        let micros = started.elapsed().as_secs_f64() * 1e6;
        let Ok(classified) = classified else {
            unfit += 1;
            continue;
        };
        // If the model fails, classification falls back to rules; the figures would be reported as the model's.
        if let Some(why) = classified.snapshot.impairment() {
            return Err(why.into());
        }
        let verdict = &classified.prediction;
        judged.push(EvaluatedText {
            truth: *truth,
            class: verdict.class(),
            confidence: verdict.confidence(),
            out_of_scope: verdict.out_of_scope,
            out_of_scope_score: verdict.out_of_scope_score,
            micros,
        });
        if index % PROGRESS_INTERVAL == 0 {
            progress.update(&format!("{} of {} texts", index + 1, texts.len()));
        }
    }
    if unfit > 0 {
        tracing::warn!("{unfit} texts are empty or too long and were skipped");
    }
    Ok(judged)
}

fn title(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    files.iter().map(name).collect::<Vec<_>>().join(", ")
}
