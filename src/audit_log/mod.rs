//! Audit log file (M-98): one line of JSON per call and event.
//!
//! A call only adds its entry to a bounded queue. One thread writes the queued entries in batches every few
//! milliseconds. A file that cannot be written does not block calls: lost entries are counted, and the count is written
//! to the file when that becomes possible.

mod queue;
mod rotating_file;
mod writer;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use corbie_mcp::{AuditEntry, AuditEvent, AuditSink};
use serde::Serialize;

use crate::config::audit as config;
use crate::util::lock::lock;
use queue::Queue;
use writer::Writer;

/// An audit log file. Dropping it writes the queued entries.
#[derive(Debug)]
pub struct AuditFile {
    inner: Arc<Inner>,
    is_required: bool,
}

/// State shared by callers and the writer thread.
#[derive(Debug)]
struct Inner {
    queue: Queue,
    /// Entries that were not written because the queue or the disk was full.
    lost: AtomicU64,
    is_failing: AtomicBool,
    /// The last write error.
    failure: Mutex<Option<String>>,
}

/// One line of the file.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum AuditLine {
    Call(AuditEntry),
    Event(AuditEvent),
}

/// Open files of this process. A server and its tools may form a reference cycle, so a file is not always dropped
/// before the process ends.
static OPEN_FILES: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

/// Maximum wait for the last lines at shutdown: a hanging disk must not block the exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

impl AuditFile {
    /// Opens the file and starts the writer thread. With `on_failure: refuse`, a file that cannot be opened is an
    /// error. With `continue`, opening is retried, and the sink is [failing](AuditSink::error) in the meantime.
    pub fn open(path: &Path, settings: &config::Audit) -> io::Result<AuditFile> {
        let (max_bytes, keep) = (settings.max_bytes.bytes() as u64, settings.max_rotated_files);
        let place = writer::Settings { path: path.to_owned(), max_bytes, keep };
        let (file, failure) = match place.open() {
            Ok(file) => (Some(file), None),
            Err(error) if settings.on_failure == config::OnFailure::Continue => {
                tracing::error!(%error, path = %path.display(), "cannot open the audit log; continuing without it and \
                    retrying");
                (None, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let shared = Arc::new(Inner {
            queue: Queue::default(),
            lost: AtomicU64::new(0),
            is_failing: AtomicBool::new(failure.is_some()),
            failure: Mutex::new(failure),
        });
        let writer = Writer::new(shared.clone(), place, file);
        std::thread::Builder::new().name("audit".into()).spawn(move || writer.run())?;
        lock(&OPEN_FILES).push(Arc::downgrade(&shared));
        Ok(AuditFile { inner: shared, is_required: settings.on_failure == config::OnFailure::Refuse })
    }

    /// Closes the queue and waits for the queued entries, with a timeout.
    pub fn finish(&self) {
        self.inner.finish();
    }

    fn enqueue(&self, line: AuditLine) {
        if !self.inner.queue.add(line) {
            self.inner.lost.fetch_add(1, Ordering::Relaxed);
            // A hanging write counts as a failure. The writer resets the flag when it continues.
            if !self.inner.is_failing.swap(true, Ordering::Relaxed) {
                *lock(&self.inner.failure) = Some("queue is full because writing is blocked".to_owned());
                tracing::error!("audit log queue is full; entries are being lost");
            }
        }
    }
}

/// Finishes all files of this process.
pub fn finish_all() {
    let open = std::mem::take(&mut *lock(&OPEN_FILES));
    open.iter().filter_map(Weak::upgrade).for_each(|shared| shared.finish());
}

impl Inner {
    fn finish(&self) {
        if !self.queue.finish(FLUSH_TIMEOUT) {
            tracing::error!("timed out while flushing the audit log; entries were lost");
        }
    }
}

impl AuditSink for AuditFile {
    fn record_call(&self, entry: &AuditEntry) {
        self.enqueue(AuditLine::Call(entry.clone()));
    }

    fn record_event(&self, event: &AuditEvent) {
        self.enqueue(AuditLine::Event(event.clone()));
    }

    fn lost(&self) -> u64 {
        self.inner.lost.load(Ordering::Relaxed)
    }

    fn error(&self) -> Option<String> {
        let failing = self.inner.is_failing.load(Ordering::Relaxed);
        failing.then(|| lock(&self.inner.failure).clone().unwrap_or_default())
    }

    fn is_required(&self) -> bool {
        self.is_required
    }
}

impl Drop for AuditFile {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m98_a_file_that_hangs_is_one_that_fails() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("audit.jsonl");
        let settings = config::Audit { on_failure: config::OnFailure::Refuse, ..config::Audit::default() };
        let audit = AuditFile::open(&path, &settings).expect("opened");
        let held = std::fs::OpenOptions::new().append(true).open(&path).expect("there");
        held.lock().expect("locked");
        let mut taken = 0;
        while audit.error().is_none() && taken < 100_000 {
            audit.record_event(&AuditEvent::new("test"));
            taken += 1;
        }
        assert!(audit.error().is_some() && audit.lost() > 0, "after {taken}");
        held.unlock().expect("unlocked");
        let began = std::time::Instant::now();
        while audit.error().is_some() && began.elapsed() < Duration::from_secs(20) {
            // The flag is reset with the next written entry.
            audit.record_event(&AuditEvent::new("test"));
            std::thread::yield_now();
        }
        assert_eq!(audit.error(), None, "it goes on when it can");
    }
}
