//! One connection of a hostile client: writes raw bytes, and reads HTTP replies and WebSocket frames.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::exchange::FrameTemplate;
use crate::http::HttpClient;
use crate::process::TEST_TIMEOUT;

pub(crate) struct RawSocket {
    stream: TcpStream,
    unread: Vec<u8>,
    /// Writes in pieces of this many bytes.
    pub(crate) chunk_size: usize,
    /// The reply to a `HEAD` has no body, even with a `Content-Length`.
    is_head_request: bool,
    is_closed: bool,
}

/// The last reply of the server, on any transport.
#[derive(Debug, Default)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawSocket {
    pub(crate) fn connect(client: HttpClient) -> Result<RawSocket, String> {
        let stream = client.connect().map_err(|error| format!("cannot connect: {error}"))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(RawSocket { stream, unread: Vec::new(), chunk_size: usize::MAX, is_head_request: false, is_closed: false })
    }

    /// A write error is not a failure: the server may have replied and disconnected early.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.is_head_request = bytes.starts_with(b"HEAD ");
        for piece in bytes.chunks(self.chunk_size) {
            if self.stream.write_all(piece).is_err() {
                return;
            }
        }
    }

    pub(crate) fn drip(&mut self, bytes: &[u8], pause: Duration) {
        for byte in bytes {
            if self.stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::park_timeout(pause);
        }
    }

    pub(crate) fn flood(&mut self, bytes: &[u8]) -> Result<(), String> {
        let begun = Instant::now();
        while begun.elapsed() < TEST_TIMEOUT {
            match self.stream.write_all(bytes) {
                Ok(()) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(_) => return Ok(()),
            }
        }
        Err("the server neither reads nor hangs up".into())
    }

    pub(crate) fn half_close(&mut self) {
        // The connection may be closed already.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next HTTP reply; `None` if the server disconnects before it begins.
    pub(crate) fn read_response(&mut self) -> Result<Option<RawResponse>, String> {
        let Some(mut reply) = self.read_head()? else { return Ok(None) };
        let header = |name: &str| {
            let mut lines = reply.head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_lowercase())
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        reply.body = match reply.status {
            ..200 | 204 | 304 => Vec::new(),
            _ if self.is_head_request => Vec::new(),
            _ if header("transfer-encoding").is_some_and(|coding| coding == "chunked") => self.read_chunked_body()?,
            _ => self.read_up_to(length.unwrap_or(usize::MAX))?,
        };
        Ok(Some(reply))
    }

    /// The head of the next HTTP reply.
    pub(crate) fn read_head(&mut self) -> Result<Option<RawResponse>, String> {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read_more()? {
                return match self.unread.is_empty() {
                    true => Ok(None),
                    false => Err(format!("an unfinished head: {:?}", String::from_utf8_lossy(&self.unread))),
                };
            }
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let status =
            head.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| format!("no reply in HTTP/1: {head:?}"))?;
        Ok(Some(RawResponse { status, head, body: Vec::new() }))
    }

    /// The next WebSocket frame except pings and pongs, as opcode and payload; `None` at the end.
    pub(crate) fn read_frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, String> {
        loop {
            if self.unread.is_empty() && !self.read_more()? {
                return Ok(None);
            }
            let start = self.read_up_to(2)?;
            let [first, second] = start[..] else { return Err("an unfinished frame".into()) };
            let length = match second & 0x7f {
                126 => self.read_up_to(2)?.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)),
                127 => self.read_up_to(8)?.iter().fold(0, |length, byte| (length << 8) | usize::from(*byte)),
                short => short.into(),
            };
            let payload = self.read_up_to(length)?;
            match first & 0x0f {
                9 | 10 => {}
                opcode => return Ok(Some((opcode, payload))),
            }
        }
    }

    /// Waits for the server to disconnect; fails if data arrives before.
    pub(crate) fn expect_close(&mut self) -> Result<(), String> {
        while self.read_more()? {}
        match self.unread.is_empty() {
            true => Ok(()),
            false => Err(format!("it said more: {:?}", String::from_utf8_lossy(&self.unread))),
        }
    }

    /// Up to this many bytes; fewer at the end of the stream.
    fn read_up_to(&mut self, length: usize) -> Result<Vec<u8>, String> {
        while self.unread.len() < length && self.read_more()? {}
        let length = length.min(self.unread.len());
        Ok(self.unread.drain(..length).collect())
    }

    /// Reads a chunked body to its end.
    pub(crate) fn read_chunked_body(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        loop {
            while find(&self.unread, b"\r\n").is_none() {
                if !self.read_more()? {
                    return Err("an unfinished chunk".into());
                }
            }
            let end = find(&self.unread, b"\r\n").unwrap_or_default();
            let line = String::from_utf8_lossy(&self.read_up_to(end + 2)?).into_owned();
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(|_| format!("not a chunk: {line:?}"))?;
            body.extend(&self.read_up_to(size + 2)?[..size]);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// False if the server has disconnected in any way.
    fn read_more(&mut self) -> Result<bool, String> {
        if self.is_closed {
            return Ok(false);
        }
        let mut room = [0; 16 * 1024];
        match self.stream.read(&mut room) {
            Ok(0) => self.is_closed = true,
            Ok(length) => self.unread.extend(&room[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!("nothing came within {TEST_TIMEOUT:?}"));
            }
            Err(_) => self.is_closed = true,
        }
        Ok(!self.is_closed)
    }
}

impl RawResponse {
    /// Raw head and body.
    pub(crate) fn text(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }
}

/// The bytes of a frame.
pub(crate) fn encode_frame(frame: &FrameTemplate, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![(u8::from(frame.finished) << 7) | frame.reserved | frame.opcode];
    let mask = u8::from(frame.masked) << 7;
    let length = frame.length.unwrap_or(payload.len() as u64);
    match length {
        0..=125 => bytes.push(mask | length as u8),
        126..=0xffff => {
            bytes.push(mask | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(mask | 127);
            bytes.extend(length.to_be_bytes());
        }
    }
    if frame.masked {
        // A mask of zeros keeps the payload readable.
        bytes.extend([0; 4]);
    }
    bytes.extend(payload);
    bytes
}

pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
