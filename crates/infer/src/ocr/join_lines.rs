//! Joins lines to text, with an empty line between paragraphs.

use super::table_gutters::TableGutters;
use super::{ImageText, OcrLine};

impl ImageText {
    /// The text of all [paragraphs](ImageText::paragraphs), separated by empty lines.
    pub fn text(&self) -> String {
        let parts = self.lines.chunk_by(|one, next| one.paragraph == next.paragraph);
        parts.map(join_lines).collect::<Vec<_>>().join("\n\n")
    }
}

/// Joins the lines of one paragraph.
pub(crate) fn join_lines(lines: &[OcrLine]) -> String {
    let strips = TableGutters::between(lines);
    let mut text = String::new();
    let mut before: Option<&OcrLine> = None;
    for line in lines {
        match before {
            None => {}
            Some(before) if before.row == line.row => {
                text.push(if strips.separates(before, line) { '\t' } else { ' ' })
            }
            Some(before) if before.ends => text.push('\n'),
            Some(_) if is_hyphenated(&text, &line.text) => _ = text.pop(),
            Some(_) if text.ends_with(is_unspaced) && line.text.starts_with(is_unspaced) => {}
            Some(_) => text.push(' '),
        }
        text.push_str(&line.text);
        before = Some(line);
    }
    text
}

/// The cells of each row; a single cell if there is no gutter.
pub(crate) fn cells(lines: &[OcrLine]) -> Vec<Vec<String>> {
    let cell = |parts: &[OcrLine]| parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(" ");
    let strips = TableGutters::between(lines);
    let row = |parts: &[OcrLine]| parts.chunk_by(|one, next| !strips.separates(one, next)).map(cell).collect();
    lines.chunk_by(|one, next| one.row == next.row).map(row).collect()
}

/// Whether a hyphen at the end of a line divides a word.
fn is_hyphenated(before: &str, after: &str) -> bool {
    let mut ending = before.chars().rev();
    let hyphen = ending.next() == Some('-');
    match (ending.next(), after.chars().next()) {
        (Some(last), Some(first)) if hyphen && last.is_alphabetic() => {
            first.is_lowercase() || last.is_uppercase() && first.is_uppercase()
        }
        _ => false,
    }
}

/// Chinese is written without spaces.
pub(crate) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{3000}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ocr::{Point, Quad};

    /// A line from `left` to `right`; rows are 20 pixels high.
    fn line(text: &str, left: f32, right: f32, paragraph: usize, row: usize, ends: bool) -> OcrLine {
        let (top, bottom) = (row as f32 * 24.0, row as f32 * 24.0 + 20.0);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        let quad = Quad(corners.map(|(x, y)| Point { x, y }));
        OcrLine { text: text.into(), confidence: 1.0, quad, paragraph, row, ends }
    }

    fn text(lines: Vec<OcrLine>) -> String {
        ImageText { lines, ..ImageText::default() }.text()
    }

    #[test]
    fn words_divided_at_the_end_of_a_line_are_joined() {
        let lines = |first, second| vec![line(first, 0.0, 200.0, 0, 0, false), line(second, 0.0, 200.0, 0, 1, false)];
        assert_eq!(text(lines("a divi-", "ded word")), "a divided word");
        assert_eq!(text(lines("pages 10-", "20 of it")), "pages 10- 20 of it");
        assert_eq!(text(lines("Saint-", "Denis")), "Saint- Denis");
        assert_eq!(text(lines("RE-", "LATED MATTERS")), "RELATED MATTERS");
        assert_eq!(text(lines("one", "two")), "one two");
        assert_eq!(text(lines("新鲜甘草", "黄酮。")), "新鲜甘草黄酮。");
    }

    #[test]
    fn cells_have_a_tab_between_them_and_rows_a_line_each() {
        let lines = vec![
            line("Item", 0.0, 40.0, 0, 0, true),
            line("Price", 200.0, 250.0, 0, 0, true),
            line("Tea", 0.0, 30.0, 0, 1, true),
            line("4.50", 200.0, 240.0, 0, 1, true),
            line("Next", 0.0, 30.0, 1, 4, false),
        ];
        assert_eq!(text(lines), "Item\tPrice\nTea\t4.50\n\nNext");
    }

    #[test]
    fn no_lines_are_no_text() {
        assert_eq!(text(Vec::new()), "");
    }
}
