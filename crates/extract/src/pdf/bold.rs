//! Bold detection by stem thickness.
//!
//! Font names are an unreliable indicator, and the interpreter does not expose all of them. A stem can be measured.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use hayro_interpret::font::{Glyph as Drawn, GlyphIdentifier};
use hayro_interpret::kurbo::{BezPath, Line, ParamCurve, Shape};

/// Minimum stem thickness of bold letters, relative to the font size: regular faces have 0.05 to 0.095, bold faces 0.11
/// to 0.17.
const MIN_BOLD_STEM: f64 = 0.105;

/// Cache of bold stems by glyph outline. Shared across pages, because an outline is more expensive than a lookup.
#[derive(Debug, Default)]
pub(super) struct BoldDetector(HashMap<GlyphIdentifier, Option<bool>, FixedState>);

impl BoldDetector {
    /// Whether a glyph is bold; only for letters with a vertical stem on the left.
    pub(super) fn is_bold(&mut self, glyph: &Drawn<'_>, words: &str) -> Option<bool> {
        let Drawn::Outline(outline) = glyph else { return None };
        let [b'b' | b'h' | b'i' | b'k' | b'l' | b'n' | b'r' | b'H' | b'L' | b'N' | b'R' | b'B' | b'D' | b'P'] =
            words.as_bytes()
        else {
            return None;
        };
        *self.0.entry(outline.identifier()).or_insert_with(|| {
            let path = outline.outline();
            let stem = stem(&path)?;
            Some(stem > MIN_BOLD_STEM * 1000.0)
        })
    }
}

/// Thickness of the leftmost stem, measured slightly above the serifs.
fn stem(path: &BezPath) -> Option<f64> {
    let bounds = path.bounding_box();
    let height = bounds.y0 + bounds.height() * 0.3;
    let cut = Line::new((bounds.x0 - 10.0, height), (bounds.x1 + 10.0, height));
    let mut crossings: Vec<f64> = path
        .segments()
        .flat_map(|segment| segment.intersect_line(cut))
        .map(|crossing| cut.eval(crossing.line_t).x)
        .collect();
    crossings.sort_by(f64::total_cmp);
    Some(crossings.get(1)? - crossings.first()?)
}
