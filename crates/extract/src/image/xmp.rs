//! XMP metadata: an XML packet with Dublin Core properties.

use crate::ooxml::Xml;
use crate::{Error, Limits, Metadata};

/// Maximum element nesting; programs use at most seven levels.
const MAX_DEPTH: usize = 32;
/// Maximum characters per text, and maximum number of keywords.
const MAX_CHARS: usize = 10_000;
const MAX_KEYWORDS: usize = 200;
/// Signature of an XMP segment in a JPEG.
const JPEG_HEAD: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// Parses a packet; for corrupted XML, the part before the error.
pub(super) fn read(packet: &str) -> Metadata {
    let mut metadata = Metadata::default();
    let limits = Limits { depth: MAX_DEPTH, ..Limits::default() };
    let _ = walk(&mut Xml::new(packet, "XMP", &limits), &mut metadata);
    metadata
}

/// The packet of a JPEG, from one of the segments before the image data.
pub(super) fn in_jpeg(bytes: &[u8]) -> Option<String> {
    let mut rest = bytes.get(2..)?;
    while let [0xff, marker, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low]));
        match marker {
            0xff => rest = &rest[1..],
            0xda => return None,
            _ => {
                let packet = rest.get(4..2 + length)?.strip_prefix(JPEG_HEAD).filter(|_| marker == 0xe1);
                if let Some(packet) = packet {
                    return Some(String::from_utf8_lossy(packet).into_owned());
                }
                rest = rest.get(2 + length..)?;
            }
        }
    }
    None
}

fn walk(xml: &mut Xml<'_>, metadata: &mut Metadata) -> Result<(), Error> {
    while let Some(tag) = xml.child()? {
        let place = match tag.qualified() {
            "dc:title" => &mut metadata.title,
            "dc:description" => &mut metadata.subject,
            "dc:rights" => &mut metadata.copyright,
            "dc:creator" => {
                let creators = items(xml)?;
                metadata.author = (!creators.is_empty()).then(|| creators.join(", "));
                continue;
            }
            "dc:subject" => {
                metadata.keywords = items(xml)?;
                continue;
            }
            _ => {
                walk(xml, metadata)?;
                continue;
            }
        };
        // Alternatives in several languages: the first is the default.
        *place = items(xml)?.into_iter().next();
    }
    Ok(())
}

/// The list items of the current element.
fn items(xml: &mut Xml<'_>) -> Result<Vec<String>, Error> {
    let mut items = Vec::new();
    while let Some(tag) = xml.child()? {
        if tag.name() != "li" {
            items.extend(self::items(xml)?);
            continue;
        }
        let text: String = xml.text()?.trim().chars().take(MAX_CHARS).collect();
        if !text.is_empty() && items.len() < MAX_KEYWORDS {
            items.push(text);
        }
    }
    Ok(items)
}
