//! Where a text may be cut, and how well.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

use super::sentence::sentence_starts;
use super::text::{Placed, Text};
use crate::Kind;

/// A place where a chunk may end and the next one begin. Never inside a token or a grapheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: usize,
    /// How many tokens are before it.
    pub(super) token: usize,
    pub(super) rank: Rank,
}

/// How well a text can be cut; the last is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Inside of something that should not be cut at all.
    Forced,
    /// Between a heading and its table, or the header of a table and its first row.
    Stuck,
    Sentence,
    /// A row of a table, an item of a list, a line of code.
    Item,
    Paragraph,
    /// Higher is further out.
    Heading(u8),
}

/// All places but forced ones, in order. `tokens` are those of [`kept`].
pub(super) fn find(text: &Text<'_>, tokens: &[Range<usize>]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut legal = Legal { text: text.as_str(), tokens, passed: 0, last: 0 };
    for (index, placed) in text.blocks.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &text.blocks[before]);
        if let Some(rank) = before.and_then(|before| between(before, placed)) {
            cuts.extend(legal.cut(placed.at.start, rank));
        }
        let mut inside = |starts: &mut dyn Iterator<Item = (usize, Rank)>| {
            cuts.extend(starts.filter_map(|(start, rank)| legal.cut(placed.at.start + start, rank)));
        };
        let block = &placed.block.text;
        match &placed.block.kind {
            Kind::Heading { .. } => {}
            Kind::Table(_) => {
                let header_end = placed.header.as_ref().map_or(0, |header| header.len());
                let rank = |start: usize| if start <= header_end + 1 { Rank::Stuck } else { Rank::Item };
                inside(&mut line_starts(block).map(|start| (start, rank(start))));
            }
            Kind::Code => inside(&mut line_starts(block).map(|start| (start, Rank::Item))),
            _ => inside(&mut sentence_starts(block).into_iter().map(|start| (start, Rank::Sentence))),
        }
    }
    cuts
}

/// The tokens that lie in blocks, or their parts that do, none of which ends before the one that begins before it.
pub(super) fn kept(text: &Text<'_>, tokens: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut kept: Vec<Range<usize>> = Vec::with_capacity(tokens.len());
    let mut blocks = text.blocks.iter().map(|placed| &placed.at).peekable();
    for token in tokens {
        while blocks.next_if(|block| block.end <= token.start).is_some() {}
        let Some(block) = blocks.peek().filter(|block| block.start < token.end) else { continue };
        let (start, end) = (token.start.max(block.start), token.end.min(block.end));
        kept.push(start..kept.last().map_or(end, |last| last.end.max(end)));
    }
    kept
}

/// The most bytes of a grapheme. One with more marks than that is nobody's letter, and is cut between characters.
const LONGEST_GRAPHEME: usize = 1024;

/// The best place to force: the beginning of the last word with at most `most` tokens before it, else of the last
/// grapheme, else of the first one beyond. `None` where there is none up to the end.
pub(super) fn force(text: &str, tokens: &[Range<usize>], start: Cut, most: usize) -> Option<Cut> {
    let cut = |token: usize| Cut { at: tokens[token].start, token, rank: Rank::Forced };
    let is_between = |token: usize| tokens[token - 1].end <= tokens[token].start;
    let is_legal = |&token: &usize| is_between(token) && is_grapheme_boundary(text, start.at, tokens[token].start);
    let is_character = |&token: &usize| is_between(token) && text.is_char_boundary(tokens[token].start);
    let last = most.min(tokens.len().checked_sub(1)?);
    let first = start.token + 1;
    // Far back for a word would leave a chunk too empty.
    let half = start.token + (most - start.token).div_ceil(2);
    let words = (half.max(first)..=last).rev().filter(|&token| is_word_start(text, tokens[token].start));
    let graphemes = || (first..=last).rev();
    let beyond = || first.max(last + 1)..tokens.len();
    let is_near = |at: usize| at - start.at <= LONGEST_GRAPHEME;
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

/// Checks places in ascending order, along the tokens.
struct Legal<'a> {
    text: &'a str,
    tokens: &'a [Range<usize>],
    /// How many tokens begin before the place.
    passed: usize,
    /// The last place that was good.
    last: usize,
}

impl Legal<'_> {
    fn cut(&mut self, mut at: usize, rank: Rank) -> Option<Cut> {
        self.passed += self.tokens[self.passed..].iter().take_while(|token| token.start < at).count();
        if self.is_inside_token(at) {
            // Some tokenizers put the space before a word into its token.
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
        Some(Cut { at, token: self.passed, rank })
    }

    /// Whether the last token that begins before `at` ends behind it.
    fn is_inside_token(&self, at: usize) -> bool {
        self.tokens[..self.passed].last().is_some_and(|token| token.end > at)
    }
}

/// How well two blocks can be parted; `None` where the first wants the second.
fn between(before: &Placed<'_>, placed: &Placed<'_>) -> Option<Rank> {
    if placed.opens {
        return Some(Rank::Heading(u8::MAX));
    }
    match (&before.block.kind, &placed.block.kind) {
        (Kind::Heading { .. }, Kind::Table(_)) => Some(Rank::Stuck),
        (Kind::Heading { .. }, _) => None,
        (_, Kind::Heading { level }) => Some(Rank::Heading(u8::MAX - level)),
        (Kind::ListItem { .. }, Kind::ListItem { .. }) => Some(Rank::Item),
        // A paragraph that the end of a page cuts in two.
        (Kind::Paragraph, Kind::Paragraph) if before.page != placed.page && goes_on(before, placed) => {
            Some(Rank::Sentence)
        }
        _ => Some(Rank::Paragraph),
    }
}

fn goes_on(before: &Placed<'_>, placed: &Placed<'_>) -> bool {
    let last = before.block.text.trim_end().chars().next_back();
    let first = placed.block.text.trim_start().chars().next();
    last.is_some_and(|last| last.is_alphanumeric() || matches!(last, ',' | '-'))
        && first.is_some_and(char::is_lowercase)
}

fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| at + 1).filter(|start| *start < text.len())
}

/// Whether `at` parts two graphemes. `known` is a place before it that does: what is before that matters not.
pub(super) fn is_grapheme_boundary(text: &str, known: usize, at: usize) -> bool {
    if !text.is_char_boundary(at) {
        return false;
    }
    let (text, at) = (&text[known..], at - known);
    // Two ASCII characters are two graphemes but for a line break of two.
    match (text[..at].bytes().next_back(), text[at..].bytes().next()) {
        (Some(before), Some(after)) if before.is_ascii() && after.is_ascii() => (before, after) != (b'\r', b'\n'),
        _ => GraphemeCursor::new(at, text.len(), true).is_boundary(text, 0).unwrap_or(true),
    }
}

/// Scripts that put no space between words: Han, kana, Thai and their neighbours.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3000}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}'
        | '\u{20000}'..='\u{3ffff}')
}
