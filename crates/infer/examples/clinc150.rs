//! Trains a classifier on CLINC150 and prints how well it does, as a Markdown table.
//!
//!     cargo run --release -p corbie-infer --example clinc150 -- FOLDER [--vectors FOLDER]
//!
//! The folder holds `train.jsonl`, `test.jsonl` and `oos_test.jsonl`, with `{"text": …, "label": …}` on each line.
//! With `--vectors`, vectors are read from `train.f32`, `test.f32` and `oos_test.f32` there rather than made: all
//! numbers of all texts in their order, little-endian.

#![expect(clippy::print_stdout, reason = "a table on standard output is what this program is for")]

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use corbie_infer::heads::{Classifier, Example, Verdict};
use corbie_infer::{Embedder, Embedding, ModelId, Purpose};
use serde::Deserialize;

/// One line of a file; texts that are out of scope have no label.
#[derive(Deserialize)]
struct Line {
    text: String,
    label: Option<String>,
}

/// The lines of a file with a vector for each.
struct Part {
    lines: Vec<Line>,
    embeddings: Vec<Embedding>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder: PathBuf = arguments.next().ok_or("name the folder with the CLINC150 files")?.into();
    let vectors = match (arguments.next(), arguments.next()) {
        (None, _) => None,
        (Some(option), Some(folder)) if option == "--vectors" => Some(PathBuf::from(folder)),
        _ => return Err("the only option is `--vectors FOLDER`".into()),
    };
    let read = |name| Part::read(&folder, vectors.as_deref(), name);
    let (train, test, strange) = (read("train")?, read("test")?, read("oos_test")?);

    let labels: BTreeSet<&str> = train.lines.iter().filter_map(|line| line.label.as_deref()).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    let class = |line: &Line| line.label.as_deref().and_then(|label| labels.binary_search(&label).ok());
    let examples = train
        .lines
        .iter()
        .zip(&train.embeddings)
        .map(|(line, embedding)| Some(Example { text: &line.text, embedding, class: class(line)? }));
    let examples: Vec<Example<'_>> = examples.collect::<Option<_>>().ok_or("a training text has no label")?;

    let start = Instant::now();
    let classifier = Classifier::train(&examples, labels.len())?;
    let training = start.elapsed();
    let (known, per_text) = test.classify(&classifier)?;
    let (strangers, _) = strange.classify(&classifier)?;
    let truth: Vec<usize> = test.lines.iter().map(class).collect::<Option<_>>().ok_or("a test text has no label")?;
    let scores = |verdicts: &[Verdict]| -> Vec<f32> { verdicts.iter().map(|verdict| verdict.strangeness).collect() };
    let (known_scores, strange_scores) = (scores(&known), scores(&strangers));
    let limit = quantile(known_scores.clone(), 0.95);
    let percent_of = |verdicts: &[Verdict], is: &dyn Fn(&Verdict) -> bool| {
        100.0 * verdicts.iter().filter(|verdict| is(verdict)).count() as f64 / verdicts.len() as f64
    };

    println!("| CLINC150, {} examples of {} classes | |", examples.len(), labels.len());
    println!("|---|---:|");
    println!("| Accuracy | {:.2} % |", 100.0 * accuracy(&known, &truth));
    println!("| Expected calibration error, 15 bins | {:.2} % |", 100.0 * calibration_error(&known, &truth));
    println!(
        "| Out of scope, area under the curve | {:.2} % |",
        100.0 * area_under_curve(&known_scores, &strange_scores)
    );
    println!(
        "| Out of scope found when 5 % of known texts are refused | {:.1} % |",
        percent_of(&strangers, &|verdict| verdict.strangeness > limit)
    );
    println!(
        "| Out of scope found at `out_of_scope` ≥ 0.95 | {:.1} % |",
        percent_of(&strangers, &|verdict| verdict.out_of_scope >= 0.95)
    );
    println!(
        "| Known texts refused at `out_of_scope` ≥ 0.95 | {:.1} % |",
        percent_of(&known, &|verdict| verdict.out_of_scope >= 0.95)
    );
    println!("| Training, without embedding | {:.1} s |", training.as_secs_f64());
    let (few, time) = train_on_few(&examples)?;
    println!("| Training on {few} examples of {FEW_CLASSES} classes | {:.2} s |", time.as_secs_f64());
    println!("| Classifying a text, without embedding | {:.2} ms |", 1000.0 * per_text.as_secs_f64());
    println!("| Saved classifier | {:.1} MB |", classifier.to_bytes().len() as f64 / 1e6);
    Ok(())
}

const FEW_CLASSES: usize = 14;

/// What a taxonomy of one's own has: a few classes with some twenty examples each.
fn train_on_few(examples: &[Example<'_>]) -> Result<(usize, Duration), Box<dyn Error>> {
    let mut left = [22_u32; FEW_CLASSES];
    let few: Vec<Example<'_>> = examples
        .iter()
        .filter(|example| {
            let left = left.get_mut(example.class);
            left.is_some_and(|left| std::mem::replace(left, left.saturating_sub(1)) > 0)
        })
        .copied()
        .collect();
    let start = Instant::now();
    Classifier::train(&few, FEW_CLASSES)?;
    Ok((few.len(), start.elapsed()))
}

// === Where the vectors come from ===

/// Embeds texts with the model inside the library.
fn embed(texts: &[String]) -> Result<Vec<Embedding>, Box<dyn Error>> {
    let threads = std::thread::available_parallelism()?.get();
    Ok(Embedder::builtin(threads)?.embed_many(texts, Purpose::Passage)?)
}

fn read_vectors(path: &Path, texts: usize) -> Result<Vec<Embedding>, Box<dyn Error>> {
    let bytes = std::fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    let (numbers, []) = bytes.as_chunks() else { return Err("a vector file is cut short".into()) };
    let numbers: Vec<f32> = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    if texts == 0 || numbers.is_empty() || !numbers.len().is_multiple_of(texts) {
        return Err(format!("`{}` has not the same count of numbers for each of {texts} texts", path.display()).into());
    }
    let model = ModelId::from("vectors from files");
    let embed =
        |vector: &[f32]| Embedding { model: model.clone(), vector: vector.to_vec(), tokens: 0, truncated: false };
    Ok(numbers.chunks(numbers.len() / texts).map(embed).collect())
}

impl Part {
    fn read(folder: &Path, vectors: Option<&Path>, name: &str) -> Result<Part, Box<dyn Error>> {
        let path = folder.join(format!("{name}.jsonl"));
        let file = std::fs::read_to_string(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let lines: Vec<Line> = file.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let embeddings = match vectors {
            Some(folder) => read_vectors(&folder.join(format!("{name}.f32")), lines.len())?,
            None => embed(&lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>())?,
        };
        Ok(Part { lines, embeddings })
    }

    /// A verdict on each text, and the mean time it took.
    fn classify(&self, classifier: &Classifier) -> Result<(Vec<Verdict>, Duration), Box<dyn Error>> {
        let start = Instant::now();
        let verdicts = self.lines.iter().zip(&self.embeddings);
        let verdicts = verdicts.map(|(line, embedding)| classifier.classify(&line.text, embedding));
        let verdicts = verdicts.collect::<Result<Vec<_>, _>>()?;
        Ok((verdicts, start.elapsed() / self.lines.len().max(1) as u32))
    }
}

// === Measures ===

fn accuracy(verdicts: &[Verdict], truth: &[usize]) -> f64 {
    let right = verdicts.iter().zip(truth).filter(|(verdict, class)| verdict.class() == **class).count();
    right as f64 / truth.len() as f64
}

/// How far confidence is from being right, in bins of like confidence, weighted by their sizes.
fn calibration_error(verdicts: &[Verdict], truth: &[usize]) -> f64 {
    const BINS: usize = 15;
    let mut gaps = [0.0; BINS];
    for (verdict, class) in verdicts.iter().zip(truth) {
        let bin = (verdict.confidence() * BINS as f32) as usize;
        let is_right = if verdict.class() == *class { 1.0 } else { 0.0 };
        gaps[bin.min(BINS - 1)] += is_right - f64::from(verdict.confidence());
    }
    gaps.iter().map(|gap: &f64| gap.abs()).sum::<f64>() / truth.len() as f64
}

/// The probability that a strange text scores higher than a known one.
fn area_under_curve(known: &[f32], strange: &[f32]) -> f64 {
    let mut known = known.to_vec();
    known.sort_unstable_by(f32::total_cmp);
    let wins = strange.iter().map(|score| {
        let below = known.partition_point(|other| other < score);
        let up_to = known.partition_point(|other| other <= score);
        (below + up_to) as f64 / 2.0
    });
    wins.sum::<f64>() / (known.len() * strange.len()) as f64
}

fn quantile(mut scores: Vec<f32>, share: f64) -> f32 {
    scores.sort_unstable_by(f32::total_cmp);
    scores[((scores.len() - 1) as f64 * share).round() as usize]
}
