//! Splits the text of a document into chunks of a maximum number of tokens.
//!
//! This module has no tokenizer. The caller passes the token ranges, computed in one pass over the whole text, and this
//! module only counts them. Its running time is therefore linear, and the token count of a chunk is exact.
//!
//! A chunk ends at the best split point in its second half: before a heading, else a paragraph, else a row, an item or
//! a line, else a sentence. It ends in its first half if the second half has no split point. Only a unit larger than a
//! whole chunk is split inside, between words, else between graphemes. Headings stay with the content that follows
//! them. A chunk never extends from one slide or sheet to the next.
//!
//! A chunk that continues a section begins with the last sentences of the previous chunk (the overlap), or with the
//! last words of a sentence too long to repeat. A chunk that continues a table begins with the table header instead.
//! The overlap is omitted if it would force a split inside a sentence or a row.
//!
//! The byte size of a chunk is bounded only by its tokens: [`bound_tokens`] bounds their length.
//!
//! Furniture is left out: it is on every page and would match every query. A file that contains only furniture keeps
//! it.
//!
//! ```
//! use corbie_extract::chunk::{self, DocumentText, Settings};
//! use corbie_extract::{Block, Page};
//!
//! let page = Page { number: 1, blocks: vec![Block::paragraph("One two. Three four.")], ..Page::default() };
//! let pages = [page];
//! let text = DocumentText::of(&pages);
//! let tokens = [0..3, 4..7, 7..8, 9..14, 15..19, 19..20];
//! let chunks = chunk::pack(&text, &tokens, Settings { size: 3, overlap: 0 });
//! assert_eq!(chunks[1].text, "Three four.");
//! ```

mod bound_tokens;
mod sentence;
mod split_points;
mod text;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use bound_tokens::{MAX_TOKEN_BYTES, bound_tokens};
pub use sentence::sentence_starts;
use split_points::{Rank, SplitPoint};
pub use text::DocumentText;

/// Chunk size and overlap, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Maximum tokens per chunk, including overlap or header. Only a single token or grapheme that is larger may exceed
    /// it.
    pub size: usize,
    /// Maximum tokens repeated from the previous chunk. Capped at half the chunk size.
    pub overlap: usize,
}

/// A chunk of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The text of its spans, separated by an empty line where text between them was left out.
    pub text: String,
    pub tokens: usize,
    /// The first and the last page of its new text.
    pub pages: (u32, u32),
    /// The headings above its start, outermost first, and the heading it begins with. Very long headings are truncated.
    pub path: Vec<String>,
    /// In text order. The new spans of all chunks together cover all text of the document.
    pub spans: Vec<Span>,
}

/// A range of text on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub role: SpanRole,
    pub page: u32,
    /// In bytes of [`Page::text`](crate::Page::text).
    pub in_page: Range<usize>,
    /// In bytes of [`Document::text`](crate::Document::text).
    pub in_document: Range<usize>,
    /// In bytes of [`Chunk::text`].
    pub in_chunk: Range<usize>,
}

/// Why a span is in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanRole {
    /// Text that is in no earlier chunk.
    New,
    /// The end of the previous chunk.
    Overlap,
    /// The header of a continued table.
    Header,
}

/// Maximum bytes of a heading in a path, because every chunk below the heading repeats it.
const MAX_HEADING_BYTES: usize = 1024;

/// Splits a text into chunks. `tokens` are byte ranges of the text in ascending order.
pub fn pack(text: &DocumentText<'_>, tokens: &[Range<usize>], settings: Settings) -> Vec<Chunk> {
    let tokens = split_points::clip_tokens(text, tokens);
    let (Some(first), Some(last)) = (text.blocks.first(), text.blocks.last()) else { return Vec::new() };
    if tokens.is_empty() {
        return Vec::new();
    }
    let mut packer = Packer {
        cuts: split_points::find(text, &tokens),
        end: SplitPoint { at: last.range.end, token: tokens.len(), rank: Rank::Heading(u8::MAX) },
        size: settings.size.max(1),
        overlap: settings.overlap.min(settings.size / 2),
        next: 0,
        text,
        tokens,
    };
    let mut chunks = Vec::new();
    let (mut before, mut start) = (0, SplitPoint { at: first.range.start, token: 0, rank: Rank::Heading(u8::MAX) });
    while start.at < packer.end.at {
        let (lead, end) = packer.chunk(before, start);
        chunks.push(packer.build_chunk(lead, start, end));
        (before, start) = (start.at, end);
    }
    chunks
}

// === impl ===

impl Default for Settings {
    fn default() -> Settings {
        Settings { size: 500, overlap: 50 }
    }
}

/// Repeated text at the start of a chunk.
#[derive(Debug, Clone)]
struct RepeatedPrefix {
    role: SpanRole,
    at: Range<usize>,
    tokens: usize,
}

struct Packer<'a> {
    text: &'a DocumentText<'a>,
    /// Only tokens inside blocks.
    tokens: Vec<Range<usize>>,
    cuts: Vec<SplitPoint>,
    /// Index of the first split point after the start of the chunk.
    next: usize,
    end: SplitPoint,
    size: usize,
    overlap: usize,
}

impl Packer<'_> {
    /// Computes the chunk that begins at `start`; `before` is the start of the previous chunk.
    fn chunk(&mut self, before: usize, start: SplitPoint) -> (Option<RepeatedPrefix>, SplitPoint) {
        self.next += self.cuts[self.next..].iter().take_while(|cut| cut.at <= start.at).count();
        let lead = self.header(start).or_else(|| self.overlap(before, start));
        let bare = || self.best_split(start, self.size);
        let Some(lead) = lead else { return (None, bare()) };
        let end = self.best_split(start, self.size - lead.tokens);
        let is_too_long = end.token - start.token + lead.tokens > self.size;
        if is_too_long || (end.rank == Rank::Forced && bare().rank != Rank::Forced) {
            return (None, bare());
        }
        (Some(lead), end)
    }

    /// The best end of a chunk with room for `room` new tokens.
    fn best_split(&self, start: SplitPoint, room: usize) -> SplitPoint {
        let most = start.token + room;
        let later = &self.cuts[self.next..];
        let within = &later[..later.partition_point(|cut| cut.token <= most)];
        // A slide without tokens has no chunk of its own.
        let page_end = within.iter().find(|cut| cut.rank == Rank::PageStart && cut.token > start.token);
        if let Some(page_end) = page_end {
            return *page_end;
        }
        if self.end.token <= most {
            return self.end;
        }
        let (first_half, second_half) =
            within.split_at(within.partition_point(|cut| cut.token < start.token + room.div_ceil(2)));
        let best = second_half.iter().filter(|cut| cut.rank > Rank::KeepTogether).max_by_key(|cut| cut.rank);
        // Some text has no tokens, but every chunk needs at least one.
        let mut early = first_half.iter().rev().take_while(|cut| cut.token > start.token);
        let best = best.or_else(|| early.find(|cut| cut.rank > Rank::KeepTogether));
        let best = best.or_else(|| within.last().filter(|cut| cut.token > start.token));
        let forced = || split_points::forced_split(self.text.as_str(), &self.tokens, start, most);
        best.copied().or_else(forced).unwrap_or(self.end)
    }

    /// The header of the table that a chunk continues. A header that takes more than half of a chunk is not repeated.
    fn header(&self, start: SplitPoint) -> Option<RepeatedPrefix> {
        let at = self.text.block_at(start.at).header.clone().filter(|header| header.end < start.at)?;
        let tokens = self.token_at(at.end) - self.token_at(at.start);
        (tokens * 2 <= self.size).then_some(RepeatedPrefix { role: SpanRole::Header, at, tokens })
    }

    /// The end of the previous chunk, limited to the same section and to text outside tables.
    fn overlap(&self, before: usize, start: SplitPoint) -> Option<RepeatedPrefix> {
        let (block, block_before) = (self.text.block_at(start.at), self.text.block_at(start.at.checked_sub(1)?));
        if self.overlap == 0 || block.starts_page || block.is_heading() || block_before.is_table() {
            return None;
        }
        let least = start.token.saturating_sub(self.overlap);
        let earlier = &self.cuts[..self.cuts.partition_point(|cut| cut.at < start.at)];
        let whole = earlier.iter().rev().take_while(|cut| {
            let placed = self.text.block_at(cut.at);
            cut.token >= least && cut.at > before && !placed.is_heading() && !placed.is_table()
        });
        let sentence = whole.last().filter(|cut| cut.token < start.token).map(|cut| (cut.at, cut.token));
        // Inside a long sentence: its last words.
        let words = || {
            let text = self.text.as_str();
            let mut starts = (least.max(1)..start.token).map(|token| (self.tokens[token].start, token));
            starts.find(|&(at, token)| {
                at > before.max(block.range.start)
                    && self.tokens[token - 1].end <= at
                    && split_points::is_word_start(text, at)
                    && split_points::is_grapheme_boundary(text, block.range.start, at)
            })
        };
        let (at, token) = sentence.or_else(words)?;
        Some(RepeatedPrefix { role: SpanRole::Overlap, at: at..start.at, tokens: start.token - token })
    }

    fn token_at(&self, at: usize) -> usize {
        self.tokens.partition_point(|token| token.start < at)
    }

    fn build_chunk(&self, lead: Option<RepeatedPrefix>, start: SplitPoint, end: SplitPoint) -> Chunk {
        let first = self.text.block_at(start.at);
        let mut chunk = Chunk {
            text: String::new(),
            tokens: end.token - start.token,
            pages: (first.page, first.page),
            path: first.block.path.iter().map(|heading| truncate_heading(heading)).collect(),
            spans: Vec::new(),
        };
        if first.is_heading() {
            chunk.path.push(truncate_heading(&first.block.text));
        }
        if let Some(lead) = lead {
            chunk.tokens += lead.tokens;
            self.add(&mut chunk, lead.role, lead.at);
        }
        self.add(&mut chunk, SpanRole::New, start.at..end.at);
        let new = || chunk.spans.iter().filter(|span| span.role == SpanRole::New).map(|span| span.page);
        chunk.pages = (new().next().unwrap_or(first.page), new().next_back().unwrap_or(first.page));
        chunk.text.truncate(chunk.text.trim_end().len());
        let end = chunk.text.len();
        for span in &mut chunk.spans {
            span.in_chunk = span.in_chunk.start.min(end)..span.in_chunk.end.min(end);
        }
        chunk
    }

    /// Adds the text of the blocks in a range: one span for each run without furniture or page break.
    fn add(&self, chunk: &mut Chunk, role: SpanRole, range: Range<usize>) {
        for (placed, part) in self.text.parts(range) {
            let between = match chunk.spans.last() {
                None => "",
                Some(last) if last.in_document.end == part.start => "",
                Some(last) if last.role == SpanRole::Header && role == SpanRole::New => "\n",
                Some(_) => text::BETWEEN_BLOCKS,
            };
            let from = placed.page_start;
            let in_page = part.start - from..part.end - from;
            chunk.text += between;
            let start = chunk.text.len();
            chunk.text += &self.text.as_str()[part.clone()];
            let in_chunk = start..chunk.text.len();
            match chunk.spans.last_mut() {
                // Only the empty line separates them.
                Some(last)
                    if last.role == role
                        && last.page == placed.page
                        && last.in_document.end + text::BETWEEN_BLOCKS.len() == part.start =>
                {
                    (last.in_page.end, last.in_document.end) = (in_page.end, part.end);
                    last.in_chunk.end = in_chunk.end;
                }
                _ => chunk.spans.push(Span { role, page: placed.page, in_page, in_document: part, in_chunk }),
            }
        }
    }
}

/// A heading truncated to the maximum length in a path.
fn truncate_heading(heading: &str) -> String {
    heading[..heading.floor_char_boundary(MAX_HEADING_BYTES)].to_owned()
}
