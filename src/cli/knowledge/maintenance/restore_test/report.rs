//! Result of a drill, as text and JSON.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use super::super::{counted, write_problems};
use crate::cli::knowledge::size;
use crate::knowledge::store::CheckReport;

/// Measurements and findings of a drill.
#[derive(Debug, Default)]
pub(super) struct DrillReport {
    pub(super) size_bytes: u64,
    /// `None` if an existing backup was tried.
    pub(super) backup: Option<Duration>,
    pub(super) restore: Duration,
    pub(super) check: Duration,
    pub(super) index: Duration,
    pub(super) report: CheckReport,
    pub(super) digest: String,
    pub(super) tasks_open: u64,
    pub(super) queries: usize,
    pub(super) found: usize,
    /// One sentence per difference.
    pub(super) problems: Vec<String>,
}

/// Advice for a backup that cannot be restored completely.
const FAILURE_ADVICE: &str =
    "do not rely on this backup: run `corbie knowledge check`, create another backup, and verify that one";

impl DrillReport {
    pub(super) fn reply(&self) -> serde_json::Value {
        let CheckReport { documents, pages, chunks, vectors, tasks, .. } = self.report;
        let mut reply = json!({
            "success": self.problems.is_empty(),
            "size_bytes": self.size_bytes,
            "sha256": self.digest,
            "documents": documents,
            "pages": pages,
            "chunks": chunks,
            "vectors": vectors,
            "finished_tasks": tasks.saturating_sub(self.tasks_open),
            "unfinished_tasks": self.tasks_open,
            "queries": self.queries,
            "queries_found": self.found,
            "seconds": {
                "backup": self.backup.map(|took| took.as_secs_f64()),
                "restore": self.restore.as_secs_f64(),
                "check": self.check.as_secs_f64(),
                "index": self.index.as_secs_f64(),
            },
            "problems": self.problems,
        });
        if !self.problems.is_empty() {
            reply["error"] = "drill_failed".into();
            reply["message"] = FAILURE_ADVICE.into();
        }
        reply
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let seconds = |took: Duration| format!("{:.2} s", took.as_secs_f64());
        write_problems(&self.problems, out)?;
        if !self.problems.is_empty() {
            return writeln!(out, "{FAILURE_ADVICE}");
        }
        let CheckReport { documents, chunks, tasks, .. } = self.report;
        match self.backup {
            Some(took) => writeln!(out, "Backup created: {} in {}", size(self.size_bytes), seconds(took))?,
            None => writeln!(out, "Backup read: {}", size(self.size_bytes))?,
        }
        writeln!(out, "Restored in {}", seconds(self.restore))?;
        let (documents, chunks) = (counted(documents, "document"), counted(chunks, "chunk"));
        let (tasks, took) = (counted(tasks, "task"), seconds(self.check));
        writeln!(out, "Compared {documents}, {chunks} and {tasks} in {took}: no differences")?;
        let asked = counted(self.queries as u64, "passage");
        writeln!(out, "Index built in {}; {} of {asked} found", seconds(self.index), self.found)?;
        writeln!(out, "OK: the backup can be restored; live data was not changed")
    }
}
