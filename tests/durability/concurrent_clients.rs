//! Concurrent HTTP clients: only documented errors occur, and no client sees a partial document.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[test]
fn k09_n12_ten_clients_add_search_and_remove_at_once() {
    run_clients(10, 6);
}

#[test]
fn k09_a_hundred_clients_add_search_and_remove_at_once() {
    run_clients(100, 2);
}

/// Ten thousand documents must fit in 2 GB; this test uses a tenth of both.
#[cfg(target_os = "linux")]
#[test]
fn n12_ten_clients_are_served_as_fast_as_one_and_a_thousand_documents_take_a_tenth_of_two_gigabytes() {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    for number in 0..1000 {
        std::fs::write(documents.join(format!("n{number}.txt")), text(0, number)).unwrap();
    }
    let added = corbie_command(folder.path()).args(["add", "documents", "--json"]).output().expect("it runs");
    assert!(added.status.success(), "{added:?}");
    let server = HttpServerProcess::start(folder.path());
    let search = |number: usize| {
        let found = server.call("knowledge-search", &json!({ "query": format!("marker0x{number}") }));
        assert_eq!(found["results"][0]["filename"], format!("n{number}.txt"), "{found}");
    };
    search(0);
    // Alternating, so that unrelated load on the machine affects both measurements equally.
    let (mut by_one, mut by_ten) = (Duration::ZERO, Duration::ZERO);
    for round in 0..5 {
        let numbers = |client: usize| (0..20).map(move |number| round * 200 + client * 20 + number);
        let begun = Instant::now();
        (0..10).flat_map(numbers).for_each(search);
        by_one += begun.elapsed();
        let begun = Instant::now();
        std::thread::scope(|scope| {
            (0..10).for_each(|client| drop(scope.spawn(move || numbers(client).for_each(search))));
        });
        by_ten += begun.elapsed();
    }
    assert!(by_ten < by_one * 3 / 2, "the same searches took {by_one:?} one by one, and {by_ten:?} by ten clients");
    let held = server.resident_bytes();
    assert!(held < 200 << 20, "it holds {} MiB with a thousand documents", held >> 20);
}

/// Each client adds its own documents, finds them, reads those of the other clients, and removes every second one.
fn run_clients(clients: usize, each: usize) {
    let folder = tempfile::tempdir().unwrap();
    let server = HttpServerProcess::start(folder.path());
    let kept = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let (server, kept, folder) = (&server, &kept, folder.path());
            scope.spawn(move || {
                for number in 0..each {
                    let name = format!("c{client}n{number}.txt");
                    let path = folder.join(&name);
                    std::fs::write(&path, text(client, number)).unwrap();
                    let added = server.call("knowledge-add", &json!({ "file_path": path, "async": false }));
                    assert_eq!(added["success"], true, "{added}");
                    let found =
                        server.call("knowledge-search", &json!({ "query": format!("marker{client}x{number}") }));
                    let hits = found["results"].as_array().unwrap_or_else(|| panic!("{found}"));
                    assert!(hits.iter().any(|hit| hit["filename"] == name.as_str()), "{name} is not found at once");
                    // Every hit is complete: its document can be read, or was just removed.
                    for hit in hits {
                        let got = server.call("knowledge-get", &json!({ "document_id": hit["document_id"] }));
                        match got["success"] == true {
                            true => {
                                let whole = got["pages"][0]["text"].as_str().unwrap_or_default();
                                assert!(whole.ends_with("The end of it."), "half a document: {whole}");
                            }
                            false => assert_eq!(got["error"], "document_not_found", "{got}"),
                        }
                    }
                    if number % 2 == 1 {
                        let id = &added["document_id"];
                        let removed = server.call("knowledge-remove", &json!({ "document_id": id, "confirm": true }));
                        assert_eq!(removed["chunks_removed"], added["chunks_created"], "{removed}");
                        let gone = server.call("knowledge-get", &json!({ "document_id": id }));
                        assert_eq!(gone["error"], "document_not_found", "{gone}");
                    } else {
                        kept.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let status = server.call("knowledge-status", &json!({}));
    assert_eq!(status["knowledge_base"]["document_count"], kept.into_inner(), "{status}");
    assert_eq!(status["health"]["status"], "healthy", "{status}");
}

fn text(client: usize, number: usize) -> String {
    let filler = "The ledger of the harbour lists grain, salt and timber by the day they were weighed. ".repeat(6);
    format!("marker{client}x{number} opens this note. {filler}Its number is {client}-{number}. The end of it.")
}

/// The program with all of its files in this folder.
fn corbie_command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corbie"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("CORBIE_PROVIDERS__DETECT_PORTS", "[]")
        .env("CORBIE_KNOWLEDGE__STORAGE_PATH", folder.join("storage"))
        .env("CORBIE_KNOWLEDGE__CHUNK_SIZE", "64")
        .env("CORBIE_SERVER__TOOL_TIMEOUT_SECONDS", "120")
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

struct HttpServerProcess {
    child: Child,
    address: String,
}

impl HttpServerProcess {
    fn start(folder: &Path) -> HttpServerProcess {
        let mut child = corbie_command(folder)
            .args(["serve", "--port", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the program ended");
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split('/').next().unwrap_or_default().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        HttpServerProcess { child, address }
    }

    /// Resident memory in bytes.
    #[cfg(target_os = "linux")]
    fn resident_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_else(|| panic!("{status}"));
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Calls a tool over a new connection and returns its result.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let body = json!({ "name": tool, "arguments": arguments }).to_string();
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let head = format!(
            "POST /mcp/tools/call HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {reply}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{tool}: {reply}");
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {body}"));
        serde_json::from_str(body["content"][0]["text"].as_str().unwrap()).unwrap()
    }
}

impl Drop for HttpServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
