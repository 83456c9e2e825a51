//! Text extraction device for the PDF interpreter.
//!
//! It records the position and text of each glyph, straight lines that may belong to tables, and the area covered by
//! images. It does not render.

use hayro_interpret::font::{Glyph as Drawn, GlyphRun};
use hayro_interpret::hayro_cmap::WritingMode;
use hayro_interpret::hayro_syntax::object::{Dict, Name, String as Bytes};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask};

use super::bold::BoldDetector;
use super::images::PageImage;
use super::ruling_lines::{self, RulingLine};
use super::strings;
use super::unicode::{self, GlyphDecoder};

/// No readable page has more drawing operations.
pub(super) const MAX_DRAW_OPERATIONS: u32 = 2_000_000;

/// The content of one page.
#[derive(Debug, Default)]
pub(super) struct PageContent {
    pub(super) glyphs: Vec<Glyph>,
    /// The text of all glyphs; each glyph has a range in it.
    pub(super) text: String,
    pub(super) rules: Vec<RulingLine>,
    /// Images large enough for OCR.
    pub(super) pictures: Vec<PageImage>,
    /// Area of all images, in square points.
    pub(super) image_area: f64,
    /// Whether an image is truncated.
    pub(super) ends_early: bool,
    /// Number of invisible glyphs: drawn invisibly, or covered by an image.
    pub(super) hidden: usize,
    /// Number of shapes besides text.
    pub(super) shapes: usize,
    /// Whether glyphs were dropped because of the text limit.
    pub(super) cut: bool,
    /// Whether the page was aborted because of too many drawing operations.
    pub(super) exceeded_limit: bool,
}

/// A glyph with its position, in points from the top left corner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    pub(super) start: u32,
    pub(super) end: u32,
    /// Start on its baseline.
    pub(super) x: f32,
    pub(super) y: f32,
    /// Extent along its baseline.
    pub(super) advance: f32,
    pub(super) size: f32,
    /// In degrees, clockwise; 0 is left to right.
    pub(super) turn: i16,
    /// `None` if its shape is not conclusive.
    pub(super) bold: Option<bool>,
    pub(super) mono: bool,
    /// The file marks it as an artifact: a header or footer.
    pub(super) artifact: bool,
}

/// The device.
#[derive(Debug)]
pub(super) struct GlyphDevice<'l, 'p> {
    pub(super) drawing: PageContent,
    letters: &'l mut GlyphDecoder<'p>,
    stems: &'l mut BoldDetector,
    /// Remaining characters.
    room: u64,
    /// Remaining drawing operations.
    strokes: u32,
    /// The visible part of the page.
    bounds: Rect,
    marks: Vec<MarkedContent>,
}

/// A marked-content sequence.
#[derive(Debug, Default)]
struct MarkedContent {
    artifact: bool,
    /// Replacement text (`ActualText`) of its glyphs; the first glyph takes it.
    actual_text: Option<ActualText>,
}

#[derive(Debug)]
enum ActualText {
    Pending(String),
    Emitted,
}

// === impl ===

impl<'l, 'p> GlyphDevice<'l, 'p> {
    pub(super) fn new(
        letters: &'l mut GlyphDecoder<'p>,
        stems: &'l mut BoldDetector,
        room: u64,
        bounds: Rect,
    ) -> GlyphDevice<'l, 'p> {
        GlyphDevice {
            drawing: PageContent::default(),
            letters,
            stems,
            room,
            strokes: MAX_DRAW_OPERATIONS,
            bounds,
            marks: Vec::new(),
        }
    }

    /// Counts drawing operations. Aborts an endless page, such as one with nested forms that multiply: unwinding is the
    /// only way out of the interpreter.
    fn count(&mut self, drawn: usize) {
        match self.strokes.checked_sub(drawn as u32) {
            Some(left) => self.strokes = left,
            None => {
                self.drawing.exceeded_limit = true;
                std::panic::resume_unwind(Box::new("too many drawing operations"));
            }
        }
    }

    /// Appends the text of one glyph and returns its range.
    fn push_text(&mut self, glyph: &Drawn<'_>, known: Option<Option<char>>) -> (u32, u32) {
        let text = &mut self.drawing.text;
        let start = text.len();
        let said = self.marks.iter_mut().rev().find_map(|mark| mark.actual_text.as_mut());
        match said.map(|said| std::mem::replace(said, ActualText::Emitted)) {
            Some(ActualText::Pending(words)) => text.push_str(&words),
            Some(ActualText::Emitted) => {}
            None => match known {
                Some(letter) => letter.into_iter().for_each(|letter| unicode::push_clean(letter, text)),
                None => self.letters.push(glyph, text),
            },
        }
        (start as u32, text.len() as u32)
    }
}

impl<'a> Device<'a> for GlyphDevice<'_, '_> {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, mode: &DrawMode) {
        let glyphs = run.glyphs();
        self.count(glyphs.len());
        let scales = GlyphScale::of(run, props.transform);
        let artifact = self.marks.iter().any(|mark| mark.artifact);
        let mono = glyphs.first().is_some_and(|glyph| self.letters.is_mono(glyph));
        let first = self.drawing.glyphs.len();
        let mut bold = None;
        let two_bytes = self.letters.of_two_bytes(glyphs);
        for (index, glyph) in glyphs.iter().enumerate() {
            let transform = props.transform * glyph.transform();
            let [a, b, c, d, x, y] = transform.as_coeffs();
            if !(x.is_finite() && y.is_finite() && (a != 0.0 || b != 0.0)) {
                continue;
            }
            // Content outside the page, such as printer's marks, is dropped.
            let middle = transform * Point::new(250.0, 250.0);
            if !self.bounds.contains(middle) {
                continue;
            }
            let (start, end) = self.push_text(glyph, two_bytes.as_ref().map(|letters| letters[index]));
            let words = &self.drawing.text[start as usize..];
            self.room = self.room.saturating_sub(words.chars().count() as u64);
            if self.room == 0 {
                self.drawing.cut = true;
                return;
            }
            if bold.is_none() {
                bold = self.stems.is_bold(glyph, words);
            }
            let size = (c.hypot(d) * 1000.0) as f32;
            let mut turn = b.atan2(a).to_degrees();
            let mut advance = scales.advance(glyph, a.hypot(b), c.hypot(d)) as f32;
            if run.writing_mode() == WritingMode::Vertical {
                (turn, advance) = (turn + 90.0, size);
            }
            self.drawing.glyphs.push(Glyph {
                start,
                end,
                x: x as f32,
                y: y as f32,
                advance,
                size,
                turn: (turn.round() as i16).rem_euclid(360),
                bold: None,
                mono,
                artifact,
            });
        }
        if matches!(mode, DrawMode::Invisible) {
            self.drawing.hidden += self.drawing.glyphs.len() - first;
        }
        let placed = &mut self.drawing.glyphs[first..];
        let drawn_by_itself = matches!(glyphs.first().map(|glyph| &**glyph), Some(Drawn::Type3(_)));
        let resized = if drawn_by_itself { size_by_advance(placed) } else { None };
        for glyph in placed {
            glyph.bold = bold;
            glyph.size = resized.unwrap_or(glyph.size);
        }
    }

    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.count(1);
        self.drawing.shapes += 1;
        if self.drawing.rules.len() >= ruling_lines::MAX_LINES {
            return;
        }
        match mode {
            DrawMode::Stroke(_) | DrawMode::FillAndStroke(..) => {
                ruling_lines::stroked(&mut self.drawing.rules, path, props.transform)
            }
            DrawMode::Fill(_) => ruling_lines::filled_parts(&mut self.drawing.rules, path, props.transform),
            DrawMode::Invisible => {}
        }
    }

    fn draw_rect(&mut self, rect: &Rect, props: DrawProps<'a>, mode: &DrawMode) {
        self.count(1);
        let rect = props.transform.transform_rect_bbox(*rect);
        match mode {
            _ if rect.width().min(rect.height()) <= ruling_lines::MAX_LINE_WIDTH => {
                ruling_lines::filled(&mut self.drawing.rules, rect)
            }
            DrawMode::Stroke(_) | DrawMode::FillAndStroke(..) => {
                ruling_lines::outline_of(&mut self.drawing.rules, rect)
            }
            DrawMode::Fill(_) | DrawMode::Invisible => {}
        }
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.count(1);
        let dots = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        let place = props.transform.transform_rect_bbox(dots).intersect(self.bounds);
        self.drawing.picture(&image, place);
        if place.area() > self.bounds.area() / 2.0 {
            self.drawing.hidden = self.drawing.glyphs.len();
        }
    }

    fn begin_marked_content(&mut self, tag: &[u8], properties: Option<&Dict<'_>>) {
        let kind = properties.and_then(|properties| properties.get::<Name<'_>>(b"Type"));
        let words = properties.and_then(|properties| properties.get::<Bytes<'_>>(b"ActualText"));
        self.marks.push(MarkedContent {
            artifact: tag == b"Artifact" && kind.is_some_and(|kind| kind.as_str() == "Pagination"),
            actual_text: words.map(|words| ActualText::Pending(unicode::clean(&strings::text(&words)))),
        });
    }

    fn end_marked_content(&mut self) {
        self.marks.pop();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.count(1);
    }
    fn push_clip_rect(&mut self, _: &Rect) {
        self.count(1);
    }
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count(1);
    }
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// Horizontal scaling of the glyphs of a run.
///
/// A substitute font is scaled glyph by glyph to the widths of the missing font, and those widths must not be scaled
/// again. If the whole run has the same scale, the file requests it, and widths are scaled too.
struct GlyphScale {
    alike: bool,
}

impl GlyphScale {
    fn of(run: &GlyphRun<'_, '_>, transform: Affine) -> GlyphScale {
        let stretch = |transform: Affine| {
            let [a, b, c, d, ..] = transform.as_coeffs();
            a.hypot(b) / c.hypot(d)
        };
        let mut all = run.glyphs().iter().map(|glyph| stretch(transform * glyph.transform()));
        let first = all.next().unwrap_or(1.0);
        GlyphScale { alike: all.all(|other| (other - first).abs() < 0.001) }
    }

    fn advance(&self, glyph: &Drawn<'_>, across: f64, down: f64) -> f64 {
        let width = match glyph {
            Drawn::Outline(glyph) => glyph.advance_width(),
            Drawn::Type3(glyph) => glyph.advance_width(),
        };
        f64::from(width.unwrap_or(500.0)) * if self.alike { across } else { down }
    }
}

/// Type 3 fonts may have any unit; their letter widths determine the size.
fn size_by_advance(glyphs: &[Glyph]) -> Option<f32> {
    let wide = glyphs.iter().filter(|glyph| glyph.advance > 0.0);
    let (count, sum) = wide.fold((0, 0.0), |(count, sum), glyph| (count + 1, sum + glyph.advance));
    let size = glyphs.first()?.size;
    let mean = sum / count.max(1) as f32;
    (mean > 0.0 && !(0.25..=1.0).contains(&(mean / size))).then_some(mean * 2.0)
}
