//! Summary of an import in one line.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{counted, number};
use crate::cli::sanitize_line;
use crate::knowledge::{LEAVING, NAMED_LINKS};

/// File counts over all tasks of a command.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ImportSummary {
    files: u64,
    added: u64,
    updated: u64,
    unchanged: u64,
    pub(super) failed: u64,
    skipped: u64,
    /// Number of skipped files by kind, such as `.py`.
    kinds: BTreeMap<String, u64>,
}

/// Text for a kind of `skipped_by_kind`.
fn describe(kind: &str) -> &str {
    match kind {
        LEAVING => "symbolic links out of the folder",
        NAMED_LINKS => "symbolic links",
        "no_extension" => "without an extension",
        "other" => "of other types",
        kind => kind,
    }
}

/// Maximum number of kinds in the summary; `--json` has all.
const MAX_KINDS: usize = 5;

impl ImportSummary {
    /// The counts of one task.
    pub(super) fn of(result: &Value) -> ImportSummary {
        let mut tally = ImportSummary::default();
        tally.add(result);
        tally
    }

    pub(super) fn add(&mut self, result: &Value) {
        self.files += number(result, "files_total");
        self.added += number(result, "added");
        self.updated += number(result, "updated");
        self.unchanged += number(result, "unchanged");
        self.failed += number(result, "failed");
        self.skipped += number(result, "skipped");
        for (kind, count) in result["skipped_by_kind"].as_object().into_iter().flatten() {
            *self.kinds.entry(sanitize_line(kind)).or_default() += count.as_u64().unwrap_or_default();
        }
    }

    pub(super) fn summary(&self) -> String {
        let ImportSummary { files, added, updated, unchanged, failed, .. } = *self;
        let skipped = self.skipped().map(|skipped| format!("; {skipped}")).unwrap_or_default();
        if files == 0 {
            return format!("No files with a supported format{skipped}");
        }
        let parts = [(added, "added"), (updated, "updated"), (unchanged, "unchanged"), (failed, "failed")];
        let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        format!("{}: {}{skipped}", counted(files, "file"), parts.collect::<Vec<_>>().join(", "))
    }

    /// Whether symbolic links were skipped.
    pub(super) fn skipped_links(&self) -> bool {
        [LEAVING, NAMED_LINKS].iter().any(|kind| self.kinds.contains_key(*kind))
    }

    /// The skipped kinds, most frequent first.
    fn skipped(&self) -> Option<String> {
        let mut kinds: Vec<(&String, u64)> = self.kinds.iter().map(|(kind, count)| (kind, *count)).collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others: u64 = kinds.iter().skip(MAX_KINDS).map(|(_, count)| count).sum();
        let mut named: Vec<String> =
            kinds.iter().take(MAX_KINDS).map(|(kind, count)| format!("{count} {}", describe(kind))).collect();
        if others > 0 {
            named.push(format!("{others} others"));
        }
        (self.skipped > 0).then(|| format!("{} skipped: {}", self.skipped, named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn summary_omits_zero_counts() {
        let mut tally = ImportSummary::default();
        assert_eq!(tally.summary(), "No files with a supported format");
        tally.add(&json!({ "files_total": 3, "added": 2, "failed": 1 }));
        assert_eq!(tally.summary(), "3 files: 2 added, 1 failed");
        tally.add(&json!({ "files_total": 1, "unchanged": 1 }));
        assert_eq!(tally.summary(), "4 files: 2 added, 1 unchanged, 1 failed");
    }

    #[test]
    fn skipped_files_are_counted_by_kind() {
        let mut tally = ImportSummary::default();
        tally.add(&json!({ "skipped": 12, "skipped_by_kind": { "no_extension": 2, ".py": 10 } }));
        let skipped = "; 12 skipped: 10 .py, 2 without an extension";
        assert_eq!(tally.summary(), format!("No files with a supported format{skipped}"));
        tally.add(&json!({
            "files_total": 1, "added": 1, "skipped": 5,
            "skipped_by_kind": { ".a": 1, ".b": 1, ".c": 1, ".d": 1, ".e": 1 },
        }));
        let skipped = "17 skipped: 10 .py, 2 without an extension, 1 .a, 1 .b, 1 .c, 2 others";
        assert_eq!(tally.summary(), format!("1 file: 1 added; {skipped}"));
    }
}
