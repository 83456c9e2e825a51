//! Language detection and stemming.
//!
//! A chunk is stemmed in its own language, which is detected from its text. A query is too short for detection, so
//! its words are stemmed in every language of the index.

use frostem::{Algorithm, Stemmer};
use std::borrow::Cow;
use whatlang::{Lang, Script};

/// A language with a stemmer. Its number is stored in files, so new languages must be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Language(u8);

pub(crate) const LANGUAGES: usize = STEMMERS.len();

/// Maximum number of bytes for detection: more text does not improve the result.
const MAX_DETECTION_BYTES: usize = 600;
/// Texts with fewer letters are names or codes and have no detectable language.
const MIN_LETTERS: usize = 20;

const STEMMERS: [(Lang, Algorithm); 31] = [
    (Lang::Eng, Algorithm::English),
    (Lang::Deu, Algorithm::German),
    (Lang::Fra, Algorithm::French),
    (Lang::Spa, Algorithm::Spanish),
    (Lang::Ita, Algorithm::Italian),
    (Lang::Por, Algorithm::Portuguese),
    (Lang::Nld, Algorithm::Dutch),
    (Lang::Swe, Algorithm::Swedish),
    (Lang::Dan, Algorithm::Danish),
    (Lang::Nob, Algorithm::Norwegian),
    (Lang::Fin, Algorithm::Finnish),
    (Lang::Rus, Algorithm::Russian),
    (Lang::Pol, Algorithm::Polish),
    (Lang::Ces, Algorithm::Czech),
    (Lang::Hun, Algorithm::Hungarian),
    (Lang::Ron, Algorithm::Romanian),
    (Lang::Tur, Algorithm::Turkish),
    (Lang::Ell, Algorithm::Greek),
    (Lang::Ara, Algorithm::Arabic),
    (Lang::Pes, Algorithm::Persian),
    (Lang::Hin, Algorithm::Hindi),
    (Lang::Nep, Algorithm::Nepali),
    (Lang::Tam, Algorithm::Tamil),
    (Lang::Ind, Algorithm::Indonesian),
    (Lang::Cat, Algorithm::Catalan),
    (Lang::Lit, Algorithm::Lithuanian),
    (Lang::Est, Algorithm::Estonian),
    (Lang::Srp, Algorithm::Serbian),
    (Lang::Hye, Algorithm::Armenian),
    (Lang::Yid, Algorithm::Yiddish),
    (Lang::Epo, Algorithm::Esperanto),
];

// === impl Language ===

impl Language {
    pub(crate) const ENGLISH: Language = Language(0);

    /// The language of a text, if detection is reliable and there is a stemmer for it.
    pub(crate) fn detect(text: &str) -> Option<Language> {
        let text = &text[..text.floor_char_boundary(MAX_DETECTION_BYTES)];
        if text.chars().filter(|letter| letter.is_alphabetic()).take(MIN_LETTERS).count() < MIN_LETTERS {
            return None;
        }
        let seen = whatlang::detect(text)?;
        // Latin-script languages are easily confused in short texts.
        let is_certain = seen.script() != Script::Latin || seen.is_reliable();
        is_certain.then(|| Language::from_lang(seen.lang())).flatten()
    }

    /// The assumed language of a text without reliable detection. Most lists, tables and headings in ASCII letters
    /// contain English words. For other letters a guess is better than none, because queries are stemmed in every
    /// language.
    pub(crate) fn fallback(text: &str) -> Option<Language> {
        let text = &text[..text.floor_char_boundary(MAX_DETECTION_BYTES)];
        if text.chars().filter(|letter| letter.is_alphabetic()).all(|letter| letter.is_ascii()) {
            return Some(Language::ENGLISH);
        }
        Language::from_lang(whatlang::detect_lang(text)?)
    }

    /// Languages and their shares, the most frequent first, from the number of chunks per language number.
    pub(crate) fn shares(counted: impl Iterator<Item = (u8, u64)>) -> Vec<(Language, f32)> {
        let counted: Vec<(Language, u64)> = counted
            .filter(|(_, count)| *count > 0)
            .filter_map(|(number, count)| Some((Language::from_number(number)?, count)))
            .collect();
        let all: u64 = counted.iter().map(|(_, count)| count).sum();
        let mut shares: Vec<(Language, f32)> =
            counted.into_iter().map(|(language, count)| (language, count as f32 / all as f32)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }

    pub(crate) fn stem(self, word: &str) -> Cow<'_, str> {
        Stemmer::new(STEMMERS[usize::from(self.0)].1).stem(word)
    }

    pub(crate) fn number(self) -> u8 {
        self.0
    }

    pub(crate) fn from_number(number: u8) -> Option<Language> {
        (usize::from(number) < LANGUAGES).then_some(Language(number))
    }

    pub(crate) fn code(self) -> &'static str {
        STEMMERS[usize::from(self.0)].0.code()
    }

    fn from_lang(lang: Lang) -> Option<Language> {
        STEMMERS.iter().position(|(known, _)| *known == lang).map(|at| Language(at as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_told_and_its_words_are_stemmed() {
        let german =
            Language::detect("Die Verträge wurden gestern von beiden Geschäftsführern unterschrieben.").unwrap();
        assert_eq!(german.code(), "deu");
        assert_eq!(german.stem("verträge"), "vertrag");
        assert_eq!(Language::ENGLISH.stem("running"), "run");
        assert_eq!(Language::detect("RFC 9110"), None);
        assert_eq!(Language::fallback("Table 3: payments"), Some(Language::ENGLISH));
        assert_eq!(Language::fallback("réunions de la société").map(Language::code), Some("fra"));
        assert_eq!(Language::fallback("東京"), None);
    }
}
