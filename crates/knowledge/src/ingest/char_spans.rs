//! Character offsets of chunks within their pages. The API counts in characters, not bytes.

use std::collections::HashMap;

use corbie_extract::chunk::{Chunk, SpanRole};

use crate::document::{CharSpan, DocumentPage};

/// Converts byte offsets to character offsets, per page.
pub(super) struct CharOffsets<'a>(HashMap<u32, PageChars<'a>>);

/// Distance in bytes between two checkpoints.
const BLOCK_BYTES: usize = 4096;

/// Number of characters before each checkpoint, so that no lookup counts from the beginning of the text.
struct PageChars<'a> {
    text: &'a str,
    before: Vec<usize>,
}

impl<'a> CharOffsets<'a> {
    pub(super) fn of(pages: &'a [DocumentPage]) -> CharOffsets<'a> {
        CharOffsets(pages.iter().map(|page| (page.number, PageChars::of(&page.text))).collect())
    }

    /// One span per page. Excludes the table header that a continuation chunk repeats from elsewhere in the text.
    /// `window_pages` has the page of each window of the chunk.
    pub(super) fn spans(&self, chunk: &Chunk, window_pages: &[u32]) -> Vec<CharSpan> {
        let mut stretches: Vec<CharSpan> = Vec::new();
        for span in chunk.spans.iter().filter(|span| span.role != SpanRole::Header) {
            let Some(characters) = self.0.get(&span.page) else { continue };
            let (start, end) = (characters.chars_before(span.in_page.start), characters.chars_before(span.in_page.end));
            match stretches.last_mut() {
                Some(last) if last.page == span.page => last.end = last.end.max(end),
                _ => {
                    let in_chunk = count_chars(&chunk.text.as_bytes()[..span.in_chunk.start]);
                    let windows = window_pages.iter().filter(|page| **page == span.page).count();
                    stretches.push(CharSpan {
                        page: span.page,
                        start,
                        end,
                        in_chunk: u32::try_from(in_chunk).ok(),
                        windows: u32::try_from(windows).unwrap_or(0),
                    });
                }
            }
        }
        if let [only] = stretches.as_mut_slice() {
            (only.in_chunk, only.windows) = (None, 0);
        }
        stretches
    }
}

/// The parts of a chunk's text by page. The first one includes the repeated header of a table.
pub(super) fn split_by_page(chunk: &Chunk) -> Vec<(u32, &str)> {
    let mut starts: Vec<(u32, usize)> = Vec::new();
    for span in chunk.spans.iter().filter(|span| span.role != SpanRole::Header) {
        match starts.last() {
            None => starts.push((span.page, 0)),
            Some((page, _)) if *page == span.page => {}
            Some(_) => starts.push((span.page, span.in_chunk.start)),
        }
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([chunk.text.len()]);
    starts.iter().zip(ends).map(|((page, start), end)| (*page, &chunk.text[*start..end])).collect()
}

impl<'a> PageChars<'a> {
    fn of(text: &'a str) -> PageChars<'a> {
        let mut before = vec![0];
        for step in text.as_bytes().chunks(BLOCK_BYTES) {
            before.push(before.last().copied().unwrap_or_default() + count_chars(step));
        }
        PageChars { text, before }
    }

    /// Number of characters before this byte.
    fn chars_before(&self, byte: usize) -> u32 {
        let byte = byte.min(self.text.len());
        let step = byte / BLOCK_BYTES;
        let characters = self.before[step] + count_chars(&self.text.as_bytes()[step * BLOCK_BYTES..byte]);
        u32::try_from(characters).unwrap_or(u32::MAX)
    }
}

/// Number of characters that start in these bytes.
fn count_chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use corbie_extract::chunk::{self, DocumentText, Settings};
    use corbie_extract::{Block, Page};

    #[test]
    fn k34_the_parts_of_a_chunk_are_told_by_page() {
        let page = |number, text: &str| Page { number, blocks: vec![Block::paragraph(text)], ..Page::default() };
        let pages = [page(1, "Äffchen one."), page(2, "Two 🐦.")];
        let text = DocumentText::of(&pages);
        let tokens = [0..8, 9..12, 12..13, 16..19, 20..24, 24..25];
        let chunks = chunk::pack(&text, &tokens, Settings { size: 9, overlap: 0 });
        assert_eq!(split_by_page(&chunks[0]), [(1, "Äffchen one.\n\n"), (2, "Two 🐦.")]);
        let stored = |page: &Page| DocumentPage { number: page.number, label: None, text: page.text() };
        let stored: Vec<DocumentPage> = pages.iter().map(stored).collect();
        let span = |page, end, in_chunk, windows| CharSpan { page, start: 0, end, in_chunk: Some(in_chunk), windows };
        let spans = CharOffsets::of(&stored).spans(&chunks[0], &[1, 2, 2]);
        assert_eq!(spans, [span(1, 12, 0, 1), span(2, 6, 14, 2)]);
        // A chunk of one page needs no more than the page.
        let one = chunk::pack(&text, &tokens, Settings { size: 3, overlap: 0 });
        let spans = CharOffsets::of(&stored).spans(&one[1], &[2]);
        assert_eq!(spans, [CharSpan { page: 2, start: 0, end: 6, in_chunk: None, windows: 0 }]);
    }

    #[test]
    fn places_are_counted_in_characters_wherever_steps_begin() {
        for text in ["", "plain", "Ä🐦", &"Krähe 🐦 ".repeat(3000), &"x".repeat(BLOCK_BYTES), &"é".repeat(BLOCK_BYTES)]
        {
            let characters = PageChars::of(text);
            for (number, (byte, _)) in text.char_indices().enumerate() {
                assert_eq!(characters.chars_before(byte) as usize, number);
            }
            assert_eq!(characters.chars_before(text.len()) as usize, text.chars().count());
        }
    }
}
