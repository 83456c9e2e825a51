//! Stdout contains only protocol messages.

use corbie_mcp::TrustLevel;
use serde_json::{Value, json};

use crate::fixture;
use crate::fixture::peer::{self, call};

const SPEAK: &str = "CORBIE_TEST_SPEAKS_ON_STDOUT";

/// Not a test: the program that `z14` starts.
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
    // Two threads, because with one the test harness prints the test name on the line where the output starts.
    let mut child = tokio::process::Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "stdout::a_program_that_speaks_on_stdout", "--nocapture", "--test-threads=2"])
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
        tokio::time::timeout(peer::TEST_TIMEOUT, child.wait_with_output()).await.expect("in time").expect("readable");
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
