//! Size limits and timeouts of a store.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size limits and timeouts of a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long a write waits for another process.
    pub busy_timeout: Duration,
    /// Number of concurrent reads.
    pub max_readers: usize,
    /// Maximum number of queued writes.
    pub max_queued_writes: usize,
    /// Maximum file size in bytes.
    pub max_bytes: Option<u64>,
    /// Maximum number of unfinished tasks.
    pub max_tasks: u64,
    /// Maximum number of finished tasks to retain, regardless of their age.
    pub max_finished_tasks: u64,
    /// Maximum number of change records to retain.
    pub max_changes: u64,
    /// Whether a file is copied before its schema is migrated.
    pub migration_copy: MigrationCopy,
    /// Search index whose documents the file must contain. If set, no new file is created.
    pub index: Option<PathBuf>,
}

/// Whether `knowledge.db` is copied before its schema is migrated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MigrationCopy {
    /// If the disk has room for it. Otherwise a warning is logged.
    #[default]
    Auto,
    /// Always. Without room for it corbie does not open the knowledge base.
    Required,
    /// Never.
    Off,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            busy_timeout: Duration::from_secs(30),
            max_readers: 4,
            max_queued_writes: 64,
            max_bytes: None,
            max_tasks: 10_000,
            max_finished_tasks: 100_000,
            max_changes: 100_000,
            migration_copy: MigrationCopy::default(),
            index: None,
        }
    }
}
