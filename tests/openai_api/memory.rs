//! Memory does not grow with the number of requests, however they end.
//!
//! The test sends a few thousand. Set the number for a long run:
//!
//! ```text
//! CORBIE_REQUESTS=100000 cargo test --test openai_api memory -- --nocapture
//! ```

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::fixture::{ApiServer, CHAT_PATH, chat_request, settings_for_each_format, with_members};
use crate::http::HttpClient;
use crate::process::wait_for;
use crate::upstream::{FORMATS, FakeUpstream};

/// By then the decision log and the cache are full.
const WARM_UP: usize = 2_000;
const REQUESTS: usize = 4_000;
const CALLERS: usize = 4;
/// Memory that an allocator may retain.
const MAX_GROWTH: u64 = 6 << 20;

#[test]
fn memory_is_flat_over_whole_streamed_failing_and_cancelled_requests() {
    let requests = std::env::var("CORBIE_REQUESTS").ok().and_then(|number| number.parse().ok()).unwrap_or(REQUESTS);
    let upstream = FakeUpstream::start();
    let mut settings = settings_for_each_format(&upstream);
    // Separate providers for failures, so that an open circuit breaker does not affect the rest.
    for format in FORMATS {
        settings["providers"][format!("broken-{format}")] = upstream.provider(format);
    }
    settings["router"] = json!({ "cache": { "exact": true, "max_bytes": "256KiB" } });
    let face = ApiServer::start(&settings);
    send_requests(face.client, 0, WARM_UP);
    let before = settled_memory(&face);
    send_requests(face.client, WARM_UP, requests);
    let after = settled_memory(&face);
    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let told = format!("{requests} requests: {:.1} MiB before, {:.1} MiB after", megabytes(before), megabytes(after));
    let _ = writeln!(std::io::stderr(), "{told}");
    assert!(after.saturating_sub(before) < MAX_GROWTH, "{told}");
    let metrics = face.client.get("/metrics").body;
    for outcome in ["answered", "failed", "cancelled"] {
        let counted = format!(r#"corbie_route_decisions_total{{reason="requested",outcome="{outcome}"}} "#);
        let count = metrics.lines().find_map(|line| line.strip_prefix(&counted)?.parse::<usize>().ok());
        assert!(count.is_some_and(|count| count > requests / 10), "{outcome}: {metrics}");
    }
    let streamed = face.stream(&chat_request("openai/echo-small", "still there"));
    assert_eq!((streamed.text().as_str(), streamed.has_done_event), ("echo: still there", true));
}

/// Sends unique requests with some concurrency.
fn send_requests(client: HttpClient, from: usize, count: usize) {
    let next = AtomicUsize::new(from);
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= from + count {
                        return;
                    }
                    send_one(client, number);
                }
            });
        }
    });
}

/// Alternates the wire formats and the outcomes.
fn send_one(client: HttpClient, number: usize) {
    let format = FORMATS[number % FORMATS.len()];
    let asked = |model: &str, stream: bool| {
        let asked = chat_request(model, &format!("question {number}, and some more words"));
        with_members(asked, json!({ "stream": stream }))
    };
    let ask = |model: &str, stream: bool| client.post(CHAT_PATH, &asked(model, stream));
    match number / FORMATS.len() % 5 {
        0 => assert_eq!(ask(&format!("{format}/echo-small"), false).status, 200),
        1 => assert!(ask(&format!("{format}/echo-small"), true).body.ends_with("data: [DONE]\n\n")),
        2 => assert_eq!(ask(&format!("{format}/status-400"), false).status, 400),
        // Interrupted, or rejected while the circuit breaker is open.
        3 => assert!(!ask(&format!("broken-{format}/error-mid"), true).body.contains("[DONE]")),
        _ => hang_up(client, &asked(&format!("{format}/drip-20"), number.is_multiple_of(2))),
    }
}

fn hang_up(client: HttpClient, asked: &Value) {
    let body = asked.to_string();
    let mut connection = client.connect().unwrap();
    let head = client.head("POST", CHAT_PATH, &[], body.len());
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

/// Memory once all requests have ended: disconnects are detected with a delay.
fn settled_memory(face: &ApiServer) -> u64 {
    wait_for("the last to be done", || {
        let decisions = face.decisions();
        let newest = decisions.first().and_then(|decision| decision["id"].as_u64());
        thread::park_timeout(std::time::Duration::from_millis(200));
        let later = face.decisions().first().and_then(|decision| decision["id"].as_u64());
        (newest == later).then_some(())
    });
    face.server.resident_bytes()
}
