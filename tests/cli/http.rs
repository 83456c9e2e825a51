//! Minimal HTTP client that gives tests control over every byte.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};

use serde_json::Value;

use crate::process::TEST_TIMEOUT;

/// Address of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpClient(pub(crate) SocketAddr);

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A response whose body is still being received.
pub(crate) struct StreamingResponse {
    pub(crate) head: HttpResponse,
    reader: BufReader<TcpStream>,
}

impl HttpClient {
    pub(crate) fn v4(port: u16) -> HttpClient {
        HttpClient(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    pub(crate) fn v6(port: u16) -> HttpClient {
        HttpClient(SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), port))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.call("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> HttpResponse {
        self.call("POST", path, &[], &body.to_string())
    }

    #[track_caller]
    pub(crate) fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        self.try_call(method, path, headers, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Sends a body that need not be UTF-8.
    pub(crate) fn call_bytes(&self, method: &str, path: &str, body: &[u8]) -> HttpResponse {
        let mut connection = self.connect().unwrap();
        connection.write_all(self.head(method, path, &[], body.len()).as_bytes()).unwrap();
        connection.write_all(body).unwrap();
        let mut stream = StreamingResponse::read_head(connection).unwrap();
        stream.read_body().unwrap();
        stream.head
    }

    pub(crate) fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<HttpResponse> {
        let mut stream = self.open(method, path, headers, body)?;
        stream.read_body()?;
        Ok(stream.head)
    }

    /// Sends a request and reads the response head.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<StreamingResponse> {
        let mut connection = self.connect()?;
        let head = self.head(method, path, headers, body.len());
        connection.write_all(format!("{head}{body}").as_bytes())?;
        StreamingResponse::read_head(connection)
    }

    pub(crate) fn connect(&self) -> io::Result<TcpStream> {
        let connection = TcpStream::connect_timeout(&self.0, TEST_TIMEOUT)?;
        connection.set_read_timeout(Some(TEST_TIMEOUT))?;
        connection.set_write_timeout(Some(TEST_TIMEOUT))?;
        Ok(connection)
    }

    /// The request head, including the final blank line.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.0);
        if method == "POST" {
            head += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}

impl HttpResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl StreamingResponse {
    /// Reads the response head after the request has been sent.
    pub(crate) fn read_head(connection: TcpStream) -> io::Result<StreamingResponse> {
        let mut reader = BufReader::new(connection);
        let status_line = read_line(&mut reader)?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not a status line: {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut reader)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        Ok(StreamingResponse { head: HttpResponse { status, headers, body: String::new() }, reader })
    }

    /// Reads the complete body.
    pub(crate) fn read_body(&mut self) -> io::Result<()> {
        if self.is_chunked() {
            while self.read_chunk()?.is_some() {}
            return Ok(());
        }
        let length = self.head.header("content-length").and_then(|length| length.parse().ok());
        let mut body = Vec::new();
        self.reader.by_ref().take(length.unwrap_or(u64::MAX)).read_to_end(&mut body)?;
        self.head.body = String::from_utf8_lossy(&body).into_owned();
        Ok(())
    }

    /// Reads the next chunk of the body; `None` at its end.
    pub(crate) fn read_chunk(&mut self) -> io::Result<Option<String>> {
        let line = read_line(&mut self.reader)?;
        let size = usize::from_str_radix(&line, 16).map_err(|_| io::Error::other(format!("bad chunk: {line:?}")))?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        let text = String::from_utf8_lossy(&chunk[..size]).into_owned();
        self.head.body += &text;
        Ok((size > 0).then_some(text))
    }

    /// The next message of an event stream; `None` at its end.
    pub(crate) fn read_event(&mut self) -> io::Result<Option<Value>> {
        while let Some(chunk) = self.read_chunk()? {
            let data = chunk.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data {
                return serde_json::from_str(data).map(Some).map_err(io::Error::other);
            }
        }
        Ok(None)
    }

    fn is_chunked(&self) -> bool {
        self.head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}
