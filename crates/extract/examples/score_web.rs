//! Scores extraction of HTML, SVG and other files against reference words.
//!
//! `score_web FOLDER [REFERENCE] [--main] [--write FOLDER]`: `REFERENCE` contains `NAME.txt` for each file; without it,
//! only sizes are printed. The score of a file is the F1 over the multiset of lowercase alphanumeric words.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, io::Write};

use corbie_extract::{Document, Format, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut folders = Vec::new();
    let (mut full, mut write) = (true, None);
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--main" => full = false,
            "--write" => write = arguments.next().map(PathBuf::from),
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    let [folder, references @ ..] = folders.as_slice() else { return Err("which folder?".into()) };
    let options = Options { full, ..Options::default() };
    let mut files: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut out = std::io::stdout().lock();
    let (mut scores, mut took, mut bytes_read) = (Vec::new(), Duration::ZERO, 0);
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let Some(format) = format_of(file) else { continue };
        let bytes = fs::read(file)?;
        let start = Instant::now();
        let read = corbie_extract::document(&bytes, format, &options);
        took += start.elapsed();
        bytes_read += bytes.len();
        let document = match read {
            Ok(document) => document,
            Err(error) => {
                writeln!(out, "  error   {name}: {error}")?;
                scores.push(0.0);
                continue;
            }
        };
        let text = document.text();
        if let Some(folder) = &write {
            fs::write(folder.join(format!("{name}.txt")), &text)?;
        }
        match references.first().map(|folder| fs::read_to_string(folder.join(format!("{name}.txt")))) {
            Some(reference) => {
                let score = f1(&words(&text), &words(&reference?));
                scores.push(score);
                writeln!(out, "  {score:.4}  {name}")?;
            }
            None => writeln!(out, "  {}  {name}", shape(&document))?,
        }
    }
    if !scores.is_empty() {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        writeln!(out, "word F1 {mean:.4} over {} files", scores.len())?;
    }
    let seconds = took.as_secs_f64();
    let speed = bytes_read as f64 / 1e6 / seconds;
    writeln!(out, "{bytes_read} bytes of {} files in {seconds:.3} s, {speed:.1} MB/s", files.len())?;
    Ok(())
}

fn format_of(file: &Path) -> Option<Format> {
    Format::from_extension(&file.extension()?.to_string_lossy())
}

fn shape(document: &Document) -> String {
    let blocks: usize = document.pages.iter().map(|page| page.blocks.len()).sum();
    let size = document.metadata.width.zip(document.metadata.height);
    let size = size.map(|(width, height)| format!(" {width}x{height}")).unwrap_or_default();
    format!("{blocks} blocks, {} words,{size} {} warnings", words(&document.text()).len(), document.warnings.len())
}

fn words(text: &str) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for word in text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        *words.entry(word.to_owned()).or_default() += 1;
    }
    words
}

fn f1(found: &HashMap<String, usize>, wanted: &HashMap<String, usize>) -> f64 {
    let count = |words: &HashMap<String, usize>| words.values().sum::<usize>() as f64;
    if found.is_empty() && wanted.is_empty() {
        return 1.0;
    }
    let common =
        found.iter().map(|(word, times)| wanted.get(word).map_or(0, |wanted| *wanted.min(times))).sum::<usize>();
    2.0 * common as f64 / (count(found) + count(wanted))
}
