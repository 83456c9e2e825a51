//! PNG text chunks.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// Maximum decompressed bytes of text per image.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Keyword of the XMP packet.
const XMP: &str = "XML:com.adobe.xmp";

/// Texts of an image, by keyword.
#[derive(Default)]
pub(super) struct TextChunks(Vec<(String, String)>);

// === impl ===

impl TextChunks {
    pub(super) fn of(bytes: &[u8]) -> TextChunks {
        let mut texts = Vec::new();
        let mut room = MAX_TEXT_BYTES;
        let mut rest = bytes.get(8..).unwrap_or_default();
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let Some(data) = after.get(..length) else { break };
            if let Some((keyword, text)) = text(&head[4..], data, room) {
                room = room.saturating_sub(keyword.len() + text.len());
                let text = text.trim().to_owned();
                texts.extend((!text.is_empty()).then_some((keyword, text)));
            }
            rest = after.get(length + 4..).unwrap_or_default();
        }
        TextChunks(texts)
    }

    pub(super) fn get(&self, keyword: &str) -> Option<String> {
        self.0.iter().find(|(found, _)| found == keyword).map(|(_, text)| text.clone())
    }

    pub(super) fn xmp(&self) -> Option<String> {
        self.get(XMP)
    }

    /// The texts with one of these keywords, in file order.
    pub(super) fn among<'t>(&'t self, keywords: &'t [&str]) -> impl Iterator<Item = &'t str> {
        let wanted = |(keyword, _): &&(String, String)| keywords.contains(&keyword.as_str());
        self.0.iter().filter(wanted).map(|(_, text)| text.as_str())
    }
}

/// The keyword and text of a text chunk.
fn text(kind: &[u8], data: &[u8], room: usize) -> Option<(String, String)> {
    // Keywords have at most 79 bytes.
    let end = data.iter().take(80).position(|&byte| byte == 0)?;
    let (keyword, rest) = (String::from_utf8_lossy(&data[..end]).into_owned(), &data[end + 1..]);
    let latin = |text: &[u8]| encoding_rs::mem::decode_latin1(text).into_owned();
    let text = match (kind, rest) {
        (b"tEXt", text) => latin(&text[..text.len().min(room)]),
        (b"zTXt", [0, packed @ ..]) => latin(&inflate(packed, room)),
        // A language tag and the translated keyword follow, each zero-terminated.
        (b"iTXt", [packed, 0, rest @ ..]) => {
            let text = rest.splitn(3, |&byte| byte == 0).nth(2)?;
            let text = if *packed == 0 { text[..text.len().min(room)].to_vec() } else { inflate(text, room) };
            String::from_utf8_lossy(&text).into_owned()
        }
        _ => return None,
    };
    Some((keyword, text))
}

/// Decompresses up to `room` bytes; for corrupted data, the part before the error.
fn inflate(packed: &[u8], room: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let _ = ZlibDecoder::new(packed).take(room as u64).read_to_end(&mut text);
    text
}
