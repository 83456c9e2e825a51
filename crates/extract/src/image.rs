//! Raster image reader: JPEG and PNG.
//!
//! They have no text, only pixels for OCR, and metadata. The result is a page without blocks that contains the stored
//! image; [`decode_image`] decodes it in upright orientation.

mod decode;
mod exif;
mod png;
mod xmp;

use ::exif::{Exif, Tag};

use crate::{Block, BlockKind, Error, ExtractionMethod, Format, Image, Metadata, Options, Page, Sink, Summary};

pub use decode::{decode_embedded, decode_image};
pub(crate) use decode::{embedded_size, size};
use png::TextChunks;

/// PNG text chunks that are useful to a reader.
const CAPTIONS: [&str; 3] = ["Title", "Description", "Comment"];
/// Maximum bytes of text metadata.
const MAX_CAPTION_BYTES: usize = 64 << 10;

pub(crate) fn read(bytes: &[u8], format: Format, options: &Options, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let (width, height) = decode::decoder(bytes, decode::coding(format)?, &options.limits)?.dimensions();
    check_end(bytes, format)?;
    let texts = if format == Format::Png { TextChunks::of(bytes) } else { TextChunks::default() };
    let packet = if format == Format::Png { texts.xmp() } else { xmp::in_jpeg(bytes) };
    let of_programs = packet.map(|packet| xmp::read(&packet)).unwrap_or_default();
    let exif = exif::read(bytes);
    let turned = exif.as_ref().is_some_and(|exif| exif::orientation(exif) >= 5);
    let (width, height) = if turned { (height, width) } else { (width, height) };
    let metadata = metadata(exif.as_ref(), of_programs, &texts);
    let metadata = Metadata { width: Some(width), height: Some(height), ..metadata };
    let blocks: Vec<Block> = texts.among(&CAPTIONS).map(|text| Block::new(BlockKind::Caption, caption(text))).collect();
    let media_type = if format == Format::Png { "image/png" } else { "image/jpeg" };
    let media_type = Some(media_type.to_owned());
    let (after, description) = (blocks.len(), metadata.subject.clone());
    let image = Image { media_type, bytes: bytes.to_vec(), after, width, height, description, ..Image::default() };
    sink.pages(1);
    sink.page(Page { number: 1, blocks, images: vec![image], scanned: true, ..Page::default() });
    Ok(Summary { metadata, method: ExtractionMethod::ImageAnalysis, warnings: Vec::new() })
}

/// Detects a truncated image by its missing end marker, without decoding. Some programs write data after the end.
fn check_end(bytes: &[u8], format: Format) -> Result<(), Error> {
    let ends = match format {
        Format::Png => memchr::memmem::rfind(bytes, b"IEND").is_some(),
        _ => memchr::memmem::rfind(jpeg_scan_data(bytes), b"\xff\xd9").is_some(),
    };
    if ends { Ok(()) } else { Err(Error::Corrupted("the image is truncated".to_owned())) }
}

/// The data after the metadata segments of a JPEG: one of them may contain a thumbnail with its own end marker.
fn jpeg_scan_data(bytes: &[u8]) -> &[u8] {
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

/// Priority: EXIF from the camera, then metadata from editing programs, then text chunks.
fn metadata(exif: Option<&Exif>, of_programs: Metadata, texts: &TextChunks) -> Metadata {
    let of_camera = |tag: Tag| exif.and_then(|exif| exif::words(exif, tag));
    let date = |tag: Tag| exif.and_then(|exif| exif::date(exif, tag));
    let of_png = |keyword: &str| texts.get(keyword).map(|text| caption(&text).to_owned());
    let title = of_camera(exif::WINDOWS_TITLE).or(of_programs.title);
    let author = of_camera(Tag::Artist).or_else(|| of_camera(exif::WINDOWS_AUTHOR)).or(of_programs.author);
    let mut keywords = of_programs.keywords;
    for keyword in exif.map(exif::keywords).unwrap_or_default() {
        if !keywords.contains(&keyword) {
            keywords.push(keyword);
        }
    }
    Metadata {
        title: title.or_else(|| of_png("Title")),
        author: author.or_else(|| of_png("Author")),
        subject: of_camera(Tag::ImageDescription).or(of_programs.subject).or_else(|| of_png("Description")),
        created: date(Tag::DateTimeOriginal).or_else(|| of_png("Creation Time")),
        modified: date(Tag::DateTime),
        device: exif.and_then(exif::device),
        place: exif.and_then(exif::place),
        keywords,
        copyright: of_camera(Tag::Copyright).or(of_programs.copyright).or_else(|| of_png("Copyright")),
        ..Metadata::default()
    }
}

/// Truncates a long text.
fn caption(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_CAPTION_BYTES)]
}

#[cfg(test)]
mod tests;
