//! The pages that are read: those that `ocr_pages.py` makes, whose text is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// All pages, and which of them are in the scan.
#[derive(Debug, Deserialize)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// The names of the pages of the scan.
    scan: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Page {
    pub(super) name: String,
    pub(super) group: Group,
    pub(super) language: Language,
    /// What it says.
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Group {
    Clean,
    Skewed,
    Turned,
    Noisy,
    Jpeg,
    Columns,
    German,
    French,
    Tables,
}

/// As Tesseract names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    Eng,
    Deu,
    Fra,
}

/// A picture to read.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub(super) file: PathBuf,
    pub(super) language: Language,
}

pub(super) const GROUPS: [Group; 9] = [
    Group::Clean,
    Group::Skewed,
    Group::Turned,
    Group::Noisy,
    Group::Jpeg,
    Group::Columns,
    Group::German,
    Group::French,
    Group::Tables,
];
pub(super) const LANGUAGES: [Language; 3] = [Language::Eng, Language::Deu, Language::Fra];

pub(super) const PYTHON: &str = ".tools/bench/ocr-venv/bin/python";
const SCRIPT: &str = "bench/peers/ocr_pages.py";
const FONTS: &str = ".tools/bench/ocr-fonts";
const FOLDER: &str = ".tools/bench/ocr-pages";

/// Draws all pages.
pub(super) fn make() -> Result<Pages> {
    // Pages of another version of the script may be there.
    let _ = fs::remove_dir_all(FOLDER);
    script(&["make", FONTS, FOLDER])?;
    let told = fs::read(Path::new(FOLDER).join("pages.json"))?;
    serde_json::from_slice(&told).context("the list of pages")
}

/// Draws all pages of a PDF file.
pub(super) fn draw(file: &Path, folder: &str) -> Result<Vec<PathBuf>> {
    let told = script(&["draw", &file.display().to_string(), folder])?;
    Ok(told.lines().map(PathBuf::from).collect())
}

/// Draws the first pages of a PDF file that have no text layer; a file that cannot be read has none.
pub(super) fn draw_scans(file: &Path, folder: &str) -> Vec<PathBuf> {
    let told = script(&["scans", &file.display().to_string(), folder]).unwrap_or_default();
    told.lines().map(PathBuf::from).collect()
}

fn script(words: &[&str]) -> Result<String> {
    let output = Command::new(PYTHON).arg(SCRIPT).args(words).output().context(PYTHON)?;
    ensure!(output.status.success(), "{SCRIPT} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Pages {
    pub(super) fn of(&self, group: Group) -> Vec<&Page> {
        self.pages.iter().filter(|page| page.group == group).collect()
    }

    pub(super) fn scan_file(&self) -> PathBuf {
        Path::new(FOLDER).join("scan.pdf")
    }

    /// The pages of the scan, in their order.
    pub(super) fn scanned(&self) -> Vec<&Page> {
        self.scan.iter().filter_map(|name| self.pages.iter().find(|page| page.name == *name)).collect()
    }
}

impl Page {
    pub(super) fn picture(&self) -> Picture {
        Picture { file: Path::new(FOLDER).join(format!("{}.png", self.name)), language: self.language }
    }
}

impl Group {
    pub(super) fn name(self) -> &'static str {
        match self {
            Group::Clean => "clean",
            Group::Skewed => "skewed",
            Group::Turned => "turned",
            Group::Noisy => "noisy",
            Group::Jpeg => "JPEG",
            Group::Columns => "columns",
            Group::German => "German",
            Group::French => "French",
            Group::Tables => "tables",
        }
    }
}

impl Language {
    pub(super) fn name(self) -> &'static str {
        match self {
            Language::Eng => "eng",
            Language::Deu => "deu",
            Language::Fra => "fra",
        }
    }
}
