//! Progress of a task's files: waiting, in progress, and results.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::knowledge::Error;
use crate::knowledge::document::DocumentId;
use crate::knowledge::estimate::Guess;
use crate::knowledge::far::Far;
use crate::knowledge::folder::FoundFile;
use crate::knowledge::ingest::{Added, Became};
use crate::knowledge::skipped::Skipped;

#[derive(Debug)]
pub(super) struct Files {
    /// Estimated duration of all files. Refined when they are listed.
    pub(super) guess: Guess,
    pub(super) began: Option<Instant>,
    /// Whether the paths of the request have been expanded into files.
    pub(super) listed: bool,
    pub(super) waiting: VecDeque<FoundFile>,
    pub(super) going: HashMap<PathBuf, Far>,
    pub(super) count: usize,
    /// Documents that the same import stored before its process ended.
    pub(super) brought: HashMap<DocumentId, Became>,
    /// Files in the imported folders that are not documents.
    pub(super) skipped: Skipped,
    results: Vec<Value>,
    tally: Tally,
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    added: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
}

/// Maximum number of per-file results of an import. The first failures are the most useful.
const MOST_RESULTS: usize = 10_000;

impl Files {
    pub(super) fn new(guess: Guess) -> Files {
        Files {
            guess,
            began: None,
            listed: false,
            waiting: VecDeque::new(),
            going: HashMap::new(),
            count: 0,
            brought: HashMap::new(),
            skipped: Skipped::default(),
            results: Vec::new(),
            tally: Tally::default(),
        }
    }

    pub(super) fn succeed(&mut self, path: &Path, added: &Added) {
        let became = self.brought.remove(&added.document_id).unwrap_or(added.became);
        match became {
            Became::Added => self.tally.added += 1,
            Became::Updated => self.tally.updated += 1,
            Became::Unchanged => self.tally.unchanged += 1,
        }
        let mut result = Added { became, ..added.clone() }.result();
        result["file_path"] = path.to_string_lossy().into();
        result["status"] = json!(became);
        self.keep(result);
    }

    pub(super) fn fail(&mut self, path: &Path, error: &Error) {
        self.tally.failed += 1;
        self.keep(json!({
            "file_path": path.to_string_lossy(),
            "status": "failed",
            "error": error.code(),
            "message": error.to_string(),
        }));
    }

    fn keep(&mut self, result: Value) {
        if self.results.len() < MOST_RESULTS {
            self.results.push(result);
        }
    }

    fn done(&self) -> usize {
        let Tally { added, updated, unchanged, failed } = self.tally;
        added + updated + unchanged + failed
    }

    pub(super) fn far(&self, step: &str) -> Far {
        let going: f64 = self.going.values().map(|far| far.share).sum();
        let count = self.count.max(1);
        Far {
            share: (self.done() as f64 + going) / count as f64,
            step: format!("{step} ({} of {count} files done)", self.done()),
            completed: u32::try_from(self.done()).unwrap_or(u32::MAX),
            total: u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    /// Result of a completed import.
    pub(super) fn summary(&self) -> Value {
        let Tally { added, updated, unchanged, failed } = self.tally;
        json!({
            "files_total": self.count,
            "added": added,
            "updated": updated,
            "unchanged": unchanged,
            "failed": failed,
            "skipped": self.skipped.total(),
            "skipped_by_kind": self.skipped.by_kind(),
            "files": self.results,
        })
    }
}
