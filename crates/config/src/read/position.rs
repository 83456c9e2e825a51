//! Converts byte offsets to lines and columns.

use super::Position;

/// Precomputed positions every `STRIDE` bytes, so that a lookup does not scan a long line from its start.
pub(super) struct PositionIndex<'text> {
    text: &'text str,
    checkpoints: Vec<(usize, Position)>,
}

const STRIDE: usize = 256;

impl<'text> PositionIndex<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let mut position = Position { line: 1, column: 1 };
        let mut known = vec![(0, position)];
        for (offset, character) in text.char_indices() {
            if offset >= known.len() * STRIDE {
                known.push((offset, position));
            }
            position = after(position, character);
        }
        Self { text, checkpoints: known }
    }

    /// Position of the character at `offset`; an offset past the end is the end.
    pub(super) fn position(&self, offset: usize) -> Position {
        let nearest = self.checkpoints.partition_point(|(known, _)| *known <= offset) - 1;
        let (start, position) = self.checkpoints[nearest];
        self.text[start..]
            .char_indices()
            .take_while(|(passed, _)| start + passed < offset)
            .fold(position, |position, (_, character)| after(position, character))
    }
}

fn after(position: Position, character: char) -> Position {
    match character {
        '\n' => Position { line: position.line + 1, column: 1 },
        _ => Position { column: position.column + 1, ..position },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_agree_with_counting_from_the_start() {
        let text = "wörter\nund 🦀 Zeichen\n\n".repeat(60) + &"ü".repeat(700);
        let index = PositionIndex::new(&text);
        let mut expected = Position { line: 1, column: 1 };
        for (offset, character) in text.char_indices() {
            assert_eq!(index.position(offset), expected, "at byte {offset}");
            expected = after(expected, character);
        }
        assert_eq!(index.position(text.len() + 9), expected);
    }
}
