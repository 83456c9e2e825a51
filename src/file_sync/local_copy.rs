//! The local copy of a shared file. All reads use this copy.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::access::TokenFile;
use crate::classify::Taxonomy;
use crate::util::fs::atomic_write::{self, FilePermissions};
use crate::util::fs::numbered_backup::create_backup;
use crate::util::fs::writable::{check_writable, resolve_target};

/// The kind of a shared file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedFileKind {
    Taxonomy,
    Tokens,
}

#[derive(Debug, Clone)]
pub(super) struct LocalCopy {
    pub(super) kind: SharedFileKind,
    pub(super) path: PathBuf,
    /// Whether the sync loop publishes changes of the file.
    pub(super) is_watched: bool,
    /// Categories that a taxonomy must contain: their prompts stay on local providers.
    pub(super) pinned_local: BTreeSet<String>,
}

/// How to treat the replaced content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplacedContent {
    /// Discard it: it is stored elsewhere.
    Discard,
    /// Keep it as a numbered backup: there is no other copy.
    Backup,
}

/// Size limit of a shared file.
const MAX_FILE_BYTES: u64 = 16 << 20;

impl SharedFileKind {
    /// Name of the file in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            SharedFileKind::Taxonomy => "taxonomy",
            SharedFileKind::Tokens => "tokens",
        }
    }
}

impl LocalCopy {
    /// Reads the file; `None` if it does not exist.
    pub(super) fn read(&self) -> Result<Option<String>, String> {
        let unreadable = |why: String| format!("cannot read `{}`: {why}", self.path.display());
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        if !file.metadata().is_ok_and(|facts| facts.is_file()) {
            return Err(unreadable("not a regular file".to_owned()));
        }
        let mut text = String::new();
        let read =
            file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
        match read as u64 > MAX_FILE_BYTES {
            true => Err(unreadable(format!("larger than {} MiB", MAX_FILE_BYTES >> 20))),
            false => Ok(Some(text)),
        }
    }

    /// Validates a text for the file.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("larger than {} MiB", MAX_FILE_BYTES >> 20));
        }
        match self.kind {
            SharedFileKind::Taxonomy => {
                let taxonomy = Taxonomy::parse_for(text, &self.path).map_err(|error| error.to_string())?;
                let has = |name: &String| taxonomy.names().any(|known| known == name);
                match self.pinned_local.iter().find(|name| !has(name)) {
                    Some(missing) => {
                        Err(format!("category `{missing}` is missing, but `router.restricted_categories` lists it"))
                    }
                    None => Ok(()),
                }
            }
            SharedFileKind::Tokens => {
                TokenFile::new(&self.path).parse(text).map(drop).map_err(|error| error.to_string())
            }
        }
    }

    /// The category names; empty for other kinds.
    pub(super) fn category_names(&self, text: &str) -> Vec<String> {
        match self.kind {
            SharedFileKind::Taxonomy => Taxonomy::parse_for(text, &self.path)
                .map_or_else(|_| Vec::new(), |taxonomy| taxonomy.names().map(str::to_owned).collect()),
            SharedFileKind::Tokens => Vec::new(),
        }
    }

    /// Fails for a read-only file: it is managed by another system and is not shared.
    pub(super) fn check_writable(&self) -> Result<(), String> {
        match self.path.exists() {
            true => check_writable(&self.path),
            false => Ok(()),
        }
    }

    /// Replaces the content if it still equals `before`.
    pub(super) fn write(&self, before: Option<&str>, text: &str, former: ReplacedContent) -> Result<bool, String> {
        let unwritable = |error: std::io::Error| format!("cannot write `{}`: {error}", self.path.display());
        if self.kind == SharedFileKind::Tokens {
            let file = TokenFile::new(&self.path);
            return file
                .compare_and_swap(before, text, former == ReplacedContent::Backup)
                .map_err(|error| error.to_string());
        }
        let Some(before) = before else {
            let prepared =
                atomic_write::prepare(&self.path, text.as_bytes(), FilePermissions::Default).map_err(unwritable)?;
            return match prepared.create() {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists && self.path.exists() => Ok(false),
                Err(error) => Err(unwritable(error)),
            };
        };
        let target = resolve_target(&self.path)?;
        let facts = fs::metadata(&target).map_err(unwritable)?;
        let prepared =
            atomic_write::prepare(&target, text.as_bytes(), FilePermissions::CopyOf(&facts)).map_err(unwritable)?;
        let kept = match former {
            ReplacedContent::Backup => {
                Some(create_backup(&target, before.as_bytes(), FilePermissions::CopyOf(&facts)).map_err(unwritable)?)
            }
            ReplacedContent::Discard => None,
        };
        // Checked last: another process may have written during the preparation.
        if self.read()?.as_deref() != Some(before) {
            kept.map(fs::remove_file);
            return Ok(false);
        }
        prepared.replace().map_err(unwritable)?;
        Ok(true)
    }

    /// Name of the sync state, derived from the path so that it applies to this file only.
    pub(super) fn state_name(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{digits}", self.kind.name())
    }
}
