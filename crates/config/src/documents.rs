//! `documents`: limits for parsing files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// File parsing. Each file is parsed in a separate sandboxed process with these limits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Documents {
    /// Number of files parsed concurrently. Defaults to the number of processor cores, at most 4.
    #[schemars(range(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// Timeout for one file. Content extracted before the timeout is kept.
    pub timeout: Timeout,
    /// Maximum processor time for a large file. Small files get a share that depends on their size and format.
    pub max_cpu_time: Timeout,
    /// Maximum memory for one file; values below 64 MiB are raised to 64 MiB.
    pub memory: ByteSize,
    /// Maximum file size.
    pub max_file: ByteSize,
    /// Maximum number of pages, slides or sheets per file.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_pages: u32,
    /// Maximum number of cells per workbook.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_cells: u64,
    /// Maximum total size of an archive's entries after decompression.
    pub max_unpacked: ByteSize,
    /// Maximum number of pixels of an image, or of a page that is rendered as an image.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_pixels: u64,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            workers: None,
            timeout: Timeout::seconds(300),
            max_cpu_time: Timeout::seconds(120),
            memory: ByteSize::kibibytes(768 << 10),
            max_file: ByteSize::kibibytes(100 << 10),
            max_pages: 10_000,
            max_cells: 2_000_000,
            max_unpacked: ByteSize::kibibytes(512 << 10),
            max_pixels: 50_000_000,
        }
    }
}

impl Documents {
    pub fn workers(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(4);
        self.workers.unwrap_or_else(cores)
    }

    /// The minimum with which a worker starts.
    pub fn memory(&self) -> u64 {
        (self.memory.bytes() as u64).max(64 << 20)
    }

    /// Limits of the parsers.
    pub fn limits(&self) -> corbie_extract::Limits {
        corbie_extract::Limits {
            pages: self.max_pages,
            cells: self.max_cells,
            inflated_bytes: self.max_unpacked.bytes() as u64,
            pixels: self.max_pixels,
            ..corbie_extract::Limits::default()
        }
    }
}
