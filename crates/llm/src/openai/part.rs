//! Parses a content part: text, image, file or audio.

use serde_json::Value;

use super::content;
use crate::chat::{ContentPart, FileContent, Image, UnsupportedPart};

/// Maximum length of an unknown type name in an error message.
const MAX_TYPE_CHARS: usize = 64;

/// Parses a part; `None` if it is empty. An unsupported part is recorded by type: no other protocol can express it, and
/// the client must be informed.
pub(super) fn read(item: &Value) -> Option<ContentPart> {
    let kind = item["type"].as_str().unwrap_or_default();
    let read = match kind {
        "text" | "refusal" if item[kind] == "" => return None,
        // Reasoning that a server put here is specific to that server, so it is dropped for all other providers.
        "thinking" | "redacted_thinking" | "reasoning" => return None,
        "text" | "refusal" => content::text(&item[kind]).map(|text| ContentPart::Text { text: text.to_owned() }),
        "image_url" => {
            // Some clients send the URL instead of the object.
            let url = item["image_url"]["url"].as_str().or_else(|| item["image_url"].as_str());
            url.map(|url| ContentPart::Image { image: image(url) })
        }
        "file" => file(&item["file"]),
        "input_audio" => audio(&item["input_audio"]),
        _ => {
            return Some(ContentPart::Unread {
                part: UnsupportedPart::Type(kind.chars().take(MAX_TYPE_CHARS).collect()),
            });
        }
    };
    Some(read.unwrap_or_else(|| ContentPart::Unread { part: UnsupportedPart::Content(kind.to_owned()) }))
}

fn image(url: &str) -> Image {
    match parse_data_url(url) {
        Some((media_type, base64)) => Image::Inline { media_type: media_type.into(), base64: base64.into() },
        None => Image::Link { url: url.into() },
    }
}

fn file(file: &Value) -> Option<ContentPart> {
    let Some(data) = content::text(&file["file_data"]) else {
        return content::text(&file["file_id"]).map(|_| ContentPart::Unread { part: UnsupportedPart::FileId });
    };
    let (media_type, base64) = parse_data_url(data)?;
    // Parameters such as `charset` are not part of the type.
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let name = content::text(&file["filename"]).map(str::to_owned);
    (!media_type.is_empty())
        .then(|| ContentPart::File { file: FileContent { name, media_type, base64: base64.to_owned() } })
}

fn audio(audio: &Value) -> Option<ContentPart> {
    let (format, base64) = (content::text(&audio["format"])?, content::text(&audio["data"])?);
    Some(ContentPart::Audio { format: format.to_owned(), base64: base64.to_owned() })
}

/// Media type and base64 content of a data URL.
fn parse_data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
