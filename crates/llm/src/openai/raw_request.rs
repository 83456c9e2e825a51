//! A client's unparsed request. Only the necessary fields are parsed: most requests pass through to a server of the
//! same protocol, which validates them.

use bytes::Bytes;
use serde_json::Value;

use super::json_scan::{LazyObject, ScanError};
use super::{parse, request, signed_fields};
use crate::{Chat, Endpoint, Error, HttpRequest, UnsupportedParameters};

/// A chat completion request.
#[derive(Debug, Clone, PartialEq)]
pub struct RawChatRequest {
    bytes: Bytes,
    fields: LazyObject,
    /// The requested model.
    pub model: Option<String>,
    /// The client requested streaming.
    pub stream: bool,
    /// The client requested usage at the end of the stream.
    pub with_usage: bool,
    /// The client requested more than one choice.
    pub wants_multiple_choices: bool,
}

/// Why the bytes are not a valid request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    #[error("request body is not a JSON object")]
    NotAnObject,
    #[error("request body has more than 1000 members")]
    TooManyFields,
    /// Parsers may take either value.
    #[error("request body has duplicate members")]
    DuplicateField,
    #[error("`{0}` is missing or invalid")]
    Field(&'static str),
}

impl RawChatRequest {
    pub fn read(bytes: Bytes) -> Result<RawChatRequest, InvalidRequest> {
        let members = LazyObject::read(bytes.clone()).map_err(|no_members| match no_members {
            ScanError::NotAnObject => InvalidRequest::NotAnObject,
            ScanError::TooManyFields => InvalidRequest::TooManyFields,
            ScanError::DuplicateField => InvalidRequest::DuplicateField,
        })?;
        if !members.get("messages").is_some_and(|messages| messages.starts_with('[')) {
            return Err(InvalidRequest::Field("messages"));
        }
        let options = members.get("stream_options").map(serde_json::from_str::<Value>);
        Ok(RawChatRequest {
            model: read(&members, "model")?,
            stream: read(&members, "stream")?.unwrap_or_default(),
            with_usage: options.is_some_and(|options| options.is_ok_and(|options| options["include_usage"] == true)),
            wants_multiple_choices: !matches!(members.get("n"), None | Some("1" | "null")),
            fields: members,
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
    pub fn may_contain_foreign_fields(&self) -> bool {
        signed_fields::may_contain_foreign(&self.bytes)
    }

    /// Whether the request may contain signed fields that name their signer, which compatible servers must not see. A
    /// fast scan.
    pub fn may_name_signer(&self) -> bool {
        signed_fields::may_name_signer(&self.bytes)
    }

    /// The request with the provider's name for the model. All other bytes are unmodified, except for parameters that
    /// the model rejects.
    pub fn to_provider_request(&self, model: &str, endpoint: &Endpoint, refuses: UnsupportedParameters) -> HttpRequest {
        let body = request::passthrough_body(&self.fields, model, refuses);
        request::build_http_request(http::Method::POST, endpoint, "chat/completions", body.into_bytes())
    }
}

/// An optional field: it may be missing or null, but not of another type.
fn read<T: serde::de::DeserializeOwned>(members: &LazyObject, name: &'static str) -> Result<Option<T>, InvalidRequest> {
    match members.get(name) {
        None => Ok(None),
        Some(text) => serde_json::from_str(text).map_err(|_| InvalidRequest::Field(name)),
    }
}
