//! Paragraphs and their kinds: text, heading, table.

use super::join_lines::{cells, is_unspaced, join_lines};
use super::{ImageText, OcrLine, Point, Quad};

/// Consecutive lines of an image without a break.
#[derive(Debug, Clone, PartialEq)]
pub struct Paragraph {
    /// Lines are joined, including words hyphenated at the end of a line. Short lines keep their line breaks, and
    /// distant parts of a row, such as table cells, are separated by tabs.
    pub text: String,
    /// Mean probability of its letters, from 0 to 1.
    pub confidence: f32,
    /// Median height of its lines, in pixels.
    pub height: f32,
    pub kind: ParagraphKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParagraphKind {
    Text,
    /// One or two short lines that are clearly larger than most of the page.
    Heading,
    /// Cells by rows, from the top. At least two rows have two or more cells.
    Table(Vec<Vec<String>>),
}

/// Minimum letter size of a heading, relative to the usual line.
const MIN_HEADING_SCALE: f32 = 1.22;
const MAX_HEADING_ROWS: usize = 2;
/// In letters. Longer paragraphs are text, regardless of size.
const MAX_HEADING_LETTERS: usize = 160;

impl ImageText {
    /// Paragraphs in reading order.
    pub fn paragraphs(&self) -> Vec<Paragraph> {
        let usual = median(self.lines.iter().map(|line| (letter_size(&line.text, &line.quad), letters(line))));
        let parts = self.lines.chunk_by(|one, next| one.paragraph == next.paragraph);
        parts.map(|lines| Paragraph::of(lines, usual)).collect()
    }

    /// Mean confidence of all letters.
    pub fn confidence(&self) -> f32 {
        confidence(&self.lines)
    }
}

impl Paragraph {
    /// `usual` is the typical letter size of the page.
    fn of(lines: &[OcrLine], usual: f32) -> Paragraph {
        let height = median(lines.iter().map(|line| (sides(&line.quad).1, letters(line))));
        let size = median(lines.iter().map(|line| (letter_size(&line.text, &line.quad), letters(line))));
        let (text, rows) = (join_lines(lines), cells(lines));
        let wide = rows.iter().filter(|row| row.len() > 1).count();
        let is_short = rows.len() <= MAX_HEADING_ROWS && text.chars().count() <= MAX_HEADING_LETTERS;
        // An isolated dash or number is large for its line, but not a heading.
        let has_words = text.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
        let kind = if wide > 1 {
            ParagraphKind::Table(rows)
        } else if wide == 0 && is_short && has_words && size >= MIN_HEADING_SCALE * usual {
            ParagraphKind::Heading
        } else {
            ParagraphKind::Text
        };
        Paragraph { text, confidence: confidence(lines), height, kind }
    }
}

/// Letter size of a line, for comparison within a page. The height of a box depends on ascenders and descenders and is
/// only a few pixels of the coarse map; the width depends on the font. The mean of both is off by a tenth, each alone
/// by a fifth.
pub(crate) fn letter_size(text: &str, quad: &Quad) -> f32 {
    let (width, height) = sides(quad);
    // The box starts slightly before the letters and ends slightly after them.
    let width = (width - 0.3 * height).max(0.0);
    (height * width / text.chars().map(usual_width).sum::<f32>().max(1.0)).sqrt()
}

/// Width relative to an average lowercase letter.
fn usual_width(letter: char) -> f32 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '!' | '|' => 0.5,
        ' ' | 't' | 'f' | 'r' | '(' | ')' | '[' | ']' | '-' | '"' | '/' => 0.65,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.5,
        letter if letter.is_uppercase() => 1.2,
        letter if is_unspaced(letter) => 1.8,
        _ => 1.0,
    }
}

/// Length and height of a line.
fn sides(quad: &Quad) -> (f32, f32) {
    let [begin, end, _, below] = quad.0;
    let length = |side: Point| side.dot(side).sqrt();
    (length(end.sub(begin)), length(below.sub(begin)))
}

fn letters(line: &OcrLine) -> f32 {
    line.text.chars().count() as f32
}

fn confidence(lines: &[OcrLine]) -> f32 {
    let all: f32 = lines.iter().map(letters).sum();
    if all == 0.0 {
        return 0.0;
    }
    lines.iter().map(|line| line.confidence * letters(line)).sum::<f32>() / all
}

/// Weighted median; 0 if there are no numbers.
fn median(weighted: impl Iterator<Item = (f32, f32)>) -> f32 {
    let mut weighted: Vec<(f32, f32)> = weighted.collect();
    weighted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = weighted.iter().map(|(_, weight)| weight).sum::<f32>() / 2.0;
    let mut passed = 0.0;
    let middle = weighted.iter().find(|(_, weight)| {
        passed += weight;
        passed >= half
    });
    middle.map_or(0.0, |(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line at the left margin, `height` pixels high.
    fn line(text: &str, paragraph: usize, row: usize, height: f32) -> OcrLine {
        cell(text, 0.0, paragraph, row, height)
    }

    fn cell(text: &str, left: f32, paragraph: usize, row: usize, height: f32) -> OcrLine {
        let (top, right) = (row as f32 * 50.0, left + height / 2.0 * text.len() as f32);
        let corners = [(left, top), (right, top), (right, top + height), (left, top + height)];
        let quad = Quad(corners.map(|(x, y)| Point { x, y }));
        OcrLine { text: text.into(), confidence: 0.9, quad, paragraph, row, ends: false }
    }

    fn kinds(lines: Vec<OcrLine>) -> Vec<ParagraphKind> {
        let found = ImageText { lines, ..ImageText::default() };
        found.paragraphs().into_iter().map(|paragraph| paragraph.kind).collect()
    }

    const BODY: &str = "running text of some length, page after page of it";

    #[test]
    fn short_lines_larger_than_the_page_are_headings() {
        use ParagraphKind::{Heading, Text};
        let lines = vec![
            line("Annual report", 0, 0, 40.0),
            line(BODY, 1, 1, 20.0),
            line(BODY, 1, 2, 21.0),
            line("A heading in", 2, 3, 28.0),
            line("two lines", 2, 4, 28.0),
            line(BODY, 3, 5, 19.0),
            line("12", 4, 6, 40.0),
        ];
        assert_eq!(kinds(lines), [Heading, Text, Heading, Text, Text]);
        assert_eq!(kinds(vec![line("A poster", 0, 0, 90.0)]), [Text]);
        let large = vec![line(BODY, 0, 0, 40.0), line(BODY, 0, 1, 40.0), line(BODY, 0, 2, 40.0), line("x", 1, 3, 10.0)];
        assert_eq!(kinds(large), [Text, Text]);
    }

    #[test]
    fn rows_of_cells_are_a_table() {
        let lines = vec![
            cell("Item", 0.0, 0, 0, 20.0),
            cell("Price", 200.0, 0, 0, 20.0),
            cell("Tea", 0.0, 0, 1, 20.0),
            cell("4.50", 200.0, 0, 1, 20.0),
            cell("Name", 0.0, 1, 2, 20.0),
            cell("Date", 200.0, 1, 2, 20.0),
        ];
        let rows = [["Item", "Price"], ["Tea", "4.50"]].map(|row| row.map(String::from).to_vec()).to_vec();
        assert_eq!(kinds(lines), [ParagraphKind::Table(rows), ParagraphKind::Text]);
    }

    #[test]
    fn no_lines_are_no_paragraphs() {
        assert_eq!(kinds(Vec::new()), []);
    }
}
