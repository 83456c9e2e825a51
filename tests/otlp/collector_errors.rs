//! Collectors that are busy, reject, hang or are down: callers are not affected.

use serde_json::json;

use crate::collector::{Collector, KEY, with_collector};
use crate::process::{ProcessOutput, TestCommand, call, corbie, free_port, wait_for};

/// Makes one call and ends the program.
#[track_caller]
fn run_one_request(setup: TestCommand) -> ProcessOutput {
    let mut server = setup.start();
    let answer = server.send_and_receive(&call(1, "chat_completion", json!({ "prompt": "hello", "model": "mock" })));
    assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer}");
    server.close_stdin();
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(KEY), "{}", ended.stderr);
    ended
}

#[test]
fn a10_a_busy_collector_is_given_the_same_again() {
    let collector = Collector::start(&["503 Busy\r\nretry-after: 0\r\n", "429 Slow\r\nretry-after: 0\r\n"]);
    let mut server = collector.corbie("stdio").start();
    server.send_and_receive(&call(1, "chat_completion", json!({ "prompt": "hello", "model": "mock" })));
    let requests = wait_for("the third time", || Some(collector.requests()).filter(|requests| requests.len() >= 3));
    assert!(requests[0].body == requests[1].body && requests[1].body == requests[2].body);
    server.close_stdin();
    let ended = server.wait();
    assert!(!ended.stderr.contains("WARN"), "{}", ended.stderr);
}

#[test]
fn a10_a_collector_that_refuses_is_not_asked_again_and_the_operator_is_told() {
    let collector = Collector::start(&["401 No\r\n"]);
    let mut server = collector.corbie("stdio").start();
    server.send_and_receive(&call(1, "chat_completion", json!({ "prompt": "hello", "model": "mock" })));
    let line = server.wait_for_log("span export failed");
    assert!(line.contains("401") && line.contains("telemetry.otlp") && !line.contains(KEY), "{line}");
    server.close_stdin();
    assert_eq!(server.wait().code, Some(0));
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn a10_a_collector_that_is_not_there_keeps_nobody() {
    let ended = run_one_request(with_collector(free_port(), corbie("stdio")));
    assert_eq!(ended.stderr.matches("span export failed").count(), 1, "{}", ended.stderr);
}

#[test]
fn a10_a_collector_that_says_nothing_does_not_keep_the_program() {
    let collector = Collector::start(&["", ""]);
    // Far longer than a test waits.
    run_one_request(collector.corbie("stdio").variable("CORBIE_TELEMETRY__OTLP__TIMEOUT", "1h"));
    assert_eq!(collector.requests().len(), 1);
}

#[test]
fn p21_a_collector_at_the_metadata_of_a_cloud_is_refused_at_start() {
    let setup = corbie("stdio").variable("CORBIE_TELEMETRY__OTLP__ENDPOINT", "http://169.254.169.254");
    let ended = setup.run("");
    assert!(ended.code != Some(0) && ended.stderr.contains("telemetry.otlp.endpoint"), "{ended:?}");
}
