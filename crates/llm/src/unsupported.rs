//! Requests that a provider's protocol cannot express. They are rejected before sending: a prompt that silently lost
//! its attachment gets a confident wrong answer.

use super::Chat;
use super::chat::{ChatRole, ContentPart, UnsupportedPart};

/// Why a chat cannot be translated to the provider's protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRequest {
    #[error("{}", unsupported_part_message(.0))]
    Part(UnsupportedPart),
    #[error("it takes no sounds (`input_audio`); leave them out, or use a model of another provider")]
    Audio,
    /// The media type of the file.
    #[error(
        "it takes a `file` that is a PDF, or text in UTF-8, and this one is sent as `{0}`; send it as one of these, or use \
         a model of another provider"
    )]
    File(String),
    /// System instructions with non-text parts.
    #[error(
        "its instructions are text only, and a message of the system has a part that is none; move it to the user's"
    )]
    Instructions,
    #[error("it gives one answer to a request; leave out `n`, or ask several times")]
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
        UnsupportedPart::Type(kind) if kind.is_empty() => {
            "a part of a message has no `type`, and cannot be put into its protocol".to_owned()
        }
        UnsupportedPart::Type(kind) => format!(
            "a part of type `{kind}` cannot be put into its protocol; leave it out, or use a model of a provider that \
             speaks OpenAI's"
        ),
        UnsupportedPart::Content(kind) if kind == "file" => {
            "a `file` needs its bytes in `file_data`, written as `data:application/pdf;base64,…`".to_owned()
        }
        UnsupportedPart::Content(kind) => {
            format!("a part of type `{kind}` does not hold what it should; write it as for OpenAI")
        }
        UnsupportedPart::FileId => {
            "a `file` with only a `file_id` is at OpenAI, and nobody else can read it; send its bytes in `file_data`"
                .to_owned()
        }
    }
}
