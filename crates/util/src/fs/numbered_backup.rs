//! Numbered backups of a file.

use std::path::{Path, PathBuf};

use crate::fs::atomic_write::{self, FilePermissions};

/// Maximum number of backups per file.
pub const MAX_BACKUPS: u64 = 20;

/// Writes a backup under the next number and removes the oldest backups.
pub fn create_backup(target: &Path, content: &[u8], access: FilePermissions<'_>) -> std::io::Result<PathBuf> {
    let newest = backup_numbers(target).into_iter().max().unwrap_or_default();
    let path = backup_path(target, newest + 1);
    atomic_write::prepare(&path, content, access)?.create()?;
    for old in backup_numbers(target).into_iter().filter(|number| number + MAX_BACKUPS <= newest + 1) {
        let _ = std::fs::remove_file(backup_path(target, old));
    }
    Ok(path)
}

/// The numbers of the existing backups.
pub fn backup_numbers(target: &Path) -> Vec<u64> {
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(entries) = std::fs::read_dir(target.parent().unwrap_or(Path::new("/"))) else { return Vec::new() };
    let number = |entry: std::fs::DirEntry| {
        let found = entry.file_name();
        found.to_str()?.strip_prefix(&name)?.strip_prefix(".bak-")?.parse().ok()
    };
    entries.flatten().filter_map(number).collect()
}

/// `taxonomy.yaml.bak-1` for `taxonomy.yaml`, so that backups made by users are not touched.
pub fn backup_path(target: &Path, number: u64) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".bak-{number}"));
    target.with_file_name(name)
}
