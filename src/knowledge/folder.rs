//! The files that folders and patterns stand for (K-43).
//!
//! Folders that loop through links are entered once, hidden files and files of other formats are passed over, and the
//! number of files has a bound.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::Error;
use super::source::{Rules, format_of};

/// How many files one call may stand for.
pub(super) const MOST_FILES: usize = 100_000;
/// How deep folders may lie in each other.
const MOST_DEPTH: usize = 64;

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// In the order of their names, each once.
    pub files: Vec<PathBuf>,
    /// What could not be looked at, and why.
    pub failed: Vec<(PathBuf, Error)>,
}

/// The files of one path: a file, all files of a folder, or those that fit a pattern such as `docs/**/*.pdf`.
pub(super) fn files(path: &str, recursive: bool, rules: &Rules) -> Result<Found, Error> {
    let whole = Path::new(path);
    let metadata = fs::metadata(whole);
    let pattern = metadata.is_err() && path.contains(['*', '?', '[', '{']);
    let mut found = Found::default();
    if !pattern {
        match metadata {
            Ok(metadata) if metadata.is_dir() => Walk::new(rules, recursive, None, &mut found).enter(whole, 0)?,
            // A folder, most likely.
            Err(error) if whole.extension().is_none() => return Err(missing(whole, &error)),
            // What else is wrong with a file that was named is told when it is read.
            _ => found.files.push(whole.to_owned()),
        }
    } else {
        let (base, matcher) = matcher(path)?;
        Walk::new(rules, true, Some(&matcher), &mut found).enter(&base, 0)?;
    }
    found.files.sort();
    Ok(found)
}

/// The folder to begin in, and what fits.
fn matcher(pattern: &str) -> Result<(PathBuf, GlobMatcher), Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| Error::invalid("paths", format!("`{pattern}` is no pattern: {error}")))?;
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let base: PathBuf = Path::new(pattern).components().take_while(is_plain).collect();
    let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
    Ok((base, glob.compile_matcher()))
}

struct Walk<'w> {
    rules: &'w Rules,
    recursive: bool,
    matcher: Option<&'w GlobMatcher>,
    /// Folders that were entered, links followed.
    entered: HashSet<PathBuf>,
    found: &'w mut Found,
}

impl<'w> Walk<'w> {
    fn new(rules: &'w Rules, recursive: bool, matcher: Option<&'w GlobMatcher>, found: &'w mut Found) -> Walk<'w> {
        Walk { rules, recursive, matcher, entered: HashSet::new(), found }
    }

    fn enter(&mut self, folder: &Path, depth: usize) -> Result<(), Error> {
        let shown = || folder.display().to_string();
        let followed = match folder.canonicalize() {
            Ok(followed) => followed,
            Err(error) if depth == 0 => return Err(missing(folder, &error)),
            Err(error) => return self.fail(folder, missing(folder, &error)),
        };
        if !self.rules.allows(&followed) {
            let error = Error::PathNotAllowed(shown());
            return if depth == 0 { Err(error) } else { self.fail(folder, error) };
        }
        if depth > MOST_DEPTH || !self.entered.insert(followed) {
            return Ok(());
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(missing(folder, &error)),
            Err(error) => return self.fail(folder, missing(folder, &error)),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            // Links are followed; one that leads nowhere is nothing.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if is_hidden {
                continue;
            }
            if metadata.is_dir() {
                if self.recursive {
                    self.enter(&path, depth + 1)?;
                }
            } else if metadata.is_file() && self.fits(&path) {
                self.found.files.push(path);
                if self.found.files.len() > MOST_FILES {
                    let message =
                        format!("there are more than {MOST_FILES} files; import the folders in it one by one");
                    return Err(Error::invalid("paths", message));
                }
            }
        }
        Ok(())
    }

    fn fits(&self, path: &Path) -> bool {
        format_of(path).is_ok() && self.matcher.is_none_or(|matcher| matcher.is_match(path))
    }

    fn fail(&mut self, folder: &Path, error: Error) -> Result<(), Error> {
        self.found.failed.push((folder.to_owned(), error));
        Ok(())
    }
}

fn missing(folder: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::FileNotFound(folder.display().to_string()),
        _ => Error::FileNotReadable { path: folder.display().to_string(), reason: error.to_string() },
    }
}
