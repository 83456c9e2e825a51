//! Page rendering for tests, and text similarity metrics.

use std::collections::BTreeMap;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont};

/// Black on white, one byte per pixel.
#[derive(Clone)]
pub struct TestPage {
    pub width: usize,
    pub height: usize,
    pub gray: Vec<u8>,
    /// Line spacing, relative to the letter size.
    pub leading: f32,
}

pub const SANS: Face = Face(dejavu::sans::regular);
pub const BOLD: Face = Face(dejavu::sans::bold);
pub const OBLIQUE: Face = Face(dejavu::sans::oblique);
pub const CONDENSED: Face = Face(dejavu::sans_condensed::regular);
pub const MONO: Face = Face(dejavu::sans_mono::regular);
pub const SERIF: Face = Face(dejavu::serif::regular);
pub const SERIF_BOLD: Face = Face(dejavu::serif::bold);
pub const SERIF_ITALIC: Face = Face(dejavu::serif::italic);
pub const SERIF_CONDENSED: Face = Face(dejavu::serif_condensed::regular);

#[derive(Clone, Copy)]
pub struct Face(fn() -> &'static [u8]);

/// Converts points to pixels at 200 dpi. Sizes here are from the highest ascender to the lowest descender, which is
/// more than the nominal size of these fonts.
pub fn points(size: f32) -> f32 {
    size * 200.0 / 72.0 * 1.164
}

impl TestPage {
    pub fn blank(width: usize, height: usize) -> TestPage {
        TestPage { width, height, gray: vec![255; width * height], leading: 1.25 }
    }

    /// An A4 sheet at 200 dpi.
    pub fn a4() -> TestPage {
        TestPage { leading: 1.05, ..TestPage::blank(1654, 2339) }
    }

    /// Draws one line on `baseline` and returns its end.
    pub fn line(&mut self, face: Face, size: f32, left: f32, baseline: f32, text: &str) -> f32 {
        let font = FontRef::try_from_slice((face.0)()).expect("the font is whole");
        let scaled = font.as_scaled(PxScale::from(size));
        let mut x = left;
        let mut before = None;
        for letter in text.chars() {
            let glyph = scaled.glyph_id(letter);
            assert!(glyph.0 != 0, "the font has no {letter:?}");
            if let Some(before) = before {
                x += scaled.kern(before, glyph);
            }
            let placed = glyph.with_scale_and_position(PxScale::from(size), ab_glyph::point(x, baseline));
            if let Some(outline) = font.outline_glyph(placed) {
                let corner = outline.px_bounds().min;
                outline.draw(|dx, dy, cover| {
                    let (x, y) = (corner.x as i32 + dx as i32, corner.y as i32 + dy as i32);
                    if (0..self.width as i32).contains(&x) && (0..self.height as i32).contains(&y) {
                        let pixel = &mut self.gray[y as usize * self.width + x as usize];
                        *pixel = pixel.saturating_sub((cover * 255.0) as u8);
                    }
                });
            }
            x += scaled.h_advance(glyph);
            before = Some(glyph);
        }
        x
    }

    /// Draws wrapped text up to `right` and returns the y coordinate after the last line.
    pub fn text(&mut self, face: Face, size: f32, left: f32, right: f32, top: f32, text: &str) -> f32 {
        let mut baseline = top + size;
        let mut line = String::new();
        for word in text.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if left + width_of(face, size, &longer) > right && !line.is_empty() {
                self.line(face, size, left, baseline, &line);
                baseline += size * self.leading;
                line = word.to_owned();
            } else {
                line = longer;
            }
        }
        self.line(face, size, left, baseline, &line);
        baseline + size * 0.4
    }

    /// Draws a black bar between two corners.
    pub fn rule(&mut self, (left, top): (f32, f32), (right, bottom): (f32, f32)) {
        for y in top as usize..bottom as usize {
            self.gray[y * self.width + left as usize..y * self.width + right as usize].fill(0);
        }
    }

    /// The page rotated clockwise around its center.
    pub fn skewed(&self, degrees: f32) -> TestPage {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let (middle_x, middle_y) = (self.width as f32 / 2.0, self.height as f32 / 2.0);
        let at = |x: i32, y: i32| {
            let inside = (0..self.width as i32).contains(&x) && (0..self.height as i32).contains(&y);
            if inside { f32::from(self.gray[y as usize * self.width + x as usize]) } else { 255.0 }
        };
        let mut skewed = TestPage::blank(self.width, self.height);
        for y in 0..self.height {
            for x in 0..self.width {
                let (dx, dy) = (x as f32 - middle_x, y as f32 - middle_y);
                let (from_x, from_y) = (middle_x + dx * cos + dy * sin, middle_y - dx * sin + dy * cos);
                let (left, top) = (from_x.floor(), from_y.floor());
                let (part_x, part_y) = (from_x - left, from_y - top);
                let (left, top) = (left as i32, top as i32);
                let above = at(left, top) * (1.0 - part_x) + at(left + 1, top) * part_x;
                let below = at(left, top + 1) * (1.0 - part_x) + at(left + 1, top + 1) * part_x;
                skewed.gray[y * self.width + x] = (above * (1.0 - part_y) + below * part_y) as u8;
            }
        }
        skewed
    }

    /// The page rotated clockwise by 90°.
    pub fn turned(&self) -> TestPage {
        let mut turned = TestPage::blank(self.height, self.width);
        for y in 0..self.height {
            for x in 0..self.width {
                turned.gray[x * self.height + (self.height - 1 - y)] = self.gray[y * self.width + x];
            }
        }
        turned
    }

    /// Simulates a poor scan: gray paper, pale ink, and noise of up to `most` per pixel.
    pub fn noisy(&self, most: i32) -> TestPage {
        let mut state = 1u32;
        let mut noisy = self.clone();
        for pixel in &mut noisy.gray {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let off = (state >> 16) as i32 % (2 * most + 1) - most;
            *pixel = (30 + i32::from(*pixel) * 190 / 255 + off).clamp(0, 255) as u8;
        }
        noisy
    }

    /// Salt-and-pepper noise: one pixel in a hundred is black or white.
    pub fn dusty(&self) -> TestPage {
        let mut state = 3u32;
        let mut dusty = self.clone();
        for pixel in &mut dusty.gray {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 16 {
                0..=392 => *pixel = 0,
                393..=655 => *pixel = 255,
                _ => {}
            }
        }
        dusty
    }

    /// Replaces black and white by these values.
    pub fn coloured(&self, ink: u8, paper: u8) -> TestPage {
        let mut coloured = self.clone();
        for pixel in &mut coloured.gray {
            *pixel = (i32::from(ink) + (i32::from(paper) - i32::from(ink)) * i32::from(*pixel) / 255) as u8;
        }
        coloured
    }

    /// Encodes the page as JPEG and decodes it.
    pub fn jpeg(&self, quality: u8) -> TestPage {
        let mut file = Vec::new();
        let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, quality);
        let (width, height) = (self.width as u32, self.height as u32);
        image::ImageEncoder::write_image(encoder, &self.gray, width, height, image::ExtendedColorType::L8)
            .expect("it can be written");
        let read = image::load_from_memory(&file).expect("it can be read");
        TestPage { gray: read.to_luma8().into_raw(), ..self.clone() }
    }

    pub fn rgb(&self) -> Vec<u8> {
        self.gray.iter().flat_map(|gray| [*gray; 3]).collect()
    }
}

pub fn width_of(face: Face, size: f32, text: &str) -> f32 {
    let font = FontRef::try_from_slice((face.0)()).expect("the font is whole");
    let scaled = font.as_scaled(PxScale::from(size));
    text.chars().map(|letter| scaled.h_advance(scaled.glyph_id(letter))).sum()
}

/// Word F1 score, regardless of order.
pub fn word_f1(expected: &str, found: &str) -> f64 {
    let count = |text: &str| {
        let mut words: BTreeMap<String, i64> = BTreeMap::new();
        text.split_whitespace().for_each(|word| *words.entry(word.to_owned()).or_default() += 1);
        words
    };
    let (expected, found) = (count(expected), count(found));
    let shared: i64 = expected.iter().map(|(word, times)| found.get(word).map_or(0, |found| *times.min(found))).sum();
    2.0 * shared as f64 / (expected.values().sum::<i64>() + found.values().sum::<i64>()).max(1) as f64
}

/// Character error rate: edit distance relative to the expected length. Any white space counts as one space.
pub fn character_error(expected: &str, found: &str) -> f64 {
    let letters = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect::<Vec<_>>();
    let (expected, found) = (letters(expected), letters(found));
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (index, letter) in expected.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (place, other) in found.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[found.len()] as f64 / expected.len().max(1) as f64
}
