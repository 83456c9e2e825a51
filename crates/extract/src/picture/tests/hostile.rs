//! Pictures that lie about their size, end too early, or are stored in ways that few programs use.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use image::{ImageFormat, Rgb, RgbImage};

use super::{drawn, inside};
use crate::{Error, Format, Limits, Options, Raster, document, embedded_raster, picture_raster};

const ALL: [ImageFormat; 6] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::Bmp, ImageFormat::WebP, ImageFormat::Tiff];

fn encoded(picture: &RgbImage, coding: ImageFormat) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, coding).unwrap();
    bytes.into_inner()
}

fn raster(bytes: &[u8]) -> Raster {
    embedded_raster(&inside(bytes.to_vec()), &Limits::default()).unwrap()
}

fn dot(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let at = 3 * (y * raster.width + x) as usize;
    [raster.rgb[at], raster.rgb[at + 1], raster.rgb[at + 2]]
}

// === sizes ===

#[test]
fn a_picture_of_one_dot_is_decoded() {
    for coding in ALL {
        let raster = raster(&encoded(&RgbImage::from_pixel(1, 1, Rgb([255, 255, 255])), coding));
        assert_eq!((raster.width, raster.height, raster.rgb), (1, 1, vec![255; 3]), "{coding:?}");
    }
}

/// A picture whose head says 40,000 by 40,000 dots, or 10,000 where there cannot be as many. No more comes after it than of a small
/// one, or nothing at all: whoever decodes it before looking at its size says that it is broken.
fn huge(coding: ImageFormat) -> Vec<u8> {
    let side = 40_000_u16;
    let mut bytes = drawn(coding);
    match coding {
        ImageFormat::Png => {
            let mut head = [[0; 2], side.to_be_bytes(), [0; 2], side.to_be_bytes()].concat();
            head.extend([8, 2, 0, 0, 0]);
            png(&[(b"IHDR", &head), (b"IDAT", b"")])
        }
        ImageFormat::Jpeg => {
            let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
            bytes[frame + 5..frame + 9].copy_from_slice(&[side.to_be_bytes(), side.to_be_bytes()].concat());
            let dots = bytes.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
            bytes.truncate(dots + 14);
            bytes
        }
        ImageFormat::Gif => {
            bytes[6..10].copy_from_slice(&[side.to_le_bytes(), side.to_le_bytes()].concat());
            bytes
        }
        ImageFormat::Bmp => {
            bytes[18..26].copy_from_slice(&[side.to_le_bytes(), [0; 2], side.to_le_bytes(), [0; 2]].concat());
            bytes.truncate(60);
            bytes
        }
        // Two numbers of 14 bits, each less by one.
        ImageFormat::WebP => {
            let at = bytes.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
            bytes[at..at + 4].copy_from_slice(&(9_999_u32 | 9_999 << 14).to_le_bytes());
            bytes
        }
        _ => {
            let at = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize + 2;
            for entry in bytes[at..].chunks_exact_mut(12).take_while(|entry| entry[1] == 1) {
                // Width, height, and how many rows are in a strip.
                if matches!(entry[0], 0 | 1 | 0x16) {
                    entry[8..10].copy_from_slice(&side.to_le_bytes());
                }
            }
            bytes
        }
    }
}

#[test]
fn a_picture_that_says_it_is_huge_is_refused_before_it_is_decoded() {
    let refused = Error::TooMuch { what: "dots", most: Limits::default().pixels };
    for coding in ALL {
        let error = embedded_raster(&inside(huge(coding)), &Limits::default());
        assert_eq!(error, Err(refused.clone()), "{coding:?}");
    }
    for (format, coding) in [(Format::Png, ImageFormat::Png), (Format::Jpg, ImageFormat::Jpeg)] {
        assert_eq!(picture_raster(&huge(coding), format, &Limits::default()), Err(refused.clone()));
        assert_eq!(document(&huge(coding), format, &Options::default()), Err(refused.clone()));
    }
}

#[test]
fn a_picture_cut_anywhere_is_an_error_or_what_there_is_of_it() {
    for coding in ALL {
        let bytes = encoded(&RgbImage::from_fn(40, 30, |x, y| Rgb([(x * y) as u8, x as u8, y as u8])), coding);
        for end in (1..bytes.len()).step_by(bytes.len() / 100 + 1) {
            match embedded_raster(&inside(bytes[..end].to_vec()), &Limits::default()) {
                Ok(raster) => {
                    assert_eq!(raster.rgb.len() as u32, 3 * raster.width * raster.height, "{coding:?} at {end}")
                }
                Err(Error::Corrupted(_)) => {}
                Err(other) => panic!("{coding:?} at {end}: {other}"),
            }
        }
    }
}

// === JPEG ===

/// A JPEG of eight by eight dots that are all alike.
struct Even<'e> {
    /// One value for each component.
    values: &'e [u8],
    /// What the segment of Adobe says about how they are transformed, where there is one.
    adobe: Option<u8>,
    progressive: bool,
}

impl Even<'_> {
    fn bytes(&self) -> Vec<u8> {
        let count = self.values.len() as u8;
        let mut bytes = vec![0xff, 0xd8];
        let mut segment = |marker: u8, data: &[u8]| {
            bytes.extend([0xff, marker]);
            bytes.extend((2 + data.len() as u16).to_be_bytes());
            bytes.extend(data);
        };
        if let Some(transform) = self.adobe {
            segment(0xee, &[b"Adobe\0\x64\0\0\0\0".as_slice(), &[transform]].concat());
        }
        // Divided by eight, the mean of a block is its value.
        segment(0xdb, &[[0].as_slice(), &[8; 64]].concat());
        let components = |each: &dyn Fn(u8) -> Vec<u8>| (1..=count).flat_map(each).collect::<Vec<u8>>();
        let frame = [vec![8, 0, 8, 0, 8, count], components(&|id| vec![id, 0x11, 0])].concat();
        segment(if self.progressive { 0xc2 } else { 0xc0 }, &frame);
        // Nine lengths of differences with codes of four bits; for all else, the end of the block with a code of one.
        let mut lengths = [0; 16];
        lengths[3] = 9;
        segment(0xc4, &[[0].as_slice(), &lengths, &[0, 1, 2, 3, 4, 5, 6, 7, 8]].concat());
        segment(0xc4, &[[0x10, 1].as_slice(), &[0; 15], &[0]].concat());
        let last = if self.progressive { 0 } else { 63 };
        segment(0xda, &[vec![count], components(&|id| vec![id, 0]), vec![0, last, 0]].concat());
        let mut bits = String::new();
        for &value in self.values {
            let value = i32::from(value) - 128;
            let length = (32 - value.unsigned_abs().leading_zeros()) as usize;
            let shown = if value < 0 { value + (1 << length) - 1 } else { value };
            bits += &format!("{length:04b}");
            if length > 0 {
                bits += &format!("{shown:0length$b}");
            }
            bits += if self.progressive { "" } else { "0" };
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        for at in (0..bits.len()).step_by(8) {
            let byte = u8::from_str_radix(&bits[at..at + 8], 2).unwrap();
            bytes.extend([byte].iter().chain([0].iter().filter(|_| byte == 0xff)));
        }
        bytes.extend([0xff, 0xd9]);
        bytes
    }
}

#[track_caller]
fn check_colour(picture: &Even<'_>, expected: [u8; 3]) {
    let raster = raster(&picture.bytes());
    assert_eq!((raster.width, raster.height), (8, 8));
    let found = dot(&raster, 4, 4);
    assert!(found.iter().zip(expected).all(|(&found, expected)| found.abs_diff(expected) < 12), "{found:?}");
}

#[test]
fn paper_is_white_in_jpegs_of_four_inks() {
    let inks =
        |values: &[u8; 4], expected| check_colour(&Even { values, adobe: Some(0), progressive: false }, expected);
    // Adobe stores how much of an ink is missing.
    inks(&[255, 255, 255, 255], [255, 255, 255]);
    inks(&[0, 255, 255, 255], [0, 255, 255]);
    inks(&[255, 255, 0, 255], [255, 255, 0]);
    inks(&[255, 255, 255, 0], [0, 0, 0]);
    inks(&[255, 255, 255, 128], [128, 128, 128]);
    let light =
        |values: &[u8; 4], expected| check_colour(&Even { values, adobe: Some(2), progressive: false }, expected);
    // Here the light that is missing is what is transformed, so that paper has none.
    light(&[0, 128, 128, 255], [255, 255, 255]);
    light(&[0, 128, 128, 0], [0, 0, 0]);
    light(&[128, 128, 128, 255], [128, 128, 128]);
    light(&[179, 171, 0, 255], [255, 0, 0]);
}

#[test]
fn a_jpeg_that_comes_in_passes_is_decoded() {
    let colours = |values: &[u8], expected| check_colour(&Even { values, adobe: None, progressive: true }, expected);
    colours(&[200], [200, 200, 200]);
    colours(&[76, 85, 255], [254, 0, 0]);
}

#[test]
fn a_jpeg_is_turned_the_way_it_was_taken() {
    let mut picture = RgbImage::from_pixel(32, 16, Rgb([255, 255, 255]));
    (0..64).for_each(|at| picture.put_pixel(at % 8, at / 8, Rgb([0, 0, 0])));
    let plain = encoded(&picture, ImageFormat::Jpeg);
    // Where the dark corner goes: right or left, down or up.
    let turns = [(2, 1, 0), (3, 1, 1), (4, 0, 1), (5, 0, 0), (6, 1, 0), (7, 1, 1), (8, 0, 1)];
    for (orientation, right, down) in turns {
        let mut segment = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        segment.extend([orientation, 0, 0, 0, 0, 0, 0]);
        let mut bytes = plain.clone();
        bytes.splice(2..2, segment);
        let raster = raster(&bytes);
        let size = if orientation < 5 { (32, 16) } else { (16, 32) };
        assert_eq!((raster.width, raster.height), size, "orientation {orientation}");
        for (x, y) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            let light = dot(&raster, x * (raster.width - 1), y * (raster.height - 1))[0];
            assert_eq!(light < 128, (x, y) == (right, down), "orientation {orientation} at {x}, {y}");
        }
        let read = document(&bytes, Format::Jpg, &Options::default()).unwrap().metadata;
        assert_eq!((read.width, read.height), (Some(size.0), Some(size.1)), "orientation {orientation}");
    }
}

// === PNG ===

fn png(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in chunks {
        let named = [kind.as_slice(), data].concat();
        let sum = named.iter().fold(!0_u32, |sum, &byte| {
            (0..8).fold(sum ^ u32::from(byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 })
        });
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(named);
        bytes.extend((!sum).to_be_bytes());
    }
    bytes
}

fn packed(rows: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(rows).unwrap();
    encoder.finish().unwrap()
}

fn head(width: u8, height: u8, depth: u8, colour: u8, interlaced: bool) -> Vec<u8> {
    vec![0, 0, 0, width, 0, 0, 0, height, depth, colour, 0, 0, u8::from(interlaced)]
}

/// A PNG of one row of dots, which are stored like this.
fn row(width: u8, depth: u8, colour: u8, palette: &[(&[u8; 4], &[u8])], dots: &[u8]) -> Vec<u8> {
    let (head, dots) = (head(width, 1, depth, colour, false), packed(&[&[0], dots].concat()));
    let chunks = [&[(b"IHDR", head.as_slice())], palette, &[(b"IDAT", dots.as_slice()), (b"IEND", b"")]].concat();
    png(&chunks)
}

#[test]
fn dots_of_a_png_may_have_any_depth() {
    let dots = |bytes: &[u8]| raster(bytes).rgb;
    // Grey.
    assert_eq!(dots(&row(3, 1, 0, &[], &[0b0100_0000])), [[0; 3], [255; 3], [0; 3]].concat());
    assert_eq!(dots(&row(2, 16, 0, &[], &[0xff, 0xff, 0x80, 0])), [[255; 3], [128; 3]].concat());
    // Colours.
    assert_eq!(dots(&row(1, 16, 2, &[], &[0xff, 0xff, 0, 0, 0x80, 0])), [255, 0, 128]);
    // With opacity: a red that is not seen, and a black that is.
    let transparent = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        dots(&row(2, 16, 6, &[], &[transparent, [0, 0, 0, 0, 0, 0, 0xff, 0xff]].concat())),
        [255, 255, 255, 0, 0, 0]
    );
    assert_eq!(dots(&row(2, 8, 4, &[], &[0, 0, 0, 255])), [255, 255, 255, 0, 0, 0]);
    // A palette of blue, seen, and of black, not seen.
    let palette: [(&[u8; 4], &[u8]); 2] = [(b"PLTE", &[0, 0, 255, 0, 0, 0]), (b"tRNS", &[255, 0])];
    assert_eq!(dots(&row(2, 1, 3, &palette, &[0b0100_0000])), [0, 0, 255, 255, 255, 255]);
}

#[test]
fn a_png_may_come_in_passes() {
    // Where the dots of each pass begin, and how far apart they are.
    let passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)];
    let mut rows = Vec::new();
    for (left, top, across, down) in passes {
        for y in (top..8).step_by(down) {
            rows.push(0);
            rows.extend((left..8_usize).step_by(across).map(|x| (y * 8 + x) as u8));
        }
    }
    let (head, dots) = (head(8, 8, 8, 0, true), packed(&rows));
    let bytes = png(&[(b"IHDR", &head), (b"IDAT", &dots), (b"IEND", b"")]);
    let expected: Vec<u8> = (0..64).flat_map(|light| [light; 3]).collect();
    assert_eq!(raster(&bytes).rgb, expected);
}

#[test]
fn of_a_png_that_moves_the_first_picture_is_decoded() {
    let head = head(1, 1, 8, 0, false);
    let frame =
        |number: u8| [vec![0, 0, 0, number], vec![0, 0, 0, 1, 0, 0, 0, 1], vec![0; 8], vec![0, 1, 0, 1, 0, 0]].concat();
    let (first, second) = (packed(&[0, 7]), [vec![0, 0, 0, 2], packed(&[0, 200])].concat());
    let bytes = png(&[
        (b"IHDR", &head),
        (b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]),
        (b"fcTL", &frame(0)),
        (b"IDAT", &first),
        (b"fcTL", &frame(1)),
        (b"fdAT", &second),
        (b"IEND", b""),
    ]);
    assert_eq!(raster(&bytes).rgb, [7; 3]);
}
