//! Writes files that are there as a whole or not at all, whatever happens in between.
//!
//! All bytes go into a file beside the place, then to the disk, and only then it gets its name. Links are not followed
//! here: who wants to keep them names the file at their end.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::owner;

/// Whose a new file is, and who may read it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access<'m> {
    /// Nobody but its owner.
    Owner,
    /// As other new files: the bits that the process takes away are taken away here too.
    AsUsual,
    /// As one that is there, which has its owner, its group and its permissions.
    Like(&'m Metadata),
}

/// A file that is on the disk with all its bytes, and without its name. It goes away unless it gets it.
#[derive(Debug)]
pub(crate) struct Prepared {
    file: NamedTempFile,
    path: PathBuf,
}

/// What such files are called before they have their names.
const PREFIX: &str = ".corbie-";

/// Writes all but the name.
pub(crate) fn prepare(path: &Path, bytes: &[u8], access: Access<'_>) -> io::Result<Prepared> {
    let mut options = tempfile::Builder::new();
    options.prefix(PREFIX);
    #[cfg(unix)]
    if matches!(access, Access::AsUsual) {
        options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    // In the same folder, as names can be changed within one disk only.
    let mut file = options.tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    if let Access::Like(other) = access {
        owner::keep(file.as_file(), other)?;
        file.as_file().set_permissions(other.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(Prepared { file, path: path.to_owned() })
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Prepared {
    /// Takes the place of the file that may be there.
    pub(crate) fn replace(self) -> io::Result<()> {
        self.file.persist(&self.path).map_err(|failed| failed.error)?;
        keep_name(&self.path);
        Ok(())
    }

    /// Takes its place only if nothing is there, be it a link to nowhere.
    pub(crate) fn create(self) -> io::Result<()> {
        self.file.persist_noclobber(&self.path).map_err(|failed| failed.error)?;
        keep_name(&self.path);
        Ok(())
    }
}

/// A name is safe on the disk only with its folder; where that cannot be opened, the file is there all the same.
fn keep_name(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
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
        let prepared = prepare(&path, b"after", Access::Owner).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before");
        drop(prepared);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        prepare(&path, b"after", Access::Owner).unwrap().replace().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        let error = prepare(&path, b"again", Access::Owner).unwrap().create().unwrap_err();
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
        for (access, expected) in
            [(Access::Owner, 0o600), (Access::AsUsual, mode(&plain)), (Access::Like(&like), 0o624)]
        {
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
        let error = prepare(&link, b"", Access::Owner).unwrap().create().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!folder.path().join("nowhere").exists());
    }
}
