//! What can be known afterwards: metrics, the audit log, warnings, and a stdout that holds the protocol alone.

mod fixture;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_mcp::transport::http::Options;
use corbie_mcp::transport::{Auth, Token};
use corbie_mcp::{
    AuditEntry, AuditEvent, AuditOutcome, AuditSink, Grant, Limits, Only, Server, TrustLevel, Via, builtin,
};
use fixture::peer::{self, JSON, Stdio, Way, ask, call, json_of, modern, request, text_of};
use fixture::{Gate, Wiped};
use serde_json::{Value, json};

// === metrics ===

/// Two good calls and one with a mistake, to `echo`; one that fails, one that panics, one that is refused.
async fn used() -> Server {
    let server = fixture::server();
    for arguments in [json!({ "text": "a" }), json!({ "text": "b" }), json!({})] {
        ask(&server, &call(1, "echo", arguments)).await;
    }
    for tool in ["fail", "panic"] {
        ask(&server, &call(1, tool, json!({}))).await;
    }
    Way::Stdio.ask(&server, TrustLevel::Untrusted, &call(1, "wipe", json!({}))).await;
    server
}

fn counts(stats: &Value) -> Value {
    json!([stats["calls"], stats["errors"], stats["errors_by_kind"]])
}

#[tokio::test]
async fn m88_each_tool_counts_its_calls_and_its_errors_by_kind() {
    let server = used().await;
    let read = ask(&server, &request(1, "resources/read", json!({ "uri": builtin::METRICS_URI }))).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json");
    let resource: Value = serde_json::from_str(contents["text"].as_str().expect("text")).expect("JSON");
    let inspected = json_of(&ask(&server, &call(1, "inspect_server", json!({}))).await);
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
        ask(&server, &call(1, "wait", json!({ "ms": ms }))).await;
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
    for way in Way::ALL {
        way.ask(&server, TrustLevel::Trusted, &call(1, "echo", json!({ "text": "a" }))).await;
    }
    ask(&server, &request(1, "no/such", json!({}))).await;
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

#[tokio::test]
async fn m88_an_inspection_tells_who_is_calling_and_what_is_in_force() {
    let grant = Grant { tools: Only::these(["inspect_server", "echo*"]), collections: Only::All };
    let token = Token::new("agent", "s3cret", Some(TrustLevel::Verified)).grant(grant);
    let auth = Auth::tokens([token]);
    let port = fixture::listen(&fixture::server(), Options { auth, ..Options::default() }).await;
    let headers = [JSON, ("authorization", "Bearer s3cret")];
    let reply = peer::http(port, "POST", "/mcp", &headers, &call(1, "inspect_server", json!({})).to_string()).await;
    let told = json_of(&reply.json());
    assert_eq!(
        (&told["caller"], &told["trust"], &told["via"]),
        (&json!("token:agent"), &json!("VERIFIED"), &json!("http"))
    );
    assert_eq!(told["may_use"], json!({ "tools": ["inspect_server", "echo*"], "collections": "all" }));
    assert_eq!(told["request_id"], reply.headers["x-request-id"].as_str());
    assert_eq!(told["limits"]["tool_timeout_seconds"], 5.0);
    assert_eq!(told["queues"]["requests_in_flight"], 1);
    assert_eq!(told["audit"], json!({ "recorded": 0, "entries": 0, "kept": false, "lost": 0, "failing": false }));
    assert!(told["started"].as_str().is_some_and(|time| time.ends_with('Z')), "{told}");
}

#[tokio::test]
async fn inspect_server_tells_how_the_last_minutes_went() {
    let server = used().await;
    ask(&server, &request(1, "no/such/method", json!({}))).await;
    let told = json_of(&ask(&server, &call(1, "inspect_server", json!({ "history": 120 }))).await);
    assert_eq!(told["history"]["seconds"], 5);
    let samples = told["history"]["samples"].as_array().expect("samples");
    let sum = |name: &str| samples.iter().map(|sample| sample[name].as_u64().expect("a number")).sum::<u64>();
    // Two fit, one does not, one fails, one panics, one is refused; the call that asks has not ended.
    assert_eq!((samples.len(), sum("requests"), sum("calls"), sum("call_errors")), (120, 7, 6, 4), "{told}");
    assert!(sum("errors") >= 2, "who is refused, and what is not there: {told}");
    for sample in samples {
        assert!(sample["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{sample}");
        for share in ["p50_ms", "p95_ms"] {
            assert_eq!(sample[share].is_f64(), sample["requests"] != 0, "{sample}");
        }
    }
    let at =
        |number: usize| samples[number]["at"].as_str().map(humantime::parse_rfc3339).expect("text").expect("a time");
    assert_eq!(at(119).duration_since(at(0)).expect("the oldest first"), Duration::from_secs(5 * 119));
    let few = json_of(&ask(&server, &call(1, "inspect_server", json!({ "history": 2.0 }))).await);
    assert_eq!(few["history"]["samples"].as_array().map(Vec::len), Some(2), "{few}");
    for none in [json!({}), json!({ "history": 0 })] {
        assert_eq!(json_of(&ask(&server, &call(1, "inspect_server", none)).await).get("history"), None);
    }
    for wrong in [json!(121), json!(-1), json!("5")] {
        let refused = ask(&server, &call(1, "inspect_server", json!({ "history": wrong }))).await;
        assert!(refused.to_string().contains("SchemaError"), "{refused}");
    }
}

#[tokio::test]
async fn m98_only_trusted_callers_read_the_audit_log() {
    let server = used().await;
    let told = json_of(&ask(&server, &call(1, "inspect_server", json!({ "audit": 2 }))).await);
    let latest = told["audit"]["latest"].as_array().expect("entries");
    assert_eq!((latest.len(), &latest[0]["tool"], &latest[0]["outcome"]), (2, &json!("wipe"), &json!("blocked")));
    let without = json_of(&ask(&server, &call(1, "inspect_server", json!({}))).await);
    assert_eq!(without["audit"]["latest"], Value::Null);
    let denied = Way::Stdio.ask(&server, TrustLevel::Verified, &call(1, "inspect_server", json!({ "audit": 2 }))).await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert!(!denied.to_string().contains("wipe"), "{denied}");
    let too_many = ask(&server, &call(1, "inspect_server", json!({ "audit": 101 }))).await;
    assert!(too_many.to_string().contains("SchemaError"), "{too_many}");
}

#[tokio::test]
async fn m73_an_agent_needs_nothing_but_tools() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let discovered = json_of(&peer.call(&call(1, "list_registered_tools", json!({}))).await);
    let tools = discovered["tools"].as_array().expect("tools");
    let sums = tools.iter().find(|tool| tool["description"].as_str().is_some_and(|text| text.contains("two integers")));
    let name = &sums.expect("a tool that adds")["name"];
    let inspected = json_of(&peer.call(&call(2, "get_tool_schema", json!({ "name": name }))).await);
    assert_eq!(inspected["inputSchema"]["required"], json!(["a", "b"]));
    let name = name.as_str().expect("text");
    let executed = peer.call(&call(3, name, json!({ "a": 2, "b": 3 }))).await;
    assert_eq!((&executed["result"]["isError"], json_of(&executed)), (&json!(false), json!({ "sum": 5 })));
    peer.call(&call(4, name, json!({ "a": 2 }))).await;
    let learned = json_of(&peer.call(&call(5, "inspect_server", json!({}))).await)["tools"][name].take();
    assert_eq!((&learned["calls"], &learned["errors"]), (&json!(2), &json!(1)));
    assert!(learned["mean_ms"].as_f64().is_some_and(|mean| mean > 0.0));
}

// === the audit log ===

#[tokio::test]
async fn m98_a_call_is_logged_with_everything_but_what_was_said() {
    let server = fixture::server();
    for (tool, text) in [("echo", "my secret"), ("echo", "my secret"), ("echo", "another"), ("fail", "")] {
        ask(&server, &call(1, tool, json!({ "text": text }))).await;
    }
    Way::Stdio.ask(&server, TrustLevel::Verified, &call(1, "wipe", json!({}))).await;
    let log = server.audit().latest(10);
    let told: Vec<_> = log.iter().rev().map(|entry| (&*entry.tool, entry.outcome, entry.trust)).collect();
    let trusted = TrustLevel::Trusted;
    let echo = ("echo", AuditOutcome::Success, trusted);
    let refused = ("wipe", AuditOutcome::Blocked, TrustLevel::Verified);
    assert_eq!(told, [echo, echo, echo, ("fail", AuditOutcome::Error, trusted), refused]);

    let hashes: Vec<_> = log.iter().rev().map(|entry| &entry.arguments_hash).collect();
    assert_eq!(hashes[0], hashes[1], "the same arguments have the same hash");
    assert_ne!(hashes[1], hashes[2]);
    let written = serde_json::to_value(&log).expect("JSON");
    assert!(!written.to_string().contains("secret"), "{written}");
    let oldest = written.as_array().and_then(|all| all.last()).expect("entries");
    assert!(oldest["time"].as_str().is_some_and(|time| time.ends_with('Z')) && oldest["duration_us"].is_u64());
    assert_eq!(oldest["outcome"], "success");
}

#[tokio::test]
async fn m98_the_log_tells_how_the_caller_came() {
    let server = fixture::server();
    for (way, via) in Way::ALL.into_iter().zip([Via::Stdio, Via::Http, Via::WebSocket, Via::Rest]) {
        way.ask(&server, TrustLevel::Trusted, &call(1, "old", json!({}))).await;
        assert_eq!(server.audit().latest(1)[0].via, via);
    }
}

#[tokio::test]
async fn m98_the_log_keeps_the_last_ten_thousand_unless_said_otherwise() {
    assert_eq!(Limits::default().max_audit, 10_000);
    let limits = Limits { max_audit: 2, ..Limits::default() };
    let server = fixture::builder(Wiped::default()).limits(limits).build().expect("valid");
    for tool in ["remember", "old", "picture"] {
        ask(&server, &call(1, tool, json!({}))).await;
    }
    let kept: Vec<_> = server.audit().latest(10).into_iter().map(|entry| entry.tool.to_string()).collect();
    assert_eq!(kept, ["picture", "old"]);
}

/// Keeps everything it is handed, and can be told to fail.
#[derive(Debug, Default)]
struct Kept {
    calls: Mutex<Vec<AuditEntry>>,
    events: Mutex<Vec<AuditEvent>>,
    failing: AtomicBool,
}

impl AuditSink for Kept {
    fn call(&self, entry: &AuditEntry) {
        self.calls.lock().expect("unpoisoned").push(entry.clone());
    }

    fn event(&self, event: &AuditEvent) {
        self.events.lock().expect("unpoisoned").push(event.clone());
    }

    fn lost(&self) -> u64 {
        u64::from(self.failing.load(Ordering::Relaxed))
    }

    fn failing(&self) -> Option<String> {
        self.failing.load(Ordering::Relaxed).then(|| "the disk is full".into())
    }

    fn is_required(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn m98_a_sink_is_handed_every_call_and_event() {
    let kept = Arc::new(Kept::default());
    let server = fixture::builder(Wiped::default()).audit_sink(kept.clone()).build().expect("valid");
    ask(&server, &call(1, "echo", json!({ "text": "a" }))).await;
    let auth = Auth::tokens([Token::new("agent", "s3cret", None)]);
    let routes = axum::Router::new().route("/more/{name}", axum::routing::get(async || "more"));
    let port = fixture::listen(&server, Options { auth, routes, ..Options::default() }).await;
    let told = ("authorization", "Bearer s3cret");
    peer::http(port, "GET", "/more/one", &[told], "").await;
    peer::http(port, "GET", "/more/one", &[("authorization", "Bearer guess")], "").await;
    peer::http(port, "GET", "/more/one", &[told, ("origin", "https://evil.example")], "").await;
    server.audit().event(AuditEvent::new("reload").by("operator"));

    let calls = std::mem::take(&mut *kept.calls.lock().expect("unpoisoned"));
    let calls: Vec<_> = calls.iter().map(|call| (&*call.tool, &*call.caller, call.outcome)).collect();
    let success = AuditOutcome::Success;
    assert_eq!(calls, [("echo", "stdio", success), ("/more/{name}", "token:agent", success)]);
    let events = std::mem::take(&mut *kept.events.lock().expect("unpoisoned"));
    let events: Vec<_> = events.iter().map(|event| (event.event, event.by.as_deref())).collect();
    let from = Some("127.0.0.1");
    assert_eq!(events, [("authentication_failed", from), ("origin_refused", from), ("reload", Some("operator"))]);
    assert_eq!(server.audit().latest_events(1)[0].event, "reload");

    let text = peer::http(port, "GET", "/metrics", &[told], "").await.body;
    for line in [
        r#"corbie_refused_total{reason="authentication"} 1"#,
        r#"corbie_refused_total{reason="origin"} 1"#,
        r#"corbie_request_seconds_count{method="/more/{name}",via="http"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn m98_nothing_is_changed_while_a_required_log_cannot_be_kept() {
    let (kept, wiped) = (Arc::new(Kept::default()), Wiped::default());
    let server = fixture::builder(wiped.clone()).audit_sink(kept.clone()).build().expect("valid");
    kept.failing.store(true, Ordering::Relaxed);
    let refused = ask(&server, &call(1, "wipe", json!({}))).await;
    assert_eq!(refused["error"]["data"]["error_type"], "AuditUnavailable", "{refused}");
    let read = ask(&server, &call(1, "echo", json!({ "text": "a" }))).await;
    assert_eq!(text_of(&read), "a");
    kept.failing.store(false, Ordering::Relaxed);
    ask(&server, &call(1, "wipe", json!({}))).await;
    assert_eq!(wiped.times(), 1);
}

/// A server with a call waiting at its gate.
fn gated() -> (Server, Gate) {
    let gate = Gate::new();
    (fixture::builder(Wiped::default()).tool(gate.tool()).build().expect("valid"), gate)
}

/// Waits until the log has one entry, and gives its outcome.
async fn logged(server: &Server) -> Option<AuditOutcome> {
    let one = async {
        while server.audit().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(3), one).await;
    server.audit().latest(1).first().map(|entry| entry.outcome)
}

#[tokio::test]
async fn m98_a_call_that_was_cancelled_is_logged() {
    let (server, gate) = gated();
    let mut peer = Stdio::start(&server, TrustLevel::Trusted);
    peer.send(&call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    assert_eq!(logged(&server).await, Some(AuditOutcome::Error));
}

#[tokio::test]
async fn m98_a_call_whose_modern_caller_hung_up_is_logged() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let body = modern(1, "tools/call", json!({ "name": "gate" }), json!({}));
    let headers = peer::modern_headers(&body);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let stream = peer::send_http(port, "POST", &headers, &body.to_string()).await;
    gate.entered().await;
    drop(stream);
    gate.abandoned().await;
    assert_eq!(logged(&server).await, Some(AuditOutcome::Error));
}

#[tokio::test]
async fn m98_a_call_whose_legacy_caller_hung_up_is_logged() {
    let (server, gate) = gated();
    let port = fixture::listen(&server, Options::default()).await;
    let stream = peer::send_http(port, "POST", &[JSON], &call(1, "gate", json!({})).to_string()).await;
    gate.entered().await;
    drop(stream);
    gate.open();
    assert_eq!(logged(&server).await, Some(AuditOutcome::Success));
}

#[tokio::test]
async fn m98_a_task_is_logged_when_it_ends() {
    let (server, gate) = gated();
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    ask(&server, &modern(1, "tools/call", json!({ "name": "gate" }), capabilities)).await;
    gate.entered().await;
    assert!(server.audit().is_empty());
    gate.open();
    assert_eq!(logged(&server).await, Some(AuditOutcome::Success));
}

// === warnings ===

/// Keeps every log line in words.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Words(String);

impl tracing::field::Visit for Words {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = Words(event.metadata().level().to_string());
        event.record(&mut words);
        self.0.lock().expect("unpoisoned").push(words.0);
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn m71_a_deprecated_tool_works_warns_and_says_so() {
    let lines = Lines::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    let server = fixture::server();
    let answer = ask(&server, &call(1, "old", json!({}))).await;
    assert_eq!((text_of(&answer), &answer["result"]["isError"]), ("still here", &json!(false)));
    let note = &answer["result"]["_meta"]["deprecated"];
    assert_eq!(note["since"], "1.1.0");
    assert!(note["message"].as_str().is_some_and(|text| text.contains("`old`")), "{note}");
    let warned = |lines: &Lines| {
        let lines = lines.0.lock().expect("unpoisoned");
        lines.iter().filter(|line| line.starts_with("WARN") && line.contains("old")).count()
    };
    assert_eq!(warned(&lines), 1);
    ask(&server, &call(1, "picture", json!({}))).await;
    assert_eq!(warned(&lines), 1, "a tool that is not deprecated does not warn");
}

#[tokio::test]
async fn m86_what_a_panic_was_is_for_the_operator_and_what_was_said_is_for_nobody() {
    let lines = Lines::default();
    let _listening = tracing::subscriber::set_default(lines.clone());
    ask(&fixture::server(), &call(1, "panic", json!({ "text": "my secret" }))).await;
    let lines = lines.0.lock().expect("unpoisoned");
    assert!(lines.iter().any(|line| line.starts_with("ERROR") && line.contains("panic")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("my secret")), "{lines:?}");
}

// === stdout ===

const SPEAK: &str = "CORBIE_TEST_SPEAKS_ON_STDOUT";

/// Not a test of its own: the program that `z14` starts.
#[tokio::test]
async fn a_program_that_speaks_on_stdout() {
    if std::env::var_os(SPEAK).is_some() {
        let served = corbie_mcp::transport::stdio::serve(&fixture::server(), TrustLevel::Untrusted).await;
        std::process::exit(i32::from(served.is_err()));
    }
}

#[tokio::test]
async fn z14_stdout_holds_the_protocol_alone_whatever_happens() {
    let requests = [
        call(1, "panic", json!({})),
        call(2, "wipe", json!({})),
        call(3, "nan", json!({})),
        call(4, "old", json!({})),
        call(5, "stuck", json!({})),
        json!("no request"),
    ];
    let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
    // Two threads, because with one the test harness announces the test on the line where its output begins.
    let mut child = tokio::process::Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "a_program_that_speaks_on_stdout", "--nocapture", "--test-threads=2"])
        .env(SPEAK, "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.expect("it reads");
    drop(stdin);
    let ended =
        tokio::time::timeout(peer::PATIENCE, child.wait_with_output()).await.expect("in time").expect("readable");
    assert!(ended.status.success(), "{ended:?}");
    let written = String::from_utf8(ended.stdout).expect("UTF-8");
    let spoken: Vec<_> = written.lines().filter(|line| !line.is_empty() && *line != "running 1 test").collect();
    assert_eq!(spoken.len(), requests.len(), "{written}");
    for line in spoken {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0");
    }
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(told.contains("secret detail of the panic"), "a panic is told on stderr: {told}");
}
