//! Atomic writes of output files, with error messages.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::util::fs::atomic_write::{self, FilePermissions, PendingFile};

/// Writes a file that must not exist yet.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<(), String> {
    write_file(path, bytes, FilePermissions::Default, PendingFile::create)
}

/// Replaces a file atomically and keeps its access restrictions.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let before = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file);
    write_file(
        path,
        bytes,
        before.as_ref().map_or(FilePermissions::Default, FilePermissions::CopyOf),
        PendingFile::replace,
    )
}

pub(super) fn exists_message(path: &Path) -> String {
    format!("`{}` already exists; choose another name, or overwrite it with `--force`", path.display())
}

fn write_file(
    path: &Path,
    bytes: &[u8],
    access: FilePermissions<'_>,
    into: fn(PendingFile) -> io::Result<()>,
) -> Result<(), String> {
    atomic_write::prepare(path, bytes, access).and_then(into).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists_message(path),
        _ => format!("`{}` cannot be written: {error}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn create_never_overwrites() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        create(&path, b"first").unwrap();
        assert!(create(&path, b"second").unwrap_err().contains("already exists"));
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        replace(&path, b"third").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn write_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/file");
        assert!(replace(&path, b"").unwrap_err().contains("missing/file` cannot be written"));
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_new_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
        std::fs::write(folder.path().join("plain"), "").unwrap();
        create(&folder.path().join("ours"), b"").unwrap();
        assert_eq!(mode("ours"), mode("plain"));
        let private = folder.path().join("private");
        std::fs::write(&private, "").unwrap();
        std::fs::set_permissions(&private, PermissionsExt::from_mode(0o600)).unwrap();
        replace(&private, b"after").unwrap();
        assert_eq!(mode("private") & 0o777, 0o600);
    }
}
