//! Whether what was read is what the picture says.
//!
//! The reader knows Latin and Chinese letters and makes something of any other script: strings of both, with little
//! confidence. What was left out for its confidence counts here, too: on such a page a few lines are always left.

use super::recognise::Reading;

/// Pages that were read right have 0.95 and more, on poor paper too; those in another script 0.86 and less.
const LEAST_CONFIDENCE: f32 = 0.9;

/// All that was read of a picture.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    letters: f32,
    /// The sum of the confidence in each.
    confidence: f32,
}

impl Tally {
    pub(crate) fn add(&mut self, reading: &Reading) {
        let letters = reading.text.chars().filter(|letter| !letter.is_whitespace()).count() as f32;
        self.letters += letters;
        self.confidence += letters * reading.confidence;
    }

    pub(crate) fn is_doubtful(&self) -> bool {
        self.confidence < LEAST_CONFIDENCE * self.letters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_doubtful(readings: &[(&str, f32)]) -> bool {
        let mut tally = Tally::default();
        for (text, confidence) in readings {
            tally.add(&Reading { text: (*text).to_owned(), confidence: *confidence });
        }
        tally.is_doubtful()
    }

    #[test]
    fn the_page_is_doubted_and_not_a_line_of_it() {
        assert!(is_doubtful(&[("To πεpαoμÉvo φθLvóπwpo", 0.81), ("2019", 0.99)]));
        assert!(!is_doubtful(&[("The committee met on 14 March", 0.98), ("3l", 0.4)]));
        assert!(!is_doubtful(&[]));
        assert!(!is_doubtful(&[("", 0.0)]));
    }
}
