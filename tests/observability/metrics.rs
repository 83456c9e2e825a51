//! `/metrics` of a program after use of all counted features.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestProcess, call, request, wait_for};
use crate::upstream::FakeUpstream;

/// A program that has classified, answered, failed, stored a document and rejected a caller.
pub(crate) struct UsedServer {
    pub(crate) text: String,
    _running: TestProcess,
    _upstream: FakeUpstream,
}

impl UsedServer {
    pub(crate) fn start() -> UsedServer {
        let upstream = FakeUpstream::start();
        upstream.configure(
            "acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-large, \
             models: {echo-large: {price: {input: 1, output: 2}}}}",
        );
        let setup = upstream.corbie("serve --port 0");
        let note = setup.folder().join("note.txt");
        std::fs::write(&note, "Parcels are delivered within two days.").unwrap();
        let mut running = setup.start();
        let client = running.client();
        for (tool, arguments) in [
            ("classify_text", json!({ "text": "what is two and two" })),
            ("classify_text", json!({ "text": 7 })),
            ("chat_completion", json!({ "prompt": "hi" })),
            ("chat_completion", json!({ "prompt": "hi", "model": "acme/status-500" })),
            ("knowledge-add", json!({ "file_path": note })),
        ] {
            client.post("/mcp", &call(1, tool, arguments));
        }
        client.post("/mcp", &request(1, "no/such", json!({})));
        let chat = json!({ "model": "echo-large", "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(client.post("/v1/chat/completions", &chat).status, 200);
        client.call("POST", "/mcp", &[("Origin", "https://evil.example")], "{}");
        let text = wait_for("the document", || {
            let text = scrape(&client, &[]);
            text.lines().any(|line| line == "corbie_knowledge_documents 1").then_some(text)
        });
        UsedServer { text, _running: running, _upstream: upstream }
    }

    /// The names of all samples.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let samples = self.text.lines().filter(|line| !line.starts_with('#'));
        samples.filter_map(|line| line.split(['{', ' ']).next()).collect()
    }
}

fn scrape(client: &HttpClient, headers: &[(&str, &str)]) -> String {
    client.call("GET", "/metrics", headers, "").body
}

#[test]
fn m88_everything_an_operator_asks_about_is_counted() {
    let used = UsedServer::start();
    for sample in [
        r#"corbie_tool_seconds_count{tool="classify_text"} 2"#,
        r#"corbie_tool_errors_total{tool="classify_text",kind="#,
        r#"corbie_request_seconds_count{method="tools/call",via="http"} 5"#,
        r#"corbie_request_seconds_count{method="/v1/chat/completions",via="http"} 1"#,
        r#"corbie_request_errors_total{method="unknown",via="http"} 1"#,
        r#"corbie_errors_total{error_type="MethodNotFound"} 1"#,
        r#"corbie_rejected_total{reason="origin"} 1"#,
        r#"corbie_route_attempts_total{provider="acme",result="ok"} "#,
        r#"corbie_route_latency_seconds_count{provider="acme",result="ok"} "#,
        r#"corbie_route_retries_total{provider="acme"} "#,
        r#"corbie_route_tokens_total{provider="acme",direction="input"} "#,
        r#"corbie_route_cost_total{provider="acme"} "#,
        r#"corbie_provider_circuit_open{provider="acme"} 0"#,
        r#"corbie_inference_texts_waiting "#,
        r#"corbie_inference_batch_seconds_count "#,
        r#"corbie_classification_seconds_count "#,
        r#"corbie_classification_confidence_count{category=""#,
        r#"corbie_classification_entropy_count{category=""#,
        r#"corbie_knowledge_tasks{state="queued"} 0"#,
        r#"corbie_knowledge_base_documents{base="default"} 1"#,
        r#"corbie_knowledge_base_chunks{base="default"} 1"#,
        r#"corbie_knowledge_store_bytes "#,
        r#"corbie_audit_recorded_total "#,
        r#"corbie_audit_lost_total 0"#,
        r#"corbie_build_info{version="#,
        r#"corbie_uptime_seconds "#,
        r#"process_resident_memory_bytes "#,
        r#"process_open_fds "#,
    ] {
        assert!(used.text.lines().any(|line| line.starts_with(sample)), "{sample} is not in\n{}", used.text);
    }
}

#[test]
fn m88_every_metric_is_described_once_and_ends_with_its_unit() {
    let used = UsedServer::start();
    let described: Vec<_> = used.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let names: BTreeSet<_> = described.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.len(), described.len(), "{described:?}");
    for name in used.names() {
        let base = ["_total", "_bucket", "_sum", "_count", "_info"].iter().find_map(|ending| name.strip_suffix(ending));
        assert!(names.contains(name) || base.is_some_and(|base| names.contains(base)), "{name} has no TYPE");
        assert!(name.starts_with("corbie_") || name.starts_with("process_"), "{name}");
        assert!(!["_ms", "_us", "_kb", "_mb"].iter().any(|ending| name.ends_with(ending)), "{name} is no base unit");
    }
}

#[test]
fn m88_an_inspection_tells_what_is_waiting() {
    let upstream = FakeUpstream::start();
    let mut running = upstream.corbie("serve --port 0").start();
    let told = running.client().post("/mcp", &call(1, "inspect_server", json!({}))).json();
    let told: Value = serde_json::from_str(told["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    for name in ["requests_in_flight", "connections", "texts_waiting", "tasks_waiting", "tasks_running"] {
        assert!(told["queues"][name].is_u64(), "{name} in {told}");
    }
    assert_eq!(told["audit"]["has_sink"], false);
}
