//! Writer thread of the audit log.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::queue::Batch;
use super::rotating_file::RotatingFile;
use super::{AuditLine, Inner};
use crate::supervisor::{self, TaskName};
use crate::util::lock::lock;

pub(super) struct Writer {
    inner: Arc<Inner>,
    settings: Settings,
    /// `None` until it can be opened.
    file: Option<RotatingFile>,
    /// Number of lost entries that the file already reports.
    reported_losses: u64,
    /// Number of entries of the current batch that are written or counted as lost.
    processed_lines: u64,
}

/// The file and its rotation settings.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) path: PathBuf,
    pub(super) max_bytes: u64,
    pub(super) keep: usize,
}

impl Settings {
    pub(super) fn open(&self) -> io::Result<RotatingFile> {
        RotatingFile::open(&self.path, self.max_bytes, self.keep)
    }
}

/// Retry interval of a failing file while there are no calls.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum sleep while there are no calls and no failure.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

impl Writer {
    pub(super) fn new(shared: Arc<Inner>, settings: Settings, file: Option<RotatingFile>) -> Writer {
        Writer { inner: shared, settings, file, reported_losses: 0, processed_lines: 0 }
    }

    /// Runs until the queue is closed.
    pub(super) fn run(mut self) {
        loop {
            let failing = self.inner.is_failing.load(Ordering::Relaxed);
            let Batch { lines, is_last } =
                self.inner.queue.next_batch(if failing { RETRY_INTERVAL } else { IDLE_TIMEOUT });
            self.catch_panic(&lines, Writer::write);
            if is_last {
                break;
            }
        }
        if let Some(Err(error)) = self.file.as_ref().map(RotatingFile::sync) {
            tracing::error!(%error, "cannot sync the audit log; its end may be lost");
        }
        self.inner.queue.mark_ended();
    }

    /// Writes a batch. A panic loses at most the unwritten entries of this batch, and the thread continues.
    fn catch_panic(&mut self, lines: &[AuditLine], write: impl FnOnce(&mut Writer, &[AuditLine])) {
        self.processed_lines = 0;
        if catch_unwind(AssertUnwindSafe(|| write(self, lines))).is_err() {
            self.inner.lost.fetch_add((lines.len() as u64).saturating_sub(self.processed_lines), Ordering::Relaxed);
            supervisor::record_restart(TaskName("audit_log"));
            self.report_failure(&io::Error::other("internal error while writing"));
        }
    }

    fn write(&mut self, lines: &[AuditLine]) {
        // A file that could not be opened is retried even without calls.
        if self.file.is_none() && self.file().is_ok() && lines.is_empty() {
            self.report_recovery();
        }
        self.record_losses();
        let (mut piece, mut count) = (Vec::new(), 0);
        for line in lines {
            let before = piece.len();
            // Every value is serializable, and writing to memory does not fail.
            let _ = serde_json::to_writer(&mut piece, line);
            piece.push(b'\n');
            // A write is at most as large as the maximum file size.
            if before > 0 && piece.len() as u64 > self.settings.max_bytes {
                let rest = piece.split_off(before);
                self.append(&piece, count);
                (piece, count) = (rest, 0);
            }
            count += 1;
        }
        self.append(&piece, count);
    }

    /// Writes the number of lost entries to the file, if it is not reported yet.
    fn record_losses(&mut self) {
        let lost = self.inner.lost.load(Ordering::Relaxed);
        if lost > self.reported_losses {
            let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
            let note =
                json!({ "kind": "event", "time": time, "event": "entries_lost", "lost": lost - self.reported_losses });
            if self.append(format!("{note}\n").as_bytes(), 0) {
                self.reported_losses = lost;
            }
        }
    }

    /// Writes lines and returns whether that succeeded. On failure `entries` are counted as lost.
    fn append(&mut self, lines: &[u8], entries: u64) -> bool {
        if lines.is_empty() {
            return true;
        }
        let appended = self.file().and_then(|file| file.append(lines));
        self.processed_lines += entries;
        match appended {
            Ok(()) => self.report_recovery(),
            Err(error) => {
                self.inner.lost.fetch_add(entries, Ordering::Relaxed);
                self.report_failure(&error);
                return false;
            }
        }
        true
    }

    /// The file; opened if necessary.
    fn file(&mut self) -> io::Result<&mut RotatingFile> {
        match &mut self.file {
            Some(file) => Ok(file),
            unopened => Ok(unopened.insert(self.settings.open()?)),
        }
    }

    /// Logged once, not for every call.
    fn report_failure(&self, error: &io::Error) {
        *lock(&self.inner.failure) = Some(error.to_string());
        if !self.inner.is_failing.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "cannot write the audit log; counting lost entries");
        }
    }

    fn report_recovery(&self) {
        if self.inner.is_failing.swap(false, Ordering::Relaxed) {
            let lost = self.inner.lost.load(Ordering::Relaxed);
            tracing::warn!(lost, "audit log recovered");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use corbie_mcp::AuditEvent;

    use super::super::queue::Queue;
    use super::*;

    #[test]
    fn m98_a_panic_loses_the_lines_it_was_at_which_the_file_tells_and_no_others() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("audit.jsonl");
        let shared = Arc::new(Inner {
            queue: Queue::default(),
            lost: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            failure: Mutex::default(),
        });
        let settings = Settings { path: path.clone(), max_bytes: 1 << 20, keep: 1 };
        let mut writer = Writer::new(shared.clone(), settings, None);
        let line = |name| AuditLine::Event(AuditEvent::new(name));
        writer.catch_panic(&[line("one"), line("two")], |_, _| panic!("on purpose"));
        assert!(shared.is_failing.load(Ordering::Relaxed));
        writer.catch_panic(&[line("three")], Writer::write);
        assert!(!shared.is_failing.load(Ordering::Relaxed), "it goes on");
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(text.contains("\"lost\":2") && text.contains("three") && !text.contains("two"), "{text}");
        writer.catch_panic(&[line("four"), line("five"), line("six")], |writer, lines| {
            writer.write(&lines[..2]);
            panic!("on purpose");
        });
        assert_eq!(shared.lost.load(Ordering::Relaxed), 3, "what was written before is not lost");
    }
}
