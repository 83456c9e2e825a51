//! A chat request to a provider: parsed, or the client's unparsed body.

use std::borrow::Cow;

use super::chat::Part;
use super::openai::Received;
use super::{Chat, Error};

/// A chat request, parsed or unparsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    Read(Box<Chat>),
    /// Forwarded byte for byte to providers that speak OpenAI's protocol; parsed for all other providers.
    AsItCame {
        received: Received,
        /// The provider's name for the model.
        model: String,
    },
}

impl Question {
    /// The provider's name for the model.
    pub fn model(&self) -> &str {
        match self {
            Question::Read(chat) => &chat.model,
            Question::AsItCame { model, .. } => model,
        }
    }

    pub fn ask_for(&mut self, name: &str) {
        match self {
            Question::Read(chat) => name.clone_into(&mut chat.model),
            Question::AsItCame { model, .. } => name.clone_into(model),
        }
    }

    pub fn is_read(&self) -> bool {
        matches!(self, Question::Read(_))
    }

    /// Sets whether the response is streamed. A passthrough request carries its own `stream` field.
    pub fn wants_pieces(&mut self, stream: bool) {
        if let Question::Read(chat) = self {
            chat.stream = stream;
        }
    }

    /// Request size in bytes.
    pub fn size(&self) -> usize {
        match self {
            Question::AsItCame { received, .. } => received.bytes().len(),
            Question::Read(chat) => {
                let parts = chat.messages.iter().flat_map(|message| &message.parts);
                parts.map(|part| if let Part::Text { text } = part { text.len() } else { 0 }).sum()
            }
        }
    }

    /// The parsed chat.
    pub fn chat(&self) -> Result<Cow<'_, Chat>, Error> {
        match self {
            Question::Read(chat) => Ok(Cow::Borrowed(chat)),
            Question::AsItCame { received, model } => Ok(Cow::Owned(Chat { model: model.clone(), ..received.chat()? })),
        }
    }

    /// Converts into the parsed chat.
    pub fn read(self) -> Result<Chat, Error> {
        match self {
            Question::Read(chat) => Ok(*chat),
            Question::AsItCame { received, model } => Ok(Chat { model, ..received.chat()? }),
        }
    }
}

impl From<Chat> for Question {
    fn from(chat: Chat) -> Question {
        Question::Read(Box::new(chat))
    }
}

impl From<Received> for Question {
    fn from(received: Received) -> Question {
        Question::AsItCame { received, model: String::new() }
    }
}

impl Default for Question {
    fn default() -> Question {
        Question::Read(Box::default())
    }
}
