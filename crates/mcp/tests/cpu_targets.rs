//! Performance targets of the contract, in CPU time of this thread, so that other load on the machine does not count.
//!
//! Client, transport and server share the thread, so the whole round trip is measured. `bench/run slo` measures the
//! same targets on the release build in wall-clock time.

mod fixture;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Module, Server, Tool, ToolCall, TrustLevel};
use fixture::peer::{Stdio, call};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// More than any program here has.
const TOOLS: usize = 100;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The median time of `work`, so that one-time setup does not count.
fn median(count: usize, mut work: impl FnMut(usize)) -> f64 {
    let mut took: Vec<f64> = (0..count)
        .map(|number| {
            let started = cpu_seconds();
            work(number);
            cpu_seconds() - started
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[count / 2]
}

fn tool(name: String) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": { "query": { "type": "string", "minLength": 1 }, "top_k": { "type": "integer", "minimum": 1 } },
        "required": ["query"],
    });
    Tool::builder(name)
        .description("Look for something.")
        .input_schema(schema)
        .run(async |_, _| "found")
        .expect("valid")
}

#[test]
fn n01_n02_n03_registering_listing_and_showing_a_tool_among_a_hundred() {
    let server = Server::builder("targets", "1").build().expect("valid");
    let registered = median(TOOLS, |number| {
        server.register(tool(format!("tool_{number}"))).expect("new");
    });
    assert!(registered < 0.001, "N-01: {registered} s");
    let registry = server.registry();
    let listed = median(9, |_| assert_eq!(registry.list_registered_tools().len(), TOOLS));
    assert!(listed < 0.005, "N-02: {listed} s");
    let shown = median(TOOLS, |number| drop(registry.get_tool_schema(&format!("tool_{number}")).expect("there")));
    assert!(shown < 0.001, "N-03: {shown} s");
}

#[tokio::test]
async fn n04_n08_calls_over_stdio() {
    const CALLS: i64 = 300;
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    peer.call(&call(0, "echo", json!({ "text": "warm" }))).await;
    let started = cpu_seconds();
    for id in 1..=CALLS {
        assert_eq!(peer.call(&call(id, "echo", json!({ "text": "x" }))).await["id"], id);
    }
    let each = (cpu_seconds() - started) / CALLS as f64;
    assert!(each < 0.010, "N-04: {each} s a call");
    assert!(1.0 / each >= 1000.0, "N-08: {} calls a second", 1.0 / each);
}

#[tokio::test]
async fn n05_n08_calls_over_http() {
    const CALLS: i64 = 100;
    let port = fixture::listen(&fixture::server(), Options::default()).await;
    let ask = async |id: i64| {
        let reply = fixture::peer::post(port, &call(id, "echo", json!({ "text": "x" }))).await;
        assert_eq!((reply.status, reply.json()["id"].as_i64()), (200, Some(id)));
    };
    ask(0).await;
    let started = cpu_seconds();
    for id in 1..=CALLS {
        ask(id).await;
    }
    let each = (cpu_seconds() - started) / CALLS as f64;
    assert!(each < 0.100, "N-05: {each} s a call");
    assert!(1.0 / each >= 100.0, "N-08: {} calls a second", 1.0 / each);
}

#[test]
fn n06_a_whole_discovery_scan_and_none_while_the_last_is_fresh() {
    let scans = Arc::new(AtomicUsize::new(0));
    let counted = scans.clone();
    let module = Module::new("tools", move || {
        counted.fetch_add(1, Ordering::Relaxed);
        (0..TOOLS).map(|number| Ok(tool(format!("tool_{number}")))).collect()
    });
    let server = Server::builder("targets", "1").module(module).build().expect("valid");
    let scanned = median(3, |_| drop(server.discover(true)));
    assert!(scanned < 2.0, "N-06: {scanned} s");
    let before = scans.load(Ordering::Relaxed);
    drop(server.discover(false));
    assert_eq!(scans.load(Ordering::Relaxed), before, "N-06: the last scan is fresh for 300 s");
}

#[test]
fn n07_a_message_of_a_kilobyte_is_validated() {
    let params = json!({ "name": "search", "arguments": { "query": "x".repeat(900), "top_k": 5 } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let validated = median(200, |_| drop(ToolCall::from_json(&message).expect("valid")));
    assert!(validated < 0.001, "N-07: {validated} s");
}
