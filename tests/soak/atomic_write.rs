//! Atomic file replacement.

use std::fs;
use std::path::Path;

/// Writes to a temporary file and renames it. A half-written file is not a valid document, and an empty file is valid
/// configuration: a server that starts at that time would use the defaults.
pub(crate) fn replace_atomically(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("half");
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}
