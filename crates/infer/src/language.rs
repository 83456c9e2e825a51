//! Language detection for texts outside a model's languages.

use whatlang::{Lang, Script};

/// A reliably detected language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(Lang);

/// Shorter texts are names or codes and do not indicate a language.
const MIN_LETTERS: usize = 12;

impl Language {
    /// The language of a text, if the detection is reliable.
    pub fn detect(text: &str) -> Option<Language> {
        // A prefix is enough for detection and bounds the time.
        let text = &text[..text.floor_char_boundary(2000)];
        if text.chars().filter(|letter| letter.is_alphabetic()).take(MIN_LETTERS).count() < MIN_LETTERS {
            return None;
        }
        let seen = whatlang::detect(text)?;
        // Languages in Latin script are easily confused in short texts; other scripts are not.
        let is_certain = seen.script() != Script::Latin || seen.is_reliable();
        is_certain.then_some(Language(seen.lang()))
    }

    /// ISO 639-3, such as `eng`.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// English name.
    pub fn name(self) -> &'static str {
        self.0.eng_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_named_only_where_it_is_plain() {
        for (text, language) in [
            ("The river rose by two metres in the night, and the road to the village was closed.", Some("eng")),
            ("transfer two hundred dollars from savings to checking", None),
            (
                "Wie setze ich mein Passwort zurück, wenn ich keinen Zugriff mehr auf mein altes Telefon habe?",
                Some("deu"),
            ),
            ("Как мне сбросить пароль, если у меня больше нет старого телефона?", Some("rus")),
            ("如果我无法再使用旧手机，如何重置密码？请告诉我。", Some("cmn")),
            ("Passwort", None),
            ("x86_64-unknown-linux-gnu", None),
            ("12345 67890", None),
            ("", None),
        ] {
            assert_eq!(Language::detect(text).map(Language::code), language, "{text}");
        }
    }
}
