//! Mapping of symbol font characters to Unicode.

use crate::ooxml::Tag;

/// Greek letters of the Symbol font, by the Latin letters at their code points.
const GREEK: [(&str, &str); 2] = [
    ("ABGDEZHQIKLMNXOPRSTUFCYW", "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"),
    ("abgdezhqiklmnxoprstufcyw", "αβγδεζηθικλμνξοπρστυφχψω"),
];

/// Boxes, check marks and bullets of the Wingdings font, as used in forms and lists.
const WINGDINGS: [(u8, char); 12] = [
    (0x6c, '●'),
    (0x6e, '■'),
    (0x6f, '☐'),
    (0x71, '☐'),
    (0x9f, '•'),
    (0xa7, '▪'),
    (0xa8, '☐'),
    (0xd8, '➢'),
    (0xe0, '→'),
    (0xfb, '✗'),
    (0xfc, '✓'),
    (0xfe, '☒'),
];

/// The Unicode character of a symbol; `None` if only its font defines it.
pub(super) fn symbol(tag: &Tag<'_>) -> Option<char> {
    let code = u32::from_str_radix(tag.get("char")?.trim(), 16).ok()?;
    let font = tag.get("font").unwrap_or_default().to_lowercase();
    // Symbol fonts use one byte per character, mapped into the private use area.
    let byte = match code {
        0xf000..=0xf0ff => (code - 0xf000) as u8,
        0..=0xff => code as u8,
        _ => return char::from_u32(code),
    };
    match font.as_str() {
        "wingdings" => WINGDINGS.iter().find(|(place, _)| *place == byte).map(|(_, shown)| *shown),
        "symbol" if byte == 0xb7 => Some('•'),
        "symbol" => {
            let greek = |(latin, greek): (&str, &str)| {
                latin.chars().zip(greek.chars()).find(|(latin, _)| *latin == char::from(byte)).map(|(_, greek)| greek)
            };
            GREEK.into_iter().find_map(greek).or_else(|| byte.is_ascii_graphic().then(|| char::from(byte)))
        }
        "wingdings 2" | "wingdings 3" | "webdings" => None,
        _ => (byte.is_ascii_graphic() || byte > 0xa0).then(|| char::from(byte)),
    }
}
