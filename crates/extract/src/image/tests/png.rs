//! PNGs of all bit depths, with palettes, interlaced, and animated.

use super::metadata::packed;
use super::raster;

pub(super) fn png(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
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

fn head(width: u8, height: u8, depth: u8, colour: u8, interlaced: bool) -> Vec<u8> {
    vec![0, 0, 0, width, 0, 0, 0, height, depth, colour, 0, 0, u8::from(interlaced)]
}

/// A PNG with one row of these pixels.
fn row(width: u8, depth: u8, colour: u8, palette: &[(&[u8; 4], &[u8])], dots: &[u8]) -> Vec<u8> {
    let (head, dots) = (head(width, 1, depth, colour, false), packed(&[&[0], dots].concat()));
    let chunks = [&[(b"IHDR", head.as_slice())], palette, &[(b"IDAT", dots.as_slice()), (b"IEND", b"")]].concat();
    png(&chunks)
}

#[test]
fn dots_of_a_png_may_have_any_depth() {
    let dots = |bytes: &[u8]| raster(bytes).rgb;
    // Gray.
    assert_eq!(dots(&row(3, 1, 0, &[], &[0b0100_0000])), [[0; 3], [255; 3], [0; 3]].concat());
    assert_eq!(dots(&row(2, 16, 0, &[], &[0xff, 0xff, 0x80, 0])), [[255; 3], [128; 3]].concat());
    // Colours.
    assert_eq!(dots(&row(1, 16, 2, &[], &[0xff, 0xff, 0, 0, 0x80, 0])), [255, 0, 128]);
    // With alpha: an invisible red and a visible black.
    let transparent = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        dots(&row(2, 16, 6, &[], &[transparent, [0, 0, 0, 0, 0, 0, 0xff, 0xff]].concat())),
        [255, 255, 255, 0, 0, 0]
    );
    assert_eq!(dots(&row(2, 8, 4, &[], &[0, 0, 0, 255])), [255, 255, 255, 0, 0, 0]);
    // A palette of opaque blue and transparent black.
    let palette: [(&[u8; 4], &[u8]); 2] = [(b"PLTE", &[0, 0, 255, 0, 0, 0]), (b"tRNS", &[255, 0])];
    assert_eq!(dots(&row(2, 1, 3, &palette, &[0b0100_0000])), [0, 0, 255, 255, 255, 255]);
}

#[test]
fn a_png_may_come_in_passes() {
    // Start and step of each Adam7 pass.
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
