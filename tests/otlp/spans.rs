//! Contents of spans, and data that must not be in them.

use corbie::telemetry::otlp::proto::{ExportTraceServiceRequest, Span, SpanKind, StatusCode};
use prost::Message;
use serde_json::json;

use crate::collector::{Collector, KEY, attribute, json_server};
use crate::process::{call, wait_for};
use crate::upstream::local_model_server;

/// Marker that reveals prompt text in a span.
const PROMPT: &str = "my-diary-of-may-the-fourth";

#[track_caller]
fn span_named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no `{name}` in {names:?}"))
}

#[test]
fn s15_a_chat_is_told_with_its_tokens_and_without_a_word_of_it() {
    let collector = Collector::start(&[]);
    let mut server = collector.corbie("stdio").variable("CORBIE_TELEMETRY__OTLP__SERVICE_NAME", "router-1").start();
    let arguments = json!({ "prompt": format!("what is in {PROMPT}"), "model": "mock" });
    let answer = server.send_and_receive(&call(1, "chat_completion", arguments));
    assert!(answer.to_string().contains(PROMPT), "the mock repeats what it was asked: {answer}");
    server.close_stdin();
    assert_eq!(server.wait().code, Some(0));

    let spans = collector.spans();
    let chat = span_named(&spans, "chat mock");
    assert_eq!(chat.kind(), SpanKind::Client);
    let expected = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "mock"),
        ("gen_ai.request.model", "mock"),
        ("gen_ai.response.model", "mock"),
        ("gen_ai.response.finish_reasons", "[stop]"),
    ];
    for (key, value) in expected {
        assert_eq!(attribute(chat, key).as_deref(), Some(value), "{key}");
    }
    for key in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        let tokens: u64 = attribute(chat, key).unwrap().parse().unwrap();
        assert!(tokens > 0, "{key}");
    }
    assert!(chat.status.is_none() && attribute(chat, "error.type").is_none());
    assert!(chat.start_time_unix_nano > 0 && chat.end_time_unix_nano >= chat.start_time_unix_nano);

    let route = span_named(&spans, "route");
    assert_eq!((&chat.parent_span_id, &chat.trace_id), (&route.span_id, &route.trace_id));
    assert_eq!(attribute(route, "corbie.attempts").as_deref(), Some("1"));
    for span in &spans {
        let known = span.parent_span_id.is_empty() || spans.iter().any(|other| other.span_id == span.parent_span_id);
        assert!(known, "the parent of `{}` was told", span.name);
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
    }

    for request in collector.requests() {
        assert!(request.head.starts_with("post /v1/traces http/1.1\r\n"), "{}", request.head);
        assert!(request.head.contains("\r\ncontent-type: application/x-protobuf\r\n"), "{}", request.head);
        assert!(request.head.contains(&format!("\r\nx-api-key: {KEY}\r\n")), "{}", request.head);
        let body = String::from_utf8_lossy(&request.body);
        assert!(!body.contains(PROMPT) && !body.contains(KEY), "{body}");
        let told = ExportTraceServiceRequest::decode(&*request.body).unwrap();
        let resource = format!("{:?}", told.resource_spans[0].resource);
        assert!(resource.contains("service.name") && resource.contains("router-1"), "{resource}");
    }
}

#[test]
fn s15_a_stream_is_told_when_it_has_ended_and_where_it_came_from() {
    let (port, _closed) = local_model_server(PROMPT, true);
    let collector = Collector::start(&[]);
    let base = format!("http://127.0.0.1:{port}/v1");
    let mut server = collector.corbie("serve --port 0").variable("CORBIE_PROVIDERS__LOCAL__BASE_URL", base).start();
    let body = json!({ "model": "local/small", "stream": true, "messages": [{ "role": "user", "content": PROMPT }] });
    let reply = server.client().post("/v1/chat/completions", &body);
    assert!(reply.status == 200, "{reply:?}");

    // While the program keeps running, as in normal operation.
    let is_told = || collector.spans().into_iter().find(|span| span.name == "chat small");
    let chat = wait_for("the span of the stream", is_told);
    let expected = [
        ("gen_ai.provider.name", "local"),
        ("gen_ai.request.model", "small"),
        ("gen_ai.response.model", "small"),
        ("gen_ai.response.finish_reasons", "[stop]"),
        ("server.address", "127.0.0.1"),
        ("server.port", &port.to_string()),
    ];
    for (key, value) in expected {
        assert_eq!(attribute(&chat, key).as_deref(), Some(value), "{key}");
    }
    let bodies: Vec<u8> = collector.requests().into_iter().flat_map(|request| request.body).collect();
    assert!(!String::from_utf8_lossy(&bodies).contains(PROMPT));
}

#[test]
fn s15_whole_answers_and_vectors_are_told_as_their_provider_counts_them() {
    let port = provider_with_usage();
    let collector = Collector::start(&[]);
    let base = format!("http://127.0.0.1:{port}/v1");
    let mut server = collector.corbie("serve --port 0").variable("CORBIE_PROVIDERS__LOCAL__BASE_URL", base).start();
    let client = server.client();
    let messages = json!([{ "role": "user", "content": PROMPT }]);
    let answer = client.post("/v1/chat/completions", &json!({ "model": "local/small", "messages": messages }));
    assert!(answer.status == 200 && answer.body.contains(PROMPT), "{answer:?}");
    let answer = client.post("/v1/embeddings", &json!({ "model": "local/small-embed", "input": PROMPT }));
    assert_eq!(answer.status, 200, "{answer:?}");
    server.terminate();
    server.wait();

    let spans = collector.spans();
    let expected: [(&str, &[(&str, &str)]); 2] = [
        (
            "chat small",
            &[
                ("gen_ai.response.model", "small-2026"),
                ("gen_ai.response.finish_reasons", "[length, other]"),
                ("gen_ai.usage.input_tokens", "7"),
                ("gen_ai.usage.output_tokens", "11"),
            ],
        ),
        ("embeddings small-embed", &[("gen_ai.operation.name", "embeddings"), ("gen_ai.usage.input_tokens", "5")]),
    ];
    for (name, attributes) in expected {
        let span = span_named(&spans, name);
        assert_eq!(span.kind(), SpanKind::Client);
        for (key, value) in attributes {
            assert_eq!(attribute(span, key).as_deref(), Some(*value), "{key} of {name}");
        }
    }
    assert_eq!(attribute(span_named(&spans, "embeddings small-embed"), "gen_ai.usage.output_tokens"), None);
    let bodies: Vec<u8> = collector.requests().into_iter().flat_map(|request| request.body).collect();
    assert!(!String::from_utf8_lossy(&bodies).contains(PROMPT));
}

/// A provider that reports token counts and a finish reason that repeats the prompt.
fn provider_with_usage() -> u16 {
    let choice =
        |reason| json!({ "index": 0, "message": { "role": "assistant", "content": PROMPT }, "finish_reason": reason });
    let chat = json!({
        "id": "1", "object": "chat.completion", "created": 1, "model": "small-2026",
        "choices": [choice("length"), choice(PROMPT)],
        "usage": { "prompt_tokens": 7, "completion_tokens": 11, "total_tokens": 18 },
    });
    let vectors = json!({
        "object": "list", "model": "small-embed", "data": [{ "object": "embedding", "index": 0, "embedding": [1.0] }],
        "usage": { "prompt_tokens": 5, "total_tokens": 5 },
    });
    let models = json!({ "object": "list", "data": [{ "id": "small" }, { "id": "small-embed" }] });
    json_server(move |head| match head {
        _ if head.starts_with("post /v1/chat/completions") => chat.to_string(),
        _ if head.starts_with("post /v1/embeddings") => vectors.to_string(),
        _ => models.to_string(),
    })
}

#[test]
fn p15_a_try_that_fails_is_told_as_one() {
    let collector = Collector::start(&[]);
    let mut server = collector.corbie("stdio").start();
    server.send_and_receive(&call(
        1,
        "chat_completion",
        json!({ "prompt": PROMPT, "model": "mock/mock-error-authentication" }),
    ));
    server.close_stdin();
    assert_eq!(server.wait().code, Some(0));
    let spans = collector.spans();
    let chat = span_named(&spans, "chat mock-error-authentication");
    assert_eq!(attribute(chat, "error.type").as_deref(), Some("authentication"));
    assert_eq!(chat.status.as_ref().unwrap().code(), StatusCode::Error);
    assert_eq!(span_named(&spans, "route").status.as_ref().unwrap().code(), StatusCode::Error);
}

#[test]
fn m98_a_request_is_told_below_its_callers_span_and_has_everything_below_it() {
    let collector = Collector::start(&[]);
    // An incoming trace context carries its own sampling decision.
    let setup = collector.corbie("serve --port 0").variable("CORBIE_TELEMETRY__OTLP__SAMPLE_RATIO", "0");
    let mut server = setup.start();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let client = server.client();
    let body = call(1, "chat_completion", json!({ "prompt": PROMPT, "model": "mock" })).to_string();
    for (flags, id) in [("01", "followed"), ("00", "passed-over")] {
        let headers = [("traceparent", &*format!("00-{trace}-{parent}-{flags}")), ("x-request-id", id)];
        let headers = [&headers[..], &[("accept", "application/json, text/event-stream")]].concat();
        assert_eq!(client.call("POST", "/mcp", &headers, &body).status, 200);
    }
    server.terminate();
    let ended = server.wait();
    assert!(ended.stderr.contains(&format!("trace_id={trace}")) && !ended.stderr.contains(parent), "{}", ended.stderr);

    let spans = collector.spans();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["chat mock", "route", "tools/call"], "of one call, the innermost first");
    let [chat, route, request] = &spans[..] else { unreachable!() };
    assert_eq!((hex(&request.trace_id).as_str(), hex(&request.parent_span_id).as_str()), (trace, parent));
    assert_eq!(request.kind(), SpanKind::Server);
    for (key, value) in [("mcp.method.name", "tools/call"), ("corbie.request_id", "followed"), ("corbie.via", "http")] {
        assert_eq!(attribute(request, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!((&route.parent_span_id, &chat.parent_span_id), (&request.span_id, &route.span_id));
    assert!(route.trace_id == request.trace_id && chat.trace_id == request.trace_id);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn s15_a_search_is_told_without_what_was_searched_for() {
    let collector = Collector::start(&[]);
    let mut server = collector.corbie("stdio").start();
    server.send_and_receive(&call(1, "knowledge-search", json!({ "query": PROMPT })));
    server.close_stdin();
    assert_eq!(server.wait().code, Some(0));
    let spans = collector.spans();
    let search = span_named(&spans, "retrieval default");
    assert_eq!(attribute(search, "gen_ai.data_source.id").as_deref(), Some("default"));
    let bodies: Vec<u8> = collector.requests().into_iter().flat_map(|request| request.body).collect();
    assert!(!String::from_utf8_lossy(&bodies).contains(PROMPT));
}

#[test]
fn a10_nothing_is_sent_of_traces_that_are_not_drawn() {
    let collector = Collector::start(&[]);
    let mut server = collector.corbie("stdio").variable("CORBIE_TELEMETRY__OTLP__SAMPLE_RATIO", "0").start();
    server.send_and_receive(&call(1, "chat_completion", json!({ "prompt": PROMPT, "model": "mock" })));
    server.close_stdin();
    assert_eq!(server.wait().code, Some(0));
    assert!(collector.requests().is_empty());
}
