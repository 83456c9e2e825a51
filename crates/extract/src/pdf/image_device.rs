//! Image extraction device: decodes requested images while the interpreter draws a page.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use hayro_interpret::font::GlyphRun;
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::{
    BlendMode, CacheKey, ClipPath, Device, DrawMode, DrawProps, Image as Drawn, ImageData, ImageDrawProps, LumaData,
    SoftMask,
};

use super::glyphs::MAX_DRAW_OPERATIONS;
use super::images::is_readable;
use crate::{Error, Limits, Page, Raster};

/// The device.
pub(super) struct ImageDevice<'d> {
    /// Pending images: key in the file, and index on the page.
    wanted: Vec<(u128, usize)>,
    limits: &'d Limits,
    each: &'d mut dyn FnMut(usize, Result<Raster, Error>),
    /// Panic payload of the receiving callback.
    pub(super) panicked: Option<Box<dyn Any + Send>>,
    /// Remaining drawing operations.
    strokes: u32,
}

// === impl ===

impl<'d> ImageDevice<'d> {
    pub(super) fn new(
        page: &Page,
        limits: &'d Limits,
        each: &'d mut dyn FnMut(usize, Result<Raster, Error>),
    ) -> ImageDevice<'d> {
        let wanted = page.images.iter().enumerate().map(|(index, image)| (image.key, index)).collect();
        ImageDevice { wanted, limits, each, panicked: None, strokes: MAX_DRAW_OPERATIONS }
    }

    /// Whether all images were returned.
    pub(super) fn is_done(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Aborts an endless page: unwinding is the only way out of the interpreter.
    fn count(&mut self) {
        match self.strokes.checked_sub(1) {
            Some(left) => self.strokes = left,
            None => resume_unwind(Box::new("too many drawing operations")),
        }
    }
}

impl<'a> Device<'a> for ImageDevice<'_> {
    fn draw_image(&mut self, image: Drawn<'a, '_>, props: ImageDrawProps<'a>) {
        self.count();
        let (width, height) = (image.width(), image.height());
        let dots = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        if self.is_done() || !is_readable(&image, props.transform.transform_rect_bbox(dots)) {
            return;
        }
        let key = image.cache_key();
        let Some(at) = self.wanted.iter().position(|(wanted, _)| *wanted == key) else { return };
        let (_, index) = self.wanted.swap_remove(at);
        let raster = if u64::from(width) * u64::from(height) > self.limits.pixels {
            Err(Error::TooMuch { what: "pixels", most: self.limits.pixels })
        } else {
            let decoded = decode(&image).filter(|raster| !raster.rgb.is_empty());
            let raster = decoded.map(|raster| upright(raster, props.transform));
            raster.ok_or_else(|| Error::Corrupted("an image on the page cannot be decoded".to_owned()))
        };
        let handed_over = catch_unwind(AssertUnwindSafe(|| (self.each)(index, raster)));
        if let Err(panic) = handed_over {
            self.panicked = Some(panic);
            resume_unwind(Box::new("the image consumer panicked"));
        }
    }

    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {
        self.count();
    }
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.count();
    }
    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {
        self.count();
    }
    fn push_clip_path(&mut self, _: &ClipPath) {
        self.count();
    }
    fn push_clip_rect(&mut self, _: &Rect) {
        self.count();
    }
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count();
    }
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// Decodes the stored pixels. Transparent pixels become white, and the painted part of a stencil becomes black.
fn decode(image: &Drawn<'_, '_>) -> Option<Raster> {
    let mut decoded = None;
    match image {
        Drawn::Raster(image) => image.with_rgba(|data, alpha| decoded = Some(on_white(data, alpha)), None),
        Drawn::Stencil(image) => image.with_stencil(
            |mask, _| {
                let rgb = mask.data.iter().flat_map(|&through| [255 - through; 3]).collect();
                decoded = Some(Raster { width: mask.width, height: mask.height, rgb });
            },
            None,
        ),
    }
    decoded
}

fn on_white(data: ImageData, alpha: Option<LumaData>) -> Raster {
    let (width, height) = (data.width(), data.height());
    let mut rgb = match data {
        ImageData::Rgb(data) => data.data,
        ImageData::Luma(data) => data.data.iter().flat_map(|&light| [light; 3]).collect(),
    };
    let Some(alpha) = alpha.filter(|alpha| alpha.width > 0 && alpha.height > 0) else {
        return Raster { width, height, rgb };
    };
    // The alpha mask may have another resolution than the image.
    let stretch = |at: usize, from: u32, to: u32| (at as u64 * u64::from(to) / u64::from(from)) as usize;
    for (y, row) in rgb.chunks_exact_mut(3 * width as usize).enumerate() {
        let start = stretch(y, height, alpha.height) * alpha.width as usize;
        for (x, dot) in row.chunks_exact_mut(3).enumerate() {
            let opacity = u32::from(alpha.data.get(start + stretch(x, width, alpha.width)).copied().unwrap_or(255));
            dot.iter_mut().for_each(|part| *part = ((u32::from(*part) * opacity + 255 * (255 - opacity)) / 255) as u8);
        }
    }
    Raster { width, height, rgb }
}

/// Rotates by multiples of 90° and mirrors an image as displayed. A slightly skewed scan stays skewed.
fn upright(raster: Raster, transform: Affine) -> Raster {
    let [a, b, c, d, ..] = transform.as_coeffs();
    let lies = a.abs() + d.abs() < b.abs() + c.abs();
    // Whether the x axis points left and the y axis points up, after an image that lies on its side is set upright.
    let (leftwards, upwards) = if lies { (c < 0.0, b < 0.0) } else { (a < 0.0, d < 0.0) };
    if !(lies || leftwards || upwards) {
        return raster;
    }
    let (wide, high) = (raster.width as usize, raster.height as usize);
    let (width, height) = if lies { (high, wide) } else { (wide, high) };
    let mut rgb = Vec::with_capacity(raster.rgb.len());
    for y in 0..height {
        let y = if upwards { height - 1 - y } else { y };
        for x in 0..width {
            let x = if leftwards { width - 1 - x } else { x };
            let at = 3 * if lies { x * wide + y } else { y * wide + x };
            rgb.extend_from_slice(&raster.rgb[at..at + 3]);
        }
    }
    Raster { width: width as u32, height: height as u32, rgb }
}
