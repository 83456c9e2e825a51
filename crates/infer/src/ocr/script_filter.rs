//! Filter for lines in unsupported scripts that the recognizer returned as supported letters.
//!
//! Cyrillic becomes words with digits and capitals inside; Greek and Cyrillic become Latin letters mixed with Greek
//! letters or mathematical signs; Armenian becomes mostly `u`, `n`, `m` and `h`. Correct lines such as code, formulas
//! and product numbers show some of this too, so a line is only dropped if its confidence is low as well.

use super::ctc_decoder::RecognizedText;
use super::join_lines::is_unspaced;

/// Correct lines have more, except formulas, which contain few odd words.
const MAX_FILTERED_CONFIDENCE: f32 = 0.93;
/// In letters. Shorter lines are not informative.
const MIN_LETTERS: usize = 6;
/// Minimum share of letters in odd words. Most lines of Cyrillic and Greek have half or more.
const MIN_ODD_SHARE: f32 = 0.33;
/// Minimum total oddity: two words with mixed scripts, or three words that may be intentional.
const MIN_ODD_WORDS: usize = 3;
/// Minimum share of vertical-stroke letters. Armenian has two thirds or more, English a quarter.
const MIN_STROKE_SHARE: f32 = 0.65;
const MIN_STROKES: usize = 10;

/// Whether a line is not legible text.
pub(crate) fn is_unsupported_script(reading: &RecognizedText) -> bool {
    if reading.confidence >= MAX_FILTERED_CONFIDENCE {
        return false;
    }
    let (mut all, mut odd, mut strokes, mut signs) = (0usize, 0usize, 0usize, 0usize);
    for word in reading.text.split(|letter: char| !is_letter(letter)) {
        let letters = word.chars().count();
        let found = oddity(word);
        all += letters;
        odd += if found > 0 { letters } else { 0 };
        signs += found;
        strokes += word.chars().filter(|letter| "unmhwyqpųūùúûüñńŋ".contains(*letter)).count();
    }
    let share = |part: usize| part as f32 / all.max(1) as f32;
    all >= MIN_LETTERS && signs >= MIN_ODD_WORDS && share(odd) >= MIN_ODD_SHARE
        || all >= MIN_STROKES && share(strokes) >= MIN_STROKE_SHARE
}

/// Oddity of a word. Mixed scripts in one word are never intentional; names and code may contain capitals and digits,
/// so one such word proves nothing.
fn oddity(word: &str) -> usize {
    let letters: Vec<char> = word.chars().collect();
    let count = |is: fn(char) -> bool| letters.iter().filter(|letter| is(**letter)).count();
    let latin = count(is_latin);
    if latin > 0 && count(is_unspaced) > 0 || latin > 1 && count(is_mathematical) > 0 {
        return 2;
    }
    // In camel case, such as in product names, a capital inside a word is followed by lowercase letters.
    let capital = (2..=letters.len()).any(|end| {
        letters[end - 2].is_lowercase()
            && letters[end - 1].is_uppercase()
            && !letters.get(end).is_some_and(|letter| letter.is_lowercase())
    });
    let digit =
        letters.windows(3).any(|three| three[0].is_lowercase() && three[1].is_ascii_digit() && three[2].is_lowercase());
    let digit_first = letters.first().is_some_and(char::is_ascii_digit)
        && letters.iter().skip(1).take(2).filter(|letter| letter.is_lowercase()).count() == 2;
    usize::from(latin > 1 && letters.len() > 2 && (capital || digit || digit_first))
}

fn is_letter(letter: char) -> bool {
    letter.is_alphanumeric() || is_mathematical(letter)
}

fn is_latin(letter: char) -> bool {
    letter.is_alphabetic() && letter < '\u{250}'
}

fn is_mathematical(letter: char) -> bool {
    matches!(letter, '\u{370}'..='\u{3ff}' | '∏' | '∑' | '∂' | '∆')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonsense(text: &str, confidence: f32) -> bool {
        is_unsupported_script(&RecognizedText { text: text.to_owned(), confidence })
    }

    #[test]
    fn other_scripts_are_nonsense() {
        for text in [
            "Kopa6b ∏pnÓbI∏ B nopT yTpoM",
            "「py3 oTnpaBneH Ha 6o∏bWoé CKraA",
            "BaHTa米 BiA∏paBneHO Ha CKnaA",
            "To πεpαoμÉvo φθLvóπωpo Ol KátoLKOl TOU Xωploú",
            "nmfunuhmum hmnmy unnųbnmymhmn ūhmn",
            "wùquu Áuùuuyuphp ηtuh punup tplyupniu En:",
        ] {
            assert!(nonsense(text, 0.9), "{text}");
        }
    }

    #[test]
    fn what_is_written_so_stays() {
        for text in [
            "SKU-8847, MEDRPT-2024-PAT-3847",
            "O'Neill and McDonald bought an iPhone from 3M",
            "E = mc² and ∆t = 2πr/λ, so αβ ≤ ∑ x, 5 kΩ at 20 °C",
            "j.doe7@mail.example.org, 1,204.50 EUR",
            "H2O, CO2, C6H12O6 and pH 7.4",
            "the human hum of Munch",
            "Zażótć gęślą jaźń, tódź",
            "适合任何肌肤，尤其适用 A4 毛孔粗大",
            "3rd of May, 60fps",
            "PubLayNet [38]",
            "LaTeX on macOS",
            "x86_64",
            "iOS",
        ] {
            assert!(!nonsense(text, 0.9), "{text}");
        }
        // Code consists of odd words, but has high confidence.
        assert!(!nonsense("getElementById(fooBar) 9f86d081884c7d659a2feaa0c55ad015", 0.95));
        assert!(!nonsense("", 0.0));
    }
}
