//! Message formats: IDs, both types of a tool call, content, structured results.

mod fixture;

use corbie_mcp::{
    CallResult, ContentBlock, Context, Json, MediaContent, ResourceContents, Server, Tool, ToolCall, ToolReply,
    TrustLevel,
};
use fixture::peer::{self, Stdio, TestTransport, call, json_of, request_over_stdio, text_of};
use serde_json::{Value, json};

// === ids ===

#[tokio::test]
async fn m01_every_answer_carries_jsonrpc_and_the_id_as_it_came() {
    let server = fixture::server();
    let ids = [json!(1), json!("1"), json!(""), json!("é\"\\\n"), json!(0), json!(i64::MIN), json!(u64::MAX)];
    for id in ids.into_iter().chain([json!(9_007_199_254_740_993_i64)]) {
        for method in ["ping", "no/such/method"] {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
            for way in [TestTransport::Stdio, TestTransport::Http, TestTransport::WebSocket] {
                let answer = way.request(&server, TrustLevel::Trusted, &request).await;
                assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &id), "{method} over {way:?}");
            }
        }
    }
}

#[tokio::test]
async fn m01_an_id_wider_than_64_bits_keeps_every_digit() {
    let id = "123456789012345678901234567890";
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    peer.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
    let rest = peer.end_as_text().await;
    assert_eq!(rest.trim_end(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
}

// === MCPToolCall and MCPToolResult ===

const CALL: &str =
    r#"{"jsonrpc":"2.0","method":"tools/call","id":"c-1","params":{"name":"add","arguments":{"a":1,"b":[true,null]}}}"#;
const REPLY: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"3"}],"isError":false}}"#;

#[test]
fn m02_m06_v09_a_tool_call_is_read_and_written_without_loss() {
    let read = ToolCall::from_json(CALL).expect("valid");
    assert_eq!((read.id.clone(), read.name.as_str()), ("c-1".into(), "add"));
    assert_eq!(Value::Object(read.arguments.clone()), json!({ "a": 1, "b": [true, null] }));
    assert_eq!(read.to_json(), CALL);
}

#[test]
fn m03_m06_v09_a_tool_reply_is_read_and_written_without_loss() {
    let read = ToolReply::from_json(REPLY).expect("valid");
    assert_eq!((read.id.clone(), &read.result), (7.into(), &CallResult::text("3")));
    assert_eq!(read.to_json(), REPLY);
}

#[test]
fn m06_m104_v09_a_call_that_lacks_a_field_or_has_a_wrong_type_is_a_validation_error() {
    let bad_calls = [
        r#"not json"#,
        r#"[]"#,
        r#"{"method":"tools/call","id":1,"params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"1.0","method":"tools/call","id":1,"params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/list","id":1,"params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":null,"params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1.5,"params":{"name":"add","arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":7,"arguments":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"add"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"add","arguments":[1]}}"#,
    ];
    for text in bad_calls {
        let error = ToolCall::from_json(text).expect_err(text);
        assert_eq!(error.error_type(), "ValidationError", "{text}");
    }
}

#[test]
fn m06_m104_v09_a_reply_that_lacks_a_field_or_has_a_wrong_type_is_a_validation_error() {
    let bad_replies = [
        r#"{"id":7,"result":{"content":[],"isError":false}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[],"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":{},"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"smell","text":""}],"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text"}],"isError":false}}"#,
    ];
    for text in bad_replies {
        let error = ToolReply::from_json(text).expect_err(text);
        assert_eq!(error.error_type(), "ValidationError", "{text}");
    }
}

#[test]
fn m07_the_types_hold_what_the_protocol_names_and_nothing_of_a_provider() {
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"t","arguments":{}}}"#;
    assert_eq!(ToolCall::from_json(call).expect("valid").to_json(), call);
    let reply = ToolReply { id: 1.into(), result: CallResult::default() };
    assert_eq!(reply.to_json(), r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":false}}"#);
}

#[tokio::test]
async fn m02_m03_m06_the_types_speak_with_the_server() {
    let sent = ToolCall::from_json(&call(4, "add", json!({ "a": 2, "b": 3 })).to_string()).expect("valid");
    let mut peer = Stdio::start(&fixture::server(), TrustLevel::Trusted);
    peer.send(&sent.to_json()).await;
    let reply = ToolReply::from_json(&peer.receive().await.to_string()).expect("a valid reply");
    assert_eq!((reply.id, reply.result), (sent.id, CallResult::json(json!({ "sum": 5 }))));
}

// === content ===

#[tokio::test]
async fn m03_is_error_is_always_there() {
    for (tool, is_error) in [("picture", false), ("old", false), ("fail", true), ("panic", true)] {
        let answer = request_over_stdio(&fixture::server(), &call(1, tool, json!({}))).await;
        assert_eq!(answer["result"]["isError"], is_error, "{tool}");
    }
}

#[test]
fn m04_content_is_text_an_image_or_a_resource() {
    let resource = ResourceContents::text("a://b", "text/plain", "hello");
    for (content, wire) in [
        (ContentBlock::text("hi"), json!({ "type": "text", "text": "hi" })),
        (ContentBlock::image("AAAA", "image/png"), json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" })),
        (
            ContentBlock::resource(resource),
            json!({ "type": "resource", "resource": { "uri": "a://b", "mimeType": "text/plain", "text": "hello" } }),
        ),
    ] {
        assert_eq!(json!(content), wire);
        assert_eq!(serde_json::from_value::<ContentBlock>(wire).expect("readable"), content);
    }
}

#[tokio::test]
async fn m04_x28_structured_data_is_compact_json_in_one_line_of_the_first_item() {
    let tool = Tool::builder("verse").no_input().run(async |_, _| Json(json!({ "lines": ["a\nb", "c\r\n"], "n": 1 })));
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let answer = request_over_stdio(&server, &call(1, "verse", json!({}))).await;
    assert_eq!(text_of(&answer), r#"{"lines":["a\nb","c\r\n"],"n":1}"#);
}

#[tokio::test]
async fn m05_structured_content_equals_the_text_for_peers_that_know_it() {
    let server = fixture::server();
    for (version, knows) in [("2024-11-05", false), ("2025-03-26", false), ("2025-06-18", true), ("2025-11-25", true)] {
        let mut peer = Stdio::start(&server, TrustLevel::Trusted);
        peer.call(&peer::initialize(version, json!({}))).await;
        let answer = peer.call(&call(1, "add", json!({ "a": 1, "b": 1 }))).await;
        let expected = if knows { json_of(&answer) } else { Value::Null };
        assert_eq!(answer["result"]["structuredContent"], expected, "{version}");

        let list = peer.call(&peer::request(2, "tools/list", json!({}))).await;
        let tools = list["result"]["tools"].as_array().expect("tools");
        let add = tools.iter().find(|tool| tool["name"] == "add").expect("listed");
        assert_eq!(add["outputSchema"].is_object(), knows, "{version}");
    }
}

#[tokio::test]
async fn m05_a_modern_peer_gets_structured_content_too() {
    let answer = request_over_stdio(&fixture::server(), &peer::modern(1, "tools/call", add(), json!({}))).await;
    assert_eq!(answer["result"]["structuredContent"], json_of(&answer));
}

fn add() -> Value {
    json!({ "name": "add", "arguments": { "a": 1, "b": 1 } })
}

// === unknown and preserved fields ===

#[tokio::test]
async fn m11_unknown_members_are_ignored() {
    let mut request = call(1, "add", json!({ "a": 1, "b": 1 }));
    request["trace"] = json!({ "deep": [1] });
    request["params"]["hint"] = json!("be quick");
    let answer = request_over_stdio(&fixture::server(), &request).await;
    assert_eq!(answer["result"]["structuredContent"], json!({ "sum": 2 }));

    let more = CALL.replacen('{', r#"{"trace":1,"#, 1).replace(r#""name""#, r#""hint":2,"name""#);
    assert_eq!(ToolCall::from_json(&more).expect("valid").to_json(), CALL);
}

#[tokio::test]
async fn m11_a_tool_sees_the_meta_of_its_request_whole() {
    let tool = Tool::builder("meta").no_input().run(async |context: Context, _| Json(json!(context.meta())));
    let server = Server::builder("s", "1").tool(tool).build().expect("valid");
    let mut request = call(1, "meta", json!({}));
    request["params"]["_meta"] = json!({ "com.example/trace": { "id": 7 }, "progressToken": "t" });
    let answer = request_over_stdio(&server, &request).await;
    assert_eq!(json_of(&answer), request["params"]["_meta"]);
}

#[test]
fn m06_m11_meta_of_a_tool_call_survives_reading_and_writing() {
    let with_meta = CALL.replace(r#""name""#, r#""_meta":{"progressToken":7},"name""#);
    let written: Value =
        serde_json::from_str(&ToolCall::from_json(&with_meta).expect("valid").to_json()).expect("JSON");
    assert_eq!(written["params"]["_meta"], json!({ "progressToken": 7 }));
}

#[test]
fn m06_m11_meta_of_a_tool_reply_survives_reading_and_writing() {
    let with_meta = REPLY
        .replace(r#""isError""#, r#""_meta":{"seen":true},"isError""#)
        .replace(r#""text":"3""#, r#""text":"3","annotations":{"priority":1},"_meta":{"source":"sum"}"#);
    let written: Value =
        serde_json::from_str(&ToolReply::from_json(&with_meta).expect("valid").to_json()).expect("JSON");
    assert_eq!(written, serde_json::from_str::<Value>(&with_meta).expect("JSON"));
}

#[test]
fn m11_meta_of_content_is_kept() {
    let wire = json!({ "type": "audio", "data": "AA", "mimeType": "audio/wav", "_meta": { "length": 3 } });
    let content: ContentBlock = serde_json::from_value(wire.clone()).expect("readable");
    assert!(matches!(&content, ContentBlock::Audio(MediaContent { extra, .. }) if extra.meta.is_some()));
    assert_eq!(json!(content), wire);
}
