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
    pub(super) fn spans(&self, chunk: &Chunk) -> Vec<CharSpan> {
        let mut stretches: Vec<CharSpan> = Vec::new();
        for span in chunk.spans.iter().filter(|span| span.role != SpanRole::Header) {
            let Some(characters) = self.0.get(&span.page) else { continue };
            let (start, end) = (characters.chars_before(span.in_page.start), characters.chars_before(span.in_page.end));
            match stretches.last_mut() {
                Some(last) if last.page == span.page => last.end = last.end.max(end),
                _ => stretches.push(CharSpan { page: span.page, start, end }),
            }
        }
        stretches
    }
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
