//! Split points: positions where a text may be split into chunks, with a rank.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use super::sentence::sentence_starts;
use super::text::{DocumentText, PositionedBlock};
use crate::BlockKind;

/// A position where one chunk may end and the next one begin. Never inside a token or a grapheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitPoint {
    pub(super) at: usize,
    /// Number of tokens before it.
    pub(super) token: usize,
    pub(super) rank: Rank,
}

/// Quality of a split point, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Inside a unit that should not be split.
    Forced,
    /// Between a heading and its table, or between a table header and the first row.
    KeepTogether,
    Sentence,
    /// A table row, a list item, or a line of code.
    Item,
    Paragraph,
    /// A higher value is a more significant heading.
    Heading(u8),
    /// The start of a slide or a sheet. A chunk never extends across it.
    PageStart,
}

/// Returns all split points except forced ones, in order. `tokens` must come from [`clip_tokens`].
pub(super) fn find(text: &DocumentText<'_>, tokens: &[Range<usize>]) -> Vec<SplitPoint> {
    let mut cuts = Vec::new();
    let mut legal = SplitValidator { text: text.as_str(), tokens, passed: 0, last: 0 };
    for (index, placed) in text.blocks.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &text.blocks[before]);
        if let Some(rank) = before.and_then(|before| block_boundary_rank(before, placed)) {
            cuts.extend(legal.split_at(placed.range.start, rank));
        }
        let mut inside = |starts: &mut dyn Iterator<Item = (usize, Rank)>| {
            cuts.extend(starts.filter_map(|(start, rank)| legal.split_at(placed.range.start + start, rank)));
        };
        let block = &placed.block.text;
        match &placed.block.kind {
            BlockKind::Heading { .. } => {}
            BlockKind::Table(_) => {
                let header_end = placed.header.as_ref().map_or(0, |header| header.len());
                let rank = |start: usize| if start <= header_end + 1 { Rank::KeepTogether } else { Rank::Item };
                inside(&mut line_starts(block).map(|start| (start, rank(start))));
            }
            BlockKind::Code => inside(&mut line_starts(block).map(|start| (start, Rank::Item))),
            _ => inside(&mut sentence_starts(block).into_iter().map(|start| (start, Rank::Sentence))),
        }
    }
    cuts
}

/// Clips the tokens to the blocks and drops tokens outside all blocks. Token ends in the result never decrease.
pub(super) fn clip_tokens(text: &DocumentText<'_>, tokens: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::with_capacity(tokens.len());
    let mut blocks = text.blocks.iter().map(|placed| &placed.range).peekable();
    for token in tokens {
        while blocks.next_if(|block| block.end <= token.start).is_some() {}
        let Some(block) = blocks.peek().filter(|block| block.start < token.end) else { continue };
        let (start, end) = (token.start.max(block.start), token.end.min(block.end));
        kept.push(start..kept.last().map_or(end, |last| last.end.max(end)));
    }
    kept
}

/// Maximum bytes of a grapheme. Real graphemes are shorter; a longer one is split between characters.
const MAX_GRAPHEME_BYTES: usize = 1024;

/// Returns the best forced split point: the start of the last word with at most `most` tokens before it, else of the
/// last grapheme, else of the first grapheme beyond. `None` if there is none before the end.
pub(super) fn forced_split(text: &str, tokens: &[Range<usize>], start: SplitPoint, most: usize) -> Option<SplitPoint> {
    let cut = |token: usize| SplitPoint { at: tokens[token].start, token, rank: Rank::Forced };
    let is_between = |token: usize| tokens[token - 1].end <= tokens[token].start;
    let is_legal = |&token: &usize| is_between(token) && is_grapheme_boundary(text, start.at, tokens[token].start);
    let is_character = |&token: &usize| is_between(token) && text.is_char_boundary(tokens[token].start);
    let last = most.min(tokens.len().checked_sub(1)?);
    let first = start.token + 1;
    // A word boundary in the first half would leave the chunk too short.
    let half = start.token + (most - start.token).div_ceil(2);
    let words = (half.max(first)..=last).rev().filter(|&token| is_word_start(text, tokens[token].start));
    let graphemes = || (first..=last).rev();
    let beyond = || first.max(last + 1)..tokens.len();
    let is_near = |at: usize| at - start.at <= MAX_GRAPHEME_BYTES;
    let word = words.into_iter().find(is_legal);
    let near = || beyond().take_while(|&token| is_near(tokens[token].start)).find(is_legal);
    let found = word.or_else(|| graphemes().find(is_legal)).or_else(near);
    if found.is_none() && !is_near(tokens[tokens.len() - 1].end) {
        return graphemes().chain(beyond()).find(is_character).map(cut);
    }
    found.map(cut)
}

pub(super) fn is_word_start(text: &str, at: usize) -> bool {
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let (Some(before), Some(after)) = (before.chars().next_back(), after.chars().next()) else { return true };
    before.is_whitespace() || after.is_whitespace() || is_wide(before) || is_wide(after)
}

/// Validates positions in ascending order, advancing along the tokens.
struct SplitValidator<'a> {
    text: &'a str,
    tokens: &'a [Range<usize>],
    /// Number of tokens that start before the current position.
    passed: usize,
    /// The last accepted position.
    last: usize,
}

impl SplitValidator<'_> {
    fn split_at(&mut self, mut at: usize, rank: Rank) -> Option<SplitPoint> {
        self.passed += self.tokens[self.passed..].iter().take_while(|token| token.start < at).count();
        if self.is_inside_token(at) {
            // Some tokenizers include the space before a word in its token.
            let start = self.tokens[self.passed - 1].start;
            self.passed -= self.tokens[..self.passed].iter().rev().take_while(|token| token.start == start).count();
            let is_space = self.text.get(start..at).is_some_and(|space| space.trim_start().is_empty());
            if !is_space || self.is_inside_token(start) {
                return None;
            }
            at = start;
        }
        if at <= self.last || !is_grapheme_boundary(self.text, self.last, at) {
            return None;
        }
        self.last = at;
        Some(SplitPoint { at, token: self.passed, rank })
    }

    /// Whether the last token that starts before `at` ends after it.
    fn is_inside_token(&self, at: usize) -> bool {
        self.tokens[..self.passed].last().is_some_and(|token| token.end > at)
    }
}

/// The rank of a split between two blocks; `None` if the first must stay with the second.
fn block_boundary_rank(before: &PositionedBlock<'_>, placed: &PositionedBlock<'_>) -> Option<Rank> {
    if placed.starts_page {
        return Some(Rank::PageStart);
    }
    match (&before.block.kind, &placed.block.kind) {
        (BlockKind::Heading { .. }, BlockKind::Table(_)) => Some(Rank::KeepTogether),
        (BlockKind::Heading { .. }, _) => None,
        (_, BlockKind::Heading { level }) => Some(Rank::Heading(u8::MAX - level)),
        (BlockKind::ListItem { .. }, BlockKind::ListItem { .. }) => Some(Rank::Item),
        // A paragraph that continues across a page break.
        (BlockKind::Paragraph, BlockKind::Paragraph) if before.page != placed.page && is_continued(before, placed) => {
            Some(Rank::Sentence)
        }
        _ => Some(Rank::Paragraph),
    }
}

fn is_continued(before: &PositionedBlock<'_>, placed: &PositionedBlock<'_>) -> bool {
    let last = before.block.text.trim_end().chars().next_back();
    let first = placed.block.text.trim_start().chars().next();
    last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '-'))
        && first.is_some_and(char::is_lowercase)
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1).filter(|start| *start < text.len())
}

/// Whether `at` is a grapheme boundary. `known` is an earlier grapheme boundary; text before it is irrelevant.
pub(super) fn is_grapheme_boundary(text: &str, known: usize, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let (text, at) = (&text[known..], at - known);
    // Two ASCII characters are always two graphemes, except CR LF.
    match (text[..at].bytes().next_back(), text[at..].bytes().next()) {
        (Some(before), Some(after)) if before.is_ascii() && after.is_ascii() => (before, after) != (b'\r', b'\n'),
        _ => GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true),
    }
}

/// Characters of scripts without spaces between words: Han, kana, Thai and related scripts.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3000}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}'
        | '\u{20000}'..='\u{3ffff}')
}
