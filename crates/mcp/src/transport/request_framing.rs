//! Request framing (RFC 9112, section 6): where each request of a connection ends, read from the bytes of the client.
//!
//! hyper tells too little: it drops a `Content-Length` beside a `Transfer-Encoding`, by which one request can hide in
//! another, and it does not say whether the body of a request that is refused has arrived. Requests may be pipelined, and
//! a read may end at any byte.

/// Follows the requests of one connection. hyper parses them too and refuses what is malformed; from there on, or
/// from a request whose length two readers could take for different ones, the framing is unknown.
#[derive(Debug)]
pub(super) struct RequestFraming {
    position: Position,
    head: Head,
    /// The beginning of a line of a head of which the rest has not been read yet.
    line: Vec<u8>,
    max_line: usize,
    heads: u64,
    requests: u64,
}

/// Where in a request the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Head,
    /// In a body with this many bytes left.
    Body(u64),
    Chunked(Chunk),
    Unknown,
}

/// Where in a chunked body the next byte is (RFC 9112, section 7.1). The number is the size of the chunk, or what is
/// left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    FirstDigit,
    Digits(u64),
    /// White space or extensions.
    Extension(u64),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// At the beginning of a line after the last chunk.
    LineStart,
    EndLf,
    Trailer,
    TrailerLf,
}

/// The lines of one head that determine the length of its body.
#[derive(Debug, Default, Clone, Copy)]
struct Head {
    has_request_line: bool,
    length: Option<u64>,
    is_chunked: bool,
    /// The length is malformed, or given more than once.
    is_ambiguous: bool,
}

impl RequestFraming {
    pub(super) fn new(max_line: usize) -> RequestFraming {
        let (position, head) = (Position::Head, Head::default());
        RequestFraming { position, head, line: Vec::new(), max_line, heads: 0, requests: 0 }
    }

    /// The number of heads whose framing is clear. They are the first ones of the connection.
    pub(super) fn heads(&self) -> u64 {
        self.heads
    }

    /// The number of requests that have arrived completely.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Whether the client has begun a head and not finished it.
    pub(super) fn is_in_head(&self) -> bool {
        self.position == Position::Head && (self.head.has_request_line || !self.line.is_empty())
    }

    /// Follows the next bytes of the connection.
    pub(super) fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            bytes = match self.position {
                Position::Head => self.read_line(bytes),
                Position::Body(left) => {
                    let (rest, left) = skip(bytes, left);
                    self.position = Position::Body(left);
                    if left == 0 {
                        self.end_request();
                    }
                    rest
                }
                Position::Chunked(Chunk::Data(left)) => {
                    let (rest, left) = skip(bytes, left);
                    self.position = Position::Chunked(if left == 0 { Chunk::DataCr } else { Chunk::Data(left) });
                    rest
                }
                Position::Chunked(Chunk::EndLf) => {
                    match bytes[0] {
                        b'\n' => self.end_request(),
                        _ => self.position = Position::Unknown,
                    }
                    &bytes[1..]
                }
                Position::Chunked(chunk) => {
                    self.position = chunk.next(bytes[0]).map_or(Position::Unknown, Position::Chunked);
                    &bytes[1..]
                }
                Position::Unknown => return,
            };
        }
    }

    /// Reads a line of a head, and returns the bytes after it.
    fn read_line<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            if self.line.len() > self.max_line {
                self.position = Position::Unknown;
                self.line = Vec::new();
            }
            return &[];
        };
        let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
        match self.line.is_empty() {
            true => self.end_line(line),
            false => {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.end_line(&whole);
                // Keeps its memory for the next head.
                whole.clear();
                self.line = whole;
            }
        }
        rest
    }

    fn end_line(&mut self, line: &[u8]) {
        match line.strip_suffix(b"\r").unwrap_or(line) {
            // Empty lines before a request are allowed.
            [] if !self.head.has_request_line => {}
            [] => self.end_head(),
            _ if !self.head.has_request_line => self.head.has_request_line = true,
            line => self.head.read_field(line),
        }
    }

    fn end_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        self.position = match head {
            Head { is_ambiguous: true, .. } | Head { is_chunked: true, length: Some(_), .. } => Position::Unknown,
            Head { is_chunked: true, .. } => Position::Chunked(Chunk::FirstDigit),
            Head { length, .. } => Position::Body(length.unwrap_or(0)),
        };
        if self.position != Position::Unknown {
            self.heads += 1;
        }
        if self.position == Position::Body(0) {
            self.end_request();
        }
    }

    fn end_request(&mut self) {
        self.requests += 1;
        self.position = Position::Head;
    }
}

/// The bytes after the next `count`, and what is left of the count.
fn skip(bytes: &[u8], count: u64) -> (&[u8], u64) {
    let skipped = usize::try_from(count).unwrap_or(usize::MAX).min(bytes.len());
    (&bytes[skipped..], count - skipped as u64)
}

impl Head {
    fn read_field(&mut self, line: &[u8]) {
        if !matches!(line[0], b'c' | b'C' | b't' | b'T') {
            return;
        }
        let Some(colon) = memchr::memchr(b':', line) else { return };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = digits(value);
            self.is_ambiguous |= length.is_none() || self.length.is_some_and(|other| Some(other) != length);
            self.length = length;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            // No other coding is supported.
            self.is_ambiguous |= self.is_chunked || !value.eq_ignore_ascii_case(b"chunked");
            self.is_chunked = true;
        }
    }
}

/// A `Content-Length`: digits alone, without a sign.
fn digits(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

impl Chunk {
    /// Where the byte after this one is; `None` if it is malformed. [`Chunk::Data`] and [`Chunk::EndLf`] are read by
    /// [`RequestFraming::read`].
    fn next(self, byte: u8) -> Option<Chunk> {
        Some(match (self, byte) {
            (Chunk::FirstDigit, _) => Chunk::Digits(hex_digit(byte)?),
            (Chunk::Digits(size), b'\r') | (Chunk::Extension(size), b'\r') => Chunk::SizeLf(size),
            (Chunk::Digits(size), b' ' | b'\t' | b';') => Chunk::Extension(size),
            (Chunk::Digits(size), _) => Chunk::Digits(size.checked_mul(16)?.checked_add(hex_digit(byte)?)?),
            (Chunk::Extension(_), b'\n') => return None,
            (Chunk::Extension(size), _) => Chunk::Extension(size),
            (Chunk::SizeLf(0), b'\n') => Chunk::LineStart,
            (Chunk::SizeLf(size), b'\n') => Chunk::Data(size),
            (Chunk::DataCr, b'\r') => Chunk::DataLf,
            (Chunk::DataLf, b'\n') => Chunk::FirstDigit,
            (Chunk::LineStart, b'\r') => Chunk::EndLf,
            // Some readers end a line there.
            (Chunk::LineStart | Chunk::Trailer, b'\n') => return None,
            (Chunk::LineStart | Chunk::Trailer, byte) if byte != b'\r' => Chunk::Trailer,
            (Chunk::Trailer, _) => Chunk::TrailerLf,
            (Chunk::TrailerLf, b'\n') => Chunk::LineStart,
            _ => return None,
        })
    }
}

fn hex_digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these bytes in two parts, cut at each byte, and returns heads and requests.
    #[track_caller]
    fn check(bytes: &str, heads: u64, requests: u64) {
        for cut in 0..=bytes.len() {
            let mut framing = RequestFraming::new(1000);
            framing.read(&bytes.as_bytes()[..cut]);
            framing.read(&bytes.as_bytes()[cut..]);
            assert_eq!((framing.heads(), framing.requests()), (heads, requests), "{bytes:?} cut at {cut}");
        }
        let mut framing = RequestFraming::new(1000);
        bytes.bytes().for_each(|byte| framing.read(&[byte]));
        assert_eq!((framing.heads(), framing.requests()), (heads, requests), "{bytes:?} byte for byte");
    }

    const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nTransfer-Encoding:\tChunked \r\n\r\n";

    #[test]
    fn s10_requests_are_counted_wherever_a_read_ends() {
        check(GET, 1, 1);
        check(&format!("\r\n\n{GET}\n{GET}"), 2, 2);
        check(&GET.replace('\r', ""), 1, 1);
        check(&format!("POST / HTTP/1.1\r\nCONTENT-LENGTH: 5\r\n\r\n\r\n\r\nx{GET}"), 2, 2);
        check("POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n1234", 1, 0);
        check("POST / HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}", 1, 1);
    }

    #[test]
    fn s10_chunked_bodies_are_followed_to_their_end() {
        check(&format!("{CHUNKED}0\r\n\r\n{GET}"), 2, 2);
        check(&format!("{CHUNKED}3;a=b\r\n\r\n\r\r\nA \r\n0123456789\r\n00\r\nx: y\r\nz:\r\n\r\n{GET}"), 2, 2);
        check(&format!("{CHUNKED}2\r\n{{}}\r\n0\r\n"), 1, 0);
        for malformed in [
            "\r\n",
            "2\n{}\r\n",
            "2;\n",
            "-1\r\n",
            "2\r\n{}\n0\r\n\r\n",
            "10000000000000000\r\n",
            "0\r\nx\r\r",
            "0\r\nx: y\n\r\n",
            "0\r\n\n",
        ] {
            check(&format!("{CHUNKED}{malformed}{GET}"), 1, 0);
        }
    }

    #[test]
    fn s10_an_ambiguous_length_ends_what_is_known() {
        for fields in [
            "content-length: 3\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked\r\ncontent-length: 3",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            "transfer-encoding: gzip, chunked",
            "content-length: 3\r\ncontent-length: 4",
            "content-length: 4\r\ncontent-length: 4\r\ncontent-length: 3",
            "content-length: +3",
            "content-length: 3, 3",
            "content-length:",
        ] {
            check(&format!("{GET}POST / HTTP/1.1\r\n{fields}\r\n\r\n{GET}"), 1, 1);
        }
        check(&format!("{GET}{}", "x".repeat(1001)), 1, 1);
    }

    #[test]
    fn s10_a_begun_head_is_seen() {
        for (bytes, is_in_head) in [("", false), ("\r\n", false), ("G", true), ("GET /\r\n", true), (GET, false)] {
            let mut framing = RequestFraming::new(1000);
            framing.read(bytes.as_bytes());
            assert_eq!(framing.is_in_head(), is_in_head, "{bytes:?}");
        }
    }
}
