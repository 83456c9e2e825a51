//! Images on a page that may contain text, detected during text extraction.
//!
//! An image with text over it is a background, or a scan with an invisible text layer: its text is already extracted.
//! Images too small for a word are skipped, and so are thin strips, into which some programs cut scans.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::Filter;
use hayro_interpret::hayro_syntax::object::Stream;
use hayro_interpret::kurbo::{Point, Rect};
use hayro_interpret::{CacheKey, Image as Drawn};

use super::glyphs::{Glyph, PageContent};
use super::layout::PagePart;
use crate::{Image, Limits, Warning};

/// Longer and shorter side of the smallest image with text, in points as displayed.
const MIN_SHOWN_POINTS: (f64, f64) = (40.0, 10.0);
/// The same in pixels.
const MIN_PIXELS: (u32, u32) = (64, 16);
/// Maximum images of a scanned page with stamps.
const MAX_SCAN_IMAGES: usize = 4;
/// Maximum images considered per page.
const MAX_IMAGES_PER_PAGE: usize = 200;
/// Minimum letters over an image that count as text. One or two may be stray marks.
const MIN_COVERING_LETTERS: usize = 3;

/// An image large enough for OCR.
#[derive(Debug, Clone)]
pub(super) struct PageImage {
    /// Key of the image in the file.
    key: u128,
    /// Position on the page.
    place: Rect,
    width: u32,
    height: u32,
    media_type: Option<&'static str>,
}

/// Images seen so far: a logo on every page is listed once.
#[derive(Debug, Default)]
pub(super) struct ListedImages {
    keys: HashSet<u128>,
    is_full: bool,
}

/// Whether an image of this displayed size may contain text.
pub(super) fn is_readable(image: &Drawn<'_, '_>, shown: Rect) -> bool {
    let (long, short) = (shown.width().max(shown.height()), shown.width().min(shown.height()));
    let (many, few) = (image.width().max(image.height()), image.width().min(image.height()));
    long >= MIN_SHOWN_POINTS.0 && short >= MIN_SHOWN_POINTS.1 && many >= MIN_PIXELS.0 && few >= MIN_PIXELS.1
}

// === impl ===

impl PageContent {
    /// Records an image with its position on the visible part of the page.
    pub(super) fn picture(&mut self, image: &Drawn<'_, '_>, place: Rect) {
        self.image_area += place.area();
        if self.pictures.len() < MAX_IMAGES_PER_PAGE && is_readable(image, place) {
            let stream = match image {
                Drawn::Raster(image) => image.stream(),
                Drawn::Stencil(image) => image.stream(),
            };
            self.ends_early |= ends_early(stream);
            self.pictures.push(PageImage {
                key: image.cache_key(),
                place,
                width: image.width(),
                height: image.height(),
                media_type: media_type(stream),
            });
        }
    }

    fn has_letters_on(&self, place: Rect) -> bool {
        let letters = self.glyphs.iter().filter(|glyph| {
            let says_nothing = self.text[glyph.start as usize..glyph.end as usize].chars().all(char::is_whitespace);
            let is_space = says_nothing && glyph.end > glyph.start;
            !is_space && place.contains(middle(glyph))
        });
        letters.take(MIN_COVERING_LETTERS).count() == MIN_COVERING_LETTERS
    }
}

impl ListedImages {
    /// The images of a page that may contain text and were not listed on an earlier page. For a `scanned` page, only if
    /// they can be recognized separately from its text.
    pub(super) fn images(
        &mut self,
        drawing: &PageContent,
        parts: &[PagePart],
        number: u32,
        scanned: bool,
        limits: &Limits,
        warnings: &mut Vec<Warning>,
    ) -> Vec<Image> {
        let mut images = Vec::new();
        // A sheet cut into strips is rendered as a whole, and so is a sheet with an invisible text layer.
        let is_layer = drawing.hidden * 2 >= drawing.glyphs.len();
        if scanned && (is_layer || drawing.pictures.len() > MAX_SCAN_IMAGES) {
            return images;
        }
        // They are drawn in any order, and read in text order or from the top.
        let mut pictures: Vec<&PageImage> = drawing.pictures.iter().collect();
        pictures.sort_by(|one, other| one.place.y0.total_cmp(&other.place.y0));
        for picture in pictures {
            // Letters over a scan are stamps; over other images, they make the image a background.
            if self.keys.contains(&picture.key) || (!scanned && drawing.has_letters_on(picture.place)) {
                continue;
            }
            if self.keys.len() >= limits.images {
                if !std::mem::replace(&mut self.is_full, true) {
                    warnings
                        .push(Warning::on_page(number, format!("only the first {} images are kept", limits.images)));
                }
                break;
            }
            self.keys.insert(picture.key);
            images.push(Image {
                media_type: picture.media_type.map(str::to_owned),
                key: picture.key,
                after: parts_before(picture.place, parts),
                width: picture.width,
                height: picture.height,
                ..Image::default()
            });
        }
        images.sort_by_key(|image: &Image| image.after);
        images
    }
}

/// Whether a JPEG is truncated. The renderer draws it without a warning, as far as it goes.
fn ends_early(stream: &Stream<'_>) -> bool {
    stream.filters().as_slice() == [Filter::DctDecode]
        && memchr::memmem::rfind(&stream.raw_data(), b"\xff\xd9").is_none()
}

/// Media type of the image as a separate file. Most have none: only their pixels are compressed.
fn media_type(stream: &Stream<'_>) -> Option<&'static str> {
    match stream.filters().last()? {
        Filter::DctDecode => Some("image/jpeg"),
        Filter::JpxDecode => Some("image/jp2"),
        _ => None,
    }
}

/// A point slightly above the middle of its baseline.
fn middle(glyph: &Glyph) -> Point {
    let (along, up) = (f64::from(glyph.advance) / 2.0, f64::from(glyph.size) * 0.3);
    let (sin, cos) = f64::from(glyph.turn).to_radians().sin_cos();
    Point::new(f64::from(glyph.x) + along * cos + up * sin, f64::from(glyph.y) + along * sin - up * cos)
}

/// Number of parts before an image in reading order: after the text directly above it, or else before the text directly
/// below.
fn parts_before(place: Rect, parts: &[PagePart]) -> usize {
    let texts = parts.iter().enumerate().filter_map(|(index, part)| match part {
        PagePart::Text(group) if group.upright => Some((index, group)),
        _ => None,
    });
    let (left, right) = (place.x0 as f32, place.x1 as f32);
    let beside = texts.filter(|(_, group)| group.x0 < right && group.x1 > left);
    let middle = place.center().y as f32;
    let (above, below): (Vec<_>, Vec<_>) = beside.partition(|(_, group)| group.bottom < middle);
    let above = above.into_iter().max_by(|(_, one), (_, other)| one.bottom.total_cmp(&other.bottom));
    let below = below.into_iter().min_by(|(_, one), (_, other)| one.top.total_cmp(&other.top));
    match (above, below) {
        (Some((index, _)), _) => index + 1,
        (None, Some((index, _))) => index,
        (None, None) => parts.len(),
    }
}
