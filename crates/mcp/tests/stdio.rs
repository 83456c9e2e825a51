//! JSON-RPC over stdio: one message per line, in any order, and no input ends the session.

mod fixture;

use std::process::Stdio as Pipe;
use std::time::Duration;

use corbie_mcp::transport::stdio;
use corbie_mcp::{Completer, Limits, Server, TrustLevel};
use fixture::peer::{self, Stdio, TEST_TIMEOUT, call};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::time::timeout;

fn start(server: &Server) -> Stdio {
    Stdio::start(server, TrustLevel::Trusted)
}

fn ping(id: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "ping" })
}

/// Sends an invalid line, returns its error, and checks that the next request is served.
async fn refused(server: &Server, line: impl AsRef<[u8]>) -> Value {
    let mut peer = start(server);
    peer.writer.write_all(line.as_ref()).await.expect("the server reads");
    peer.send("").await;
    let answer = peer.receive().await;
    assert_eq!(peer.call(&ping("next")).await["id"], "next", "the session goes on");
    answer
}

#[tokio::test]
async fn t01_each_message_is_one_line_even_with_newlines_inside() {
    let mut peer = start(&fixture::server());
    peer.send(&call(1, "echo", json!({ "text": "one\ntwo\r\nGrüße" })).to_string()).await;
    let mut line = String::new();
    timeout(TEST_TIMEOUT, peer.reader.read_line(&mut line)).await.expect("in time").expect("UTF-8");
    let answer: Value = serde_json::from_str(&line).expect("the whole message stands on the line");
    assert_eq!(answer["result"]["content"][0]["text"], "one\ntwo\r\nGrüße");
}

#[tokio::test]
async fn t01_lines_may_end_with_carriage_return_and_newline() {
    let mut peer = start(&fixture::server());
    peer.writer.write_all(format!("{}\r\n", ping(1)).as_bytes()).await.expect("the server reads");
    assert_eq!(peer.receive().await["id"], 1);
}

#[tokio::test]
async fn t02_a_slow_call_does_not_hold_up_a_later_fast_one() {
    let mut peer = start(&fixture::server());
    peer.send(&call(1, "wait", json!({ "ms": 300 })).to_string()).await;
    peer.send(&ping(2).to_string()).await;
    assert_eq!(peer.receive().await["id"], 2);
    assert_eq!(peer.receive().await["id"], 1);
}

#[tokio::test]
async fn t03_e01_invalid_json_is_answered_and_the_session_goes_on() {
    let server = fixture::server();
    for line in ["nonsense", r#"{"jsonrpc":"2.0","id":1,"method":"pi"#, "{]", "[1,", "\u{feff}{}"] {
        let answer = refused(&server, line).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)), "{line}: {answer}");
    }
}

#[tokio::test]
async fn t03_invalid_utf8_is_answered_and_the_session_goes_on() {
    let answer = refused(&fixture::server(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}").await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)), "{answer}");
}

#[tokio::test]
async fn t03_a_last_line_cut_short_is_answered_before_the_end() {
    let mut peer = start(&fixture::server());
    peer.writer.write_all(br#"{"jsonrpc":"2.0","id":1,"#).await.expect("the server reads");
    let answers = peer.end().await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["error"]["code"], -32700);
}

#[tokio::test]
async fn t04_blank_lines_are_ignored() {
    let mut peer = start(&fixture::server());
    peer.send("\n   \n\t\r\n").await;
    assert_eq!(peer.call(&ping(1)).await["id"], 1);
}

#[tokio::test]
async fn t04_s10_an_over_long_line_is_answered_and_skipped() {
    let limits = Limits { max_message_bytes: 1000, ..fixture::quick_limits() };
    let server = fixture::builder(Default::default()).limits(limits).build().expect("valid");
    let answer = refused(&server, "x".repeat(3_000_000)).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{answer}");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains("1000") && message.contains("max_message_bytes"), "{message}");
}

#[tokio::test]
async fn t04_a_line_of_exactly_the_limit_is_served() {
    let line = ping("x".repeat(100)).to_string();
    let limits = Limits { max_message_bytes: line.len(), ..fixture::quick_limits() };
    let mut peer = start(&fixture::builder(Default::default()).limits(limits).build().expect("valid"));
    peer.send(&line).await;
    assert_eq!(peer.receive().await["result"], json!({}));
}

#[tokio::test]
async fn t04_a_request_sent_byte_by_byte_is_served() {
    let mut peer = start(&fixture::server());
    for byte in format!("{}\n", ping(1)).bytes() {
        peer.writer.write_all(&[byte]).await.expect("the server reads");
        tokio::task::yield_now().await;
    }
    assert_eq!(peer.receive().await["id"], 1);
}

#[tokio::test]
async fn t06_x14_the_first_message_may_be_any_request() {
    let complete =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "G" } });
    for (method, params, member) in
        [("tools/list", json!({}), "tools"), ("completion/complete", complete, "completion"), ("ping", json!({}), "")]
    {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = start(&fixture::server()).call(&request).await;
        assert!(answer["result"].is_object() && (member.is_empty() || !answer["result"][member].is_null()), "{answer}");
    }
}

#[tokio::test]
async fn t06_one_piped_request_is_answered_before_the_end_of_input_ends_the_session() {
    let mut peer = start(&fixture::server());
    peer.send(&call(1, "wait", json!({ "ms": 50 })).to_string()).await;
    let answers = peer.end().await;
    assert_eq!(answers[0]["result"]["content"][0]["text"], "waited");
}

#[tokio::test]
async fn x12_stdio_needs_the_jsonrpc_member() {
    let server = fixture::server();
    for line in [r#"{"id":1,"method":"ping"}"#, r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#] {
        let answer = refused(&server, line).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32600)), "{line}: {answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
    }
}

#[tokio::test]
async fn m09_a_notification_is_never_answered_whatever_is_wrong_with_it() {
    let mut peer = start(&fixture::server());
    for notification in [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "no/such/method" }),
        json!({ "jsonrpc": "2.0", "method": "tools/call", "params": { "name": "no_such_tool" } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1, 2] }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": {} } }),
        json!([{ "jsonrpc": "2.0", "method": "tools/cancel", "params": { "taskId": "unknown" } }]),
    ] {
        peer.send(&notification.to_string()).await;
    }
    peer.send(&ping(1).to_string()).await;
    let answers = peer.end().await;
    assert_eq!(answers, [json!({ "jsonrpc": "2.0", "id": 1, "result": {} })]);
}

#[tokio::test]
async fn m09_a_response_is_never_answered_even_one_nobody_waits_for() {
    let mut peer = start(&fixture::server());
    peer.send(r#"{"jsonrpc":"2.0","id":"unasked","result":{}}"#).await;
    peer.send(r#"{"jsonrpc":"2.0","id":"unasked","error":{"code":-1,"message":"no"}}"#).await;
    assert!(peer.end().await.is_empty());
}

/// JSON-RPC 2.0, section 5: an error response has a null ID if the ID of the request could not be read.
#[tokio::test]
async fn m09_an_error_response_with_a_null_id_is_not_answered() {
    let mut peer = start(&fixture::server());
    peer.send(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#).await;
    let answers = peer.end().await;
    assert!(answers.is_empty(), "two peers that answer errors with errors never stop: {answers:?}");
}

#[tokio::test]
async fn e05_a_completer_that_panics_is_an_internal_error_and_the_session_goes_on() {
    let completer = Completer::new(|_, _| panic!("secret detail of the panic"));
    let server = fixture::builder(Default::default()).completion("greet", "name", completer).build().expect("valid");
    let params =
        json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "name", "value": "G" } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": params });
    let answer = refused(&server, request.to_string()).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

/// Output of a process that serves its stdin and stdout, without the output of the test harness.
async fn run_process(input: &[Value]) -> (Vec<String>, String) {
    let mut child = tokio::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "serves_its_own_streams_when_asked_to", "--nocapture", "--test-threads=2"])
        .env(SERVE, "1")
        .stdin(Pipe::piped())
        .stdout(Pipe::piped())
        .stderr(Pipe::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("piped");
    for message in input {
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }
    drop(stdin);
    let output = timeout(TEST_TIMEOUT, child.wait_with_output()).await.expect("ended in time").expect("ran");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let is_harness = |line: &&str| line.is_empty() || line.starts_with("running ") || line.starts_with("test ");
    let lines = stdout.lines().filter(|line| !is_harness(line)).map(str::to_owned).collect();
    (lines, String::from_utf8_lossy(&output.stderr).into_owned())
}

const SERVE: &str = "CORBIE_TEST_SERVES_STDIO";

/// The process that [`run_process`] starts; does nothing without its variable.
#[tokio::test]
async fn serves_its_own_streams_when_asked_to() {
    if std::env::var_os(SERVE).is_some() {
        stdio::serve(&fixture::server(), TrustLevel::Trusted).await.expect("served");
    }
}

#[tokio::test]
async fn t05_the_inspectors_conversation_works_over_a_process_own_streams() {
    let client = json!({ "name": "inspector-client", "version": "0.17.2" });
    let open = json!({ "protocolVersion": "2025-11-25", "capabilities": { "sampling": {}, "roots": { "listChanged": true } }, "clientInfo": client });
    let (lines, _) = run_process(&[
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": open }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "debug" } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": { "progressToken": 2 } } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "hi" }, "_meta": { "progressToken": 3 } } }),
    ])
    .await;
    let answers: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-11-25");
    assert!(answers[2]["result"]["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    assert_eq!(answers[3]["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn z14_a_panic_writes_nothing_on_stdout_but_its_answer() {
    let (lines, stderr) = run_process(&[call(1, "panic", json!({})), ping(2)]).await;
    let answers: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("on stdout: {line}"))).collect();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [1, 2]);
    assert!(stderr.contains("secret detail of the panic"), "the operator sees it: {stderr}");
}

#[tokio::test]
async fn x27_nothing_is_sent_unasked_to_a_silent_peer() {
    let mut peer = start(&fixture::server());
    assert!(peer.silence(Duration::from_millis(300)).await);
}

#[tokio::test]
async fn a07_the_end_of_input_ends_streams_of_news_at_once() {
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    let listen = peer::modern(7, "subscriptions/listen", json!({ "notifications": {} }), json!({}));
    assert_eq!(peer.call(&listen).await["method"], "notifications/subscriptions/acknowledged");
    let began = tokio::time::Instant::now();
    let last = peer.end().await.pop().expect("a closing result");
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert!(began.elapsed() < fixture::quick_limits().shutdown_grace, "it did not wait for the grace");
}

#[tokio::test]
async fn s10_a_client_may_send_much_before_it_reads() {
    let server = fixture::server();
    // Neither direction can buffer a whole message.
    let ((ours, theirs), text) = (tokio::io::duplex(16 * 1024), "x".repeat(200_000));
    let (reader, writer) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { stdio::serve_streams(&server, reader, writer, TrustLevel::Trusted).await });
    let (reader, mut writer) = tokio::io::split(ours);
    for id in 0..3 {
        let request = format!("{}\n", call(id, "echo", json!({ "text": text })));
        timeout(TEST_TIMEOUT, writer.write_all(request.as_bytes())).await.expect("the server reads on").expect("open");
    }
    let mut lines = tokio::io::BufReader::new(reader).lines();
    for id in 0..3 {
        let line = timeout(TEST_TIMEOUT, lines.next_line()).await.expect("in time").expect("open").expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&answer["id"], answer["result"]["content"][0]["text"].as_str()), (&json!(id), Some(text.as_str())));
    }
    drop((writer, lines));
    timeout(TEST_TIMEOUT, serving).await.expect("in time").expect("no panic").expect("a clean end");
}
