//! Validation of a file before it is added (K-29, S-11).
//!
//! The checks run in a fixed order: format by file extension, existence, permission, size, content. Links are resolved
//! first, so that a link inside of an allowed folder cannot lead outside. No link is followed after that.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use corbie_extract::{Format, Warning};
use tokio::sync::Semaphore;

use super::{Error, open_nofollow, run_blocking};
use corbie_util::fs::atomic_write::parent_dir;

/// Which files may be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPolicy {
    /// Allowed folders with links resolved. If empty, all files are allowed.
    pub roots: Vec<PathBuf>,
    /// The canonical path of the named folder or file: no link may lead outside of the folder, or to a hidden file or
    /// folder in it, and the file may not be a link.
    pub within: Option<PathBuf>,
    pub max_bytes: u64,
}

/// A valid file with its content.
#[derive(Debug)]
pub struct CheckedFile {
    /// Path with links resolved.
    pub path: PathBuf,
    pub filename: String,
    pub format: Format,
    pub bytes: Vec<u8>,
    /// The file extension indicates another format (K-44).
    pub warning: Option<Warning>,
}

/// Properties of a file that are determined without reading all of it.
#[derive(Debug, Clone)]
pub struct FileInfo {
    pub path: PathBuf,
    pub filename: String,
    pub format: Format,
    pub size: u64,
}

/// Limits the number of concurrent checks over all callers.
#[derive(Debug)]
pub struct CheckLimiter(Arc<Semaphore>);

/// Why a link that was named is not followed.
pub(super) const NAMED_LINK: &str = "it is a symbolic link; use the path of its target, or follow it with `corbie add \
--follow-links` (`follow_links` in a tool call)";
/// Why a link in a folder is not followed.
const LEAVING_LINK: &str = "it is a symbolic link to a file outside of the folder or to a hidden file; add the target \
directly, or use `corbie add --follow-links`";

/// Maximum number of concurrent checks: each uses up to two megabytes.
const MAX_CONCURRENT_CHECKS: usize = 16;

impl Default for CheckLimiter {
    fn default() -> CheckLimiter {
        CheckLimiter(Arc::new(Semaphore::new(MAX_CONCURRENT_CHECKS)))
    }
}

impl CheckLimiter {
    /// Runs [`PathPolicy::check`] when a permit is available.
    pub async fn check(&self, rules: PathPolicy, path: PathBuf) -> Result<FileInfo, Error> {
        let room = self.0.clone().acquire_owned().await.map_err(|error| Error::Internal(error.to_string()))?;
        let check = move || {
            // Held by the check and not by its caller, which may be cancelled before the check ends.
            let _room = room;
            rules.check(&path)
        };
        run_blocking(check).await?
    }
}

impl PathPolicy {
    /// The configured folders with links resolved. A missing folder allows no files.
    pub fn new(roots: &[PathBuf], most_bytes: u64) -> PathPolicy {
        let followed = |root: &PathBuf| root.canonicalize().unwrap_or_else(|_| root.clone());
        PathPolicy { roots: roots.iter().map(followed).collect(), within: None, max_bytes: most_bytes }
    }

    /// Also restricts the file to this folder, or to this path of a file, given with links resolved.
    pub fn within(self, folder: Option<&Path>) -> PathPolicy {
        PathPolicy { within: folder.map(Path::to_owned), ..self }
    }

    /// Also allows this folder of the storage. A link in its place allows nothing.
    pub fn with_root(mut self, root: &Path) -> PathPolicy {
        self.roots.push(canonical_name(root));
        self
    }

    /// All checks that need no parser. Blocks on disk I/O.
    pub fn check(&self, path: &Path) -> Result<FileInfo, Error> {
        let (file, facts) = self.open(path)?;
        let ends = read_both_ends(file, facts.size).map_err(|error| unreadable(path, &error))?;
        detect_format(&facts, &ends, path)?;
        Ok(facts)
    }

    /// The file with its content. It is opened once, so that the checked file is the same as the file that is read.
    pub fn read(&self, path: &Path) -> Result<CheckedFile, Error> {
        let (file, facts) = self.open(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(facts.size).unwrap_or_default());
        // The file may grow while it is read.
        file.take(self.max_bytes + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
        if bytes.len() as u64 > self.max_bytes {
            return Err(self.too_large(bytes.len() as u64));
        }
        let (format, warning) = detect_format(&facts, &bytes, path)?;
        let FileInfo { path, filename, .. } = facts;
        Ok(CheckedFile { path, filename, format, bytes, warning })
    }

    fn open(&self, path: &Path) -> Result<(File, FileInfo), Error> {
        let named = format_of(path)?;
        let shown = path.display().to_string();
        if shown.contains('\0') {
            return Err(Error::invalid("file_path", "`file_path` contains a NUL character"));
        }
        let followed = self.resolve(path)?;
        // Paths are stored as text. Lossy conversion could map two names to the same text.
        let (Some(filename), Some(_)) = (path.file_name().and_then(OsStr::to_str), followed.to_str()) else {
            return Err(Error::FileNotReadable {
                path: shown,
                reason: "its name is not valid UTF-8; rename it".into(),
            });
        };
        // Opening a special file, such as a device or a pipe, may have side effects.
        let metadata = followed.metadata().map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(Error::FileNotReadable { path: shown, reason: not_a_file_reason(&metadata).into() });
        }
        let file = self.open_resolved(&followed, path)?;
        let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
        if !metadata.is_file() {
            return Err(Error::FileNotReadable { path: shown, reason: not_a_file_reason(&metadata).into() });
        }
        if metadata.len() > self.max_bytes {
            return Err(self.too_large(metadata.len()));
        }
        let facts = FileInfo { filename: filename.to_owned(), format: named, size: metadata.len(), path: followed };
        Ok((file, facts))
    }

    /// Resolves links, and returns an error if the target is not allowed. Outside of the allowed folders, the error
    /// does not reveal whether a file exists.
    pub(super) fn resolve(&self, path: &Path) -> Result<PathBuf, Error> {
        let outside = || Error::PathNotAllowed(path.display().to_string());
        let followed = path.canonicalize().map_err(|error| match error.kind() {
            _ if !self.might_allow(path) => outside(),
            io::ErrorKind::NotFound => Error::FileNotFound(path.display().to_string()),
            _ => unreadable(path, &error),
        })?;
        match self.allows(&followed) {
            false => Err(outside()),
            true if self.within.as_ref().is_some_and(|folder| !is_visible_in(&followed, folder)) => {
                let is_named = self.within.as_ref().is_some_and(|named| *named == canonical_name(path));
                let reason = if is_named { NAMED_LINK } else { LEAVING_LINK };
                Err(Error::FileNotReadable { path: path.display().to_string(), reason: reason.into() })
            }
            true => Ok(followed),
        }
    }

    /// Opens the allowed file. Fails if the path was replaced since the check.
    fn open_resolved(&self, followed: &Path, asked: &Path) -> Result<File, Error> {
        let shown = || asked.display().to_string();
        match open_nofollow::open(followed) {
            Ok(Some(file)) => Ok(file),
            Ok(None) if self.roots.is_empty() => {
                let reason = "it was moved while being opened; add it again".to_owned();
                Err(Error::FileNotReadable { path: shown(), reason })
            }
            Ok(None) => Err(Error::PathNotAllowed(shown())),
            Err(error) => Err(unreadable(asked, &error)),
        }
    }

    /// Whether a resolved path may be read.
    pub fn allows(&self, followed: &Path) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|root| followed.starts_with(root))
    }

    /// Whether a missing path would be allowed. Compares path components only.
    fn might_allow(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let parent = path.ancestors().skip(1).find_map(|parent| parent.canonicalize().ok());
        self.roots.is_empty() || (!climbs && parent.is_some_and(|parent| self.allows(&parent)))
    }

    fn too_large(&self, found: u64) -> Error {
        Error::FileTooLarge { found, most_mb: self.max_bytes >> 20 }
    }
}

/// The canonical path of a file or folder, except that a link in its own place is not followed. Links above it are. A
/// path that is no link resolves to the same; one that is replaced by a link does not.
pub(super) fn canonical_name(path: &Path) -> PathBuf {
    // A trailing `/` or `/.` would follow the link.
    let path: PathBuf = path.components().collect();
    let Some(name) = path.file_name() else { return path.canonicalize().unwrap_or(path) };
    let Ok(folder) = parent_dir(&path).canonicalize() else { return path };
    let named = folder.join(name);
    // On file systems that ignore case, the name on the disk may have another spelling.
    #[cfg(not(target_os = "linux"))]
    if !named.is_symlink()
        && let Ok(on_disk) = named.canonicalize()
        && on_disk.parent() == Some(&folder)
    {
        return on_disk;
    }
    named
}

/// Whether a path is inside a folder, with no hidden component in between; links in both are resolved. The folder's own
/// path may have hidden components.
pub(super) fn is_visible_in(followed: &Path, folder: &Path) -> bool {
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    followed.strip_prefix(folder).is_ok_and(|rest| !rest.components().any(is_hidden))
}

/// The format of a file extension.
pub fn format_of(path: &Path) -> Result<Format, Error> {
    let extension = path.extension().map(OsStr::to_string_lossy).unwrap_or_default();
    Format::from_extension(&extension).ok_or_else(|| Error::UnsupportedFormat { extension: extension.to_lowercase() })
}

fn detect_format(facts: &FileInfo, bytes: &[u8], asked: &Path) -> Result<(Format, Option<Warning>), Error> {
    if bytes.is_empty() {
        return Err(Error::EmptyFile(asked.display().to_string()));
    }
    Ok(corbie_extract::resolve(Some(facts.format), bytes)?)
}

/// Number of bytes read from the beginning of a file, and from its end, where archives have their directory. An
/// archive's format is detected from these bytes only, even if the whole file is available.
const SNIFF_BYTES: u64 = 1 << 20;

/// The bytes for format detection: all of a small file, and both ends of a large one.
fn read_both_ends(mut file: File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    (&mut file).take(SNIFF_BYTES).read_to_end(&mut bytes)?;
    if size > 2 * SNIFF_BYTES {
        file.seek(SeekFrom::Start(size - SNIFF_BYTES))?;
    }
    file.take(SNIFF_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn not_a_file_reason(metadata: &Metadata) -> &'static str {
    match metadata.is_dir() {
        true => "it is a folder; use knowledge-import for folders",
        false => "it is not a regular file",
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotFound => "it no longer exists".to_owned(),
        _ => error.to_string(),
    };
    Error::FileNotReadable { path: path.display().to_string(), reason }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests;
