//! Plays the golden files of a protocol's folder in place of the network.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use corbie::config::secret::Secret;
use corbie::providers::chat::Protocol;
use corbie::providers::provider::StreamDecoder;
use corbie::providers::{
    Chat, Completion, Delta, Endpoint, Error, HttpRequest, ModelInfo, ResponseHead, SseParser, UnsupportedParameters,
};
use corbie::providers::{anthropic, google, openai};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) const OPENAI: ProtocolFixture = ProtocolFixture {
    protocol: Protocol::OpenAi,
    folder: "openai",
    base: "https://api.openai.com/v1",
    key: "sk-secret",
};
pub(crate) const ANTHROPIC: ProtocolFixture = ProtocolFixture {
    protocol: Protocol::Anthropic,
    folder: "anthropic",
    base: "https://api.anthropic.com",
    key: "sk-ant-secret",
};
pub(crate) const GOOGLE: ProtocolFixture = ProtocolFixture {
    protocol: Protocol::Google,
    folder: "google",
    base: "https://generativelanguage.googleapis.com",
    key: "AIza-secret",
};
pub(crate) const ALL: [ProtocolFixture; 3] = [OPENAI, ANTHROPIC, GOOGLE];

/// One protocol: its files and its adapter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProtocolFixture {
    pub(crate) protocol: Protocol,
    folder: &'static str,
    base: &'static str,
    key: &'static str,
}

/// Deltas, and whether the response is complete.
pub(crate) type StreamResult = Result<(Vec<Delta>, bool), Error>;

/// Headers of a response.
pub(crate) type Headers<'a> = &'a [(&'static str, &'static str)];

impl ProtocolFixture {
    /// The cases that have a file with this suffix, and its bytes.
    pub(crate) fn cases(&self, ending: &str) -> Vec<(String, Vec<u8>)> {
        let names = fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let case = |name: std::ffi::OsString| name.to_str()?.strip_suffix(ending).map(str::to_owned);
        let mut cases: Vec<String> = names.filter_map(case).collect();
        cases.sort();
        assert!(!cases.is_empty(), "{} has no {ending}", self.folder);
        cases.into_iter().map(|case| (case.clone(), fs::read(self.path(&format!("{case}{ending}"))).unwrap())).collect()
    }

    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, file: &str) -> T {
        serde_json::from_str(&self.text(file)).unwrap()
    }

    /// Compares a value with a file. `CORBIE_BLESS=1` writes the file instead.
    pub(crate) fn check(&self, file: &str, made: impl Serialize) {
        let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
        let path = self.path(file);
        if std::env::var_os("CORBIE_BLESS").is_some() {
            fs::write(path, made).unwrap();
            return;
        }
        let expected = fs::read_to_string(path).unwrap_or_else(|_| panic!("{file} is missing; set CORBIE_BLESS=1"));
        assert_eq!(made, expected, "{}/{file}", self.folder);
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint_at(self.base)
    }

    pub(crate) fn endpoint_at(&self, base: &str) -> Endpoint {
        Endpoint { base: base.parse().unwrap(), key: Some(Secret::new(self.key)), headers: HeaderMap::new() }
    }

    pub(crate) fn request(
        &self,
        chat: &Chat,
        endpoint: &Endpoint,
        refuses: UnsupportedParameters,
    ) -> Result<HttpRequest, Error> {
        match self.protocol {
            Protocol::OpenAi => Ok(openai::request(chat, endpoint, refuses)),
            Protocol::Anthropic => anthropic::request(chat, endpoint, refuses),
            Protocol::Google => google::request(chat, endpoint, refuses),
        }
    }

    /// The request body of a chat.
    pub(crate) fn request_body(&self, chat: &Chat, refuses: UnsupportedParameters) -> Value {
        serde_json::from_slice(self.request(chat, &self.endpoint(), refuses).unwrap().body()).unwrap()
    }

    /// Parses a caller's request of this protocol.
    pub(crate) fn parse_request(&self, body: Map<String, Value>) -> Result<Chat, Error> {
        match self.protocol {
            Protocol::OpenAi => openai::parse(body),
            Protocol::Anthropic => anthropic::parse(body),
            Protocol::Google => google::parse(body),
        }
    }

    pub(crate) fn parse_response(&self, status: u16, headers: Headers<'_>, body: &[u8]) -> Result<Completion, Error> {
        let headers = header_map(headers);
        let head = head(status, &headers);
        match self.protocol {
            Protocol::OpenAi => openai::response(head, body),
            Protocol::Anthropic => anthropic::response(head, body),
            Protocol::Google => google::response(head, body),
        }
    }

    /// A page of models, and the token of the next.
    pub(crate) fn parse_models(&self, status: u16, body: &[u8]) -> Result<(Vec<ModelInfo>, Option<String>), Error> {
        let headers = HeaderMap::new();
        let head = head(status, &headers);
        match self.protocol {
            Protocol::OpenAi => openai::models_response(head, body),
            Protocol::Anthropic => anthropic::models_response(head, body),
            Protocol::Google => google::models_response(head, body),
        }
    }

    /// Decodes a stream in these chunks.
    pub(crate) fn decode_stream<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> StreamResult {
        let mut decoder = match self.protocol {
            Protocol::OpenAi => StreamDecoder::OpenAi(openai::OpenAiDecoder::default()),
            Protocol::Anthropic => StreamDecoder::Anthropic(anthropic::AnthropicDecoder::default()),
            Protocol::Google => StreamDecoder::Google(google::GoogleDecoder::default()),
        };
        let (mut events, mut deltas) = (SseParser::default(), Vec::new());
        for piece in pieces {
            for event in events.push(piece).unwrap() {
                deltas.extend(decoder.event(&event)?);
            }
        }
        let is_complete = decoder.is_complete();
        deltas.extend(decoder.end());
        Ok((deltas, is_complete))
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/providers").join(self.folder).join(file)
    }
}

/// Response head; the response time is 2015-10-21 07:28:00, a Wednesday.
pub(crate) fn head(status: u16, headers: &HeaderMap) -> ResponseHead<'_> {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480);
    ResponseHead { status: StatusCode::from_u16(status).unwrap(), headers, received_at: at }
}

fn header_map(headers: Headers<'_>) -> HeaderMap {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    pairs.collect()
}
