//! JPEGs with unusual encodings, and with all EXIF orientations.

use image::{ImageFormat, Rgb, RgbImage};

use super::{dot, encoded, raster};
use crate::{Format, Options, document};

/// A uniform JPEG of eight by eight pixels.
struct UniformJpeg<'e> {
    /// One value per component.
    values: &'e [u8],
    /// Transform flag of the Adobe segment, if present.
    adobe: Option<u8>,
    progressive: bool,
}

impl UniformJpeg<'_> {
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
        // With a quantization of eight, the DC coefficient is the value.
        segment(0xdb, &[[0].as_slice(), &[8; 64]].concat());
        let components = |each: &dyn Fn(u8) -> Vec<u8>| (1..=count).flat_map(each).collect::<Vec<u8>>();
        let frame = [vec![8, 0, 8, 0, 8, count], components(&|id| vec![id, 0x11, 0])].concat();
        segment(if self.progressive { 0xc2 } else { 0xc0 }, &frame);
        // Nine difference lengths with four-bit codes; for the AC table, end of block with a one-bit code.
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
fn check_colour(picture: &UniformJpeg<'_>, expected: [u8; 3]) {
    let raster = raster(&picture.bytes());
    assert_eq!((raster.width, raster.height), (8, 8));
    let found = dot(&raster, 4, 4);
    assert!(found.iter().zip(expected).all(|(&found, expected)| found.abs_diff(expected) < 12), "{found:?}");
}

#[test]
fn paper_is_white_in_jpegs_of_four_inks() {
    let inks = |values: &[u8; 4], expected| {
        check_colour(&UniformJpeg { values, adobe: Some(0), progressive: false }, expected)
    };
    // Adobe stores inverted CMYK.
    inks(&[255, 255, 255, 255], [255, 255, 255]);
    inks(&[0, 255, 255, 255], [0, 255, 255]);
    inks(&[255, 255, 0, 255], [255, 255, 0]);
    inks(&[255, 255, 255, 0], [0, 0, 0]);
    inks(&[255, 255, 255, 128], [128, 128, 128]);
    let light = |values: &[u8; 4], expected| {
        check_colour(&UniformJpeg { values, adobe: Some(2), progressive: false }, expected)
    };
    // In YCCK, the inverted colours are transformed, so paper is zero.
    light(&[0, 128, 128, 255], [255, 255, 255]);
    light(&[0, 128, 128, 0], [0, 0, 0]);
    light(&[128, 128, 128, 255], [128, 128, 128]);
    light(&[179, 171, 0, 255], [255, 0, 0]);
}

#[test]
fn a_jpeg_that_comes_in_passes_is_decoded() {
    let colours =
        |values: &[u8], expected| check_colour(&UniformJpeg { values, adobe: None, progressive: true }, expected);
    colours(&[200], [200, 200, 200]);
    colours(&[76, 85, 255], [254, 0, 0]);
}

#[test]
fn a_jpeg_is_turned_the_way_it_was_taken() {
    let mut picture = RgbImage::from_pixel(32, 16, Rgb([255, 255, 255]));
    (0..64).for_each(|at| picture.put_pixel(at % 8, at / 8, Rgb([0, 0, 0])));
    let plain = encoded(&picture, ImageFormat::Jpeg);
    // New position of the dark corner: right, down.
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
