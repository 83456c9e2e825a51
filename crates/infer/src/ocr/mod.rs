//! OCR: text recognition in images.
//!
//! Two small networks are used: one detects text lines, the other recognizes one line. The code between them crops and
//! rectifies rotated boxes, corrects the page orientation, and sorts the lines into reading order. It is
//! single-threaded and deterministic.

mod bands;
mod blobs;
mod crop;
mod detect;
mod doubt;
mod geometry;
mod margins;
mod network;
mod nonsense;
mod orientation;
mod paragraph;
mod reading_order;
mod recognise;
mod resize;
mod signs;
mod specks;
mod strips;
mod text;

use std::collections::HashMap;

use bands::{Band, bands};
use detect::{Detected, detect};
use geometry::Slanted;
use network::Network;
use reading_order::{Placed, paragraphs};
use recognise::{Reader, Reading};

pub use geometry::{Point, Quad, Turn};
pub use paragraph::{Paragraph, ParagraphKind};

/// An RGB image in memory.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    pub width: u32,
    pub height: u32,
    /// RGB pixels, row by row from the top.
    pub rgb: &'a [u8],
}

/// OCR settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Maximum side length in pixels for detection; longer images are downscaled. A larger value finds smaller letters,
    /// and time grows with its square. Images much taller than a page are split, and the value applies to each tile.
    /// Much wider images may be up to three times as long.
    pub longest_side: u32,
    /// Larger images are rejected.
    pub most_pixels: u64,
    /// If there are more lines, only the largest are recognized; in images much taller than a page, the first.
    pub most_lines: usize,
    /// Maximum total length of all lines, in pixels at the input height of the recognizer. A page of small print has
    /// 200,000; one core processes about that in two seconds.
    pub most_columns: usize,
    /// Lines with less confidence are dropped, and so is nonsense. One or two letters alone need a little more.
    pub least_confidence: f32,
    /// Whether the page orientation is corrected.
    pub turn: bool,
}

/// Recognized text of an image.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recognised {
    /// In reading order.
    pub lines: Vec<Line>,
    /// Rotation that made the text upright.
    pub turn: Turn,
    /// Slope of the lines after the rotation, in degrees.
    pub skew: f32,
    /// Number of detected lines that exceeded the limit and were not recognized.
    pub left_out: usize,
    /// The image contains more text than was recognized: a considerable part is illegible or in an unsupported script,
    /// such as Cyrillic or Arabic. Nonsense lines are dropped.
    pub doubtful: bool,
}

/// A line of text, or a part of one if it has wide gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
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
    #[error("a picture of {width} by {height} pixels has {expected} bytes of colour; {found} were given")]
    WrongSize { width: u32, height: u32, expected: u64, found: usize },

    #[error("the picture has {pixels} pixels, more than the {most} that are read; make it smaller")]
    TooLarge { pixels: u64, most: u64 },

    #[error(
        "the built-in {network} network cannot be used: {reason}; this build is damaged, build or install corbie again"
    )]
    Builtin { network: &'static str, reason: String },

    #[error("the built-in {network} network could not be run: {reason}")]
    Run { network: &'static str, reason: String },
}

/// The loaded networks. Threads can share one engine.
///
/// ```
/// use corbie_infer::ocr::{Engine, Picture, Settings};
///
/// let engine = Engine::builtin()?;
/// let white = vec![255; 64 * 32 * 3];
/// let found = engine.recognise(Picture { width: 64, height: 32, rgb: &white }, &Settings::default())?;
/// assert_eq!(found.text(), "");
/// # Ok::<(), corbie_infer::ocr::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    detection: Network,
    reader: Reader,
}

const DETECTION: &str = "detection";
const RECOGNITION: &str = "recognition";
pub(crate) const DETECTION_FILE: &[u8] = include_bytes!("../../models/PP-OCRv6-tiny/det.onnx");
pub(crate) const RECOGNITION_FILE: &[u8] = include_bytes!("../../models/PP-OCRv6-tiny/rec.onnx");
pub(crate) const CHARACTERS: &str = include_str!("../../models/PP-OCRv6-tiny/characters.txt");

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            longest_side: 1120,
            most_pixels: 64_000_000,
            most_lines: 2000,
            most_columns: 1_000_000,
            least_confidence: 0.7,
            turn: true,
        }
    }
}

impl Engine {
    /// The built-in networks: PP-OCRv6 tiny, for Chinese and languages in Latin script.
    ///
    /// It supports Latin letters up to U+017F. It has no output for further Vietnamese letters, Romanian `ș` and `ț`
    /// (it returns `ş` and `ţ`), `ẞ`, and the signs `„`, `‚`, `‹`, `›` and `¡`. In sans-serif fonts it confuses Polish
    /// `ł` with `t`, and Turkish `ı` and `İ` with `i`. It supports Greek letters without accents, for formulas. Other
    /// scripts, including Japanese kana, result in nonsense and set [`doubtful`](Recognised::doubtful).
    pub fn builtin() -> Result<Engine, Error> {
        let load = |network, file| Network::load(file).map_err(|reason| Error::Builtin { network, reason });
        Ok(Engine {
            detection: load(DETECTION, DETECTION_FILE)?,
            reader: Reader::new(load(RECOGNITION, RECOGNITION_FILE)?, CHARACTERS),
        })
    }

    /// Recognizes the text of an image.
    pub fn recognise(&self, picture: Picture<'_>, settings: &Settings) -> Result<Recognised, Error> {
        picture.check(settings.most_pixels)?;
        if picture.rgb.is_empty() {
            return Ok(Recognised::default());
        }
        let cleaned = specks::removed(&picture);
        let picture = Picture { rgb: cleaned.as_deref().unwrap_or(picture.rgb), ..picture };
        let mut detected = self.detect(&picture, Turn::None, settings)?;
        // Readings from the orientation check are reused.
        let mut known: HashMap<usize, Reading> = HashMap::new();
        let mut turn = Turn::None;
        if settings.turn {
            turn = self.turn_of(&picture, &detected, &mut known)?;
            if turn != Turn::None {
                known.clear();
                detected = self.detect(&picture, turn, settings)?;
            }
        }
        let mut read = Vec::with_capacity(detected.boxes.len());
        let (mut columns, mut left_out) = (0, detected.left_out);
        let mut tally = doubt::Tally::default();
        for (index, place) in detected.boxes.iter().enumerate() {
            columns += ways(place).map(|inner| crop::Place::of(place, &picture, turn, inner).width()).sum::<usize>();
            if columns > settings.most_columns {
                left_out += detected.boxes.len() - index;
                break;
            }
            let upright = match known.remove(&index) {
                Some(reading) => reading,
                None => self.read(&picture, place, turn, Turn::None)?,
            };
            let (inner, reading) = self.read_any_way(&picture, place, turn, upright)?;
            if tally.keeps(&reading, settings.least_confidence) {
                read.push((*place, inner, reading));
            }
        }
        read.retain(|(_, _, reading)| tally.still_keeps(reading));
        let doubtful = tally.is_doubtful();
        Ok(Recognised { left_out, doubtful, ..arrange(&picture, turn, detected.skew, read) })
    }

    /// Detects lines; images longer than a page are split into tiles.
    fn detect(&self, picture: &Picture<'_>, turn: Turn, settings: &Settings) -> Result<Detected, Error> {
        let detect = |part: &Picture<'_>, longest_side: u32| {
            detect(&self.detection, part, turn, longest_side.max(32), settings.most_lines)
                .map_err(|reason| Error::Run { network: DETECTION, reason })
        };
        // In a tall image that is rotated by 90°, lines run along the long side, and a cut would split them.
        let lines_run_across = matches!(turn, Turn::None | Turn::Half);
        let bands = if lines_run_across { bands(picture, settings.longest_side) } else { Vec::new() };
        if bands.len() < 2 {
            return detect(picture, bands::longest_side(picture, settings.longest_side));
        }
        let mut all = Detected::default();
        for Band { rows, own } in bands {
            let row = picture.width as usize * 3;
            let rgb = &picture.rgb[rows.start * row..rows.end * row];
            let found = detect(&Picture { height: rows.len() as u32, rgb, ..*picture }, settings.longest_side)?;
            let above = if turn == Turn::Half { picture.height as usize - rows.end } else { rows.start } as f32;
            let own = match turn {
                Turn::Half => picture.height as usize - own.end..picture.height as usize - own.start,
                _ => own,
            };
            all.left_out += found.left_out;
            for place in found.boxes {
                let centre = Point { y: place.centre.y + above, ..place.centre };
                if own.contains(&(centre.y.max(0.0) as usize)) {
                    all.boxes.push(Slanted { centre, ..place });
                }
            }
        }
        all.left_out += all.boxes.len().saturating_sub(settings.most_lines);
        all.boxes.truncate(settings.most_lines);
        all.skew = detect::page_skew(all.boxes.iter());
        Ok(all)
    }

    /// The rotation that makes the page upright. `upright` receives the lines that were read without rotation.
    fn turn_of(
        &self,
        picture: &Picture<'_>,
        detected: &Detected,
        upright: &mut HashMap<usize, Reading>,
    ) -> Result<Turn, Error> {
        let samples = orientation::samples(&detected.boxes);
        orientation::find(orientation::lies_on_its_side(&detected.boxes), |turn| {
            let read = |index: &usize| self.read(picture, &detected.boxes[*index], Turn::None, turn);
            let readings = samples.iter().map(read).collect::<Result<Vec<Reading>, Error>>()?;
            if turn == Turn::None {
                upright.extend(samples.iter().copied().zip(readings.iter().cloned()));
            }
            Ok(readings)
        })
    }

    /// Also reads a tall box in the other directions: it may be an upright letter or a rotated line.
    fn read_any_way(
        &self,
        picture: &Picture<'_>,
        place: &Slanted,
        turn: Turn,
        upright: Reading,
    ) -> Result<(Turn, Reading), Error> {
        // A single letter is read with some confidence in any direction.
        let least = upright.confidence + SURER;
        let mut best = (Turn::None, upright);
        for inner in ways(place).skip(1) {
            let reading = self.read(picture, place, turn, inner)?;
            if reading.confidence > best.1.confidence.max(least) {
                best = (inner, reading);
            }
        }
        Ok(best)
    }

    fn read(&self, picture: &Picture<'_>, place: &Slanted, turn: Turn, inner: Turn) -> Result<Reading, Error> {
        let crop = crop::Place::of(place, picture, turn, inner).cut(picture);
        self.reader.read(crop).map_err(|reason| Error::Run { network: RECOGNITION, reason })
    }
}

/// The directions in which a box is read, upright first.
fn ways(place: &Slanted) -> impl Iterator<Item = Turn> {
    let count = if place.aspect() < TALL_ASPECT { 3 } else { 1 };
    [Turn::None, Turn::Quarter, Turn::ThreeQuarters].into_iter().take(count)
}

/// A box with a smaller aspect ratio may be a vertical line.
const TALL_ASPECT: f32 = 0.6;
/// Additional confidence required for a rotated reading.
const SURER: f32 = 0.05;

/// Sorts lines into reading order.
fn arrange(picture: &Picture<'_>, turn: Turn, skew: f32, mut read: Vec<(Slanted, Turn, Reading)>) -> Recognised {
    let quads: Vec<Quad> =
        read.iter().map(|(place, inner, _)| Quad(crop::Place::of(place, picture, turn, *inner).corners())).collect();
    let placed = |((place, _, reading), quad): (&(Slanted, Turn, Reading), &Quad)| {
        let letters = |text: &str| text.chars().count() as f32;
        let first_word = reading.text.split_whitespace().next().map_or(0.0, letters) / letters(&reading.text).max(1.0);
        Placed { corners: place.corners(), first_word, size: paragraph::letter_size(&reading.text, quad) }
    };
    let placed: Vec<Placed> = read.iter().zip(&quads).map(placed).collect();
    let mut lines = Vec::with_capacity(read.len());
    let mut row_number = 0;
    for (paragraph, found) in paragraphs(&placed, skew).into_iter().enumerate() {
        for row in found.rows {
            for index in row.lines {
                let reading = &mut read[index].2;
                lines.push(Line {
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
    Recognised { lines, turn, skew, ..Recognised::default() }
}

impl Picture<'_> {
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
