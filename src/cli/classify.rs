//! `corbie classify`: classifies texts, without a server.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::exit::UsageError;
use super::progress::Progress;
use super::stdin_lines::StdinLines;
use super::{CommandResult, json_output, sanitize, sanitize_line};
use crate::classify::tools::ClassifyTextOutput;
use crate::classify::{Classification, ClassifiedText};
use crate::config::LoadedConfig;
use crate::config::classification::{Classification as Settings, ClassificationMethod};
use crate::inference::Inference;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie classify \"what is 2 + 2?\"
  corbie classify --taxonomy mine.yaml --json < texts.txt")]
pub(super) struct Classify {
    /// Texts to classify; without any, one per line of stdin
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    #[command(flatten)]
    how: ClassifierOptions,
    /// Print one JSON object per text, with the probabilities of all categories
    #[arg(long)]
    json: bool,
}

/// Classification options that override the settings.
#[derive(Debug, Clone, Args)]
pub(super) struct ClassifierOptions {
    /// Taxonomy file, instead of the one in the settings
    #[arg(long, value_name = "FILE")]
    pub(super) taxonomy: Option<PathBuf>,
    /// Classification method, overriding the settings: hybrid, rules, embedding or model
    #[arg(long, value_name = "METHOD")]
    pub(super) method: Option<ClassificationMethod>,
}

/// Texts between two progress updates.
const PROGRESS_INTERVAL: usize = 64;
/// Width of the bar for probability 1.
const BAR_COLUMNS: f64 = 40.0;

pub(super) fn run(command: &Classify, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let inference = Inference::new(loaded.config.inference.clone());
    let classification = Classification::new(command.how.settings(loaded), inference)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let bars = std::io::stdout().is_terminal();
    let mut failed = false;
    let mut one = |text: &str| -> Result<(), Box<dyn std::error::Error>> {
        match runtime.block_on(classification.classify(text)) {
            Ok(classified) => write(&classified, command.json, bars, out)?,
            Err(unfit) => {
                failed = true;
                if command.json {
                    let told = json!({ "success": false, "error": "invalid_text", "message": unfit.to_string() });
                    json_output::write(&told, out)?;
                } else {
                    writeln!(std::io::stderr(), "corbie: {}", sanitize(&unfit.to_string()))?;
                }
            }
        }
        Ok(out.flush()?)
    };
    for text in &command.texts {
        one(text)?;
    }
    if command.texts.is_empty() {
        let stdin = std::io::stdin().lock();
        if stdin.is_terminal() {
            let none = "no text; specify one, such as corbie classify \"what is 2 + 2?\", or pipe one text per line";
            return Err(UsageError::Value(none.into()).into());
        }
        let progress = Progress::with_results();
        let mut lines = StdinLines::of(stdin);
        loop {
            let texts = lines.next(1)?;
            let [text] = texts.as_slice() else { break };
            if lines.read().is_multiple_of(PROGRESS_INTERVAL) {
                progress.update(&format!("{} texts", lines.read()));
            }
            one(text)?;
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl ClassifierOptions {
    /// The settings with the overrides of the command line.
    pub(super) fn settings(&self, loaded: &LoadedConfig) -> Settings {
        let mut settings = loaded.config.classification.clone();
        if let Some(path) = &self.taxonomy {
            settings.taxonomy = Some(path.clone());
        }
        settings.method = self.method.unwrap_or(settings.method);
        settings
    }
}

fn write(classified: &ClassifiedText<'_>, json: bool, bars: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let ClassifiedText { text, snapshot: published, prediction: verdict } = classified;
    let output = ClassifyTextOutput::of(text, published, verdict, json);
    if json {
        return json_output::write(&output, out);
    }
    if !bars {
        return writeln!(out, "{}\t{:.3}\t{}", output.category, output.confidence, sanitize_line(text));
    }
    writeln!(out, "{}", sanitize_line(text))?;
    let widest = published.taxonomy.names().map(|name| name.chars().count()).max().unwrap_or(0).min(24);
    for (class, probability) in verdict.top(MAX_BARS) {
        let name: String = published.taxonomy.categories[class].name.chars().take(24).collect();
        let filled = "█".repeat((f64::from(probability) * BAR_COLUMNS).round() as usize);
        writeln!(out, "  {name:<widest$} {:>5.1} % {filled}", 100.0 * probability)?;
    }
    let reasoning = if output.use_reasoning { "on" } else { "off" };
    let strange = if output.out_of_scope >= 0.95 { " · out of scope" } else { "" };
    writeln!(out, "  model {} · reasoning {reasoning} · method {}{strange}", output.model, output.method)
}

/// Maximum number of bars; only the most probable categories are shown.
const MAX_BARS: usize = 12;
