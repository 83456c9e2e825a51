//! Parser for HTTP responses.

use serde_json::Value;

/// Responses in order of arrival.
#[derive(Debug, Default)]
pub(super) struct HttpResponses(Vec<HttpResponse>);

#[derive(Debug)]
struct HttpResponse {
    status: u16,
    kind: String,
    body: Vec<u8>,
}

/// JSON-RPC internal error.
const INTERNAL_ERROR_CODE: i64 = -32603;

impl HttpResponses {
    /// Parses all responses; with `only_first`, only the first head, because the rest is ambiguous.
    pub(super) fn parse(mut bytes: &[u8], only_first: bool) -> HttpResponses {
        let mut answers = HttpResponses::default();
        while !bytes.is_empty() {
            let (mut answer, rest) = HttpResponse::parse(bytes);
            if only_first {
                answer.body.clear();
            }
            let is_http = answer.status != 101;
            answers.0.push(answer);
            if only_first || !is_http {
                break;
            }
            bytes = rest;
        }
        answers
    }

    /// Asserts that no response is an internal error, and that declared JSON is valid. Returns the statuses.
    pub(super) fn check(&self) -> Vec<u16> {
        let check = |HttpResponse { status, kind, body }: &HttpResponse| {
            let shown = String::from_utf8_lossy(body);
            assert_ne!(*status, 500, "{shown}");
            if kind.starts_with("application/json") && !body.is_empty() {
                assert_not_internal(&serde_json::from_slice(body).unwrap_or_else(|error| panic!("{error}: {shown}")));
            }
            if kind.starts_with("text/event-stream") {
                let data = shown.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
                data.for_each(|data| assert_not_internal(&serde_json::from_str(data).expect("an event is a message")));
            }
            *status
        };
        self.0.iter().map(check).collect()
    }
}

fn assert_not_internal(message: &Value) {
    assert_ne!(message["error"]["code"].as_i64(), Some(INTERNAL_ERROR_CODE), "{message}");
}

impl HttpResponse {
    fn parse(bytes: &[u8]) -> (HttpResponse, &[u8]) {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head ends");
        let head = std::str::from_utf8(&bytes[..end]).expect("a head is text").to_ascii_lowercase();
        let rest = &bytes[end + 4..];
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        assert!(first.starts_with("http/1.1 ") || first.starts_with("http/1.0 "), "{first}");
        let status = first[9..12].parse().expect("a status");
        let headers: Vec<(&str, &str)> = lines.map(|line| line.split_once(": ").expect("a header")).collect();
        let header = |name: &str| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let kind = header("content-type").unwrap_or_default().to_owned();
        let (body, rest) = match (header("transfer-encoding"), header("content-length")) {
            (Some("chunked"), _) => chunks(rest),
            (_, Some(length)) => {
                let length: usize = length.parse().expect("a length");
                let (body, rest) = rest.split_at(length.min(rest.len()));
                (body.to_vec(), rest)
            }
            _ if status < 200 || status == 202 || status == 204 || status == 304 => (Vec::new(), rest),
            // The body ends with the connection.
            _ => (rest.to_vec(), &rest[rest.len()..]),
        };
        (HttpResponse { status, kind, body }, rest)
    }
}

/// A chunked body, as far as it arrived.
fn chunks(mut bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let length = std::str::from_utf8(&bytes[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("the length of a chunk");
        let chunk = &bytes[end + 2..];
        if chunk.len() < length + 2 {
            body.extend_from_slice(&chunk[..length.min(chunk.len())]);
            return (body, &[]);
        }
        body.extend_from_slice(&chunk[..length]);
        bytes = &chunk[length + 2..];
        if length == 0 {
            return (body, bytes);
        }
    }
    (body, &[])
}
