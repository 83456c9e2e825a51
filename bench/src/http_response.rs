//! Minimal HTTP/1.1 parser that finds the end of a reply.

use anyhow::{Context, Result, bail};
use memchr::memmem;

use crate::request::preview;

/// A complete, parsed reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
}

enum BodyFraming {
    ContentLength(usize),
    Chunked,
}

/// How the end of a reply is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageEnd {
    /// After this many bytes.
    Length(usize),
    LastChunk,
}

/// How the reply at the start of `bytes` will end, once its head is complete.
pub(crate) fn message_end(bytes: &[u8]) -> Result<Option<MessageEnd>> {
    let Some(head) = head_length(bytes) else { return Ok(None) };
    Ok(Some(match body_framing(&bytes[..head])? {
        BodyFraming::ContentLength(length) => MessageEnd::Length(head + length),
        BodyFraming::Chunked => MessageEnd::LastChunk,
    }))
}

/// The length of the reply at the start of `bytes`, once it is determined.
///
/// With a `content-length` that is when the head is complete; with chunks, when the last one is.
pub(crate) fn message_length(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(head) = head_length(bytes) else { return Ok(None) };
    match body_framing(&bytes[..head])? {
        BodyFraming::ContentLength(length) => Ok(Some(head + length)),
        BodyFraming::Chunked => Ok(parse_chunks(&bytes[head..], |_| {})?.map(|length| head + length)),
    }
}

/// Parses a complete reply.
pub(crate) fn parse(bytes: &[u8]) -> Result<HttpResponse> {
    let head = head_length(bytes).context("no end of the head")?;
    let mut body = Vec::new();
    match body_framing(&bytes[..head])? {
        BodyFraming::ContentLength(length) => {
            body.extend_from_slice(bytes.get(head..head + length).context("a short body")?)
        }
        BodyFraming::Chunked => drop(parse_chunks(&bytes[head..], |chunk| body.extend_from_slice(chunk))?),
    }
    let status = std::str::from_utf8(bytes.get(9..12).context("no status")?)?.parse().context("no status")?;
    let session = header_fields(&bytes[..head]).find(|(name, _)| name.eq_ignore_ascii_case(b"mcp-session-id"));
    let session = session.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
    Ok(HttpResponse { status, session, body })
}

fn head_length(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

fn body_framing(head: &[u8]) -> Result<BodyFraming> {
    for (name, value) in header_fields(head) {
        if name.eq_ignore_ascii_case(b"content-length") {
            return Ok(BodyFraming::ContentLength(std::str::from_utf8(value)?.parse()?));
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") && value.eq_ignore_ascii_case(b"chunked") {
            return Ok(BodyFraming::Chunked);
        }
    }
    // 204 and similar statuses end with their head.
    if head.starts_with(b"HTTP/1.1 2") {
        Ok(BodyFraming::ContentLength(0))
    } else {
        bail!("a reply without end: {}", preview(head))
    }
}

fn header_fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|&byte| byte == b'\n').skip(1).filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The length of a chunked body, if it is complete.
fn parse_chunks(mut bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<Option<usize>> {
    let whole = bytes.len();
    loop {
        let Some(line) = memmem::find(bytes, b"\r\n") else { return Ok(None) };
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..line])?.trim(), 16)?;
        let (from, to) = (line + 2, line + 2 + size);
        if bytes.len() < to + 2 {
            return Ok(None);
        }
        each(&bytes[from..to]);
        bytes = &bytes[to + 2..];
        if size == 0 {
            return Ok(Some(whole - bytes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expected: HttpResponse) {
        for cut in 0..reply.len() {
            let told = message_length(&reply.as_bytes()[..cut]).expect("well formed");
            assert!(told.is_none_or(|length| length == reply.len()), "{cut}: {told:?}");
        }
        assert_eq!(message_length(reply.as_bytes()).expect("well formed"), Some(reply.len()));
        assert_eq!(parse(reply.as_bytes()).expect("well formed"), expected);
    }

    #[test]
    fn a_counted_body_ends_where_it_says() {
        let reply = "HTTP/1.1 200 OK\r\nMcp-Session-Id: abc\r\nContent-Length: 5\r\n\r\nhello";
        check(reply, HttpResponse { status: 200, session: Some("abc".into()), body: b"hello".to_vec() });
    }

    #[test]
    fn chunks_are_put_together() {
        let reply = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        check(reply, HttpResponse { status: 200, session: None, body: b"hello".to_vec() });
    }

    #[test]
    fn an_accepted_notification_has_no_body() {
        check(
            "HTTP/1.1 202 Accepted\r\ndate: x\r\n\r\n",
            HttpResponse { status: 202, session: None, body: Vec::new() },
        );
    }
}
