//! Strict HTTP/1.1 client: every wait has a deadline, every length is checked, and a partial response is an error.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Responses are far smaller.
const LONGEST_BODY: u64 = 64 << 20;

/// Address of the server.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Port(SocketAddr),
    /// A Unix socket.
    Socket(PathBuf),
}

impl Place {
    /// Value of the `Host` header.
    pub(crate) fn host(&self) -> String {
        match self {
            Place::Port(address) => address.to_string(),
            Place::Socket(_) => "localhost".to_owned(),
        }
    }
}

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

/// A keep-alive connection.
#[derive(Debug)]
pub(crate) struct Line {
    place: Place,
    stream: Option<BufReader<Limited>>,
    /// Whether the first byte of the last response arrived.
    pub(crate) has_heard: bool,
}

impl Line {
    pub(crate) fn new(place: Place) -> Line {
        Line { place, stream: None, has_heard: false }
    }

    /// Sends a request and reads the response. An error means that no complete response arrived; the server may still
    /// have received the request.
    pub(crate) fn exchange(&mut self, request: &Request, patience: Duration) -> io::Result<Reply> {
        let until = Instant::now() + patience;
        self.has_heard = false;
        let mut stream = match self.stream.take() {
            Some(mut kept) => {
                kept.get_mut().until = until;
                kept
            }
            None => BufReader::new(Limited::connect(&self.place, until)?),
        };
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.path, self.place.host());
        for (name, value) in request.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", request.body.len());
        stream.get_mut().write_all(&[head.as_bytes(), request.body].concat())?;
        self.has_heard = !stream.fill_buf()?.is_empty();
        let reply = read_reply(&mut stream)?;
        if reply.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Ok(reply)
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

/// A connection with a deadline for every read and write.
#[derive(Debug)]
pub(crate) struct Limited {
    stream: Stream,
    pub(crate) until: Instant,
}

#[derive(Debug)]
enum Stream {
    Port(TcpStream),
    Socket(UnixStream),
}

impl Limited {
    pub(crate) fn connect(place: &Place, until: Instant) -> io::Result<Limited> {
        let stream = match place {
            Place::Port(address) => {
                let stream = TcpStream::connect_timeout(address, left(until)?)?;
                stream.set_nodelay(true)?;
                Stream::Port(stream)
            }
            // Connects or fails immediately: the listen backlog is larger than the number of clients.
            Place::Socket(path) => Stream::Socket(UnixStream::connect(path)?),
        };
        Ok(Limited { stream, until })
    }
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = Some(left(self.until)?);
        match &mut self.stream {
            Stream::Port(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            Stream::Socket(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
        }
    }
}

impl Write for Limited {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let left = Some(left(self.until)?);
        match &mut self.stream {
            Stream::Port(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(buffer)),
            Stream::Socket(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(buffer)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // The stream is unbuffered.
        Ok(())
    }
}
