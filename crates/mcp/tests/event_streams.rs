//! Server-sent events: replies with notifications before the answer, and the notification stream.

mod fixture;

use std::sync::Arc;

use corbie_mcp::transport::http::Options;
use corbie_mcp::{Event, Limits, Server, Tool};
use fixture::peer::{self, BOTH, EventStream, HttpReply, JSON, call, http, initialize, post, text_of};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

async fn listen(server: &Server) -> u16 {
    fixture::listen(server, Options::default()).await
}

/// Posts as a client that accepts JSON and event streams.
async fn post_both(port: u16, body: &Value) -> HttpReply {
    http(port, "POST", "/mcp", &[JSON, BOTH], &body.to_string()).await
}

fn with_progress(mut request: Value) -> Value {
    request["params"]["_meta"] = json!({ "progressToken": "token" });
    request
}

fn late_tool() -> Tool {
    Tool::builder("late").description("Came later").no_input().run(async |_, _| "late").expect("valid")
}

async fn open_news(server: &Server) -> EventStream {
    let news = EventStream::open(listen(server).await, "GET", &[EVENTS], "").await;
    assert_eq!((news.status, news.headers["content-type"].as_str()), (200, "text/event-stream"));
    news
}

#[tokio::test]
async fn t12_a_result_that_comes_first_is_plain_json() {
    let port = listen(&fixture::server()).await;
    for accept in [BOTH, EVENTS] {
        let body = call(1, "echo", json!({ "text": "hi" })).to_string();
        let reply = http(port, "POST", "/mcp", &[JSON, accept], &body).await;
        assert_eq!(reply.headers["content-type"], "application/json", "{accept:?}");
        assert_eq!(text_of(&reply.json()), "hi");
    }
}

#[tokio::test]
async fn t12_a_notification_that_comes_first_makes_an_event_stream_that_ends_with_the_answer() {
    let port = listen(&fixture::server()).await;
    let reply = post_both(port, &with_progress(call(1, "steps", json!({})))).await;
    assert!(reply.status == 200 && reply.is_stream(), "{reply:?}");
    let events = reply.events();
    let (answer, before) = events.split_last().expect("events");
    assert_eq!((&answer["id"], text_of(answer)), (&json!(1), "done"));
    let progress: Vec<_> = before
        .iter()
        .filter(|event| event["method"] == "notifications/progress")
        .map(|event| (event["params"]["progressToken"].clone(), event["params"]["progress"].clone()))
        .collect();
    assert_eq!(progress, [1, 2, 3].map(|step| (json!("token"), json!(step))));
}

#[tokio::test]
async fn t12_a_server_request_makes_an_event_stream_and_is_answered_by_another_post() {
    let port = listen(&fixture::server()).await;
    let opened = post(port, &initialize("2025-11-25", json!({ "elicitation": {} }))).await;
    let session = ("mcp-session-id", opened.headers["mcp-session-id"].as_str());
    let ask = call(1, "ask_name", json!({})).to_string();
    let mut stream = EventStream::open(port, "POST", &[JSON, BOTH, session], &ask).await;
    let question = stream.next().await.expect("a question");
    assert_eq!(question["method"], "elicitation/create");

    let content = json!({ "action": "accept", "content": { "name": "Ada" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content }).to_string();
    assert_eq!(http(port, "POST", "/mcp", &[JSON, session], &answer).await.status, 202);
    assert_eq!(text_of(&stream.next().await.expect("the answer")), "Accept Ada");
    assert_eq!(stream.next().await, None, "the answer ends the stream");
}

#[tokio::test]
async fn t12_a_tool_that_must_ask_says_so_to_a_client_that_takes_json_only() {
    let port = listen(&fixture::server()).await;
    let opened = post(port, &initialize("2025-11-25", json!({ "elicitation": {} }))).await;
    let session = ("mcp-session-id", opened.headers["mcp-session-id"].as_str());
    let reply = http(port, "POST", "/mcp", &[JSON, session], &call(1, "ask_name", json!({})).to_string()).await;
    let answer = reply.json();
    assert_eq!(answer["result"]["isError"], true);
    assert!(text_of(&answer).contains("text/event-stream"), "{answer}");
}

#[tokio::test]
async fn t12_proxies_are_told_to_pass_events_on_at_once() {
    let port = listen(&fixture::server()).await;
    let reply = post_both(port, &with_progress(call(1, "steps", json!({})))).await;
    assert_eq!(reply.headers["cache-control"], "no-cache");
    assert_eq!(reply.headers["x-accel-buffering"], "no");
}

#[tokio::test]
async fn t13_the_news_stream_tells_of_changed_lists() {
    let server = fixture::server();
    let mut news = open_news(&server).await;
    server.register(late_tool()).expect("new");
    assert_eq!(news.next().await.expect("news")["method"], "notifications/tools/list_changed");
    server.unregister("late");
    assert_eq!(news.next().await.expect("news")["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn t13_the_news_stream_carries_the_progress_of_work_nobody_waits_for() {
    let server = fixture::server();
    let mut news = open_news(&server).await;
    let params = json!({ "progressToken": "task-1", "progress": 0.5, "total": 1.0 });
    server.publish(Event::Other {
        method: "notifications/progress".into(),
        params: Arc::new(params.clone()),
        owner: None,
    });
    let told = news.next().await.expect("news");
    assert_eq!((&told["method"], &told["params"]), (&json!("notifications/progress"), &params));
}

#[tokio::test]
async fn t13_without_the_accept_header_get_is_405_and_names_what_is_allowed() {
    let port = listen(&fixture::server()).await;
    for headers in [&[][..], &[("accept", "*/*")], &[("accept", "application/json")]] {
        let reply = http(port, "GET", "/mcp", headers, "").await;
        assert_eq!((reply.status, reply.headers["allow"].as_str()), (405, "POST"), "{headers:?}");
    }
}

#[tokio::test]
async fn t13_a_quiet_stream_is_kept_alive_with_comments() {
    let port = listen(&fixture::server()).await;
    let mut stream = BufReader::new(peer::connect(port).await);
    let get = format!("GET /mcp HTTP/1.1\r\nhost: localhost:{port}\r\naccept: text/event-stream\r\n\r\n");
    stream.write_all(get.as_bytes()).await.expect("writable");
    let mut comments = 0;
    while comments < 2 {
        let mut line = String::new();
        tokio::time::timeout(peer::TEST_TIMEOUT, stream.read_line(&mut line))
            .await
            .expect("in time")
            .expect("readable");
        assert!(!line.is_empty(), "the stream ended");
        comments += usize::from(line == ":\n");
    }
}

#[tokio::test]
async fn t13_the_stream_ends_when_the_server_drains() {
    let server = fixture::server();
    let mut news = open_news(&server).await;
    server.drain();
    assert_eq!(news.next().await, None);
}

#[tokio::test]
async fn t13_s10_streams_are_bounded_and_a_closed_one_makes_room() {
    let limits = Limits { max_listeners: 1, ..fixture::quick_limits() };
    let server = fixture::builder(Default::default()).limits(limits).build().expect("valid");
    let port = listen(&server).await;
    let first = EventStream::open(port, "GET", &[EVENTS], "").await;
    let second = EventStream::open(port, "GET", &[EVENTS], "").await;
    assert_eq!((first.status, second.status), (200, 429));
    drop(first);
    peer::eventually(async || EventStream::open(port, "GET", &[EVENTS], "").await.status == 200).await;
}
