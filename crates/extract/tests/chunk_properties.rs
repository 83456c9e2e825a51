//! Property tests for chunking with arbitrary documents and tokens.

use std::collections::BTreeMap;
use std::ops::Range;

use corbie_extract::chunk::{self, Chunk, DocumentText, Settings, SpanRole, sentence_starts};
use corbie_extract::{Block, BlockKind, Page, Table};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

const PIECES: [&str; 22] = [
    "word",
    "Another",
    "z",
    ". ",
    ". Then",
    "! ",
    "? A",
    "Dr. ",
    " ",
    " ",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    "。",
    "漢字",
    "e\u{301}",
    "👩‍👩‍👧",
    "🇩🇪",
    "\u{301}",
    "\u{200b}",
    "3.5",
];

fn prose() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..25).prop_map(|pieces| pieces.concat())
}

fn block() -> impl Strategy<Value = Block> {
    let table = (prop::collection::vec(prop::collection::vec(prose(), 0..3), 0..6), 0usize..3)
        .prop_map(|(rows, header_rows)| Block::table(Table { rows, header_rows }));
    prop_oneof![
        4 => prose().prop_map(Block::paragraph),
        2 => (1u8..4, prose()).prop_map(|(level, text)| Block::heading(level, text)),
        2 => table,
        1 => prose().prop_map(|text| Block::new(BlockKind::ListItem { depth: 0 }, text)),
        1 => prose().prop_map(|text| Block::new(BlockKind::Code, text)),
        1 => prose().prop_map(|text| Block::new(BlockKind::Furniture, text)),
    ]
}

fn pages() -> impl Strategy<Value = Vec<Page>> {
    let page = (prop::collection::vec(block(), 0..5), prop::option::of(Just("Sheet".to_owned())));
    prop::collection::vec(page, 0..4).prop_map(|pages| {
        let numbered = pages.into_iter().zip(1..);
        numbered.map(|((blocks, name), number)| Page { number, name, blocks, ..Page::default() }).collect()
    })
}

/// Random tokens: each character starts a token, continues one, or belongs to none.
fn tokens(text: &str, chance: &[u8]) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    for (index, (at, c)) in text.char_indices().enumerate() {
        let end = at + c.len_utf8();
        match (chance[index % chance.len()], tokens.last_mut()) {
            (0, _) => {}
            (1..3, Some(last)) if last.end == at => last.end = end,
            // A character that consists of several tokens.
            (3, Some(last)) if last.end == at => {
                let twice = last.clone();
                tokens.push(twice);
            }
            _ => tokens.push(at..end),
        }
    }
    tokens
}

proptest! {
    #[test]
    fn chunks_cover_the_text_once_and_end_where_they_should(
        pages in pages(),
        chance in prop::collection::vec(0u8..8, 1..40),
        size in 1usize..30,
        overlap in 0usize..12,
    ) {
        let text = DocumentText::of(&pages);
        let tokens = tokens(text.as_str(), &chance);
        let slow = ReferenceChunker::new(&pages, text.as_str(), &tokens, size);
        let chunks = chunk::pack(&text, &tokens, Settings { size, overlap });

        if slow.count(0..text.as_str().len()) == 0 {
            prop_assert!(chunks.is_empty());
            return Ok(());
        }
        let new = |chunk: &Chunk| -> Vec<Range<usize>> {
            let spans = chunk.spans.iter().filter(|span| span.role == SpanRole::New);
            spans.map(|span| span.in_document.clone()).collect()
        };
        // Every byte once, in order.
        let mut covered = vec![0; text.as_str().len()];
        let all: Vec<Range<usize>> = chunks.iter().flat_map(new).collect();
        prop_assert!(all.is_sorted_by(|one, next| one.end <= next.start));
        all.into_iter().for_each(|span| covered[span].iter_mut().for_each(|times| *times += 1));
        for (at, times) in covered.iter().enumerate() {
            let between = slow.blocks.iter().all(|(_, block, _)| !block.contains(&at));
            let is_gap = between && !slow.furniture.iter().any(|furniture| furniture.contains(&at));
            prop_assert!(*times == usize::from(!between) || is_gap, "byte {} is {} times in chunks", at, times);
        }
        for (index, chunk) in chunks.iter().enumerate() {
            for span in &chunk.spans {
                let page = pages.iter().find(|page| page.number == span.page).expect("a page of the document");
                prop_assert_eq!(&page.text()[span.in_page.clone()], &text.as_str()[span.in_document.clone()]);
                // The end of a chunk is trimmed.
                let (here, there) = (&chunk.text[span.in_chunk.clone()], &text.as_str()[span.in_document.clone()]);
                prop_assert_eq!(here.trim_end(), there.trim_end());
                prop_assert!(slow.is_legal(span.in_document.start) || slow.is_edge(span.in_document.start));
            }
            let spans = new(chunk);
            let (start, last) = (spans[0].start, spans[spans.len() - 1].end);
            let end = chunks.get(index + 1).map_or(last, |next| new(next)[0].start);
            let fresh = slow.count(start..end);
            let lead: usize = chunk.tokens - fresh;
            prop_assert!(lead <= size / 2);
            if chunk.spans[0].role == SpanRole::Overlap {
                prop_assert!(lead <= overlap && lead > 0);
            }
            let mut inside = slow.tokens.iter().map(|token| token.start).filter(|at| (start..end).contains(at));
            let could_end = |at: usize| slow.is_legal(at) && slow.count(start..at) > 0;
            prop_assert!(chunk.tokens <= size || !inside.any(could_end));
            // The end matches the reference implementation.
            let expected = slow.end(start, size - lead);
            prop_assert!(slow.same(end, expected), "chunk {}: {} instead of {}", index, end, expected);
        }
    }
}

/// Reference implementation without an index: recounts everything each time.
struct ReferenceChunker<'a> {
    text: &'a str,
    /// Only tokens inside blocks.
    tokens: Vec<Range<usize>>,
    /// Chunked blocks, with their ranges and whether they open a named page.
    blocks: Vec<(Block, Range<usize>, bool)>,
    furniture: Vec<Range<usize>>,
    graphemes: Vec<usize>,
    cuts: BTreeMap<usize, u16>,
    size: usize,
}

const STUCK: u16 = 1;
const PAGE_START: u16 = 300;

impl<'a> ReferenceChunker<'a> {
    fn new(pages: &[Page], text: &'a str, tokens: &[Range<usize>], size: usize) -> ReferenceChunker<'a> {
        let (mut blocks, mut furniture, mut at) = (Vec::new(), Vec::new(), 0);
        for page in pages {
            let page_start = at;
            for block in page.blocks.iter().filter(|block| !block.text.is_empty()) {
                at += if at > page_start { 2 } else { 0 };
                let place = at..at + block.text.len();
                let opens = at == page_start && page.name.is_some();
                at = place.end;
                blocks.push((block.clone(), place, opens));
            }
            at += 3;
        }
        if blocks.iter().any(|(block, ..)| block.kind != BlockKind::Furniture) {
            furniture =
                blocks.extract_if(.., |(block, ..)| block.kind == BlockKind::Furniture).map(|(_, at, _)| at).collect();
        }
        let inside = |token: &Range<usize>| {
            let mut parts = blocks.iter().map(|(_, at, _)| token.start.max(at.start)..token.end.min(at.end));
            parts.find(|part| !part.is_empty())
        };
        let tokens = tokens.iter().filter_map(inside).collect();
        let graphemes = text.grapheme_indices(true).map(|(at, _)| at).collect();
        let mut slow = ReferenceChunker { text, tokens, blocks, furniture, graphemes, cuts: BTreeMap::new(), size };
        slow.find_cuts();
        slow
    }

    fn count(&self, range: Range<usize>) -> usize {
        self.tokens.iter().filter(|token| range.contains(&token.start)).count()
    }

    fn is_legal(&self, at: usize) -> bool {
        self.graphemes.contains(&at) && !self.tokens.iter().any(|token| token.start < at && at < token.end)
    }

    /// Whether a block starts here; furniture or a page break may separate it from the previous block.
    fn is_edge(&self, at: usize) -> bool {
        self.blocks.iter().any(|(_, block, _)| block.start == at)
    }

    /// Whitespace and empty lines between blocks are ignored.
    fn same(&self, one: usize, other: usize) -> bool {
        let between = one.min(other)..one.max(other);
        between.clone().all(|at| self.blocks.iter().all(|(_, block, _)| !block.contains(&at)))
    }

    fn find_cuts(&mut self) {
        let mut wanted: Vec<(usize, u16)> = Vec::new();
        for (index, (block, at, opens)) in self.blocks.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| &self.blocks[before].0.kind);
            let rank = match (before, &block.kind) {
                (None, _) => None,
                _ if *opens => Some(PAGE_START),
                (Some(BlockKind::Heading { .. }), BlockKind::Table(_)) => Some(STUCK),
                (Some(BlockKind::Heading { .. }), _) => None,
                (_, BlockKind::Heading { level }) => Some(200 - u16::from(*level)),
                (Some(BlockKind::ListItem { .. }), BlockKind::ListItem { .. }) => Some(3),
                (Some(BlockKind::Paragraph), BlockKind::Paragraph) if self.goes_on(index) => Some(2),
                _ => Some(4),
            };
            wanted.extend(rank.map(|rank| (at.start, rank)));
            let lines =
                || block.text.match_indices('\n').map(|(line, _)| at.start + line + 1).filter(|&line| line < at.end);
            match &block.kind {
                BlockKind::Heading { .. } => {}
                BlockKind::Table(table) => {
                    let is_written = |row: &&Vec<String>| row.iter().any(|cell| !cell.trim().is_empty());
                    let headers = table.rows.iter().take(table.header_rows).filter(is_written).count();
                    // A table with only header rows has no header.
                    let headers = if block.text.lines().count() > headers { headers } else { 0 };
                    wanted.extend(lines().zip(1..).map(|(line, row)| (line, if row <= headers { STUCK } else { 3 })));
                }
                BlockKind::Code => wanted.extend(lines().map(|line| (line, 3))),
                _ => wanted.extend(sentence_starts(&block.text).into_iter().map(|start| (at.start + start, 2))),
            }
        }
        let mut last = 0;
        for (mut at, rank) in wanted {
            if let Some(token) = self.tokens.iter().find(|token| token.start < at && at < token.end)
                && self.text[token.start..at].trim().is_empty()
            {
                at = token.start;
            }
            if at > last && self.is_legal(at) {
                self.cuts.insert(at, rank);
                last = at;
            }
        }
    }

    fn goes_on(&self, index: usize) -> bool {
        let (before, block) = (&self.blocks[index - 1], &self.blocks[index]);
        let is_page = self.text[before.1.end..block.1.start].contains('\u{c}');
        let open = before.0.text.trim_end().ends_with(|c: char| c.is_alphanumeric() || c == ',' || c == '-');
        is_page && open && block.0.text.trim_start().starts_with(char::is_lowercase)
    }

    fn end(&self, start: usize, room: usize) -> usize {
        let end = self.blocks[self.blocks.len() - 1].1.end;
        let fits = |at: usize| (1..=room).contains(&self.count(start..at));
        if let Some((at, _)) = self.cuts.iter().find(|(at, rank)| **at > start && **rank == PAGE_START && fits(**at)) {
            return *at;
        }
        if self.count(start..end) <= room {
            return end;
        }
        let is_late = |at: usize| self.count(start..at) >= room.div_ceil(2);
        let cuts = || self.cuts.iter().map(|(at, rank)| (*at, *rank)).filter(|(at, _)| *at > start && fits(*at));
        let good = || cuts().filter(|(_, rank)| *rank > STUCK);
        let late = good().filter(|(at, _)| is_late(*at)).max_by_key(|(_, rank)| *rank);
        if let Some((at, _)) = late.or_else(|| good().next_back()).or_else(|| cuts().next_back()) {
            return at;
        }
        let starts = || self.tokens.iter().map(|token| token.start).filter(|at| *at > start && self.is_legal(*at));
        let is_word = |at: usize| {
            let wide = |c: char| ('\u{3000}'..'\u{ffff}').contains(&c);
            let (before, after) = (self.text[..at].chars().next_back(), self.text[at..].chars().next());
            [before, after].into_iter().flatten().any(|c| c.is_whitespace() || wide(c))
        };
        let word = starts().rfind(|at| fits(*at) && is_late(*at) && is_word(*at));
        let any = || starts().rfind(|at| fits(*at));
        // Nothing smaller is possible: this unit alone may exceed a chunk.
        let beyond = || starts().find(|at| self.count(start..*at) > room.min(self.size));
        word.or_else(any).or_else(beyond).unwrap_or(end)
    }
}
