//! Terminal width, display width of text, and wrapping and truncating by display width.

use std::io::{self, IsTerminal, Write};

/// Width of a terminal that does not report one.
const DEFAULT_COLUMNS: usize = 80;

/// Columns of the terminal behind stdout; `None` if stdout is not a terminal.
pub(super) fn stdout_columns() -> Option<usize> {
    let stdout = io::stdout();
    stdout.is_terminal().then(|| reported_columns(&stdout).unwrap_or(DEFAULT_COLUMNS))
}

/// Columns of the terminal behind stderr.
pub(super) fn stderr_columns() -> usize {
    reported_columns(&io::stderr()).unwrap_or(DEFAULT_COLUMNS)
}

/// Asked each time, because the user may resize the window.
#[cfg(unix)]
fn reported_columns(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

#[cfg(not(unix))]
fn reported_columns<T>(_: &T) -> Option<usize> {
    None
}

/// Number of columns that a text occupies.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The beginning of a text, with `…` if it is longer than `columns`.
pub(super) fn truncate_end(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (kept, _) = text.split_at(fitting_prefix(text, columns.saturating_sub(1)));
    if columns == 0 { String::new() } else { format!("{kept}…") }
}

/// The end of a text, after `…` if it is longer than `columns`.
pub(super) fn truncate_start(text: &str, columns: usize) -> String {
    let whole = width(text);
    if whole <= columns {
        return text.to_owned();
    }
    let (mut left, mut start) = (whole, 0);
    for (at, letter) in text.char_indices() {
        // Combining characters stay with their base character.
        if left < columns && char_width(letter) > 0 {
            break;
        }
        left -= char_width(letter);
        start = at + letter.len_utf8();
    }
    if columns == 0 { String::new() } else { format!("…{}", &text[start..]) }
}

/// The lines of a text, broken between words. A longer word is broken after punctuation, such as the `/` of a path, or
/// anywhere.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if used > 0 && used + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        let mut rest = word;
        while width(rest) > columns {
            let (piece, more) = rest.split_at(break_position(rest, columns));
            lines.push(piece.to_owned());
            rest = more;
        }
        line += rest;
        used += width(rest);
    }
    if used > 0 || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Prints a line to stdout; on a terminal, wrapped and with its continuation indented.
pub(super) fn write_wrapped(line: &str, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    let Some(columns) = stdout_columns().filter(|columns| width(line) > *columns) else {
        return writeln!(out, "{line}");
    };
    for (at, line) in wrap(line, columns.saturating_sub(indent)).iter().enumerate() {
        writeln!(out, "{:1$}{line}", "", if at > 0 { indent } else { 0 })?;
    }
    Ok(())
}

/// Where to break a word that is wider than a line: after the last punctuation in the second half of the line, else at
/// its end. At least one character, so that the loop ends.
pub(super) fn break_position(word: &str, columns: usize) -> usize {
    let end = fitting_prefix(word, columns);
    if end == 0 {
        return word.chars().next().map_or(word.len(), char::len_utf8);
    }
    match word[..end].rfind(['/', '\\', '-', '_', '.', ',']) {
        Some(at) if at + 1 > end / 2 => at + 1,
        _ => end,
    }
}

/// Byte length of the longest prefix that fits.
fn fitting_prefix(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        used += char_width(letter);
        if used > columns {
            return at;
        }
    }
    text.len()
}

/// Columns of a character: none for combining characters, two for East Asian wide characters and emoji. A variation
/// selector for emoji counts as one column, because it makes a narrow symbol wide.
fn char_width(letter: char) -> usize {
    match letter {
        '\u{20}'..='\u{2ff}' => 1,
        '\u{fe0f}' => 1,
        _ if is_in(ZERO_WIDTH, letter) || letter.is_control() => 0,
        _ if is_in(WIDE, letter) => 2,
        _ => 1,
    }
}

fn is_in(ranges: &[(char, char)], letter: char) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < letter);
    ranges.get(at).is_some_and(|(first, _)| *first <= letter)
}

/// Combining marks, joiners and format characters, in ascending order. The frequent scripts; an unlisted mark counts as
/// one column, which wraps a line early and never late.
const ZERO_WIDTH: &[(char, char)] = &[
    ('\u{300}', '\u{36f}'),
    ('\u{483}', '\u{489}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{610}', '\u{61a}'),
    ('\u{64b}', '\u{65f}'),
    ('\u{6d6}', '\u{6dc}'),
    ('\u{93c}', '\u{93c}'),
    ('\u{941}', '\u{948}'),
    ('\u{94d}', '\u{94d}'),
    ('\u{e31}', '\u{e31}'),
    ('\u{e34}', '\u{e3a}'),
    ('\u{e47}', '\u{e4e}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{3099}', '\u{309a}'),
    ('\u{fe00}', '\u{fe0e}'),
    ('\u{fe20}', '\u{fe2f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{e0100}', '\u{e01ef}'),
];

/// East Asian wide and fullwidth characters (Unicode Standard Annex 11), and emoji, in ascending order.
const WIDE: &[(char, char)] = &[
    ('\u{1100}', '\u{115f}'),
    ('\u{231a}', '\u{231b}'),
    ('\u{2329}', '\u{232a}'),
    ('\u{23e9}', '\u{23f3}'),
    ('\u{25fd}', '\u{25fe}'),
    ('\u{2614}', '\u{2615}'),
    ('\u{2648}', '\u{2653}'),
    ('\u{267f}', '\u{267f}'),
    ('\u{2693}', '\u{2693}'),
    ('\u{26a1}', '\u{26a1}'),
    ('\u{26aa}', '\u{26ab}'),
    ('\u{26bd}', '\u{26be}'),
    ('\u{26c4}', '\u{26c5}'),
    ('\u{26ce}', '\u{26ce}'),
    ('\u{26d4}', '\u{26d4}'),
    ('\u{26ea}', '\u{26ea}'),
    ('\u{26f2}', '\u{26fd}'),
    ('\u{2705}', '\u{2705}'),
    ('\u{270a}', '\u{270b}'),
    ('\u{2728}', '\u{2728}'),
    ('\u{274c}', '\u{274e}'),
    ('\u{2753}', '\u{2757}'),
    ('\u{2795}', '\u{2797}'),
    ('\u{27b0}', '\u{27bf}'),
    ('\u{2b1b}', '\u{2b1c}'),
    ('\u{2b50}', '\u{2b55}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe10}', '\u{fe19}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{16fe0}', '\u{18cff}'),
    ('\u{1aff0}', '\u{1b2ff}'),
    ('\u{1f004}', '\u{1f004}'),
    ('\u{1f0cf}', '\u{1f0cf}'),
    ('\u{1f18e}', '\u{1f19a}'),
    ('\u{1f200}', '\u{1f64f}'),
    ('\u{1f680}', '\u{1f6ff}'),
    ('\u{1f7e0}', '\u{1f7f0}'),
    ('\u{1f90c}', '\u{1faff}'),
    ('\u{20000}', '\u{3fffd}'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_counts_columns_and_not_characters() {
        for (text, columns) in [
            ("", 0),
            ("abc", 3),
            ("é", 1),
            ("e\u{301}", 1),
            ("日本", 4),
            ("한국어", 6),
            ("👍", 2),
            ("ﬁ – …", 5),
            ("\u{200d}", 0),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn ranges_are_sorted_for_the_binary_search() {
        for ranges in [ZERO_WIDTH, WIDE] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
        }
    }

    #[test]
    fn truncated_text_fits_and_is_marked() {
        assert_eq!(truncate_end("abcdef", 6), "abcdef");
        assert_eq!(truncate_end("abcdef", 4), "abc…");
        assert_eq!(truncate_start("abcdef", 4), "…def");
        assert_eq!(truncate_end("日本語", 4), "日…");
        assert_eq!(truncate_start("日本語", 4), "…語");
        for text in ["abc", "日本語のファイル名", "e\u{301}e\u{301}e\u{301}"] {
            for columns in 0..20 {
                assert!(width(&truncate_end(text, columns)) <= columns, "{text} {columns}");
                assert!(width(&truncate_start(text, columns)) <= columns, "{text} {columns}");
            }
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_long_words_inside() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("/home/ada/mcp.json", 12), ["/home/ada/", "mcp.json"]);
        assert_eq!(wrap("日本語 日本語", 6), ["日本語", "日本語"]);
        assert_eq!(wrap("日", 1), ["日"]);
        for columns in 1..30 {
            let text = "a-very-long-word/with/parts and 日本語のとても長い言葉 and x";
            let lines = wrap(text, columns);
            assert!(lines.iter().all(|line| width(line) <= columns.max(2)), "{columns}: {lines:?}");
            let letters = |text: &str| text.chars().filter(|letter| *letter != ' ').collect::<String>();
            assert_eq!(letters(&lines.concat()), letters(text));
        }
    }
}
