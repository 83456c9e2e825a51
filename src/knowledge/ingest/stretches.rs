//! Character offsets of chunks within their pages. The API counts in characters, not bytes.

use std::collections::HashMap;

use corbie_extract::chunk::{Chunk, Role};

use crate::knowledge::document::{Page, Stretch};

/// Converts byte offsets to character offsets, per page.
pub(super) struct Counted<'a>(HashMap<u32, Characters<'a>>);

/// Distance in bytes between two checkpoints.
const STEP: usize = 4096;

/// Number of characters before each checkpoint, so that no lookup counts from the beginning of the text.
struct Characters<'a> {
    text: &'a str,
    before: Vec<usize>,
}

impl<'a> Counted<'a> {
    pub(super) fn of(pages: &'a [Page]) -> Counted<'a> {
        Counted(pages.iter().map(|page| (page.number, Characters::of(&page.text))).collect())
    }

    /// One span per page. Excludes the table header that a continuation chunk repeats from elsewhere in the text.
    pub(super) fn stretches(&self, chunk: &Chunk) -> Vec<Stretch> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for span in chunk.spans.iter().filter(|span| span.role != Role::Header) {
            let Some(characters) = self.0.get(&span.page) else { continue };
            let (start, end) = (characters.at(span.in_page.start), characters.at(span.in_page.end));
            match stretches.last_mut() {
                Some(last) if last.page == span.page => last.end = last.end.max(end),
                _ => stretches.push(Stretch { page: span.page, start, end }),
            }
        }
        stretches
    }
}

impl<'a> Characters<'a> {
    fn of(text: &'a str) -> Characters<'a> {
        let mut before = vec![0];
        for step in text.as_bytes().chunks(STEP) {
            before.push(before.last().copied().unwrap_or_default() + count(step));
        }
        Characters { text, before }
    }

    /// Number of characters before this byte.
    fn at(&self, byte: usize) -> u32 {
        let byte = byte.min(self.text.len());
        let step = byte / STEP;
        let characters = self.before[step] + count(&self.text.as_bytes()[step * STEP..byte]);
        u32::try_from(characters).unwrap_or(u32::MAX)
    }
}

/// Number of characters that start in these bytes.
fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_in_characters_wherever_steps_begin() {
        for text in ["", "plain", "Ä🐦", &"Krähe 🐦 ".repeat(3000), &"x".repeat(STEP), &"é".repeat(STEP)] {
            let characters = Characters::of(text);
            for (number, (byte, _)) in text.char_indices().enumerate() {
                assert_eq!(characters.at(byte) as usize, number);
            }
            assert_eq!(characters.at(text.len()) as usize, text.chars().count());
        }
    }
}
