//! `documents`: limits for parsing files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::size::ByteSize;

/// How files are read. Each is read in a process of its own, which these limits bind.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Documents {
    /// How many files are read at the same time. As many as there are processor cores, but at most 4, if left out.
    #[schemars(range(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
    /// How long one file may take. What was read until then is kept.
    pub timeout: Timeout,
    /// Processor time that one large file may take. Small files may take a share of it that fits their size and format.
    pub cpu: Timeout,
    /// How much memory one file may take; less than 64 MiB counts as that.
    pub memory: ByteSize,
    /// The largest file that is read.
    pub max_file: ByteSize,
    /// How many pages, slides or sheets are read of one file.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_pages: u32,
    /// How many cells of a workbook are read.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_cells: u64,
    /// How large all parts of an archive may be once they are unpacked.
    pub max_unpacked: ByteSize,
    /// How many dots a picture may have, or a page that is drawn as one.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_pixels: u64,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            workers: None,
            timeout: Timeout::seconds(300),
            cpu: Timeout::seconds(120),
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
