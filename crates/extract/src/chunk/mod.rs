//! Cuts the text of a document into chunks of so many tokens.
//!
//! Knows no tokenizer: it is told where the tokens stand, found in one pass over the whole text, and only counts. So its
//! time is linear, and a chunk has exactly as many tokens as it says.
//!
//! A chunk ends at the best place in its second half: before a heading, else a paragraph, else a row, an item or a
//! line, else a sentence; in its first half where there is none in the second. Only what is larger than a chunk by
//! itself is cut inside, between words, else graphemes. Headings stay with what follows them.
//!
//! A chunk that goes on in the middle of a section begins with the last sentences of the one before it, or the last words
//! of a sentence too long to repeat; one that goes on in the middle of a table begins with the table's header instead. A
//! sentence or a row that would be cut only because of that goes without.
//!
//! A chunk has no bound of bytes but by its tokens: [`parted`] sees to it that these have one.
//!
//! Furniture is left out: said on every page, it would be found for every query. A file with nothing else keeps it.
//!
//! ```
//! use corbie_extract::chunk::{self, Settings, Text};
//! use corbie_extract::{Block, Page};
//!
//! let page = Page { number: 1, blocks: vec![Block::paragraph("One two. Three four.")], ..Page::default() };
//! let pages = [page];
//! let text = Text::of(&pages);
//! let tokens = [0..3, 4..7, 7..8, 9..14, 15..19, 19..20];
//! let chunks = chunk::pack(&text, &tokens, Settings { size: 3, overlap: 0 });
//! assert_eq!(chunks[1].text, "Three four.");
//! ```

mod cuts;
mod parted;
mod sentence;
mod text;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use cuts::{Cut, Rank};
pub use parted::{LONGEST_TOKEN, parted};
pub use sentence::sentence_starts;
pub use text::Text;

/// How large chunks are, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// No chunk has more, what is repeated at its beginning included, but for a single token or grapheme that has.
    pub size: usize,
    /// No chunk repeats more of the one before it. At most half a chunk counts.
    pub overlap: usize,
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// What its spans say, parted by an empty line where something was left out between them.
    pub text: String,
    pub tokens: usize,
    /// The first page and the last of what is new in it.
    pub pages: (u32, u32),
    /// The headings its beginning stands under, outermost first, and the heading it begins with. Very long ones are cut.
    pub path: Vec<String>,
    /// In the order of its text. Those that are new, of all chunks together, are all text of the document.
    pub spans: Vec<Span>,
}

/// A run of text on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub role: Role,
    pub page: u32,
    /// In bytes of [`Page::text`](crate::Page::text).
    pub in_page: Range<usize>,
    /// In bytes of [`Document::text`](crate::Document::text).
    pub in_document: Range<usize>,
}

/// Why a span is in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It is in no chunk before.
    New,
    /// The end of the chunk before.
    Overlap,
    /// The header of the table that goes on.
    Header,
}

/// The most bytes of a heading in a path: it is repeated in every chunk below it.
const LONGEST_HEADING: usize = 1024;

/// Cuts a text. `tokens` are places in it, in ascending order.
pub fn pack(text: &Text<'_>, tokens: &[Range<usize>], settings: Settings) -> Vec<Chunk> {
    let tokens = cuts::kept(text, tokens);
    let (Some(first), Some(last)) = (text.blocks.first(), text.blocks.last()) else { return Vec::new() };
    if tokens.is_empty() {
        return Vec::new();
    }
    let mut packer = Packer {
        cuts: cuts::find(text, &tokens),
        end: Cut { at: last.at.end, token: tokens.len(), rank: Rank::Heading(u8::MAX) },
        size: settings.size.max(1),
        overlap: settings.overlap.min(settings.size / 2),
        next: 0,
        text,
        tokens,
    };
    let mut chunks = Vec::new();
    let (mut before, mut start) = (0, Cut { at: first.at.start, token: 0, rank: Rank::Heading(u8::MAX) });
    while start.at < packer.end.at {
        let (lead, end) = packer.chunk(before, start);
        chunks.push(packer.written(lead, start, end));
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

/// What a chunk begins with that is not new.
#[derive(Debug, Clone)]
struct Lead {
    role: Role,
    at: Range<usize>,
    tokens: usize,
}

struct Packer<'a> {
    text: &'a Text<'a>,
    /// Those in blocks.
    tokens: Vec<Range<usize>>,
    cuts: Vec<Cut>,
    /// The first cut after the beginning of the chunk.
    next: usize,
    end: Cut,
    size: usize,
    overlap: usize,
}

impl Packer<'_> {
    /// The chunk that begins at `start`; `before` is the beginning of the one before it.
    fn chunk(&mut self, before: usize, start: Cut) -> (Option<Lead>, Cut) {
        self.next += self.cuts[self.next..].iter().take_while(|cut| cut.at <= start.at).count();
        let lead = self.header(start).or_else(|| self.overlap(before, start));
        let bare = || self.cut(start, self.size);
        let Some(lead) = lead else { return (None, bare()) };
        let end = self.cut(start, self.size - lead.tokens);
        let is_too_long = end.token - start.token + lead.tokens > self.size;
        if is_too_long || (end.rank == Rank::Forced && bare().rank != Rank::Forced) {
            return (None, bare());
        }
        (Some(lead), end)
    }

    /// The best place to end a chunk with `room` for new tokens.
    fn cut(&self, start: Cut, room: usize) -> Cut {
        let most = start.token + room;
        if self.end.token <= most {
            return self.end;
        }
        let later = &self.cuts[self.next..];
        let within = &later[..later.partition_point(|cut| cut.token <= most)];
        let (first_half, second_half) =
            within.split_at(within.partition_point(|cut| cut.token < start.token + room.div_ceil(2)));
        let best = second_half.iter().filter(|cut| cut.rank > Rank::Stuck).max_by_key(|cut| cut.rank);
        // Some text has no token, and a chunk needs one.
        let mut early = first_half.iter().rev().take_while(|cut| cut.token > start.token);
        let best = best.or_else(|| early.find(|cut| cut.rank > Rank::Stuck));
        let best = best.or_else(|| within.last().filter(|cut| cut.token > start.token));
        let forced = || cuts::force(self.text.as_str(), &self.tokens, start, most);
        best.copied().or_else(forced).unwrap_or(self.end)
    }

    /// The header of the table in the middle of which a chunk begins. One that takes half of the chunk stays where it is.
    fn header(&self, start: Cut) -> Option<Lead> {
        let at = self.text.block_at(start.at).header.clone().filter(|header| header.end < start.at)?;
        let tokens = self.token_at(at.end) - self.token_at(at.start);
        (tokens * 2 <= self.size).then_some(Lead { role: Role::Header, at, tokens })
    }

    /// The end of the chunk before, as far as it is of the same section and no table.
    fn overlap(&self, before: usize, start: Cut) -> Option<Lead> {
        let (block, block_before) = (self.text.block_at(start.at), self.text.block_at(start.at.checked_sub(1)?));
        if self.overlap == 0 || block.opens || block.is_heading() || block_before.is_table() {
            return None;
        }
        let least = start.token.saturating_sub(self.overlap);
        let earlier = &self.cuts[..self.cuts.partition_point(|cut| cut.at < start.at)];
        let whole = earlier.iter().rev().take_while(|cut| {
            let placed = self.text.block_at(cut.at);
            cut.token >= least && cut.at > before && !placed.is_heading() && !placed.is_table()
        });
        let sentence = whole.last().filter(|cut| cut.token < start.token).map(|cut| (cut.at, cut.token));
        // Inside of a long sentence, its last words.
        let words = || {
            let text = self.text.as_str();
            let mut starts = (least.max(1)..start.token).map(|token| (self.tokens[token].start, token));
            starts.find(|&(at, token)| {
                at > before.max(block.at.start)
                    && self.tokens[token - 1].end <= at
                    && cuts::is_word_start(text, at)
                    && cuts::is_grapheme_boundary(text, block.at.start, at)
            })
        };
        let (at, token) = sentence.or_else(words)?;
        Some(Lead { role: Role::Overlap, at: at..start.at, tokens: start.token - token })
    }

    fn token_at(&self, at: usize) -> usize {
        self.tokens.partition_point(|token| token.start < at)
    }

    fn written(&self, lead: Option<Lead>, start: Cut, end: Cut) -> Chunk {
        let first = self.text.block_at(start.at);
        let mut chunk = Chunk {
            text: String::new(),
            tokens: end.token - start.token,
            pages: (first.page, first.page),
            path: first.block.path.iter().map(|heading| short(heading)).collect(),
            spans: Vec::new(),
        };
        if first.is_heading() {
            chunk.path.push(short(&first.block.text));
        }
        if let Some(lead) = lead {
            chunk.tokens += lead.tokens;
            self.add(&mut chunk, lead.role, lead.at);
        }
        self.add(&mut chunk, Role::New, start.at..end.at);
        let new = || chunk.spans.iter().filter(|span| span.role == Role::New).map(|span| span.page);
        chunk.pages = (new().next().unwrap_or(first.page), new().next_back().unwrap_or(first.page));
        chunk.text.truncate(chunk.text.trim_end().len());
        chunk
    }

    /// Adds what the blocks say in a range: a span for each run without furniture and end of page in it.
    fn add(&self, chunk: &mut Chunk, role: Role, range: Range<usize>) {
        for (placed, part) in self.text.parts(range) {
            let between = match chunk.spans.last() {
                None => "",
                Some(last) if last.in_document.end == part.start => "",
                Some(last) if last.role == Role::Header && role == Role::New => "\n",
                Some(_) => text::BETWEEN_BLOCKS,
            };
            let from = placed.page_start;
            let in_page = part.start - from..part.end - from;
            chunk.text += between;
            chunk.text += &self.text.as_str()[part.clone()];
            match chunk.spans.last_mut() {
                // Nothing but the empty line is between them.
                Some(last)
                    if last.role == role
                        && last.page == placed.page
                        && last.in_document.end + text::BETWEEN_BLOCKS.len() == part.start =>
                {
                    (last.in_page.end, last.in_document.end) = (in_page.end, part.end);
                }
                _ => chunk.spans.push(Span { role, page: placed.page, in_page, in_document: part }),
            }
        }
    }
}

/// As much of a heading as a path has.
fn short(heading: &str) -> String {
    heading[..heading.floor_char_boundary(LONGEST_HEADING)].to_owned()
}
