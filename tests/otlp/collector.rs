//! Mock OTLP collector: accepts `POST /v1/traces`, records the requests, and responds with given statuses.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use corbie::telemetry::otlp::proto::{ExportTraceServiceRequest, Span, Value};
use prost::Message;

use crate::process::{TestCommand, corbie};

/// Value of the collector's API key header; it may appear only in that header.
pub(crate) const KEY: &str = "collector-key-5d2f19";

pub(crate) struct Collector {
    port: u16,
    requests: Arc<Mutex<Vec<ExportRequest>>>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct ExportRequest {
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Collector {
    /// Responds with these statuses, and then always with 200. An empty status means no response.
    pub(crate) fn start(statuses: &'static [&'static str]) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let kept = kept.clone();
                thread::spawn(move || serve(connection, statuses, &kept));
            }
        });
        Collector { port, requests }
    }

    /// A program that exports to this collector and has only the mock provider.
    pub(crate) fn corbie(&self, arguments: &str) -> TestCommand {
        with_collector(self.port, corbie(arguments))
    }

    pub(crate) fn requests(&self) -> Vec<ExportRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// All received spans.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.requests().iter().flat_map(ExportRequest::spans).collect()
    }
}

/// Exports to this port.
pub(crate) fn with_collector(port: u16, setup: TestCommand) -> TestCommand {
    setup
        .variable("CORBIE_TELEMETRY__OTLP__ENDPOINT", format!("http://127.0.0.1:{port}"))
        .variable("CORBIE_TELEMETRY__OTLP__HEADERS", format!("{{\"x-api-key\": \"{KEY}\"}}"))
        .variable("CORBIE_PROVIDERS__MOCK__TYPE", "mock")
}

impl ExportRequest {
    pub(crate) fn spans(&self) -> Vec<Span> {
        let request = ExportTraceServiceRequest::decode(&*self.body).unwrap();
        request.resource_spans.into_iter().flat_map(|told| told.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

/// The value of an attribute as text, including numbers and lists.
pub(crate) fn attribute(span: &Span, key: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    attribute_text(attribute.value.as_ref()?.value.as_ref()?)
}

fn attribute_text(value: &Value) -> Option<String> {
    match value {
        Value::StringValue(text) => Some(text.clone()),
        Value::BoolValue(flag) => Some(flag.to_string()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::DoubleValue(number) => Some(number.to_string()),
        Value::ArrayValue(list) => {
            let members: Vec<_> =
                list.values.iter().filter_map(|member| attribute_text(member.value.as_ref()?)).collect();
            Some(format!("[{}]", members.join(", ")))
        }
    }
}

/// A server that responds with JSON, depending on the request head.
pub(crate) fn json_server(answer: impl Fn(&str) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let Some(request) = receive(&mut BufReader::new(connection.try_clone().unwrap())) else { continue };
            let body = answer(&request.head);
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n";
            let reply = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            let _ = connection.write_all(reply.as_bytes());
        }
    });
    port
}

/// Serves one connection.
fn serve(mut connection: TcpStream, statuses: &[&str], kept: &Mutex<Vec<ExportRequest>>) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(received) = receive(&mut reader) {
        let place = {
            let mut kept = kept.lock().unwrap();
            kept.push(received);
            kept.len() - 1
        };
        match statuses.get(place).copied().unwrap_or("200 OK\r\n") {
            "" => {}
            status => {
                let answer = format!("HTTP/1.1 {status}content-length: 0\r\n\r\n");
                if connection.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        }
    }
}

/// The next request; `None` at the end.
fn receive(reader: &mut impl BufRead) -> Option<ExportRequest> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(ExportRequest { head, body })
}
