//! Images with a false size, and truncated images.

use image::{ImageFormat, Rgb, RgbImage};

use super::png::png;
use super::{drawn, encoded, inside, raster};
use crate::{Error, Format, Limits, Options, decode_embedded, decode_image, document};

const ALL: [ImageFormat; 6] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::Bmp, ImageFormat::WebP, ImageFormat::Tiff];

#[test]
fn a_picture_of_one_dot_is_decoded() {
    for coding in ALL {
        let raster = raster(&encoded(&RgbImage::from_pixel(1, 1, Rgb([255, 255, 255])), coding));
        assert_eq!((raster.width, raster.height, raster.rgb), (1, 1, vec![255; 3]), "{coding:?}");
    }
}

/// An image whose header declares 40,000 by 40,000 pixels, or 10,000 where the format allows no more. The data is that
/// of a small image, or missing: a reader that decodes before checking the size reports corruption instead.
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
        // Two 14-bit numbers, each minus one.
        ImageFormat::WebP => {
            let at = bytes.windows(4).position(|name| name == b"VP8L").unwrap() + 9;
            bytes[at..at + 4].copy_from_slice(&(9_999_u32 | 9_999 << 14).to_le_bytes());
            bytes
        }
        _ => {
            let at = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize + 2;
            for entry in bytes[at..].chunks_exact_mut(12).take_while(|entry| entry[1] == 1) {
                // Width, height, and rows per strip.
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
    let refused = Error::TooMuch { what: "pixels", most: Limits::default().pixels };
    for coding in ALL {
        let error = decode_embedded(&inside(huge(coding)), &Limits::default());
        assert_eq!(error, Err(refused.clone()), "{coding:?}");
    }
    for (format, coding) in [(Format::Png, ImageFormat::Png), (Format::Jpg, ImageFormat::Jpeg)] {
        assert_eq!(decode_image(&huge(coding), format, &Limits::default()), Err(refused.clone()));
        assert_eq!(document(&huge(coding), format, &Options::default()), Err(refused.clone()));
    }
}

#[test]
fn a_picture_cut_anywhere_is_an_error_or_what_there_is_of_it() {
    for coding in ALL {
        let bytes = encoded(&RgbImage::from_fn(40, 30, |x, y| Rgb([(x * y) as u8, x as u8, y as u8])), coding);
        for end in (1..bytes.len()).step_by(bytes.len() / 100 + 1) {
            match decode_embedded(&inside(bytes[..end].to_vec()), &Limits::default()) {
                Ok(raster) => {
                    assert_eq!(raster.rgb.len() as u32, 3 * raster.width * raster.height, "{coding:?} at {end}")
                }
                Err(Error::Corrupted(_)) => {}
                Err(other) => panic!("{coding:?} at {end}: {other}"),
            }
        }
    }
}
