//! Vectors of texts. Both sides speak the same protocol, so what came goes on as it came.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{failure, response};
use crate::providers::Error;
use crate::providers::embeddings::{Embed, Embedded};

/// What is looked at of an answer; its numbers are the caller's.
#[derive(Deserialize)]
struct Answer {
    data: Vec<IgnoredAny>,
    #[serde(default)]
    usage: Value,
}

/// The caller's body, with the provider's name for the model.
pub(super) fn body(embed: &Embed) -> String {
    let mut body = embed.body.clone();
    body.insert("model".into(), embed.model.as_str().into());
    Value::Object(body).to_string()
}

pub(super) fn read(body: &Bytes) -> Result<Embedded, Error> {
    match serde_json::from_slice::<Answer>(body) {
        Ok(answer) if !answer.data.is_empty() => {
            Ok(Embedded { body: body.clone(), usage: response::usage(&answer.usage).unwrap_or_default() })
        }
        _ => {
            let inside = serde_json::from_slice::<Map<String, Value>>(body).ok().as_ref().and_then(failure::inside);
            Err(inside.unwrap_or(Error::Unreadable("it has no vectors")))
        }
    }
}
