//! A scan of several pages, from the PDF file to its text, with all cores.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::engine::{self, Engine, OcrRun};
use super::pages::{self, InputImage, PageSet, TestPage};
use super::{corbie, mean, measured_process};
use crate::extract::score::f1;
use crate::machine;
use crate::report::{ResultTable, three_digits};

#[derive(Debug, Serialize)]
pub(super) struct ScanResult {
    pub(super) engine: Engine,
    pages: usize,
    words: f64,
    cpu_s: f64,
    wall_s: f64,
    peak_mb: f64,
}

const RENDERED_FOLDER: &str = ".tools/bench/ocr-drawn";

pub(super) fn measure(pages: &PageSet, engines: &[Engine]) -> Result<Vec<ScanResult>> {
    let scanned = pages.scanned();
    let file = pages.scan_file();
    let mut scans = Vec::new();
    for &engine in engines {
        let reading = match engine {
            Engine::Corbie => corbie::read_pages(&file)?,
            Engine::RapidOcr | Engine::RapidOcrTurned => {
                // Includes loading.
                let started = Instant::now();
                let reading = engine::rapidocr(-1, "upright", [file.as_path()].into_iter())?;
                OcrRun { wall_s: started.elapsed().as_secs_f64(), ..reading }
            }
            Engine::Tesseract | Engine::TesseractOsd => tesseract_in_parallel(&file)?,
        };
        scans.push(ScanResult::score(engine, &scanned, reading));
    }
    Ok(scans)
}

/// PDFium renders the pages, and one process per core reads them.
fn tesseract_in_parallel(file: &std::path::Path) -> Result<OcrRun> {
    let started = Instant::now();
    let _ = fs::remove_dir_all(RENDERED_FOLDER);
    let drawn = pages::render_pdf(file, RENDERED_FOLDER)?;
    let names: Vec<String> = drawn.iter().map(|page| page.display().to_string()).collect();
    let picture = InputImage { file: "{}".into(), language: pages::Language::Eng };
    let asked = engine::tesseract_of(&picture, "3");
    let mut command = Command::new("xargs");
    command.args(["-a", &list(&names)?, "-P", &machine::core_count().to_string(), "-I", "{}"]);
    command.arg(asked.get_program());
    // Written to a file next to the picture: on stdout the pages would be interleaved.
    command.args(asked.get_args().map(|word| if word == "-" { "{}".as_ref() } else { word }));
    command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let watched = measured_process::run(command)?;
    ensure!(watched.succeeded, "Tesseract failed; see .tools/bench/logs/ocr.log");
    let mut reading = OcrRun { cpu_s: watched.cpu_s, peak_mb: watched.peak_mb, ..OcrRun::default() };
    for name in names {
        reading.texts.push(fs::read_to_string(format!("{name}.txt"))?);
    }
    Ok(OcrRun { wall_s: started.elapsed().as_secs_f64(), ..reading })
}

fn list(names: &[String]) -> Result<String> {
    let file = format!("{RENDERED_FOLDER}/list");
    fs::write(&file, names.join("\n"))?;
    Ok(file)
}

impl ScanResult {
    fn score(engine: Engine, pages: &[&TestPage], reading: OcrRun) -> ScanResult {
        let OcrRun { mut texts, cpu_s, wall_s, peak_mb } = reading;
        // Missing pages count as empty.
        texts.resize(pages.len(), String::new());
        let shares = pages.iter().zip(&texts).map(|(page, text)| f1(text, &page.text).map_or(0.0, |f1| f1.words));
        ScanResult { engine, pages: pages.len(), words: mean(shares), cpu_s, wall_s, peak_mb }
    }

    pub(super) fn pages_per_second(&self) -> f64 {
        self.pages as f64 / self.wall_s
    }
}

pub(super) fn table(scans: &[ScanResult]) -> ResultTable {
    let mut table = ResultTable::new(
        "A scan from PDF to text, with all cores",
        &["engine", "pages", "word F1", "CPU s a page", "wall s a page", "pages/s", "peak RSS MB"],
    );
    for scan in scans {
        table.rows.push(vec![
            scan.engine.name().into(),
            scan.pages.to_string(),
            format!("{:.4}", scan.words),
            format!("{:.2}", scan.cpu_s / scan.pages as f64),
            format!("{:.2}", scan.wall_s / scan.pages as f64),
            three_digits(scan.pages_per_second()),
            three_digits(scan.peak_mb),
        ]);
    }
    table
}
