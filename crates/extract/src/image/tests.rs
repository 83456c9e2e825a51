mod hostile;
mod jpeg;
mod metadata;
mod png;

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};

use super::embedded_size;
use crate::{Error, ExtractionMethod, Format, Image, Limits, Options, Raster, decode_embedded, decode_image, document};

/// White, with a black pixel in the top left corner.
fn drawn(format: ImageFormat) -> Vec<u8> {
    let mut picture = RgbImage::from_pixel(16, 8, Rgb([255, 255, 255]));
    picture.put_pixel(0, 0, Rgb([0, 0, 0]));
    encoded(&picture, format)
}

fn encoded(picture: &RgbImage, coding: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, coding).unwrap();
    bytes.into_inner()
}

fn inside(bytes: Vec<u8>) -> Image {
    Image { bytes, ..Image::default() }
}

fn raster(bytes: &[u8]) -> Raster {
    decode_embedded(&inside(bytes.to_vec()), &Limits::default()).unwrap()
}

fn dot(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let at = 3 * (y * raster.width + x) as usize;
    [raster.rgb[at], raster.rgb[at + 1], raster.rgb[at + 2]]
}

/// Adds an EXIF segment after the first marker: rotated by 90 degrees, author Ada.
fn turned() -> Vec<u8> {
    let mut tiff = b"MM\0\x2a\0\0\0\x08\0\x02".to_vec();
    tiff.extend(b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0");
    tiff.extend(b"\x01\x3b\0\x02\0\0\0\x04Ada\0\0\0\0\0");
    with_segment(&[b"Exif\0\0".to_vec(), tiff].concat())
}

/// Adds a metadata segment after the first marker.
fn with_segment(data: &[u8]) -> Vec<u8> {
    let mut segment = vec![0xff, 0xe1];
    segment.extend((2 + data.len() as u16).to_be_bytes());
    segment.extend(data);
    let mut bytes = drawn(ImageFormat::Jpeg);
    bytes.splice(2..2, segment);
    bytes
}

fn with_text(kind: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = drawn(ImageFormat::Png);
    let mut chunk = (data.len() as u32).to_be_bytes().to_vec();
    chunk.extend(kind.iter().chain(data).chain(&[0; 4]));
    bytes.splice(33..33, chunk);
    bytes
}

#[test]
fn a_picture_is_a_page_that_holds_itself() {
    let bytes = drawn(ImageFormat::Png);
    let read = document(&bytes, Format::Png, &Options::default()).unwrap();
    assert_eq!(
        (read.method, read.metadata.width, read.metadata.height),
        (ExtractionMethod::ImageAnalysis, Some(16), Some(8))
    );
    assert!(read.pages[0].blocks.is_empty());
    assert_eq!(read.pages[0].images[0].bytes, bytes);
}

#[test]
fn a_turned_picture_comes_upright() {
    let read = document(&turned(), Format::Jpg, &Options::default()).unwrap();
    assert_eq!((read.metadata.width, read.metadata.author.as_deref()), (Some(8), Some("Ada")));
    let raster = decode_image(&turned(), Format::Jpg, &Limits::default()).unwrap();
    assert_eq!((raster.width, raster.height, raster.rgb.len()), (8, 16, 8 * 16 * 3));
    let dot = |x: usize, y: usize| raster.rgb[(y * 8 + x) * 3];
    assert!(dot(7, 0) < dot(0, 0), "the dark corner is at the upper right now");
}

#[test]
fn words_of_a_png_about_itself_are_kept() {
    let read = document(&with_text(b"tEXt", b"Title\0A caf\xe9"), Format::Png, &Options::default()).unwrap();
    assert_eq!(read.metadata.title.as_deref(), Some("A café"));
    assert_eq!(read.text(), "A café");
    let read =
        document(&with_text(b"iTXt", "Description\0\0\0de\0\0Größe".as_bytes()), Format::Png, &Options::default());
    assert_eq!(read.unwrap().metadata.subject.as_deref(), Some("Größe"));
}

#[test]
fn a_picture_cut_short_is_broken() {
    for (format, encoded) in [(Format::Png, ImageFormat::Png), (Format::Jpg, ImageFormat::Jpeg)] {
        let bytes = drawn(encoded);
        for end in [1, 20, bytes.len() - 13] {
            let error = document(&bytes[..end], format, &Options::default()).unwrap_err();
            assert_eq!(error.kind(), "corrupted_file", "{format} cut at {end}");
        }
    }
}

#[test]
fn a_small_file_that_promises_a_huge_picture_is_refused_by_its_header() {
    let mut bytes = drawn(ImageFormat::Png);
    bytes[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
    // Updates the checksum of the header.
    let sum = bytes[12..29].iter().fold(!0_u32, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
    });
    bytes[29..33].copy_from_slice(&(!sum).to_be_bytes());
    let refused = Error::TooMuch { what: "pixels", most: Limits::default().pixels };
    assert_eq!(document(&bytes, Format::Png, &Options::default()), Err(refused.clone()));
    assert_eq!(decode_image(&bytes, Format::Png, &Limits::default()), Err(refused));
}

#[test]
fn k35_a_picture_inside_a_document_is_decoded_by_what_it_is() {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Tiff, WebP};
    for coding in [Png, Jpeg, Gif, Bmp, WebP, Tiff] {
        let raster = decode_embedded(&inside(drawn(coding)), &Limits::default()).unwrap();
        assert_eq!((raster.width, raster.height, raster.rgb.len()), (16, 8, 16 * 8 * 3), "{coding:?}");
        assert!(raster.rgb[0] < 64 && raster.rgb[3 * (8 * 16 - 1)] > 250, "{coding:?}");
        let size = matches!(coding, Gif | Bmp | WebP | Tiff).then_some((16, 8));
        assert_eq!(embedded_size(&drawn(coding)), size, "{coding:?}");
        let few = Limits { pixels: 127, ..Limits::default() };
        let refused = Err(Error::TooMuch { what: "pixels", most: 127 });
        assert_eq!(decode_embedded(&inside(drawn(coding)), &few), refused, "{coding:?}");
    }
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>";
    let raster = decode_embedded(&inside(svg.into()), &Limits::default()).unwrap();
    assert!(raster.rgb.iter().all(|&part| part == 0));
    assert_eq!(decode_embedded(&inside(Vec::new()), &Limits::default()), Err(Error::Empty));
    let metafile = inside(b"\xd7\xcd\xc6\x9a".to_vec());
    assert!(matches!(decode_embedded(&metafile, &Limits::default()), Err(Error::Corrupted(_))));
}
