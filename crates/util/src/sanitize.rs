//! Sanitizes untrusted text for display: documents, models, servers and file names must not move the cursor, change
//! colours, start new lines or reorder characters.

use std::borrow::Cow;
use std::fmt::Write;

/// A character with an effect on the terminal: C0 and C1 control characters, including ESC; line separators; and
/// bidirectional overrides.
///
/// Newline and tab are included.
pub fn is_unsafe_char(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes harmful characters except newline and tab.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let harmful = |letter: char| is_unsafe_char(letter) && !matches!(letter, '\n' | '\t');
    match text.contains(harmful) {
        true => text.chars().filter(|letter| !harmful(*letter)).collect(),
        false => text.into(),
    }
}

/// Makes a text a single line: harmful characters become spaces.
pub fn sanitize_line(text: &str) -> String {
    text.chars().map(|letter| if is_unsafe_char(letter) { ' ' } else { letter }).collect()
}

/// Makes a text part of a single line, with harmful characters escaped, such as `\n` and `\u{1b}`, so that they are
/// visible.
pub fn escape_unsafe(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe_char) {
        return text.into();
    }
    let mut spelt = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_unsafe_char(letter) {
            true => spelt.extend(letter.escape_default()),
            false => spelt.push(letter),
        }
    }
    spelt.into()
}

/// Equivalent JSON without harmful characters. JSON itself only requires escaping C0 characters.
pub fn sanitize_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_unsafe_char) {
        return json.into();
    }
    let mut harmless = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        match is_unsafe_char(letter) {
            // They occur only in strings, and all of them have four hex digits.
            true => write!(harmless, "\\u{:04x}", u32::from(letter)).expect("text can be added to text"),
            false => harmless.push(letter),
        }
    }
    harmless.into()
}

/// The last component of a path, for callers who must not see folders of this machine.
pub fn file_name(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A message with every absolute path in it reduced to its last component. A path ends at a quotation mark of the kind
/// that it begins with, or, without one, at punctuation that is followed by a space.
pub fn without_folders(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    let mut before = None;
    let mut rest = message;
    while let Some(letter) = rest.chars().next() {
        let begins = before.is_none_or(|before: char| before.is_whitespace() || "`'\"(=".contains(before));
        if begins && is_absolute(rest) {
            let quote = before.filter(|before| "`'\"".contains(*before));
            let end = match quote.and_then(|quote| rest.find(quote)) {
                Some(end) => end,
                None => ENDS.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len()),
            };
            let (path, left) = rest.split_at(end);
            shown += file_name(path);
            rest = left;
            before = Some('x');
            continue;
        }
        shown.push(letter);
        before = Some(letter);
        rest = &rest[letter.len_utf8()..];
    }
    shown
}

/// Characters that end an unquoted path.
const ENDS: [&str; 7] = [": ", ". ", ", ", "; ", ")", "`", "\n"];

fn is_absolute(text: &str) -> bool {
    let after = match text.as_bytes() {
        [b'/', after, ..] => *after,
        [drive, b':', b'\\' | b'/', after, ..] if drive.is_ascii_alphabetic() => *after,
        _ => return false,
    };
    !after.is_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C0 and C1 control characters, line separators and bidirectional overrides.
    const HARMFUL: &str =
        "\0\u{7}\u{8}\r\u{b}\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";

    #[test]
    fn no_answer_moves_the_cursor() {
        assert_eq!(sanitize("a\tb\nc – ü"), "a\tb\nc – ü");
        assert_eq!(sanitize("\u{1b}[2Ja\r\nb\u{7}\u{9b}31m\u{8}"), "[2Ja\nb31m");
        assert_eq!(sanitize(HARMFUL), "");
    }

    #[test]
    fn one_line_stays_one() {
        assert_eq!(sanitize_line("a\nb\tc\u{1b}[31m"), "a b c [31m");
        assert_eq!(sanitize_line(HARMFUL).trim(), "");
    }

    #[test]
    fn what_is_harmful_can_be_seen_where_it_is_spelt_out() {
        assert_eq!(escape_unsafe("tools/call – ü"), "tools/call – ü");
        assert_eq!(escape_unsafe("a\r\nb\t\u{1b}[2J\u{9b}\u{202e}"), "a\\r\\nb\\t\\u{1b}[2J\\u{9b}\\u{202e}");
        assert!(!escape_unsafe(HARMFUL).contains(is_unsafe_char));
    }

    #[test]
    fn json_says_the_same_without_a_harmful_letter() {
        let said = serde_json::Value::from(format!("{HARMFUL}\n\t\"\\ü"));
        let json = said.to_string();
        let harmless = sanitize_json(&json);
        assert!(!harmless.contains(is_unsafe_char), "{harmless}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless).unwrap(), said);
    }

    /// Right-to-left text, joiners and emoji sequences are kept.
    #[test]
    fn other_letters_are_left_alone() {
        let text = "שלום عربي \u{200f}\u{200d}👩\u{200d}🔬 é\u{301} \u{a0}\u{feff}";
        assert_eq!(sanitize(text), text);
        assert_eq!(sanitize_line(text), text);
        assert_eq!(escape_unsafe(text), text);
    }

    #[test]
    fn folders_of_this_machine_are_taken_out_of_messages() {
        for (message, shown) in [
            ("File not found: /srv/my docs/a.pdf. Check the path", "File not found: a.pdf. Check the path"),
            ("`/srv/x, y/knowledge.db`: denied (os error 13)", "`knowledge.db`: denied (os error 13)"),
            ("/srv/x", "x"),
            (r"`C:\Users\ada\a.pdf` is gone", "`a.pdf` is gone"),
            ("see https://a.example/b/c and/or 1/2 / 3", "see https://a.example/b/c and/or 1/2 / 3"),
        ] {
            assert_eq!(without_folders(message), shown);
        }
    }
}
