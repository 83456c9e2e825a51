//! HTTP/1.1 as a client that trusts nothing: every wait has an end, every length is checked, half an answer is none.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Answers are smaller by far.
const LONGEST_BODY: u64 = 64 << 20;

#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection that is kept as long as the server keeps it.
#[derive(Debug)]
pub(crate) struct Line {
    address: SocketAddr,
    stream: Option<BufReader<Limited>>,
}

impl Line {
    pub(crate) fn new(address: SocketAddr) -> Line {
        Line { address, stream: None }
    }

    /// Sends and reads. An error means that no whole answer came; the request may have arrived all the same.
    pub(crate) fn exchange(&mut self, request: &Request, patience: Duration) -> io::Result<Reply> {
        let until = Instant::now() + patience;
        let mut stream = match self.stream.take() {
            Some(mut kept) => {
                kept.get_mut().until = until;
                kept
            }
            None => BufReader::new(Limited::connect(self.address, until)?),
        };
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.path, self.address);
        for (name, value) in request.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", request.body.len());
        stream.get_mut().write_all(&[head.as_bytes(), request.body].concat())?;
        let reply = read_reply(&mut stream)?;
        if reply.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Ok(reply)
    }

    pub(crate) fn hang_up(&mut self) {
        self.stream = None;
    }
}

fn read_reply(stream: &mut impl BufRead) -> io::Result<Reply> {
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let first = read_line(stream)?;
    let status = first
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| broken(&format!("no status line: {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(stream)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken(&format!("no header: {line:?}")))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut reply = Reply { status, headers, body: Vec::new() };
    if let Some(length) = reply.header("content-length") {
        let length: u64 = length.parse().map_err(|_| broken("a length that is no number"))?;
        read_exactly(stream, length, &mut reply.body)?;
    } else if reply.header("transfer-encoding").is_some() {
        loop {
            let size = u64::from_str_radix(&read_line(stream)?, 16).map_err(|_| broken("a size that is no number"))?;
            read_exactly(stream, size, &mut reply.body)?;
            if !read_line(stream)?.is_empty() {
                return Err(broken("a piece that is longer than it says"));
            }
            if size == 0 {
                break;
            }
        }
    }
    Ok(reply)
}

fn read_line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    stream.take(64 << 10).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_exactly(stream: &mut impl BufRead, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
    if length > LONGEST_BODY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a body of {length} bytes")));
    }
    let read = stream.take(length).read_to_end(into)?;
    if (read as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// A connection on which no single wait goes beyond a moment.
#[derive(Debug)]
pub(crate) struct Limited {
    stream: TcpStream,
    pub(crate) until: Instant,
}

impl Limited {
    pub(crate) fn connect(address: SocketAddr, until: Instant) -> io::Result<Limited> {
        let stream = TcpStream::connect_timeout(&address, left(until)?)?;
        stream.set_nodelay(true)?;
        Ok(Limited { stream, until })
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left(self.until)?))?;
        self.stream.read(buffer)
    }
}

impl Write for Limited {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
