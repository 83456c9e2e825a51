//! Text runs: adjacent glyphs, by text direction.
//!
//! A page may have text in several directions. Each direction is rotated so that its text runs from left to right, and
//! is laid out separately.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::bidi::is_right_to_left;
use super::glyphs::{Glyph, PageContent};

/// Minimum gap between fragments, relative to the font size; a narrower gap at most separates words.
const MAX_RUN_GAP: f32 = 0.8;
/// Maximum offset of duplicate letters, which are drawn twice for a bold or shadow effect.
const MAX_DUPLICATE_OFFSET: f32 = 0.12;

/// All text of one direction.
#[derive(Debug, Default)]
pub(super) struct DirectionalText<'a> {
    /// In degrees, clockwise.
    pub(super) turn: i16,
    /// The text of the page.
    pub(super) text: &'a str,
    pub(super) letters: Vec<PositionedLetter>,
    pub(super) fragments: Vec<TextRun>,
}

/// A glyph in the rotated page.
#[derive(Debug, Clone, Copy)]
pub(super) struct PositionedLetter {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) space: bool,
}

/// Letters on one baseline without a large gap.
#[derive(Debug, Clone)]
pub(super) struct TextRun {
    /// Index into the letters of the side.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) x0: f32,
    pub(super) x1: f32,
    /// Baseline, measured downwards.
    pub(super) y: f32,
    pub(super) size: f32,
    pub(super) bold: Option<bool>,
    pub(super) mono: bool,
    pub(super) artifact: bool,
    pub(super) right_to_left: bool,
    /// Whether it contains drawn spaces, so that they need not be inferred from gaps.
    pub(super) spaced: bool,
}

impl TextRun {
    pub(super) fn top(&self) -> f32 {
        self.y - 0.8 * self.size
    }

    pub(super) fn bottom(&self) -> f32 {
        self.y + 0.2 * self.size
    }
}

impl DirectionalText<'_> {
    pub(super) fn words(&self, letter: &PositionedLetter) -> &str {
        &self.text[letter.start as usize..letter.end as usize]
    }
}

/// The text of a page by direction, the dominant direction first.
pub(super) fn by_direction(drawing: &PageContent) -> Vec<DirectionalText<'_>> {
    let mut turns: Vec<(i16, Vec<&Glyph>)> = Vec::new();
    for glyph in drawing.glyphs.iter().filter(|glyph| glyph.end > glyph.start) {
        let turn = snap_angle(glyph.turn);
        match turns.iter_mut().find(|(known, _)| *known == turn) {
            Some((_, glyphs)) => glyphs.push(glyph),
            None => turns.push((turn, vec![glyph])),
        }
    }
    turns.sort_by_key(|(turn, glyphs)| (std::cmp::Reverse(glyphs.len()), *turn));
    turns.into_iter().map(|(turn, glyphs)| side(&drawing.text, turn, &glyphs)).collect()
}

/// Scans are slightly skewed; this is not a separate direction.
fn snap_angle(turn: i16) -> i16 {
    let quarter = (turn + 45).rem_euclid(360) / 90 * 90;
    if (turn - quarter).abs() <= 3 || turn >= 357 { quarter } else { turn }
}

fn side<'a>(text: &'a str, turn: i16, glyphs: &[&Glyph]) -> DirectionalText<'a> {
    let mut side = DirectionalText { turn, text, letters: Vec::with_capacity(glyphs.len()), fragments: Vec::new() };
    let (sine, cosine) = f32::from(turn).to_radians().sin_cos();
    let mut open = false;
    let mut places = DrawnLetters(HashMap::with_capacity_and_hasher(glyphs.len(), FixedState::default()));
    for glyph in glyphs {
        let x = glyph.x * cosine + glyph.y * sine;
        let y = glyph.y * cosine - glyph.x * sine;
        let words = &text[glyph.start as usize..glyph.end as usize];
        let space = words.trim_start().is_empty();
        let letter =
            PositionedLetter { start: glyph.start, end: glyph.end, x0: x, x1: x + glyph.advance.max(0.0), space };
        if !space && places.insert(words, &letter, y, glyph.size) {
            continue;
        }
        let right_to_left = words.chars().next().is_some_and(is_right_to_left);
        let fragment = if open { side.fragments.last_mut() } else { None };
        match fragment {
            Some(fragment) if continues_run(fragment, &letter, glyph, y, right_to_left) => {
                side.letters.push(letter);
                fragment.last += 1;
                fragment.right_to_left |= right_to_left;
                fragment.bold = fragment.bold.or(glyph.bold);
                if space {
                    fragment.spaced = true;
                } else {
                    fragment.x1 = fragment.x1.max(letter.x1);
                    fragment.x0 = fragment.x0.min(letter.x0);
                }
            }
            _ if space => open = false,
            _ => {
                open = true;
                side.letters.push(letter);
                side.fragments.push(TextRun {
                    first: side.letters.len() - 1,
                    last: side.letters.len(),
                    x0: letter.x0,
                    x1: letter.x1,
                    y,
                    size: glyph.size,
                    bold: glyph.bold,
                    mono: glyph.mono,
                    artifact: glyph.artifact,
                    right_to_left,
                    spaced: false,
                });
            }
        }
    }
    side
}

fn continues_run(fragment: &TextRun, letter: &PositionedLetter, glyph: &Glyph, y: f32, right_to_left: bool) -> bool {
    let size = fragment.size.max(glyph.size);
    let gap = letter.x0 - fragment.x1;
    let back = if right_to_left || fragment.right_to_left { 0.2 } else { 0.7 };
    (y - fragment.y).abs() <= 0.08 * size
        && gap <= MAX_RUN_GAP * size
        && gap >= -back * size
        && fragment.size.min(glyph.size) >= 0.8 * size
        && (fragment.bold == glyph.bold || fragment.bold.is_none() || glyph.bold.is_none())
        && fragment.artifact == glyph.artifact
}

/// Positions of drawn letters, for deduplication. The same letter at almost the same position is drawn twice for a bold
/// or shadow effect, or again as a search layer.
#[derive(Debug)]
struct DrawnLetters(HashMap<(u32, i32, i32), (f32, f32), FixedState>);

impl DrawnLetters {
    /// Whether the letter was already drawn; records it.
    fn insert(&mut self, words: &str, letter: &PositionedLetter, y: f32, size: f32) -> bool {
        // Narrow letters may repeat, as in `ill`.
        let near = (MAX_DUPLICATE_OFFSET * size).min(0.4 * (letter.x1 - letter.x0)).max(0.05);
        let first = words.chars().next().map_or(0, u32::from);
        let (column, row) = (letter.x0 / (2.0 * near), y / (2.0 * near));
        let beside = |at: f32| {
            let cell = at.floor();
            (cell as i32, cell as i32 + if at - cell < 0.5 { -1 } else { 1 })
        };
        let ((column, other_column), (row, other_row)) = (beside(column), beside(row));
        let cells = [(column, row), (other_column, row), (column, other_row), (other_column, other_row)];
        let known = cells.iter().any(|(column, row)| {
            let place = self.0.get(&(first, *column, *row));
            place.is_some_and(|place| (place.0 - letter.x0).abs() <= near && (place.1 - y).abs() <= near)
        });
        self.0.insert((first, column, row), (letter.x0, y));
        known
    }
}
