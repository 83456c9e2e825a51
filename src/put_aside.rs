//! Numbered backups of a file.

use std::path::{Path, PathBuf};

use crate::whole_file::{self, Access};

/// Maximum number of backups per file.
pub(crate) const MOST_COPIES: u64 = 20;

/// Writes a backup under the next number and removes the oldest backups.
pub(crate) fn put_aside(target: &Path, content: &[u8], access: Access<'_>) -> std::io::Result<PathBuf> {
    let newest = copies(target).into_iter().max().unwrap_or_default();
    let path = copy(target, newest + 1);
    whole_file::prepare(&path, content, access)?.create()?;
    for old in copies(target).into_iter().filter(|number| number + MOST_COPIES <= newest + 1) {
        let _ = std::fs::remove_file(copy(target, old));
    }
    Ok(path)
}

/// The numbers of the existing backups.
pub(crate) fn copies(target: &Path) -> Vec<u64> {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(entries) = std::fs::read_dir(target.parent().unwrap_or(Path::new("/"))) else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| {
        let found = entry.file_name();
        found.to_str()?.strip_prefix(&name)?.strip_prefix(".bak-")?.parse().ok()
    };
    entries.flatten().filter_map(number).collect()
}

/// `taxonomy.yaml.bak-1` for `taxonomy.yaml`, so that backups made by users are not touched.
pub(crate) fn copy(target: &Path, number: u64) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".bak-{number}"));
    target.with_file_name(name)
}
