//! The end of a request: what a method gives back, and the bytes a peer of its era sees.
//!
//! Results are written straight from what the handler returned. Nothing is turned into a tree on the way: for a small
//! call that tree cost more than the rest of the encoding.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::META_SERVER_INFO;
use crate::error::Error;
use crate::message::{self, Id};
use crate::outcome::CallResult;
use crate::server::Server;
use crate::version::Era;

/// What a method gives back: a result's members, and what the modern era adds to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub(crate) body: Body,
    pub(crate) kind: ResultType,
    pub(crate) cache: Option<Cache>,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Members(Map<String, Value>),
    Call(CallResult),
    /// One member that was written before, such as the list of tools.
    Written(&'static str, Arc<RawValue>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResultType {
    #[default]
    Complete,
    InputRequired,
    Task,
}

/// How long, and by whom, a result may be kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cache {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: &'static str,
}

/// A reply with the id and the era it is for.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) id: Id,
    pub(crate) era: Era,
    pub(crate) outcome: Result<Reply, Error>,
    pub(crate) server: Server,
}

/// A result as a peer of one era sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub(crate) reply: &'a Reply,
    pub(crate) era: Era,
    pub(crate) server: &'a Server,
}

impl Reply {
    /// A result made of these members.
    pub(crate) fn new(members: Value) -> Reply {
        match members {
            Value::Object(members) => Body::Members(members).into(),
            _ => Reply::default(),
        }
    }

    pub(crate) fn cached(self, cache: Cache) -> Reply {
        Reply { cache: Some(cache), ..self }
    }

    pub(crate) fn of_kind(self, kind: ResultType) -> Reply {
        Reply { kind, ..self }
    }

    /// The result object as a value, for those who keep it.
    pub(crate) fn to_value(&self, era: Era, server: &Server) -> Value {
        serde_json::to_value(Shown { reply: self, era, server }).expect("a reply has string keys")
    }
}

impl From<Body> for Reply {
    fn from(body: Body) -> Reply {
        Reply { body, kind: ResultType::Complete, cache: None }
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::Members(Map::new())
    }
}

impl Answer {
    /// The JSON-RPC response.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut response = Vec::with_capacity(256);
        self.encode_into(&mut response);
        response
    }

    /// The JSON-RPC response, written behind what is there already.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) {
        match self.result() {
            Ok(result) => message::write_result(out, &self.id, &result).expect("a reply has string keys"),
            Err(error) => out.extend(message::encode_error(Some(&self.id), &error.to_object(self.era))),
        }
    }

    pub(crate) fn result(&self) -> Result<Shown<'_>, &Error> {
        self.outcome.as_ref().map(|reply| Shown { reply, era: self.era, server: &self.server })
    }
}

impl ResultType {
    fn word(self) -> &'static str {
        match self {
            ResultType::Complete => "complete",
            ResultType::InputRequired => "input_required",
            ResultType::Task => "task",
        }
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let modern = self.era == Era::Modern;
        let mut out = serializer.serialize_map(None)?;
        let meta = match &self.reply.body {
            Body::Members(members) => {
                for (name, value) in members.iter().filter(|(name, _)| *name != "_meta") {
                    out.serialize_entry(name, value)?;
                }
                members.get("_meta").and_then(Value::as_object)
            }
            Body::Call(result) => {
                out.serialize_entry("content", &result.content)?;
                if let Some(structured) = &result.structured {
                    out.serialize_entry("structuredContent", structured)?;
                }
                out.serialize_entry("isError", &result.is_error)?;
                result.meta.as_ref()
            }
            Body::Written(name, json) => {
                out.serialize_entry(name, &**json)?;
                None
            }
        };
        if modern {
            out.serialize_entry("resultType", self.reply.kind.word())?;
            if let Some(cache) = self.reply.cache {
                out.serialize_entry("ttlMs", &cache.ttl_ms)?;
                out.serialize_entry("cacheScope", cache.scope)?;
            }
        }
        match (meta, modern) {
            (None, false) => {}
            (Some(meta), false) => out.serialize_entry("_meta", meta)?,
            (None, true) => out.serialize_entry("_meta", self.server.own_meta())?,
            (Some(meta), true) => {
                let mut meta = meta.clone();
                let own = json!({ "name": self.server.name(), "version": self.server.version() });
                meta.insert(META_SERVER_INFO.into(), own);
                out.serialize_entry("_meta", &meta)?;
            }
        }
        out.end()
    }
}
