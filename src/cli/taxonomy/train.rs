//! `corbie taxonomy train`: trains the classifier and saves it next to the taxonomy.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::{CommandResult, counted};
use crate::classify::Taxonomy;
use crate::classify::training::{self, TrainedClassifier, TrainingError};
use crate::cli::progress::Progress;
use crate::cli::{json_output, output_file};
use crate::config::LoadedConfig;
use crate::inference::Inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie taxonomy train mine.yaml")]
pub(in crate::cli) struct Train {
    /// Taxonomy file; the trained classifier is stored next to it with the extension `.trained`
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Interval of the elapsed-time display.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(command: &Train, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let taxonomy = super::read_taxonomy(&command.file)?;
    let file = command.file.display();
    let inference = Inference::new(loaded.config.inference.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let started = Instant::now();
    let (examples, categories) = (taxonomy.example_count(), taxonomy.categories.len());
    let Some(learned) = runtime.block_on(train(&taxonomy, &inference))? else {
        if command.json {
            let nothing =
                json!({ "file": file.to_string(), "trained": null, "examples": examples, "categories": categories });
            json_output::write(&nothing, out)?;
        } else {
            writeln!(out, "{file}: a taxonomy with one category needs no training; add a second")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let seconds = started.elapsed().as_secs_f64();
    let bytes = learned.to_bytes();
    let trained = training::saved_path(&command.file);
    // The only write, and it is atomic: interrupting the program earlier changes nothing.
    output_file::replace(&trained, &bytes)?;
    if command.json {
        let told = json!({
            "file": file.to_string(),
            "trained": trained.display().to_string(),
            "model": learned.model().to_string(),
            "examples": examples,
            "categories": categories,
            "seconds": (seconds * 1000.0).round() / 1000.0,
            "bytes": bytes.len(),
        });
        json_output::write(&told, out)?;
    } else {
        let (examples, size) = (counted(examples, "example", "examples"), size(bytes.len()));
        let categories = counted(categories, "category", "categories");
        writeln!(
            out,
            "{file}: trained on {examples} of {categories} in {seconds:.1} s; wrote {} ({size})",
            trained.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn train(taxonomy: &Taxonomy, inference: &Inference) -> Result<Option<TrainedClassifier>, TrainingError> {
    let progress = Progress::new();
    let examples = counted(taxonomy.example_count(), "example", "examples");
    let started = Instant::now();
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    let mut training = std::pin::pin!(TrainedClassifier::train(taxonomy, inference));
    loop {
        tokio::select! {
            learned = &mut training => return learned,
            _ = ticks.tick() => progress.update(&format!("training on {examples}: {} s", started.elapsed().as_secs())),
        }
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes < 1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
