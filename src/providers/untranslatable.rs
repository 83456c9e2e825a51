//! Requests that a provider's protocol cannot express. They are rejected before sending: a prompt that silently lost
//! its attachment gets a confident wrong answer.

use super::Chat;
use super::chat::{Part, Role, Unread};

/// Why a chat cannot be translated to the provider's protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    #[error("{}", unread(.0))]
    Part(Unread),
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

impl Untranslatable {
    /// The request parameter at fault.
    pub fn parameter(&self) -> &'static str {
        match self {
            Untranslatable::Choices => "n",
            _ => "messages",
        }
    }
}

/// Checks whether the protocol can express the chat. `takes` checks the parts that only some protocols support.
pub(super) fn check(chat: &Chat, takes: fn(&Part) -> Result<(), Untranslatable>) -> Result<(), Untranslatable> {
    if chat.n.is_some_and(|n| n > 1) {
        return Err(Untranslatable::Choices);
    }
    let shown = |part: &Part| matches!(part, Part::Image { .. } | Part::File { .. } | Part::Audio { .. });
    if chat.messages.iter().any(|message| message.role == Role::System && message.parts.iter().any(shown)) {
        return Err(Untranslatable::Instructions);
    }
    chat.messages.iter().flat_map(|message| &message.parts).try_for_each(|part| judge(part, takes))
}

fn judge(part: &Part, takes: fn(&Part) -> Result<(), Untranslatable>) -> Result<(), Untranslatable> {
    match part {
        Part::Unread { part } => Err(Untranslatable::Part(part.clone())),
        Part::ToolResult { content, .. } => content.iter().try_for_each(|part| judge(part, takes)),
        part => takes(part),
    }
}

fn unread(part: &Unread) -> String {
    match part {
        Unread::Type(kind) if kind.is_empty() => {
            "a part of a message has no `type`, and cannot be put into its protocol".to_owned()
        }
        Unread::Type(kind) => format!(
            "a part of type `{kind}` cannot be put into its protocol; leave it out, or use a model of a provider that \
             speaks OpenAI's"
        ),
        Unread::Content(kind) if kind == "file" => {
            "a `file` needs its bytes in `file_data`, written as `data:application/pdf;base64,…`".to_owned()
        }
        Unread::Content(kind) => {
            format!("a part of type `{kind}` does not hold what it should; write it as for OpenAI")
        }
        Unread::FileId => {
            "a `file` with only a `file_id` is at OpenAI, and nobody else can read it; send its bytes in `file_data`"
                .to_owned()
        }
    }
}
