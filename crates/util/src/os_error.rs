//! Messages of operating system errors for people.

use std::borrow::Cow;

/// Wording for a missing file, the same in all messages.
pub const FILE_NOT_FOUND: &str = "file not found";

/// The message without numbers of system errors, such as `(os error 2)`, and with one wording for a missing file.
pub fn plain_message(message: &str) -> Cow<'_, str> {
    const NUMBER: &str = " (os error ";
    const MISSING: &str = "No such file or directory";
    if !message.contains(NUMBER) {
        return message.into();
    }
    let mut pieces = message.split(NUMBER);
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(')') {
            Some((number, rest)) if number.bytes().all(|digit| digit.is_ascii_digit()) => plain += rest,
            _ => plain = format!("{plain}{NUMBER}{piece}"),
        }
    }
    plain.replace(MISSING, FILE_NOT_FOUND).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_system_errors_are_removed() {
        let missing = std::io::Error::from_raw_os_error(2).to_string();
        #[cfg(unix)]
        assert_eq!(
            plain_message(&format!("`a` cannot be read: {missing}; check it")),
            "`a` cannot be read: file not found; check it"
        );
        assert_eq!(plain_message("a (os error 13), b (os error 5)"), "a, b");
        for text in ["", "all is well", "No such file or directory", " (os error x)"] {
            assert_eq!(plain_message(text), text);
        }
        assert!(!plain_message(&missing).contains("os error"));
    }
}
