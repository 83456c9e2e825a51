//! MCP over WebSocket with hand-written frames, so that the client can disconnect in the middle of one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ProtocolClient;
use crate::call_outcome::{CallOutcome, is_notification};
use crate::http::{DeadlineStream, ServerAddress};

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;
const MAX_FRAME: u64 = 64 << 20;

pub(crate) struct WebSocketClient {
    address: ServerAddress,
    stream: Option<BufReader<DeadlineStream>>,
    next_id: u64,
}

impl WebSocketClient {
    pub(crate) fn new(place: ServerAddress) -> WebSocketClient {
        WebSocketClient { address: place, stream: None, next_id: 1 }
    }

    /// Opens a connection, or returns the reason of the rejection.
    fn connect(&self, until: Instant) -> io::Result<Result<BufReader<DeadlineStream>, CallOutcome>> {
        let mut stream = BufReader::new(DeadlineStream::connect(&self.address, until)?);
        let head = format!(
            "GET /mcp HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: mcp\r\n\r\n",
            self.address.host()
        );
        stream.get_mut().write_all(head.as_bytes())?;
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
        while !line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line)?;
        }
        Ok(match status {
            Some(101) => Ok(stream),
            Some(other) => Err(CallOutcome::from_status(other, "to a WebSocket")),
            None => Err(CallOutcome::Lost("no WebSocket".to_owned())),
        })
    }
}

impl ProtocolClient for WebSocketClient {
    fn call(&mut self, tool: &str, arguments: &Value, patience: Duration) -> CallOutcome {
        let until = Instant::now() + patience;
        let mut stream = match self.stream.take() {
            Some(mut kept) => {
                kept.get_mut().deadline = until;
                kept
            }
            None => match self.connect(until) {
                Ok(Ok(stream)) => stream,
                Ok(Err(CallOutcome::Lost(why))) => return CallOutcome::Refused(why),
                Ok(Err(outcome)) => return outcome,
                Err(error) => return CallOutcome::Refused(format!("no connection: {error}")),
            },
        };
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let answer = send_frame(&mut stream, TEXT, message.to_string().as_bytes())
            .and_then(|()| receive_answer(&mut stream, id));
        match answer {
            Ok(message) => {
                self.stream = Some(stream);
                CallOutcome::from_message(&message, id)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => CallOutcome::Invalid(error.to_string()),
            Err(error) => CallOutcome::Lost(error.to_string()),
        }
    }
}

/// The reply to a call. Skips notifications. A reply to a different call cannot occur, since a timed-out call closes
/// its connection.
fn receive_answer(stream: &mut BufReader<DeadlineStream>, id: u64) -> io::Result<Value> {
    loop {
        let (kind, data) = receive_frame(stream)?;
        match kind {
            TEXT => {
                let message: Value = serde_json::from_slice(&data)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a message that is no JSON"))?;
                if message["id"] == id {
                    return Ok(message);
                }
                if !is_notification(&message) {
                    let what = format!("an answer to another call than {id}: {message}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
            PING => send_frame(stream, PONG, &data)?,
            CLOSE => return Err(io::ErrorKind::ConnectionAborted.into()),
            _ => {}
        }
    }
}

fn send_frame(stream: &mut BufReader<DeadlineStream>, kind: u8, data: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | kind];
    match data.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        middle @ 126..65536 => {
            frame.push(0x80 | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    // A mask of zeros is valid and keeps the data readable in traffic dumps.
    frame.extend([0; 4]);
    frame.extend(data);
    stream.get_mut().write_all(&frame)
}

fn receive_frame(stream: &mut BufReader<DeadlineStream>) -> io::Result<(u8, Vec<u8>)> {
    let mut whole = Vec::new();
    let mut kind = 0;
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head)?;
        let length = match head[1] & 0x7f {
            126 => {
                let mut length = [0; 2];
                stream.read_exact(&mut length)?;
                u64::from(u16::from_be_bytes(length))
            }
            127 => {
                let mut length = [0; 8];
                stream.read_exact(&mut length)?;
                u64::from_be_bytes(length)
            }
            short => u64::from(short),
        };
        if length > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
        }
        kind = if head[0] & 0x0f == 0 { kind } else { head[0] & 0x0f };
        let begun = whole.len();
        stream.take(length).read_to_end(&mut whole)?;
        if (whole.len() - begun) as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head[0] & 0x80 != 0 {
            return Ok((kind, whole));
        }
    }
}
