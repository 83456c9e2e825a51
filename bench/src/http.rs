//! HTTP load generator: keep-alive connections over epoll, precomputed request bytes.
//!
//! Each connection is one client that follows the protocol: a legacy client performs the handshake and sends its
//! session id, if any, in every request; a modern client sends the headers that must agree with the body; a REST client
//! does neither.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::http_response::{self, HttpResponse};
use crate::process::{Process, sleep};
use crate::request::{self, FIRST_ID, LEGACY_VERSION, MODERN_VERSION, PreparedCall, SINGLE_ID, preview};
use crate::stdio::RESPONSE_TIMEOUT;
use crate::window::Meter;
use crate::workload::Era;

/// One keep-alive connection.
#[derive(Debug)]
pub(crate) struct LoadClient {
    stream: TcpStream,
    port: u16,
    era: Era,
    session: Option<String>,
}

/// A call, and the length of the first reply to it, including its head.
#[derive(Debug)]
pub(crate) struct SizedCall<'a> {
    pub(crate) call: &'a PreparedCall,
    pub(crate) reply_length: usize,
}

/// A connection and its pending call.
struct ConnectionSlot<'a> {
    stream: &'a TcpStream,
    /// Sent in turn, each with the length of its reply.
    calls: Vec<(PreparedCall, usize)>,
    next_call: usize,
    id: u64,
    sent: Instant,
    /// Bytes of the request sent so far; all of them unless the socket is full.
    written: usize,
    reply: Vec<u8>,
    filled: usize,
    /// The reply's length, once it is determined.
    length: Option<usize>,
    waits_for_write: bool,
}

/// A currently free port.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl LoadClient {
    /// Connects to a server that may still be starting.
    pub(crate) fn connect_first(process: &mut Process, port: u16, era: Era) -> Result<LoadClient> {
        loop {
            if let Some(status) = process.exit_status()? {
                bail!("the server ended while it started: {status}");
            }
            match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
                Ok(stream) => return LoadClient::from_stream(stream, port, era),
                Err(_) if process.started.elapsed() < RESPONSE_TIMEOUT => sleep(Duration::from_micros(300)),
                Err(error) => return Err(error).context("the server does not listen"),
            }
        }
    }

    /// Another client of the same server.
    pub(crate) fn new_client(&self) -> Result<LoadClient> {
        LoadClient::from_stream(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?, self.port, self.era)
    }

    fn from_stream(stream: TcpStream, port: u16, era: Era) -> Result<LoadClient> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let mut client = LoadClient { stream, port, era, session: None };
        if era == Era::Legacy {
            client.initialize()?;
        }
        Ok(client)
    }

    fn initialize(&mut self) -> Result<()> {
        let reply = self.post("", &request::initialize())?;
        ensure!(reply.status == 200, "`initialize` was answered with {}: {}", reply.status, preview(&reply.body));
        self.session = reply.session;
        let reply = self.post(&self.headers(None), &request::initialized())?;
        ensure!(reply.status / 100 == 2, "`initialized` was answered with {}: {}", reply.status, preview(&reply.body));
        Ok(())
    }

    /// Makes one call, verifies the reply and returns its length including the head.
    pub(crate) fn call_once(&mut self, call: &PreparedCall) -> Result<usize> {
        let mut call = self.framed(call);
        call.set_id(SINGLE_ID);
        let bytes = self.exchange(&call.bytes)?;
        check_response(&call, SINGLE_ID, &bytes)?;
        Ok(bytes.len())
    }

    /// `GET` of a page; returns its status.
    pub(crate) fn get(&mut self, path: &str) -> Result<u16> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n\r\n", self.port);
        Ok(http_response::parse(&self.exchange(request.as_bytes())?)?.status)
    }

    /// Calls a tool by its name and returns its result as JSON.
    pub(crate) fn call_tool(&mut self, name: &str, arguments: Value) -> Result<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": SINGLE_ID, "method": "tools/call", "params": params });
        let reply = self.post(&self.headers(None), call.to_string().as_bytes())?;
        ensure!(reply.status == 200, "`{name}` was answered with {}: {}", reply.status, preview(&reply.body));
        let told: Value = serde_json::from_slice(&reply.body)?;
        let result = &told["result"];
        if result["structuredContent"].is_object() {
            return Ok(result["structuredContent"].clone());
        }
        let text = result["content"][0]["text"].as_str();
        serde_json::from_str(text.with_context(|| format!("`{name}` was answered with {told}"))?)
            .with_context(|| format!("what `{name}` says"))
    }

    fn framed(&self, call: &PreparedCall) -> PreparedCall {
        let head = self.head(&self.headers(Some(call)), call.bytes.len());
        call.clone().with_framing(head.as_bytes(), b"")
    }

    fn head(&self, headers: &str, length: usize) -> String {
        let path = if self.era == Era::Rest { "/mcp/tools/call" } else { "/mcp" };
        format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {length}\r\n\r\n",
            self.port
        )
    }

    fn headers(&self, call: Option<&PreparedCall>) -> String {
        match (self.era, call) {
            (Era::Rest, _) => String::new(),
            (Era::Modern, Some(call)) => format!(
                "mcp-protocol-version: {MODERN_VERSION}\r\nmcp-method: tools/call\r\nmcp-name: {}\r\n",
                call.tool().name()
            ),
            _ => {
                let session = self.session.as_ref().map(|id| format!("mcp-session-id: {id}\r\n")).unwrap_or_default();
                format!("mcp-protocol-version: {LEGACY_VERSION}\r\n{session}")
            }
        }
    }

    fn post(&mut self, headers: &str, body: &[u8]) -> Result<HttpResponse> {
        let head = self.head(headers, body.len());
        http_response::parse(&self.exchange(&[head.as_bytes(), body].concat())?)
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(request)?;
        let mut reply = Vec::new();
        let mut part = vec![0; 64 * 1024];
        loop {
            let count = self.stream.read(&mut part)?;
            ensure!(count > 0, "the server closed the connection; it had sent {}", preview(&reply));
            reply.extend_from_slice(&part[..count]);
            if http_response::message_length(&reply)?.is_some_and(|length| reply.len() >= length) {
                return Ok(reply);
            }
        }
    }
}

/// Keeps one of the calls in flight on every connection until the meter ends the window, then waits for the last
/// replies.
pub(crate) fn drive(clients: &mut [LoadClient], calls: &[SizedCall<'_>], meter: &mut Meter) -> Result<()> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let count = clients.len() as u64;
    let longest = calls.iter().map(|known| known.reply_length).max().context("there is a call to make")?;
    let mut slots = Vec::with_capacity(clients.len());
    for (index, client) in clients.iter().enumerate() {
        client.stream.set_nonblocking(true)?;
        epoll::add(&poller, &client.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN)?;
        slots.push(ConnectionSlot {
            stream: &client.stream,
            calls: calls.iter().map(|known| (client.framed(known.call), known.reply_length)).collect(),
            // Each connection starts with a different call.
            next_call: index % calls.len(),
            id: FIRST_ID + index as u64,
            sent: Instant::now(),
            written: 0,
            reply: vec![0; longest + 4096],
            filled: 0,
            length: None,
            waits_for_write: false,
        });
    }
    for (index, slot) in slots.iter_mut().enumerate() {
        slot.send(slot.id, Instant::now())?;
        slot.update_interest(&poller, index)?;
    }
    let (mut in_flight, mut going_on) = (slots.len(), true);
    let mut events = Vec::with_capacity(slots.len());
    let patience = Timespec { tv_sec: RESPONSE_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    while in_flight > 0 {
        match epoll::wait(&poller, spare_capacity(&mut events), Some(&patience)) {
            Ok(0) => bail!("the server has said nothing for {RESPONSE_TIMEOUT:?}"),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let index = event.data.u64() as usize;
            let slot = &mut slots[index];
            if slot.written < slot.call().bytes.len() {
                slot.write()?;
                slot.update_interest(&poller, index)?;
            }
            if !slot.read()? {
                continue;
            }
            let reply = &slot.reply[..slot.filled];
            let (call, reply_length) = &slot.calls[slot.next_call];
            ensure!(
                reply.len().abs_diff(*reply_length) <= call.tool().length_tolerance()
                    && reply.starts_with(b"HTTP/1.1 200"),
                "a reply unlike the first: {}",
                preview(reply)
            );
            let now = Instant::now();
            going_on = meter.record(slot.sent, now) && going_on;
            if going_on {
                slot.next_call = (slot.next_call + 1) % slot.calls.len();
                slot.send(slot.id + count, now)?;
                slot.update_interest(&poller, index)?;
            } else {
                check_response(call, slot.id, reply)?;
                in_flight -= 1;
            }
        }
    }
    Ok(())
}

impl ConnectionSlot<'_> {
    fn call(&self) -> &PreparedCall {
        &self.calls[self.next_call].0
    }

    fn send(&mut self, id: u64, now: Instant) -> Result<()> {
        self.id = id;
        self.calls[self.next_call].0.set_id(id);
        (self.sent, self.written, self.filled, self.length) = (now, 0, 0, None);
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        let request = &self.calls[self.next_call].0.bytes;
        while self.written < request.len() {
            match self.stream.write(&request[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Registers for writability, but only while bytes are pending.
    fn update_interest(&mut self, poller: &impl std::os::fd::AsFd, index: usize) -> Result<()> {
        let is_waiting = self.written < self.call().bytes.len();
        if is_waiting != self.waits_for_write {
            let out = if is_waiting { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
            epoll::modify(poller, self.stream, epoll::EventData::new_u64(index as u64), epoll::EventFlags::IN | out)?;
            self.waits_for_write = is_waiting;
        }
        Ok(())
    }

    /// Reads available bytes; true when the reply is complete.
    fn read(&mut self) -> Result<bool> {
        loop {
            ensure!(self.filled < self.reply.len(), "a reply longer than the first: {}", preview(&self.reply));
            match self.stream.read(&mut self.reply[self.filled..]) {
                Ok(0) => bail!("the server closed a connection; it had sent {}", preview(&self.reply[..self.filled])),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if self.length.is_none() {
                self.length = http_response::message_length(&self.reply[..self.filled])?;
            }
            if self.length.is_some_and(|length| self.filled >= length) {
                return Ok(true);
            }
        }
    }
}

fn check_response(call: &PreparedCall, id: u64, reply: &[u8]) -> Result<()> {
    let reply = http_response::parse(reply)?;
    ensure!(reply.status == 200, "a call was answered with {}: {}", reply.status, preview(&reply.body));
    call.check(id, &reply.body)
}
