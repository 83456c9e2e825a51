//! The OCR engines and their commands.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::corbie;
use super::measured_process::{self, ProcessStats};
use super::pages::{Group, InputImage, PYTHON};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Engine {
    Corbie,
    Tesseract,
    /// With orientation detection.
    TesseractOsd,
    RapidOcr,
    /// With its classifier of rotated lines, which is on by default, and flips some upright lines.
    RapidOcrTurned,
}

/// The texts of some pictures in order, and the cost of reading them.
#[derive(Debug, Default)]
pub(super) struct OcrRun {
    pub(super) texts: Vec<String>,
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// Of a single process.
    pub(super) peak_mb: f64,
}

pub(super) const ENGINES: [Engine; 3] = [Engine::Corbie, Engine::Tesseract, Engine::RapidOcr];

/// Debian's package, unpacked by `bench/run` if the machine has none.
const TESSERACT: &str = ".tools/bench/tesseract";
const SCRIPT: &str = "bench/peers/ocr.py";

/// A line printed by `ocr.py`.
#[derive(Deserialize)]
struct PageOutput {
    text: String,
    cpu_s: f64,
    wall_s: f64,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Engine::Corbie => "corbie",
            Engine::Tesseract => "Tesseract",
            Engine::TesseractOsd => "Tesseract, --psm 1",
            Engine::RapidOcr => "RapidOCR",
            Engine::RapidOcrTurned => "RapidOCR, use_cls",
        }
    }

    /// A peer may not be installed.
    pub(super) fn is_installed(self) -> bool {
        match self {
            Engine::Corbie => true,
            Engine::Tesseract | Engine::TesseractOsd => {
                tesseract().arg("--version").output().is_ok_and(|output| output.status.success())
            }
            Engine::RapidOcr | Engine::RapidOcrTurned => Path::new(PYTHON).exists(),
        }
    }

    /// The variant for a group of pages: for rotated ones, with orientation detection.
    pub(super) fn for_group(self, group: Group) -> Engine {
        match (self, group) {
            (Engine::Tesseract, Group::Turned) => Engine::TesseractOsd,
            (Engine::RapidOcr, Group::Turned) => Engine::RapidOcrTurned,
            (engine, _) => engine,
        }
    }

    /// Each on one thread, or one single-threaded process per page.
    pub(super) fn read(self, pictures: &[InputImage]) -> Result<OcrRun> {
        match self {
            Engine::Corbie => {
                let files: Vec<&Path> = pictures.iter().map(|picture| picture.file.as_path()).collect();
                corbie::read(&files)
            }
            Engine::Tesseract => one_by_one(pictures, |picture| tesseract_of(picture, "3")),
            Engine::TesseractOsd => one_by_one(pictures, |picture| tesseract_of(picture, "1")),
            Engine::RapidOcr => rapidocr(1, "upright", pictures.iter().map(|picture| picture.file.as_path())),
            Engine::RapidOcrTurned => rapidocr(1, "turned", pictures.iter().map(|picture| picture.file.as_path())),
        }
    }
}

/// A process for each picture.
pub(super) fn one_by_one(pictures: &[InputImage], command: impl Fn(&InputImage) -> Command) -> Result<OcrRun> {
    let mut reading = OcrRun::default();
    for picture in pictures {
        let watched = measured_process::run(command(picture))?;
        if !watched.succeeded {
            eprintln!("  {} was not read", picture.file.display());
        }
        reading.add(watched);
    }
    Ok(reading)
}

impl OcrRun {
    pub(super) fn add(&mut self, watched: ProcessStats) {
        self.texts.push(if watched.succeeded { watched.output } else { String::new() });
        self.cpu_s += watched.cpu_s;
        self.wall_s += watched.wall_s;
        self.peak_mb = self.peak_mb.max(watched.peak_mb);
    }
}

fn tesseract() -> Command {
    let unpacked = Path::new(TESSERACT).join("usr");
    if !unpacked.exists() {
        return Command::new("tesseract");
    }
    let mut command = Command::new(unpacked.join("bin/tesseract"));
    let libraries = format!("{}/lib/{}-linux-gnu", unpacked.display(), std::env::consts::ARCH);
    command.env("LD_LIBRARY_PATH", libraries).env("TESSDATA_PREFIX", unpacked.join("share/tesseract-ocr/5/tessdata"));
    command
}

pub(super) fn tesseract_of(picture: &InputImage, psm: &str) -> Command {
    let mut command = tesseract();
    command.env("OMP_THREAD_LIMIT", "1").arg(&picture.file);
    command.args(["-", "-l", picture.language.name(), "--psm", psm]);
    command
}

/// One process. The reported page times exclude loading; the memory includes it.
pub(super) fn rapidocr<'a>(threads: i32, turn: &str, files: impl Iterator<Item = &'a Path>) -> Result<OcrRun> {
    let mut command = Command::new(PYTHON);
    command.args([SCRIPT, &threads.to_string(), turn]).args(files);
    let watched = measured_process::run(command)?;
    ensure!(watched.succeeded, "RapidOCR failed; see .tools/bench/logs/ocr.log");
    let mut reading = OcrRun { peak_mb: watched.peak_mb, ..OcrRun::default() };
    for line in watched.output.lines() {
        let PageOutput { text, cpu_s, wall_s } = serde_json::from_str(line).context("what RapidOCR says")?;
        reading.texts.push(text);
        reading.cpu_s += cpu_s;
        reading.wall_s += wall_s;
    }
    Ok(reading)
}
