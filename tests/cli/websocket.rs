//! Minimal WebSocket client, for short text frames.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::http::HttpClient;

pub(crate) struct WebSocket(TcpStream);

#[derive(Debug, PartialEq)]
pub(crate) enum WebSocketFrame {
    Message(Value),
    /// With the close code, if any.
    Close(Option<u16>),
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;

impl WebSocket {
    #[track_caller]
    pub(crate) fn connect(client: HttpClient) -> WebSocket {
        WebSocket::connect_with(client, &[])
    }

    #[track_caller]
    pub(crate) fn connect_with(client: HttpClient, headers: &[(&str, &str)]) -> WebSocket {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut connection = client.connect().unwrap();
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n",
            client.0
        );
        connection.write_all(head.as_bytes()).unwrap();
        let mut reply = Vec::new();
        while !reply.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.read_exact(&mut byte).unwrap();
            reply.push(byte[0]);
        }
        let reply = String::from_utf8_lossy(&reply).to_lowercase();
        assert!(reply.starts_with("http/1.1 101 "), "{reply}");
        // The key above and this reply are the example of RFC 6455.
        assert!(reply.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{reply}");
        WebSocket(connection)
    }

    #[track_caller]
    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let length = u16::try_from(text.len()).expect("a short message");
        let mut frame = vec![FINAL | TEXT];
        match u8::try_from(length) {
            Ok(length) if length < 126 => frame.push(MASKED | length),
            _ => {
                frame.push(MASKED | 126);
                frame.extend(length.to_be_bytes());
            }
        }
        // A mask of zeros leaves the text unchanged.
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).unwrap();
    }

    /// The next message or close frame; pings are ignored.
    pub(crate) fn receive(&mut self) -> io::Result<WebSocketFrame> {
        loop {
            let [first, length] = self.read()?;
            let length = match length {
                126 => u16::from_be_bytes(self.read()?).into(),
                127 => u64::from_be_bytes(self.read()?),
                length => length.into(),
            };
            let mut payload = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            self.0.read_exact(&mut payload)?;
            match first & 0x0f {
                TEXT => return serde_json::from_slice(&payload).map(WebSocketFrame::Message).map_err(io::Error::other),
                CLOSE => return Ok(WebSocketFrame::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code)))),
                _ => {}
            }
        }
    }

    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        match self.receive().unwrap() {
            WebSocketFrame::Message(message) => message,
            other => panic!("{other:?} instead of a message"),
        }
    }

    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
