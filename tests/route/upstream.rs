//! The mock upstream as a process, and hand-written peers for other behavior.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process;

/// The wire formats, by the names of their providers.
pub(crate) const FORMATS: [&str; 3] = ["openai", "anthropic", "google"];

pub(crate) const KEY: &str = "test-key";

/// The example `upstream` on its own port.
pub(crate) struct FakeUpstream {
    child: Child,
    pub(crate) port: u16,
}

impl FakeUpstream {
    pub(crate) fn start() -> FakeUpstream {
        let program = process::example_binaries::build_example("corbie", "upstream");
        let mut child =
            Command::new(program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the example starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("a first line");
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        FakeUpstream { child, port: port.unwrap_or_else(|| panic!("no port in {line:?}")) }
    }

    /// Settings of a provider of this wire format at the upstream.
    pub(crate) fn provider(&self, format: &str) -> Value {
        self.provider_with(format, json!({}))
    }

    /// The same, with additional or replaced settings.
    pub(crate) fn provider_with(&self, format: &str, more: Value) -> Value {
        let mut settings = json!({ "type": format, "base_url": self.base(format), "api_key": KEY });
        let more = more.as_object().unwrap().clone();
        settings.as_object_mut().unwrap().extend(more);
        settings
    }

    pub(crate) fn base(&self, format: &str) -> String {
        match format {
            "anthropic" | "google" => format!("http://127.0.0.1:{}", self.port),
            _ => format!("http://127.0.0.1:{}/v1", self.port),
        }
    }

    /// The last hundred requests, oldest first.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.client().get("/_requests").json().as_array().unwrap().clone()
    }

    /// The completion requests for a model.
    pub(crate) fn requests_for(&self, model: &str) -> Vec<Value> {
        let is_for = |request: &Value| {
            let path = request["path"].as_str().unwrap();
            request["body"]["model"] == model || path.contains(&format!("/models/{model}:"))
        };
        self.requests().into_iter().filter(is_for).collect()
    }

    pub(crate) fn clear_requests(&self) {
        assert_eq!(self.client().call("DELETE", "/_requests", &[], "").status, 204);
    }

    fn client(&self) -> HttpClient {
        HttpClient::v4(self.port)
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as read by a hand-written peer: raw head and body.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A peer that passes each request to a function of the test; it ends with the test.
pub(crate) struct ScriptedServer {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl ScriptedServer {
    pub(crate) fn start(answer: impl Fn(&RecordedRequest, &mut TcpStream) + Send + Sync + 'static) -> ScriptedServer {
        ScriptedServer::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    pub(crate) fn start_on(
        listener: TcpListener,
        answer: impl Fn(&RecordedRequest, &mut TcpStream) + Send + Sync + 'static,
    ) -> ScriptedServer {
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (kept, answer) = (seen.clone(), Arc::new(answer));
        thread::spawn(move || {
            for mut connection in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (kept.clone(), answer.clone());
                thread::spawn(move || {
                    while let Some(request) = read_request(&mut connection) {
                        kept.lock().unwrap().push(request.clone());
                        answer(&request, &mut connection);
                    }
                });
            }
        });
        ScriptedServer { port, requests: seen }
    }

    /// A peer that responds to everything with this JSON.
    pub(crate) fn answering(body: impl Fn(&RecordedRequest) -> Value + Send + Sync + 'static) -> ScriptedServer {
        ScriptedServer::start(move |request, connection| write_json(connection, &body(request)))
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

pub(crate) fn write_json(connection: &mut TcpStream, body: &Value) {
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
    let _ = connection.write_all(format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// The minimal model list of an OpenAI-compatible server.
pub(crate) fn listing(models: &[&str]) -> Value {
    let model = |id: &&str| json!({ "id": id, "object": "model" });
    json!({ "object": "list", "data": models.iter().map(model).collect::<Vec<_>>() })
}

/// Reads one request; `None` at the end of the connection or on invalid HTTP.
fn read_request(connection: &mut TcpStream) -> Option<RecordedRequest> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > 64 * 1024 || connection.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    connection.read_exact(&mut body).ok()?;
    Some(RecordedRequest { head, body: String::from_utf8_lossy(&body).into_owned() })
}
