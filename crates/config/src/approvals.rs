//! Approved project files: the path of each file and the SHA-256 of its approved content.
//!
//! The path is the canonical path of the folder joined with the file name. The file itself is not resolved if it is a
//! symbolic link: a link to a file that is approved elsewhere would bring that file's relative paths into this folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layers::user_config_dir;
use corbie_util::fs::atomic_write::{self, FilePermissions, parent_dir};
use corbie_util::fs::private_dir::{create_private_dir, open_private_file};

/// The approvals file in the user's configuration folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalFile(PathBuf);

/// Approvals: canonical path to SHA-256 of the content.
pub type Approvals = BTreeMap<PathBuf, ContentHash>;

/// SHA-256 of a file's content in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalFileContent {
    version: u32,
    files: Approvals,
}

/// Reading or changing approvals failed.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    #[error("{path}: {error}", path = .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is not a valid approvals file: {reason}; remove it and approve your project files again", path = .path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{path} was written by a newer version of this program ({version})", path = .path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error("too many approved files (maximum {MAX_APPROVED_FILES}); remove some with `corbie config untrust DIR`")]
    TooMany,
    #[error("`{}` cannot be approved, because its path is not UTF-8; rename the folder", .0.display())]
    NotUtf8(PathBuf),
}

const NAME: &str = "trusted.json";
const VERSION: u32 = 1;
const MAX_APPROVED_FILES: usize = 10_000;
const MAX_FILE_BYTES: u64 = 16 << 20;

impl ContentHash {
    pub fn of(content: &[u8]) -> ContentHash {
        ContentHash(format!("{:x}", Sha256::digest(content)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ApprovalFile {
    /// `None` if the environment defines no configuration folder for the user; then nothing can be approved.
    pub fn of(variables: &BTreeMap<String, String>) -> Option<ApprovalFile> {
        user_config_dir(variables).map(|folder| ApprovalFile(folder.join("corbie").join(NAME)))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// All approvals; empty if the file does not exist.
    pub fn read(&self) -> Result<Approvals, ApprovalError> {
        let io = |error| ApprovalError::Io { path: self.0.clone(), error };
        let file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Approvals::new()),
            Err(error) => return Err(io(error)),
        };
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(io)?;
        let unreadable =
            |error: serde_json::Error| ApprovalError::Unreadable { path: self.0.clone(), reason: error.to_string() };
        let content: ApprovalFileContent = serde_json::from_str(&text).map_err(unreadable)?;
        match content.version {
            VERSION => Ok(content.files),
            version => Err(ApprovalError::Newer { path: self.0.clone(), version }),
        }
    }

    /// Approves this content of the file at `path`, and no other.
    pub fn approve(&self, path: &Path, hash: ContentHash) -> Result<(), ApprovalError> {
        self.insert(path, hash, |_| true)
    }

    /// Approves this content of the file at `path`, and withdraws the approvals of other files in its folder: only one of
    /// them takes effect.
    pub fn approve_alone(&self, path: &Path, hash: ContentHash) -> Result<(), ApprovalError> {
        self.insert(path, hash, |other| other.parent() != path.parent())
    }

    fn insert(&self, path: &Path, hash: ContentHash, keep: impl Fn(&Path) -> bool) -> Result<(), ApprovalError> {
        if path.to_str().is_none() {
            return Err(ApprovalError::NotUtf8(path.to_owned()));
        }
        self.change(|approvals| {
            approvals.retain(|other, _| keep(other));
            approvals.insert(path.to_owned(), hash);
            if approvals.len() > MAX_APPROVED_FILES { Err(ApprovalError::TooMany) } else { Ok(()) }
        })
    }

    /// Withdraws the approval of every file in `folder` and returns their paths.
    pub fn withdraw(&self, folder: &Path) -> Result<Vec<PathBuf>, ApprovalError> {
        self.change(|approvals| {
            let (withdrawn, rest): (Vec<_>, Vec<_>) =
                std::mem::take(approvals).into_iter().partition(|(path, _)| path.parent() == Some(folder));
            approvals.extend(rest);
            Ok(withdrawn.into_iter().map(|(path, _)| path).collect())
        })
    }

    /// Reads, changes and replaces the file under an exclusive lock.
    fn change<T>(&self, change: impl FnOnce(&mut Approvals) -> Result<T, ApprovalError>) -> Result<T, ApprovalError> {
        let io = |error| ApprovalError::Io { path: self.0.clone(), error };
        create_private_dir(parent_dir(&self.0)).map_err(io)?;
        let lock = open_private_file(&self.0.with_extension("lock")).map_err(io)?;
        lock.lock().map_err(io)?;
        let before = self.read()?;
        let mut approvals = before.clone();
        let changed = change(&mut approvals)?;
        if approvals != before {
            let mut text = serde_json::to_string_pretty(&ApprovalFileContent { version: VERSION, files: approvals })
                .map_err(|error| io(error.into()))?;
            text.push('\n');
            // The file may be a symbolic link into a folder of dotfiles, so the target is replaced.
            let place = std::fs::canonicalize(&self.0).unwrap_or_else(|_| self.0.clone());
            atomic_write::prepare(&place, text.as_bytes(), FilePermissions::OwnerOnly)
                .and_then(|file| file.replace())
                .map_err(io)?;
        }
        Ok(changed)
    }
}

/// The path used as the key of an approval: the folder's canonical path and the file name.
pub fn approval_path(file: &Path) -> io::Result<PathBuf> {
    let folder = std::fs::canonicalize(parent_dir(file))?;
    Ok(folder.join(file.file_name().ok_or(ErrorKind::InvalidInput)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, ApprovalFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = ApprovalFile(folder.path().join("corbie").join(NAME));
        (folder, file)
    }

    #[test]
    fn x46_approvals_are_kept_by_path_and_content() {
        let (_folder, file) = file();
        assert!(file.read().unwrap().is_empty());
        let (one, other) = (Path::new("/a/corbie.yaml"), Path::new("/b/corbie.yaml"));
        file.approve(one, ContentHash::of(b"1")).unwrap();
        file.approve(other, ContentHash::of(b"2")).unwrap();
        file.approve(one, ContentHash::of(b"3")).unwrap();
        let approvals = file.read().unwrap();
        assert_eq!(approvals.get(one), Some(&ContentHash::of(b"3")), "the newest counts");
        assert_eq!(approvals.len(), 2);
        assert_eq!(file.withdraw(Path::new("/a")).unwrap(), [one]);
        assert!(file.withdraw(Path::new("/a")).unwrap().is_empty());
        assert_eq!(file.read().unwrap().into_keys().collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn x46_an_approval_replaces_those_of_other_files_in_the_folder() {
        let (_folder, file) = file();
        let (yaml, toml, other) =
            (Path::new("/a/corbie.yaml"), Path::new("/a/corbie.toml"), Path::new("/a/b/corbie.toml"));
        for path in [toml, other] {
            file.approve(path, ContentHash::of(b"1")).unwrap();
        }
        file.approve_alone(yaml, ContentHash::of(b"2")).unwrap();
        assert_eq!(file.read().unwrap().into_keys().collect::<Vec<_>>(), [other, yaml]);
    }

    #[cfg(unix)]
    #[test]
    fn s14_approvals_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, file) = file();
        file.approve(Path::new("/a/corbie.yaml"), ContentHash::of(b"1")).unwrap();
        assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn x46_a_damaged_file_approves_nothing_and_is_not_overwritten() {
        let (_folder, file) = file();
        create_private_dir(parent_dir(file.path())).unwrap();
        for damaged in ["half", "{\"version\": 2, \"files\": {}}", "{\"version\": 1, \"files\": {}, \"more\": 1}"] {
            std::fs::write(file.path(), damaged).unwrap();
            assert!(file.read().is_err(), "{damaged}");
            file.approve(Path::new("/a/corbie.yaml"), ContentHash::of(b"1")).unwrap_err();
            assert_eq!(std::fs::read_to_string(file.path()).unwrap(), damaged);
        }
    }
}
