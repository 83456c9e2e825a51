//! OCR: text recognition in images.
//!
//! Two small networks are used: one detects text lines, the other recognizes one line. The code between them crops and
//! rectifies rotated boxes, corrects the page orientation, and sorts the lines into reading order. It is
//! single-threaded and deterministic.

mod confidence;
mod connected_components;
mod content_bounds;
mod crop;
mod ctc_decoder;
mod despeckle;
mod detect;
mod fullwidth;
mod geometry;
mod join_lines;
mod network;
mod orientation;
mod paragraph;
mod reading_order;
mod recognizer;
mod resize;
mod script_filter;
mod table_gutters;
mod tiles;

use std::collections::HashMap;

use ctc_decoder::RecognizedText;
use detect::{DetectionResult, detect};
use geometry::RotatedRect;
use network::Network;
use reading_order::{LineLayout, paragraphs};
use recognizer::Recognizer;
use tiles::{Tile, tiles};

pub use geometry::{Point, Quad, Rotation};
pub use paragraph::{Paragraph, ParagraphKind};

/// An RGB image in memory.
#[derive(Debug, Clone, Copy)]
pub struct ImageRef<'a> {
    pub width: u32,
    pub height: u32,
    /// RGB pixels, row by row from the top.
    pub rgb: &'a [u8],
}

/// OCR settings.
#[derive(Debug, Clone, PartialEq)]
pub struct OcrOptions {
    /// Maximum side length in pixels for detection; longer images are downscaled. A larger value finds smaller letters,
    /// and time grows with its square. Images much taller than a page are split, and the value applies to each tile.
    /// Much wider images may be up to three times as long.
    pub longest_side: u32,
    /// Larger images are rejected.
    pub max_pixels: u64,
    /// If there are more lines, only the largest are recognized; in images much taller than a page, the first.
    pub max_lines: usize,
    /// Maximum total length of all lines, in pixels at the input height of the recognizer. A page of small print has
    /// 200,000; one core processes about that in two seconds.
    pub max_columns: usize,
    /// Lines with less confidence are dropped, and so is nonsense. One or two letters alone need a little more.
    pub min_confidence: f32,
    /// Whether the page orientation is corrected.
    pub correct_rotation: bool,
}

/// Recognized text of an image.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageText {
    /// In reading order.
    pub lines: Vec<OcrLine>,
    /// Rotation that made the text upright.
    pub rotation: Rotation,
    /// Slope of the lines after the rotation, in degrees.
    pub skew: f32,
    /// Number of detected lines that exceeded the limit and were not recognized.
    pub omitted: usize,
    /// The image contains more text than was recognized: a considerable part is illegible or in an unsupported script,
    /// such as Cyrillic or Arabic. Nonsense lines are dropped.
    pub low_confidence: bool,
}

/// A line of text, or a part of one if it has wide gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct OcrLine {
    pub text: String,
    /// Mean probability of its letters, from 0 to 1.
    pub confidence: f32,
    pub quad: Quad,
    /// Paragraph index. Lines of one paragraph are consecutive.
    pub paragraph: usize,
    /// Row index within the image. Lines of one row are next to each other.
    pub row: usize,
    /// By layout, the next line does not continue its sentence.
    pub ends: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("an image of {width} by {height} pixels requires {expected} bytes, got {found}")]
    WrongSize { width: u32, height: u32, expected: u64, found: usize },

    #[error("the image has {pixels} pixels (maximum {most}); scale it down")]
    TooLarge { pixels: u64, most: u64 },

    #[error("cannot load the built-in {network} network: {reason}; this build is damaged, reinstall corbie")]
    Builtin { network: &'static str, reason: String },

    #[error("cannot run the built-in {network} network: {reason}")]
    Run { network: &'static str, reason: String },
}

/// The loaded networks. Threads can share one engine.
///
/// ```
/// use corbie_infer::ocr::{ImageRef, OcrEngine, OcrOptions};
///
/// let engine = OcrEngine::builtin()?;
/// let white = vec![255; 64 * 32 * 3];
/// let found = engine.recognize(ImageRef { width: 64, height: 32, rgb: &white }, &OcrOptions::default())?;
/// assert_eq!(found.text(), "");
/// # Ok::<(), corbie_infer::ocr::Error>(())
/// ```
#[derive(Debug)]
pub struct OcrEngine {
    detection: Network,
    recognizer: Recognizer,
}

const DETECTION: &str = "detection";
const RECOGNITION: &str = "recognition";
pub(crate) const DETECTION_MODEL: &[u8] = include_bytes!("../../models/PP-OCRv6-tiny/det.onnx");
pub(crate) const RECOGNITION_MODEL: &[u8] = include_bytes!("../../models/PP-OCRv6-tiny/rec.onnx");
pub(crate) const CHARACTERS: &str = include_str!("../../models/PP-OCRv6-tiny/characters.txt");

impl Default for OcrOptions {
    fn default() -> OcrOptions {
        OcrOptions {
            longest_side: 1120,
            max_pixels: 64_000_000,
            max_lines: 2000,
            max_columns: 1_000_000,
            min_confidence: 0.7,
            correct_rotation: true,
        }
    }
}

impl OcrEngine {
    /// The built-in networks: PP-OCRv6 tiny, for Chinese and languages in Latin script.
    ///
    /// It supports Latin letters up to U+017F. It has no output for further Vietnamese letters, Romanian `ș` and `ț`
    /// (it returns `ş` and `ţ`), `ẞ`, and the signs `„`, `‚`, `‹`, `›` and `¡`. In sans-serif fonts it confuses Polish
    /// `ł` with `t`, and Turkish `ı` and `İ` with `i`. It supports Greek letters without accents, for formulas. Other
    /// scripts, including Japanese kana, result in nonsense and set [`doubtful`](ImageText::low_confidence).
    pub fn builtin() -> Result<OcrEngine, Error> {
        let load = |network, file| Network::load(file).map_err(|reason| Error::Builtin { network, reason });
        Ok(OcrEngine {
            detection: load(DETECTION, DETECTION_MODEL)?,
            recognizer: Recognizer::new(load(RECOGNITION, RECOGNITION_MODEL)?, CHARACTERS),
        })
    }

    /// Recognizes the text of an image.
    pub fn recognize(&self, picture: ImageRef<'_>, settings: &OcrOptions) -> Result<ImageText, Error> {
        picture.check(settings.max_pixels)?;
        if picture.rgb.is_empty() {
            return Ok(ImageText::default());
        }
        let cleaned = despeckle::despeckle(&picture);
        let picture = ImageRef { rgb: cleaned.as_deref().unwrap_or(picture.rgb), ..picture };
        let mut detected = self.detect(&picture, Rotation::None, settings)?;
        // Readings from the orientation check are reused.
        let mut known: HashMap<usize, RecognizedText> = HashMap::new();
        let mut turn = Rotation::None;
        if settings.correct_rotation {
            turn = self.detect_rotation(&picture, &detected, &mut known)?;
            if turn != Rotation::None {
                known.clear();
                detected = self.detect(&picture, turn, settings)?;
            }
        }
        let mut read = Vec::with_capacity(detected.boxes.len());
        let (mut columns, mut left_out) = (0, detected.omitted);
        let mut tally = confidence::PageConfidence::default();
        for (index, place) in detected.boxes.iter().enumerate() {
            columns += candidate_rotations(place)
                .map(|inner| crop::CropRegion::of(place, &picture, turn, inner).width())
                .sum::<usize>();
            if columns > settings.max_columns {
                left_out += detected.boxes.len() - index;
                break;
            }
            let upright = match known.remove(&index) {
                Some(reading) => reading,
                None => self.recognize_line(&picture, place, turn, Rotation::None)?,
            };
            let (inner, reading) = self.recognize_any_rotation(&picture, place, turn, upright)?;
            if tally.accept(&reading, settings.min_confidence) {
                read.push((*place, inner, reading));
            }
        }
        read.retain(|(_, _, reading)| tally.accept_final(reading));
        let doubtful = tally.is_low();
        Ok(ImageText {
            omitted: left_out,
            low_confidence: doubtful,
            ..arrange_lines(&picture, turn, detected.skew, read)
        })
    }

    /// Detects lines; images longer than a page are split into tiles.
    fn detect(&self, picture: &ImageRef<'_>, turn: Rotation, settings: &OcrOptions) -> Result<DetectionResult, Error> {
        let detect = |part: &ImageRef<'_>, longest_side: u32| {
            detect(&self.detection, part, turn, longest_side.max(32), settings.max_lines)
                .map_err(|reason| Error::Run { network: DETECTION, reason })
        };
        // In a tall image that is rotated by 90°, lines run along the long side, and a cut would split them.
        let lines_run_across = matches!(turn, Rotation::None | Rotation::Half);
        let bands = if lines_run_across { tiles(picture, settings.longest_side) } else { Vec::new() };
        if bands.len() < 2 {
            return detect(picture, tiles::longest_side(picture, settings.longest_side));
        }
        let mut all = DetectionResult::default();
        for Tile { rows, own } in bands {
            let row = picture.width as usize * 3;
            let rgb = &picture.rgb[rows.start * row..rows.end * row];
            let found = detect(&ImageRef { height: rows.len() as u32, rgb, ..*picture }, settings.longest_side)?;
            let above = if turn == Rotation::Half { picture.height as usize - rows.end } else { rows.start } as f32;
            let own = match turn {
                Rotation::Half => picture.height as usize - own.end..picture.height as usize - own.start,
                _ => own,
            };
            all.omitted += found.omitted;
            for place in found.boxes {
                let centre = Point { y: place.centre.y + above, ..place.centre };
                if own.contains(&(centre.y.max(0.0) as usize)) {
                    all.boxes.push(RotatedRect { centre, ..place });
                }
            }
        }
        all.omitted += all.boxes.len().saturating_sub(settings.max_lines);
        all.boxes.truncate(settings.max_lines);
        all.skew = detect::page_skew(all.boxes.iter());
        Ok(all)
    }

    /// The rotation that makes the page upright. `upright` receives the lines that were read without rotation.
    fn detect_rotation(
        &self,
        picture: &ImageRef<'_>,
        detected: &DetectionResult,
        upright: &mut HashMap<usize, RecognizedText>,
    ) -> Result<Rotation, Error> {
        let samples = orientation::samples(&detected.boxes);
        orientation::find_rotation(orientation::is_sideways(&detected.boxes), |turn| {
            let read = |index: &usize| self.recognize_line(picture, &detected.boxes[*index], Rotation::None, turn);
            let readings = samples.iter().map(read).collect::<Result<Vec<RecognizedText>, Error>>()?;
            if turn == Rotation::None {
                upright.extend(samples.iter().copied().zip(readings.iter().cloned()));
            }
            Ok(readings)
        })
    }

    /// Also reads a tall box in the other directions: it may be an upright letter or a rotated line.
    fn recognize_any_rotation(
        &self,
        picture: &ImageRef<'_>,
        place: &RotatedRect,
        turn: Rotation,
        upright: RecognizedText,
    ) -> Result<(Rotation, RecognizedText), Error> {
        // A single letter is read with some confidence in any direction.
        let least = upright.confidence + ROTATION_CONFIDENCE_MARGIN;
        let mut best = (Rotation::None, upright);
        for inner in candidate_rotations(place).skip(1) {
            let reading = self.recognize_line(picture, place, turn, inner)?;
            if reading.confidence > best.1.confidence.max(least) {
                best = (inner, reading);
            }
        }
        Ok(best)
    }

    fn recognize_line(
        &self,
        picture: &ImageRef<'_>,
        place: &RotatedRect,
        turn: Rotation,
        inner: Rotation,
    ) -> Result<RecognizedText, Error> {
        let crop = crop::CropRegion::of(place, picture, turn, inner).crop(picture);
        self.recognizer.recognize(crop).map_err(|reason| Error::Run { network: RECOGNITION, reason })
    }
}

/// The directions in which a box is read, upright first.
fn candidate_rotations(place: &RotatedRect) -> impl Iterator<Item = Rotation> {
    let count = if place.aspect() < MAX_TALL_ASPECT { 3 } else { 1 };
    [Rotation::None, Rotation::Quarter, Rotation::ThreeQuarters].into_iter().take(count)
}

/// A box with a smaller aspect ratio may be a vertical line.
const MAX_TALL_ASPECT: f32 = 0.6;
/// Additional confidence required for a rotated reading.
const ROTATION_CONFIDENCE_MARGIN: f32 = 0.05;

/// Sorts lines into reading order.
fn arrange_lines(
    picture: &ImageRef<'_>,
    turn: Rotation,
    skew: f32,
    mut read: Vec<(RotatedRect, Rotation, RecognizedText)>,
) -> ImageText {
    let quads: Vec<Quad> = read
        .iter()
        .map(|(place, inner, _)| Quad(crop::CropRegion::of(place, picture, turn, *inner).corners()))
        .collect();
    let placed = |((place, _, reading), quad): (&(RotatedRect, Rotation, RecognizedText), &Quad)| {
        let letters = |text: &str| text.chars().count() as f32;
        let first_word = reading.text.split_whitespace().next().map_or(0.0, letters) / letters(&reading.text).max(1.0);
        LineLayout { corners: place.corners(), first_word, size: paragraph::letter_size(&reading.text, quad) }
    };
    let placed: Vec<LineLayout> = read.iter().zip(&quads).map(placed).collect();
    let mut lines = Vec::with_capacity(read.len());
    let mut row_number = 0;
    for (paragraph, found) in paragraphs(&placed, skew).into_iter().enumerate() {
        for row in found.rows {
            for index in row.lines {
                let reading = &mut read[index].2;
                lines.push(OcrLine {
                    text: std::mem::take(&mut reading.text),
                    confidence: reading.confidence,
                    quad: quads[index],
                    paragraph,
                    row: row_number,
                    ends: row.ends,
                });
            }
            row_number += 1;
        }
    }
    ImageText { lines, rotation: turn, skew, ..ImageText::default() }
}

impl ImageRef<'_> {
    fn check(&self, most: u64) -> Result<(), Error> {
        let pixels = u64::from(self.width) * u64::from(self.height);
        if pixels > most {
            return Err(Error::TooLarge { pixels, most });
        }
        let (width, height, found) = (self.width, self.height, self.rgb.len());
        match pixels.checked_mul(3) {
            Some(expected) if expected == found as u64 => Ok(()),
            expected => Err(Error::WrongSize { width, height, expected: expected.unwrap_or(u64::MAX), found }),
        }
    }
}
