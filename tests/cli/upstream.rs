//! The fake upstream of `examples/upstream`, and a program with no other provider.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::HttpClient;
use crate::process::{TestCommand, TestProcess, corbie, example};

/// The key of every provider. It must not occur in any output.
pub(crate) const KEY: &str = "sk-marker-7c1e40";

pub(crate) struct FakeUpstream {
    port: u16,
    folder: TempDir,
    _running: TestProcess,
}

impl FakeUpstream {
    /// Starts with one provider in the settings: `acme`, with the default model `echo-large`.
    pub(crate) fn start() -> FakeUpstream {
        let mut running = example("corbie", "upstream").arguments("--port 0").start();
        let line = running.read_line();
        let port = line.trim_end().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {line:?}"));
        let upstream =
            FakeUpstream { port, folder: tempfile::tempdir().expect("a temporary folder"), _running: running };
        upstream.configure("acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-large}");
        upstream
    }

    /// Writes the settings with only these providers; `BASE` is replaced by the address of the upstream.
    pub(crate) fn configure(&self, providers: &str) {
        let providers = providers.replace("BASE", &self.address()).replace("KEY", KEY);
        let settings = format!("providers:\n  detect_ports: []\n  {}\n", providers.trim().replace('\n', "\n  "));
        std::fs::write(self.folder.path().join("corbie.yaml"), settings).expect("a new file");
    }

    /// `corbie` with these settings.
    pub(crate) fn corbie(&self, arguments: &str) -> TestCommand {
        corbie("--config").argument(self.settings()).arguments(arguments)
    }

    /// Path of the settings file.
    pub(crate) fn settings(&self) -> String {
        self.folder.path().join("corbie.yaml").display().to_string()
    }

    /// Base URL, without a path.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        serde_json::from_str(&HttpClient::v4(self.port).get("/_requests").body).unwrap()
    }
}

/// A server without keys that lists one model, `small`, and always gives this answer. It closes the connection only if
/// `ends` is set. The channel receives a message when a connection with an answer is closed.
pub(crate) fn local_model_server(answer: &str, ends: bool) -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "1", "model": "small", "choices": [choice] }))
    };
    let mut events = chunk(json!({ "content": answer }), Value::Null);
    if ends {
        events += &(chunk(json!({}), json!("stop")) + "data: [DONE]\n\n");
    }
    let models = json!({ "object": "list", "data": [{ "id": "small", "object": "model" }] }).to_string();
    let (closed, is_closed) = mpsc::channel();
    let reply = move |mut connection: TcpStream| {
        let mut request = [0; 65536];
        let length = connection.read(&mut request)?;
        if request[..length].starts_with(b"GET ") {
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", models.len());
            return connection.write_all(format!("{head}{models}").as_bytes());
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        connection.write_all(format!("{head}{events}").as_bytes())?;
        while !ends && connection.read(&mut request).is_ok_and(|length| length > 0) {}
        let _ = closed.send(());
        Ok(())
    };
    thread::spawn(move || listener.incoming().flatten().try_for_each(reply));
    (port, is_closed)
}
