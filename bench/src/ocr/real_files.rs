//! Scans and pictures of a folder of real files. They have no reference texts, so the engines are compared with each
//! other.
//!
//! A picture counts if Tesseract is confident of ten words in it; a page of a PDF file must also have no text layer.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::engine::{self, Engine};
use super::measured_process;
use super::pages::{self, InputImage, LANGUAGES, Language};
use crate::extract::score::f1;
use crate::report::ResultTable;

/// Results of the engines for one picture.
#[derive(Debug, Serialize)]
pub(super) struct FileComparison {
    name: String,
    language: Language,
    read: Vec<EngineReading>,
}

#[derive(Debug, Serialize)]
struct EngineReading {
    engine: Engine,
    #[serde(skip)]
    text: String,
    words: usize,
    cpu_s: f64,
}

/// The orientation is unknown.
const ENGINES: [Engine; 3] = [Engine::Corbie, Engine::TesseractOsd, Engine::RapidOcrTurned];
const PAIRS: [(Engine, Engine); 3] = [
    (Engine::Corbie, Engine::TesseractOsd),
    (Engine::Corbie, Engine::RapidOcrTurned),
    (Engine::TesseractOsd, Engine::RapidOcrTurned),
];

const RENDERED_FOLDER: &str = ".tools/bench/ocr-scans";
const TEXTS: &str = ".tools/bench/ocr-texts";
const MIN_WORDS: usize = 10;
/// Tesseract's confidence, of 100.
const MIN_CONFIDENCE: f64 = 60.0;

pub(super) fn measure(folder: &Path, there: &[Engine], quick: bool) -> Result<Vec<FileComparison>> {
    if !there.contains(&Engine::Tesseract) {
        eprintln!(" nobody says which pictures of {} show text: Tesseract is not there", folder.display());
        return Ok(Vec::new());
    }
    eprintln!(" pictures of {} that show text", folder.display());
    let mut found = Vec::new();
    for file in candidates(folder)? {
        found.extend(with_language(file)?);
        if quick && found.len() == 2 {
            break;
        }
    }
    let mut compared = Vec::new();
    for picture in found {
        let name = picture.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut read = Vec::new();
        for engine in ENGINES.into_iter().filter(|engine| engine.is_installed()) {
            // A file that one engine cannot read is skipped for that engine only.
            let reading = match engine.read(std::slice::from_ref(&picture)) {
                Ok(reading) => reading,
                Err(error) => {
                    eprintln!("  {name}, {}: {error:#}", engine.name());
                    continue;
                }
            };
            let text = reading.texts.join("\n");
            fs::write(format!("{TEXTS}/{name}.{}.txt", engine.name()), &text)?;
            let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
            read.push(EngineReading { engine, text, words, cpu_s: reading.cpu_s });
        }
        let file = FileComparison { name, language: picture.language, read };
        eprintln!("  {}: agreement {:.3?}", file.name, PAIRS.map(|pair| file.agreement(pair).unwrap_or(f64::NAN)));
        compared.push(file);
    }
    Ok(compared)
}

/// Pictures, and rendered pages of PDF files without a text layer, in the order of their names.
fn candidates(folder: &Path) -> Result<Vec<PathBuf>> {
    let _ = fs::remove_dir_all(RENDERED_FOLDER);
    let mut files = Vec::new();
    for format in ["jpg", "png"] {
        files.extend(sorted_files(&folder.join(format))?);
    }
    for file in sorted_files(&folder.join("pdf"))? {
        files.extend(pages::render_scanned_pages(&file, RENDERED_FOLDER));
    }
    Ok(files)
}

fn sorted_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if folder.exists() {
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            files.push(entry?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The language with the most confident words in Tesseract; `None` if there are too few.
fn with_language(file: PathBuf) -> Result<Option<InputImage>> {
    let mut best = None;
    for language in LANGUAGES {
        let picture = InputImage { file: file.clone(), language };
        let mut command = engine::tesseract_of(&picture, "1");
        command.arg("tsv");
        let sure = confident_words(&measured_process::run(command)?.output);
        if sure < MIN_WORDS {
            // Another language would hardly find many words if this one finds few.
            break;
        }
        if best.as_ref().is_none_or(|(most, _)| sure > *most) {
            best = Some((sure, picture));
        }
    }
    Ok(best.map(|(_, picture)| picture))
}

/// Lines of twelve columns; the last two are the confidence and the word.
fn confident_words(lines: &str) -> usize {
    let words = lines.lines().filter_map(|line| {
        let mut columns = line.rsplit('\t');
        let (word, confidence) = (columns.next()?, columns.next()?.parse::<f64>().ok()?);
        Some((word, confidence))
    });
    words
        .filter(|(word, confidence)| {
            *confidence >= MIN_CONFIDENCE && word.chars().filter(|c| c.is_alphanumeric()).count() > 1
        })
        .count()
}

impl FileComparison {
    fn reading_by(&self, engine: Engine) -> Option<&EngineReading> {
        self.read.iter().find(|read| read.engine == engine)
    }

    /// The share of words that two engines have in common.
    fn agreement(&self, (one, other): (Engine, Engine)) -> Option<f64> {
        let (one, other) = (self.reading_by(one)?, self.reading_by(other)?);
        Some(f1(&join_hyphenation(&one.text), &join_hyphenation(&other.text)).map_or(0.0, |f1| f1.words))
    }
}

/// Removes hyphenation: corbie removes it, other engines do not.
fn join_hyphenation(text: &str) -> String {
    text.replace("-\n", "")
}

pub(super) fn table(files: &[FileComparison]) -> ResultTable {
    let mut table = ResultTable::new(
        "Real files: words that two have in common",
        &[
            "picture",
            "language",
            "words: corbie",
            "Tesseract",
            "RapidOCR",
            "F1: corbie, Tesseract",
            "corbie, RapidOCR",
            "Tesseract, RapidOCR",
            "CPU s: corbie",
            "Tesseract",
            "RapidOCR",
        ],
    );
    for file in files {
        let mut cells = vec![file.name.clone(), file.language.name().into()];
        cells.extend(
            ENGINES.map(|engine| file.reading_by(engine).map(|read| read.words.to_string()).unwrap_or_default()),
        );
        cells.extend(PAIRS.map(|pair| file.agreement(pair).map(|f1| format!("{f1:.3}")).unwrap_or_default()));
        cells.extend(
            ENGINES.map(|engine| file.reading_by(engine).map(|read| format!("{:.2}", read.cpu_s)).unwrap_or_default()),
        );
        table.rows.push(cells);
    }
    if !files.is_empty() {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let mut cells = vec!["mean".to_owned(), String::new()];
        let of = |engine, figure: fn(&EngineReading) -> f64| {
            mean(files.iter().filter_map(|file| file.reading_by(engine)).map(figure).collect())
        };
        cells.extend(ENGINES.map(|engine| format!("{:.0}", of(engine, |read| read.words as f64))));
        cells.extend(
            PAIRS.map(|pair| format!("{:.3}", mean(files.iter().filter_map(|file| file.agreement(pair)).collect()))),
        );
        cells.extend(ENGINES.map(|engine| format!("{:.2}", of(engine, |read| read.cpu_s))));
        table.rows.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_which_tesseract_is_sure_count() {
        let line = |confidence: &str, word: &str| format!("5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t{confidence}\t{word}\n");
        let lines =
            ["level\tpage_num\tconf\ttext\n".into(), line("96.1", "harbour"), line("59", "town"), line("99", "|")];
        assert_eq!(confident_words(&lines.concat()), 1);
    }
}
