//! Counters for skipped files by extension.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

/// Number of files per kind, such as `.py`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct SkippedFiles(BTreeMap<String, u64>);

const HIDDEN: &str = "hidden";
/// Symbolic links that lead outside the named folder, or to hidden files in it.
pub const LEAVING: &str = "links_outside_folder";
/// Named paths that are symbolic links.
pub const NAMED_LINKS: &str = "symbolic_links";
const NO_EXTENSION: &str = "no_extension";
/// Unusual extensions, and extensions beyond the limit.
const OTHER_KINDS: &str = "other";
/// Maximum length of an extension.
const MAX_EXTENSION_CHARS: usize = 12;
/// Maximum number of distinct kinds.
const MAX_KINDS: usize = 100;

impl SkippedFiles {
    /// Counts a file or folder whose name begins with a dot.
    pub(super) fn count_hidden(&mut self) {
        self.increment(HIDDEN.to_owned());
    }

    /// Counts a link that leads outside the named folder, or to a hidden file or folder in it.
    pub(super) fn leave_folder(&mut self) {
        self.increment(LEAVING.to_owned());
    }

    /// Counts a named path that is a symbolic link.
    pub(super) fn skip_named_link(&mut self) {
        self.increment(NAMED_LINKS.to_owned());
    }

    /// Number of links that lead outside.
    pub(super) fn leaving(&self) -> u64 {
        self.0.get(LEAVING).copied().unwrap_or_default()
    }

    /// Counts a file of an unsupported format.
    pub(super) fn count_unsupported(&mut self, path: &Path) {
        let kind = match path.extension().map(|extension| extension.to_string_lossy().to_lowercase()) {
            None => NO_EXTENSION.to_owned(),
            Some(extension) if extension.is_empty() => NO_EXTENSION.to_owned(),
            Some(extension) if extension.chars().count() > MAX_EXTENSION_CHARS => OTHER_KINDS.to_owned(),
            Some(extension) if extension.contains(char::is_control) => OTHER_KINDS.to_owned(),
            Some(extension) => format!(".{extension}"),
        };
        self.increment(kind);
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    pub(super) fn by_kind(&self) -> Value {
        json!(self.0)
    }

    fn increment(&mut self, kind: String) {
        let kind = if self.0.len() < MAX_KINDS || self.0.contains_key(&kind) { kind } else { OTHER_KINDS.to_owned() };
        *self.0.entry(kind).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_their_kind_up_to_a_bound() {
        let mut skipped = SkippedFiles::default();
        for name in ["a.py", "B.PY", "Makefile", "odd.", "x.this is no extension", "x.\u{1b}"] {
            skipped.count_unsupported(Path::new(name));
        }
        skipped.count_hidden();
        let expected = json!({ ".py": 2, "hidden": 1, "other": 2, "no_extension": 2 });
        assert_eq!((skipped.total(), skipped.by_kind()), (7, expected));
        let mut many = SkippedFiles::default();
        (0..500).for_each(|number| many.count_unsupported(Path::new(&format!("a.{number}"))));
        assert!(many.0.len() <= MAX_KINDS + 1 && many.total() == 500, "{many:?}");
    }
}
