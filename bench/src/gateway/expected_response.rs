//! Checks that a gateway returns the upstream's response.

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::Value;

use super::canned_response;
use super::request::ResponseShape;
use crate::http_response;
use crate::request::preview;

/// Content that every response of one shape must have, cheap to search for.
#[derive(Debug)]
pub(super) enum ExpectedResponse {
    /// The text.
    Text(Vec<u8>),
    /// This many JSON events, and `[DONE]`.
    Events(usize),
}

impl ExpectedResponse {
    /// Verifies the first response in full.
    pub(super) fn from_first(shape: ResponseShape, reply: &[u8]) -> Result<ExpectedResponse> {
        let reply = http_response::parse(reply)?;
        ensure!(reply.status == 200, "answered with {}: {}", reply.status, preview(&reply.body));
        if shape == ResponseShape::Full {
            let body: Value = serde_json::from_slice(&reply.body).context("the answer is no JSON")?;
            ensure!(
                body["choices"][0]["message"]["content"] == canned_response::full_text(),
                "another text: {}",
                preview(&reply.body)
            );
            ensure!(body["usage"]["completion_tokens"] == 61, "no or other usage: {}", preview(&reply.body));
            return Ok(ExpectedResponse::Text(canned_response::full_text().into()));
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
        ensure!(text == canned_response::full_text(), "the stream has another text: {}", preview(body.as_bytes()));
        ensure!(ended && body.contains("data: [DONE]"), "the stream has no end: {}", preview(body.as_bytes()));
        ensure!(counted, "the stream does not tell of tokens: {}", preview(body.as_bytes()));
        Ok(ExpectedResponse::Events(events))
    }

    pub(super) fn check(&self, reply: &[u8]) -> Result<()> {
        ensure!(reply.starts_with(b"HTTP/1.1 200"), "a reply that is no success: {}", preview(reply));
        // A chunk boundary may be within the text searched for.
        let is_right = self.matches(reply) || self.matches(&http_response::parse(reply)?.body);
        ensure!(is_right, "a reply unlike the first: {}", preview(reply));
        Ok(())
    }

    fn matches(&self, bytes: &[u8]) -> bool {
        match self {
            ExpectedResponse::Text(text) => memmem::find(bytes, text).is_some(),
            ExpectedResponse::Events(count) => {
                memmem::find_iter(bytes, "data: {").count() == *count && memmem::find(bytes, b"data: [DONE]").is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked(chunks: &[&str]) -> Vec<u8> {
        let chunks: String = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").into_bytes()
    }

    #[test]
    fn a_chunk_may_end_within_a_word() {
        let reply = chunked(&["data: {}\n\nda", "ta: {}\n\ndata: [DO", "NE]\n\n"]);
        ExpectedResponse::Events(2).check(&reply).expect("all of it is there");
        ExpectedResponse::Events(3).check(&reply).expect_err("one is missing");
    }

    #[test]
    fn a_stream_without_its_end_is_wrong() {
        ExpectedResponse::Events(1).check(&chunked(&["data: {}\n\n"])).expect_err("there is no `[DONE]`");
    }

    #[test]
    fn another_text_is_wrong() {
        let reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno";
        ExpectedResponse::Text(canned_response::full_text().into())
            .check(reply.as_bytes())
            .expect_err("it is not the answer");
    }
}
