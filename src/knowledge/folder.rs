//! The files that folders and patterns stand for (K-43).
//!
//! A symbolic link is followed only where it stays inside the folder that was named and leads to no hidden file or folder
//! (S-11): who writes a repository or an archive must not choose other files of whoever imports it. The named folder may
//! itself be reached through links. Folders that loop through links are entered once, hidden files and files of other
//! formats are passed over. Both the files and the names that are looked at have a bound, and whoever cancels an import ends
//! the walk.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::skipped::Skipped;
use super::source::{Rules, format_of, is_visible_in};
use super::unlinked::{self, EntryKind};

/// How much one call may stand for.
#[derive(Debug, Clone, Copy)]
struct Most {
    files: usize,
    /// Of files and folders that are looked at, whether or not they are wanted.
    names: usize,
    /// How deep folders may lie in each other.
    depth: usize,
}

const MOST: Most = Most { files: 100_000, names: 1_000_000, depth: 64 };

/// What makes a path a pattern.
const WILD: [char; 4] = ['*', '?', '[', '{'];

/// How folders are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    pub recursive: bool,
    /// Also links that leave the folder that was named.
    pub follow_links: bool,
}

/// A file to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub path: PathBuf,
    /// The folder that was named, links followed: the file must still be in it when it is opened. None where the file itself
    /// was named, or all links are followed.
    pub within: Option<Arc<Path>>,
}

impl AsRef<Path> for FoundFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Those of each path in the order of their names, each once.
    pub files: Vec<FoundFile>,
    /// What could not be looked at, and why.
    pub failed: Vec<(PathBuf, Error)>,
    /// What was passed over.
    pub skipped: Skipped,
}

/// The files of some paths. What is wrong with one of them does not keep the others back.
pub(super) fn files_of(paths: &[String], options: Options, rules: &Rules, cancel: &CancellationToken) -> Found {
    let mut walk = Walk::new(rules, options, cancel);
    let mut named = HashSet::new();
    for path in paths.iter().filter(|path| named.insert(path.as_str())) {
        if let Err(error) = walk.take(path) {
            walk.found.failed.push((PathBuf::from(path), error));
        }
    }
    // Two patterns may mean the same file.
    let mut seen = HashSet::new();
    walk.found.files.retain(|file| seen.insert(file.path.clone()));
    walk.found
}

/// The files of one path.
pub(super) fn files(path: &str, options: Options, rules: &Rules, cancel: &CancellationToken) -> Result<Found, Error> {
    let mut walk = Walk::new(rules, options, cancel);
    walk.take(path)?;
    Ok(walk.found)
}

/// The folder to begin in, and what fits.
fn matcher(pattern: &str) -> Result<(PathBuf, GlobMatcher), Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| Error::invalid("paths", format!("`{pattern}` is no pattern: {error}")))?;
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(WILD);
    let base: PathBuf = Path::new(pattern).components().take_while(is_plain).collect();
    let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
    Ok((base, glob.compile_matcher()))
}

struct Walk<'w> {
    rules: &'w Rules,
    options: Options,
    cancel: &'w CancellationToken,
    most: Most,
    /// How many names were looked at.
    names: usize,
    /// The folder that nothing may leave, links followed, unless all links are followed.
    within: Option<Arc<Path>>,
    /// Folders that were entered for a path, links followed.
    entered: HashSet<PathBuf>,
    /// Folders of which all that is passed over was counted, links followed. Two paths may mean the same one.
    counted: HashSet<PathBuf>,
    /// Whether any file fits the pattern that is looked for.
    fits: bool,
    found: Found,
}

impl<'w> Walk<'w> {
    fn new(rules: &'w Rules, options: Options, cancel: &'w CancellationToken) -> Walk<'w> {
        let (entered, counted, found) = (HashSet::new(), HashSet::new(), Found::default());
        Walk { rules, options, cancel, most: MOST, names: 0, within: None, entered, counted, fits: false, found }
    }

    /// Takes up the files of a path: a file, all files of a folder, or those that fit a pattern such as `docs/**/*.pdf`.
    /// Nothing of it, if it cannot have all.
    fn take(&mut self, path: &str) -> Result<(), Error> {
        let before = self.found.files.len();
        self.entered.clear();
        self.within = None;
        let taken = self.take_all(path);
        match taken {
            Ok(()) => self.found.files[before..].sort_by(|one, other| one.path.cmp(&other.path)),
            Err(_) => self.found.files.truncate(before),
        }
        taken
    }

    fn take_all(&mut self, path: &str) -> Result<(), Error> {
        let whole = Path::new(path);
        // Asked before anything is looked at, so that nobody learns what is outside.
        match self.rules.follow(whole) {
            Ok(followed) if followed.is_dir() => self.enter(whole, None, 0),
            Err(_) if path.contains(WILD) => {
                let (base, matcher) = matcher(path)?;
                self.fits = false;
                let recursive = std::mem::replace(&mut self.options.recursive, true);
                let entered = self.enter(&base, Some(&matcher), 0);
                self.options.recursive = recursive;
                entered?;
                // Who mistyped it would be told of success.
                if self.fits { Ok(()) } else { Err(Error::NothingFits(path.to_owned())) }
            }
            // A folder, most likely.
            Err(error) if whole.extension().is_none() => Err(error),
            // What else is wrong with a file that was named is told when it is read.
            _ => self.add(whole.to_owned()),
        }
    }

    fn enter(&mut self, folder: &Path, matcher: Option<&GlobMatcher>, depth: usize) -> Result<(), Error> {
        let mut counts = true;
        let followed = self.rules.follow(folder);
        if let (0, Ok(followed), false) = (depth, &followed, self.options.follow_links) {
            self.within = Some(followed.as_path().into());
        }
        let entries = followed.and_then(|followed| {
            counts = match matcher {
                None => self.counted.insert(followed.clone()),
                Some(_) => !self.counted.contains(&followed),
            };
            if self.leaves(&followed) || !self.entered.insert(followed.clone()) {
                return Ok(None);
            }
            // A link that took the folder's place since is not followed.
            unlinked::entries(&followed).map_err(|error| unreadable(folder, &error))
        });
        let entries = match entries {
            Ok(Some(entries)) => entries,
            Ok(None) => return Ok(()),
            Err(error) if depth == 0 => return Err(error),
            Err(error) => {
                self.found.failed.push((folder.to_owned(), error));
                return Ok(());
            }
        };
        for entry in entries {
            self.look()?;
            let (name, kind) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.found.failed.push((folder.to_owned(), unreadable(folder, &error)));
                    return Ok(());
                }
            };
            let path = folder.join(&name);
            let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
            let (kind, leaves) = match kind {
                EntryKind::Link => match self.resolve(&path) {
                    Some(resolved) => resolved,
                    // A link that leads nowhere is nothing.
                    None => continue,
                },
                kind => (kind, false),
            };
            if name.as_encoded_bytes().starts_with(b".") {
                // Who writes a pattern has said which files are meant.
                if matcher.is_none() && counts {
                    self.found.skipped.hide();
                }
                continue;
            }
            if leaves {
                let fits = matcher.is_none_or(|matcher| matcher.is_match(&path));
                self.fits |= fits;
                if counts && (fits || kind == EntryKind::Folder) {
                    self.found.skipped.leave_folder();
                }
            } else if kind == EntryKind::Folder && self.options.recursive {
                if depth < self.most.depth {
                    self.enter(&path, matcher, depth + 1)?;
                } else {
                    let reason = "it lies too deep in other folders; import it by itself".to_owned();
                    let error = Error::FileNotReadable { path: path.display().to_string(), reason };
                    self.found.failed.push((path, error));
                }
            } else if kind == EntryKind::File && matcher.is_none_or(|matcher| matcher.is_match(&path)) {
                self.fits = true;
                match format_of(&path) {
                    Ok(_) => self.add(path)?,
                    Err(_) if counts => self.found.skipped.pass_over(&path),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// What a link leads to, and whether that is outside or hidden.
    fn resolve(&self, link: &Path) -> Option<(EntryKind, bool)> {
        let followed = link.canonicalize().ok()?;
        let metadata = fs::symlink_metadata(&followed).ok()?;
        let kind = match () {
            () if metadata.is_dir() => EntryKind::Folder,
            () if metadata.is_file() => EntryKind::File,
            () => EntryKind::Other,
        };
        Some((kind, self.leaves(&followed)))
    }

    /// Whether a path without links is outside of the folder that was named, or hidden in it.
    fn leaves(&self, followed: &Path) -> bool {
        self.within.as_ref().is_some_and(|within| !is_visible_in(followed, within))
    }

    fn add(&mut self, path: PathBuf) -> Result<(), Error> {
        self.found.files.push(FoundFile { path, within: self.within.clone() });
        if self.found.files.len() > self.most.files {
            let message = format!("there are more than {} files; import the folders in it one by one", self.most.files);
            return Err(Error::invalid("paths", message));
        }
        Ok(())
    }

    /// Counts a name, and sees whether the walk is still wanted.
    fn look(&mut self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.names += 1;
        if self.names > self.most.names {
            let most = self.most.names;
            let message = format!("there are more than {most} names to look at; import the folders in it one by one");
            return Err(Error::invalid("paths", message));
        }
        Ok(())
    }
}

fn unreadable(folder: &Path, error: &io::Error) -> Error {
    Error::FileNotReadable { path: folder.display().to_string(), reason: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    /// A folder with three notes and two other files, one of the notes in a folder of its own.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("inner")).unwrap();
        for name in ["a.txt", "b.txt", "inner/c.txt", "d.bin", "e.bin"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        place
    }

    const ALL: Options = Options { recursive: true, follow_links: false };

    fn walked(place: &Path, most: Most, cancel: &CancellationToken) -> Result<usize, Error> {
        let rules = Rules::new(&[], 1 << 20);
        let mut walk = Walk { most, ..Walk::new(&rules, ALL, cancel) };
        walk.take(place.to_str().unwrap()).map(|()| walk.found.files.len())
    }

    #[test]
    fn k43_files_and_names_have_a_bound_that_is_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        let walked = |most| walked(place.path(), most, &cancel);
        assert_eq!(walked(Most { files: 3, names: 6, ..MOST }), Ok(3));
        let refused = walked(Most { names: 5, ..MOST }).unwrap_err();
        assert_eq!(refused.code(), "invalid_parameter");
        assert!(refused.to_string().contains("more than 5 names"), "{refused}");
        let refused = walked(Most { files: 2, ..MOST }).unwrap_err();
        assert!(refused.to_string().contains("more than 2 files"), "{refused}");
    }

    #[test]
    fn k93_a_walk_that_nobody_wants_any_more_ends() {
        let (place, cancel) = (place(), CancellationToken::new());
        cancel.cancel();
        assert_eq!(walked(place.path(), MOST, &cancel), Err(Error::Cancelled));
    }

    #[test]
    fn s11_what_is_outside_is_neither_looked_at_nor_told_to_be_missing() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = Rules::new(&[place.path().join("inner")], 1 << 20);
        for path in ["", "gone", "*.txt", "gone/**/*.txt", "inner/../gone"] {
            let asked = place.path().join(path);
            let refused = files(asked.to_str().unwrap(), ALL, &rules, &cancel).unwrap_err();
            assert_eq!(refused.code(), "path_not_allowed", "{path}");
        }
        let inside = place.path().join("inner/*.txt");
        assert_eq!(files(inside.to_str().unwrap(), ALL, &rules, &cancel).unwrap().files.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn k43_folders_that_loop_through_links_are_entered_once_and_deep_ones_are_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        std::os::unix::fs::symlink(place.path(), place.path().join("inner/again")).unwrap();
        std::os::unix::fs::symlink("self", place.path().join("self")).unwrap();
        let rules = Rules::new(&[], 1 << 20);
        let path = place.path().to_str().unwrap().to_owned();
        let found = files(&path, ALL, &rules, &cancel).unwrap();
        assert_eq!((found.files.len(), found.failed.len()), (3, 0), "{found:?}");
        let mut walk = Walk { most: Most { depth: 0, ..MOST }, ..Walk::new(&rules, ALL, &cancel) };
        walk.take(&path).unwrap();
        assert_eq!((walk.found.files.len(), walk.found.failed[0].1.code()), (2, "file_not_readable"));
    }

    #[test]
    fn k43_a_path_that_fails_leaves_nothing_and_the_others_go_on() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = Rules::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let found = files_of(&[path("gone"), path("*.txt"), path("a.txt")], ALL, &rules, &cancel);
        let paths: Vec<&Path> = found.files.iter().map(AsRef::as_ref).collect();
        assert_eq!(paths, [place.path().join("a.txt"), place.path().join("b.txt")]);
        assert_eq!(found.failed.len(), 1);
    }

    #[test]
    fn k43_a_pattern_that_no_file_fits_is_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = Rules::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let found = files_of(&[path("*.nope"), path("*.txt"), path("*.bin")], ALL, &rules, &cancel);
        let (pattern, error) = &found.failed[0];
        assert_eq!((pattern, error.code()), (&place.path().join("*.nope"), "file_not_found"));
        assert!(error.to_string().starts_with(&format!("No file fits: {}", pattern.display())), "{error}");
        // Files of another format fit, and are counted.
        assert_eq!((found.failed.len(), found.files.len(), found.skipped.total()), (1, 2, 2));
    }

    #[test]
    fn k43_what_a_folder_has_that_is_no_document_is_counted_once() {
        let (place, cancel) = (place(), CancellationToken::new());
        fs::write(place.path().join("inner/.hidden"), "").unwrap();
        let rules = Rules::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let paths = [path(""), path("inner/.."), path("inner"), path("*.bin"), path("")];
        let found = files_of(&paths, ALL, &rules, &cancel);
        assert_eq!((found.skipped.total(), found.failed.len()), (3, 0), "{found:?}");
    }

    /// A folder with links that lead inside and outside of it, and what a walk of it finds.
    #[cfg(unix)]
    #[test]
    fn s11_a_symlink_that_leaves_the_folder_is_skipped_and_counted() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        for name in ["secret.txt", "deep/secret.txt"] {
            fs::create_dir_all(outside.path().join(name).parent().unwrap()).unwrap();
            fs::write(outside.path().join(name), "secret").unwrap();
        }
        symlink(outside.path().join("secret.txt"), place.path().join("notes.txt")).unwrap();
        symlink(outside.path(), place.path().join("inner/up")).unwrap();
        // A link to a link that leaves, and one that leaves and comes back.
        symlink("notes.txt", place.path().join("again.txt")).unwrap();
        let back = Path::new("..").join(place.path().file_name().unwrap()).join("a.txt");
        symlink(back, place.path().join("back.txt")).unwrap();
        let named = outside.path().join("named");
        symlink(place.path(), &named).unwrap();
        let rules = Rules::new(&[], 1 << 20);
        let walk = |path: PathBuf, options| files(path.to_str().unwrap(), options, &rules, &cancel).unwrap();
        // The folder itself may be named by a link.
        for folder in [place.path().to_owned(), named] {
            let found = walk(folder.clone(), ALL);
            let names: Vec<_> = found.files.iter().map(|file| file.path.strip_prefix(&folder).unwrap()).collect();
            assert_eq!(names, ["a.txt", "b.txt", "back.txt", "inner/c.txt"].map(Path::new), "{found:?}");
            assert_eq!((found.skipped.leaving(), found.failed.len()), (3, 0), "{found:?}");
        }
        let found = walk(place.path().join("**/*.txt"), ALL);
        assert_eq!((found.files.len(), found.skipped.leaving()), (4, 3), "{found:?}");
        let found = walk(place.path().to_owned(), Options { follow_links: true, ..ALL });
        assert_eq!((found.files.len(), found.skipped.leaving()), (8, 0), "{found:?}");
        // Who names a link has named what it leads to.
        let found = walk(place.path().join("notes.txt"), ALL);
        assert_eq!(found.files, [FoundFile { path: place.path().join("notes.txt"), within: None }]);
    }

    /// A folder with hidden files, and visible links to them.
    #[cfg(unix)]
    #[test]
    fn s11_a_visible_symlink_to_a_hidden_file_is_skipped_and_counted() {
        use std::os::unix::fs::symlink;
        let (place, cancel) = (place(), CancellationToken::new());
        fs::create_dir_all(place.path().join(".ssh/deep")).unwrap();
        for name in [".env", ".ssh/id_ed25519", ".ssh/deep/notes.txt"] {
            fs::write(place.path().join(name), "secret").unwrap();
        }
        symlink("../.env", place.path().join("inner/env.txt")).unwrap();
        symlink("../.ssh/id_ed25519", place.path().join("inner/notes.md")).unwrap();
        symlink("../.ssh/deep", place.path().join("inner/more")).unwrap();
        // A link to a link, and one by way of a hidden folder to a file that is not hidden.
        symlink("inner/env.txt", place.path().join("again.txt")).unwrap();
        symlink(".ssh/../a.txt", place.path().join("shown.txt")).unwrap();
        let rules = Rules::new(&[], 1 << 20);
        let walk = |path: PathBuf, options| files(path.to_str().unwrap(), options, &rules, &cancel).unwrap();
        let found = walk(place.path().to_owned(), ALL);
        let names: Vec<_> = found.files.iter().map(|file| file.path.strip_prefix(place.path()).unwrap()).collect();
        assert_eq!(names, ["a.txt", "b.txt", "inner/c.txt", "shown.txt"].map(Path::new), "{found:?}");
        assert_eq!((found.skipped.leaving(), found.failed.len()), (4, 0), "{found:?}");
        let found = walk(place.path().join("**/*.txt"), ALL);
        assert_eq!((found.files.len(), found.skipped.leaving()), (4, 3), "{found:?}");
        let found = walk(place.path().to_owned(), Options { follow_links: true, ..ALL });
        assert_eq!((found.files.len(), found.skipped.leaving()), (8, 0), "{found:?}");
        // The folder that was named may itself be hidden.
        let found = walk(place.path().join(".ssh"), ALL);
        assert_eq!((found.files.len(), found.skipped.leaving()), (1, 0), "{found:?}");
    }

    #[cfg(unix)]
    #[test]
    fn s11_a_file_that_became_a_symlink_to_a_hidden_file_after_the_walk_is_not_read() {
        use std::os::unix::fs::symlink;
        let (place, cancel) = (place(), CancellationToken::new());
        fs::create_dir(place.path().join(".private")).unwrap();
        for name in [".env", ".private/c.txt"] {
            fs::write(place.path().join(name), "secret").unwrap();
        }
        let rules = Rules::new(&[], 1 << 20);
        let found = files(place.path().to_str().unwrap(), ALL, &rules, &cancel).unwrap();
        fs::remove_file(place.path().join("a.txt")).unwrap();
        symlink(".env", place.path().join("a.txt")).unwrap();
        fs::rename(place.path().join("inner"), place.path().join("before")).unwrap();
        symlink(".private", place.path().join("inner")).unwrap();
        for name in ["a.txt", "inner/c.txt"] {
            let file = found.files.iter().find(|file| file.path.ends_with(name)).unwrap();
            let refused = rules.clone().within(file.within.as_deref()).read(&file.path).unwrap_err();
            assert_eq!(refused.code(), "file_not_readable", "{refused}");
            assert!(refused.to_string().contains("leads to a hidden file"), "{refused}");
        }
    }

    /// Between the walk and the moment a file is read, others may put links in the place of files and folders.
    #[cfg(unix)]
    #[test]
    fn s11_a_file_that_became_a_symlink_after_the_walk_is_not_read() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        for name in ["a.txt", "c.txt"] {
            fs::write(outside.path().join(name), "secret").unwrap();
        }
        let rules = Rules::new(&[], 1 << 20);
        let found = files(place.path().to_str().unwrap(), ALL, &rules, &cancel).unwrap();
        let read = |name: &str| {
            let file = found.files.iter().find(|file| file.path.ends_with(name)).unwrap();
            rules.clone().within(file.within.as_deref()).read(&file.path)
        };
        for name in ["a.txt", "inner/c.txt"] {
            assert_eq!(read(name).unwrap().bytes, name.as_bytes());
        }
        fs::remove_file(place.path().join("a.txt")).unwrap();
        symlink(outside.path().join("a.txt"), place.path().join("a.txt")).unwrap();
        fs::rename(place.path().join("inner"), place.path().join("before")).unwrap();
        symlink(outside.path(), place.path().join("inner")).unwrap();
        for name in ["a.txt", "inner/c.txt"] {
            let refused = read(name).unwrap_err();
            assert_eq!(refused.code(), "file_not_readable", "{refused}");
            assert!(refused.to_string().contains("leaves the folder"), "{refused}");
        }
    }
}
