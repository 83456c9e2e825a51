//! `audit`: where is kept who called what.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::knowledge::put_home;
use super::size::ByteSize;

/// Where is kept who called what. The last ten thousand calls are always known; a file keeps all of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// The file that calls are written to, one line of JSON each. None, if left out. Only its owner can read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A file that would become larger is put aside under a name that ends with `.1`, and a new one is begun.
    pub max_bytes: ByteSize,
    /// How many files that were put aside are kept.
    #[schemars(range(min = 0, max = 1000))]
    pub keep: usize,
    /// What happens to calls while the file cannot be written.
    pub on_failure: OnFailure,
}

/// What happens to calls while the file cannot be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// They are served, also where the file cannot be opened at the start; how many are missing in the file is noted there
    /// when it can be written again.
    #[default]
    Continue,
    /// Those that change or destroy something, or cost something, are refused. A file that cannot be opened at the start is
    /// an error.
    Refuse,
}

impl Audit {
    /// Puts the user's home in the place of a `~` that the path begins with, as a shell does.
    pub(super) fn find_home(&mut self, variables: &BTreeMap<String, String>) {
        put_home(self.file.iter_mut(), variables);
    }
}

impl Default for Audit {
    fn default() -> Audit {
        Audit { file: None, max_bytes: ByteSize::kibibytes(64 << 10), keep: 8, on_failure: OnFailure::Continue }
    }
}
