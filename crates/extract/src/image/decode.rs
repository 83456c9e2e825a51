//! Image decoding for all codecs: upright, composited on white.
//!
//! The size from the header is compared with the limit before decoding: a file of a few bytes can declare an image of
//! gigabytes. The decoders have the same limits.

use std::io::Cursor;

use image::codecs::{
    bmp::BmpDecoder, gif::GifDecoder, jpeg::JpegDecoder, png::PngDecoder, tiff::TiffDecoder, webp::WebPDecoder,
};
use image::error::LimitErrorKind;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat};

use super::exif;
use crate::{Error, Format, Image, Limits, Raster, sniff, svg_raster};

/// Maximum decoder bytes per pixel: four 32-bit channels are the most of any codec.
const MAX_BYTES_PER_PIXEL: u64 = 16;
/// Additional decoder memory for palettes, profiles and tables.
const MAX_OVERHEAD_BYTES: u64 = 16 << 20;

/// Decodes an image with its EXIF rotation applied; transparent pixels become white.
pub fn decode_image(bytes: &[u8], format: Format, limits: &Limits) -> Result<Raster, Error> {
    raster(bytes, coding(format)?, limits)
}

/// Decodes an embedded image with requested data: PNG, JPEG, GIF, BMP, WebP, TIFF or SVG, regardless of its declared
/// type. For animations and multi-page files, the first frame.
pub fn decode_embedded(image: &Image, limits: &Limits) -> Result<Raster, Error> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    let bytes = image.bytes.as_slice();
    match image::guess_format(bytes) {
        _ if bytes.is_empty() => Err(Error::Empty),
        Ok(coding @ (Png | Jpeg | Gif | Bmp | WebP | Tiff)) => raster(bytes, coding, limits),
        _ if sniff(bytes) == Some(Format::Svg) => svg_raster(bytes, limits),
        _ => Err(Error::Corrupted("it contains an image in an unsupported format".to_owned())),
    }
}

/// Width and height of a GIF, BMP, WebP or TIFF from the header alone; the rest may be missing.
pub(crate) fn embedded_size(bytes: &[u8]) -> Option<(u32, u32)> {
    use ImageFormat::{Bmp, Gif, Tiff, WebP};
    let coding = image::guess_format(bytes).ok().filter(|coding| matches!(coding, Gif | Bmp | WebP | Tiff))?;
    open(Cursor::new(bytes), coding).ok().map(|decoder| decoder.dimensions())
}

/// Width and height of an image from the header alone.
pub(crate) fn size(bytes: &[u8], format: Format) -> Option<(u32, u32)> {
    decoder(bytes, coding(format).ok()?, &Limits { pixels: u64::MAX, ..Limits::default() })
        .ok()
        .map(|it| it.dimensions())
}

/// A decoder that has read the header and accepted the image size.
pub(super) fn decoder<'a>(
    bytes: &'a [u8],
    coding: ImageFormat,
    limits: &Limits,
) -> Result<Box<dyn ImageDecoder + 'a>, Error> {
    let broken = |error| decode_error(error, limits);
    let mut decoder = open(Cursor::new(bytes), coding).map_err(broken)?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > limits.pixels {
        return Err(Error::TooMuch { what: "pixels", most: limits.pixels });
    }
    let mut memory = image::Limits::no_limits();
    memory.max_alloc = Some(limits.pixels.saturating_mul(MAX_BYTES_PER_PIXEL).saturating_add(MAX_OVERHEAD_BYTES));
    decoder.set_limits(memory).map_err(broken)?;
    Ok(decoder)
}

pub(super) fn coding(format: Format) -> Result<ImageFormat, Error> {
    match format {
        Format::Jpg => Ok(ImageFormat::Jpeg),
        Format::Png => Ok(ImageFormat::Png),
        format => Err(Error::Unsupported { format }),
    }
}

fn open<'a>(bytes: Cursor<&'a [u8]>, coding: ImageFormat) -> Result<Box<dyn ImageDecoder + 'a>, ImageError> {
    Ok(match coding {
        ImageFormat::Jpeg => Box::new(JpegDecoder::new(bytes)?),
        ImageFormat::Gif => Box::new(GifDecoder::new(bytes)?),
        ImageFormat::Bmp => Box::new(BmpDecoder::new(bytes)?),
        ImageFormat::WebP => Box::new(WebPDecoder::new(bytes)?),
        ImageFormat::Tiff => Box::new(TiffDecoder::new(bytes)?),
        _ => Box::new(PngDecoder::new(bytes)?),
    })
}

fn raster(bytes: &[u8], coding: ImageFormat, limits: &Limits) -> Result<Raster, Error> {
    let decoder = decoder(bytes, coding, limits)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| decode_error(error, limits))?;
    let orientation = exif::read(bytes).map_or(1, |exif| exif::orientation(&exif));
    if let Some(orientation) = Orientation::from_exif(orientation) {
        picture.apply_orientation(orientation);
    }
    let (width, height) = (picture.width(), picture.height());
    let rgb = if picture.color().has_alpha() { flatten_on_white(picture) } else { picture.into_rgb8().into_raw() };
    Ok(Raster { width, height, rgb })
}

fn decode_error(error: ImageError, limits: &Limits) -> Error {
    match error {
        ImageError::Limits(error)
            if matches!(error.kind(), LimitErrorKind::DimensionError | LimitErrorKind::InsufficientMemory) =>
        {
            Error::TooMuch { what: "pixels", most: limits.pixels }
        }
        error => Error::Corrupted(error.to_string()),
    }
}

/// Composites transparent pixels on white; on black if the visible content is white.
fn flatten_on_white(picture: DynamicImage) -> Vec<u8> {
    let dots = picture.into_rgba8().into_raw();
    let paper = if is_white(&dots) { 0 } else { 255 };
    let blend = |colour: u8, alpha: u8| {
        let (colour, alpha) = (u32::from(colour), u32::from(alpha));
        ((colour * alpha + paper * (255 - alpha)) / 255) as u8
    };
    let mut rgb = Vec::with_capacity(dots.len() / 4 * 3);
    for dot in dots.chunks_exact(4) {
        rgb.extend([0, 1, 2].map(|part| blend(dot[part], dot[3])));
    }
    rgb
}

/// Whether all visible pixels are nearly white, and some pixels are transparent.
fn is_white(dots: &[u8]) -> bool {
    let mut dots = dots.chunks_exact(4);
    let is_light = |dot: &[u8]| dot[3] < 128 || dot[..3].iter().all(|part| *part > 200);
    dots.clone().any(|dot| dot[3] < 128) && dots.all(is_light)
}
