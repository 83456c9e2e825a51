//! Method replies and their era-specific encoding.
//!
//! Results are serialized directly from the handler's return value, without an intermediate tree: for a small call the
//! tree cost more than the rest of the encoding.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::json_string;
use crate::message::{self, Id};
use crate::outcome::CallResult;
use crate::server::Server;
use crate::version::Era;

/// The reply of a method: result members, and additions of the modern era.
#[derive(Debug, Clone, Default)]
pub(crate) struct MethodReply {
    pub(crate) body: ReplyBody,
    pub(crate) kind: ResultType,
    pub(crate) cache: Option<CacheHint>,
}

#[derive(Debug, Clone)]
pub(crate) enum ReplyBody {
    Members(Map<String, Value>),
    Call(CallResult),
    /// One preserialized member, such as the list of tools.
    Raw(&'static str, Arc<RawValue>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResultType {
    #[default]
    Complete,
    InputRequired,
    Task,
}

/// Cache lifetime and scope of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheHint {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: &'static str,
}

/// A reply with its id and era.
#[derive(Debug)]
pub(crate) struct ServerResponse {
    pub(crate) id: Id,
    pub(crate) era: Era,
    pub(crate) outcome: Result<MethodReply, Error>,
    pub(crate) server: Server,
}

/// A result in the representation of one era.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EraResult<'a> {
    pub(crate) reply: &'a MethodReply,
    pub(crate) era: Era,
    pub(crate) server: &'a Server,
}

impl MethodReply {
    /// A result with these members.
    pub(crate) fn new(members: Value) -> MethodReply {
        match members {
            Value::Object(members) => ReplyBody::Members(members).into(),
            _ => MethodReply::default(),
        }
    }

    pub(crate) fn with_cache(self, cache: CacheHint) -> MethodReply {
        MethodReply { cache: Some(cache), ..self }
    }

    pub(crate) fn with_kind(self, kind: ResultType) -> MethodReply {
        MethodReply { kind, ..self }
    }

    /// The result object as a value, for storage.
    pub(crate) fn to_value(&self, era: Era, server: &Server) -> Value {
        serde_json::to_value(EraResult { reply: self, era, server }).expect("a reply has string keys")
    }
}

impl From<ReplyBody> for MethodReply {
    fn from(body: ReplyBody) -> MethodReply {
        MethodReply { body, kind: ResultType::Complete, cache: None }
    }
}

impl Default for ReplyBody {
    fn default() -> ReplyBody {
        ReplyBody::Members(Map::new())
    }
}

impl ServerResponse {
    /// The JSON-RPC response.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut response = Vec::with_capacity(256);
        self.encode_into(&mut response);
        response
    }

    /// Appends the JSON-RPC response to the buffer.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        match self.result() {
            Ok(result) => match &result.reply.body {
                ReplyBody::Call(call) => result.write_call(out, &self.id, call).expect("a reply has string keys"),
                _ => message::write_result(out, &self.id, &result).expect("a reply has string keys"),
            },
            Err(error) => out.extend(message::encode_error(Some(&self.id), &error.to_object(self.era))),
        }
    }

    pub(crate) fn result(&self) -> Result<EraResult<'_>, &Error> {
        self.outcome.as_ref().map(|reply| EraResult { reply, era: self.era, server: &self.server })
    }
}

impl EraResult<'_> {
    /// Writes the response to a tool call, identical to the [`Serialize`] output, but copies plain texts in bulk.
    fn write_call(&self, out: &mut Vec<u8>, id: &Id, call: &CallResult) -> serde_json::Result<()> {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        serde_json::to_writer(&mut *out, id)?;
        out.extend_from_slice(br#","result":{"content":["#);
        for (index, content) in call.content.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            match content.as_plain_text() {
                Some(text) => {
                    out.extend_from_slice(br#"{"type":"text","text":"#);
                    json_string::write_string(out, text);
                    out.push(b'}');
                }
                None => serde_json::to_writer(&mut *out, content)?,
            }
        }
        out.push(b']');
        if let Some(structured) = &call.structured {
            out.extend_from_slice(br#","structuredContent":"#);
            serde_json::to_writer(&mut *out, structured)?;
        }
        out.extend_from_slice(if call.is_error { br#","isError":true"# } else { br#","isError":false"# });
        if self.era == Era::Modern {
            out.extend_from_slice(br#","resultType":"#);
            serde_json::to_writer(&mut *out, self.reply.kind.as_str())?;
        }
        if call.meta.is_none() && self.era == Era::Modern {
            out.extend_from_slice(br#","_meta":"#);
            out.extend_from_slice(self.server.inner().server_meta_json.as_bytes());
        } else if let Some(meta) = self.meta(call.meta.as_ref()) {
            out.extend_from_slice(br#","_meta":"#);
            serde_json::to_writer(&mut *out, &*meta)?;
        }
        out.extend_from_slice(b"}}");
        Ok(())
    }

    /// `_meta` for this era: the reply's members, plus server info in the modern era.
    fn meta(&self, own: Option<&Map<String, Value>>) -> Option<Cow<'_, Map<String, Value>>> {
        match (own, self.era) {
            (None, Era::Legacy) => None,
            (Some(own), Era::Legacy) => Some(Cow::Owned(own.clone())),
            (None, Era::Modern) => Some(Cow::Borrowed(self.server.server_meta())),
            (Some(own), Era::Modern) => {
                let mut all = own.clone();
                all.extend(self.server.server_meta().clone());
                Some(Cow::Owned(all))
            }
        }
    }
}

impl ResultType {
    fn as_str(self) -> &'static str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
        }
    }
}

impl Serialize for EraResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let modern = self.era == Era::Modern;
        let mut out = serializer.serialize_map(None)?;
        let meta = match &self.reply.body {
            ReplyBody::Members(members) => {
                for (name, value) in members.iter().filter(|(name, _)| *name != "_meta") {
                    out.serialize_entry(name, value)?;
                }
                members.get("_meta").and_then(Value::as_object)
            }
            ReplyBody::Call(result) => {
                out.serialize_entry("content", &result.content)?;
                if let Some(structured) = &result.structured {
                    out.serialize_entry("structuredContent", structured)?;
                }
                out.serialize_entry("isError", &result.is_error)?;
                result.meta.as_ref()
            }
            ReplyBody::Raw(name, json) => {
                out.serialize_entry(name, &**json)?;
                None
            }
        };
        if modern {
            out.serialize_entry("resultType", self.reply.kind.as_str())?;
            if let Some(cache) = self.reply.cache {
                out.serialize_entry("ttlMs", &cache.ttl_ms)?;
                out.serialize_entry("cacheScope", cache.scope)?;
            }
        }
        if let Some(meta) = self.meta(meta) {
            out.serialize_entry("_meta", &*meta)?;
        }
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::content::{ContentBlock, ResourceContents};

    #[test]
    fn a_call_written_at_once_is_what_the_plain_way_writes() {
        let server = Server::builder("s", "1").build().expect("valid");
        let meta = Map::from_iter([("a".to_owned(), json!(1))]);
        let texts = vec![
            ContentBlock::text("x".repeat(1000)),
            ContentBlock::text("\"quoted\"\n\\ü"),
            ContentBlock::image("AAAA", "image/png"),
        ];
        let file = ContentBlock::resource(ResourceContents::text("a://b", "text/plain", "t"));
        let calls = [
            CallResult::default(),
            CallResult::json(json!({ "sum": 1.5 })),
            CallResult { content: texts, is_error: true, ..CallResult::default() },
            CallResult { content: vec![file], meta: Some(meta), ..CallResult::default() },
        ];
        for call in calls {
            for era in [Era::Legacy, Era::Modern] {
                let reply = MethodReply::from(ReplyBody::Call(call.clone()));
                let answer = ServerResponse { id: Id::from("7"), era, outcome: Ok(reply), server: server.clone() };
                let plain = message::encode_result(&answer.id, &answer.result().expect("a result")).expect("JSON");
                assert_eq!(String::from_utf8_lossy(&answer.encode()), String::from_utf8_lossy(&plain));
            }
        }
    }
}
