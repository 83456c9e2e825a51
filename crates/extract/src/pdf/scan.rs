//! Scan detection: whether a page needs OCR.

use hayro_interpret::kurbo::Rect;

use super::glyphs::PageContent;
use super::layout::PagePart;
use crate::is_legible;
use crate::text_quality::MIN_CHARS;

/// Minimum page coverage of an image with text.
const MIN_IMAGE_COVERAGE: f64 = 0.03;
/// Minimum number of shapes that may be letters, on a page without text. Next to a few words they may also be a form or
/// a logo.
const MIN_SHAPES: usize = 50;
const MIN_SHAPES_WITH_TEXT: usize = 300;

/// Maximum characters of stamps and headers on a scan. An invisible text layer has as many as the page.
const MAX_STAMP_CHARS: usize = 300;
/// Minimum page coverage of a scanned sheet.
const MIN_SHEET_COVERAGE: f64 = 0.6;

// === impl ===

impl PageContent {
    /// Whether the page has content that is not extractable as text (K-33): it has little text next to images or to
    /// letters drawn as shapes; its text does not consist of words; or its glyphs have no Unicode mapping.
    pub(super) fn is_scan(&self, parts: &[PagePart], bounds: Rect) -> bool {
        let text = text(parts);
        let shows = |shapes: usize| self.image_area / bounds.area() > MIN_IMAGE_COVERAGE || self.shapes > shapes;
        let by_text = match text.chars().count() {
            0 => shows(MIN_SHAPES),
            1..MIN_CHARS => shows(MIN_SHAPES_WITH_TEXT),
            MIN_CHARS..MAX_STAMP_CHARS
                if self.image_area / bounds.area() > MIN_SHEET_COVERAGE && self.hidden * 2 < self.glyphs.len() =>
            {
                true
            }
            _ => !is_legible(&text),
        };
        let said = self.glyphs.iter().filter(|glyph| glyph.end > glyph.start).count();
        let silent = self.glyphs.len() - said;
        by_text || if said == 0 { silent > 0 } else { silent > said.max(20) }
    }
}

fn text(parts: &[PagePart]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            PagePart::Text(group) => text.push_str(&group.text),
            PagePart::Table(table) => text.push_str(&table.text()),
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}
