//! What a camera wrote about a picture.

use std::io::Cursor;

use exif::{Exif, In, Tag, Value};

pub(super) fn read(bytes: &[u8]) -> Option<Exif> {
    let mut reader = exif::Reader::new();
    reader.continue_on_error(true);
    reader.read_from_container(&mut Cursor::new(bytes)).or_else(|error| error.distill_partial_result(|_| {})).ok()
}

/// How the picture is turned, from 1 (not at all) to 8; from 5 on, width and height change places.
pub(super) fn orientation(exif: &Exif) -> u8 {
    let field = exif.get_field(Tag::Orientation, In::PRIMARY);
    field.and_then(|field| field.value.get_uint(0)).and_then(|value| u8::try_from(value).ok()).unwrap_or(1)
}

pub(super) fn words(exif: &Exif, tag: Tag) -> Option<String> {
    let Value::Ascii(lines) = &exif.get_field(tag, In::PRIMARY)?.value else { return None };
    let text = lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join(" ");
    Some(text.trim_matches(['\0', ' ']).to_owned()).filter(|text| !text.is_empty())
}

/// From `2024:05:06 07:08:09` to `2024-05-06T07:08:09`: cameras do not say in which part of the world they are.
pub(super) fn date(text: String) -> String {
    match text.split_once(' ') {
        Some((day, time)) if day.len() == 10 => format!("{}T{time}", day.replace(':', "-")),
        _ => text,
    }
}
