//! Quality: the same labelled texts for corbie and the peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::corbie_command;
use crate::report::{ResultTable, three_digits};

// The same errors as in `corbie eval --typos`.
#[path = "../../../crates/classify/src/evaluate/typos.rs"]
#[expect(unreachable_pub, reason = "it is public where it comes from")]
mod typos;

/// A measured classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Contestant {
    Corbie,
    /// Vote of the nearest examples.
    Nearest,
    /// TF-IDF of words and bigrams, and a support-vector machine.
    Tfidf,
}

const CONTESTANTS: [Contestant; 3] = [Contestant::Corbie, Contestant::Nearest, Contestant::Tfidf];

/// Training and test texts.
#[derive(Debug)]
pub(super) struct LabelledDataset {
    pub(super) name: &'static str,
    folder_name: &'static str,
    has_out_of_scope: bool,
}

pub(super) const DATASETS: [LabelledDataset; 2] = [
    LabelledDataset { name: "CLINC150", folder_name: "clinc150", has_out_of_scope: true },
    LabelledDataset { name: "MMLU-Pro", folder_name: "mmlu-pro", has_out_of_scope: false },
];

/// Results of one contestant on one set. Shares are between 0 and 1.
#[derive(Debug, Serialize)]
pub(super) struct QualityScore {
    set: &'static str,
    contestant: Contestant,
    #[serde(flatten)]
    told: QualityMetrics,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QualityMetrics {
    pub(super) accuracy: f64,
    pub(super) calibration_error: f64,
    /// At a rejection rate of 5 % for texts in scope.
    pub(super) out_of_scope_found: Option<f64>,
    pub(super) accuracy_mistyped: f64,
    fit_s: f64,
    /// For texts classified one at a time.
    p50_us: f64,
    p90_us: f64,
}

/// The files of one set.
#[derive(Debug, Serialize)]
struct DatasetFiles {
    train: PathBuf,
    test: PathBuf,
    mistyped: PathBuf,
    /// A single text: its run time is that of the training.
    one: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_scope: Option<PathBuf>,
}

/// A temporary folder: the provided texts stay out of the project.
struct TempFolder(PathBuf);

pub(super) const WITHOUT_DATA: &str = "no quality without texts: `--data FOLDER` with \
    clinc150/{train,test,oos_test}.jsonl and mmlu-pro/{train,test}.jsonl in it, a `{\"text\", \"label\"}` on each line";

/// With sentence-transformers and scikit-learn.
const PYTHON: &str = ".tools/bench/embed-venv/bin/python";
const SCRIPT: &str = "bench/peers/classify.py";
const TYPO_SHARE: f64 = 0.1;
/// The share of texts in scope that may be rejected.
const MAX_FALSE_REJECTION: f64 = 0.05;

pub(super) fn measure(data: &Path) -> Result<Vec<QualityScore>> {
    let scratch = TempFolder::new()?;
    let mut scores = Vec::new();
    for set in DATASETS {
        let files = DatasetFiles::prepare(&set, &data.join(set.folder_name), &scratch)?;
        for contestant in CONTESTANTS {
            eprintln!(" {}, {}", set.name, contestant.name());
            let told = match contestant {
                Contestant::Corbie => run_corbie(&files)?,
                Contestant::Nearest => run_peer("nearest", &files)?,
                Contestant::Tfidf => run_peer("tfidf", &files)?,
            };
            scores.push(QualityScore { set: set.name, contestant, told });
        }
    }
    Ok(scores)
}

pub(super) fn find_metrics<'a>(
    scores: &'a [QualityScore],
    set: &str,
    contestant: Contestant,
) -> Option<&'a QualityMetrics> {
    scores.iter().find(|score| score.set == set && score.contestant == contestant).map(|score| &score.told)
}

pub(super) fn table(scores: &[QualityScore]) -> ResultTable {
    let mut table = ResultTable::new(
        "Quality",
        &[
            "set",
            "contestant",
            "accuracy %",
            "calibration error %",
            "out of scope found %",
            "10 % mistyped: accuracy %",
            "fit s",
            "a text: p50 µs",
            "corbie is",
            "p90 µs",
            "corbie is",
        ],
    );
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    for QualityScore { set, contestant, told } in scores {
        let faster = |time: fn(&QualityMetrics) -> f64| {
            let corbie = find_metrics(scores, set, Contestant::Corbie);
            corbie.map(|corbie| format!("{}x", three_digits(time(told) / time(corbie)))).unwrap_or_default()
        };
        table.rows.push(vec![
            (*set).into(),
            contestant.name().into(),
            percent(told.accuracy),
            percent(told.calibration_error),
            told.out_of_scope_found.map(percent).unwrap_or_default(),
            percent(told.accuracy_mistyped),
            three_digits(told.fit_s),
            three_digits(told.p50_us),
            faster(|told| told.p50_us),
            three_digits(told.p90_us),
            faster(|told| told.p90_us),
        ]);
    }
    table
}

fn run_corbie(files: &DatasetFiles) -> Result<QualityMetrics> {
    let started = Instant::now();
    evaluate(&files.train, &[&files.one])?;
    let fit_s = started.elapsed().as_secs_f64();
    let tests: Vec<&PathBuf> = [&files.test].into_iter().chain(&files.out_of_scope).collect();
    let report = evaluate(&files.train, &tests)?;
    let number = |report: &Value, pointer: &str| {
        report.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("`corbie eval` tells no `{pointer}`"))
    };
    let rejections = report["scope"]["at_rejection_rate"].as_array().into_iter().flatten();
    let found =
        rejections.filter(|entry| entry["allowed"] == MAX_FALSE_REJECTION).find_map(|entry| entry["detected"].as_f64());
    Ok(QualityMetrics {
        accuracy: number(&report, "/accuracy")?,
        calibration_error: number(&report, "/calibration/error")?,
        out_of_scope_found: found,
        accuracy_mistyped: number(&evaluate(&files.train, &[&files.mistyped])?, "/accuracy")?,
        fit_s,
        p50_us: number(&report, "/latency_micros/p50")?,
        p90_us: number(&report, "/latency_micros/p90")?,
    })
}

fn evaluate(train: &Path, tests: &[&PathBuf]) -> Result<Value> {
    let output = corbie_command()?.arg("eval").args(tests).arg("--train").arg(train).arg("--json").output()?;
    parse("corbie eval", &output)
}

fn run_peer(name: &str, files: &DatasetFiles) -> Result<QualityMetrics> {
    let output = Command::new(PYTHON).args([SCRIPT, name, &json!(files).to_string()]).output().context(PYTHON)?;
    parse(SCRIPT, &output)
}

/// Parses the output of a program that must have succeeded.
pub(super) fn parse<T: serde::de::DeserializeOwned>(program: &str, output: &Output) -> Result<T> {
    ensure!(output.status.success(), "{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).with_context(|| format!("what {program} printed"))
}

impl Contestant {
    fn name(self) -> &'static str {
        match self {
            Contestant::Corbie => "corbie",
            Contestant::Nearest => "nearest 20",
            Contestant::Tfidf => "TF-IDF + SVM",
        }
    }
}

impl DatasetFiles {
    fn prepare(set: &LabelledDataset, folder: &Path, scratch: &TempFolder) -> Result<DatasetFiles> {
        let given = |name: &str| {
            let file = folder.join(name);
            ensure!(file.is_file(), "there is no {}; {WITHOUT_DATA}", file.display());
            Ok(file)
        };
        let (train, test) = (given("train.jsonl")?, given("test.jsonl")?);
        let own = |what: &str| scratch.0.join(format!("{}-{what}.jsonl", set.folder_name));
        let (mistyped, one) = (own("mistyped"), own("one"));
        let text = fs::read_to_string(&test)?;
        fs::write(&mistyped, add_typos(&text)?)?;
        fs::write(&one, text.lines().next().with_context(|| format!("{} has no texts", test.display()))?)?;
        let out_of_scope = if set.has_out_of_scope { Some(given("oos_test.jsonl")?) } else { None };
        Ok(DatasetFiles { train, test, mistyped, one, out_of_scope })
    }
}

impl TempFolder {
    fn new() -> Result<TempFolder> {
        let folder = std::env::temp_dir().join(format!("corbie-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(TempFolder(folder))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The same lines with a tenth of the characters of each text mistyped.
fn add_typos(lines: &str) -> Result<String> {
    let mut mistyping = typos::Mistyping::seeded(0);
    let mut written = String::new();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let mut line: Value = serde_json::from_str(line)?;
        line["text"] = mistyping.mistype(line["text"].as_str().context("a line has a `text`")?, TYPO_SHARE).into();
        written += &format!("{line}\n");
    }
    Ok(written)
}
