//! A caller's request as it came. It is read no further than it must be: most go on to a server that speaks the same
//! protocol, and are not ours to judge.

use bytes::Bytes;
use serde_json::Value;

use super::members::{Members, NoMembers};
use super::{foreign, parse, request};
use crate::providers::{Chat, Endpoint, Error, Refuses, Request};

/// A request for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    bytes: Bytes,
    members: Members,
    /// The model it names.
    pub model: Option<String>,
    /// The answer is wanted in pieces.
    pub stream: bool,
    /// The caller wants to be told of tokens at the end of a stream.
    pub with_usage: bool,
    /// More than one answer is wanted.
    pub several: bool,
}

/// Why bytes are no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    #[error("the body is no JSON object")]
    NoObject,
    #[error("the body has more than 1000 members")]
    TooMany,
    /// Whoever reads it may take either.
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

    /// The same, read to its last word.
    pub fn chat(&self) -> Result<Chat, Error> {
        parse::parse(serde_json::from_slice(&self.bytes).map_err(|_| Error::BadRequest { kind: "no_object".into() })?)
    }

    /// The bytes that came.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether it may hold what another provider has signed, which OpenAI itself refuses. A quick look.
    pub fn may_hold_foreign(&self) -> bool {
        foreign::may_be_in(&self.bytes)
    }

    /// A request for a model by the name its provider gives it; every other byte stays, unless the model refuses it.
    pub fn passed_on(&self, model: &str, endpoint: &Endpoint, refuses: Refuses) -> Request {
        let body = request::passed_on(&self.members, model, refuses);
        request::address(http::Method::POST, endpoint, "chat/completions", body.into_bytes())
    }
}

/// A member that may be missing or null, but not of another type.
fn read<T: serde::de::DeserializeOwned>(members: &Members, name: &'static str) -> Result<Option<T>, NotReceived> {
    match members.get(name) {
        None => Ok(None),
        Some(text) => serde_json::from_str(text).map_err(|_| NotReceived::Member(name)),
    }
}
