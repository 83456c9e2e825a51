//! Classification: quality compared with nearest neighbours and a support-vector machine, and speed compared with a
//! Python server with regular expressions.
//!
//! Quality is measured only with labelled texts: `--data FOLDER`.

mod latency;
mod quality;
mod speed;
mod texts;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::report::{self, BenchReport};
use crate::targets::{self, TargetResult, at_least, at_most};
use crate::workload::Era;
use latency::Latency;
use quality::{Contestant, QualityScore};
use speed::SpeedMeasurement;
use texts::DecidedBy;

const PROGRAM: &str = ".tools/bench/target/dist/corbie";
/// Generated files for the contestants.
const FOLDER: &str = ".tools/bench/classify";
/// The interpreter of the server with regular expressions.
const PYTHON: &str = ".tools/bench/classify-venv/bin/python";
const SERVER: &str = "bench/peers/regex_server.py";

const HOW_GOOD: &str = "Quality: everybody learns from the same texts, is asked the same ones, and gets the same \
    mistyped ones, with as many threads as it takes by itself. Nearest 20: all-MiniLM-L6-v2 by sentence-transformers, \
    the 20 nearest examples by cosine vote with their similarity, confidence is the share of the votes, out of scope is \
    what has a low mean similarity to them. TF-IDF + SVM: words and pairs of words with scikit-learn's LinearSVC, \
    confidence is the softmax of the decision values, out of scope is what has a low highest one. Out of scope: the \
    share that is found where 5 % of the others may be refused. Fit: corbie's includes the start of the process. Times \
    per text are those of texts classified one at a time, by sentence-transformers on one thread, where it is steadier; \
    corbie sends only texts through the transformer that its words leave open, so p90 tells as much as p50. ";
const HOW_FAST: &str = "In process: the same few texts again and again. Calls: every round starts a new process, and \
    contestants take turns; corbie's cache is off but where the same text comes again. `x Python` is the median of the \
    ratios within each round; the load generator shares the cores with the server";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`classify` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    ensure!(!args.keep || args.data.is_some(), "only a whole run can be kept; give it `--data FOLDER`");
    let effort = args.effort();
    let mut machine = Machine::detect();
    std::fs::create_dir_all(FOLDER)?;
    let scores = match &args.data {
        Some(folder) => quality::measure(&crate::caller_folder().join(folder))?,
        None => {
            eprintln!("{}", quality::WITHOUT_DATA);
            Vec::new()
        }
    };
    let settled = texts::classify_all()?;
    let latencies = latency::measure(&settled, effort)?;
    let cells = speed::measure(&settled, effort)?;
    machine.update_load();

    let how_good = if scores.is_empty() { "" } else { HOW_GOOD };
    let verdicts = evaluate_targets(&scores, &latencies, &cells);
    let report = BenchReport {
        name: "classify",
        machine,
        about: format!("{} (four times that for Python). {how_good}{HOW_FAST}", effort.describe()),
        tables: vec![
            quality::table(&scores),
            latency::table(&latencies),
            speed::table(&cells),
            targets::table(&verdicts),
        ],
        json: json!({ "scores": scores, "latencies": latencies, "cells": cells, "verdicts": verdicts }),
        summary: summary(&scores, &latencies, &cells),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

/// The program with default configuration: no settings of this machine or user.
fn corbie_command() -> Result<Command> {
    let settings = Path::new(FOLDER).join("corbie.yaml");
    std::fs::write(&settings, "{}\n").with_context(|| settings.display().to_string())?;
    let mut command = Command::new(PROGRAM);
    command.arg("--config").arg(settings);
    let own = |name: &str| name.starts_with("CORBIE_") || name == "LOG_LEVEL";
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
        command.env_remove(name);
    }
    Ok(command)
}

fn evaluate_targets(scores: &[QualityScore], latencies: &[Latency], cells: &[SpeedMeasurement]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    let score = |set| quality::find_metrics(scores, set, Contestant::Corbie);
    if let Some(score) = score("CLINC150") {
        verdicts.push(at_least("CLINC150: accuracy", 100.0 * score.accuracy, "%", 95.3, 96.5));
        verdicts.push(at_most("CLINC150: calibration error", 100.0 * score.calibration_error, "%", 2.0, 1.0));
        if let Some(found) = score.out_of_scope_found {
            verdicts.push(at_least("CLINC150: out of scope found", 100.0 * found, "%", 80.0, 90.0));
        }
        let lost = 100.0 * (score.accuracy - score.accuracy_mistyped);
        verdicts.push(at_most("CLINC150: lost with 10 % mistyped", lost, "points", 10.0, 3.0));
    }
    if let Some(score) = score("MMLU-Pro") {
        verdicts.push(at_least("MMLU-Pro: accuracy", 100.0 * score.accuracy, "%", 80.0, 86.0));
    }
    let slowest = latencies.iter().map(Latency::corbie).fold(f64::NAN, f64::max);
    verdicts.push(at_most("in process, without the transformer: p50", slowest, "µs", 40.0, 25.0));
    if let Some(cell) = speed::find_corbie(cells, speed::TextWorkload::Words, Era::Rest) {
        let rate = cell.median(|figures| figures.calls_per_second);
        verdicts.push(at_least("HTTP, words suffice", rate, "calls/s", 20_000.0, 40_000.0));
    }
    if let Some(cell) = speed::find_corbie(cells, speed::TextWorkload::Model, Era::Rest) {
        let rate = cell.median(|figures| figures.calls_per_second);
        let verdict = at_least("HTTP, every text needs the transformer", rate, "calls/s", 700.0, 700.0);
        verdicts.push(TargetResult { goal: "-".into(), goal_met: true, ..verdict });
        let resident = cell.median(|figures| figures.loaded_mb);
        verdicts.push(at_most("RSS with the model loaded and used", resident, "MB", 170.0, 110.0));
    }
    verdicts
}

/// One-line summary: corbie compared with the peers.
fn summary(scores: &[QualityScore], latencies: &[Latency], cells: &[SpeedMeasurement]) -> String {
    let mut parts = Vec::new();
    for set in quality::DATASETS {
        let accuracy = |who| quality::find_metrics(scores, set.name, who).map(|score| 100.0 * score.accuracy);
        if let (Some(corbie), Some(nearest), Some(tfidf)) =
            (accuracy(Contestant::Corbie), accuracy(Contestant::Nearest), accuracy(Contestant::Tfidf))
        {
            parts.push(format!("{} {corbie:.1} % (nearest 20 {nearest:.1}, TF-IDF + SVM {tfidf:.1})", set.name));
        }
    }
    for latency in latencies.iter().filter(|latency| latency.by == DecidedBy::Words) {
        parts.push(format!("in process {:.1} µs, {:.1}x Python", latency.corbie(), latency.ratio()));
    }
    for (what, workload) in [("words", speed::TextWorkload::Words), ("transformer", speed::TextWorkload::Model)] {
        if let Some(ratio) = speed::ratio(cells, workload, Era::Rest) {
            parts.push(format!("HTTP, {what}: {ratio:.1}x Python"));
        }
    }
    format!("classify {}", parts.join(", "))
}
