//! Health probe: requests `/health` at a port and decides by the response whether corbie is listening.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Kind of response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// All fields of corbie's health response.
    Corbie,
    /// Only a status. corbie sends unauthenticated clients no more, and other programs may send the same.
    Healthy,
    Other,
}

/// Process name of corbie.
pub(super) const PROCESS_NAME: &str = "corbie";
/// Timeout of the whole probe, however slowly the response arrives.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Larger than any health response.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Size of one read.
const READ_BUFFER_BYTES: usize = 4096;

/// Probes one address. Fails if nothing listens there. A listener that does not respond is another program.
pub(super) fn probe(address: SocketAddr, host: &str, path: &str) -> io::Result<ProbeResult> {
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
    let answer = send_request(&mut stream, host, path, deadline).unwrap_or_default();
    Ok(parse_response(&String::from_utf8_lossy(&answer)))
}

/// Whether anything listens at the address.
pub(super) fn is_listening(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, PROBE_TIMEOUT).is_ok()
}

/// Whether a response is from corbie. If it is inconclusive, the process name decides, as far as it is available.
pub(super) fn is_corbie(answer: ProbeResult, process: Option<&(u32, String)>) -> bool {
    match answer {
        ProbeResult::Corbie => true,
        ProbeResult::Healthy => process.is_none_or(|(_, name)| name == PROCESS_NAME),
        ProbeResult::Other => false,
    }
}

fn send_request(stream: &mut TcpStream, host: &str, path: &str, deadline: Instant) -> io::Result<Vec<u8>> {
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let (mut answer, mut piece) = (Vec::new(), [0; READ_BUFFER_BYTES]);
    // A truncated response may be sufficient.
    while answer.len() < MAX_RESPONSE_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Ok(answer)
}

fn parse_response(answer: &str) -> ProbeResult {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body = body.find('{').zip(body.rfind('}')).and_then(|(start, end)| body.get(start..=end)).unwrap_or_default();
    let health: Value = serde_json::from_str(body).unwrap_or_default();
    let is_well = health["status"].as_str().is_some_and(|status| ["ok", "degraded"].contains(&status));
    match is_well {
        true if health["protocol_versions"].is_array() => ProbeResult::Corbie,
        true => ProbeResult::Healthy,
        false => ProbeResult::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn corbie_is_identified_by_its_health_response() {
        let process = |name: &str| Some((1, name.to_owned()));
        let long = parse_response("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ok\",\"protocol_versions\":[]}");
        assert!(is_corbie(long, process("proxy").as_ref()));
        let short = parse_response("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ok\"}");
        assert!(is_corbie(short, process("corbie").as_ref()) && is_corbie(short, None));
        assert!(!is_corbie(short, process("other").as_ref()));
        for other in ["", "HTTP/1.1 200 OK\r\n\r\nhi", "HTTP/1.1 200 OK\r\n\r\n{\"status\":\"up\"}"] {
            assert!(!is_corbie(parse_response(other), process("corbie").as_ref()), "{other}");
        }
    }

    /// The server sends a byte in a loop until the client disconnects: as fast as possible, and slowly.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread of its own, outside of any runtime")]
    fn endless_response_is_aborted() {
        for pause in [Duration::ZERO, Duration::from_millis(50)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let talking = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                while stream.write_all(b" ").is_ok() {
                    std::thread::sleep(pause);
                }
            });
            assert_eq!(probe(address, "localhost", "/health").unwrap(), ProbeResult::Other);
            talking.join().unwrap();
        }
    }
}
