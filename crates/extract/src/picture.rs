//! Photographs and scans: JPEG and PNG.
//!
//! They have no text to read, only dots in which others may find some, and a few words about themselves. So one comes back
//! as a page without blocks that holds the picture as it is stored; [`picture_raster`] makes it into dots, upright.

use std::io::Cursor;

use exif::{Exif, In, Tag};
use image::codecs::{jpeg::JpegDecoder, png::PngDecoder};
use image::error::LimitErrorKind;
use image::{DynamicImage, ImageDecoder, ImageError};

use crate::{Block, Error, Format, Image, Kind, Limits, Metadata, Method, Options, Page, Raster, Sink, Summary};

/// Words of a PNG about itself, shown where they are of use to a reader.
const CAPTIONS: [&str; 3] = ["Title", "Description", "Comment"];
/// As much text about a picture as is kept.
const CAPTION_BYTES: usize = 64 << 10;

pub(crate) fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let decoder = decoder(bytes, format)?;
    let (width, height) = decoder.dimensions();
    within(width, height, &options.limits)?;
    check_end(bytes, format)?;
    let texts = if format == Format::Png { png_texts(bytes) } else { Vec::new() };
    let exif = exif(bytes);
    let turned = exif.as_ref().is_some_and(|exif| orientation(exif) >= 5);
    let (width, height) = if turned { (height, width) } else { (width, height) };
    let metadata = Metadata { width: Some(width), height: Some(height), ..metadata(exif.as_ref(), &texts) };
    let captions = texts.iter().filter(|(key, _)| CAPTIONS.contains(&key.as_str()));
    let blocks = captions.map(|(_, text)| Block::new(Kind::Caption, text)).collect();
    let media_type = if format == Format::Png { "image/png" } else { "image/jpeg" };
    let description = metadata.subject.clone();
    let image = Image { media_type: media_type.to_owned(), bytes: bytes.to_vec(), width, height, description };
    sink.pages(1);
    sink.page(Page { number: 1, blocks, images: vec![image], scanned: true, ..Page::default() });
    Ok(Summary { metadata, method: Method::ImageAnalysis, warnings: Vec::new() })
}

/// The dots of a picture, turned the way it was taken; what is transparent is white, as on paper.
pub fn picture_raster(bytes: &[u8], format: Format, limits: &Limits) -> Result<Raster, Error> {
    let decoder = decoder(bytes, format)?;
    let (width, height) = decoder.dimensions();
    within(width, height, limits)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| broken(error, limits))?;
    let orientation = exif(bytes).map_or(1, |exif| orientation(&exif));
    if let Some(orientation) = image::metadata::Orientation::from_exif(orientation) {
        picture.apply_orientation(orientation);
    }
    let (width, height) = (picture.width(), picture.height());
    let rgb = if picture.color().has_alpha() { on_white(picture) } else { picture.into_rgb8().into_raw() };
    Ok(Raster { width, height, rgb })
}

/// Width and height by the header alone.
pub(crate) fn size(bytes: &[u8], format: Format) -> Option<(u32, u32)> {
    decoder(bytes, format).ok().map(|decoder| decoder.dimensions())
}

fn decoder<'a>(bytes: &'a [u8], format: Format) -> Result<Box<dyn ImageDecoder + 'a>, Error> {
    let limits = Limits::default();
    Ok(match format {
        Format::Jpg => Box::new(JpegDecoder::new(Cursor::new(bytes)).map_err(|error| broken(error, &limits))?),
        Format::Png => Box::new(PngDecoder::new(Cursor::new(bytes)).map_err(|error| broken(error, &limits))?),
        format => return Err(Error::Unsupported { format }),
    })
}

/// Checked before anything is decoded: a file of a few bytes can promise a picture of gigabytes.
fn within(width: u32, height: u32, limits: &Limits) -> Result<(), Error> {
    if u64::from(width) * u64::from(height) > limits.pixels {
        return Err(Error::TooMuch { what: "dots", most: limits.pixels });
    }
    Ok(())
}

fn broken(error: ImageError, limits: &Limits) -> Error {
    match error {
        ImageError::Limits(error)
            if matches!(error.kind(), LimitErrorKind::DimensionError | LimitErrorKind::InsufficientMemory) =>
        {
            Error::TooMuch { what: "dots", most: limits.pixels }
        }
        error => Error::Corrupted(error.to_string()),
    }
}

/// Without decoding it, a picture cut short is seen by its missing end. Some programs write more after the end.
fn check_end(bytes: &[u8], format: Format) -> Result<(), Error> {
    let ends = match format {
        Format::Png => memchr::memmem::rfind(bytes, b"IEND").is_some(),
        _ => memchr::memmem::rfind(jpeg_dots(bytes), b"\xff\xd9").is_some(),
    };
    if ends { Ok(()) } else { Err(Error::Corrupted("the picture ends too early".to_owned())) }
}

/// What comes after the segments that describe a JPEG: one of them may hold a small copy of the picture, with its end.
fn jpeg_dots(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let [0xff, marker, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (marker, length) = if marker == 0xff { (marker, 1) } else { (marker, 2 + length) };
        rest = rest.get(length..).unwrap_or_default();
        if marker == 0xda {
            break;
        }
    }
    rest
}

fn on_white(picture: DynamicImage) -> Vec<u8> {
    let blend = |colour: u8, alpha: u8| {
        let (colour, alpha) = (u32::from(colour), u32::from(alpha));
        ((colour * alpha + 255 * (255 - alpha)) / 255) as u8
    };
    let dots = picture.into_rgba8().into_raw();
    dots.chunks_exact(4).flat_map(|dot| [0, 1, 2].map(|part| blend(dot[part], dot[3]))).collect()
}

fn exif(bytes: &[u8]) -> Option<Exif> {
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    reader.read_from_container(&mut Cursor::new(bytes)).or_else(|error| error.distill_partial_result(|_| {})).ok()
}

fn orientation(exif: &Exif) -> u8 {
    let field = exif.get_field(Tag::Orientation, In::PRIMARY);
    field.and_then(|field| field.value.get_uint(0)).and_then(|value| u8::try_from(value).ok()).unwrap_or(1)
}

fn metadata(exif: Option<&Exif>, texts: &[(String, String)]) -> Metadata {
    let of_png = |key: &str| texts.iter().find(|(found, _)| found == key).map(|(_, text)| text.clone());
    let of_exif = |tag: Tag| exif.and_then(|exif| words(exif, tag));
    let taken = of_exif(Tag::DateTimeOriginal).map(date);
    Metadata {
        title: of_png("Title"),
        author: of_exif(Tag::Artist).or_else(|| of_png("Author")),
        subject: of_exif(Tag::ImageDescription).or_else(|| of_png("Description")),
        created: taken.or_else(|| of_png("Creation Time")),
        modified: of_exif(Tag::DateTime).map(date),
        ..Metadata::default()
    }
}

fn words(exif: &Exif, tag: Tag) -> Option<String> {
    let exif::Value::Ascii(lines) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let text = lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join(" ");
    Some(text.trim_matches(['\0', ' ']).to_owned()).filter(|text| !text.is_empty())
}

/// From `2024:05:06 07:08:09` to `2024-05-06T07:08:09`: cameras do not say in which part of the world they are.
fn date(text: String) -> String {
    match text.split_once(' ') {
        Some((day, time)) if day.len() == 10 => format!("{}T{time}", day.replace(':', "-")),
        _ => text,
    }
}

/// The uncompressed text chunks of a PNG, by their keyword.
fn png_texts(bytes: &[u8]) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(data) = after.get(..length) else { break };
        texts.extend(png_text(&head[4..], &data[..length.min(CAPTION_BYTES)]));
        rest = after.get(length + 4..).unwrap_or_default();
    }
    texts
}

fn png_text(kind: &[u8], data: &[u8]) -> Option<(String, String)> {
    let end = data.iter().position(|&byte| byte == 0)?;
    let (key, rest) = (String::from_utf8_lossy(&data[..end]).into_owned(), &data[end + 1..]);
    let text = match (kind, rest) {
        (b"tEXt", latin) => encoding_rs::mem::decode_latin1(latin).into_owned(),
        // Not compressed; then a language and the keyword in it, each with a zero at its end.
        (b"iTXt", [0, _, rest @ ..]) => String::from_utf8_lossy(rest.splitn(3, |&byte| byte == 0).nth(2)?).into_owned(),
        _ => return None,
    };
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some((key, text))
}

#[cfg(test)]
mod tests;
