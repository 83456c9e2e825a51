//! Reads client configuration files up to a maximum size, backs them up, and replaces them atomically.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::util::fs::atomic_write::{self, FilePermissions, parent_dir};

/// Maximum file size. Some clients store more than settings in the file, but none comes near this size.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum number of backups of a file. Then the user has to delete some.
const MAX_BACKUPS: u32 = 1000;
/// Maximum number of symbolic links to follow.
const MAX_SYMLINKS: usize = 16;

/// Content of a configuration file.
#[derive(Debug)]
pub struct ClientFile {
    /// Path with all links resolved.
    pub path: PathBuf,
    /// `None` if the file does not exist.
    text: Option<String>,
}

/// Permissions of a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewFilePermissions {
    /// Owner only: such files often contain keys.
    OwnerOnly,
    /// Default permissions, for project files.
    Default,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{}` cannot be read: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("`{}` is not a file; specify another one with `--file`", .path.display())]
    NotAFile { path: PathBuf },
    #[error("`{}` is a cycle of symbolic links; specify another file with `--file`", .path.display())]
    Links { path: PathBuf },
    #[error("`{}` is too large for a client configuration ({bytes} bytes); specify another file with `--file`", .path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("`{}` is not UTF-8; save it as UTF-8 and try again", .path.display())]
    NotUtf8 { path: PathBuf },
    #[error("`{}` is read-only; make it writable and try again", .path.display())]
    ReadOnly { path: PathBuf },
    #[error("`{}` was changed by another program in the meantime; nothing was written; try again", .path.display())]
    Changed { path: PathBuf },
    #[error("`{}` cannot be written: {error}; the file was not changed", .path.display())]
    Unwritable { path: PathBuf, error: io::Error },
    #[error("there are already {MAX_BACKUPS} backups of `{}`; remove some", .path.display())]
    TooManyBackups { path: PathBuf },
}

/// Reads a file, if it exists.
pub fn open(path: &Path) -> Result<ClientFile, Error> {
    let path = resolve_symlinks(path)?;
    let unreadable = |error| Error::Unreadable { path: path.clone(), error };
    let found = match fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ClientFile { path, text: None }),
        Err(error) => return Err(unreadable(error)),
    };
    // Reading a pipe could block forever.
    if !found.is_file() {
        return Err(Error::NotAFile { path });
    }
    if found.len() > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path, bytes: found.len() });
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLarge { bytes: bytes.len() as u64, path });
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(ClientFile { path, text: Some(text) }),
        Err(_) => Err(Error::NotUtf8 { path }),
    }
}

impl ClientFile {
    pub fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Empty if the file does not exist.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Backs up the file, then replaces it with `text`. Returns the path of the backup, if the file existed.
    pub fn replace(&self, text: &str, readers: NewFilePermissions) -> Result<Option<PathBuf>, Error> {
        let path = &self.path;
        let unwritable = |error| Error::Unwritable { path: path.clone(), error };
        let folder = parent_dir(path);
        fs::create_dir_all(folder).map_err(unwritable)?;
        let metadata = if self.exists() { Some(fs::metadata(path).map_err(unwritable)?) } else { None };
        if metadata.as_ref().is_some_and(|metadata| metadata.permissions().readonly()) {
            return Err(Error::ReadOnly { path: path.clone() });
        }
        let backup = metadata.as_ref().map(|metadata| self.create_backup(metadata)).transpose()?;
        let written = self.write(text, readers, metadata.as_ref());
        if let (Err(_), Some(backup)) = (&written, &backup) {
            // The change failed, so the backup is not needed; it may contain secrets.
            let _ = fs::remove_file(backup);
        }
        written.map(|()| backup)
    }

    /// Replaces the file atomically with `text`.
    fn write(&self, text: &str, readers: NewFilePermissions, metadata: Option<&Metadata>) -> Result<(), Error> {
        let path = &self.path;
        let unwritable = |error| Error::Unwritable { path: path.clone(), error };
        let access = match (metadata, readers) {
            (Some(metadata), _) => FilePermissions::CopyOf(metadata),
            (None, NewFilePermissions::OwnerOnly) => FilePermissions::OwnerOnly,
            (None, NewFilePermissions::Default) => FilePermissions::Default,
        };
        let file = atomic_write::prepare(path, text.as_bytes(), access).map_err(unwritable)?;
        // Clients write to these files too; changes made since the file was read must not be lost.
        if open(path)?.text != self.text {
            return Err(Error::Changed { path: path.clone() });
        }
        let placed = if self.exists() { file.replace() } else { file.create() };
        placed.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Changed { path: path.clone() },
            _ => unwritable(error),
        })
    }

    /// A backup in the same folder with an unused name and the same permissions.
    fn create_backup(&self, metadata: &Metadata) -> Result<PathBuf, Error> {
        for number in 1..=MAX_BACKUPS {
            let path = backup_path(&self.path, number);
            let unwritable = |error| Error::Unwritable { path: path.clone(), error };
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let copy = atomic_write::prepare(&path, self.text().as_bytes(), FilePermissions::CopyOf(metadata))
                .map_err(unwritable)?;
            match copy.create() {
                Ok(()) => return Ok(path),
                // Another process has created this backup.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(error)),
            }
        }
        Err(Error::TooManyBackups { path: self.path.clone() })
    }
}

/// The content of the newest backup, if it can be read.
pub fn newest_backup(path: &Path) -> Option<String> {
    let path = resolve_symlinks(path).ok()?;
    let there = |number: &u32| backup_path(&path, *number).is_file();
    let newest = (1..=MAX_BACKUPS).take_while(there).last()?;
    open(&backup_path(&path, newest)).ok()?.text
}

/// `mcp.json.corbie-backup`, then `mcp.json.corbie-backup.2`, and so on.
fn backup_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".corbie-backup");
    if number > 1 {
        name.push(format!(".{number}"));
    }
    path.with_file_name(name)
}

/// Resolves symbolic links, so that writing the file preserves them.
fn resolve_symlinks(path: &Path) -> Result<PathBuf, Error> {
    let mut at = path.to_owned();
    for _ in 0..MAX_SYMLINKS {
        match fs::read_link(&at) {
            Ok(target) => at = parent_dir(&at).join(target),
            // Not a link, or does not exist.
            Err(_) => return Ok(at),
        }
    }
    Err(Error::Links { path: path.to_owned() })
}
