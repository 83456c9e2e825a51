//! Checks whether a file can be replaced, and resolves its links.

use std::path::{Path, PathBuf};

/// Fails if the file cannot be replaced, as far as that can be determined without trying.
pub fn check_writable(path: &Path) -> Result<(), String> {
    let target = resolve_target(path)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    for place in [&target, folder] {
        may_write(place).map_err(|error| format!("cannot write `{}`: {error}", place.display()))?;
    }
    Ok(())
}

/// The target of all symbolic links.
pub fn resolve_target(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("cannot find `{}`: {error}", path.display()))
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
