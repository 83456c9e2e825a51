//! The audit log in a file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use corbie::audit_log::AuditFile;
use corbie::config::audit::Audit;
use corbie_mcp::{AuditEvent, AuditSink};
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestProcess, call, corbie, wait_for};

const TOKEN: &str = "b81f37a043a6f767e7c94d105f4bd31282f3ecc2";
const AUTH_HEADER: (&str, &str) = ("Authorization", "Bearer b81f37a043a6f767e7c94d105f4bd31282f3ecc2");

/// A program with an audit file in its folder that requires a token.
fn start(audit: &str, folder: &Path) -> TestProcess {
    let file = folder.join("audit.jsonl");
    let settings = format!(
        "server: {{auth: bearer, token: {TOKEN}}}\nknowledge: {{storage_path: '{}'}}\naudit: {{file: '{}'{audit}}}\n",
        folder.join("knowledge").display(),
        file.display(),
    );
    corbie("serve --port 0").file("corbie.yaml", &settings).start()
}

fn call_tool(client: &HttpClient, tool: &str, arguments: Value) -> Value {
    client.call("POST", "/mcp", &[AUTH_HEADER], &call(1, tool, arguments).to_string()).json()
}

/// Every line must be valid JSON.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn events<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// Waits until at least this many entries are counted as lost.
fn wait_for_losses(client: &HttpClient, least: u64) {
    wait_for("losses to be counted", || {
        let metrics = client.call("GET", "/metrics", &[AUTH_HEADER], "").body;
        let lost = metrics.lines().find_map(|line| line.strip_prefix("corbie_audit_lost_total "))?;
        (lost.parse::<u64>().unwrap() >= least).then_some(())
    });
}

fn stop(mut running: TestProcess) {
    running.terminate();
    assert_eq!(running.wait().code, Some(0));
}

#[test]
fn m98_calls_strangers_and_operators_are_kept_in_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut running = start("", folder.path());
    let client = running.client();
    let sent = [AUTH_HEADER, ("x-request-id", "mine-1")];
    client.call("POST", "/mcp", &sent, &call(1, "list_categories", json!({ "x": "my secret" })).to_string());
    call_tool(&client, "knowledge-clear", json!({ "confirm": "my secret" }));
    client.call("POST", "/mcp", &[("Authorization", "Bearer guessed-token")], "{}");
    client.call("POST", "/mcp", &[("Origin", "https://evil.example")], "{}");
    stop(running);

    let kept = lines(&file);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("my secret") && !text.contains(TOKEN) && !text.contains("guessed-token"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((&kept[0]["event"], &kept[kept.len() - 1]["event"]), (&json!("start"), &json!("stop")));
    let first = &kept[1];
    for (name, value) in [
        ("kind", "call"),
        ("request_id", "mine-1"),
        ("tool", "list_categories"),
        ("trust", "TRUSTED"),
        ("via", "http"),
        ("caller", "token:operator"),
    ] {
        assert_eq!(first[name], value, "{first}");
    }
    assert!(first["duration_us"].is_u64() && first["arguments_hash"].as_str().is_some_and(|hash| hash.len() == 16));
    assert_eq!(kept[2]["tool"], "knowledge-clear");
    assert_eq!(events(&kept, "authentication_failed")[0]["by"], "127.0.0.1");
    assert_eq!(events(&kept, "origin_refused")[0]["by"], "127.0.0.1");
}

#[test]
fn m98_a_full_file_is_put_aside_and_one_that_others_moved_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut running = start(", max_bytes: 1KiB, max_rotated_files: 2", folder.path());
    let client = running.client();
    for _ in 0..20 {
        call_tool(&client, "list_categories", json!({}));
    }
    let aside = folder.path().join("audit.jsonl.1");
    wait_for("a file that was put aside", || (!lines(&aside).is_empty()).then_some(()));
    let moved = folder.path().join("moved.jsonl");
    wait_for("something to move", || fs::rename(&file, &moved).ok());
    call_tool(&client, "list_categories", json!({}));
    wait_for("a new file", || (!lines(&file).is_empty()).then_some(()));
    stop(running);
    assert!(!folder.path().join("audit.jsonl.3").exists());
    // Moving the file during a rotation leaves a gap in the numbers.
    let older = folder.path().join("audit.jsonl.2");
    for path in [&file, if aside.exists() { &aside } else { &older }] {
        assert!(fs::metadata(path).unwrap().len() <= 1024);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(lines(&file).last().unwrap()["event"], "stop");
}

#[cfg(target_os = "linux")]
#[test]
fn m98_a_full_disk_stops_nobody_and_is_noted_when_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    symlink("/dev/full", &file).unwrap();
    let mut running = start("", folder.path());
    let client = running.client();
    for _ in 0..3 {
        assert_eq!(call_tool(&client, "list_categories", json!({}))["result"]["isError"], false);
    }
    running.wait_for_log("cannot write the audit log");
    wait_for_losses(&client, 4);
    fs::remove_file(&file).unwrap();
    // No call is needed: the program retries on its own.
    let kept = wait_for("a note of what is missing", || Some(lines(&file)).filter(|kept| !kept.is_empty()));
    assert_eq!(kept[0]["event"], "entries_lost", "{kept:?}");
    assert!(kept[0]["lost"].as_u64().is_some_and(|lost| lost >= 4), "{kept:?}");
    call_tool(&client, "list_categories", json!({}));
    stop(running);
    assert!(lines(&file).iter().any(|line| line["tool"] == "list_categories"));
}

#[cfg(target_os = "linux")]
#[test]
fn m98_an_operator_can_have_changes_refused_while_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    symlink("/dev/full", &file).unwrap();
    let mut running = start(", on_failure: refuse", folder.path());
    let client = running.client();
    call_tool(&client, "list_categories", json!({}));
    running.wait_for_log("cannot write the audit log");
    let refused =
        call_tool(&client, "knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    assert_eq!(refused["error"]["data"]["error_type"], "AuditUnavailable", "{refused}");
    let chat = json!({ "model": "auto", "messages": [] }).to_string();
    assert_eq!(client.call("POST", "/v1/chat/completions", &[AUTH_HEADER], &chat).status, 503);
    assert_eq!(call_tool(&client, "list_categories", json!({}))["result"]["isError"], false);
    fs::remove_file(&file).unwrap();
    running.wait_for_log("audit log recovered");
    let served = call_tool(&client, "knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    assert!(served["result"].is_object(), "{served}");
}

#[test]
fn m98_a_file_that_cannot_be_opened_ends_the_start_where_calls_are_to_be_refused() {
    let settings = "audit: {file: no/such/folder/audit.jsonl, on_failure: refuse}";
    let ended = corbie("serve --port 0").file("corbie.yaml", settings).run("");
    let line = ended.startup_error();
    assert!(line.contains("audit.file") && line.contains("no/such/folder"), "{line}");
}

#[test]
fn m98_a_file_that_cannot_be_opened_at_the_start_stops_nobody_and_is_opened_once_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("later/audit.jsonl");
    let settings = format!(
        "server: {{auth: bearer, token: {TOKEN}}}\nknowledge: {{storage_path: '{}'}}\naudit: {{file: '{}'}}\n",
        folder.path().join("knowledge").display(),
        file.display(),
    );
    let mut running = corbie("serve --port 0").file("corbie.yaml", &settings).start();
    let client = running.client();
    running.wait_for_log("cannot open the audit log");
    assert_eq!(call_tool(&client, "list_categories", json!({}))["result"]["isError"], false);
    // The start and the call.
    wait_for_losses(&client, 2);
    let health = || client.call("GET", "/health", &[AUTH_HEADER], "").json();
    assert!(
        health()["impaired"]["audit"].as_str().is_some_and(|why| why.contains("cannot write the audit log")),
        "{}",
        health()
    );
    fs::create_dir(folder.path().join("later")).unwrap();
    running.wait_for_log("audit log recovered");
    let kept = wait_for("a note of what is missing", || Some(lines(&file)).filter(|kept| !kept.is_empty()));
    assert_eq!(kept[0]["event"], "entries_lost", "{kept:?}");
    wait_for("health", || (health()["impaired"]["audit"].is_null()).then_some(()));
    call_tool(&client, "list_categories", json!({}));
    stop(running);
    assert!(lines(&file).iter().any(|line| line["tool"] == "list_categories"));
}

#[test]
fn m98_calls_of_the_command_line_are_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    for _ in 0..2 {
        let setup = corbie("tools call list_categories").variable("CORBIE_AUDIT__FILE", file.display());
        assert_eq!(setup.run("").code, Some(0));
    }
    let kept = lines(&file);
    let told: Vec<_> = kept.iter().map(|line| (line["tool"].as_str(), line["via"].as_str())).collect();
    assert_eq!(told, [(Some("list_categories"), Some("internal")); 2], "{kept:?}");
}

#[test]
fn m98_no_name_can_forge_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let file = AuditFile::open(&path, &Audit::default()).unwrap();
    let forged = "x\"}\n{\"kind\":\"event\",\"event\":\"stop\"}\r\n\u{2028}\u{1b}[2J";
    file.record_event(&AuditEvent::new("reload").by(forged).detail(forged));
    drop(file);
    let kept = lines(&path);
    assert_eq!(kept.len(), 1);
    assert_eq!((&kept[0]["by"], &kept[0]["event"]), (&json!(forged), &json!("reload")));
    let bytes = fs::read(&path).unwrap();
    let controls = bytes.iter().filter(|byte| byte.is_ascii_control()).count();
    assert_eq!(controls, 1, "the end of the line is the only control character");
}
