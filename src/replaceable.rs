//! Whether a file can be replaced, and which one that is.

use std::path::{Path, PathBuf};

/// Why a file cannot be replaced; nothing if it can, as far as can be told without trying.
pub(crate) fn check_writable(path: &Path) -> Result<(), String> {
    let target = target(path)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    for place in [&target, folder] {
        may_write(place).map_err(|error| format!("`{}` cannot be written: {error}", place.display()))?;
    }
    Ok(())
}

/// The file at the end of all links.
pub(crate) fn target(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("`{}` cannot be found: {error}", path.display()))
}

#[cfg(unix)]
fn may_write(path: &Path) -> std::io::Result<()> {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(Into::into)
}

#[cfg(not(unix))]
fn may_write(path: &Path) -> std::io::Result<()> {
    match std::fs::metadata(path)?.permissions().readonly() && path.is_file() {
        true => Err(std::io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}
