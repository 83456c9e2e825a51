//! Expands folders and glob patterns to files (K-43).
//!
//! A symbolic link is followed only if its target is inside the named folder and not hidden (S-11): the author of a
//! repository or an archive must not select other files of the user who imports it. A named path that is itself a link is
//! skipped; the folders above it may be links. The canonical path of a named path is determined once, and whatever is
//! opened later must have it: a link that takes its place in between is not followed either. Each folder is entered once, so link cycles end, and links are followed after
//! all real folders, so a link does not hide the name of its target from a pattern. Hidden files and files of other formats
//! are skipped. The numbers of files and of directory entries are bounded, and cancelling an import ends the walk.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::open_nofollow::{self, EntryKind};
use super::path_policy::{NAMED_LINK, PathPolicy, canonical_name, format_of, is_visible_in};
use super::skipped_files::SkippedFiles;

/// Limits of one call.
#[derive(Debug, Clone, Copy)]
struct DiscoveryLimits {
    files: usize,
    /// Maximum number of directory entries that are read, wanted or not.
    entries: usize,
    /// Maximum nesting depth of folders.
    depth: usize,
}

const DISCOVERY_LIMITS: DiscoveryLimits = DiscoveryLimits { files: 100_000, entries: 1_000_000, depth: 64 };

/// Characters of a glob pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];

/// Options of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    pub recursive: bool,
    /// Also follow links that leave the named folder.
    pub follow_links: bool,
}

/// A file to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub path: PathBuf,
    /// Canonical path of the named folder or file, in which the file must still be when it is opened. `None` if all links
    /// are followed.
    pub within: Option<Arc<Path>>,
}

impl AsRef<Path> for FoundFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

/// Result of a walk.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DiscoveredFiles {
    /// Grouped by path argument, sorted by name, without duplicates.
    pub files: Vec<FoundFile>,
    /// Paths that could not be read, with their errors.
    pub failed: Vec<(PathBuf, Error)>,
    /// Skipped files.
    pub skipped: SkippedFiles,
}

/// The files of several paths. An error in one path does not affect the rest.
pub(super) fn discover_all(
    paths: &[String],
    options: Options,
    rules: &PathPolicy,
    cancel: &CancellationToken,
) -> DiscoveredFiles {
    let mut walk = DirectoryWalk::new(rules, options, cancel);
    let mut named = HashSet::new();
    for path in paths.iter().filter(|path| named.insert(path.as_str())) {
        if let Err(error) = walk.add_path(path) {
            walk.found.failed.push((PathBuf::from(path), error));
        }
    }
    let links = std::mem::take(&mut walk.named_links);
    if links.len() == named.len() {
        walk.found.failed.extend(links.into_iter().map(|link| (link.clone(), named_link(&link))));
    } else {
        links.iter().for_each(|_| walk.found.skipped.skip_named_link());
    }
    // Two patterns may match the same file.
    let mut seen = HashSet::new();
    walk.found.files.retain(|file| seen.insert(file.path.clone()));
    walk.found
}

/// The files of one path.
pub(super) fn discover(
    path: &str,
    options: Options,
    rules: &PathPolicy,
    cancel: &CancellationToken,
) -> Result<DiscoveredFiles, Error> {
    let mut walk = DirectoryWalk::new(rules, options, cancel);
    walk.add_path(path)?;
    walk.named_links.pop().map_or(Ok(walk.found), |link| Err(named_link(&link)))
}

fn named_link(path: &Path) -> Error {
    Error::FileNotReadable { path: path.display().to_string(), reason: NAMED_LINK.into() }
}

/// The folder to start in, and the matcher of a pattern.
fn matcher(pattern: &str) -> Result<(PathBuf, GlobMatcher), Error> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    let glob = glob.map_err(|error| Error::invalid("paths", format!("invalid pattern `{pattern}`: {error}")))?;
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(WILDCARDS);
    let base: PathBuf = Path::new(pattern).components().take_while(is_plain).collect();
    let base = if base.as_os_str().is_empty() { PathBuf::from(".") } else { base };
    Ok((base, glob.compile_matcher()))
}

struct DirectoryWalk<'w> {
    path_policy: &'w PathPolicy,
    options: Options,
    cancel: &'w CancellationToken,
    limits: DiscoveryLimits,
    /// Number of directory entries read.
    entries: usize,
    /// Canonical path of the named folder, which links must not leave, or of the named file; `None` if all links are
    /// followed.
    within: Option<Arc<Path>>,
    /// Folders entered for the current path, with links resolved.
    entered: HashSet<PathBuf>,
    /// Links to folders that are followed after the real folders, with their depths.
    links: Vec<(PathBuf, usize)>,
    /// Folders whose skipped files were counted, with links resolved. Two paths may lead to the same folder.
    counted: HashSet<PathBuf>,
    /// Whether any file matches the pattern.
    has_match: bool,
    /// Named paths that are symbolic links and were skipped.
    named_links: Vec<PathBuf>,
    found: DiscoveredFiles,
}

impl<'w> DirectoryWalk<'w> {
    fn new(rules: &'w PathPolicy, options: Options, cancel: &'w CancellationToken) -> DirectoryWalk<'w> {
        DirectoryWalk {
            path_policy: rules,
            options,
            cancel,
            limits: DISCOVERY_LIMITS,
            entries: 0,
            within: None,
            entered: HashSet::new(),
            links: Vec::new(),
            counted: HashSet::new(),
            has_match: false,
            named_links: Vec::new(),
            found: DiscoveredFiles::default(),
        }
    }

    /// Adds the files of a path: a file, all files of a folder, or the matches of a pattern such as `docs/**/*.pdf`.
    /// Adds none if an error occurs.
    fn add_path(&mut self, path: &str) -> Result<(), Error> {
        let before = self.found.files.len();
        self.entered.clear();
        self.links.clear();
        let taken = self.add_matches(path);
        match taken {
            Ok(()) => self.found.files[before..].sort_by(|one, other| one.path.cmp(&other.path)),
            Err(_) => self.found.files.truncate(before),
        }
        taken
    }

    fn add_matches(&mut self, path: &str) -> Result<(), Error> {
        let whole = Path::new(path);
        self.set_named(whole);
        // Checked before any access, so that a caller cannot probe for files outside of the allowed folders.
        match self.path_policy.resolve(whole) {
            Ok(followed) if self.skips_link(whole, &followed) => Ok(()),
            Ok(followed) if followed.is_dir() => self.walk(whole, None),
            Err(_) if path.contains(WILDCARDS) => {
                let (base, matcher) = matcher(path)?;
                self.set_named(&base);
                if self.path_policy.resolve(&base).is_ok_and(|followed| self.skips_link(&base, &followed)) {
                    return Ok(());
                }
                self.has_match = false;
                let recursive = std::mem::replace(&mut self.options.recursive, true);
                let entered = self.walk(&base, Some(&matcher));
                self.options.recursive = recursive;
                entered?;
                // Without an error, a mistyped pattern would look successful.
                if self.has_match { Ok(()) } else { Err(Error::NoFilesMatch(path.to_owned())) }
            }
            // Probably a folder.
            Err(error) if whole.extension().is_none() => Err(error),
            // All other problems of a named file are reported when it is read.
            _ => self.add(whole.to_owned()),
        }
    }

    /// Sets the path that everything below must keep to, without following a link in its place.
    fn set_named(&mut self, path: &Path) {
        self.within = (!self.options.follow_links).then(|| canonical_name(path).into());
    }

    /// Whether a named path leads elsewhere, as a symbolic link that is not followed. Adds it to `named_links`.
    fn skips_link(&mut self, path: &Path, followed: &Path) -> bool {
        let skips = self.is_elsewhere(followed);
        if skips {
            self.named_links.push(path.to_owned());
        }
        skips
    }

    /// Whether a resolved path is not the named one.
    fn is_elsewhere(&self, followed: &Path) -> bool {
        self.within.as_ref().is_some_and(|named| **named != *followed)
    }

    /// Enters a folder, and then the folders that links in it lead to.
    fn walk(&mut self, folder: &Path, matcher: Option<&GlobMatcher>) -> Result<(), Error> {
        self.visit(folder, matcher, 0)?;
        while let Some((link, depth)) = self.links.pop() {
            self.visit(&link, matcher, depth)?;
        }
        Ok(())
    }

    fn visit(&mut self, folder: &Path, matcher: Option<&GlobMatcher>, depth: usize) -> Result<(), Error> {
        let mut counts = true;
        let followed = self.path_policy.resolve(folder).and_then(|followed| match depth {
            // A link has taken the place of the named folder.
            0 if self.is_elsewhere(&followed) => Err(named_link(folder)),
            _ => Ok(followed),
        });
        let entries = followed.and_then(|followed| {
            counts = match matcher {
                None => self.counted.insert(followed.clone()),
                Some(_) => !self.counted.contains(&followed),
            };
            if self.leaves(&followed) || !self.entered.insert(followed.clone()) {
                return Ok(None);
            }
            // A link that has replaced the folder is not followed.
            open_nofollow::entries(&followed).map_err(|error| unreadable(folder, &error))
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
            self.check_limits()?;
            let (name, kind) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.found.failed.push((folder.to_owned(), unreadable(folder, &error)));
                    return Ok(());
                }
            };
            let path = folder.join(&name);
            let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
            let is_link = kind == EntryKind::Link;
            let (kind, leaves) = match kind {
                EntryKind::Link => match self.resolve(&path) {
                    Some(resolved) => resolved,
                    // Dangling links are ignored.
                    None => continue,
                },
                kind => (kind, false),
            };
            if name.as_encoded_bytes().starts_with(b".") {
                // With a pattern, unmatched files were excluded deliberately.
                if matcher.is_none() && counts {
                    self.found.skipped.count_hidden();
                }
                continue;
            }
            if leaves {
                let fits = matcher.is_none_or(|matcher| matcher.is_match(&path));
                self.has_match |= fits;
                if counts && (fits || kind == EntryKind::Folder) {
                    self.found.skipped.leave_folder();
                }
            } else if kind == EntryKind::Folder && self.options.recursive {
                if depth >= self.limits.depth {
                    let reason = "it is nested too deeply; import it separately".to_owned();
                    let error = Error::FileNotReadable { path: path.display().to_string(), reason };
                    self.found.failed.push((path, error));
                } else if is_link {
                    self.links.push((path, depth + 1));
                } else {
                    self.visit(&path, matcher, depth + 1)?;
                }
            } else if kind == EntryKind::File && matcher.is_none_or(|matcher| matcher.is_match(&path)) {
                self.has_match = true;
                match format_of(&path) {
                    Ok(_) => self.add(path)?,
                    Err(_) if counts => self.found.skipped.count_unsupported(&path),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Type of a link's target, and whether the target is outside or hidden.
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

    /// Whether a resolved path is outside of the named folder, or hidden in it.
    fn leaves(&self, followed: &Path) -> bool {
        self.within.as_ref().is_some_and(|within| !is_visible_in(followed, within))
    }

    fn add(&mut self, path: PathBuf) -> Result<(), Error> {
        self.found.files.push(FoundFile { path, within: self.within.clone() });
        if self.found.files.len() > self.limits.files {
            let message = format!("it has more than {} files; import its subfolders separately", self.limits.files);
            return Err(Error::invalid("paths", message));
        }
        Ok(())
    }

    /// Counts a directory entry; fails if the limit is exceeded or the walk is cancelled.
    fn check_limits(&mut self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        self.entries += 1;
        if self.entries > self.limits.entries {
            let most = self.limits.entries;
            let message = format!("it has more than {most} entries; import its subfolders separately");
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

    /// A folder with three notes and two other files; one of the notes is in a subfolder.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("inner")).unwrap();
        for name in ["a.txt", "b.txt", "inner/c.txt", "d.bin", "e.bin"] {
            fs::write(place.path().join(name), name).unwrap();
        }
        place
    }

    const ALL: Options = Options { recursive: true, follow_links: false };

    fn walked(place: &Path, most: DiscoveryLimits, cancel: &CancellationToken) -> Result<usize, Error> {
        let rules = PathPolicy::new(&[], 1 << 20);
        let mut walk = DirectoryWalk { limits: most, ..DirectoryWalk::new(&rules, ALL, cancel) };
        walk.add_path(place.to_str().unwrap()).map(|()| walk.found.files.len())
    }

    #[test]
    fn k43_files_and_names_have_a_bound_that_is_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        let walked = |most| walked(place.path(), most, &cancel);
        assert_eq!(walked(DiscoveryLimits { files: 3, entries: 6, ..DISCOVERY_LIMITS }), Ok(3));
        let refused = walked(DiscoveryLimits { entries: 5, ..DISCOVERY_LIMITS }).unwrap_err();
        assert_eq!(refused.code(), "invalid_parameter");
        assert!(refused.to_string().contains("more than 5 entries"), "{refused}");
        let refused = walked(DiscoveryLimits { files: 2, ..DISCOVERY_LIMITS }).unwrap_err();
        assert!(refused.to_string().contains("more than 2 files"), "{refused}");
    }

    #[test]
    fn k93_a_walk_that_nobody_wants_any_more_ends() {
        let (place, cancel) = (place(), CancellationToken::new());
        cancel.cancel();
        assert_eq!(walked(place.path(), DISCOVERY_LIMITS, &cancel), Err(Error::Cancelled));
    }

    #[test]
    fn s11_what_is_outside_is_neither_looked_at_nor_told_to_be_missing() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = PathPolicy::new(&[place.path().join("inner")], 1 << 20);
        for path in ["", "gone", "*.txt", "gone/**/*.txt", "inner/../gone"] {
            let asked = place.path().join(path);
            let refused = discover(asked.to_str().unwrap(), ALL, &rules, &cancel).unwrap_err();
            assert_eq!(refused.code(), "path_not_allowed", "{path}");
        }
        let inside = place.path().join("inner/*.txt");
        assert_eq!(discover(inside.to_str().unwrap(), ALL, &rules, &cancel).unwrap().files.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn k43_folders_that_loop_through_links_are_entered_once_and_deep_ones_are_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        std::os::unix::fs::symlink(place.path(), place.path().join("inner/again")).unwrap();
        std::os::unix::fs::symlink("self", place.path().join("self")).unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let path = place.path().to_str().unwrap().to_owned();
        let found = discover(&path, ALL, &rules, &cancel).unwrap();
        assert_eq!((found.files.len(), found.failed.len()), (3, 0), "{found:?}");
        let mut walk = DirectoryWalk {
            limits: DiscoveryLimits { depth: 0, ..DISCOVERY_LIMITS },
            ..DirectoryWalk::new(&rules, ALL, &cancel)
        };
        walk.add_path(&path).unwrap();
        assert_eq!((walk.found.files.len(), walk.found.failed[0].1.code()), (2, "file_not_readable"));
    }

    #[cfg(unix)]
    #[test]
    fn s11_a_link_to_a_folder_beside_it_hides_no_file_from_a_pattern() {
        let (place, cancel) = (place(), CancellationToken::new());
        for link in ["1", "aa", "inmost", "zz"] {
            std::os::unix::fs::symlink("inner", place.path().join(link)).unwrap();
        }
        let rules = PathPolicy::new(&[], 1 << 20);
        for (pattern, count) in [("in*/*.txt", 1), ("{a.txt,inner/*.txt}", 2), ("**/*.txt", 3)] {
            let pattern = place.path().join(pattern);
            let found = discover(pattern.to_str().unwrap(), ALL, &rules, &cancel).unwrap();
            assert_eq!(found.files.len(), count, "{pattern:?}: {found:?}");
        }
    }

    #[test]
    fn k43_a_path_that_fails_leaves_nothing_and_the_others_go_on() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = PathPolicy::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let found = discover_all(&[path("gone"), path("*.txt"), path("a.txt")], ALL, &rules, &cancel);
        let paths: Vec<&Path> = found.files.iter().map(AsRef::as_ref).collect();
        assert_eq!(paths, [place.path().join("a.txt"), place.path().join("b.txt")]);
        assert_eq!(found.failed.len(), 1);
    }

    #[test]
    fn k43_a_pattern_that_no_file_fits_is_told() {
        let (place, cancel) = (place(), CancellationToken::new());
        let rules = PathPolicy::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let found = discover_all(&[path("*.nope"), path("*.txt"), path("*.bin")], ALL, &rules, &cancel);
        let (pattern, error) = &found.failed[0];
        assert_eq!((pattern, error.code()), (&place.path().join("*.nope"), "file_not_found"));
        assert!(error.to_string().starts_with(&format!("No files match: {}", pattern.display())), "{error}");
        // Files of another format match the pattern, and are counted as skipped.
        assert_eq!((found.failed.len(), found.files.len(), found.skipped.total()), (1, 2, 2));
    }

    #[test]
    fn k43_what_a_folder_has_that_is_no_document_is_counted_once() {
        let (place, cancel) = (place(), CancellationToken::new());
        fs::write(place.path().join("inner/.hidden"), "").unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let paths = [path(""), path("inner/.."), path("inner"), path("*.bin"), path("")];
        let found = discover_all(&paths, ALL, &rules, &cancel);
        assert_eq!((found.skipped.total(), found.failed.len()), (3, 0), "{found:?}");
    }

    /// A folder with links to targets inside and outside of it.
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
        // A link to a link that leaves the folder, and a link that leaves and returns.
        symlink("notes.txt", place.path().join("again.txt")).unwrap();
        let back = Path::new("..").join(place.path().file_name().unwrap()).join("a.txt");
        symlink(back, place.path().join("back.txt")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let above = elsewhere.path().join("above");
        symlink(place.path().parent().unwrap(), &above).unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let walk = |path: PathBuf, options| discover(path.to_str().unwrap(), options, &rules, &cancel).unwrap();
        // The folders above may be links.
        for folder in [place.path().to_owned(), above.join(place.path().file_name().unwrap())] {
            let found = walk(folder.clone(), ALL);
            let names: Vec<_> = found.files.iter().map(|file| file.path.strip_prefix(&folder).unwrap()).collect();
            assert_eq!(names, ["a.txt", "b.txt", "back.txt", "inner/c.txt"].map(Path::new), "{found:?}");
            assert_eq!((found.skipped.leaving(), found.failed.len()), (3, 0), "{found:?}");
        }
        let found = walk(place.path().join("**/*.txt"), ALL);
        assert_eq!((found.files.len(), found.skipped.leaving()), (4, 3), "{found:?}");
        let found = walk(place.path().to_owned(), Options { follow_links: true, ..ALL });
        assert_eq!((found.files.len(), found.skipped.leaving()), (8, 0), "{found:?}");
    }

    #[cfg(unix)]
    #[test]
    fn s11_a_symlink_that_is_named_is_skipped_unless_links_are_followed() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        symlink(outside.path(), place.path().join("docs")).unwrap();
        symlink(outside.path().join("secret.txt"), place.path().join("notes.txt")).unwrap();
        symlink("a.txt", place.path().join("again.txt")).unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        let follow = Options { follow_links: true, ..ALL };
        for name in ["docs", "docs/", "docs/.", "notes.txt", "again.txt", "docs/*.txt"] {
            let refused = discover(&path(name), ALL, &rules, &cancel).unwrap_err();
            assert_eq!(refused.code(), "file_not_readable", "{name}");
            for part in ["symbolic link", "--follow-links"] {
                assert!(refused.to_string().contains(part), "{name}: {refused}");
            }
            let only = discover_all(&[path(name)], ALL, &rules, &cancel);
            assert_eq!((only.files.len(), only.failed.len(), only.skipped.total()), (0, 1, 0), "{name}: {only:?}");
            let with_file = discover_all(&[path(name), path("b.txt")], ALL, &rules, &cancel);
            let counts = (with_file.files.len(), with_file.failed.len(), with_file.skipped.by_kind());
            assert_eq!(counts, (1, 0, serde_json::json!({ "symbolic_links": 1 })), "{name}: {with_file:?}");
            let found = discover(&path(name), follow, &rules, &cancel).unwrap();
            assert_eq!(found.files.len(), 1, "{name}: {found:?}");
        }
        // Only the last component counts.
        assert_eq!(discover(&path("docs/secret.txt"), ALL, &rules, &cancel).unwrap().files.len(), 1);
        // A link out of the allowed folders is not revealed.
        let allowed = PathPolicy::new(&[place.path().to_owned()], 1 << 20);
        assert_eq!(discover(&path("docs"), ALL, &allowed, &cancel).unwrap_err().code(), "path_not_allowed");
    }

    /// A link replaces a named file between the walk and the moment the file is read.
    #[cfg(unix)]
    #[test]
    fn s11_a_named_file_that_became_a_symlink_is_not_read() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        fs::write(place.path().join(".hidden.txt"), "hidden").unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let found = |name: &str| {
            let path = place.path().join(name).to_str().unwrap().to_owned();
            discover(&path, ALL, &rules, &cancel).unwrap().files.remove(0)
        };
        let read = |file: &FoundFile| rules.clone().within(file.within.as_deref()).read(&file.path);
        assert_eq!(read(&found(".hidden.txt")).unwrap().bytes, b"hidden");
        let (before, missing) = (found("a.txt"), found("missing.txt"));
        assert_eq!(read(&before).unwrap().bytes, b"a.txt");
        fs::remove_file(place.path().join("a.txt")).unwrap();
        for (file, name) in [(before, "a.txt"), (missing, "missing.txt")] {
            symlink(outside.path().join("secret.txt"), place.path().join(name)).unwrap();
            assert_eq!(read(&file).unwrap_err().code(), "file_not_readable", "{name}");
        }
    }

    /// Between naming and entering a folder, an attacker may exchange it for a link, and back again.
    #[cfg(unix)]
    #[test]
    fn s11_a_named_folder_that_becomes_a_symlink_while_it_is_entered_is_not_followed() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        fs::write(outside.path().join("secret.txt"), "secret").unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let inner = place.path().join("inner");
        let mut walk = DirectoryWalk::new(&rules, ALL, &cancel);
        walk.set_named(&inner);
        fs::rename(&inner, place.path().join("before")).unwrap();
        symlink(outside.path(), &inner).unwrap();
        let refused = walk.walk(&inner, None).unwrap_err();
        assert!(refused.to_string().contains("it is a symbolic link"), "{refused}");
        assert!(walk.found.files.is_empty(), "{:?}", walk.found);
        // What is named while it is a link does not become the folder that counts.
        walk.set_named(&inner);
        assert_eq!(walk.within.as_deref(), Some(&*place.path().canonicalize().unwrap().join("inner")));
        fs::remove_file(&inner).unwrap();
        fs::rename(place.path().join("before"), &inner).unwrap();
        walk.walk(&inner, None).unwrap();
        assert_eq!(walk.found.files.len(), 1);
    }

    /// The attacker exchanges a folder and a link as fast as they can while it is imported.
    #[cfg(target_os = "linux")]
    #[test]
    fn s11_a_named_path_that_is_exchanged_for_a_symlink_again_and_again_leads_nowhere_else() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        for name in ["secret.txt", "a.txt"] {
            fs::write(outside.path().join(name), "secret").unwrap();
        }
        symlink(outside.path(), place.path().join("link")).unwrap();
        symlink(outside.path().join("a.txt"), place.path().join("link.txt")).unwrap();
        let path = |name: &str| place.path().join(name);
        let (rules, ended) = (PathPolicy::new(&[], 1 << 20), AtomicBool::new(false));
        let secrets = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    for (name, link) in [("inner", "link"), ("a.txt", "link.txt")] {
                        renameat_with(CWD, path(name), CWD, path(link), RenameFlags::EXCHANGE).unwrap();
                    }
                }
            });
            let mut secrets = Vec::new();
            for _ in 0..3000 {
                for name in ["inner", "a.txt"] {
                    let found = discover(path(name).to_str().unwrap(), ALL, &rules, &cancel).unwrap_or_default();
                    for file in found.files {
                        let read = rules.clone().within(file.within.as_deref()).read(&file.path);
                        secrets.extend(read.into_iter().filter(|read| read.bytes == b"secret"));
                    }
                }
            }
            ended.store(true, Ordering::Relaxed);
            secrets
        });
        assert!(secrets.is_empty(), "{secrets:?}");
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
        // A link to a link, and a link through a hidden folder to a file that is not hidden.
        symlink("inner/env.txt", place.path().join("again.txt")).unwrap();
        symlink(".ssh/../a.txt", place.path().join("shown.txt")).unwrap();
        let rules = PathPolicy::new(&[], 1 << 20);
        let walk = |path: PathBuf, options| discover(path.to_str().unwrap(), options, &rules, &cancel).unwrap();
        let found = walk(place.path().to_owned(), ALL);
        let names: Vec<_> = found.files.iter().map(|file| file.path.strip_prefix(place.path()).unwrap()).collect();
        assert_eq!(names, ["a.txt", "b.txt", "inner/c.txt", "shown.txt"].map(Path::new), "{found:?}");
        assert_eq!((found.skipped.leaving(), found.failed.len()), (4, 0), "{found:?}");
        let found = walk(place.path().join("**/*.txt"), ALL);
        assert_eq!((found.files.len(), found.skipped.leaving()), (4, 3), "{found:?}");
        let found = walk(place.path().to_owned(), Options { follow_links: true, ..ALL });
        assert_eq!((found.files.len(), found.skipped.leaving()), (8, 0), "{found:?}");
        // The named folder may itself be hidden.
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
        let rules = PathPolicy::new(&[], 1 << 20);
        let found = discover(place.path().to_str().unwrap(), ALL, &rules, &cancel).unwrap();
        fs::remove_file(place.path().join("a.txt")).unwrap();
        symlink(".env", place.path().join("a.txt")).unwrap();
        fs::rename(place.path().join("inner"), place.path().join("before")).unwrap();
        symlink(".private", place.path().join("inner")).unwrap();
        for name in ["a.txt", "inner/c.txt"] {
            let file = found.files.iter().find(|file| file.path.ends_with(name)).unwrap();
            let refused = rules.clone().within(file.within.as_deref()).read(&file.path).unwrap_err();
            assert_eq!(refused.code(), "file_not_readable", "{refused}");
            assert!(refused.to_string().contains("to a hidden file"), "{refused}");
        }
    }

    /// Between the walk and reading a file, an attacker may replace files and folders with links.
    #[cfg(unix)]
    #[test]
    fn s11_a_file_that_became_a_symlink_after_the_walk_is_not_read() {
        use std::os::unix::fs::symlink;
        let (place, outside, cancel) = (place(), tempfile::tempdir().unwrap(), CancellationToken::new());
        for name in ["a.txt", "c.txt"] {
            fs::write(outside.path().join(name), "secret").unwrap();
        }
        let rules = PathPolicy::new(&[], 1 << 20);
        let found = discover(place.path().to_str().unwrap(), ALL, &rules, &cancel).unwrap();
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
            assert!(refused.to_string().contains("outside of the folder"), "{refused}");
        }
    }
}
