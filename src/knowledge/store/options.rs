//! Size limits and timeouts of a store.

use std::path::PathBuf;
use std::time::Duration;

/// Size limits and timeouts of a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a write waits for another process.
    pub busy_timeout: Duration,
    /// Number of concurrent reads.
    pub readers: usize,
    /// Maximum number of queued writes.
    pub queue: usize,
    /// Maximum file size in bytes.
    pub max_bytes: Option<u64>,
    /// Maximum number of unfinished tasks.
    pub max_tasks: u64,
    /// Maximum number of finished tasks to retain, regardless of their age.
    pub max_finished: u64,
    /// Maximum number of change records to retain.
    pub changes: u64,
    /// An index of documents that the file must contain. No new file is created beside it.
    pub index: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            busy_timeout: Duration::from_secs(30),
            readers: 4,
            queue: 64,
            max_bytes: None,
            max_tasks: 10_000,
            max_finished: 100_000,
            changes: 100_000,
            index: None,
        }
    }
}
