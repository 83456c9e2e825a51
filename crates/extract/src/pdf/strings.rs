//! PDF text strings.

use std::borrow::Cow;

/// Differences of PDFDocEncoding from Latin-1.
const LOW: [char; 8] = ['˘', 'ˇ', 'ˆ', '˙', '˝', '˛', '˚', '˜'];
const HIGH: [char; 33] = [
    '•', '†', '‡', '…', '—', '–', 'ƒ', '⁄', '‹', '›', '−', '‰', '„', '“', '”', '‘', '’', '‚', '™', 'ﬁ', 'ﬂ', 'Ł', 'Œ',
    'Š', 'Ÿ', 'Ž', 'ı', 'ł', 'œ', 'š', 'ž', '\u{fffd}', '€',
];

/// Decodes a string: UTF-16 or UTF-8 with a byte order mark, else PDFDocEncoding.
pub(super) fn text(bytes: &[u8]) -> String {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    let text = match bytes {
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| letter(*byte)).collect(),
    };
    without_language(&text).into_owned()
}

fn letter(byte: u8) -> char {
    match byte {
        0x18..=0x1F => LOW[usize::from(byte - 0x18)],
        0x80..=0xA0 => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Removes language escapes, which are enclosed in two escape characters.
fn without_language(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.split('\u{1b}').step_by(2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_in_their_three_encodings() {
        assert_eq!(text(b"\xFE\xFF\x00A\x20\xAC"), "A€");
        assert_eq!(text(b"\xEF\xBB\xBF\xC3\xA4"), "ä");
        assert_eq!(text(b"caf\xE9 \x92"), "café ™");
        assert_eq!(text(b"\xFE\xFF\x00\x1b\x00d\x00e\x00\x1b\x00A"), "A");
    }
}
