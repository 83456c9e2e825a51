//! Models discovered by one instance are usable on every instance that shares the database.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixture::{KnowledgeServer, Storage, server_command};
use crate::http::HttpClient;
use crate::process::{report_skip, wait_for};

/// Without a notification an instance polls after 30 seconds.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// A local model server whose model appears at some time.
struct LocalModelServer {
    port: u16,
    has_model: Arc<AtomicBool>,
}

impl LocalModelServer {
    fn start() -> LocalModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let local = LocalModelServer { port: listener.local_addr().unwrap().port(), has_model: Arc::default() };
        let has_model = local.has_model.clone();
        let answer = move |mut connection: TcpStream| {
            let models = match has_model.load(Ordering::Relaxed) {
                true => json!([{ "id": "raven-7b", "object": "model" }]),
                false => json!([]),
            };
            let told = json!({ "object": "list", "data": models }).to_string();
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", told.len());
            // The client may have disconnected.
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(format!("{head}{told}").as_bytes());
        };
        // One thread per connection: some connections send no data.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let answer = answer.clone();
                thread::spawn(move || answer(connection));
            }
        });
        local
    }
}

fn has_raven(client: HttpClient) -> bool {
    let told = client.get("/v1/models").json();
    let is_raven = |model: &Value| model["id"].as_str().unwrap().ends_with("raven-7b");
    told["data"].as_array().unwrap().iter().any(is_raven)
}

#[test]
fn a13_a_model_that_one_instance_finds_is_found_by_the_others() {
    let (local, storage) = (LocalModelServer::start(), Storage::new());
    let ports = json!([local.port]).to_string();
    let start = || {
        KnowledgeServer::with_storage_and_command(
            &storage,
            server_command(&[]).variable("CORBIE_PROVIDERS__DETECT_PORTS", &ports),
        )
    };
    let one = start();
    if one.database().is_none() {
        return report_skip("who shares files hears of no models");
    }
    let other = start();
    for corbie in [&one, &other] {
        wait_for("the database", || (corbie.client.get("/ready?for=knowledge").status == 200).then_some(()));
    }
    assert!(!has_raven(other.client));

    local.has_model.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    assert!(has_raven(one.client), "it is asked for the first time, and looks");
    wait_for("the model", || has_raven(other.client).then_some(()));
    assert!(begun.elapsed() < SYNC_TIMEOUT, "{:?}", begun.elapsed());
}
