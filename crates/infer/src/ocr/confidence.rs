//! OCR confidence: detects images with text in an unsupported script.
//!
//! The recognizer supports Latin and Chinese characters. For other scripts it returns a low-confidence mixture of both.
//! Such lines are dropped. If they are a considerable part of the image, the result is marked doubtful.

use super::ctc_decoder::RecognizedText;
use super::script_filter::is_unsupported_script;

/// Pages in a supported script have 0.95 or more, even on poor paper; pages in other scripts have 0.86 or less.
const MIN_PAGE_CONFIDENCE: f32 = 0.9;
/// If the mean confidence of a page is below this, lines below it are dropped: the whole page is in an unsupported
/// script.
const MIN_KEPT_PAGE_CONFIDENCE: f32 = 0.85;
/// In letters. Fewer are misread graphics.
const MIN_OMITTED_LETTERS: f32 = 10.0;
/// The dropped share of all letters.
const MIN_OMITTED_SHARE: f32 = 1.0 / 3.0;
/// Graphics are misread as letters, but hardly ever as more than this number in a row.
const SHORT_LINE_LETTERS: usize = 2;
/// Additional confidence required for such short texts.
const SHORT_LINE_MARGIN: f32 = 0.1;

/// Counts over all lines of an image.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageConfidence {
    letters: f32,
    /// Sum of the confidence over all letters.
    confidence: f32,
    /// Letters of dropped lines.
    omitted: f32,
}

impl PageConfidence {
    /// First pass: whether a line is kept by its own confidence.
    pub(crate) fn accept(&mut self, reading: &RecognizedText, least_confidence: f32) -> bool {
        let letters = letters(reading);
        self.letters += letters;
        self.confidence += letters * reading.confidence;
        let short = reading.text.chars().count() <= SHORT_LINE_LETTERS;
        let least = least_confidence + if short { SHORT_LINE_MARGIN } else { 0.0 };
        let keeps = letters > 0.0 && reading.confidence >= least && !is_unsupported_script(reading);
        if !keeps {
            self.omitted += letters;
        }
        keeps
    }

    /// Second pass: whether a line is kept by the confidence of the whole page.
    pub(crate) fn accept_final(&mut self, reading: &RecognizedText) -> bool {
        let keeps = reading.confidence >= MIN_KEPT_PAGE_CONFIDENCE
            || self.confidence >= MIN_KEPT_PAGE_CONFIDENCE * self.letters;
        if !keeps {
            self.omitted += letters(reading);
        }
        keeps
    }

    pub(crate) fn is_low(&self) -> bool {
        let is_unsure = self.confidence < MIN_PAGE_CONFIDENCE * self.letters;
        let misses_much = self.omitted >= MIN_OMITTED_LETTERS && self.omitted >= MIN_OMITTED_SHARE * self.letters;
        self.letters >= MIN_OMITTED_LETTERS && is_unsure || misses_much
    }
}

fn letters(reading: &RecognizedText) -> f32 {
    reading.text.chars().filter(|letter| !letter.is_whitespace()).count() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kept lines, and whether the result is doubtful.
    fn kept<'a>(readings: &[(&'a str, f32)]) -> (Vec<&'a str>, bool) {
        let mut tally = PageConfidence::default();
        let reading = |text: &str, confidence: f32| RecognizedText { text: text.to_owned(), confidence };
        let mut kept = readings.to_vec();
        kept.retain(|(text, confidence)| tally.accept(&reading(text, *confidence), 0.7));
        kept.retain(|(text, confidence)| tally.accept_final(&reading(text, *confidence)));
        (kept.into_iter().map(|(text, _)| text).collect(), tally.is_low())
    }

    const GOOD: (&str, f32) = ("The committee met on 14 March", 0.98);
    const NONSENSE: (&str, f32) = ("To πεpαoμÉvo φθLvóπwpo", 0.86);

    #[test]
    fn a_considerable_part_that_was_not_read_makes_the_text_doubtful() {
        assert_eq!(kept(&[NONSENSE, ("2019", 0.99)]), (vec!["2019"], true));
        assert_eq!(kept(&[GOOD, NONSENSE]), (vec![GOOD.0], true));
        assert_eq!(kept(&[GOOD, GOOD, GOOD, GOOD, NONSENSE]), (vec![GOOD.0; 4], false));
    }

    #[test]
    fn stray_letters_are_left_out_in_silence() {
        assert_eq!(kept(&[GOOD, ("3l", 0.4)]), (vec![GOOD.0], false));
        assert_eq!(kept(&[("oO", 0.75), ("xJ7", 0.6)]), (vec![], false));
        assert_eq!(kept(&[]), (vec![], false));
        assert_eq!(kept(&[("", 0.0)]), (vec![], false));
    }

    #[test]
    fn among_nonsense_a_line_must_be_sure() {
        let poor = ("a line read poorly", 0.8);
        assert_eq!(kept(&[GOOD, GOOD, poor]).0, [GOOD.0, GOOD.0, poor.0]);
        assert_eq!(kept(&[("huuun tnųnL wuquu uhwyųti", 0.72), poor]), (vec![], true));
    }
}
