//! EXIF metadata.

use std::io::Cursor;

use exif::{Context, Exif, In, Tag, Value};

/// Windows-specific tags, in UTF-16.
pub(super) const WINDOWS_TITLE: Tag = Tag(Context::Tiff, 0x9c9b);
pub(super) const WINDOWS_AUTHOR: Tag = Tag(Context::Tiff, 0x9c9d);
const WINDOWS_KEYWORDS: Tag = Tag(Context::Tiff, 0x9c9e);

/// Maximum characters of one text. A tag may be as long as the file.
const MAX_CHARS: usize = 10_000;
const MAX_KEYWORDS: usize = 200;

pub(super) fn read(bytes: &[u8]) -> Option<Exif> {
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    reader.read_from_container(&mut Cursor::new(bytes)).or_else(|error| error.distill_partial_result(|_| {})).ok()
}

/// EXIF orientation, from 1 (none) to 8; from 5 on, width and height are swapped.
pub(super) fn orientation(exif: &Exif) -> u8 {
    let field = exif.get_field(Tag::Orientation, In::PRIMARY);
    field.and_then(|field| field.value.get_uint(0)).and_then(|value| u8::try_from(value).ok()).unwrap_or(1)
}

pub(super) fn words(exif: &Exif, tag: Tag) -> Option<String> {
    let text = match &exif.get_field(tag, In::PRIMARY)?.value {
        Value::Ascii(lines) => lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join(" "),
        Value::Byte(units) => encoding_rs::UTF_16LE.decode_without_bom_handling(units).0.into_owned(),
        _ => return None,
    };
    let text: String = text.trim_matches(['\0', ' ']).chars().take(MAX_CHARS).collect();
    Some(text).filter(|text| !text.is_empty())
}

/// Date of capture. Converts `2024:05:06 07:08:09` to `2024-05-06T07:08:09`, without a time zone, because cameras do
/// not record it.
pub(super) fn date(exif: &Exif, tag: Tag) -> Option<String> {
    let text = words(exif, tag)?;
    Some(match text.split_once(' ') {
        Some((day, time)) if day.len() == 10 => format!("{}T{time}", day.replace(':', "-")),
        _ => text,
    })
}

/// Camera maker and model; the model often includes the maker.
pub(super) fn device(exif: &Exif) -> Option<String> {
    let (make, model) = (words(exif, Tag::Make), words(exif, Tag::Model));
    let (Some(make), Some(model)) = (&make, &model) else { return make.or(model) };
    let first = |text: &str| text.split_whitespace().next().unwrap_or_default().to_lowercase();
    Some(if first(make) == first(model) { model.clone() } else { format!("{make} {model}") })
}

/// GPS position in degrees north and east, to about ten metres.
pub(super) fn place(exif: &Exif) -> Option<String> {
    let degrees = |tag: Tag, side: Tag, negative: &str, most: f64| {
        let Value::Rational(parts) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
        let parts = parts.iter().zip([1.0, 60.0, 3600.0]);
        let degrees: f64 = parts.map(|(part, of_degree)| part.to_f64() / of_degree).sum();
        let is_negative = words(exif, side).is_some_and(|side| side.eq_ignore_ascii_case(negative));
        (degrees <= most).then_some(if is_negative { -degrees } else { degrees })
    };
    let north = degrees(Tag::GPSLatitude, Tag::GPSLatitudeRef, "S", 90.0)?;
    let east = degrees(Tag::GPSLongitude, Tag::GPSLongitudeRef, "W", 180.0)?;
    // Cameras without a GPS fix write zero for both.
    (north != 0.0 || east != 0.0).then(|| format!("{north:.4}, {east:.4}"))
}

pub(super) fn keywords(exif: &Exif) -> Vec<String> {
    let text = words(exif, WINDOWS_KEYWORDS).unwrap_or_default();
    text.split(';').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).take(MAX_KEYWORDS).collect()
}
