//! Scores extraction of office documents against reference words: `score_office <folder> [format ...]`.
//!
//! The folder contains `docx`, `pptx` and `xlsx` with documents, and `reference` with the same three subfolders, where
//! `<name>.txt` holds the expected text of the document `<name>`. The program prints the word F1 of every file below 1
//! with its worst words, then for each format the mean, the files that returned an error, and the speed.
//!
//! The references contain less than the documents. References of workbooks include sheet names but no comments, so this
//! program does the same. No reference includes chart text, so the program also prints the mean without files that have
//! charts.

#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use corbie_extract::{BlockKind, Document, Error, Format, Options};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let wanted: Vec<String> = arguments.collect();
    for format in [Format::Docx, Format::Pptx, Format::Xlsx] {
        if wanted.is_empty() || wanted.iter().any(|name| name == format.as_str()) {
            score(Path::new(&folder), format)?;
        }
    }
    Ok(())
}

fn score(folder: &Path, format: Format) -> std::io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder.join(format.as_str()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let (mut scores, mut without_charts, mut bytes_read, mut time) = (Vec::new(), Vec::new(), 0, Duration::ZERO);
    for name in &names {
        let bytes = std::fs::read(folder.join(format.as_str()).join(name))?;
        let started = Instant::now();
        let outcome = corbie_extract::document(&bytes, format, &Options::default());
        time += started.elapsed();
        bytes_read += bytes.len();
        let reference =
            std::fs::read_to_string(folder.join("reference").join(format.as_str()).join(format!("{name}.txt")));
        if let Some(f1) = report(name, format, outcome, reference.ok(), started.elapsed()) {
            scores.push(f1);
            // ZIP does not compress part names, so a byte search finds them.
            if !bytes.windows(12).any(|window| window == b"charts/chart") {
                without_charts.push(f1);
            }
        }
    }
    let seconds = time.as_secs_f64();
    println!(
        "{format}: word F1 {:.4} over {} files, {:.4} over the {} without charts; {} files in {:.1} ms, {:.0} files/s, \
         {:.1} MB/s, peak {} MB\n",
        mean(&scores),
        scores.len(),
        mean(&without_charts),
        without_charts.len(),
        names.len(),
        seconds * 1e3,
        names.len() as f64 / seconds,
        bytes_read as f64 / 1e6 / seconds,
        peak_megabytes(),
    );
    Ok(())
}

fn report(
    name: &str,
    format: Format,
    outcome: Result<Document, Error>,
    reference: Option<String>,
    time: Duration,
) -> Option<f64> {
    let text = match outcome {
        Ok(mut document) => {
            for warning in &document.warnings {
                println!("{format} {name}: warning: {}", warning.message);
            }
            for page in document.pages.iter_mut().filter(|_| format == Format::Xlsx) {
                page.blocks.retain(|block| block.kind != BlockKind::Comment);
            }
            let sheets = document.pages.iter().filter(|_| format == Format::Xlsx).flat_map(|page| page.name.clone());
            sheets.chain([document.text()]).collect::<Vec<_>>().join("\n")
        }
        Err(error) => {
            println!("{format} {name}: {} ({} ms): {error}", error.kind(), time.as_millis());
            String::new()
        }
    };
    let (f1, difference) = compare(&words(&text), &words(&reference?));
    if f1 < 1.0 {
        println!("{format} {name}: {f1:.4} {difference}");
    }
    Some(f1)
}

fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len().max(1) as f64
}

fn words(text: &str) -> HashMap<String, i64> {
    let mut words = HashMap::new();
    for word in text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words
}

fn compare(found: &HashMap<String, i64>, wanted: &HashMap<String, i64>) -> (f64, String) {
    let common: i64 = found.iter().map(|(word, count)| *count.min(wanted.get(word).unwrap_or(&0))).sum();
    let total = found.values().sum::<i64>() + wanted.values().sum::<i64>();
    let f1 = if total == 0 { 1.0 } else { 2.0 * common as f64 / total as f64 };
    let mut differences: Vec<(i64, &String)> = Vec::new();
    for word in found.keys().chain(wanted.keys().filter(|word| !found.contains_key(*word))) {
        let more = found.get(word).unwrap_or(&0) - wanted.get(word).unwrap_or(&0);
        if more != 0 {
            differences.push((more, word));
        }
    }
    differences.sort_by_key(|(more, word)| (-more.abs(), *word));
    let shown = differences.iter().take(12).map(|(more, word)| format!("{word}{more:+}")).collect::<Vec<_>>();
    (f1, shown.join(" "))
}

/// Peak resident memory of this process; 0 if the system does not report it.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}
