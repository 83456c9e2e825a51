//! Opens a file or lists a folder without following links.
//!
//! Between checking a path and opening it, an attacker may replace a folder with a link, and the same path would lead
//! elsewhere. Therefore no link is followed while the path is opened.

use std::fs::File;
use std::io;
use std::path::Path;

/// The file, or `None` if a component of the path has been replaced. Does not wait for the writer of a pipe.
#[cfg(target_os = "linux")]
pub(super) fn open(followed: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat2(CWD, followed, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(Some(File::from(file))),
        // Older kernels lack `openat2`, and some containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(followed),
        Err(error) => none_if_changed(error),
    }
}

/// Opens one path component after another.
#[cfg(target_os = "linux")]
fn open_by_component(followed: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::path::Component;

    let (Some(folder), Some(name)) = (followed.parent(), followed.file_name()) else { return Ok(None) };
    let into = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = || {
        let mut at = openat(CWD, "/", into, Mode::empty())?;
        for part in folder.components().filter(|part| *part != Component::RootDir) {
            at = openat(&at, part.as_os_str(), into, Mode::empty())?;
        }
        openat(&at, name, flags, Mode::empty())
    };
    opened().map(|file| Some(File::from(file))).or_else(none_if_changed)
}

#[cfg(target_os = "linux")]
fn none_if_changed(error: rustix::io::Errno) -> io::Result<Option<File>> {
    use rustix::io::Errno;
    match error {
        Errno::LOOP | Errno::NOTDIR => Ok(None),
        error => Err(error.into()),
    }
}

/// The file, or `None` if the path leads to a different file by now.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(followed: &Path) -> io::Result<Option<File>> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(followed)?;
    let stands_there = followed.canonicalize()? == followed && is_same(&file, followed)?;
    Ok(stands_there.then_some(file))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (opened, there) = (file.metadata()?, path.metadata()?);
    Ok((opened.dev(), opened.ino()) == (there.dev(), there.ino()))
}

/// This platform has no file IDs; the path is the only identity.
#[cfg(not(unix))]
fn is_same(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Type of a directory entry. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    Link,
    Other,
}

/// The entries of a folder, or `None` if a component of its path has been replaced.
#[cfg(unix)]
pub(super) fn entries(followed: &Path) -> io::Result<Option<Entries>> {
    let Some(folder) = open(followed)? else { return Ok(None) };
    Ok(Some(Entries(rustix::fs::Dir::new(folder)?)))
}

/// Reads the opened directory, even if its path has been replaced by now.
#[cfg(unix)]
pub(super) struct Entries(rustix::fs::Dir);

#[cfg(unix)]
impl Entries {
    fn kind(&self, entry: &rustix::fs::DirEntry) -> rustix::io::Result<EntryKind> {
        use rustix::fs::{AtFlags, FileType, statat};
        let kind = match entry.file_type() {
            // Some file systems do not return the type with the name.
            FileType::Unknown => {
                let found = statat(self.0.fd()?, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(found.st_mode)
            }
            kind => kind,
        };
        Ok(match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        })
    }
}

#[cfg(unix)]
impl Iterator for Entries {
    type Item = io::Result<(std::ffi::OsString, EntryKind)>;

    fn next(&mut self) -> Option<Self::Item> {
        use std::os::unix::ffi::OsStrExt;
        loop {
            let entry = match self.0.next()? {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error.into())),
            };
            let name = entry.file_name().to_bytes();
            // Skips entries that were removed meanwhile.
            if !matches!(name, b"." | b"..")
                && let Ok(kind) = self.kind(&entry)
            {
                return Some(Ok((std::ffi::OsStr::from_bytes(name).to_owned(), kind)));
            }
        }
    }
}

#[cfg(not(unix))]
pub(super) fn entries(
    followed: &Path,
) -> io::Result<Option<impl Iterator<Item = io::Result<(std::ffi::OsString, EntryKind)>>>> {
    let described = |entry: std::fs::DirEntry| {
        let kind = entry.file_type()?;
        let kind = match () {
            () if kind.is_symlink() => EntryKind::Link,
            () if kind.is_dir() => EntryKind::Folder,
            () if kind.is_file() => EntryKind::File,
            () => EntryKind::Other,
        };
        Ok((entry.file_name(), kind))
    };
    Ok(Some(std::fs::read_dir(followed)?.map(move |entry| entry.and_then(described))))
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// Opens a file with both implementations, which must agree.
    fn both(followed: &Path) -> Option<String> {
        let read = |file: Option<File>| {
            file.map(|mut file| {
                let mut text = String::new();
                file.read_to_string(&mut text).unwrap();
                text
            })
        };
        let opened = read(open(followed).unwrap());
        assert_eq!(read(open_by_component(followed).unwrap()), opened);
        opened
    }

    #[test]
    fn s11_a_path_in_which_a_folder_or_the_file_became_a_link_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for folder in ["allowed/inner", "outside"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("notes.txt"), folder).unwrap();
        }
        let followed = root.join("allowed/inner/notes.txt");
        assert_eq!(both(&followed).as_deref(), Some("allowed/inner"));
        fs::rename(root.join("allowed/inner"), root.join("allowed/before")).unwrap();
        symlink(root.join("outside"), root.join("allowed/inner")).unwrap();
        assert_eq!(fs::read_to_string(&followed).unwrap(), "outside");
        assert_eq!(both(&followed), None);
        fs::remove_file(root.join("allowed/inner")).unwrap();
        fs::create_dir(root.join("allowed/inner")).unwrap();
        symlink(root.join("outside/notes.txt"), &followed).unwrap();
        assert_eq!(both(&followed), None);
    }

    #[test]
    fn s11_a_folder_that_became_a_link_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for file in ["inner/notes.txt", "outside/secret.txt"] {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), file).unwrap();
        }
        fs::create_dir(root.join("inner/deeper")).unwrap();
        symlink("notes.txt", root.join("inner/link")).unwrap();
        let inner = root.join("inner");
        let mut names: Vec<_> = entries(&inner).unwrap().unwrap().map(Result::unwrap).collect();
        names.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [("deeper", EntryKind::Folder), ("link", EntryKind::Link), ("notes.txt", EntryKind::File)];
        assert_eq!(names, expected.map(|(name, kind)| (name.into(), kind)));
        fs::rename(&inner, root.join("before")).unwrap();
        symlink(root.join("outside"), &inner).unwrap();
        assert!(entries(&inner).unwrap().is_none());
    }

    #[test]
    fn what_is_missing_is_told_as_missing() {
        let place = tempfile::tempdir().unwrap();
        let gone = place.path().canonicalize().unwrap().join("gone/notes.txt");
        assert_eq!(open(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open_by_component(&gone).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
