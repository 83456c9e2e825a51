//! Progress of a task's files: waiting, in progress, and results.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::Error;
use crate::document::DocumentId;
use crate::estimate::Estimate;
use crate::file_discovery::FoundFile;
use crate::ingest::{IngestOutcome, IngestResult};
use crate::progress::Progress;
use crate::skipped_files::SkippedFiles;

#[derive(Debug)]
pub(super) struct JobFiles {
    /// Estimated duration of all files. Refined when they are listed.
    pub(super) estimate: Estimate,
    pub(super) started_at: Option<Instant>,
    /// Whether the paths of the request have been expanded into files.
    pub(super) is_listed: bool,
    pub(super) pending: VecDeque<FoundFile>,
    pub(super) in_progress: HashMap<PathBuf, Progress>,
    pub(super) count: usize,
    /// Documents that the same import stored before its process ended.
    pub(super) stored_before_restart: HashMap<DocumentId, IngestOutcome>,
    /// Files in the imported folders that are not documents.
    pub(super) skipped: SkippedFiles,
    results: Vec<Value>,
    counts: FileCounts,
}

#[derive(Debug, Default, Clone, Copy)]
struct FileCounts {
    added: usize,
    updated: usize,
    unchanged: usize,
    failed: usize,
}

/// Maximum number of per-file results of an import. The first failures are the most useful.
const MAX_RESULTS: usize = 10_000;

impl JobFiles {
    pub(super) fn new(guess: Estimate) -> JobFiles {
        JobFiles {
            estimate: guess,
            started_at: None,
            is_listed: false,
            pending: VecDeque::new(),
            in_progress: HashMap::new(),
            count: 0,
            stored_before_restart: HashMap::new(),
            skipped: SkippedFiles::default(),
            results: Vec::new(),
            counts: FileCounts::default(),
        }
    }

    pub(super) fn record_success(&mut self, path: &Path, added: &IngestResult) {
        let became = self.stored_before_restart.remove(&added.document_id).unwrap_or(added.outcome);
        match became {
            IngestOutcome::Added => self.counts.added += 1,
            IngestOutcome::Updated => self.counts.updated += 1,
            IngestOutcome::Unchanged => self.counts.unchanged += 1,
        }
        let mut result = IngestResult { outcome: became, ..added.clone() }.to_json();
        result["file_path"] = path.to_string_lossy().into();
        result["status"] = json!(became);
        self.push_result(result);
    }

    pub(super) fn record_failure(&mut self, path: &Path, error: &Error) {
        self.counts.failed += 1;
        self.push_result(json!({
            "file_path": path.to_string_lossy(),
            "status": "failed",
            "error": error.code(),
            "message": error.to_string(),
        }));
    }

    fn push_result(&mut self, result: Value) {
        if self.results.len() < MAX_RESULTS {
            self.results.push(result);
        }
    }

    fn done_count(&self) -> usize {
        let FileCounts { added, updated, unchanged, failed } = self.counts;
        added + updated + unchanged + failed
    }

    pub(super) fn progress(&self, step: &str) -> Progress {
        let going: f64 = self.in_progress.values().map(|far| far.fraction).sum();
        let count = self.count.max(1);
        Progress {
            fraction: (self.done_count() as f64 + going) / count as f64,
            step: format!("{step} ({} of {count} files done)", self.done_count()),
            completed: u32::try_from(self.done_count()).unwrap_or(u32::MAX),
            total: u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    /// Result of a completed import.
    pub(super) fn summary(&self) -> Value {
        let FileCounts { added, updated, unchanged, failed } = self.counts;
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
