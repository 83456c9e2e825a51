//! Trace propagation to providers and classification servers.

use serde_json::{Value, json};

use crate::fake_classifier::{Behaviour, FakeClassifier, Style};
use crate::http::{HttpClient, HttpResponse};
use crate::process::{call, corbie};
use crate::upstream::FakeUpstream;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn post_with_trace(client: &HttpClient, path: &str, body: &Value) -> HttpResponse {
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=1"), ("baggage", "user=secret")];
    let reply = client.call("POST", path, &headers, &body.to_string());
    assert_eq!(reply.status, 200, "{reply:?}");
    reply
}

/// The same trace, and a span different from the caller's.
#[track_caller]
fn assert_propagated(parent: &Value) {
    let parent = parent.as_str().unwrap_or_else(|| panic!("{parent} is no text"));
    assert!(parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-01"), "{parent}");
    assert!(!parent.contains("b7ad6b7169203331"), "{parent}");
}

#[test]
fn m98_a_trace_goes_on_to_providers_and_baggage_does_not() {
    let upstream = FakeUpstream::start();
    let mut running = upstream.corbie("serve --port 0").start();
    let client = running.client();
    let chat = json!({ "model": "echo-large", "messages": [{ "role": "user", "content": "hi" }] });
    post_with_trace(&client, "/v1/chat/completions", &chat);
    let mut streamed = chat.clone();
    streamed["stream"] = true.into();
    post_with_trace(&client, "/v1/chat/completions", &streamed);
    let prompt = json!({ "prompt": "hi", "model": "echo-large" });
    post_with_trace(&client, "/mcp", &call(1, "chat_completion", prompt.clone()));
    let mut with_meta = call(1, "chat_completion", prompt.clone());
    with_meta["params"]["_meta"] = json!({ "traceparent": PARENT, "tracestate": "vendor=1", "baggage": "user=secret" });
    assert_eq!(client.post("/mcp", &with_meta).status, 200);

    let asked = |upstream: &FakeUpstream| -> Vec<Value> {
        let is_for = |request: &Value| request["path"].as_str().is_some_and(|path| path.contains("completions"));
        upstream.requests().into_iter().filter(is_for).collect()
    };
    let requests = asked(&upstream);
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_propagated(&request["headers"]["traceparent"]);
        assert_eq!(request["headers"]["tracestate"], "vendor=1");
        assert!(!request.to_string().contains("baggage"), "{request}");
    }
    client.post("/mcp", &call(1, "chat_completion", prompt));
    let last = asked(&upstream).pop().unwrap();
    assert_eq!(last["headers"]["traceparent"], Value::Null, "nobody follows this one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m98_a_trace_goes_on_to_servers_that_are_asked_about_prompts() {
    for (style, transport) in [(Style::Rest, "http"), (Style::JsonRpc, "streamable-http")] {
        let fake = FakeClassifier::start(Behaviour { style, ..Behaviour::default() }).await;
        let url = fake.url();
        let settings = format!("classification: {{type: mcp, mcp_server: {{url: '{url}', transport: {transport}}}}}\n");
        let asked = tokio::task::spawn_blocking(move || {
            let mut running = corbie("serve --port 0").file("corbie.yaml", &settings).start();
            running.wait_for_log("external classifier is ready");
            post_with_trace(&running.client(), "/mcp", &call(1, "explain_route", json!({ "prompt": "is that legal" })));
        });
        asked.await.unwrap();
        let (header, meta) = fake.take_traces().pop().expect("it was asked");
        assert_propagated(&json!(header));
        if style == Style::JsonRpc {
            assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!(header), &json!("vendor=1")));
            assert_eq!(meta["baggage"], Value::Null);
        }
    }
}
