//! Text extraction: corbie compared with kreuzberg, markitdown, pypdfium2 and trafilatura, over a folder of real files.
//!
//! The folder has the files by format, `pdf/a.pdf`, and their texts in `reference/pdf/a.pdf.txt`. For the main part of
//! web pages there may be `reference/article/a.html.txt`. Files without a reference show failures and their kinds.

mod extractor;
mod files;
pub(crate) mod score;
mod targets;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::Args;
use crate::machine::Machine;
use crate::report::{self, BenchReport, ResultTable, three_digits};
use crate::targets;
use extractor::{EXTRACTORS, Extractor};
use files::{ExtractionCase, ExtractionTask};
use score::F1;
use worker::{ExtractionOutcome, LIMITS, Worker};

/// Results of one extractor for all files of one task.
#[derive(Debug, Serialize)]
struct TaskResults {
    task: ExtractionTask,
    extractor: Extractor,
    files: Vec<FileResult>,
    peak_mb: f64,
}

#[derive(Debug, Serialize)]
struct FileResult {
    file: String,
    #[serde(flatten)]
    outcome: ExtractionOutcome,
    /// Only with a reference. A failed file has a score of zero.
    score: Option<F1>,
    garbled: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.servers.is_empty() && args.workloads.is_empty(), "`extract` has its own contestants");
    ensure!(!(args.keep && args.quick), "a quick run cannot be kept");
    let folder = args.folder.as_ref().context("`extract` needs a folder of documents with `reference/` in it")?;
    let tasks = files::tasks(&crate::caller_folder().join(folder))?;
    let times = args.rounds.unwrap_or(if args.quick { 1 } else { 3 });
    let mut machine = Machine::detect();
    let mut rows = Vec::new();
    for (task, cases) in &tasks {
        for extractor in EXTRACTORS.into_iter().filter(|extractor| extractor.supports(task.format())) {
            if extractor.is_installed() {
                eprintln!(" {}, {}", task.name(), extractor.name());
                rows.push(measure(task, extractor, cases, times)?);
            }
        }
    }
    machine.update_load();

    let verdicts = targets::evaluate_targets(&rows);
    let report = BenchReport {
        name: "extract",
        machine,
        about: format!(
            "words are letters and digits in lower case, F1 counts each as often as it is there and is the mean over \
             the files with a reference, where a file that was not read has 0 (in brackets without references that are \
             no text); CPU time is that of the fastest of \
             {times} readings in a warm process; pages are pdfium's, other files count as one; {LIMITS}"
        ),
        tables: vec![table(&rows), targets::table(&verdicts)],
        summary: targets::summary(&rows),
        json: json!({ "rows": rows, "verdicts": verdicts }),
    };
    report::publish(&report, args.keep)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(task: &ExtractionTask, extractor: Extractor, cases: &[ExtractionCase], times: u32) -> Result<TaskResults> {
    let mut row = TaskResults { task: task.clone(), extractor, files: Vec::new(), peak_mb: 0.0 };
    let mut worker = None;
    for case in cases {
        let mut current = match worker.take() {
            Some(worker) => worker,
            None => Worker::start(extractor)?,
        };
        let (outcome, is_alive) = current.extract(&case.file, task.is_full(), times);
        row.peak_mb = row.peak_mb.max(current.peak_mb().unwrap_or_default());
        worker = is_alive.then_some(current);
        let found = if let ExtractionOutcome::Text { text, .. } = &outcome { text } else { "" };
        let score = case.reference.as_ref().and_then(|reference| score::f1(found, reference));
        row.files.push(FileResult { file: case.name.clone(), outcome, score, garbled: case.garbled });
    }
    // Limits can stop a clock, and an extractor without measured time would look fastest.
    let still = row.files.iter().filter(|done| done.cpu_s().is_some_and(|seconds| seconds <= 0.0)).count();
    ensure!(still == 0, "{} says that {still} files took no time; its clock is wrong", extractor.name());
    Ok(row)
}

impl TaskResults {
    /// The mean over the files with a reference.
    fn score(&self) -> Option<F1> {
        self.mean(|_| true)
    }

    /// The same without references that are not text; `None` if there are no such references.
    fn score_of_text(&self) -> Option<F1> {
        self.files.iter().any(|done| done.garbled).then(|| self.mean(|done| !done.garbled))?
    }

    fn mean(&self, counts: fn(&FileResult) -> bool) -> Option<F1> {
        let scores: Vec<F1> = self.files.iter().filter(|done| counts(done)).filter_map(|done| done.score).collect();
        let mean = |figure: fn(&F1) -> f64| scores.iter().map(figure).sum::<f64>() / scores.len() as f64;
        (!scores.is_empty()).then(|| F1 { words: mean(|score| score.words), bigrams: mean(|score| score.bigrams) })
    }

    fn count(&self, is: fn(&ExtractionOutcome) -> bool) -> usize {
        self.files.iter().filter(|done| is(&done.outcome)).count()
    }

    /// Pages per second of CPU time, over the files that `other` has also read; over all its files without `other`.
    fn pages_per_second(&self, rows: &[TaskResults], other: Option<&TaskResults>) -> Option<f64> {
        let has_read =
            |row: &TaskResults, file: &str| row.files.iter().any(|done| done.file == file && done.cpu_s().is_some());
        let counted = self.files.iter().filter(|done| other.is_none_or(|other| has_read(other, &done.file)));
        let counted: Vec<(f64, f64)> =
            counted.filter_map(|done| Some((pages(rows, &self.task, &done.file), done.cpu_s()?))).collect();
        let sum = |part: fn(&(f64, f64)) -> f64| counted.iter().map(part).sum::<f64>();
        (!counted.is_empty()).then(|| sum(|(pages, _)| *pages) / sum(|(_, seconds)| *seconds).max(1e-9))
    }

    fn cpu_s(&self) -> f64 {
        self.files.iter().filter_map(FileResult::cpu_s).fold(0.0, |sum, seconds| sum + seconds)
    }
}

impl FileResult {
    /// CPU time of a file that was read.
    fn cpu_s(&self) -> Option<f64> {
        if let ExtractionOutcome::Text { cpu_s, .. } = self.outcome { Some(cpu_s) } else { None }
    }
}

/// Number of pages of a file, the same for all extractors.
fn pages(rows: &[TaskResults], task: &ExtractionTask, file: &str) -> f64 {
    let pdfium = rows.iter().find(|row| row.extractor == Extractor::Pypdfium2 && row.task == *task);
    let told = pdfium.and_then(|row| row.files.iter().find(|done| done.file == file));
    match told.map(|done| &done.outcome) {
        Some(ExtractionOutcome::Text { pages: Some(pages), .. }) => *pages as f64,
        _ => 1.0,
    }
}

fn find<'a>(rows: &'a [TaskResults], task: &ExtractionTask, extractor: Extractor) -> Option<&'a TaskResults> {
    rows.iter().find(|row| row.task == *task && row.extractor == extractor)
}

/// Speed relative to another extractor on the files both have read.
fn speed(rows: &[TaskResults], task: &ExtractionTask, than: Extractor) -> Option<f64> {
    let (own, other) = (find(rows, task, Extractor::Corbie)?, find(rows, task, than)?);
    Some(own.pages_per_second(rows, Some(other))? / other.pages_per_second(rows, Some(own))?)
}

fn table(rows: &[TaskResults]) -> ResultTable {
    let mut table = ResultTable::new(
        "Documents",
        &[
            "format",
            "extractor",
            "files",
            "with reference",
            "word F1",
            "bigram F1",
            "errors",
            "crashes",
            "timeouts",
            "empty",
            "CPU s",
            "pages per CPU-s",
            "corbie is",
            "peak RSS MB",
        ],
    );
    for row in rows {
        let shown = |figure: fn(F1) -> f64| match (row.score().map(figure), row.score_of_text().map(figure)) {
            (Some(all), Some(of_text)) => format!("{all:.3} ({of_text:.3})"),
            (Some(all), None) => format!("{all:.3}"),
            (None, _) => String::new(),
        };
        table.rows.push(vec![
            row.task.name(),
            row.extractor.name().into(),
            row.files.len().to_string(),
            row.files.iter().filter(|done| done.score.is_some()).count().to_string(),
            shown(|score| score.words),
            shown(|score| score.bigrams),
            row.count(|outcome| matches!(outcome, ExtractionOutcome::Error { .. })).to_string(),
            row.count(|outcome| matches!(outcome, ExtractionOutcome::Crash)).to_string(),
            row.count(|outcome| matches!(outcome, ExtractionOutcome::Timeout)).to_string(),
            row.count(|outcome| matches!(outcome, ExtractionOutcome::Empty)).to_string(),
            format!("{:.3}", row.cpu_s()),
            row.pages_per_second(rows, None).map(three_digits).unwrap_or_default(),
            speed(rows, &row.task, row.extractor).map(|ratio| format!("{}x", three_digits(ratio))).unwrap_or_default(),
            three_digits(row.peak_mb),
        ]);
    }
    table
}
