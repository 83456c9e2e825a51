//! What a file is, by what is in it.
//!
//! Names lie more often than contents: a page saved as `.pdf`, a workbook sent as `.docx`. Looking costs little: the first
//! bytes, and of a zip archive the names of its parts, with nothing inflated.

use crate::{Error, Format, Warning, encoding};

/// A PDF may begin with something else, as long as its header comes within this.
const PDF_HEAD: usize = 1024;
/// How much of a text is looked at.
const TEXT_HEAD: usize = 4096;
/// How much of a zip archive's end is looked at for the names of its parts.
const ZIP_TAIL: usize = 1 << 20;

/// The format of a file by its content. Text of no certain kind is [`Format::Text`], since Markdown and CSV look the same;
/// none is something that cannot be read.
pub fn sniff(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some(Format::Png)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some(Format::Jpg)
    } else if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06") {
        office(bytes)
    } else if is_older_office(bytes) {
        None
    } else if find(&bytes[..bytes.len().min(PDF_HEAD)], b"%PDF-").is_some() {
        Some(Format::Pdf)
    } else {
        text(bytes)
    }
}

/// The container of Office before 2007, in which later Office also keeps what is encrypted with a password.
pub fn is_older_office(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
}

/// Which format to read a file as, by its name's end and its content (K-44).
pub fn resolve(extension: Option<Format>, bytes: &[u8]) -> Result<(Format, Option<Warning>), Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    let found = match sniff(bytes) {
        // A text may tell of PDF, or begin with a drawing.
        Some(Format::Pdf | Format::Svg)
            if extension.is_some_and(is_text) && !bytes.starts_with(b"%PDF-") && text(bytes).is_some() =>
        {
            Some(Format::Text)
        }
        found => found,
    };
    let named = match (extension, found) {
        (None, Some(found)) => return Ok((found, None)),
        (None, None) => return Err(Error::Corrupted("it is of no format that can be read".to_owned())),
        (Some(named), Some(found)) if agree(named, found) => return Ok((named, None)),
        (Some(named), _) => named,
    };
    match found {
        // Words can be found in nearly anything, so text is not what a broken file of another format is taken for.
        Some(found) if found != Format::Text => {
            let message = format!("the name says {named}, but the file is {found} and was read as that");
            Ok((found, Some(Warning::new(message))))
        }
        None if is_older_office(bytes) => match named {
            Format::Docx | Format::Pptx | Format::Xlsx if is_encrypted(bytes) => Err(Error::PasswordProtected),
            Format::Docx | Format::Pptx | Format::Xlsx => {
                Err(Error::Corrupted(format!("it is of an older Office, and no {named} file")))
            }
            _ => Err(Error::Corrupted(format!("it is no {named} file"))),
        },
        None if is_text(named) => Err(Error::Corrupted("its letters are in no encoding that is known".to_owned())),
        _ => Err(Error::Corrupted(format!("it is no {named} file"))),
    }
}

/// Text is whatever its name says it is, and so is a page or picture that begins with something unusual.
fn agree(named: Format, found: Format) -> bool {
    match found {
        // A page may begin with words, and a Markdown file with an element.
        Format::Text => is_text(named) || named == Format::Html,
        Format::Html => named == Format::Html || is_text(named),
        found => named == found,
    }
}

fn is_text(format: Format) -> bool {
    matches!(format, Format::Markdown | Format::Text | Format::Csv)
}

/// Encrypted documents keep their content in a stream of this name, written in UTF-16.
pub(crate) fn is_encrypted(bytes: &[u8]) -> bool {
    let name: Vec<u8> = "EncryptedPackage".bytes().flat_map(|byte| [byte, 0]).collect();
    find(bytes, &name).is_some()
}

/// The kind of Office document, by the folder its main part is in. Names stand uncompressed both before each part and in
/// the list at the end, so one of the two is found even where the file is cut.
fn office(bytes: &[u8]) -> Option<Format> {
    let head = &bytes[..bytes.len().min(ZIP_TAIL)];
    let tail = &bytes[bytes.len().saturating_sub(ZIP_TAIL)..];
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

/// Where the main part has another name, its folder still has the usual one.
fn by_folder(region: &[u8]) -> Option<Format> {
    part_names(region).find_map(|name| match name.split(|&byte| byte == b'/').next()? {
        b"word" => Some(Format::Docx),
        b"ppt" => Some(Format::Pptx),
        b"xl" => Some(Format::Xlsx),
        _ => None,
    })
}

/// The names in headers of parts and in the list of them, wherever they are in these bytes.
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
    let head = &bytes[..bytes.len().min(TEXT_HEAD)];
    let decoded = encoding::decode(head);
    if is_binary(&decoded) {
        return None;
    }
    let start = leading(&decoded).to_ascii_lowercase();
    let element = |name: &str| {
        let rest = start.strip_prefix('<').and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['>', '/', ' ', '\n', '\r', '\t']))
    };
    // Prefixes of namespaces are rare on the outermost element, but allowed.
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

/// The text from its first element on, where only declarations and comments come before.
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

/// Characters that no text has. One in a hundred may be broken.
pub(crate) fn is_binary(text: &str) -> bool {
    let head: Vec<char> = text.chars().take(TEXT_HEAD).collect();
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
