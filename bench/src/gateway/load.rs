//! Load generator: keep-alive connections over epoll on one thread, with one request at a time on each.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::expected_response::ExpectedResponse;
use crate::http_response::{self, MessageEnd};
use crate::request::preview;

/// Response timeout of a gateway.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Responses in a time interval.
#[derive(Debug)]
pub(super) struct LoadSample {
    pub(super) answers: usize,
    pub(super) wall: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    reply: Vec<u8>,
    filled: usize,
    message_end: Option<MessageEnd>,
    sent: Instant,
}

impl Connection {
    pub(super) fn open(port: u16) -> Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        Ok(Connection { stream, reply: vec![0; 64 * 1024], filled: 0, message_end: None, sent: Instant::now() })
    }

    /// Sends one request and returns the complete response of any status.
    pub(super) fn request(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.set_nonblocking(false)?;
        self.send(request)?;
        while !self.read()? {}
        Ok(self.reply())
    }

    fn reply(&self) -> &[u8] {
        &self.reply[..self.filled]
    }

    /// A kilobyte always fits into the socket buffer once the last request was answered.
    fn send(&mut self, request: &[u8]) -> Result<()> {
        (self.filled, self.message_end, self.sent) = (0, None, Instant::now());
        Ok(self.stream.write_all(request)?)
    }

    /// Reads once; true when the response is complete.
    fn read(&mut self) -> Result<bool> {
        ensure!(self.filled < self.reply.len(), "a reply too long: {}", preview(&self.reply));
        match self.stream.read(&mut self.reply[self.filled..]) {
            Ok(0) => bail!("the gateway closed a connection; it had sent {}", preview(self.reply())),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if self.message_end.is_none() {
            self.message_end = http_response::message_end(self.reply())?;
        }
        Ok(match self.message_end {
            Some(MessageEnd::Length(length)) => self.filled >= length,
            // No data follows the last chunk before the next request.
            Some(MessageEnd::LastChunk) => self.reply().ends_with(b"\r\n0\r\n\r\n"),
            None => false,
        })
    }
}

/// Keeps every connection busy for this long, then waits for the last responses. Each is checked.
pub(super) fn drive(
    connections: &mut [Connection],
    request: &[u8],
    expected: &ExpectedResponse,
    time: Duration,
) -> Result<LoadSample> {
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let began = Instant::now();
    let mut latencies = Vec::with_capacity(1 << 16);
    for (index, connection) in connections.iter_mut().enumerate() {
        connection.stream.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(index as u64);
        epoll::add(&poller, &connection.stream, data, epoll::EventFlags::IN)?;
        connection.send(request)?;
    }
    let mut in_flight = connections.len();
    let mut events = Vec::with_capacity(connections.len());
    let patience = Timespec { tv_sec: RESPONSE_TIMEOUT.as_secs() as i64, tv_nsec: 0 };
    while in_flight > 0 {
        match epoll::wait(&poller, spare_capacity(&mut events), Some(&patience)) {
            Ok(0) => bail!("the gateway has said nothing for {RESPONSE_TIMEOUT:?}"),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let connection = &mut connections[event.data.u64() as usize];
            if !connection.read()? {
                continue;
            }
            latencies.push(connection.sent.elapsed());
            expected.check(connection.reply())?;
            if began.elapsed() < time {
                connection.send(request)?;
            } else {
                in_flight -= 1;
            }
        }
    }
    let wall = began.elapsed();
    latencies.sort_unstable();
    Ok(LoadSample { answers: latencies.len(), wall, latencies })
}

impl LoadSample {
    pub(super) fn per_second(&self) -> f64 {
        self.answers as f64 / self.wall.as_secs_f64()
    }

    pub(super) fn micros(&self, quantile: f64) -> f64 {
        let at = (self.latencies.len() as f64 * quantile) as usize;
        let latency = self.latencies.get(at.min(self.latencies.len().saturating_sub(1)));
        latency.map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e6)
    }
}
