//! Strict HTTP/1.1 client: every wait has a deadline, every length is checked, and a partial response is an error.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Responses are far smaller.
const MAX_BODY: u64 = 64 << 20;

/// Address of the server.
#[derive(Debug, Clone)]
pub(crate) enum ServerAddress {
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Value of the `Host` header.
    pub(crate) fn host(&self) -> String {
        match self {
            ServerAddress::Tcp(address) => address.to_string(),
            ServerAddress::Unix(_) => "localhost".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct HttpRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A keep-alive connection.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    address: ServerAddress,
    stream: Option<BufReader<DeadlineStream>>,
    /// Whether the first byte of the last response arrived.
    pub(crate) response_started: bool,
}

impl HttpConnection {
    pub(crate) fn new(place: ServerAddress) -> HttpConnection {
        HttpConnection { address: place, stream: None, response_started: false }
    }

    /// Sends a request and reads the response. An error means that no complete response arrived; the server may still
    /// have received the request.
    pub(crate) fn send(&mut self, request: &HttpRequest, patience: Duration) -> io::Result<HttpResponse> {
        let until = Instant::now() + patience;
        self.response_started = false;
        let mut stream = match self.stream.take() {
            Some(mut kept) => {
                kept.get_mut().deadline = until;
                kept
            }
            None => BufReader::new(DeadlineStream::connect(&self.address, until)?),
        };
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", request.method, request.path, self.address.host());
        for (name, value) in request.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", request.body.len());
        stream.get_mut().write_all(&[head.as_bytes(), request.body].concat())?;
        self.response_started = !stream.fill_buf()?.is_empty();
        let reply = read_response(&mut stream)?;
        if reply.header("connection").is_none_or(|value| !value.eq_ignore_ascii_case("close")) {
            self.stream = Some(stream);
        }
        Ok(reply)
    }
}

fn read_response(stream: &mut impl BufRead) -> io::Result<HttpResponse> {
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
    let mut reply = HttpResponse { status, headers, body: Vec::new() };
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
    if length > MAX_BODY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a body of {length} bytes")));
    }
    let read = stream.take(length).read_to_end(into)?;
    if (read as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// A connection with a deadline for every read and write.
#[derive(Debug)]
pub(crate) struct DeadlineStream {
    stream: SocketStream,
    pub(crate) deadline: Instant,
}

#[derive(Debug)]
enum SocketStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl DeadlineStream {
    pub(crate) fn connect(place: &ServerAddress, until: Instant) -> io::Result<DeadlineStream> {
        let stream = match place {
            ServerAddress::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, remaining(until)?)?;
                stream.set_nodelay(true)?;
                SocketStream::Tcp(stream)
            }
            // Connects or fails immediately: the listen backlog is larger than the number of clients.
            ServerAddress::Unix(path) => SocketStream::Unix(UnixStream::connect(path)?),
        };
        Ok(DeadlineStream { stream, deadline: until })
    }
}

fn remaining(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Read for DeadlineStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = Some(remaining(self.deadline)?);
        match &mut self.stream {
            SocketStream::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            SocketStream::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
        }
    }
}

impl Write for DeadlineStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let left = Some(remaining(self.deadline)?);
        match &mut self.stream {
            SocketStream::Tcp(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(buffer)),
            SocketStream::Unix(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(buffer)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // The stream is unbuffered.
        Ok(())
    }
}
