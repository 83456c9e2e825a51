//! HTTP over Unix sockets.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::json;

use crate::curl::curl;
use crate::process::{TestCommand, call, corbie, report_skip};

const TOKEN: &str = "98c1eb4ee93476743763878fcb96a25fbc9a1750";

fn command_on_socket(more: &str) -> (TestCommand, String) {
    let program = corbie("serve");
    let path = program.folder().join("corbie.sock").to_str().unwrap().to_owned();
    let yaml = format!("server:\n  listen: [\"unix:{path}\"]\n{more}");
    (program.file("corbie.yaml", &yaml), path)
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn s06_x16_curl_calls_over_a_socket_file() {
    let (program, path) = command_on_socket("");
    let mut server = program.start();
    let line = server.wait_for_log("listening");
    assert!(line.contains(&format!("unix:{path}")) && line.contains("trusted"), "{line}");
    assert_eq!(mode(&path), 0o600);
    let body = call(1, "inspect_server", json!({})).to_string();
    let over = ["--unix-socket", &path, "-H", "content-type: application/json"];
    let posted = [&over[..], &["-d", &body, "http://any.name.will.do/mcp"]].concat();
    let Some((answer, status)) = curl(&posted) else { return report_skip("this machine has no curl") };
    assert_eq!(status, 200, "{answer}");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["trust"], "TRUSTED");
    for (path, status) in [("health", 200), ("metrics", 200), ("v1/models", 200), ("nowhere", 404)] {
        let (answer, found) = curl(&[&over[..], &[&format!("http://x/{path}")]].concat()).unwrap();
        assert_eq!(found, status, "{path}: {answer}");
    }
    let page = ["-H", "origin: https://evil.example", "http://x/health"];
    assert_eq!(curl(&[&over[..], &page].concat()).unwrap().1, 403);

    server.terminate();
    assert_eq!(server.wait().code, Some(0));
    assert!(!Path::new(&path).exists(), "the file is gone at the end");
}

#[test]
fn s05_a_socket_file_asks_for_a_token_where_the_settings_say_so() {
    let (program, path) = command_on_socket("  auth: bearer\n  socket_mode: \"0660\"\n");
    let mut server = program.variable("MCP_API_KEY", TOKEN).start();
    server.wait_for_log("listening");
    assert_eq!(mode(&path), 0o660);
    let get = ["--unix-socket", &path, "http://x/metrics"];
    let Some((_, status)) = curl(&get) else { return report_skip("this machine has no curl") };
    assert_eq!(status, 401);
    let token = format!("authorization: Bearer {TOKEN}");
    let (_, status) = curl(&[&["-H", &token], &get[..]].concat()).unwrap();
    assert_eq!(status, 200);
}

#[test]
fn s06_a_socket_file_of_a_killed_process_is_replaced_and_a_living_one_is_told() {
    let (program, path) = command_on_socket("");
    drop(UnixListener::bind(&path).unwrap());
    let mut server = program.start();
    server.wait_for_log("listening");

    let yaml = format!("server: {{listen: [\"unix:{path}\"]}}\n");
    let ended = corbie("serve").file("corbie.yaml", &yaml).run("");
    assert_eq!(ended.code, Some(1));
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.contains("server.listen") && line.contains("another process is listening"), "{line}");
    assert!(Path::new(&path).exists());

    let ended = corbie("serve").file("corbie.yaml", "server: {listen: [\"unix:/no/such/folder/s\"]}\n").run("");
    let line = ended.stderr.lines().last().unwrap_or_default();
    assert!(line.contains("/no/such/folder") && line.contains("does not exist"), "{line}");
}
