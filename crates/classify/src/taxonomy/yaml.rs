//! YAML scalar writer.

use std::fmt::Write;

use serde_json::Value;

/// Plain scalars that some YAML parsers do not read as strings.
const RESERVED_SCALARS: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan"];

/// A text as a YAML scalar, unquoted where that is unambiguous.
pub fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(char::is_alphabetic)
        && !text.ends_with(' ')
        && text.chars().all(|c| c.is_alphanumeric() || " '_-./,?!()%+".contains(c))
        && !RESERVED_SCALARS.contains(&text.to_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// A JSON string is also a YAML string, except for a few characters that YAML forbids or editors do not display.
fn quoted(text: &str) -> String {
    let is_unsafe =
        |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        if is_unsafe(c) {
            let _ = write!(quoted, "\\u{:04x}", u32::from(c));
        } else {
            quoted.push(c);
        }
    }
    quoted
}
