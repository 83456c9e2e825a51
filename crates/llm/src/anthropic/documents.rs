//! Files as Anthropic document blocks: a base64 PDF or plain text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::UnsupportedRequest;
use crate::chat::{ContentPart, FileContent};

/// Checks whether a block type exists for a part: there is none for audio and for other file types.
pub(super) fn check_part(part: &ContentPart) -> Result<(), UnsupportedRequest> {
    match part {
        ContentPart::Audio { .. } => Err(UnsupportedRequest::Audio),
        ContentPart::File { file } if !is_pdf(file) && text(file).is_none() => {
            Err(UnsupportedRequest::File(file.media_type.clone()))
        }
        _ => Ok(()),
    }
}

/// The document block of a file; `None` for an unsupported type.
pub(super) fn write(file: &FileContent) -> Option<Value> {
    let source = match is_pdf(file) {
        true => json!({"type": "base64", "media_type": file.media_type, "data": file.base64}),
        // The only supported text type, regardless of the file's format.
        false => json!({"type": "text", "media_type": "text/plain", "data": text(file)?}),
    };
    let mut block = json!({"type": "document", "source": source});
    if let Some(name) = &file.name {
        block["title"] = name.as_str().into();
    }
    Some(block)
}

fn is_pdf(file: &FileContent) -> bool {
    file.media_type == "application/pdf"
}

fn text(file: &FileContent) -> Option<String> {
    let bytes = file.media_type.starts_with("text/").then(|| STANDARD.decode(&file.base64))?;
    String::from_utf8(bytes.ok()?).ok()
}
