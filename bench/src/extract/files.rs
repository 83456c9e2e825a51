//! Files of a folder, and their reference texts.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

/// The task for the files of one format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ExtractionTask {
    /// All text of files of this format.
    All(String),
    /// The main part of web pages.
    Article,
}

#[derive(Debug)]
pub(super) struct ExtractionCase {
    /// Path relative to its folder.
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) reference: Option<String>,
    /// The reference is not text.
    pub(super) garbled: bool,
}

/// References made by PDFium that are not text: glyph numbers as characters, and operators of a deliberately damaged
/// page.
const GARBLED_REFERENCES: [&str; 2] = ["pdfjs__ThuluthFeatures.pdf", "pdfjs__poppler-90-0-fuzzed.pdf"];

/// The folder of references for the main part of web pages.
const ARTICLE_FOLDER: &str = "article";

/// Each format with references, in the order of their names.
pub(super) fn tasks(folder: &Path) -> Result<Vec<(ExtractionTask, Vec<ExtractionCase>)>> {
    let references = folder.join("reference");
    let mut formats = file_names(&references)
        .with_context(|| format!("{} has no folder `reference`", folder.display()))?
        .into_iter()
        .filter(|name| references.join(name).is_dir())
        .collect::<Vec<_>>();
    formats.sort_by_key(|name| name == ARTICLE_FOLDER);
    let mut tasks = Vec::new();
    for format in formats {
        let task = if format == ARTICLE_FOLDER { ExtractionTask::Article } else { ExtractionTask::All(format) };
        let cases = cases(&folder.join(task.format()), &references.join(task.folder()), &task)?;
        tasks.push((task, cases));
    }
    ensure!(!tasks.is_empty(), "{} has no folders such as `pdf`", references.display());
    Ok(tasks)
}

fn cases(folder: &Path, references: &Path, task: &ExtractionTask) -> Result<Vec<ExtractionCase>> {
    let mut cases = Vec::new();
    for name in file_names(folder).with_context(|| folder.display().to_string())? {
        let reference = fs::read(references.join(format!("{name}.txt"))).ok();
        let reference = reference.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        // Only some web pages have a main part.
        if reference.is_some() || *task != ExtractionTask::Article {
            let garbled = GARBLED_REFERENCES.contains(&name.as_str());
            cases.push(ExtractionCase { file: folder.join(&name), name, reference, garbled });
        }
    }
    Ok(cases)
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

impl ExtractionTask {
    pub(super) fn format(&self) -> &str {
        match self {
            ExtractionTask::All(format) => format,
            ExtractionTask::Article => "html",
        }
    }

    fn folder(&self) -> &str {
        match self {
            ExtractionTask::All(format) => format,
            ExtractionTask::Article => ARTICLE_FOLDER,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(self, ExtractionTask::All(_))
    }

    pub(super) fn name(&self) -> String {
        match self {
            ExtractionTask::All(format) => format.clone(),
            ExtractionTask::Article => "html, article".into(),
        }
    }
}
