//! Taxonomy file store: reads, versions and replaces the taxonomy file.
//!
//! All functions do blocking I/O; call them on a blocking thread.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Taxonomy;
use corbie_util::fs::atomic_write::{self, FilePermissions};
use corbie_util::fs::numbered_backup::create_backup;
use corbie_util::fs::writable::{check_writable, resolve_target};

/// Size limit for a taxonomy that is shown, checked or saved through the server. Larger ones are edited as files.
pub(super) const MAX_EDITABLE_BYTES: usize = 1 << 20;

/// Number of hex digits of a version.
const VERSION_DIGITS: usize = 16;

/// The result of a replacement: the new version and the backup of the old content.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) version: String,
    /// `None` if the content was already the same.
    pub(super) backup: Option<PathBuf>,
}

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplaceError {
    #[error("the file has changed since it was read; reload it and apply your changes to the new version")]
    Conflict,
    #[error("{0}")]
    Unwritable(String),
    /// The other instances could not be notified.
    #[error("nothing was saved, because the file is synchronized with other instances through the database: {0}")]
    Unavailable(String),
    /// The outcome is in doubt: the response was lost.
    #[error(
        "the save is in doubt, because the file is synchronized with other instances through the database; reload \
        the file and check: {0}"
    )]
    InDoubt(String),
}

impl ReplaceError {
    pub(super) fn stopped() -> ReplaceError {
        ReplaceError::Unwritable("writing the file failed unexpectedly; see the log".into())
    }
}

/// Reads a file. Returns `None` if it exceeds [`MAX_EDITABLE_BYTES`].
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("cannot read `{}`: {error}", path.display());
    // Anything but a regular file could block or be endless.
    let is_file = std::fs::metadata(path).map_err(|error| unreadable(&error))?.is_file();
    if !is_file {
        return Err(unreadable(&"not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    file.take(MAX_EDITABLE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() > MAX_EDITABLE_BYTES {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable(&"not UTF-8 text"))
}

/// Version of a text: a truncated SHA-256 hash.
pub(super) fn version(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut version: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    version.truncate(VERSION_DIGITS);
    version
}

/// The current content of a replaceable file.
struct CurrentContent {
    target: PathBuf,
    text: String,
}

/// Checks that a file can be replaced and has the expected version.
pub(super) fn check(path: &Path, expected: Option<&str>) -> Result<(), ReplaceError> {
    read_current(path, expected).map(drop)
}

fn read_current(path: &Path, expected: Option<&str>) -> Result<CurrentContent, ReplaceError> {
    check_writable(path).map_err(ReplaceError::Unwritable)?;
    let target = resolve_target(path).map_err(ReplaceError::Unwritable)?;
    let text = read(&target).map_err(ReplaceError::Unwritable)?;
    let text = text.ok_or_else(|| {
        ReplaceError::Unwritable(format!("`{}` is too large to be saved here; edit the file directly", path.display()))
    })?;
    match expected.is_some_and(|expected| expected != version(&text)) {
        true => Err(ReplaceError::Conflict),
        false => Ok(CurrentContent { target, text }),
    }
}

/// Replaces the content of a file atomically and keeps the old content as a numbered backup.
///
/// Symbolic links are followed, as they are on reads: the link stays and its target is replaced.
pub(super) fn replace(path: &Path, text: &str, expected: Option<&str>) -> Result<Replacement, ReplaceError> {
    let CurrentContent { target, text: before } = read_current(path, expected)?;
    let unwritable = |place: &Path| {
        let place = place.display().to_string();
        move |error: std::io::Error| ReplaceError::Unwritable(format!("cannot write `{place}`: {error}"))
    };
    let metadata = std::fs::metadata(&target).map_err(unwritable(&target))?;
    // A repeated save must not overwrite the backup of the first one.
    if before == text {
        return Ok(Replacement { version: version(text), backup: None });
    }
    let backup =
        create_backup(&target, before.as_bytes(), FilePermissions::CopyOf(&metadata)).map_err(unwritable(&target))?;
    let file = atomic_write::prepare(&target, text.as_bytes(), FilePermissions::CopyOf(&metadata))
        .map_err(unwritable(&target))?;
    // Another process may have written the file in the meantime.
    if read(&target).ok().flatten().as_deref() != Some(&*before) {
        let _ = std::fs::remove_file(&backup);
        return Err(ReplaceError::Conflict);
    }
    file.replace().map_err(unwritable(&target))?;
    Ok(Replacement { version: version(text), backup: Some(backup) })
}

/// Creates a file for the first taxonomy that replaces the built-in one. `expected` is the version of the built-in one.
pub(super) fn create(path: &Path, text: &str, expected: Option<&str>) -> Result<Replacement, ReplaceError> {
    if expected.is_some_and(|expected| expected != version(Taxonomy::builtin_text())) {
        return Err(ReplaceError::Conflict);
    }
    let created = std::fs::create_dir_all(atomic_write::parent_dir(path))
        .and_then(|()| atomic_write::prepare(path, text.as_bytes(), FilePermissions::Default)?.create());
    match created {
        Ok(()) => Ok(Replacement { version: version(text), backup: None }),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(ReplaceError::Conflict),
        Err(error) => Err(ReplaceError::Unwritable(format!("`{}` cannot be written: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corbie_util::fs::numbered_backup::{MAX_BACKUPS, backup_numbers, backup_path};

    #[test]
    fn what_was_there_is_kept_beside_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "first").unwrap();
        let replaced = replace(&path, "second", Some(&version("first"))).unwrap();
        assert_eq!(replaced.version, version("second"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        let backup = replaced.backup.unwrap();
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), "first");
        assert!(backup.ends_with("t.yaml.bak-1"));
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }

    #[test]
    fn the_same_again_costs_no_copy_and_of_many_copies_the_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "0").unwrap();
        let own = folder.path().join("t.yaml.bak");
        std::fs::write(&own, "somebody's own").unwrap();
        for number in 1..=MAX_BACKUPS + 2 {
            let text = number.to_string();
            assert!(replace(&path, &text, None).unwrap().backup.is_some());
            assert!(replace(&path, &text, None).unwrap().backup.is_none());
        }
        let mut kept = backup_numbers(&path);
        kept.sort_unstable();
        assert_eq!(kept, (3..=MAX_BACKUPS + 2).collect::<Vec<_>>());
        assert_eq!(std::fs::read_to_string(backup_path(&path, 3)).unwrap(), "2");
        assert_eq!(std::fs::read_to_string(own).unwrap(), "somebody's own");
    }

    #[test]
    fn a_file_that_was_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, "somebody else's").unwrap();
        let refused = replace(&path, "mine", Some(&version("what I read"))).unwrap_err();
        assert!(matches!(refused, ReplaceError::Conflict), "{refused}");
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
        // A backup name that is already taken, even by a symbolic link, is skipped: no write goes through the link.
        let bystander = folder.path().join("bystander");
        std::fs::write(&bystander, "untouched").unwrap();
        std::os::unix::fs::symlink(&bystander, elsewhere.path().join("real.yaml.bak-1")).unwrap();
        let replaced = replace(&link, "second", None).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(std::fs::read_to_string(&bystander).unwrap(), "untouched");
        assert_eq!(std::fs::read_to_string(replaced.backup.unwrap()).unwrap(), "first");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing.yaml");
        assert!(replace(&path, "", None).unwrap_err().to_string().contains("missing.yaml`"));
        assert!(read(folder.path()).unwrap_err().contains("not a regular file"));
    }
}
