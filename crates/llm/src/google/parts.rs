//! Parses the parts of Google's `contents`.
//!
//! Google signs its reasoning (`thoughtSignature`) and requires the signature back on the same part. On a thought or a
//! function call it becomes that part's proof. On any other part it becomes an empty thought right after it, marked
//! with [`OF_PART_BEFORE`]; `turns` restores it.

use serde_json::{Value, json};

use super::fields::{Object, field, object, objects, text};
use crate::chat::{ContentPart, Image};

/// The field of a part that holds the signature.
pub(super) const SIGNATURE: &str = "thoughtSignature";

/// Path of the signature inside a proof. It matches the format of Google's OpenAI-compatible endpoint, so that clients
/// can switch between the two in mid-conversation.
pub(super) const PROVIDER: &str = "google";
pub(super) const PROOF: &str = "thought_signature";

/// The field of a proof that marks the signature as belonging to the preceding part, which cannot hold it.
pub(super) const OF_PART_BEFORE: &str = "of_preceding_part";

/// All parts of a message that corbie supports. `call_id` generates an ID for the n-th function call without one.
pub(super) fn parse_parts(content: &Object, mut call_id: impl FnMut(usize) -> String) -> Vec<ContentPart> {
    let mut calls = 0;
    let mut read = Vec::new();
    for part in objects(content, "parts") {
        if let Some(call) = object(part, "functionCall") {
            let made = calls;
            calls += 1;
            read.extend(function_call(call, proof(part), || call_id(made)));
            continue;
        }
        let known = read.len();
        if let Some(text) = text(part, "text") {
            if is_thought(part) {
                read.push(ContentPart::Reasoning { text: text.to_owned(), proof: proof(part) });
                continue;
            }
            if !text.is_empty() {
                read.push(ContentPart::Text { text: text.to_owned() });
            }
        } else if let Some(response) = object(part, "functionResponse") {
            read.push(function_response(response));
        } else {
            read.extend(image(part).map(|image| ContentPart::Image { image }));
        }
        if let Some(mut proof) = proof(part) {
            if read.len() > known {
                proof[OF_PART_BEFORE] = true.into();
            }
            read.push(ContentPart::Reasoning { text: String::new(), proof: Some(proof) });
        }
    }
    read
}

/// Whether a part is reasoning rather than answer text.
pub(super) fn is_thought(part: &Object) -> bool {
    field(part, "thought").and_then(Value::as_bool).unwrap_or(false)
}

/// A part's signature, wrapped as the proof to send back.
pub(super) fn proof(part: &Object) -> Option<Value> {
    text(part, SIGNATURE).map(|signature| json!({PROVIDER: {PROOF: signature}}))
}

/// A call without a name is invalid and is dropped.
fn function_call(call: &Object, proof: Option<Value>, call_id: impl FnOnce() -> String) -> Option<ContentPart> {
    let name = text(call, "name")?.to_owned();
    let id = text(call, "id").filter(|id| !id.is_empty()).map_or_else(call_id, str::to_owned);
    let arguments = field(call, "args").cloned().unwrap_or_else(|| json!({}));
    Some(ContentPart::ToolCall { id, name, arguments, proof })
}

/// A tool result. The ID is empty if absent; `parse` matches it to its call.
fn function_response(response: &Object) -> ContentPart {
    let given = object(response, "response");
    let one = given.filter(|given| given.len() == 1).and_then(|given| given.iter().next());
    let (value, is_error) = match one {
        Some((name, value)) if name == "error" => (Some(value.clone()), true),
        Some((name, value)) if name == "output" || name == "result" => (Some(value.clone()), false),
        _ => (given.cloned().map(Value::Object), false),
    };
    let said = value.map(|value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    });
    let mut content: Vec<ContentPart> = said.map(|text| ContentPart::Text { text }).into_iter().collect();
    let pictures = objects(response, "parts").into_iter().filter_map(image);
    content.extend(pictures.map(|image| ContentPart::Image { image }));
    ContentPart::ToolResult {
        id: text(response, "id").unwrap_or_default().to_owned(),
        name: text(response, "name").map(str::to_owned),
        content,
        is_error,
    }
}

/// An image. Audio, video and documents remain in the raw request.
fn image(part: &Object) -> Option<Image> {
    if let Some(blob) = object(part, "inlineData") {
        let media_type = text(blob, "mimeType").filter(|media_type| media_type.starts_with("image/"))?;
        let base64 = text(blob, "data")?;
        return Some(Image::Inline { media_type: media_type.to_owned(), base64: base64.to_owned() });
    }
    let file = object(part, "fileData")?;
    let url = text(file, "fileUri")?;
    let media_type = text(file, "mimeType").or_else(|| media_type_of(url))?;
    media_type.starts_with("image/").then(|| Image::Link { url: url.to_owned() })
}

/// Guesses the image type from the URL's file extension. The API rejects a wrong type, but the type is optional.
pub(super) fn media_type_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => Some("image/jpeg"),
        "png" => Some("image/png"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}
