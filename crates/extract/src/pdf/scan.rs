//! Whether a page is to be read as a picture.

use hayro_interpret::kurbo::Rect;

use super::glyphs::Drawing;
use super::layout::Part;
use crate::is_legible;
use crate::legible::FEWEST;

/// The part of a page that a picture with words on it covers at least.
const COVERED: f64 = 0.03;
/// So many shapes on a page without any text may be its letters; beside a few words they may also be a form or a logo.
const SHAPES: usize = 50;
const SHAPES_BESIDE_TEXT: usize = 300;

/// Stamps and headers on a scan have fewer characters than this. A layer of text has as many as the page, and is not seen.
const STAMPS: usize = 300;
/// The sheet that was scanned covers more of the page than this.
const SHEET: f64 = 0.6;

// === impl ===

impl Drawing {
    /// Whether the page shows what cannot be read as text (K-33): it says little, beside pictures or letters drawn as shapes;
    /// what it says is not made of words; or its glyphs do not tell what they say.
    pub(super) fn is_scan(&self, parts: &[Part], bounds: Rect) -> bool {
        let text = text(parts);
        let shows = |shapes: usize| self.pictured / bounds.area() > COVERED || self.shapes > shapes;
        let by_text = match text.chars().count() {
            0 => shows(SHAPES),
            1..FEWEST => shows(SHAPES_BESIDE_TEXT),
            FEWEST..STAMPS if self.pictured / bounds.area() > SHEET && self.hidden * 2 < self.glyphs.len() => true,
            _ => !is_legible(&text),
        };
        let said = self.glyphs.iter().filter(|glyph| glyph.end > glyph.start).count();
        let silent = self.glyphs.len() - said;
        by_text || if said == 0 { silent > 0 } else { silent > said.max(20) }
    }
}

fn text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(group) => text.push_str(&group.text),
            Part::Table(table) => text.push_str(&table.text()),
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}
