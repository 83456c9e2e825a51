//! Shell quoting for commands that users copy.

/// Quotes a word for a POSIX shell, if necessary.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@%+=,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_where_a_shell_would_not_take_it_as_it_is() {
        let words = ["/a/b-c_d.e", "", "a b", "$(touch x)", "it's"];
        assert_eq!(words.map(shell_quote), ["/a/b-c_d.e", "''", "'a b'", "'$(touch x)'", r"'it'\''s'"]);
    }
}
