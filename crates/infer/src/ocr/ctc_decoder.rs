//! CTC decoding: probabilities of characters at each position of a line to its text, with the repair of missing spaces,
//! halves of ligatures and misread articles.

use std::borrow::Cow;

use rten_simd::{Isa, SimdOp, SimdUnaryOp};
use rten_vecmath::Exp;

use super::fullwidth;
use super::network::Tensor;

/// The recognized text of a line.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct RecognizedText {
    pub(crate) text: String,
    /// Mean probability of its letters; 0 without letters.
    pub(crate) confidence: f32,
}

/// Minimum probability of a space after punctuation, even if the blank is more probable.
const MIN_SPACE_PROBABILITY: f32 = 0.1;

/// Greedy CTC decoding: repeated classes are one letter; equal letters in a row are separated by a blank.
pub(super) fn decode(characters: &[char], output: &Tensor) -> RecognizedText {
    let mut text = String::new();
    let (mut sum, mut count, mut last) = (0.0f32, 0usize, 0u32);
    // Highest probability of a space since the last letter.
    let mut gap = 0.0f32;
    for CtcStep { class, probability, space } in ctc_steps(output) {
        if class != 0 && class != last {
            let letter = characters.get(class as usize - 1).copied().unwrap_or(' ');
            let before = text.chars().next_back();
            if before.is_some_and(|before| is_half(before, letter)) {
                text.pop();
            } else if gap > MIN_SPACE_PROBABILITY && before.is_some_and(|before| follows_space(before, letter)) {
                text.push(' ');
            }
            text.push(letter);
            sum += probability;
            count += 1;
            gap = 0.0;
        } else {
            gap = gap.max(space);
        }
        last = class;
    }
    let confidence = if count == 0 { 0.0 } else { (sum / count as f32).clamp(0.0, 1.0) };
    // Wide gaps are recognized as several spaces.
    let text = text.split_whitespace().map(with_article).collect::<Vec<_>>().join(" ");
    RecognizedText { text: fullwidth::to_ascii_punctuation(text), confidence }
}

/// Whether a probable space is inserted between two letters. Narrow spaces are missed mostly after punctuation.
fn follows_space(before: char, letter: char) -> bool {
    before.is_ascii_punctuation() && letter.is_ascii_alphabetic()
}

/// French and Italian `l'` looks like `1'` and `I'` in many fonts; neither occurs before a vowel otherwise.
fn with_article(word: &str) -> Cow<'_, str> {
    let mut letters = word.chars();
    let (first, second, third) = (letters.next(), letters.next(), letters.next());
    let is_article = matches!(first, Some('1' | 'I'))
        && matches!(second, Some('\'' | '’'))
        && third.is_some_and(|letter| letter.is_lowercase() && !"mldvs".contains(letter));
    if is_article { Cow::Owned(format!("l{}", &word[1..])) } else { Cow::Borrowed(word) }
}

/// Whether a letter is the left half of the next one, recognized before the whole. The two never follow each other in
/// any language.
fn is_half(letter: char, next: char) -> bool {
    matches!((letter, next), ('o', 'œ') | ('O', 'Œ') | ('a', 'æ') | ('A', 'Æ') | ('’', '\''))
}

/// Output of the network at one position of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CtcStep {
    /// The class with the largest logit; the first one on a tie.
    class: u32,
    /// Its softmax probability.
    probability: f32,
    /// The probability of a space.
    space: f32,
}

fn ctc_steps(output: &Tensor) -> Vec<CtcStep> {
    let (classes, largest) = ArgmaxKernel { output }.dispatch();
    let mut sums = vec![0.0f32; output.width];
    // Processes many classes per call, because each call has a fixed cost.
    let mut shares = Vec::with_capacity(64 * output.width);
    for numbers in output.numbers.chunks(64 * output.width.max(1)) {
        shares.clear();
        for row in numbers.chunks_exact(output.width) {
            shares.extend(row.iter().zip(&largest).map(|(number, largest)| number - largest));
        }
        Exp {}.map_mut(&mut shares);
        for row in shares.chunks_exact(output.width) {
            sums.iter_mut().zip(row).for_each(|(sum, share)| *sum += share);
        }
    }
    // The space is the last class, so its values are still in the buffer.
    let spaces = &shares[shares.len().saturating_sub(output.width)..];
    let place =
        |((class, sum), space): ((u32, f32), &f32)| CtcStep { class, probability: 1.0 / sum, space: space / sum };
    classes.into_iter().zip(sums).zip(spaces).map(place).collect()
}

struct ArgmaxKernel<'a> {
    output: &'a Tensor,
}

/// Plain loops; dispatched as one operation, they are compiled for wide registers.
impl SimdOp for ArgmaxKernel<'_> {
    type Output = (Vec<u32>, Vec<f32>);

    #[inline(always)]
    fn eval<I: Isa>(self, _: I) -> Self::Output {
        let places = self.output.width;
        let mut classes = vec![0u32; places];
        let mut largest = vec![f32::MIN; places];
        for (class, numbers) in self.output.numbers.chunks_exact(places.max(1)).enumerate() {
            for ((number, largest), best) in numbers.iter().zip(&mut largest).zip(&mut classes) {
                *best = if *number > *largest { class as u32 } else { *best };
                *largest = if *number > *largest { *number } else { *largest };
            }
        }
        (classes, largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes positions with one certain letter each (`_` is the blank) and this probability of a space.
    fn read(letters: &str, space: f32) -> String {
        let characters: Vec<char> = "abcdefghijklmnopqrstuvwxyz.œæ\"".chars().collect();
        let mut output = Tensor::zeros(characters.len() + 2, 1, letters.chars().count());
        output.numbers.fill(f32::MIN / 4.0);
        for (place, letter) in letters.chars().enumerate() {
            let class = match letter {
                '_' => 0,
                ' ' => characters.len() + 1,
                letter => characters.iter().position(|known| *known == letter).unwrap() + 1,
            };
            let last = (characters.len() + 1) * output.width + place;
            output.numbers[last] = (space / (1.0 - space)).ln();
            output.numbers[class * output.width + place] = 0.0;
        }
        decode(&characters, &output).text
    }

    #[test]
    fn letters_are_told_apart_by_nothing_between_them() {
        assert_eq!(read("_aa_ab_b", 0.01), "aabb");
        assert_eq!(read("a  _ b ", 0.01), "a b");
        assert_eq!(read("", 0.01), "");
    }

    #[test]
    fn half_a_letter_is_none() {
        assert_eq!(read("so_œur", 0.01), "sœur");
        assert_eq!(read("aæo", 0.01), "æo");
    }

    #[test]
    fn an_article_is_told_from_a_number_and_from_i() {
        let read = |words: &str| words.split(' ').map(with_article).collect::<Vec<_>>().join(" ");
        assert_eq!(read("1'église I'été 1’odeur"), "l'église l'été l’odeur");
        assert_eq!(read("I'm I've I'll I'd 1's 1'' 15' Il l'un"), "I'm I've I'll I'd 1's 1'' 15' Il l'un");
    }

    #[test]
    fn a_likely_space_behind_a_sign_is_one() {
        assert_eq!(read("a._b_c", 0.3), "a. bc");
        assert_eq!(read("a._b_c", 0.02), "a.bc");
        assert_eq!(read("a\"_.", 0.3), "a\".");
    }

    #[test]
    fn the_share_of_the_largest_is_that_of_a_softmax() {
        // Three classes at two positions.
        let output = Tensor { channels: 3, height: 1, width: 2, numbers: vec![1.0, -2.0, 3.0, 0.5, 0.0, 0.5] };
        let steps = ctc_steps(&output);
        let expected = |numbers: [f32; 3], largest: f32| largest.exp() / numbers.map(f32::exp).iter().sum::<f32>();
        assert_eq!((steps[0].class, steps[1].class), (1, 1));
        assert!((steps[0].probability - expected([1.0, 3.0, 0.0], 3.0)).abs() < 1e-6, "{steps:?}");
        assert!((steps[1].probability - expected([-2.0, 0.5, 0.5], 0.5)).abs() < 1e-6, "{steps:?}");
        assert!((steps[0].space - expected([1.0, 3.0, 0.0], 0.0)).abs() < 1e-6, "{steps:?}");
        assert!((steps[1].space - expected([-2.0, 0.5, 0.5], 0.5)).abs() < 1e-6, "{steps:?}");
    }
}
