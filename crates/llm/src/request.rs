//! A chat request to a provider: parsed, or the client's unparsed body.

use std::borrow::Cow;

use super::chat::ContentPart;
use super::openai::RawChatRequest;
use super::{Chat, Error};

/// A chat request, parsed or unparsed.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatRequest {
    Parsed(Box<Chat>),
    /// Forwarded byte for byte to providers that speak OpenAI's protocol; parsed for all other providers.
    Passthrough {
        received: RawChatRequest,
        /// The provider's name for the model.
        model: String,
    },
}

impl ChatRequest {
    /// The provider's name for the model.
    pub fn model(&self) -> &str {
        match self {
            ChatRequest::Parsed(chat) => &chat.model,
            ChatRequest::Passthrough { model, .. } => model,
        }
    }

    pub fn set_model(&mut self, name: &str) {
        match self {
            ChatRequest::Parsed(chat) => name.clone_into(&mut chat.model),
            ChatRequest::Passthrough { model, .. } => name.clone_into(model),
        }
    }

    pub fn is_parsed(&self) -> bool {
        matches!(self, ChatRequest::Parsed(_))
    }

    /// Sets whether the response is streamed. A passthrough request carries its own `stream` field.
    pub fn set_streaming(&mut self, stream: bool) {
        if let ChatRequest::Parsed(chat) = self {
            chat.stream = stream;
        }
    }

    /// Request size in bytes.
    pub fn size(&self) -> usize {
        match self {
            ChatRequest::Passthrough { received, .. } => received.bytes().len(),
            ChatRequest::Parsed(chat) => {
                let parts = chat.messages.iter().flat_map(|message| &message.parts);
                parts.map(|part| if let ContentPart::Text { text } = part { text.len() } else { 0 }).sum()
            }
        }
    }

    /// The parsed chat.
    pub fn chat(&self) -> Result<Cow<'_, Chat>, Error> {
        match self {
            ChatRequest::Parsed(chat) => Ok(Cow::Borrowed(chat)),
            ChatRequest::Passthrough { received, model } => {
                Ok(Cow::Owned(Chat { model: model.clone(), ..received.chat()? }))
            }
        }
    }

    /// Converts into the parsed chat.
    pub fn into_chat(self) -> Result<Chat, Error> {
        match self {
            ChatRequest::Parsed(chat) => Ok(*chat),
            ChatRequest::Passthrough { received, model } => Ok(Chat { model, ..received.chat()? }),
        }
    }
}

impl From<Chat> for ChatRequest {
    fn from(chat: Chat) -> ChatRequest {
        ChatRequest::Parsed(Box::new(chat))
    }
}

impl From<RawChatRequest> for ChatRequest {
    fn from(received: RawChatRequest) -> ChatRequest {
        ChatRequest::Passthrough { received, model: String::new() }
    }
}

impl Default for ChatRequest {
    fn default() -> ChatRequest {
        ChatRequest::Parsed(Box::default())
    }
}
