//! Builds lines of text from adjacent fragments.

use super::accents;
use super::bidi;
use super::text_runs::{DirectionalText, PositionedLetter, TextRun};

/// Minimum gap of a space, relative to the font size.
const MIN_SPACE_GAP: f32 = 0.15;
/// The same, in fragments with drawn spaces.
const MIN_EXTRA_SPACE_GAP: f32 = 0.2;
/// Minimum length of words that are not units of measurement.
const MIN_WORD_LETTERS: usize = 3;

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextLine {
    pub(super) text: String,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) y: f32,
    /// Font size of most of its letters.
    pub(super) size: f32,
    pub(super) bold: bool,
    pub(super) mono: bool,
    pub(super) artifact: bool,
}

/// Builds a line from fragments in left-to-right order.
pub(super) fn line(side: &DirectionalText<'_>, fragments: &[&TextRun]) -> TextLine {
    let main = fragments.iter().max_by_key(|fragment| fragment.last - fragment.first);
    let letters = |wanted: &dyn Fn(&TextRun) -> bool| -> usize {
        fragments.iter().filter(|fragment| wanted(fragment)).map(|fragment| fragment.last - fragment.first).sum()
    };
    let all = letters(&|_| true);
    let text = if fragments.iter().any(|fragment| fragment.right_to_left) {
        right_to_left(side, fragments)
    } else {
        left_to_right(side, fragments)
    };
    TextLine {
        text,
        x0: fragments.iter().map(|fragment| fragment.x0).fold(f32::INFINITY, f32::min),
        x1: fragments.iter().map(|fragment| fragment.x1).fold(f32::NEG_INFINITY, f32::max),
        y: main.map_or(0.0, |fragment| fragment.y),
        size: main.map_or(0.0, |fragment| fragment.size),
        bold: 5 * letters(&|fragment| fragment.bold == Some(true)) > 4 * all,
        mono: 5 * letters(&|fragment| fragment.mono) > 4 * all,
        artifact: letters(&|fragment| fragment.artifact) == all,
    }
}

fn left_to_right(side: &DirectionalText<'_>, fragments: &[&TextRun]) -> String {
    let mut text = String::new();
    let mut end: Option<&TextRun> = None;
    for fragment in fragments {
        if let Some(end) = end
            && (fragment.x0 - end.x1 > MIN_SPACE_GAP * end.size.min(fragment.size)
                || is_note_reference(side, &text, end, fragment))
        {
            push_space(&mut text);
        }
        let widest = widest_in_a_word(side, fragment);
        let mut before: Option<&PositionedLetter> = None;
        for letter in &side.letters[fragment.first..fragment.last] {
            let gap = before.map_or(0.0, |before| letter.x0 - before.x1);
            if letter.space || gap > widest {
                push_space(&mut text);
            }
            if !letter.space {
                push_letter(&mut text, side, before, letter);
                before = Some(letter);
            }
        }
        let ends_with_space = side.letters[fragment.last - 1].space;
        if ends_with_space {
            push_space(&mut text);
        }
        end = Some(fragment);
    }
    text.truncate(text.trim_end().len());
    text
}

/// Whether one of two fragments is a superscript footnote number after a word or number. The 2 of m² is a superscript
/// too, so only words longer than a unit can have footnotes.
fn is_note_reference(side: &DirectionalText<'_>, text: &str, before: &TextRun, after: &TextRun) -> bool {
    let is_raised = |note: &TextRun, beside: &TextRun| {
        note.size < 0.85 * beside.size && beside.y - note.y > 0.15 * beside.size && note.last - note.first <= 3
    };
    let letters = |fragment: &TextRun| &side.letters[fragment.first..fragment.last];
    let starts_with = |fragment: &TextRun, count: usize, is_wanted: fn(char) -> bool| {
        let letters = letters(fragment);
        letters.len() >= count && letters.iter().take(count).all(|letter| side.words(letter).chars().all(is_wanted))
    };
    let is_digit = |letter: char| letter.is_ascii_digit();
    if is_raised(after, before) && starts_with(after, 1, is_digit) {
        let word = text.rsplit(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default();
        return text.ends_with(is_digit) || word.chars().count() >= MIN_WORD_LETTERS;
    }
    is_raised(before, after)
        && starts_with(before, before.last - before.first, is_digit)
        && starts_with(after, MIN_WORD_LETTERS, char::is_alphabetic)
}

/// Appends a letter; composes it with the previous one if one of them is an accent.
fn push_letter(
    text: &mut String,
    side: &DirectionalText<'_>,
    before: Option<&PositionedLetter>,
    letter: &PositionedLetter,
) {
    let words = side.words(letter);
    if let Some(before) = before.filter(|before| accents::is_over(before, letter) && !text.ends_with(' ')) {
        let (mark, base) = match accents::mark(words) {
            Some(mark) => (Some(mark), text.chars().next_back()),
            None => (accents::mark(side.words(before)), words.chars().next()),
        };
        if let (Some(mark), Some(base)) = (mark, base)
            && let Some(accented) = accents::accented(base, mark)
        {
            text.pop();
            text.push_str(&accented);
            if accents::mark(words).is_none() {
                text.push_str(&words[base.len_utf8()..]);
            }
            return;
        }
    }
    text.push_str(words);
}

/// Sorts the letters of the line by position: files draw right-to-left text in either order.
fn right_to_left(side: &DirectionalText<'_>, fragments: &[&TextRun]) -> String {
    let size = fragments.iter().map(|fragment| fragment.size).fold(0.0, f32::max);
    let mut letters: Vec<&PositionedLetter> =
        fragments.iter().flat_map(|fragment| &side.letters[fragment.first..fragment.last]).collect();
    letters.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let mut pieces: Vec<String> = Vec::with_capacity(letters.len());
    let mut end: Option<f32> = None;
    for letter in letters {
        let words = side.words(letter);
        let gap = end.map_or(0.0, |end| letter.x0 - end);
        let is_space = pieces.last().is_some_and(|piece| piece == " ");
        if letter.space {
            if !is_space {
                pieces.push(" ".to_owned());
            }
            continue;
        }
        // A mark above a letter must stay with it when letters are reordered.
        if is_mark(words)
            && let Some(base) = pieces.last_mut().filter(|_| !is_space)
        {
            base.push_str(words);
            continue;
        }
        if gap > MIN_SPACE_GAP * size && !is_space {
            pieces.push(" ".to_owned());
        }
        pieces.push(words.to_owned());
        end = Some(end.map_or(letter.x1, |end| end.max(letter.x1)));
    }
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    bidi::logical(&pieces).trim().to_owned()
}

/// Maximum gap inside a word. Letters may be spaced out; only wider gaps separate words.
fn widest_in_a_word(side: &DirectionalText<'_>, fragment: &TextRun) -> f32 {
    let part = if fragment.spaced { MIN_EXTRA_SPACE_GAP } else { MIN_SPACE_GAP };
    let letters = &side.letters[fragment.first..fragment.last];
    let mut gaps: Vec<f32> = letters.windows(2).map(|pair| pair[1].x0 - pair[0].x1).collect();
    if gaps.len() < 6 {
        return part * fragment.size;
    }
    let middle = gaps.len() / 2;
    let usual = *gaps.select_nth_unstable_by(middle, f32::total_cmp).1;
    part * fragment.size + usual.max(0.0)
}

fn push_space(text: &mut String) {
    if !text.is_empty() && !text.ends_with(' ') {
        text.push(' ');
    }
}

/// Combining vowel signs and accents.
fn is_mark(words: &str) -> bool {
    let is_mark = |letter: char| {
        matches!(letter, '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}'..='\u{5c7}'
            | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6ed}')
    };
    !words.is_empty() && words.chars().all(is_mark)
}
