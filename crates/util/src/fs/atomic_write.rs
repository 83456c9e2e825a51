//! Atomic file writes: a file appears completely or not at all, also after a crash.
//!
//! All bytes are written to a temporary file in the same folder, synced to disk, and then the file is renamed. Symbolic
//! links are not followed: a caller that wants to keep a link passes its target.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::fs::ownership;

/// Owner and permissions of a new file.
#[derive(Debug, Clone, Copy)]
pub enum FilePermissions<'m> {
    /// Only the owner has access.
    OwnerOnly,
    /// Like other new files: the umask applies.
    Default,
    /// Like an existing file: owner, group and permissions.
    CopyOf(&'m Metadata),
}

/// A temporary file, complete and synced. It is removed unless it is renamed.
#[derive(Debug)]
pub struct PendingFile {
    file: NamedTempFile,
    path: PathBuf,
}

/// Prefix of temporary file names.
const PREFIX: &str = ".corbie-";

/// Writes the temporary file.
pub fn prepare(path: &Path, bytes: &[u8], access: FilePermissions<'_>) -> io::Result<PendingFile> {
    let mut options = tempfile::Builder::new();
    options.prefix(PREFIX);
    #[cfg(unix)]
    if matches!(access, FilePermissions::Default) {
        options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    // In the same folder, because a rename works within one file system only.
    let mut file = options.tempfile_in(parent_dir(path))?;
    file.write_all(bytes)?;
    if let FilePermissions::CopyOf(other) = access {
        ownership::copy_owner(file.as_file(), other)?;
        file.as_file().set_permissions(other.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(PendingFile { file, path: path.to_owned() })
}

/// The parent folder of a file.
pub fn parent_dir(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl PendingFile {
    /// Replaces a file that may exist.
    pub fn replace(self) -> io::Result<()> {
        self.file.persist(&self.path).map_err(|failed| failed.error)?;
        sync_parent_dir(&self.path);
        Ok(())
    }

    /// Fails if the path exists, even as a dangling link.
    pub fn create(self) -> io::Result<()> {
        self.file.persist_noclobber(&self.path).map_err(|failed| failed.error)?;
        sync_parent_dir(&self.path);
        Ok(())
    }
}

/// Syncs the folder, which makes the rename durable. If the folder cannot be opened, the file exists anyway.
fn sync_parent_dir(path: &Path) {
    if let Ok(folder) = File::open(parent_dir(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_gets_its_name_at_the_end_and_leaves_nothing_if_it_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "before").unwrap();
        let prepared = prepare(&path, b"after", FilePermissions::OwnerOnly).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        drop(prepared);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        prepare(&path, b"after", FilePermissions::OwnerOnly).unwrap().replace().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        let error = prepare(&path, b"again", FilePermissions::OwnerOnly).unwrap().create().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_it_is_as_was_asked_for() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (other, plain) = (folder.path().join("other"), folder.path().join("plain"));
        fs::write(&plain, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o624)).unwrap();
        let like = fs::metadata(&other).unwrap();
        for (access, expected) in [
            (FilePermissions::OwnerOnly, 0o600),
            (FilePermissions::Default, mode(&plain)),
            (FilePermissions::CopyOf(&like), 0o624),
        ] {
            let path = folder.path().join("file");
            prepare(&path, b"", access).unwrap().replace().unwrap();
            assert_eq!(mode(&path), expected, "{access:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_in_the_way_of_a_new_file_wherever_it_leads() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let error = prepare(&link, b"", FilePermissions::OwnerOnly).unwrap().create().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!folder.path().join("nowhere").exists());
    }
}
