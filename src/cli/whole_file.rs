//! Writes files that are there as a whole or not at all, whatever happens in between.

use std::io::{ErrorKind, Write};
use std::path::Path;

use tempfile::{NamedTempFile, PersistError};

/// Writes a file that must not be there yet.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<(), String> {
    place(path, bytes, NamedTempFile::persist_noclobber)
}

/// Writes a file in the place of the one that may be there.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    place(path, bytes, NamedTempFile::persist)
}

pub(super) fn exists(path: &Path) -> String {
    format!("`{}` exists already; give another name, or `--force` to replace it", path.display())
}

type Place<'a> = fn(NamedTempFile, &'a Path) -> Result<std::fs::File, PersistError>;

fn place<'a>(path: &'a Path, bytes: &[u8], into: Place<'a>) -> Result<(), String> {
    let unwritable = |error: &std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => format!("`{}` cannot be written: {error}", path.display()),
    };
    let file = prepared(path, bytes).map_err(|error| unwritable(&error))?;
    into(file, path).map_err(|failed| unwritable(&failed.error))?;
    Ok(())
}

/// A file in the same folder, so that it can be renamed; it goes away unless it is.
fn prepared(path: &Path, bytes: &[u8]) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = tempfile::Builder::new();
    options.prefix(".corbie-");
    // As other new files: the bits that the process takes away are taken away here too.
    #[cfg(unix)]
    options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = options.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_never_takes_the_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        create(&path, b"first").unwrap();
        assert!(create(&path, b"second").unwrap_err().contains("exists already"));
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        replace(&path, b"third").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/file");
        assert!(replace(&path, b"").unwrap_err().contains("missing/file` cannot be written"));
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_they_may_read_other_new_files() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
        std::fs::write(folder.path().join("plain"), "").unwrap();
        create(&folder.path().join("ours"), b"").unwrap();
        assert_eq!(mode("ours"), mode("plain"));
    }
}
