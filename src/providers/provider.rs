//! A provider that was configured: which protocol it speaks, where it is, and how it is doing.

use super::breaker::Breaker;
use super::chat::Protocol;
use super::{Chat, Completion, Delta, Endpoint, Error, Event, Head, ModelInfo, Refuses, Request};
use super::{anthropic, google, openai};

/// One provider.
#[derive(Debug)]
pub struct Provider {
    /// What the operator calls it, such as `openai` or `local`.
    pub name: String,
    pub protocol: Protocol,
    pub endpoint: Endpoint,
    pub breaker: Breaker,
}

/// Reads the events of a stream.
#[derive(Debug)]
pub enum Decoder {
    OpenAi(openai::Decoder),
    Anthropic(anthropic::Decoder),
    Google(google::Decoder),
}

impl Provider {
    pub fn request(&self, chat: &Chat, refuses: Refuses) -> Request {
        match self.protocol {
            Protocol::OpenAi => openai::request(chat, &self.endpoint, refuses),
            Protocol::Anthropic => anthropic::request(chat, &self.endpoint, refuses),
            Protocol::Google => google::request(chat, &self.endpoint, refuses),
        }
    }

    pub fn response(&self, head: Head<'_>, body: &[u8]) -> Result<Completion, Error> {
        match self.protocol {
            Protocol::OpenAi => openai::response(head, body),
            Protocol::Anthropic => anthropic::response(head, body),
            Protocol::Google => google::response(head, body),
        }
    }

    pub fn decoder(&self) -> Decoder {
        match self.protocol {
            Protocol::OpenAi => Decoder::OpenAi(openai::Decoder::default()),
            Protocol::Anthropic => Decoder::Anthropic(anthropic::Decoder::default()),
            Protocol::Google => Decoder::Google(google::Decoder::default()),
        }
    }

    /// The list of models: its first page, or the one a token names.
    pub fn models_request(&self, page: Option<&str>) -> Request {
        match (self.protocol, page) {
            (Protocol::OpenAi, _) => openai::models_request(&self.endpoint),
            (Protocol::Anthropic, None) => anthropic::models_request(&self.endpoint),
            (Protocol::Anthropic, Some(page)) => anthropic::models_page(&self.endpoint, page),
            (Protocol::Google, None) => google::models_request(&self.endpoint),
            (Protocol::Google, Some(page)) => google::models_page(&self.endpoint, page),
        }
    }

    /// The models of a page, and the token of the next.
    pub fn models_response(&self, head: Head<'_>, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
        match self.protocol {
            Protocol::OpenAi => openai::models_response(head, body),
            Protocol::Anthropic => anthropic::models_response(head, body),
            Protocol::Google => google::models_response(head, body),
        }
    }
}

impl Decoder {
    pub fn event(&mut self, event: &Event) -> Result<Vec<Delta>, Error> {
        match self {
            Decoder::OpenAi(decoder) => decoder.event(event),
            Decoder::Anthropic(decoder) => decoder.event(event),
            Decoder::Google(decoder) => decoder.event(event),
        }
    }

    /// Whether the answer has come to its end.
    pub fn is_complete(&self) -> bool {
        match self {
            Decoder::OpenAi(decoder) => decoder.is_complete(),
            Decoder::Anthropic(decoder) => decoder.is_complete(),
            Decoder::Google(decoder) => decoder.is_complete(),
        }
    }
}
