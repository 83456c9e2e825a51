//! Snippet of a passage around the query terms, with the terms highlighted.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use crate::cli::sanitize_line;
use crate::cli::sanitized_stdout::{BOLD, RESET};
use crate::cli::terminal::{self, width};

/// Style of a snippet.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct SnippetStyle {
    pub(in crate::cli) bold: bool,
    /// Spaces before each line.
    pub(in crate::cli) indent: usize,
    /// Maximum columns of a line, including the indentation.
    pub(in crate::cli) columns: usize,
}

/// Length of a snippet, in characters.
const MAX_CHARS: usize = 320;
/// Characters before the first term.
const MAX_LEAD_CHARS: usize = 60;
/// Maximum columns of a line; longer lines are hard to read.
const MAX_COLUMNS: usize = 96;
/// Between a block without a full stop, such as a heading, and the next block.
const BLOCK_SEPARATOR: &str = " · ";

/// An occurrence of a query term, and the index of the term.
struct Mark {
    at: Range<usize>,
    word: usize,
}

impl SnippetStyle {
    /// A style for stdout, fitted to its terminal.
    pub(in crate::cli) fn new(bold: bool, indent: usize) -> SnippetStyle {
        let columns = terminal::stdout_columns().map_or(MAX_COLUMNS, |columns| columns.min(MAX_COLUMNS));
        SnippetStyle { bold, indent, columns }
    }

    /// The same for output that the caller indents further.
    pub(in crate::cli) fn within(self, indent: usize) -> SnippetStyle {
        SnippetStyle { columns: self.columns.saturating_sub(indent), ..self }
    }
}

/// The text of a passage on one line. Headings at its beginning are omitted, because the line above a snippet has them;
/// other headings are separated from the text that follows.
pub(in crate::cli) fn passage_text(passage: &Value) -> String {
    let one_line = |text: &str| sanitize_line(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let headings = passage["metadata"]["headings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let headings: Vec<String> = headings.iter().filter_map(Value::as_str).map(one_line).collect();
    let text = passage["chunk_text"].as_str().unwrap_or_default();
    let blocks: Vec<String> = text.split("\n\n").map(one_line).filter(|block| !block.is_empty()).collect();
    let first = blocks.iter().position(|block| !headings.contains(block)).unwrap_or_default();
    let mut joined = String::new();
    for block in &blocks[first..] {
        if !joined.is_empty() {
            joined +=
                if joined.ends_with(['.', '!', '?', ':', ';', ',', '…', '。']) { " " } else { BLOCK_SEPARATOR };
        }
        joined += block;
    }
    joined
}

/// The lines to print. The passage is untrusted and is sanitized.
pub(in crate::cli) fn snippet(passage: &str, query: &str, style: SnippetStyle) -> Vec<String> {
    let passage = sanitize_line(passage).split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = marks(&passage, &words(query));
    let shown = window(&passage, &marks);
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    // Room for the ellipsis at the start or the end of a line.
    let columns = style.columns.saturating_sub(style.indent + 2).max(1);
    for word in space_separated(&passage, shown.clone()) {
        let length = width(&passage[word.clone()]);
        if used > 0 && used + 1 + length > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        // A word that is longer than a line, such as a sentence without spaces.
        let mut rest = word;
        while width(&passage[rest.clone()]) > columns {
            let end = rest.start + terminal::break_position(&passage[rest.clone()], columns);
            lines.push(highlight(&passage, rest.start..end, &marks, style.bold));
            rest.start = end;
        }
        used += width(&passage[rest.clone()]);
        line += &highlight(&passage, rest, &marks, style.bold);
    }
    lines.push(line);
    if let (true, Some(first)) = (shown.start > 0, lines.first_mut()) {
        first.insert_str(0, "… ");
    }
    if let (true, Some(last)) = (shown.end < passage.len(), lines.last_mut()) {
        last.push_str(" …");
    }
    let indent = " ".repeat(style.indent);
    lines.iter().map(|line| format!("{indent}{line}")).collect()
}

/// The query terms to highlight. Very short ones are excluded, because they occur everywhere.
fn words(query: &str) -> Vec<String> {
    let all: Vec<String> =
        word_ranges(query).map(|at| query[at].to_lowercase()).collect::<HashSet<_>>().into_iter().collect();
    let matters = |word: &&String| word.chars().count() > 2 || word.contains(|letter: char| letter.is_numeric());
    let long: Vec<String> = all.iter().filter(matters).cloned().collect();
    if long.is_empty() { all } else { long }
}

/// The runs of letters and digits in a text.
fn word_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let start = text.as_ptr() as usize;
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|piece| !piece.is_empty()).map(move |piece| {
        let at = piece.as_ptr() as usize - start;
        at..at + piece.len()
    })
}

fn marks(text: &str, words: &[String]) -> Vec<Mark> {
    let find = |at: Range<usize>| {
        let found = text[at.clone()].to_lowercase();
        let word = words.iter().position(|word| is_same_stem(word, &found))?;
        Some(Mark { at, word })
    };
    word_ranges(text).filter_map(find).collect()
}

/// Whether two words are the same or inflections, such as `invoice` and `invoices`.
fn is_same_stem(one: &str, other: &str) -> bool {
    const STEM: usize = 4;
    const ENDING: usize = 3;
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    one == other
        || (short.chars().count() >= STEM
            && long.strip_prefix(short).is_some_and(|ending| ending.chars().count() <= ENDING))
}

/// The range with the most distinct terms, aligned to word boundaries.
fn window(text: &str, marks: &[Mark]) -> Range<usize> {
    let ahead = |from: usize, count: usize| {
        text[from..].char_indices().nth(count).map_or(text.len(), |(length, _)| from + length)
    };
    let distinct = |from: &Mark| {
        let end = ahead(from.at.start, MAX_CHARS - MAX_LEAD_CHARS);
        let within = marks.iter().filter(|mark| mark.at.start >= from.at.start && mark.at.end <= end);
        within.map(|mark| mark.word).collect::<HashSet<_>>().len()
    };
    // Reversed, because `max_by_key` returns the last maximum, and the first occurrence is wanted.
    let best = marks.iter().rev().max_by_key(|mark| distinct(mark)).map_or(0, |mark| mark.at.start);
    let start = text[..best].char_indices().rev().nth(MAX_LEAD_CHARS - 1).map_or(0, |(at, _)| at);
    let start = match start {
        0 => 0,
        // A word that is cut off at the start is skipped, unless the window would be empty.
        cut => text[cut..best].find(' ').map_or(best, |space| cut + space + 1),
    };
    let end = ahead(start, MAX_CHARS);
    let end = match end == text.len() {
        true => end,
        false => text[start..end].rfind(' ').map_or(end, |space| start + space),
    };
    start..end
}

/// The words between spaces.
fn space_separated(text: &str, shown: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let (start, shown) = (text.as_ptr() as usize, &text[shown]);
    shown.split(' ').filter(|word| !word.is_empty()).map(move |word| {
        let at = word.as_ptr() as usize - start;
        at..at + word.len()
    })
}

fn highlight(text: &str, word: Range<usize>, marks: &[Mark], bold: bool) -> String {
    let mut out = String::new();
    let mut at = word.start;
    for mark in marks.iter().filter(|mark| bold && mark.at.start >= word.start && mark.at.end <= word.end) {
        out += &format!("{}{BOLD}{}{RESET}", &text[at..mark.at.start], &text[mark.at.clone()]);
        at = mark.at.end;
    }
    out + &text[at..word.end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(passage: &str, query: &str, bold: bool) -> String {
        snippet(passage, query, SnippetStyle { bold, indent: 0, columns: MAX_COLUMNS }).join("\n")
    }

    #[test]
    fn query_terms_are_highlighted_in_all_inflections() {
        let marked = shown("The invoices of May, (Invoice 7).", "the invoice of may 7", true);
        let bold = |word: &str| format!("{BOLD}{word}{RESET}");
        let expected =
            format!("{} {} of {}, ({} {}).", bold("The"), bold("invoices"), bold("May"), bold("Invoice"), bold("7"));
        assert_eq!(marked, expected);
        assert_eq!(shown("an invoice", "invoice", false), "an invoice", "without colours nothing is added");
    }

    #[test]
    fn window_has_the_most_query_terms() {
        let filler = "lorem ipsum dolor ".repeat(40);
        let passage = format!("apple {filler} apple and pear together {filler}");
        let shown = shown(&passage, "pear apple", false);
        assert!(shown.contains("apple and pear together"), "{shown}");
        assert!(shown.starts_with("… ") && shown.ends_with(" …"), "{shown}");
        assert!(shown.chars().count() < MAX_CHARS + 10);
    }

    #[test]
    fn any_text_gives_a_sanitized_snippet() {
        assert_eq!(shown("", "query", true), "");
        assert_eq!(shown("no such word", "", true), "no such word");
        assert_eq!(shown("a\u{1b}[2Jb\r\n\tc", "zzz", true), "a [2Jb c");
        let long = "ü".repeat(2000);
        assert!(shown(&long, "ü", true).contains('ü'));
        let shown = shown(&format!("{} needle {}", "é ".repeat(500), "日本 ".repeat(500)), "needle", false);
        assert!(shown.contains("needle"), "{shown}");
        assert!(shown.lines().all(|line| width(line) <= MAX_COLUMNS), "{shown}");
    }

    #[test]
    fn lines_fit_the_terminal_by_display_width() {
        for columns in [20, 40, 80] {
            for text in ["日本語の文章には空白がありません。".repeat(20), "one two three four five six ".repeat(40)]
            {
                let style = SnippetStyle { bold: false, indent: 3, columns };
                let lines = snippet(&text, "four", style);
                assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:?}");
            }
        }
    }

    #[test]
    fn headings_are_separated_from_the_text() {
        let passage = |text: &str| json!({ "chunk_text": text, "metadata": { "headings": ["Handbook", "Holidays"] } });
        let shown = |text: &str| passage_text(&passage(text));
        assert_eq!(shown("Holidays\n\nNew colleagues get\n30 days."), "New colleagues get 30 days.");
        assert_eq!(shown("30 days.\n\nSick leave\n\nCall us."), "30 days. Sick leave · Call us.");
        assert_eq!(shown("Handbook\n\nHolidays"), "Handbook · Holidays", "a passage of headings alone is shown");
        assert_eq!(shown(""), "");
    }
}
