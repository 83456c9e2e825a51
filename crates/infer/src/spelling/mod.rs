//! Spelling correction for short texts.
//!
//! A classifier does not know the words in `trasnfer mony`. The intended words are usually clear: known words that are
//! probable in context and explained by probable typing errors (a noisy channel model). A text of known words is not
//! changed. The more unknown words a text has, the more likely they are typos: a single one could be a name.

mod deletion_index;
mod distance;
mod lexicon;
mod search;
mod tokenize;

use std::fmt;

use crate::builtin;
use lexicon::{Lexicon, WordId};
use search::{CorrectionPolicy, PieceReading, PieceStatus, ReadingWords};
use tokenize::Piece;

/// Length of the corrected prefix. Models read little more; it bounds the time for very long texts.
const MAX_TEXT_BYTES: usize = 1024;
/// Suffixes to strip from a form to get its stem, with their replacements.
const ENDINGS: [(&str, &str); 17] = [
    ("'s", ""),
    ("s", ""),
    ("es", ""),
    ("ies", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ied", "y"),
    ("ing", ""),
    ("ing", "e"),
    ("er", ""),
    ("er", "e"),
    ("ly", ""),
    ("n't", ""),
    ("'ll", ""),
    ("'re", ""),
    ("'ve", ""),
    ("'d", ""),
];
/// Shorter words have no forms: `thed` is a typo, not a form of `the`.
const MIN_LETTERS_WITH_FORMS: usize = 4;

/// Spelling corrector. It is immutable, so threads can share one.
pub struct Spelling {
    lexicon: Lexicon,
}

impl Spelling {
    /// Learns the words of these texts, which should be the training data of a classifier, and common English words.
    ///
    /// Fifteen thousand short texts take some 30 milliseconds.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Spelling {
        let texts = texts.map(|text| tokenize::tokenize(text).into_iter().map(|piece| piece.letters).collect());
        Spelling { lexicon: Lexicon::of(texts, builtin::english_words()) }
    }

    /// Corrects the typos of a text; `None` if there are none.
    ///
    /// Only a prefix of a long text is corrected. Numbers, addresses and code are not changed, and neither are most
    /// texts in languages other than that of the known words.
    pub fn correct(&self, text: &str) -> Option<String> {
        let pieces = tokenize::tokenize(corrected_prefix(text));
        let standings = self.statuses(&pieces);
        let strange = standings.iter().filter(|standing| **standing == PieceStatus::Unknown).count();
        if strange == 0 {
            return None;
        }
        let readings = search::search(&self.lexicon, &pieces, &standings, CorrectionPolicy::of(strange))?;
        self.write(text, &pieces, &readings)
    }

    fn statuses(&self, pieces: &[Piece]) -> Vec<PieceStatus> {
        let stands = |Piece { letters, .. }: &Piece| {
            let known = self.lexicon.find(letters).map(PieceStatus::Known);
            known.or_else(|| self.find_stem(letters).map(PieceStatus::Form)).unwrap_or(PieceStatus::Unknown)
        };
        let mut standings: Vec<PieceStatus> = pieces.iter().map(stands).collect();
        let strange: Vec<usize> = (0..pieces.len()).filter(|at| standings[*at] == PieceStatus::Unknown).collect();
        for at in &strange {
            // A repeated unknown word is not a typo.
            let is_same = |other: &usize| other != at && pieces[*other].letters == pieces[*at].letters;
            if strange.iter().any(is_same) {
                standings[*at] = PieceStatus::Protected;
            }
        }
        standings
    }

    /// The known word that this is an inflected form of.
    fn find_stem(&self, letters: &[char]) -> Option<WordId> {
        ENDINGS.iter().find_map(|(ending, instead)| {
            let length = letters.len().checked_sub(ending.len()).filter(|length| *length >= MIN_LETTERS_WITH_FORMS)?;
            let (stem, found) = letters.split_at(length);
            if !found.iter().copied().eq(ending.chars()) {
                return None;
            }
            let stem: Vec<char> = stem.iter().copied().chain(instead.chars()).collect();
            self.lexicon.find(&stem)
        })
    }

    /// The corrected text. `None` if it equals the typed text.
    fn write(&self, text: &str, pieces: &[Piece], readings: &[PieceReading]) -> Option<String> {
        let mut mended = String::with_capacity(text.len() + 8);
        let mut end = 0;
        for PieceReading { at, pieces: count, words } in readings {
            let words: String = match words {
                ReadingWords::AsTyped => continue,
                ReadingWords::One(id) if self.lexicon.letters(*id) == pieces[*at].letters => continue,
                ReadingWords::One(id) => self.lexicon.letters(*id).iter().collect(),
                ReadingWords::Two(one, other) => {
                    [self.lexicon.letters(*one), &[' '], self.lexicon.letters(*other)].into_iter().flatten().collect()
                }
            };
            let range = pieces[*at].range.start..pieces[at + count - 1].range.end;
            mended.push_str(&text[end..range.start]);
            mended.push_str(&match_case(&text[range.clone()], words));
            end = range.end;
        }
        mended.push_str(&text[end..]);
        (end > 0).then_some(mended)
    }
}

impl fmt::Debug for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spelling").field("words", &self.lexicon.boundary()).finish_non_exhaustive()
    }
}

/// The prefix that is corrected: whole words, if it contains a space.
fn corrected_prefix(text: &str) -> &str {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let part = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    &part[..part.rfind(char::is_whitespace).unwrap_or(part.len())]
}

/// Applies the capitalization of the typed word: first letter or all letters.
fn match_case(typed: &str, words: String) -> String {
    let mut capitals = typed.chars().filter(|letter| letter.is_alphabetic()).map(char::is_uppercase);
    match (capitals.next(), capitals.next()) {
        (Some(true), Some(true)) if capitals.all(|is_capital| is_capital) => words.to_uppercase(),
        (Some(true), _) => {
            let mut letters = words.chars();
            letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
        }
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static SPELLING: LazyLock<Spelling> = LazyLock::new(|| {
        let texts = [
            "what is my account balance",
            "please transfer money to my savings account",
            "i lost my credit card",
            "how do i say goodbye in french",
            "don't call me",
        ];
        // Repeated as often as in a real training set, so that bigrams are counted.
        Spelling::of(texts.into_iter().cycle().take(100 * texts.len()))
    });

    fn check(text: &str, expected: &str) {
        assert_eq!(SPELLING.correct(text).as_deref().unwrap_or(text), expected);
    }

    fn check_unchanged(text: &str) {
        assert_eq!(SPELLING.correct(text), None);
    }

    #[test]
    fn slips_of_every_kind_are_mended() {
        check("transfer mony to my savings", "transfer money to my savings");
        check("what is my acocunt balance", "what is my account balance");
        check("i lost my credit carrd", "i lost my credit card");
        check("what is my accoumt balance", "what is my account balance");
        check("paese trasnfer mony", "please transfer money");
    }

    #[test]
    fn spaces_are_put_where_they_belong() {
        check("i lost my creditcard", "i lost my credit card");
        check("i lost my creditncard", "i lost my credit card");
        check("i lost m ycredit card", "i lost my credit card");
        check("i lost my cre dit card", "i lost my credit card");
    }

    #[test]
    fn known_words_are_in_doubt_only_in_sloppy_texts() {
        check_unchanged("i lots my credit card");
        check("i lots my credti crad", "i lost my credit card");
    }

    #[test]
    fn all_around_a_slip_stays_as_it_is() {
        check("  Please,  TRASNFER £20 (mony)!\n", "  Please,  TRANSFER £20 (money)!\n");
        check("Paese don’t call", "Please don’t call");
    }

    #[test]
    fn texts_of_known_words_and_their_forms_are_left_alone() {
        for text in ["what is my account balance", "transfers, balances and my card's savings", "", " ", "?!"] {
            check_unchanged(text);
        }
    }

    #[test]
    fn names_numbers_addresses_and_code_are_left_alone() {
        for text in [
            "send money to Zsofia in Szeged",
            "see https://acocunt.example/blance or mail acocunt@example.com",
            "what does get_acocunt() or getAcocunt return",
            "flight ab1234x to XQJ",
            "the kwyjibo and the other kwyjibo",
        ] {
            check_unchanged(text);
        }
    }

    #[test]
    fn other_languages_are_left_alone() {
        for text in [
            "Wie setze ich mein Passwort zurück, wenn ich keinen Zugriff mehr auf mein altes Telefon habe?",
            "¿Cómo puedo restablecer mi contraseña si ya no tengo acceso a mi teléfono antiguo?",
            "quiero transferir dinero a mi cuenta de ahorros",
            "Как мне сбросить пароль, если у меня больше нет старого телефона?",
            "如果我无法再使用旧手机，如何重置密码？请告诉我。",
        ] {
            check_unchanged(text);
        }
    }

    #[test]
    fn other_languages_are_mended_once_they_are_taught() {
        let spelling = Spelling::of(["wie ist mein kontostand", "überweise geld auf mein sparkonto"].into_iter());
        assert_eq!(spelling.correct("wie ist mein kontosatnd").as_deref(), Some("wie ist mein kontostand"));
        assert_eq!(spelling.correct("überwiese geld").as_deref(), Some("überweise geld"));
    }

    #[test]
    fn only_the_beginning_of_a_book_is_mended() {
        let book = "my acocunt ".repeat(10_000) + "acocnut";
        check_unchanged(&book);
        let book = "my acocunt ".to_owned() + &"my account ".repeat(10_000) + "acocnut";
        check(&book, &book.replacen("acocunt", "account", 1));
        check_unchanged(&"ä".repeat(100_000));
    }

    #[test]
    fn the_same_texts_make_the_same_speller() {
        let typed = "waht is teh balence of my savigns acount";
        let mended = Spelling::of(["the balance of savings"].into_iter()).correct(typed);
        for _ in 0..3 {
            assert_eq!(Spelling::of(["the balance of savings"].into_iter()).correct(typed), mended);
        }
    }

    #[test]
    fn without_texts_english_is_known() {
        let spelling = Spelling::of([].into_iter());
        assert_eq!(spelling.correct("the goverment of the country").as_deref(), Some("the government of the country"));
    }

    proptest! {
        #[test]
        fn any_text_is_mended_without_harm(text in any::<String>()) {
            if let Some(mended) = SPELLING.correct(&text) {
                prop_assert_ne!(mended, text);
            }
        }

        #[test]
        fn what_is_no_word_survives_among_slips(text in "([a-z' -]{1,12}[0-9@ .,]{1,3}){1,8}") {
            let is_rest = |letter: &char| !letter.is_alphabetic() && !" '".contains(*letter);
            let rest = |text: &str| -> String { text.chars().filter(is_rest).collect() };
            let mended = SPELLING.correct(&text).unwrap_or_else(|| text.clone());
            prop_assert_eq!(rest(&mended), rest(&text));
        }

        #[test]
        fn mended_words_are_known(text in "[a-z]{2,9}( [a-z]{2,9}){0,6}") {
            if let Some(mended) = SPELLING.correct(&text) {
                for word in mended.split(' ').filter(|word| !text.split(' ').any(|typed| typed == *word)) {
                    prop_assert!(SPELLING.lexicon.find(&word.chars().collect::<Vec<_>>()).is_some(), "{}", word);
                }
            }
        }
    }
}
