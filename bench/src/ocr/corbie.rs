//! OCR by corbie: one command for all files, including model loading and worker processes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::engine::OcrRun;
use super::measured_process::{self, ProcessStats};

/// A line of `corbie extract --json`.
#[derive(Deserialize)]
struct ExtractedFile {
    /// Absent for a failed file.
    #[serde(default)]
    pages: Vec<ExtractedPage>,
}

#[derive(Deserialize)]
struct ExtractedPage {
    text: String,
}

const CORBIE: &str = ".tools/bench/target/dist/corbie";

/// The texts of files, one for each.
pub(super) fn read(files: &[&Path]) -> Result<OcrRun> {
    let (pages, reading) = extract(files)?;
    Ok(OcrRun { texts: pages.into_iter().map(|pages| pages.join("\n")).collect(), ..reading })
}

/// The texts of the pages of one file.
pub(super) fn read_pages(file: &Path) -> Result<OcrRun> {
    let (pages, reading) = extract(&[file])?;
    Ok(OcrRun { texts: pages.into_iter().flatten().collect(), ..reading })
}

/// The pages of each file.
fn extract(files: &[&Path]) -> Result<(Vec<Vec<String>>, OcrRun)> {
    let mut command = Command::new(CORBIE);
    command.args(["extract", "--json", "--ocr=force"]).args(files);
    let watched = measured_process::run(command)?;
    let texts = pages_of_each(&watched.output)?;
    ensure!(texts.len() == files.len(), "corbie has read {} of {} files", texts.len(), files.len());
    let ProcessStats { cpu_s, wall_s, peak_mb, .. } = watched;
    Ok((texts, OcrRun { texts: Vec::new(), cpu_s, wall_s, peak_mb }))
}

fn pages_of_each(lines: &str) -> Result<Vec<Vec<String>>> {
    let pages = lines.lines().map(|line| {
        let line: ExtractedFile = serde_json::from_str(line).context("what corbie says")?;
        Ok(line.pages.into_iter().map(|page| page.text).collect())
    });
    pages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_not_read_has_no_pages() {
        let lines = r#"{"file": "a.pdf", "format": "pdf", "pages": [{"number": 1, "text": "one"}, {"text": "two"}]}
{"file": "b.png", "error": {"error": "corrupted_file", "message": "broken"}}
"#;
        let pages = pages_of_each(lines).expect("as corbie prints it");
        assert_eq!(pages, [vec!["one".to_owned(), "two".to_owned()], vec![]]);
    }
}
