//! `corbie eval`: evaluates the classifier on labelled texts.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::classify::How;
use super::progress::Progress;
use super::{End, must_be_there, values, whole_file};
use crate::classify::{Classification, Taxonomy};
use crate::config::Loaded;
use crate::evaluate::labelled::{self, Labelled};
use crate::evaluate::{Judged, Report, diagram, terminal, typos};
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
    how: How,
    /// Train on this file, in the same format, instead of a taxonomy
    #[arg(long, value_name = "FILE", conflicts_with = "taxonomy")]
    train: Option<PathBuf>,
    /// Add typos to this share of the characters, such as 0.1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = values::share)]
    typos: f64,
    /// Write the reliability diagram as SVG to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Texts between two progress updates.
const SHOWN_EVERY: usize = 64;

pub(super) fn run(command: &Eval, loaded: &Loaded, out: &mut dyn Write) -> End {
    command.files.iter().chain(&command.train).try_for_each(|file| must_be_there(file))?;
    let mut settings = command.how.settings(loaded);
    // Repeated texts must be timed like any other, so the cache is disabled.
    settings.cache_entries = 0;
    settings.max_text_length = usize::MAX;
    let taxonomy = match &command.train {
        Some(file) => labelled::taxonomy(&labelled::read(file)?)?,
        None => Taxonomy::open(settings.taxonomy.as_deref())?,
    };
    let names: Vec<String> = taxonomy.names().map(str::to_owned).collect();
    let mut texts = Vec::new();
    for file in &command.files {
        texts.extend(known(labelled::read(file)?, file, &names)?);
    }
    if texts.is_empty() {
        return Err("the files have no texts".into());
    }
    let inference = Inference::new(loaded.config.inference.clone());
    let classification = Classification::with(taxonomy, settings, inference);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let judged = runtime.block_on(judge(&classification, &texts, command.typos))?;
    let report = Report::of(&judged, &names);
    let title = title(&command.files);
    if let Some(path) = &command.svg {
        whole_file::replace(path, diagram::svg(&report.calibration, &title).as_bytes())?;
    }
    if command.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        write!(out, "{}", terminal::render(&report, &title))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The texts with their class indices.
fn known(texts: Vec<Labelled>, file: &Path, names: &[String]) -> Result<Vec<(String, Option<usize>)>, String> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect();
    let place = |Labelled { text, label, line }| match label {
        None => Ok((text, None)),
        Some(label) => match places.get(label.as_str()) {
            Some(place) => Ok((text, Some(*place))),
            None => Err(format!(
                "{}:{line}: `{label}` is no category; give the taxonomy that has it, or `--train`",
                file.display()
            )),
        },
    };
    texts.into_iter().map(place).collect()
}

/// Classifies the texts one by one, as callers would, and times each.
async fn judge(
    classification: &Classification,
    texts: &[(String, Option<usize>)],
    share: f64,
) -> Result<Vec<Judged>, Box<dyn std::error::Error>> {
    let progress = Progress::of("learning the categories …");
    classification.warm().await;
    // Warm-up: the model is loaded with the first text that needs it, which must not count as latency.
    let _ = classification.classify("Is there anything that could be said about xylophones in Ulan Bator?").await;
    let mut mistyping = typos::Mistyping::seeded(0);
    let (mut judged, mut unfit) = (Vec::with_capacity(texts.len()), 0);
    for (index, (text, truth)) in texts.iter().enumerate() {
        let text = mistyping.mistype(text, share);
        let started = Instant::now();
        let classified = classification.classify(&text).await;
        let micros = started.elapsed().as_secs_f64() * 1e6;
        let Ok(classified) = classified else {
            unfit += 1;
            continue;
        };
        // If the model fails, classification falls back to rules; the figures would be reported as the model's.
        if let Some(why) = classified.published.impairment() {
            return Err(why.into());
        }
        let verdict = &classified.verdict;
        judged.push(Judged {
            truth: *truth,
            class: verdict.class(),
            confidence: verdict.confidence(),
            out_of_scope: verdict.out_of_scope,
            strangeness: verdict.strangeness,
            micros,
        });
        if index % SHOWN_EVERY == 0 {
            progress.tell(&format!("{} of {} texts", index + 1, texts.len()));
        }
    }
    if unfit > 0 {
        tracing::warn!("{unfit} texts are empty or too long and do not count");
    }
    Ok(judged)
}

fn title(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    files.iter().map(name).collect::<Vec<_>>().join(", ")
}
