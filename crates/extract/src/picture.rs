//! Photographs and scans: JPEG and PNG.
//!
//! They have no text to read, only dots in which others may find some, and a few words about themselves. So one comes back
//! as a page without blocks that holds the picture as it is stored; [`picture_raster`] makes it into dots, upright.

mod dots;
mod exif;

use ::exif::{Exif, Tag};

use crate::{Block, Error, Format, Image, Kind, Metadata, Method, Options, Page, Sink, Summary};

pub(crate) use dots::size;
pub use dots::{embedded_raster, picture_raster};
use exif::{date, orientation, words};

/// Words of a PNG about itself, shown where they are of use to a reader.
const CAPTIONS: [&str; 3] = ["Title", "Description", "Comment"];
/// As much text about a picture as is kept.
const CAPTION_BYTES: usize = 64 << 10;

pub(crate) fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let (width, height) = dots::decoder(bytes, dots::coding(format)?, &options.limits)?.dimensions();
    check_end(bytes, format)?;
    let texts = if format == Format::Png { png_texts(bytes) } else { Vec::new() };
    let exif = exif::read(bytes);
    let turned = exif.as_ref().is_some_and(|exif| orientation(exif) >= 5);
    let (width, height) = if turned { (height, width) } else { (width, height) };
    let metadata = Metadata { width: Some(width), height: Some(height), ..metadata(exif.as_ref(), &texts) };
    let captions = texts.iter().filter(|(key, _)| CAPTIONS.contains(&key.as_str()));
    let blocks: Vec<Block> = captions.map(|(_, text)| Block::new(Kind::Caption, text)).collect();
    let media_type = if format == Format::Png { "image/png" } else { "image/jpeg" };
    let media_type = Some(media_type.to_owned());
    let (after, description) = (blocks.len(), metadata.subject.clone());
    let image = Image { media_type, bytes: bytes.to_vec(), after, width, height, description, ..Image::default() };
    sink.pages(1);
    sink.page(Page { number: 1, blocks, images: vec![image], scanned: true, ..Page::default() });
    Ok(Summary { metadata, method: Method::ImageAnalysis, warnings: Vec::new() })
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
