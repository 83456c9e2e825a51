//! Progress notifications while a document is processed, on every open stream.

use serde_json::{Value, json};

use crate::fixture::{CallTransport, KnowledgeServer};
use crate::process::{call, request, wait_for};
use crate::sample_files;
use crate::websocket::{WebSocket, WebSocketFrame};

/// Enough pages for progress notifications.
fn ten_page_pdf() -> Vec<u8> {
    let texts: Vec<String> =
        (0..10).map(|page| format!("Page number {page} is about the crows of the harbour town.")).collect();
    sample_files::pdf_with_pages(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    request(0, "initialize", params)
}

fn is_progress(message: &Value) -> bool {
    message["method"] == "notifications/progress"
}

/// Progress of one token increases monotonically and ends at the total.
#[track_caller]
fn assert_progress(told: &[Value], token: &Value) {
    assert!(!told.is_empty(), "nothing was told");
    let mut last = -1.0;
    for message in told {
        let params = &message["params"];
        assert_eq!(params["progressToken"], *token, "{message}");
        assert_eq!(params["total"].as_f64(), Some(1.0), "z16: {message}");
        let progress = params["progress"].as_f64().unwrap();
        assert!(progress > last && progress <= 1.0, "{last} before {message}");
        last = progress;
        assert!(params["message"].as_str().is_some_and(|text| !text.is_empty()), "{message}");
    }
}

#[test]
fn k116_x09_x14_over_stdio_the_task_id_is_the_token_with_initialize_and_without() {
    for opens in [true, false] {
        let mut corbie = KnowledgeServer::start();
        if opens {
            corbie.running.send_and_receive(&initialize());
        }
        let path = corbie.file("pages.pdf", ten_page_pdf());
        let task = corbie.start_task(&path);
        corbie.wait_for_task(&task);
        wait_for("the end to be told", || {
            corbie.status();
            let told: Vec<Value> =
                corbie.notifications.iter().filter(|message| is_progress(message)).cloned().collect();
            let is_over = told.last().is_some_and(|last| last["params"]["progress"] == 1.0);
            is_over.then(|| assert_progress(&told, &json!(task)))
        });
    }
}

#[test]
fn k116_x09_the_token_of_the_client_goes_before_the_task_id() {
    let mut corbie = KnowledgeServer::start();
    corbie.running.send_and_receive(&initialize());
    let path = corbie.file("pages.pdf", ten_page_pdf());
    let mut params = json!({ "name": "knowledge-add", "arguments": { "file_path": path, "async": false } });
    params["_meta"] = json!({ "progressToken": "mine" });
    let answer = corbie.request("tools/call", params);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let told: Vec<Value> = corbie.notifications.drain(..).filter(is_progress).collect();
    assert_progress(&told, &json!("mine"));
    // The same for a call that was answered long before.
    let path =
        corbie.file("more.pdf", sample_files::pdf_with_pages(&["One page of text about herons.", "And another one."]));
    let mut params = json!({ "name": "knowledge-add", "arguments": { "file_path": path } });
    params["_meta"] = json!({ "progressToken": 7 });
    corbie.request("tools/call", params);
    wait_for("progress", || {
        corbie.status();
        let told: Vec<Value> = corbie.notifications.iter().filter(|message| is_progress(message)).cloned().collect();
        (!told.is_empty()).then(|| assert_progress(&told, &json!(7)))
    });
}

#[test]
fn x09_it_can_be_switched_off() {
    let mut corbie = KnowledgeServer::with(&[("NOTIFY_PROGRESS", "false")]);
    corbie.running.send_and_receive(&initialize());
    let path = corbie.file("pages.pdf", ten_page_pdf());
    let task = corbie.start_task(&path);
    corbie.wait_for_task(&task);
    corbie.status();
    assert!(!corbie.notifications.iter().any(is_progress), "{:?}", corbie.notifications);
}

#[test]
fn k116_x09_over_a_websocket() {
    let corbie = KnowledgeServer::start();
    let path = corbie.file("pages.pdf", ten_page_pdf());
    let mut socket = WebSocket::connect(corbie.client);
    socket.send(&initialize());
    socket.message();
    socket.send(&call(1, "knowledge-add", json!({ "file_path": path })));
    let (mut told, mut task) = (Vec::new(), Value::Null);
    loop {
        let WebSocketFrame::Message(message) = socket.receive().unwrap() else { panic!("it was closed") };
        if message["id"] == 1 {
            task = crate::fixture::tool_json(&message["result"])["task_id"].clone();
        } else if is_progress(&message) {
            let is_last = message["params"]["progress"] == 1.0;
            told.push(message);
            if is_last {
                break;
            }
        }
    }
    assert_progress(&told, &task);
}

#[test]
fn k116_x09_over_http_on_the_event_stream_of_the_session() {
    let corbie = KnowledgeServer::start();
    let path = corbie.file("pages.pdf", ten_page_pdf());
    let opened = corbie.client.post("/mcp", &initialize());
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let of_session = ("Mcp-Session-Id", session.as_str());
    let mut stream = corbie.client.open("GET", "/mcp", &[("Accept", "text/event-stream"), of_session], "").unwrap();
    let begin = call(1, "knowledge-add", json!({ "file_path": path })).to_string();
    let both = ("Accept", "application/json, text/event-stream");
    let answer = corbie.client.call("POST", "/mcp", &[both, of_session], &begin);
    let task = answer.body.split("task_id").nth(1).unwrap_or_else(|| panic!("{answer:?}"));
    let task: String = task.chars().skip_while(|letter| !letter.is_ascii_hexdigit()).take(36).collect();
    let mut told = Vec::new();
    while let Some(message) = stream.read_event().unwrap() {
        if is_progress(&message) {
            let is_last = message["params"]["progress"] == 1.0;
            told.push(message);
            if is_last {
                break;
            }
        }
    }
    assert_progress(&told, &json!(task));
}

#[test]
fn k116_pages_are_counted_while_they_are_read() {
    let mut corbie = KnowledgeServer::start();
    corbie.running.send_and_receive(&initialize());
    // OCR of a page is slow enough for progress notifications.
    use crate::pictures::{IMAGE_TEXT, PageContent, pdf};
    let path = corbie.file(
        "scan.pdf",
        pdf(&[PageContent::Scan(IMAGE_TEXT), PageContent::Scan(IMAGE_TEXT), PageContent::Scan(IMAGE_TEXT)]),
    );
    let mut params = json!({ "name": "knowledge-add", "arguments": { "file_path": path, "async": false } });
    params["_meta"] = json!({ "progressToken": "scan" });
    corbie.request("tools/call", params);
    let told: Vec<&str> = corbie
        .notifications
        .iter()
        .filter(|message| is_progress(message))
        .filter_map(|message| message["params"]["message"].as_str())
        .collect();
    assert!(told.iter().any(|step| step.starts_with("Processing page ") && step.ends_with(" of 3")), "{told:?}");
}

#[test]
fn m43_x09_the_flag_is_published_as_the_specification_has_it() {
    let mut corbie = KnowledgeServer::start();
    corbie.transport = CallTransport::Http;
    let answer = corbie.request("initialize", initialize()["params"].clone());
    assert_eq!(answer["result"]["capabilities"]["tools"]["supportsProgress"], false, "{answer}");
}
