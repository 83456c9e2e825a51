//! Whether a gateway said what the upstream said.

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::Value;

use super::answer;
use super::request::Shape;
use crate::http_reply;
use crate::request::shown;

/// What every reply of one kind must have, cheap to look for.
#[derive(Debug)]
pub(super) enum Expected {
    /// The text.
    Text(Vec<u8>),
    /// So many events with JSON, and `[DONE]`.
    Events(usize),
}

impl Expected {
    /// Takes the first reply apart, to the last letter.
    pub(super) fn from_first(shape: Shape, reply: &[u8]) -> Result<Expected> {
        let reply = http_reply::parse(reply)?;
        ensure!(reply.status == 200, "answered with {}: {}", reply.status, shown(&reply.body));
        if shape == Shape::Whole {
            let body: Value = serde_json::from_slice(&reply.body).context("the answer is no JSON")?;
            ensure!(body["choices"][0]["message"]["content"] == answer::text(), "another text: {}", shown(&reply.body));
            ensure!(body["usage"]["completion_tokens"] == 61, "no or other usage: {}", shown(&reply.body));
            return Ok(Expected::Text(answer::text().into()));
        }
        let body = std::str::from_utf8(&reply.body)?;
        let (mut text, mut events, mut ended, mut counted) = (String::new(), 0, false, false);
        for data in body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]") {
            let event: Value = serde_json::from_str(data).with_context(|| format!("an event is no JSON: {data}"))?;
            text += event["choices"][0]["delta"]["content"].as_str().unwrap_or_default();
            ended |= event["choices"][0]["finish_reason"] == "stop";
            counted |= event["usage"]["completion_tokens"] == 61;
            events += 1;
        }
        ensure!(text == answer::text(), "the stream has another text: {}", shown(body.as_bytes()));
        ensure!(ended && body.contains("data: [DONE]"), "the stream has no end: {}", shown(body.as_bytes()));
        ensure!(counted, "the stream does not tell of tokens: {}", shown(body.as_bytes()));
        Ok(Expected::Events(events))
    }

    pub(super) fn check(&self, reply: &[u8]) -> Result<()> {
        ensure!(reply.starts_with(b"HTTP/1.1 200"), "a reply that is no success: {}", shown(reply));
        // Chunks can end anywhere, also within a word that is looked for.
        let is_right = self.is_in(reply) || self.is_in(&http_reply::parse(reply)?.body);
        ensure!(is_right, "a reply unlike the first: {}", shown(reply));
        Ok(())
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        match self {
            Expected::Text(text) => memmem::find(bytes, text).is_some(),
            Expected::Events(count) => {
                memmem::find_iter(bytes, "data: {").count() == *count && memmem::find(bytes, b"data: [DONE]").is_some()
            }
        }
    }
}
