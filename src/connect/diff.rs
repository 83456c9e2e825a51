//! Unified diff of a file change.

use similar::TextDiff;

/// Number of context lines.
const CONTEXT_LINES: usize = 3;
/// Maximum line length. Some programs write JSON without line breaks.
const MAX_LINE_CHARS: usize = 400;

/// A unified diff; empty if both texts are equal.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let lines = TextDiff::from_lines(before, after);
    let whole = lines.unified_diff().context_radius(CONTEXT_LINES).header(name, name).to_string();
    whole.split_inclusive('\n').map(truncate_line).collect()
}

fn truncate_line(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…\n", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let shown = unified("file", "a\nb\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n");
        assert_eq!(shown, "--- file\n+++ file\n@@ -3,3 +3,4 @@\n c\n d\n e\n+f\n");
        assert_eq!(unified("file", "a", "a"), "");
    }

    #[test]
    fn a_line_that_fills_screens_is_cut() {
        let shown = unified("file", "", &"ü".repeat(100_000));
        assert!(shown.chars().count() < 600, "{shown}");
        assert!(shown.contains('…'), "{shown}");
    }
}
