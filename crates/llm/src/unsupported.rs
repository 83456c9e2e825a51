//! Requests that a provider's protocol cannot express. They are rejected before sending: a prompt that silently lost
//! its attachment gets a confident wrong answer.

use super::Chat;
use super::chat::{ChatRole, ContentPart, UnsupportedPart};

/// Why a chat cannot be translated to the provider's protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRequest {
    #[error("{}", unsupported_part_message(.0))]
    Part(UnsupportedPart),
    #[error(
        "audio input (`input_audio`) is not supported by the provider; remove it, or use a model of another \
        provider"
    )]
    Audio,
    /// The media type of the file.
    #[error(
        "unsupported media type `{0}` of a `file`: the provider supports PDF and UTF-8 text; convert the file, or use \
         a model of another provider"
    )]
    File(String),
    /// System instructions with non-text parts.
    #[error("system messages may contain only text; move other parts to a user message")]
    Instructions,
    #[error("`n` greater than 1 is not supported by the provider; omit `n`, or send several requests")]
    Choices,
}

impl UnsupportedRequest {
    /// The request parameter at fault.
    pub fn parameter(&self) -> &'static str {
        match self {
            UnsupportedRequest::Choices => "n",
            _ => "messages",
        }
    }
}

/// Checks whether the protocol can express the chat. `takes` checks the parts that only some protocols support.
pub(super) fn check(
    chat: &Chat,
    takes: fn(&ContentPart) -> Result<(), UnsupportedRequest>,
) -> Result<(), UnsupportedRequest> {
    if chat.n.is_some_and(|n| n > 1) {
        return Err(UnsupportedRequest::Choices);
    }
    let shown = |part: &ContentPart| {
        matches!(part, ContentPart::Image { .. } | ContentPart::File { .. } | ContentPart::Audio { .. })
    };
    if chat.messages.iter().any(|message| message.role == ChatRole::System && message.parts.iter().any(shown)) {
        return Err(UnsupportedRequest::Instructions);
    }
    chat.messages.iter().flat_map(|message| &message.parts).try_for_each(|part| check_part(part, takes))
}

fn check_part(
    part: &ContentPart,
    takes: fn(&ContentPart) -> Result<(), UnsupportedRequest>,
) -> Result<(), UnsupportedRequest> {
    match part {
        ContentPart::Unread { part } => Err(UnsupportedRequest::Part(part.clone())),
        ContentPart::ToolResult { content, .. } => content.iter().try_for_each(|part| check_part(part, takes)),
        part => takes(part),
    }
}

fn unsupported_part_message(part: &UnsupportedPart) -> String {
    match part {
        UnsupportedPart::Type(kind) if kind.is_empty() => "a content part has no `type`".to_owned(),
        UnsupportedPart::Type(kind) => format!(
            "content parts of type `{kind}` are not supported by the provider; remove them, or use a model of an \
             OpenAI-compatible provider"
        ),
        UnsupportedPart::Content(kind) if kind == "file" => {
            "`file` requires `file_data` as a data URL: `data:application/pdf;base64,…`".to_owned()
        }
        UnsupportedPart::Content(kind) => {
            format!("invalid content part of type `{kind}`; use the format of the OpenAI API")
        }
        UnsupportedPart::FileId => {
            "`file_id` refers to a file stored at OpenAI, which other providers cannot read; send the content in \
             `file_data`"
                .to_owned()
        }
    }
}
