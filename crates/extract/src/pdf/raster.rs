//! A page as a picture, for those who read pictures.

use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings};
use hayro_interpret::InterpreterSettings;

use super::{open, shielded};
use crate::{Error, Limits, Raster};

/// Points to the inch.
const POINTS: f32 = 72.0;
/// The renderer counts dots in 16 bits.
const LONGEST: f32 = 16_000.0;

/// Draws a page, counted from 1, with so many dots per inch. A page that would have more dots than the limit allows is
/// drawn with fewer per inch.
pub fn raster(bytes: &[u8], number: u32, dpi: f32, limits: &Limits) -> Result<Raster, Error> {
    let drawn = shielded(|| {
        let pdf = open(bytes.to_vec())?;
        let index = (number as usize).checked_sub(1);
        let page = index.and_then(|index| pdf.pages().get(index));
        let page = page.ok_or_else(|| Error::Corrupted(format!("it has no page {number}")))?;
        let (width, height) = page.render_dimensions();
        let area = f64::from(width) * f64::from(height);
        let fits = (limits.pixels as f64 / area).sqrt() as f32;
        let scale = (dpi / POINTS).min(fits).min(LONGEST / width.max(height)).max(1.0 / width.min(height));
        // A page so thin that the one dot it has across is too many along: the renderer panics where its count ends.
        if scale * width.max(height) > LONGEST + 1.0 {
            return Err(Error::Corrupted(format!("page {number} is too thin to be drawn")));
        }
        let pixmap = hayro::render(
            page,
            &RenderCache::new(),
            &InterpreterSettings::default(),
            &RenderSettings::default(),
            &PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE },
        );
        // The background is opaque, so every dot is: its colour needs no division by its opacity.
        let rgb = pixmap.data_as_u8_slice().chunks_exact(4).flat_map(|dot| [dot[0], dot[1], dot[2]]).collect();
        Ok(Raster { width: u32::from(pixmap.width()), height: u32::from(pixmap.height()), rgb })
    });
    drawn.unwrap_or_else(|| Err(Error::Corrupted(format!("page {number} cannot be drawn"))))
}
