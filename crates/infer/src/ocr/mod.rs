//! Text in pictures.
//!
//! Two small networks do the looking: one marks where text is, one reads a line of it. Between them is geometry: boxes
//! at any slant are cut out and straightened, pages that lie on their side or head are turned, and lines are put into
//! the order in which they are read. One thread, and the same picture gives the same text.

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

/// A picture in memory.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    pub width: u32,
    pub height: u32,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: &'a [u8],
}

/// How a picture is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Text is looked for in the picture made this long, in pixels, if it is longer. Smaller letters are found in
    /// longer pictures, and time grows with the square. Of pictures much taller than a page this is what each part as
    /// long as a page is made, and much wider ones are made up to three times as long.
    pub longest_side: u32,
    /// Larger pictures are refused.
    pub most_pixels: u64,
    /// The largest are read where there are more; the first, in pictures much taller than a page.
    pub most_lines: usize,
    /// The same for all lines end to end, in pixels once they are as high as the reader wants them. A page of small
    /// print has 200,000; a core reads about as many in two seconds.
    pub most_columns: usize,
    /// What is read with less confidence is left out, and nonsense; one or two letters alone take a little more.
    pub least_confidence: f32,
    /// Whether pages that lie on their side or head are turned.
    pub turn: bool,
}

/// The text of a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recognised {
    /// In the order in which they are read.
    pub lines: Vec<Line>,
    /// How the picture was turned for its text to stand upright.
    pub turn: Turn,
    /// How far its lines fall to the right once it is turned, in degrees.
    pub skew: f32,
    /// Lines that were found and not read, because there were too many.
    pub left_out: usize,
    /// The picture says more than was read: a considerable part is in a script that the networks do not know, such as
    /// Cyrillic or Arabic, or cannot be read. Lines that came out as nonsense are left out.
    pub doubtful: bool,
}

/// A line of text, or a part of one where there are wide gaps in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub text: String,
    /// The mean probability of its letters, from 0 to 1.
    pub confidence: f32,
    pub quad: Quad,
    /// Counted from zero. Lines of one paragraph follow one another.
    pub paragraph: usize,
    /// Counted from zero within the picture. Lines of one row stand side by side.
    pub row: usize,
    /// What comes next does not continue its sentence, as far as its place tells.
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

/// The networks, ready to read pictures. Threads can share one.
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
    /// The networks inside this library: PP-OCRv6 tiny, for Chinese and languages written in Latin letters.
    ///
    /// Of the Latin letters it knows those of Unicode up to U+017F. It cannot say the letters of Vietnamese beyond
    /// those, Romanian `ș` and `ț` (it says `ş` and `ţ`), `ẞ`, and of signs `„`, `‚`, `‹`, `›` and `¡`. Polish `ł` it
    /// takes for `t` in faces without serifs, and Turkish `ı` and `İ` for `i`. It knows Greek letters without accents,
    /// for formulas. Other scripts, Japanese kana among them, come out as nonsense, and
    /// [`doubtful`](Recognised::doubtful) tells.
    pub fn builtin() -> Result<Engine, Error> {
        let load = |network, file| Network::load(file).map_err(|reason| Error::Builtin { network, reason });
        Ok(Engine {
            detection: load(DETECTION, DETECTION_FILE)?,
            reader: Reader::new(load(RECOGNITION, RECOGNITION_FILE)?, CHARACTERS),
        })
    }

    /// Reads the text of a picture.
    pub fn recognise(&self, picture: Picture<'_>, settings: &Settings) -> Result<Recognised, Error> {
        picture.check(settings.most_pixels)?;
        if picture.rgb.is_empty() {
            return Ok(Recognised::default());
        }
        let cleaned = specks::removed(&picture);
        let picture = Picture { rgb: cleaned.as_deref().unwrap_or(picture.rgb), ..picture };
        let mut detected = self.detect(&picture, Turn::None, settings)?;
        // What was read upright to find the turn need not be read again.
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

    /// Finds lines, in a picture longer than a page part by part.
    fn detect(&self, picture: &Picture<'_>, turn: Turn, settings: &Settings) -> Result<Detected, Error> {
        let detect = |part: &Picture<'_>, longest_side: u32| {
            detect(&self.detection, part, turn, longest_side.max(32), settings.most_lines)
                .map_err(|reason| Error::Run { network: DETECTION, reason })
        };
        // Lines of a tall picture that lies on its side run along it, and a cut would divide them.
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

    /// How the page must be turned. `upright` gets the lines that were read without turning it.
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

    /// Reads a tall box the other ways too: it may be a letter that stands or a line that lies.
    fn read_any_way(
        &self,
        picture: &Picture<'_>,
        place: &Slanted,
        turn: Turn,
        upright: Reading,
    ) -> Result<(Turn, Reading), Error> {
        // A single letter is read with some confidence whichever way it lies.
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

/// The ways in which a box is read, upright first.
fn ways(place: &Slanted) -> impl Iterator<Item = Turn> {
    let count = if place.aspect() < TALL_ASPECT { 3 } else { 1 };
    [Turn::None, Turn::Quarter, Turn::ThreeQuarters].into_iter().take(count)
}

/// A box narrower than this beside its height may be a line that runs up or down.
const TALL_ASPECT: f32 = 0.6;
/// How much more confidence it takes to believe that it does.
const SURER: f32 = 0.05;

/// Lines in the order in which they are read.
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
