//! Mock authorization server as seen by a resource server: metadata and keys, which a test may change.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::process::TEST_TIMEOUT;
use crate::signer::Signer;

pub(crate) struct Issuer {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    keys: Vec<Value>,
    is_down: bool,
    metadata: Vec<(String, Value)>,
    /// Raw bytes sent instead of keys.
    raw_response: Option<String>,
    requested_paths: Vec<String>,
}

pub(crate) const KEYS_PATH: &str = "/keys";

impl Issuer {
    /// An issuer with its metadata at the RFC 8414 location.
    pub(crate) fn start(keys: &[&Signer]) -> Issuer {
        Issuer::start_at("", "/.well-known/oauth-authorization-server", keys)
    }

    /// An issuer with a path and a different metadata location.
    pub(crate) fn start_at(path: &str, metadata: &str, keys: &[&Signer]) -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let url = format!("{base}{path}");
        let document = json!({ "issuer": url, "jwks_uri": format!("{base}{KEYS_PATH}") });
        let state = State { metadata: vec![(metadata.to_owned(), document)], ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = shared.clone();
                // Clients may disconnect early.
                thread::spawn(move || respond(connection, &state));
            }
        });
        let issuer = Issuer { url, state };
        issuer.publish(keys);
        issuer
    }

    /// Replaces all published keys.
    pub(crate) fn publish(&self, keys: &[&Signer]) {
        self.publish_raw(keys.iter().map(|key| key.jwk()).collect());
    }

    pub(crate) fn publish_raw(&self, keys: Vec<Value>) {
        self.state.lock().unwrap().keys = keys;
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.lock().unwrap().is_down = is_down;
    }

    /// Responds to key requests with these bytes.
    pub(crate) fn respond_with_bytes(&self, bytes: Option<String>) {
        self.state.lock().unwrap().raw_response = bytes;
    }

    /// Number of requests for a path.
    pub(crate) fn request_count(&self, path: &str) -> usize {
        self.state.lock().unwrap().requested_paths.iter().filter(|asked| *asked == path).count()
    }
}

fn respond(connection: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    connection.set_read_timeout(Some(TEST_TIMEOUT))?;
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    while reader.read_line(&mut line)? > 2 {}
    let (status, body) = {
        let mut state = state.lock().unwrap();
        state.requested_paths.push(path.clone());
        if let Some(odd) = state.raw_response.clone().filter(|_| path == KEYS_PATH) {
            drop(state);
            return reader.get_mut().write_all(odd.as_bytes());
        }
        let document = state.metadata.iter().find(|(known, _)| *known == path).map(|(_, document)| document.clone());
        match (state.is_down, document) {
            (true, _) => ("503 Service Unavailable", json!({})),
            (false, Some(document)) => ("200 OK", document),
            (false, None) if path == KEYS_PATH => ("200 OK", json!({ "keys": state.keys })),
            (false, None) => ("404 Not Found", json!({})),
        }
    };
    let (length, body) = (body.to_string().len(), body);
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}");
    write!(reader.get_mut(), "{head}\r\nConnection: close\r\n\r\n{body}")
}
