//! Token file: readable by its owner only, written atomically, changed under a file lock.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::token::{TokenName, TokenRecord};
use crate::util::fs::atomic_write::{self, FilePermissions, parent_dir};
use crate::util::fs::numbered_backup::create_backup;
use crate::util::fs::private_dir::{create_private_dir, open_private_file};

/// The file of API tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile(PathBuf);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenFileContent {
    version: u32,
    pub(super) tokens: Vec<TokenRecord>,
}

/// Why tokens cannot be loaded or changed.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("{path}: {error}", path = .path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} is not a valid tokens file: {reason}; move it, or set `server.tokens_file` to another file", path = .path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{path} was written by a newer version of this program ({version})", path = .path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error("token `{0}` already exists; revoke it first, or use another name")]
    Exists(TokenName),
    #[error("unknown token `{0}`; use `corbie tokens list` to list tokens")]
    Unknown(TokenName),
    #[error("too many tokens (maximum {MAX_TOKENS}); revoke some first")]
    TooMany,
}

const VERSION: u32 = 1;
/// Maximum number of tokens; small enough for a linear scan.
pub(super) const MAX_TOKENS: usize = 10_000;
/// Maximum size of the file.
const MAX_FILE_BYTES: u64 = 16 << 20;

impl TokenFile {
    pub fn new(path: impl Into<PathBuf>) -> TokenFile {
        TokenFile(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Loads the tokens; empty if the file does not exist.
    pub fn read(&self) -> Result<Vec<TokenRecord>, TokenFileError> {
        let file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io(error)),
        };
        self.warn_if_writable_by_others(&file);
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(|error| self.io(error))?;
        self.parse(&text)
    }

    /// Parses the content of a token file.
    pub fn parse(&self, text: &str) -> Result<Vec<TokenRecord>, TokenFileError> {
        let unreadable = |reason: String| TokenFileError::Unreadable { path: self.0.clone(), reason };
        let content: TokenFileContent = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if content.version > VERSION {
            return Err(TokenFileError::Newer { path: self.0.clone(), version: content.version });
        }
        let mut digests = HashSet::new();
        if let Some(twice) = content.tokens.iter().find(|token| !digests.insert(token.sha256)) {
            return Err(unreadable(format!("duplicate secret of `{}`", twice.name)));
        }
        Ok(content.tokens)
    }

    /// Adds one token.
    pub fn add(&self, token: TokenRecord) -> Result<(), TokenFileError> {
        self.change(|tokens| {
            if tokens.iter().any(|other| other.name == token.name) {
                return Err(TokenFileError::Exists(token.name));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenFileError::TooMany);
            }
            tokens.push(token);
            Ok(())
        })
    }

    /// Removes a token.
    pub fn revoke(&self, name: &TokenName) -> Result<TokenRecord, TokenFileError> {
        self.change(|tokens| match tokens.iter().position(|token| token.name == *name) {
            Some(place) => Ok(tokens.remove(place)),
            None => Err(TokenFileError::Unknown(name.clone())),
        })
    }

    /// Compare-and-swap under the lock: replaces `before` by `text`. Returns false if the file contains another text.
    /// With `keeps`, saves a backup of `before`.
    pub fn compare_and_swap(&self, before: Option<&str>, text: &str, keeps: bool) -> Result<bool, TokenFileError> {
        let io = |error| self.io(error);
        let _lock = self.lock()?;
        let found = match fs::read_to_string(&self.0) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(io(error)),
        };
        if found.as_deref() != before {
            return Ok(false);
        }
        if let (true, Some(before)) = (keeps, before) {
            create_backup(&self.0, before.as_bytes(), FilePermissions::OwnerOnly).map_err(io)?;
        }
        self.write_text(text).map_err(io)?;
        Ok(true)
    }

    /// Reads, changes and writes the file under the lock.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<TokenRecord>) -> Result<T, TokenFileError>,
    ) -> Result<T, TokenFileError> {
        let _lock = self.lock()?;
        let mut tokens = self.read()?;
        let changed = change(&mut tokens)?;
        self.write(tokens).map_err(|error| self.io(error))?;
        Ok(changed)
    }

    /// The lock for changes.
    fn lock(&self) -> Result<File, TokenFileError> {
        create_private_dir(parent_dir(&self.0)).map_err(|error| self.io(error))?;
        let lock = open_private_file(&self.sibling_path("lock")).map_err(|error| self.io(error))?;
        lock.lock().map_err(|error| self.io(error))?;
        Ok(lock)
    }

    fn write(&self, tokens: Vec<TokenRecord>) -> io::Result<()> {
        self.write_text(&to_text(tokens)?)
    }

    /// Writes the file atomically.
    fn write_text(&self, text: &str) -> io::Result<()> {
        atomic_write::prepare(&self.0, text.as_bytes(), FilePermissions::OwnerOnly)?.replace()
    }

    fn sibling_path(&self, ending: &str) -> PathBuf {
        let mut name = self.0.file_name().unwrap_or_default().to_owned();
        name.push(".");
        name.push(ending);
        self.0.with_file_name(name)
    }

    #[cfg(unix)]
    fn warn_if_writable_by_others(&self, file: &File) {
        use std::os::unix::fs::MetadataExt;
        if file.metadata().is_ok_and(|metadata| metadata.mode() & 0o022 != 0) {
            tracing::warn!(path = %self.0.display(), "tokens file is writable by other users, who could grant access; \
                run `chmod 600` on it");
        }
    }

    #[cfg(not(unix))]
    fn warn_if_writable_by_others(&self, _: &File) {}

    fn io(&self, error: io::Error) -> TokenFileError {
        TokenFileError::Io { path: self.0.clone(), error }
    }
}

impl TokenFileContent {
    /// Parses a text; `None` if it is invalid.
    pub(super) fn parse(text: &str) -> Option<TokenFileContent> {
        serde_json::from_str::<TokenFileContent>(text).ok().filter(|content| content.version <= VERSION)
    }
}

/// Serializes tokens for the file.
pub(super) fn to_text(tokens: Vec<TokenRecord>) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&TokenFileContent { version: VERSION, tokens })?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::token::NewToken;
    use super::*;

    fn token(name: &str) -> TokenRecord {
        NewToken::generate(name.parse().expect("name"), None).record.clone()
    }

    #[test]
    fn s05_what_was_added_is_read_until_it_is_revoked() {
        let folder = tempfile::tempdir().expect("folder");
        let file = TokenFile::new(folder.path().join("new/folder/tokens.json"));
        assert!(file.read().expect("none").is_empty());
        let (a, b) = (token("a"), token("b"));
        file.add(a.clone()).expect("added");
        file.add(b.clone()).expect("added");
        assert!(matches!(file.add(token("a")), Err(TokenFileError::Exists(_))));
        assert_eq!(file.read().expect("read"), [a.clone(), b.clone()]);
        assert_eq!(file.revoke(&a.name).expect("revoked"), a);
        assert!(matches!(file.revoke(&a.name), Err(TokenFileError::Unknown(_))));
        assert_eq!(file.read().expect("read"), [b]);
    }

    #[test]
    fn it_is_exchanged_for_what_others_say_only_if_nobody_has_changed_it() {
        let folder = tempfile::tempdir().expect("folder");
        let file = TokenFile::new(folder.path().join("corbie/tokens.json"));
        let text = |name: &str| to_text(vec![token(name)]).expect("text");
        let (one, two) = (text("one"), text("two"));
        assert!(!file.compare_and_swap(Some(&one), &two, false).expect("told"), "there is none");
        assert!(file.compare_and_swap(None, &one, false).expect("told"));
        assert!(!file.compare_and_swap(Some(&two), &two, true).expect("told"), "it says something else");
        assert!(file.compare_and_swap(Some(&one), &two, true).expect("told"));
        assert_eq!(file.read().expect("read")[0].name.to_string(), "two");
        let kept = crate::util::fs::numbered_backup::backup_path(file.path(), 1);
        assert_eq!(fs::read_to_string(kept).expect("kept"), one);
    }

    #[cfg(unix)]
    #[test]
    fn s14_only_the_owner_may_read_it() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().expect("folder");
        let file = TokenFile::new(folder.path().join("corbie/tokens.json"));
        file.add(token("a")).expect("added");
        let mode = |path: &Path| fs::metadata(path).expect("there").mode() & 0o777;
        assert_eq!((mode(file.path()), mode(&folder.path().join("corbie"))), (0o600, 0o700));
    }

    #[test]
    fn processes_that_change_it_together_lose_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let file = TokenFile::new(folder.path().join("tokens.json"));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || file.add(token(&format!("t{number}"))).expect("added"));
            }
        });
        assert_eq!(file.read().expect("read").len(), 8);
    }

    #[test]
    fn a_file_of_something_else_is_told_and_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("tokens.json");
        fs::write(&path, "not tokens").expect("written");
        let file = TokenFile::new(&path);
        assert!(matches!(file.add(token("a")), Err(TokenFileError::Unreadable { .. })));
        assert_eq!(fs::read_to_string(&path).expect("there"), "not tokens");
        fs::write(&path, r#"{"version":2,"tokens":[]}"#).expect("written");
        assert!(matches!(file.read(), Err(TokenFileError::Newer { version: 2, .. })));
    }
}
