//! The file of the taxonomy: its text, which version it is, and writing another in its place.
//!
//! Everything here waits for disks; callers do it aside.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

/// The largest text that is shown, checked or saved through the server. Larger taxonomies are changed in their files.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// How many digits tell a version from others.
const DIGITS: usize = 16;

/// What a file was replaced with, and where its former content is.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) version: String,
    pub(super) backup: PathBuf,
}

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReplaced {
    #[error("the file was changed since you read it; read it again, and put your changes into what it says now")]
    Changed,
    #[error("{0}")]
    Unwritable(String),
}

/// The text of a file; none where it is larger than what is shown.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("`{}` cannot be read: {error}", path.display());
    // Anything but a regular file could block or never end.
    let is_file = std::fs::metadata(path).map_err(|error| unreadable(&error))?.is_file();
    if !is_file {
        return Err(unreadable(&"it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() > MOST_BYTES {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable(&"it is not UTF-8 text"))
}

/// A short name of a text that no other text has.
pub(super) fn version(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut version: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    version.truncate(DIGITS);
    version
}

/// Why a file cannot be replaced; nothing if it can, as far as can be told without trying.
pub(super) fn check_writable(path: &Path) -> Result<(), String> {
    let target = target(path)?;
    let folder = target.parent().unwrap_or(Path::new("/"));
    for place in [&target, folder] {
        may_write(place).map_err(|error| format!("`{}` cannot be written: {error}", place.display()))?;
    }
    Ok(())
}

/// Puts a text in the place of what a file says, as a whole or not at all. What it said is kept beside it.
///
/// Links are followed, as they are when the file is read: the file at their end is replaced, and they stay.
pub(super) fn replace(path: &Path, text: &str, expected: Option<&str>) -> Result<Replaced, NotReplaced> {
    check_writable(path).map_err(NotReplaced::Unwritable)?;
    let target = target(path).map_err(NotReplaced::Unwritable)?;
    let unwritable = |place: &Path| {
        let place = place.display().to_string();
        move |error: std::io::Error| NotReplaced::Unwritable(format!("`{place}` cannot be written: {error}"))
    };
    let permissions = std::fs::metadata(&target).map_err(unwritable(&target))?.permissions();
    let before = read(&target).map_err(NotReplaced::Unwritable)?;
    let before = before.ok_or_else(|| {
        NotReplaced::Unwritable(format!("`{}` is larger than what can be saved here; edit the file", path.display()))
    })?;
    if expected.is_some_and(|expected| expected != version(&before)) {
        return Err(NotReplaced::Changed);
    }
    let backup = beside(&target);
    let put = |place: &Path, text: &str| -> std::io::Result<()> {
        let file = prepared(place, text, permissions.clone())?;
        file.persist(place).map(drop).map_err(|failed| failed.error)
    };
    put(&backup, &before).map_err(unwritable(&backup))?;
    put(&target, text).map_err(unwritable(&target))?;
    // The names are safe only when the folder is; where it cannot be opened, the files are there all the same.
    if let Some(folder) = target.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
    Ok(Replaced { version: version(text), backup })
}

/// The file at the end of all links.
fn target(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("`{}` cannot be found: {error}", path.display()))
}

/// `taxonomy.yaml.bak` for `taxonomy.yaml`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".bak");
    path.with_file_name(name)
}

/// A file in the same folder, so that it can be renamed; it goes away unless it is.
fn prepared(path: &Path, text: &str, permissions: std::fs::Permissions) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new().prefix(".corbie-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    Ok(file)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_is_kept_beside_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "first").unwrap();
        let replaced = replace(&path, "second", Some(&version("first"))).unwrap();
        assert_eq!(replaced.version, version("second"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(std::fs::read_to_string(&replaced.backup).unwrap(), "first");
        assert!(replaced.backup.ends_with("t.yaml.bak"));
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "somebody else's").unwrap();
        let refused = replace(&path, "mine", Some(&version("what I read"))).unwrap_err();
        assert!(matches!(refused, NotReplaced::Changed), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody else's");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, file) = (folder.path().join("t.yaml"), elsewhere.path().join("real.yaml"));
        std::fs::write(&file, "first").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        // A backup that is a link is replaced and not followed: nothing else is written through it.
        let bystander = folder.path().join("bystander");
        std::fs::write(&bystander, "untouched").unwrap();
        std::os::unix::fs::symlink(&bystander, elsewhere.path().join("real.yaml.bak")).unwrap();
        let replaced = replace(&link, "second", None).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(std::fs::read_to_string(&bystander).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(replaced.backup).unwrap(), "first");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing.yaml");
        assert!(replace(&path, "", None).unwrap_err().to_string().contains("missing.yaml` cannot be found"));
        assert!(read(folder.path()).unwrap_err().contains("not a regular file"));
    }
}
