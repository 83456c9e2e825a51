//! `audit`: audit log.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::ByteSize;

/// Audit log: which caller called which tool. The last ten thousand calls are kept in memory; a file keeps all of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// File for audit records, one JSON object per line, readable by its owner only. Not written if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Maximum size of the file. A larger file is rotated: it is renamed with the suffix `.1` and a new file is
    /// started.
    pub max_bytes: ByteSize,
    /// Number of rotated files to keep.
    #[schemars(range(min = 0, max = 1000))]
    pub max_rotated_files: usize,
    /// What happens to calls while the audit file cannot be written.
    pub on_failure: OnFailure,
}

/// What happens to calls while the audit file cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Calls are served, also if the file cannot be opened at startup. The number of missing records is written to the
    /// file once it is writable again.
    #[default]
    Continue,
    /// Calls that change or delete data, or cost money, are refused. Failing to open the file at startup is an error.
    Refuse,
}

impl Default for Audit {
    fn default() -> Audit {
        Audit {
            file: None,
            max_bytes: ByteSize::kibibytes(64 << 10),
            max_rotated_files: 8,
            on_failure: OnFailure::Continue,
        }
    }
}
