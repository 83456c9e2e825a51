//! A client's unparsed request. Only the necessary fields are parsed: most requests pass through to a server of the
//! same protocol, which validates them.

use bytes::Bytes;
use serde_json::Value;

use super::members::{Members, NoMembers};
use super::{foreign, parse, request};
use crate::providers::{Chat, Endpoint, Error, Refuses, Request};

/// A chat completion request.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    bytes: Bytes,
    members: Members,
    /// The requested model.
    pub model: Option<String>,
    /// The client requested streaming.
    pub stream: bool,
    /// The client requested usage at the end of the stream.
    pub with_usage: bool,
    /// The client requested more than one choice.
    pub several: bool,
}

/// Why the bytes are not a valid request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    #[error("the body is no JSON object")]
    NoObject,
    #[error("the body has more than 1000 members")]
    TooMany,
    /// Parsers may take either value.
    #[error("the body has two members of the same name")]
    Twice,
    #[error("`{0}` is missing or cannot be read")]
    Member(&'static str),
}

impl Received {
    pub fn read(bytes: Bytes) -> Result<Received, NotReceived> {
        let members = Members::read(bytes.clone()).map_err(|no_members| match no_members {
            NoMembers::NoObject => NotReceived::NoObject,
            NoMembers::TooMany => NotReceived::TooMany,
            NoMembers::Twice => NotReceived::Twice,
        })?;
        if !members.get("messages").is_some_and(|messages| messages.starts_with('[')) {
            return Err(NotReceived::Member("messages"));
        }
        let options = members.get("stream_options").map(serde_json::from_str::<Value>);
        Ok(Received {
            model: read(&members, "model")?,
            stream: read(&members, "stream")?.unwrap_or_default(),
            with_usage: options.is_some_and(|options| options.is_ok_and(|options| options["include_usage"] == true)),
            several: !matches!(members.get("n"), None | Some("1" | "null")),
            members,
            bytes,
        })
    }

    /// The fully parsed request.
    pub fn chat(&self) -> Result<Chat, Error> {
        parse::parse(serde_json::from_slice(&self.bytes).map_err(|_| Error::BadRequest { kind: "no_object".into() })?)
    }

    /// The original bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether the request may contain signed fields of another provider, which OpenAI rejects. A fast scan.
    pub fn may_hold_foreign(&self) -> bool {
        foreign::may_be_in(&self.bytes)
    }

    /// Whether the request may contain signed fields that name their signer, which compatible servers must not see. A
    /// fast scan.
    pub fn may_name_signer(&self) -> bool {
        foreign::may_name_signer(&self.bytes)
    }

    /// The request with the provider's name for the model. All other bytes are unmodified, except for parameters that
    /// the model rejects.
    pub fn passed_on(&self, model: &str, endpoint: &Endpoint, refuses: Refuses) -> Request {
        let body = request::passed_on(&self.members, model, refuses);
        request::address(http::Method::POST, endpoint, "chat/completions", body.into_bytes())
    }
}

/// An optional field: it may be missing or null, but not of another type.
fn read<T: serde::de::DeserializeOwned>(members: &Members, name: &'static str) -> Result<Option<T>, NotReceived> {
    match members.get(name) {
        None => Ok(None),
        Some(text) => serde_json::from_str(text).map_err(|_| NotReceived::Member(name)),
    }
}
