//! Files that the program reads while they are written.

use std::fs;
use std::path::Path;

/// Whole at every moment: a file that is half written is nobody's document, and one that is empty for an instant is settings,
/// too, so that whoever starts then has the defaults.
pub(crate) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("half");
    fs::write(&beside, text)?;
    fs::rename(beside, path)
}
