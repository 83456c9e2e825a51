//! Metrics for callers and for the operator.

use corbie_mcp::transport::http::Options;
use corbie_mcp::{TrustLevel, builtin};
use serde_json::{Value, json};

use crate::fixture::peer::{self, TestTransport, call, json_of, request, request_over_stdio};
use crate::{fixture, used};

fn counts(stats: &Value) -> Value {
    json!([stats["calls"], stats["errors"], stats["errors_by_kind"]])
}

#[tokio::test]
async fn m88_each_tool_counts_its_calls_and_its_errors_by_kind() {
    let server = used().await;
    let read = request_over_stdio(&server, &request(1, "resources/read", json!({ "uri": builtin::METRICS_URI }))).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json");
    let resource: Value = serde_json::from_str(contents["text"].as_str().expect("text")).expect("JSON");
    let inspected = json_of(&request_over_stdio(&server, &call(1, "inspect_server", json!({}))).await);
    for told in [resource, inspected] {
        let tools = &told["tools"];
        assert_eq!(counts(&tools["echo"]), json!([3, 1, { "SchemaError": 1 }]));
        assert_eq!(counts(&tools["fail"]), json!([1, 1, { "NotFound": 1 }]));
        assert_eq!(counts(&tools["panic"]), json!([1, 1, { "InternalError": 1 }]));
        assert_eq!(counts(&tools["wipe"]), json!([1, 1, { "TrustDenied": 1 }]));
        assert_eq!(counts(&tools["add"]), json!([0, 0, {}]));
    }
}

#[tokio::test]
async fn m88_each_tool_measures_its_time() {
    let server = fixture::server();
    for ms in [0, 30] {
        request_over_stdio(&server, &call(1, "wait", json!({ "ms": ms }))).await;
    }
    let stats = server.registry().find("wait").expect("known").stats().summary();
    let number = |name: &str| stats[name].as_f64().expect("a number");
    assert!(number("max_ms") >= 30.0 && number("total_ms") >= number("max_ms"), "{stats}");
    assert!((number("mean_ms") - number("total_ms") / 2.0).abs() < 1e-6, "{stats}");
}

#[tokio::test]
async fn m88_the_operator_reads_the_same_numbers() {
    let port = fixture::listen(&used().await, Options::default()).await;
    let text = peer::http(port, "GET", "/metrics", &[], "").await.body;
    for line in [
        r#"corbie_tool_seconds_count{tool="echo"} 3"#,
        r#"corbie_tool_errors_total{tool="echo",kind="SchemaError"} 1"#,
        r#"corbie_tool_errors_total{tool="wipe",kind="TrustDenied"} 1"#,
        r#"corbie_requests_total{method="tools/call"} 6"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn m88_requests_are_measured_by_method_and_by_the_way_they_came() {
    let server = fixture::server();
    for way in TestTransport::ALL {
        way.request(&server, TrustLevel::Trusted, &call(1, "echo", json!({ "text": "a" }))).await;
    }
    request_over_stdio(&server, &request(1, "no/such", json!({}))).await;
    let port = fixture::listen(&server, Options::default()).await;
    let text = peer::http(port, "GET", "/metrics", &[], "").await.body;
    for via in ["stdio", "http", "web_socket", "rest"] {
        let line = format!(r#"corbie_request_seconds_count{{method="tools/call",via="{via}"}} 1"#);
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for line in [
        r#"corbie_request_errors_total{method="tools/call",via="stdio"} 0"#,
        r#"corbie_request_errors_total{method="unknown",via="stdio"} 1"#,
        r#"corbie_errors_total{error_type="MethodNotFound"} 1"#,
        r#"corbie_audit_recorded_total 4"#,
        r#"corbie_audit_lost_total 0"#,
        r#"corbie_build_info{version="1.2.3"} 1"#,
        "corbie_requests_in_flight 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in ["corbie_uptime_seconds", "process_resident_memory_bytes", "process_open_fds"] {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{name} in\n{text}");
    }
}

#[tokio::test]
async fn m88_scrapers_of_the_older_form_are_served_in_it() {
    let port = fixture::listen(&used().await, Options::default()).await;
    let plain = peer::http(port, "GET", "/metrics", &[("accept", "text/plain;version=0.0.4")], "").await;
    assert_eq!(plain.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(plain.body.contains("# TYPE corbie_requests_total counter\n"), "{}", plain.body);
    assert!(!plain.body.contains("# EOF"));
    let open = peer::http(port, "GET", "/metrics", &[], "").await;
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert!(open.body.contains("# TYPE corbie_requests counter\n") && open.body.ends_with("# EOF\n"));
}
