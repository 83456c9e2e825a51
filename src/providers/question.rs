//! What a provider is asked: a chat, or a caller's request that nobody had to read yet.

use std::borrow::Cow;

use super::chat::Part;
use super::openai::Received;
use super::{Chat, Error};

/// A chat, read or as it came.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    Read(Box<Chat>),
    /// Goes on byte by byte to whoever speaks OpenAI's protocol; the others want it read.
    AsItCame {
        received: Received,
        /// The provider's own name for the model.
        model: String,
    },
}

impl Question {
    /// The provider's own name for the model.
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

    /// Says whether the answer is wanted in pieces. A request that goes on as it came says so itself.
    pub fn wants_pieces(&mut self, stream: bool) {
        if let Question::Read(chat) = self {
            chat.stream = stream;
        }
    }

    /// How much there is to read, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Question::AsItCame { received, .. } => received.bytes().len(),
            Question::Read(chat) => {
                let parts = chat.messages.iter().flat_map(|message| &message.parts);
                parts.map(|part| if let Part::Text { text } = part { text.len() } else { 0 }).sum()
            }
        }
    }

    /// What it says.
    pub fn chat(&self) -> Result<Cow<'_, Chat>, Error> {
        match self {
            Question::Read(chat) => Ok(Cow::Borrowed(chat)),
            Question::AsItCame { received, model } => Ok(Cow::Owned(Chat { model: model.clone(), ..received.chat()? })),
        }
    }

    /// The same, read once for all.
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
