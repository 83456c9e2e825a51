//! OpenAI embeddings. Both sides speak the same protocol, so request and response pass through.

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::{failure, response};
use crate::providers::Error;
use crate::providers::embeddings::{Embed, Embedded};

/// The fields read from a response; the vectors are passed through.
#[derive(Deserialize)]
struct Answer {
    data: Vec<IgnoredAny>,
    #[serde(default)]
    usage: Value,
}

/// The client's body, with the provider's name for the model.
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
