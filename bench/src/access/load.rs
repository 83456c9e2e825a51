//! Authenticated calls. They are counted, not timed: their cost is the CPU time of the server.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::time::ClockId;
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::http_response;
use crate::process::{Process, sleep};
use crate::request::{MODERN_VERSION, preview};
use crate::stdio::RESPONSE_TIMEOUT;

/// Connections to one server, with one call at a time on each.
#[derive(Debug)]
pub(super) struct Load {
    connections: Vec<TcpStream>,
    before_token: String,
    after_token: String,
    /// All replies have the length of the first.
    reply_length: usize,
    reply: Vec<u8>,
}

/// Credentials of the callers.
#[derive(Debug)]
pub(super) enum TokenSource<'a> {
    None,
    Same(&'a str),
    Each(std::slice::Iter<'a, String>),
}

/// A cheap tool.
const TOOL: &str = "get_tool_schema";
/// After a turn the audit file is still being written, which is part of the cost. Longer than the batching interval of
/// entries.
const AUDIT_FLUSH_DELAY: Duration = Duration::from_millis(40);

impl Load {
    /// Connects and makes a first call that must succeed.
    pub(super) fn open(port: u16, count: usize, tokens: &mut TokenSource<'_>) -> Result<Load> {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": TOOL, "arguments": { "name": TOOL },
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        });
        let body = body.to_string();
        let before_token = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: {MODERN_VERSION}\r\n\
             mcp-method: tools/call\r\nmcp-name: {TOOL}\r\ncontent-length: {}\r\n",
            body.len()
        );
        let connections = (0..count).map(|_| {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
            Ok(stream)
        });
        let mut load = Load {
            connections: connections.collect::<Result<_>>()?,
            before_token,
            after_token: format!("\r\n{body}"),
            reply_length: 0,
            reply: vec![0; 64 * 1024],
        };
        load.send(0, tokens)?;
        load.reply_length = load.receive(0)?;
        let reply = http_response::parse(&load.reply[..load.reply_length])?;
        ensure!(reply.status == 200, "the first call was answered with {}: {}", reply.status, preview(&reply.body));
        let told: Value = serde_json::from_slice(&reply.body)?;
        let is_right = told["result"]["structuredContent"]["name"] == TOOL;
        ensure!(is_right, "the first call was answered with {}", preview(&reply.body));
        Ok(load)
    }

    /// Makes this many calls on every connection and returns the CPU time of the server.
    pub(super) fn run_turn(
        &mut self,
        process: &Process,
        tokens: &mut TokenSource<'_>,
        calls: usize,
    ) -> Result<Duration> {
        let before = cpu_time(process)?;
        for _ in 0..calls {
            for connection in 0..self.connections.len() {
                self.send(connection, tokens)?;
            }
            for connection in 0..self.connections.len() {
                let length = self.receive(connection)?;
                let reply = &self.reply[..length];
                let is_right = length == self.reply_length && reply.starts_with(b"HTTP/1.1 200");
                ensure!(is_right, "a reply unlike the first: {}", preview(reply));
            }
        }
        sleep(AUDIT_FLUSH_DELAY);
        Ok(cpu_time(process)? - before)
    }

    fn send(&mut self, connection: usize, tokens: &mut TokenSource<'_>) -> Result<()> {
        let token = match tokens {
            TokenSource::None => String::new(),
            TokenSource::Same(token) => format!("authorization: Bearer {token}\r\n"),
            TokenSource::Each(tokens) => {
                format!("authorization: Bearer {}\r\n", tokens.next().context("there is a token for each call")?)
            }
        };
        // A single write, as clients do.
        let request = [self.before_token.as_str(), &token, &self.after_token].concat();
        Ok(self.connections[connection].write_all(request.as_bytes())?)
    }

    /// Reads one reply and returns its length.
    fn receive(&mut self, connection: usize) -> Result<usize> {
        let mut filled = 0;
        loop {
            let count = self.connections[connection].read(&mut self.reply[filled..])?;
            let so_far = &self.reply[..filled + count];
            ensure!(count > 0, "the server closed the connection; it had sent {}", preview(so_far));
            filled += count;
            if http_response::message_length(so_far)?.is_some_and(|length| filled >= length) {
                return Ok(filled);
            }
        }
    }
}

/// CPU time of all threads of a process in nanoseconds.
fn cpu_time(process: &Process) -> Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(process.id().cast_signed())).context("the server has ended")?;
    Ok(clock.now()?.into())
}
