//! File format detection by content.
//!
//! File names are less reliable than content: a web page is saved as `.pdf`, or a workbook is sent as `.docx`.
//! Detection is cheap: it reads the first bytes, and for a ZIP archive the part names, without decompression.

use crate::{Error, Format, Warning, encoding};

/// The PDF header may be preceded by other data within this range.
const MAX_PDF_HEADER_OFFSET: usize = 1024;
/// Length of the inspected prefix of a text.
const TEXT_SAMPLE_BYTES: usize = 4096;
/// Length of the inspected part of a ZIP archive that contains part names.
const ZIP_TAIL_BYTES: usize = 1 << 20;

/// Detects the format of a file. Text of uncertain kind is [`Format::Text`], because Markdown and CSV look the same;
/// `None` is an unsupported format.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(Format::Png)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some(Format::Jpg)
    } else if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        office(bytes)
    } else if is_older_office(bytes) {
        None
    } else if find(&bytes[..bytes.len().min(MAX_PDF_HEADER_OFFSET)], b"%PDF-").is_some() {
        Some(Format::Pdf)
    } else {
        text(bytes)
    }
}

/// The OLE container of Office before 2007, which newer versions use for password-encrypted files.
pub fn is_older_office(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
}

/// Selects the format by file extension and content (K-44).
pub fn resolve(extension: Option<Format>, bytes: &[u8]) -> Result<(Format, Option<Warning>), Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let found = match sniff(bytes) {
        // A text may contain a PDF signature or start with an SVG element.
        Some(Format::Pdf | Format::Svg)
            if extension.is_some_and(is_text) && !bytes.starts_with(b"%PDF-") && text(bytes).is_some() =>
        {
            Some(Format::Text)
        }
        found => found,
    };
    let named = match (extension, found) {
        (None, Some(found)) => return Ok((found, None)),
        (None, None) => return Err(Error::Corrupted("unknown file format".to_owned())),
        (Some(named), Some(found)) if is_compatible(named, found) => return Ok((named, None)),
        (Some(named), _) => named,
    };
    match found {
        // Almost any file contains some text, so a corrupted file of another format is not treated as text.
        Some(found) if found != Format::Text => {
            let message = format!("file extension is {named}, but the content is {found}; processed as {found}");
            Ok((found, Some(Warning::new(message))))
        }
        None if is_older_office(bytes) => match named {
            Format::Docx | Format::Pptx | Format::Xlsx if is_encrypted(bytes) => Err(Error::PasswordProtected),
            Format::Docx | Format::Pptx | Format::Xlsx => {
                Err(Error::Corrupted(format!("it is a legacy Office file (.doc, .xls or .ppt), not {named}")))
            }
            _ => Err(Error::Corrupted(format!("it is not a {named} file"))),
        },
        None if is_text(named) => Err(Error::Corrupted("unknown text encoding".to_owned())),
        _ => Err(Error::Corrupted(format!("it is not a {named} file"))),
    }
}

/// Whether the extension and the content agree. Text may have any text extension, and so may HTML with an unusual
/// start.
fn is_compatible(named: Format, found: Format) -> bool {
    match found {
        // An HTML page may start with text, and a Markdown file with an element.
        Format::Text => is_text(named) || named == Format::Html,
        Format::Html => named == Format::Html || is_text(named),
        found => named == found,
    }
}

fn is_text(format: Format) -> bool {
    matches!(format, Format::Markdown | Format::Text | Format::Csv)
}

/// Encrypted documents have a stream with this name, in UTF-16.
pub(crate) fn is_encrypted(bytes: &[u8]) -> bool {
    let name: Vec<u8> = "EncryptedPackage".bytes().flat_map(|byte| [byte, 0]).collect();
    find(bytes, &name).is_some()
}

/// The kind of Office document, by the folder of its main part. Names are uncompressed both in local headers and in the
/// central directory, so one of them is found even in a truncated file.
fn office(bytes: &[u8]) -> Option<Format> {
    let head = &bytes[..bytes.len().min(ZIP_TAIL_BYTES)];
    let tail = &bytes[bytes.len().saturating_sub(ZIP_TAIL_BYTES)..];
    let holds = |name: &str| {
        let is_name = |region: &[u8]| part_names(region).any(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        is_name(tail) || is_name(head)
    };
    let kinds = [
        ("word/document.xml", Format::Docx),
        ("ppt/presentation.xml", Format::Pptx),
        ("xl/workbook.xml", Format::Xlsx),
        ("word/document2.xml", Format::Docx),
        ("xl/workbook.bin", Format::Xlsx),
    ];
    let by_part = kinds.iter().find(|(name, _)| holds(name)).map(|(_, format)| *format);
    by_part.or_else(|| by_folder(head).or_else(|| by_folder(tail)))
}

/// If the main part has another name, its folder still has the usual one.
fn by_folder(region: &[u8]) -> Option<Format> {
    part_names(region).find_map(|name| match name.split(|&byte| byte == b'/').next()? {
        b"word" => Some(Format::Docx),
        b"ppt" => Some(Format::Pptx),
        b"xl" => Some(Format::Xlsx),
        _ => None,
    })
}

/// The part names in local headers and central directory entries within these bytes.
fn part_names(region: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += find(&region[at..], b"PK")? + 2;
            let (length, name) = match region.get(at..at + 2)? {
                b"\x03\x04" => (at + 24, at + 28),
                b"\x01\x02" => (at + 26, at + 44),
                _ => continue,
            };
            let length = region.get(length..length + 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
            if let Some(name) = length.and_then(|length| region.get(name..name + usize::from(length))) {
                return Some(name);
            }
        }
    })
}

fn text(bytes: &[u8]) -> Option<Format> {
    let head = &bytes[..bytes.len().min(TEXT_SAMPLE_BYTES)];
    let decoded = encoding::decode(head);
    if is_binary(&decoded) {
        return None;
    }
    let start = leading(&decoded).to_ascii_lowercase();
    let element = |name: &str| {
        let rest = start.strip_prefix('<').and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['>', '/', ' ', '\n', '\r', '\t']))
    };
    // Namespace prefixes are rare on the root element, but allowed.
    if element("svg") || start.starts_with("<!doctype svg") || start.starts_with("<svg:svg") {
        return Some(Format::Svg);
    }
    let pages =
        ["html", "head", "body", "title", "meta", "script", "table", "div", "p", "h1", "style", "link", "article"];
    if start.starts_with("<!doctype html") || pages.iter().any(|name| element(name)) {
        return Some(Format::Html);
    }
    Some(Format::Text)
}

/// The text from its first element, after declarations and comments.
fn leading(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    loop {
        let end = if rest.starts_with("<?") {
            "?>"
        } else if rest.starts_with("<!--") {
            "-->"
        } else {
            return rest;
        };
        let Some(at) = rest.find(end) else { return rest };
        rest = rest[at + end.len()..].trim_start();
    }
}

/// Whether the text has binary characters: any NUL, or more than 2 % control and replacement characters.
pub(crate) fn is_binary(text: &str) -> bool {
    let head: Vec<char> = text.chars().take(TEXT_SAMPLE_BYTES).collect();
    let control =
        |letter: &&char| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r' | '\x0c' | '\x1b' | '\x08');
    let strange = head.iter().filter(|letter| control(letter) || **letter == '\u{fffd}').count();
    head.contains(&'\0') || strange * 50 > head.len()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests;
