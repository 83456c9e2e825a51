//! Character encoding detection and decoding.
//!
//! In this order: a byte order mark; valid UTF-8, which other encodings almost never produce by chance; the encoding
//! declared in the file; UTF-16 detected by its zero bytes; UTF-8 with a few invalid sequences; a statistical guess.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Bytes searched for an encoding declaration. Browsers search 1,024 bytes; some pages declare it later.
const DECLARATION_BYTES: usize = 4096;
/// Maximum bytes used for a guess. More bytes do not improve it.
const MAX_GUESS_BYTES: usize = 256 << 10;

/// Decodes text without an encoding declaration.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    decode_as(bytes, None)
}

/// Decodes a web page, which may declare its encoding in a `meta` element.
pub(crate) fn decode_html(bytes: &[u8]) -> Cow<'_, str> {
    let head = head(bytes);
    decode_as(bytes, declared_by_xml(&head).or_else(|| declared_by_meta(&head)))
}

/// Decodes XML, which may declare its encoding in the XML declaration.
pub(crate) fn decode_xml(bytes: &[u8]) -> Cow<'_, str> {
    decode_as(bytes, declared_by_xml(&head(bytes)))
}

fn decode_as<'a>(bytes: &'a [u8], declared: Option<&'static Encoding>) -> Cow<'a, str> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[mark..]).0;
    }
    // ISO-2022-JP consists of ASCII bytes only, so it is always valid UTF-8.
    let escaped = declared == Some(ISO_2022_JP) && bytes.contains(&0x1b);
    if !escaped
        && !bytes.contains(&0)
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        return Cow::Borrowed(text);
    }
    let encoding = detect_utf16(bytes).or(declared).unwrap_or_else(|| guess(bytes));
    encoding.decode_without_bom_handling(bytes).0
}

/// Detects UTF-16 without a byte order mark: most characters have a zero byte, always on the same side.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(DECLARATION_BYTES) & !1];
    let pairs = sample.len() / 2;
    let zeros = |side: usize| sample.iter().skip(side).step_by(2).filter(|&&byte| byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    if pairs >= 2 && odd * 2 > pairs && even * 20 < pairs {
        Some(UTF_16LE)
    } else if pairs >= 2 && even * 2 > pairs && odd * 20 < pairs {
        Some(UTF_16BE)
    } else {
        None
    }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let sample = &bytes[..bytes.len().min(MAX_GUESS_BYTES)];
    let (mut whole, mut broken) = (0_usize, 0_usize);
    for chunk in sample.utf8_chunks() {
        whole += chunk.valid().chars().filter(|letter| !letter.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    if broken * 5 < whole {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, true);
    detector.guess(None, Utf8Detection::Deny)
}

fn head(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(DECLARATION_BYTES)].to_ascii_lowercase()
}

fn declared_by_xml(head: &[u8]) -> Option<&'static Encoding> {
    let rest = head.trim_ascii_start().strip_prefix(b"<?xml")?;
    let declaration = &rest[..find(rest, b"?>")?];
    parse_label(&declaration[find(declaration, b"encoding")? + b"encoding".len()..])
}

fn declared_by_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    while let Some(start) = find(rest, b"<meta") {
        rest = &rest[start + b"<meta".len()..];
        let tag = &rest[..rest.iter().position(|&byte| byte == b'>').unwrap_or(rest.len())];
        let found = find(tag, b"charset").and_then(|at| parse_label(&tag[at + b"charset".len()..]));
        if let Some(encoding) = found {
            return Some(encoding);
        }
    }
    None
}

/// The encoding after an equals sign. A declaration that is readable as ASCII cannot be in UTF-16.
fn parse_label(rest: &[u8]) -> Option<&'static Encoding> {
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let ends = |byte: &u8| matches!(byte, b'"' | b'\'' | b';' | b'>' | b'/') || byte.is_ascii_whitespace();
    let label = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
    let encoding = Encoding::for_label(label)?;
    if encoding == UTF_16LE || encoding == UTF_16BE {
        Some(UTF_8)
    } else if encoding == X_USER_DEFINED {
        Some(WINDOWS_1252)
    } else {
        Some(encoding)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_8_is_borrowed_as_it_stands() {
        assert!(matches!(decode("Grüße".as_bytes()), Cow::Borrowed("Grüße")));
    }

    #[test]
    fn a_byte_order_mark_decides_and_is_gone() {
        assert_eq!(decode(b"\xef\xbb\xbfword"), "word");
        assert_eq!(decode(b"\xff\xfew\0o\0r\0d\0"), "word");
        assert_eq!(decode(b"\xfe\xff\0w\0o\0r\0d"), "word");
    }

    #[test]
    fn utf_16_without_a_mark_is_seen_by_its_zeros() {
        assert_eq!(decode(b"w\0o\0r\0d\0"), "word");
        assert_eq!(decode(b"\0w\0o\0r\0d"), "word");
    }

    #[test]
    fn a_page_is_read_in_the_encoding_it_names() {
        let page =
            b"<html><head><META http-equiv=x content='text/html; charset=windows-1251'></head>\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(decode_html(page).ends_with("Привет"));
        let page = b"<meta name=author content=x><meta charset = \"shift_jis\"><p>\x93\xfa\x96\x7b";
        assert!(decode_html(page).ends_with("日本"));
        assert!(decode_xml(b"<?xml version='1.0' encoding='iso-8859-2'?><a>\xb1</a>").contains('ą'));
    }

    #[test]
    fn what_says_nothing_is_guessed_by_its_letters() {
        let text = "Съешь же ещё этих мягких французских булок, да выпей чаю";
        let (bytes, _, _) = encoding_rs::WINDOWS_1251.encode(text);
        assert_eq!(decode(&bytes), text);
        assert_eq!(decode(b"na\xefve caf\xe9, d\xe9j\xe0 vu"), "naïve café, déjà vu");
    }

    #[test]
    fn a_broken_place_does_not_turn_utf_8_into_something_else() {
        let mut bytes = "Übergrößenträger äußern Ärger über Öffnungszeiten".as_bytes().to_vec();
        bytes.push(0xff);
        assert_eq!(decode(&bytes), "Übergrößenträger äußern Ärger über Öffnungszeiten\u{fffd}");
    }
}
