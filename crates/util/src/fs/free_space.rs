//! Free disk space.

use std::path::Path;

/// Bytes that this user can still write to the file system of a folder, if available.
#[cfg(unix)]
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let facts = rustix::fs::statvfs(folder).ok()?;
    Some(facts.f_bavail.saturating_mul(facts.f_frsize))
}

#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}
