//! How much a store may take, and how long.

use std::time::Duration;

/// How much a store may take, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a write waits for another process.
    pub busy_timeout: Duration,
    /// How many reads go on at once.
    pub readers: usize,
    /// How many writes may wait.
    pub queue: usize,
    /// The largest the file may become, in bytes.
    pub max_bytes: Option<u64>,
    /// How many tasks may be unfinished.
    pub max_tasks: u64,
    /// How many finished tasks are kept at most, however young they are.
    pub max_finished: u64,
    /// How many changes are remembered.
    pub changes: u64,
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
        }
    }
}
